package publish

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/togofeed"
	"github.com/stretchr/testify/require"
)

// republished returns the entries of a feed as a reader finds them after they
// are archived.
func republished(t *testing.T, format feedhistory.Format, url, text string) (*feedhistory.History, *memory) {
	doc, err := feedhistory.Parse(strings.NewReader(text), url)
	require.NoError(t, err)
	h, err := feedhistory.Merge(feedhistory.Readings(doc))
	require.NoError(t, err)
	out := newMemory()
	p := &Publisher{Output: out, Base: base, Format: format, Recent: -1, Split: compose.Split{Size: 1}}
	publishHistory(t, p, h)
	out.Operations()
	publishHistory(t, p, h)
	require.Empty(t, out.Operations(), "nothing is new")
	return fetch(t, out, p.URL()), out
}

func publishHistory(t *testing.T, p *Publisher, h *feedhistory.History) {
	_, err := p.Publish(t.Context(), Batch{Entries: h.Entries, Deleted: h.Deleted, Shown: ShownIn(h), Now: day})
	require.NoError(t, err)
}

// TestForeignEntries checks that entries of other formats, without ids, times
// or absolute references, mean the same in every document.
func TestForeignEntries(t *testing.T) {
	const there = "https://there.example/feeds/feed"
	for name, text := range map[string]string{
		"atom": `<feed xmlns="http://www.w3.org/2005/Atom"><updated>2003-12-13T18:30:02Z</updated>
			<entry><id>1</id><updated>2003-12-13T18:30:02Z</updated><title>One</title><link href="one"/>
			<content type="html">&lt;a href="two">x&lt;/a></content></entry></feed>`,
		"atom prefixed": `<a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:updated>2003-12-13T18:30:02Z</a:updated>
			<a:entry><a:id>1</a:id><a:updated>2003-12-13T18:30:02Z</a:updated><a:title>One</a:title><a:link href="one"/>
			<a:content type="html">&lt;a href="two">x&lt;/a></a:content></a:entry></a:feed>`,
		"atom without id or time": `<feed xmlns="http://www.w3.org/2005/Atom"><updated>2003-12-13T18:30:02Z</updated>
			<entry><title>One</title><link href="one"/>
			<content type="html">&lt;a href="two">x&lt;/a></content></entry></feed>`,
		"rss": `<rss version="2.0"><channel><item><guid>1</guid><pubDate>Sat, 13 Dec 2003 18:30:02 GMT</pubDate>
			<title>One</title><link>one</link>
			<content:encoded xmlns:content="http://purl.org/rss/1.0/modules/content/">&lt;a href="two">x&lt;/a></content:encoded></item></channel></rss>`,
		"rss without id or time": `<rss version="2.0"><channel><lastBuildDate>Sat, 13 Dec 2003 18:30:02 GMT</lastBuildDate><item>
			<title>One</title><link>one</link>
			<content:encoded xmlns:content="http://purl.org/rss/1.0/modules/content/">&lt;a href="two">x&lt;/a></content:encoded></item></channel></rss>`,
		"json": `{"version":"https://jsonfeed.org/version/1.1","items":[{"id":"1","title":"One","url":"https://there.example/feeds/one",
			"date_modified":"2003-12-13T18:30:02Z","content_html":"<a href=\"two\">x</a>"}]}`,
	} {
		for _, format := range []feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS} {
			t.Run(name+" as "+string(format), func(t *testing.T) {
				h, out := republished(t, format, there, text)
				require.Len(t, h.Entries, 1)
				e := h.Entries[0]
				require.False(t, e.WeakID)
				require.Equal(t, "One", e.Title().Plain())
				link, _ := e.Links.Rel("alternate")
				require.Equal(t, "https://there.example/feeds/one", link.Href)
				if strings.Contains(name, "without") {
					require.Equal(t, link.Href, e.ID)
				} else {
					require.Equal(t, "1", e.ID)
				}
				if format == feedhistory.FormatAtom {
					require.True(t, e.Updated.Equal(day), "%v", e.Updated)
				}
				item, err := togofeed.Item(e)
				require.NoError(t, err)
				require.Contains(t, item.Content+item.Description, `href="https://there.example/feeds/two"`)
				require.Len(t, out.texts(), 2)
			})
		}
	}
}

// TestDraftBase checks that references of an entry that was never in another
// document resolve against the subscription document, even after the entry is
// archived.
func TestDraftBase(t *testing.T) {
	for _, format := range []feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS} {
		out := newMemory()
		p := newPublisher(out)
		p.Format = format
		require.NoError(t, p.Append(t.Context(), entries(t, 1, 10)...))
		for _, e := range fetch(t, out, p.URL()).Entries {
			item, err := togofeed.Item(e)
			require.NoError(t, err)
			require.Contains(t, item.Content+item.Description, `href="`+base+`more"`)
		}
	}
}

// TestNoBaseNeeded checks that an entry that does not depend on its document is
// written as it is.
func TestNoBaseNeeded(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	e, err := compose.Draft{
		ID: "1", Updated: day, Links: feedhistory.Links{{Rel: "alternate", Href: "https://example.org/1"}},
		Content: feedhistory.Text{Type: "html", Body: `<a href="https://example.org/2">2 = 1 + 1</a>`},
	}.Entry()
	require.NoError(t, err)
	require.NoError(t, p.Append(t.Context(), e))
	require.Contains(t, string(out.texts()[p.name()]), "\n"+string(e.XML())+"\n")
}

// TestTimeless checks that an RSS item without update time counts as changed
// when it is published, and so replaces everything that was there, whatever its
// pubDate.
func TestTimeless(t *testing.T) {
	item := func(text string) *feedhistory.Entry {
		doc, err := feedhistory.Parse(strings.NewReader(`<rss version="2.0"><channel><item><guid>e1</guid><title>`+text+
			`</title><pubDate>Mon, 01 Dec 2003 00:00:00 GMT</pubDate></item></channel></rss>`), base)
		require.NoError(t, err)
		return doc.Entries[0]
	}
	out := newMemory()
	p := newPublisher(out)
	p.Format, p.Split = feedhistory.FormatRSS, compose.Split{Size: 2}
	title := func() string {
		for _, e := range fetch(t, out, p.URL()).Entries {
			if e.ID == "e1" {
				return e.Title().Plain()
			}
		}
		return ""
	}
	require.NoError(t, p.Append(t.Context(), entry(t, "e1", day.Add(time.Millisecond), "with a time")))
	for n := range 9 {
		text := string(rune('a' + n))
		require.NoError(t, p.Append(t.Context(), item(text)))
		require.Equal(t, text, title())
		require.NoError(t, p.Append(t.Context(), entries(t, 10+5*n, n%3)...))
		require.Equal(t, text, title())
	}
	require.ErrorIs(t, p.Append(t.Context(), entry(t, "e1", day.Add(time.Hour), "older than the document")), ErrStale)
	require.NoError(t, p.Append(t.Context(), entry(t, "e1", day.Add(100*time.Hour), "newer")))
	require.Equal(t, "newer", title())
}

func TestIsRelative(t *testing.T) {
	e := &feedhistory.Entry{}
	for text, want := range map[string]bool{
		`<p>1 = 1</p>`:                          false,
		`<a href="x">`:                          true,
		`<a href = 'x'>`:                        true,
		`&lt;a href=&#34;/x&#34;>`:              true,
		`&lt;a HREF=&quot;x&quot;>`:             true,
		`<img src=x.png>`:                       true,
		`<a href="https://example.org/x">`:      false,
		`<a href="mailto:a@example.org">`:       false,
		`<a href=""> `:                          false,
		`<a title="href"> `:                     false,
		`<a href="https://x/"><img src="//y/">`: true,
		`<a href="?q=1">`:                       true,
		`<uri>me</uri>`:                         true,
		`<uri>https://me.example/</uri>`:        false,
	} {
		require.Equal(t, want, isRelative(e, text), text)
	}
}

// An entry without an author gets none: neither the name of a head that was
// made up during conversion nor, once the title changes, the title that was
// used as the author's name.
func TestNoInventedAuthors(t *testing.T) {
	for _, format := range []feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS} {
		out := newMemory()
		for n, title := range []string{"First title", "Second title"} {
			p := newPublisher(out)
			p.Format, p.Split = format, compose.Split{Size: 2}
			p.Head = &feedhistory.Document{Title: title, ID: "urn:blog"}
			var all []*feedhistory.Entry
			for i := range 5 * (n + 1) {
				e, err := compose.Draft{ID: fmt.Sprint("urn:", i), Title: feedhistory.Text{Type: "text", Body: "T"}, Updated: time.Unix(int64(1e9+i), 0)}.Entry()
				require.NoError(t, err)
				all = append(all, e)
			}
			_, err := p.Publish(t.Context(), Batch{Entries: all})
			require.NoError(t, err)
		}
		seen := false
		for name, text := range out.texts() {
			_, entries, found := strings.Cut(string(text), map[feedhistory.Format]string{feedhistory.FormatAtom: "<entry", feedhistory.FormatRSS: "<item"}[format])
			seen = seen || found
			require.NotContains(t, entries, "author", name)
			require.NotContains(t, entries, "creator", name)
		}
		require.True(t, seen)
	}
}

// An entry whose addresses are signed again is published once. The subscription document
// has the newest signatures, without another time; archives keep their bytes.
func TestResigned(t *testing.T) {
	for _, format := range []feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS} {
		t.Run(string(format), func(t *testing.T) {
			out := newMemory()
			signed := func(day int) (all []*feedhistory.Entry) {
				var text strings.Builder
				for n := range 8 {
					fmt.Fprintf(&text, `<item><guid isPermaLink="false">e%d</guid><title>%d</title><pubDate>%s</pubDate><enclosure url="https://e.org/%d.mp3?token-time=%d&amp;token-hash=hash%d" length="1" type="audio/mpeg"/></item>`,
						n, n, time.Date(2003, 12, 1+n, 0, 0, 0, 0, time.UTC).Format(time.RFC1123Z), n, 1_700_000_000+day*86400, day)
				}
				doc, err := feedhistory.Parse(strings.NewReader(`<rss version="2.0"><channel><title>F</title>`+text.String()+`</channel></rss>`), base)
				require.NoError(t, err)
				return doc.Entries
			}
			p := newPublisher(out)
			p.Format, p.Recent = format, 5
			require.NoError(t, p.Append(t.Context(), signed(1)...))
			name := "feed." + string(format)
			before := maps.Clone(out.texts())
			for day := 2; day < 6; day++ {
				if day < 4 {
					require.NoError(t, p.Append(t.Context(), signed(day)...))
				} else {
					report, err := p.Publish(t.Context(), Batch{Entries: signed(day)})
					require.NoError(t, err)
					require.Equal(t, 8, report.Unchanged)
				}
				after := out.texts()
				require.Equal(t, len(before), len(after))
				for file, text := range before {
					want := string(text)
					if file == name {
						want = strings.ReplaceAll(strings.ReplaceAll(string(text), "hash1", fmt.Sprint("hash", day)), "1700086400", fmt.Sprint(1_700_000_000+day*86400))
						require.NotEqual(t, string(text), want)
					}
					require.Equal(t, want, string(after[file]), file)
				}
			}
		})
	}
}
