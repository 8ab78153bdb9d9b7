package backfill

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A wayback is a model of a web archive like the Wayback Machine, and of the
// site that it has archived: TimeMaps, snapshots in two forms, Link fields with
// relations that look like those of a feed (RFC 7089 §2.2, §5).
type wayback struct {
	*site
	size     int // entries in the feed
	captures []capture
	noRaw    bool
	lists    int // captures in one TimeMap; zero: all
}

type capture struct {
	at     time.Time
	text   string
	status int // unless 200
}

// capture archives the present feed.
func (a *wayback) capture() {
	a.now = a.now.Add(time.Hour)
	a.captures = append(a.captures, capture{at: a.now, text: a.text()})
}

// text returns the feed, with no times but those of publication. Its references
// are relative, in content, too.
func (a *wayback) text() string {
	var b strings.Builder
	b.WriteString(`<rss version="2.0"><channel><title>A site</title><link>http://example.org/</link><generator>by hand</generator>`)
	for _, p := range window(a.sorted(published), 0, a.size) {
		fmt.Fprintf(&b, `<item><title>%s</title><link>post/%d</link><guid isPermaLink="false">%s</guid><description>&lt;a href="http://example.org/post/%d"&gt;read&lt;/a&gt;</description></item>`,
			p.text, p.id, a.guid(p), p.id)
	}
	b.WriteString("</channel></rss>")
	return b.String()
}

func (a *wayback) guid(p post) string { return fmt.Sprintf("http://example.org/?p=%d", p.id) }

const original = "http://example.org/feed.rss"

var snapshotPath = regexp.MustCompile(`^/web/([0-9]{14})(id_)?/(.*)$`)

func (a *wayback) answer(w http.ResponseWriter, r *http.Request) {
	uri := r.URL.Path
	if r.URL.RawQuery != "" {
		uri += "?" + r.URL.RawQuery
	}
	if uri == "/feed.rss" {
		fmt.Fprint(w, a.text())
		return
	}
	if list, ok := strings.CutPrefix(uri, "/web/timemap/link/"); ok {
		list, page, _ := strings.Cut(list, "|")
		if strings.HasSuffix(list, "/feed.rss") && len(a.captures) > 0 {
			w.Header().Set("Content-Type", "application/link-format")
			fmt.Fprint(w, a.timemap(atoi(page)))
			return
		}
	}
	m := snapshotPath.FindStringSubmatch(uri)
	for _, c := range a.captures {
		if m == nil || c.at.Format("20060102150405") != m[1] || m[2] != "" && a.noRaw {
			continue
		}
		if c.status != 0 {
			w.WriteHeader(c.status)
			return
		}
		w.Header().Set("Memento-Datetime", c.at.Format(http.TimeFormat))
		w.Header().Set("Link", `<`+original+`>; rel="original", <`+a.url+`/web/2006/x>; rel="first memento", <`+a.url+`/web/2007/x>; rel="next memento"`)
		text := c.text
		if m[2] == "" {
			text = regexp.MustCompile(`http://example\.org`).ReplaceAllString(text, a.url+"/web/"+m[1]+"/http://example.org")
		}
		fmt.Fprint(w, text)
		return
	}
	http.NotFound(w, r)
}

// timemap lists captures in the link format, in pages if there are many.
func (a *wayback) timemap(page int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<%s>; rel=\"original\",\n<%s/web/timemap/link/%s>; rel=\"self\"; type=\"application/link-format\"; from=\"Mon, 01 Jan 2026 00:00:00 GMT\",\n", original, a.url, original)
	fmt.Fprintf(&b, "<%s>; rel=\"timegate\"", a.url)
	size := len(a.captures)
	if a.lists > 0 {
		size = a.lists
	}
	for i, c := range a.captures {
		if i/size != page {
			continue
		}
		rel := "memento"
		if i == 0 {
			rel = "first memento"
		}
		fmt.Fprintf(&b, ",\n<%s/web/%s/%s>; rel=\"%s\"; datetime=\"%s\"", a.url, c.at.Format("20060102150405"), original, rel, c.at.Format(http.TimeFormat))
	}
	if (page+1)*size < len(a.captures) {
		fmt.Fprintf(&b, ",\n<%s/web/timemap/link/%s|%d>; rel=\"timemap\"; type=\"application/link-format\"", a.url, original, page+1)
	}
	return b.String() + "\n"
}

func newWayback(posts, size, every int) *wayback {
	a := &wayback{site: newSite(0), size: size}
	for i := range posts {
		a.publish()
		if i%every == 0 {
			a.capture()
		}
	}
	return a
}

func (a *wayback) method() Memento {
	return Memento{TimeMap: a.url + "/web/timemap/link/", Pace: time.Nanosecond}
}

func TestMemento(t *testing.T) {
	for _, test := range []struct {
		name  string
		setUp func(*wayback)
	}{
		{"raw", func(*wayback) {}},
		{"rewritten", func(a *wayback) { a.noRaw = true }},
		{"lists of lists", func(a *wayback) { a.lists = 7 }},
		{"copies of error pages", func(a *wayback) {
			for i := range a.captures {
				if i%5 == 1 {
					a.captures[i].status = http.StatusForbidden
				}
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newWayback(400, 25, 10)
			test.setUp(a)
			a.serve(t, a.answer)
			r := a.recover(t, "/feed.rss", append(Methods(), a.method())...)
			a.has(t, r.History, a.guid)
			require.Equal(t, "memento", r.RecoveredBy)
			require.Equal(t, feedhistory.VerdictLossy, r.Verdict())
			require.Empty(t, r.History.Gaps)
			require.Equal(t, feedhistory.KindPlain, r.History.Kind)
			for _, e := range r.History.Entries {
				require.NotContains(t, e.Links[0].Href, "/web/")
				require.Equal(t, feedhistory.KindPlain, e.Head.Kind(), "the archive's links are not the feed's")
				require.NotContains(t, e.Summary().Body, "/web/")
				require.Contains(t, e.Summary().Body, `href="http://example.org/post/`)
			}
			if len(test.name) == len("raw") {
				require.Less(t, len(a.requests), 40, "snapshots between two that overlap are left out")
			}
		})
	}
}

// Edited and withdrawn entries can be recognised: an entry says which snapshot
// it is from, and its time. Nothing counts as deleted.
func TestMementoEditedAndWithdrawn(t *testing.T) {
	a := newWayback(30, 10, 1)
	a.edit(28)
	delete(a.posts, 27)
	delete(a.posts, 5)
	a.serve(t, a.answer)
	r := a.recover(t, "/feed.rss", Memento{TimeMap: a.url + "/web/timemap/link/", Pace: 1, All: true})
	require.Empty(t, r.History.Deleted)
	found := map[string]*feedhistory.Entry{}
	for _, e := range r.History.Entries {
		found[e.ID] = e
	}
	require.Len(t, found, 30)
	require.Equal(t, "post 28, edited", found[a.guid(post{id: 28})].Title().Plain(), "the live copy is the latest")
	require.Empty(t, found[a.guid(post{id: 28})].Head.Response.Requested)
	gone := found[a.guid(post{id: 27})].Head
	require.Equal(t, a.captures[29].at, gone.LastModified.UTC())
	require.Contains(t, gone.Response.Requested, "/web/"+a.captures[29].at.Format("20060102150405")+"/http://example.org/")
}

// If two snapshots have nothing in common, there is a gap.
func TestMementoGap(t *testing.T) {
	a := newWayback(100, 10, 100) // one snapshot, of the beginning
	a.serve(t, a.answer)
	r := a.recover(t, "/feed.rss", a.method())
	require.Len(t, r.History.Entries, 11)
	require.Len(t, r.History.Gaps, 1)
	require.Equal(t, feedhistory.ReasonMissedWindow, r.History.Gaps[0].Reason)
	require.Equal(t, feedhistory.VerdictPartial, r.Verdict())
}

func TestMementoNone(t *testing.T) {
	a := newWayback(0, 10, 1)
	a.publish()
	a.serve(t, a.answer)
	r := a.recover(t, "/feed.rss", a.method())
	require.Equal(t, feedhistory.VerdictWindow, r.Verdict())
	require.Empty(t, r.RecoveredBy)
	require.Len(t, a.requests, 2)
}

// The links of a feed take precedence. What was learned without the archive
// does not prevent a request to it.
func TestMementoLast(t *testing.T) {
	site := feedtest.Serve(t, `
-- /paged.rss --
<rss xmlns:a="http://www.w3.org/2005/Atom"><channel><a:link rel="next" href="2.rss"/><item><guid>2</guid></item></channel></rss>
-- /2.rss --
<rss xmlns:a="http://www.w3.org/2005/Atom"><channel><a:link rel="previous" href="paged.rss"/><item><guid>1</guid></item></channel></rss>
`)
	b := Backfill{HTTP: private(t), Methods: append(Methods(), Memento{TimeMap: site.URL + "/timemap/"})}
	r, err := b.Fetch(t.Context(), site.URL+"/paged.rss", Probe{})
	require.NoError(t, err)
	require.Len(t, r.History.Entries, 2)
	require.Empty(t, r.RecoveredBy)

	a := newWayback(50, 10, 5)
	a.serve(t, a.answer)
	b.Methods = append(Methods(), a.method())
	r, err = b.Fetch(t.Context(), a.url+"/feed.rss", Probe{Method: None})
	require.NoError(t, err)
	require.Equal(t, "memento", r.RecoveredBy)
	require.Equal(t, Probe{Method: "memento"}, r.Probe)
}

// An archive that fails is left alone after a few tries, and there is a gap.
func TestMementoDown(t *testing.T) {
	a := newWayback(200, 5, 2)
	for i := range a.captures {
		a.captures[i].status = http.StatusForbidden
	}
	a.serve(t, a.answer)
	r := a.recover(t, "/feed.rss", a.method())
	require.Len(t, r.History.Gaps, 1)
	require.Equal(t, feedhistory.ReasonStatus, r.History.Gaps[0].Reason)
	require.Len(t, a.requests, 2+maxFailed)
}

// Every entry that was ever in a snapshot comes with All; without All, every
// entry whose neighbours overlap.
func TestMementoAnySnapshots(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a := &wayback{site: newSite(0), size: rapid.IntRange(1, 8).Draw(rt, "size")}
		a.noRaw = rapid.Bool().Draw(rt, "no raw")
		a.lists = rapid.IntRange(0, 3).Draw(rt, "lists")
		shown := map[string]bool{}
		for range rapid.IntRange(1, 30).Draw(rt, "events") {
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0:
				a.capture()
				for _, p := range window(a.sorted(published), 0, a.size) {
					shown[a.guid(p)] = true
				}
			case 1:
				a.edit(rapid.IntRange(1, a.next+1).Draw(rt, "edited"))
			default:
				a.publish()
			}
		}
		a.url = "http://example.org"
		m := a.method()
		m.All = rapid.Bool().Draw(rt, "all")
		r := a.fetch(rt, a.answer, "/feed.rss", m)
		got := ids(r.History.Entries)
		require.Len(rt, got, len(r.History.Entries))
		for id := range shown {
			require.True(rt, got[id], "%s\n%s", id, strings.Join(a.requests, "\n"))
		}
	})
}

func TestParseTimeMap(t *testing.T) {
	const text = `<http://a.example.org>;rel="original",
 <http://arxiv.example.net/timemap/http://a.example.org>
   ; rel="self";type="application/link-format"
   ; from="Tue, 20 Jun 2000 18:02:59 GMT"
   ; until="Wed, 09 Apr 2008 20:30:51 GMT",
 <http://arxiv.example.net/timegate/http://a.example.org>
   ; rel="timegate",
 <http://arxiv.example.net/web/20000620180259/http://a.example.org>
   ; rel="first memento";datetime="Tue, 20 Jun 2000 18:02:59 GMT"
   ; license="http://creativecommons.org/publicdomain/zero/1.0/",
 <web/20091027204954/http://a.example.org>
    ; rel="last memento";datetime="Tue, 27 Oct 2009 20:49:54 GMT",
 <http://arxiv.example.net/web/20000621011731/http://a.example.org>
   ; rel="memento";datetime="Wed, 21 Jun 2000 01:17:31 GMT",
 <javascript:x>; rel="memento";datetime="Wed, 21 Jun 2000 01:17:31 GMT",
 <http://arxiv.example.net/web/20000621044156/http://a.example.org>; rel="memento";datetime="yesterday",
 <http://arxiv.example.net/timemap/2/http://a.example.org>; rel="timemap"`
	m, err := parseTimeMap(text, "http://arxiv.example.net/timemap/http://a.example.org")
	require.NoError(t, err)
	require.Equal(t, "http://a.example.org", m.Original)
	require.Equal(t, []string{"http://arxiv.example.net/timemap/2/http://a.example.org"}, m.More)
	require.Len(t, m.Snapshots, 3)
	require.Equal(t, time.Date(2000, 6, 20, 18, 2, 59, 0, time.UTC), m.Snapshots[0].Time.UTC())
	require.Equal(t, 2009, m.Snapshots[2].Time.Year())
	_, err = parseTimeMap("<html", "http://arxiv.example.net/")
	require.Error(t, err)
}

func FuzzParseTimeMap(f *testing.F) {
	for _, seed := range []string{
		"", "<", "<>;", `<a>;rel=memento;datetime="Tue, 20 Jun 2000 18:02:59 GMT",<b>;rel="first memento"`,
		`<http://a>;rel="original",<m>;rel="memento";datetime="Tue, 27 Oct 2009 20:49:54 GMT"`,
		`<a>;rel="timemap";type="application/link-format";from="\"`, "<a>;;;=,<b>;rel", strings.Repeat("<a>;rel=memento,", 50),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseTimeMap(text, "http://archive.example/map")
		if err != nil {
			return
		}
		for i, s := range m.Snapshots {
			require.True(t, strings.HasPrefix(s.URL, "http"), s.URL)
			require.False(t, i > 0 && s.Time.Before(m.Snapshots[i-1].Time))
		}
		require.LessOrEqual(t, len(m.Snapshots)+len(m.More), len(text))
	})
}

func TestRestore(t *testing.T) {
	const snapshot = "https://web.archive.org/web/20060102150405/http://example.org/feed"
	for text, want := range map[string]string{
		`<link>https://web.archive.org/web/20060102150405/http://example.org/1</link>`:   `<link>http://example.org/1</link>`,
		`src="/web/20060102150405im_/https://example.org/a.png"`:                         `src="https://example.org/a.png"`,
		`&lt;a href=&quot;//web.archive.org/web/2006/http://example.org/&quot;`:          `&lt;a href=&quot;http://example.org/&quot;`,
		`<link>https://other.example/web/20060102150405/http://example.org/1</link>`:     `<link>https://other.example/web/20060102150405/http://example.org/1</link>`,
		`<link>https://web.archive.org/about</link>`:                                     `<link>https://web.archive.org/about</link>`,
		`<guid>https://web.archive.org/web/20060102150405id_/http://example.org/</guid>`: `<guid>http://example.org/</guid>`,
	} {
		require.Equal(t, want, restore(text, snapshot))
	}
}

// A parked domain answered for a while with a feed of its own: it is not merged, and it is
// said. A site that was renamed, or moved to another host, is the same feed.
func TestMementoParked(t *testing.T) {
	a := newWayback(60, 10, 5)
	parked := capture{text: `<rss version="2.0"><channel><title>Buy this domain</title><link>http://parking.example/</link><item><title>An offer</title><guid>http://parking.example/1</guid></item></channel></rss>`}
	for at, i := range []int{0, 4, 5} {
		parked.at = a.captures[i].at.Add(time.Duration(at+1) * time.Minute)
		a.captures = append(a.captures, parked)
	}
	renamed := a.captures[1]
	renamed.text = strings.Replace(renamed.text, "A site", "Its old name", 1)
	a.captures[1] = renamed
	parked.text = strings.ReplaceAll(parked.text, "http://parking.example/1", "http://example.org/?p=1")
	require.False(t, isOther(feedOf(t, a.text()), feedOf(t, parked.text)))
	a.serve(t, a.answer)
	r := a.recover(t, "/feed.rss", Memento{TimeMap: a.method().TimeMap, Pace: time.Nanosecond, All: true})
	a.has(t, r.History, a.guid)
	require.Len(t, r.History.Entries, 60)
	require.Len(t, r.History.Gaps, 1)
	require.Equal(t, feedhistory.ReasonForeign, r.History.Gaps[0].Reason)
	require.ErrorContains(t, r.History.Gaps[0], "3 snapshots are of another feed")
}

func feedOf(t *testing.T, text string) *feedhistory.Document {
	doc, err := feedhistory.Parse(strings.NewReader(text), original)
	require.NoError(t, err)
	return doc
}
