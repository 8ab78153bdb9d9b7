package readers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/readers/readertest"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

const site = `
-- /feed.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><title>Feed</title><id>urn:feed</id><updated>2003-06-01T00:00:00Z</updated>
<author><name>Ann</name></author><link rel="self" href="feed.atom"/><link href="/"/><link rel="prev-archive" href="1.atom"/>
<entry><id>urn:6</id><title>Six</title><updated>2003-06-01T00:00:00Z</updated><link href="six.html"/></entry>
<entry><id>urn:5</id><title>Five</title><updated>2003-05-01T00:00:00Z</updated><link href="five.html"/></entry>
</feed>
-- /1.atom --
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><title>Feed</title><id>urn:feed</id><updated>2003-04-01T00:00:00Z</updated>
<author><name>Ann</name></author><fh:archive/><link rel="current" href="feed.atom"/>
<entry><id>urn:4</id><title>Four</title><updated>2003-04-01T00:00:00Z</updated><published>2003-04-01T00:00:00Z</published><link href="four.html"/><category term="news"/>
<content type="html">&lt;p>See &lt;a href="x.html">x&lt;/a></content><link rel="enclosure" type="audio/mpeg" href="four.mp3"/></entry>
<entry><id>urn:3</id><title type="html">Three &amp;amp; more</title><updated>2003-03-01T00:00:00Z</updated><link href="three.html"/><summary>1 &lt; 2</summary></entry>
<entry><id>urn:2</id><title/><updated>2003-02-01T00:00:00Z</updated><content>A note without a title</content></entry>
<entry><id>urn:1</id><title>One</title><updated>1965-01-01T00:00:00Z</updated><link href="one.html"/></entry>
</feed>
`

// A world is a mirrored feed, and a reader that has polled it.
type world struct {
	*Handover
	model *readertest.Miniflux
	site  *feedtest.Site
	feed  string
	to    ReaderFeed
}

// readerOf returns a client of a model.
func readerOf(t testing.TB, model *readertest.Miniflux) *Miniflux {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return NewMiniflux(Server{URL: model.URL, Header: http.Header{"Authorization": {"Bearer " + model.Token}}, Transport: transport, Login: "--token-env"})
}

func newWorld(t testing.TB, model *readertest.Miniflux, text string) *world {
	w := &world{model: model, site: feedtest.Serve(t, text)}
	model.Serve(t)
	w.feed = w.site.URL + "/feed.atom"
	client := &feedhistory.Client{AllowPrivate: true, Tries: 1}
	t.Cleanup(client.CloseIdle)
	m := &mirror.Mirror{Store: mirror.NewMemory(), Client: client}
	_, err := m.Update(t.Context(), w.feed)
	require.NoError(t, err)
	reader := readerOf(t, model)
	reader.Wait = time.Millisecond
	w.Handover = &Handover{Reader: reader, Store: m.Store, Client: client}
	w.to = ReaderFeed{ID: model.Subscribe(w.feed), FeedURL: w.feed}
	return w
}

// polled makes the reader find entries in the feed.
func (w *world) polled(names ...string) {
	numbers := map[string]string{"one": "1", "three": "3", "four": "4", "five": "5", "six": "6"}
	for _, name := range names {
		w.model.Poll(w.to.ID, "urn:"+numbers[name], readertest.Entry{URL: w.site.URL + "/" + name + ".html", Title: name})
	}
}

func (w *world) titles() (titles []string) {
	for _, e := range w.model.Entries() {
		titles = append(titles, e.Title)
	}
	return titles
}

func (w *world) run(t testing.TB) *Report {
	t.Helper()
	report, err := w.Run(t.Context(), w.feed, w.to)
	require.NoError(t, err)
	return report
}

// Entries that the feed no longer shows and the reader does not have are handed
// over, and look as if the reader had found them in the feed.
func TestHandover(t *testing.T) {
	w := newWorld(t, &readertest.Miniflux{}, site)
	w.polled("three", "six")
	require.NoError(t, w.Reader.Check(t.Context()))
	require.Equal(t, &Report{
		Feed: w.feed, ID: w.to.ID, Entries: 6, Shown: 2, Had: 1, Added: 3, Verdict: feedhistory.VerdictWhole, Refused: []Refusal{},
	}, w.run(t))
	require.Equal(t, []string{"three", "six", "One", "A note without a title", "Four"}, w.titles())

	four := w.model.Entries()[4]
	require.Equal(t, w.site.URL+"/four.html", four.URL)
	require.Equal(t, `<p>See <a href="`+w.site.URL+`/x.html">x</a><p><a href="`+w.site.URL+`/four.mp3">audio/mpeg</a></p>`, four.Content)
	require.Equal(t, []string{"news"}, four.Tags)
	require.Equal(t, "Ann", four.Author)
	require.Equal(t, "read", four.Status)
	require.False(t, four.Starred)
	require.Equal(t, time.Date(2003, 4, 1, 0, 0, 0, 0, time.UTC), four.PublishedAt)
	note := w.model.Entries()[3]
	require.Equal(t, "<p>A note without a title</p>", note.Content)
	require.Equal(t, w.site.URL+"/", note.URL)
	require.Equal(t, int64(1), w.model.Entries()[2].PublishedAt.Unix()) // Miniflux knows no earlier time

	before := w.model.Entries()
	require.Equal(t, &Report{
		Feed: w.feed, ID: w.to.ID, Entries: 6, Shown: 2, Had: 4, Verdict: feedhistory.VerdictWhole, Refused: []Refusal{},
	}, w.run(t))
	require.Equal(t, before, w.model.Entries())
}

// A run that is cancelled says so, and does not blame the feed.
func TestCancelled(t *testing.T) {
	w := newWorld(t, &readertest.Miniflux{}, site)
	ctx, cancel := context.WithCancel(t.Context())
	w.model.Break(func(int, *http.Request) *readertest.Fault {
		cancel()
		return &readertest.Fault{Wait: time.Minute}
	})
	_, err := w.Run(ctx, w.feed, w.to)
	require.ErrorIs(t, err, context.Canceled)
	_, err = w.Run(ctx, w.feed, w.to)
	require.ErrorIs(t, err, context.Canceled)
	_, unreadable := errors.AsType[*UnreadableError](err)
	require.False(t, unreadable)
}

// Entries that share an enclosure are different entries.
func TestSharedEnclosure(t *testing.T) {
	entry := func(n int) string {
		return fmt.Sprintf(`<entry><id>urn:%d</id><title>%d</title><updated>2003-01-0%dT00:00:00Z</updated><link rel="enclosure" href="https://example.org/a.mp3"/></entry>`, n, n, n)
	}
	const head = `<title>Feed</title><id>urn:feed</id><updated>2003-06-01T00:00:00Z</updated>`
	w := newWorld(t, &readertest.Miniflux{}, `
-- /feed.atom --
<feed xmlns="http://www.w3.org/2005/Atom">`+head+`<link rel="prev-archive" href="1.atom"/></feed>
-- /1.atom --
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0">`+head+`<fh:archive/>`+entry(1)+entry(2)+`</feed>
`)
	w.model.Poll(w.to.ID, "urn:1", readertest.Entry{URL: "https://example.org/a.mp3", Title: "1"})
	report := w.run(t)
	require.Equal(t, 1, report.Had)
	require.Equal(t, 1, report.Added)
}

// A second run does not touch what the user has done to an entry.
func TestSecondRunKeepsStatus(t *testing.T) {
	w := newWorld(t, &readertest.Miniflux{}, site)
	w.Status, w.Starred = Unread, true
	w.run(t)
	for _, e := range w.model.Entries() {
		require.Equal(t, "unread", e.Status)
		require.True(t, e.Starred)
	}
	var posts atomic.Int64
	w.model.Break(func(_ int, r *http.Request) *readertest.Fault {
		if r.Method != http.MethodGet {
			posts.Add(1)
		}
		return nil
	})
	w.Status = Read
	w.run(t)
	require.Zero(t, posts.Load())
	require.Equal(t, "unread", w.model.Entries()[0].Status)
}

func TestDryRun(t *testing.T) {
	w := newWorld(t, &readertest.Miniflux{}, site)
	w.DryRun = true
	report := w.run(t)
	require.Equal(t, 4, report.Added)
	var added []string
	for _, e := range report.ToAdd {
		added = append(added, e.ID)
	}
	require.Equal(t, []string{"urn:1", "urn:2", "urn:3", "urn:4"}, added)
	require.Empty(t, w.model.Entries())
}

// If the reader's ids do not help, entries are recognised by address, title and
// time, but only if these are unique.
func TestRecognised(t *testing.T) {
	const feed = `
-- /feed.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><title>Feed</title><id>urn:feed</id><updated>2003-06-01T00:00:00Z</updated><link rel="prev-archive" href="1.atom"/></feed>
-- /1.atom --
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><title>Feed</title><id>urn:feed</id><updated>2003-04-01T00:00:00Z</updated><fh:archive/><link rel="current" href="feed.atom"/>
%s</feed>
`
	entry := func(id, link, title, updated string) string {
		return fmt.Sprintf(`<entry><id>%s</id><title>%s</title><updated>%s</updated><link href="%s"/></entry>`, id, title, updated, link)
	}
	day := func(d int) string { return fmt.Sprintf("2003-01-%02dT00:00:00Z", d) }
	at := func(d int) time.Time { return time.Date(2003, 1, d, 0, 0, 0, 0, time.UTC) }
	for name, c := range map[string]struct {
		entries string
		reader  readertest.Entry
		added   int
	}{
		"by its address": {
			entry("urn:1", "http://www.example.org/1/", "One", day(1)),
			readertest.Entry{URL: "https://WWW.example.org/1?utm_source=feed", Title: "Uno", PublishedAt: at(9)}, 0,
		},
		"by title and time": {
			entry("urn:1", "https://example.org/1", "One  more", day(1)),
			readertest.Entry{URL: "https://example.org/moved", Title: "One more", PublishedAt: at(1)}, 0,
		},
		"not by the title alone": {
			entry("urn:1", "https://example.org/1", "Links", day(1)),
			readertest.Entry{URL: "https://example.org/2", Title: "Links", PublishedAt: at(2)}, 1,
		},
		"not by an address that many have": {
			entry("urn:1", "https://example.org/", "One", day(1)) + entry("urn:2", "https://example.org/", "Two", day(2)),
			readertest.Entry{URL: "https://example.org/", Title: "Two", PublishedAt: at(2)}, 1,
		},
		"not by title and time that many have": {
			entry("urn:1", "https://example.org/1", "Photo", day(1)) + entry("urn:2", "https://example.org/2", "Photo", day(1)),
			readertest.Entry{URL: "https://example.org/2", Title: "Photo", PublishedAt: at(1)}, 1,
		},
		"addresses that differ in their fragment": {
			entry("urn:1", "https://example.org/log#1", "1", day(1)) + entry("urn:2", "https://example.org/log#2", "2", day(2)),
			readertest.Entry{URL: "https://example.org/log#2", Title: "2", PublishedAt: at(2)}, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, &readertest.Miniflux{}, fmt.Sprintf(feed, c.entries))
			w.model.Poll(w.to.ID, "urn:of another form", c.reader)
			require.Equal(t, c.added, w.run(t).Added)
		})
	}
}

// Entries that the feed shows now and the mirror does not have are ignored.
// Entries that the feed shows under a different id, for example in RSS, are
// recognised.
func TestShownInAnotherForm(t *testing.T) {
	w := newWorld(t, &readertest.Miniflux{}, site+`-- /feed.rss --
<rss version="2.0"><channel><title>Feed</title>
<item><guid>http://{{host}}/?p=4</guid><link>four.html</link><title>Four</title><pubDate>Tue, 01 Apr 2003 00:00:00 GMT</pubDate></item>
</channel></rss>
`)
	w.to.FeedURL = w.site.URL + "/feed.rss"
	report := w.run(t)
	require.Equal(t, 1, report.Shown)
	require.Equal(t, 5, report.Added)
}

func TestUnreadableFeed(t *testing.T) {
	w := newWorld(t, &readertest.Miniflux{}, site)
	w.to.FeedURL = w.site.URL + "/missing.atom"
	_, err := w.Run(t.Context(), w.feed, w.to)
	unreadable, ok := errors.AsType[*UnreadableError](err)
	require.True(t, ok, err)
	require.Equal(t, w.to.FeedURL, unreadable.URL)
	require.Empty(t, w.model.Entries())
	w.Gone = true
	require.Equal(t, 6, w.run(t).Added)
}

// isImport reports whether a request imports an entry.
func isImport(r *http.Request) bool { return r.Method == http.MethodPost }

// Temporary faults do no harm: in the end everything is there once.
func TestFaultsThatPass(t *testing.T) {
	for name, fault := range map[string]readertest.Fault{
		"500":                          {Status: 500, Message: "database"},
		"500 after the import":         {Status: 500, Late: true},
		"502":                          {Status: 502},
		"429 that says when":           {Status: 429, RetryAfter: "0"},
		"429 that does not":            {Status: 429},
		"an answer that is lost":       {},
		"an answer lost after it":      {Late: true},
		"an answer that comes in time": {Wait: 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, &readertest.Miniflux{Fault: func(n int, _ *http.Request) *readertest.Fault {
				if n%2 == 1 {
					return &fault
				}
				return nil
			}}, site)
			report := w.run(t)
			require.Equal(t, 4, report.Added)
			require.Equal(t, []string{"One", "A note without a title", "Three & more", "Four"}, w.titles())
			w.run(t)
			require.Len(t, w.model.Entries(), 4)
		})
	}
}

// A request that is never answered is abandoned and repeated.
func TestSlowAnswer(t *testing.T) {
	w := newWorld(t, &readertest.Miniflux{Fault: func(n int, _ *http.Request) *readertest.Fault {
		if n == 2 {
			return &readertest.Fault{Wait: time.Minute}
		}
		return nil
	}}, site)
	w.Reader.Timeout = time.Second
	require.Equal(t, 4, w.run(t).Added)
}

// Permanent faults end the run with an error. When they are gone, another run
// continues.
func TestFaultsThatStay(t *testing.T) {
	for name, c := range map[string]struct {
		fault readertest.Fault
		says  string
	}{
		"401":            {readertest.Fault{Status: 401, Message: "access unauthorized"}, "401 Unauthorized: access unauthorized; the reader rejected the credentials: check --token-env"},
		"403":            {readertest.Fault{Status: 403}, "403 Forbidden"},
		"404":            {readertest.Fault{Status: 404}, "cannot import entries"},
		"405":            {readertest.Fault{Status: 405}, "cannot import entries"},
		"429 for long":   {readertest.Fault{Status: 429, RetryAfter: "3600"}, "left alone for 1h0m0s"},
		"500":            {readertest.Fault{Status: 500, Message: "disk full"}, "500 Internal Server Error: disk full"},
		"no answer":      {readertest.Fault{}, "EOF"},
		"another place":  {readertest.Fault{Status: 302}, "302 Found"},
		"the feed, gone": {readertest.Fault{Status: 400, Message: "feed does not exist"}, "feed does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			imports := 0
			w := newWorld(t, &readertest.Miniflux{Fault: func(_ int, r *http.Request) *readertest.Fault {
				if isImport(r) {
					if imports++; imports > 1 {
						return &c.fault
					}
				}
				return nil
			}}, site)
			report, err := w.Run(t.Context(), w.feed, w.to)
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), w.model.Token)
			require.Equal(t, 1, report.Added)
			require.Len(t, w.model.Entries(), 1)
			w.model.Break(nil)
			report = w.run(t)
			require.Equal(t, 1, report.Had)
			require.Equal(t, 3, report.Added)
		})
	}
}

// If the reader refuses an entry, the others are still handed over.
func TestRefusedEntry(t *testing.T) {
	for name, fault := range map[string]readertest.Fault{
		"by the reader":         {Status: 400, Message: "title is ugly"},
		"by a proxy before it":  {Status: 413},
		"by the database of it": {Status: 500, Message: "invalid byte sequence"},
	} {
		t.Run(name, func(t *testing.T) {
			imports := 0
			w := newWorld(t, &readertest.Miniflux{Fault: func(_ int, r *http.Request) *readertest.Fault {
				if isImport(r) {
					imports++
				}
				if isImport(r) && imports >= 2 && imports <= 4 && (imports == 2 || fault.Status == 500) {
					return &fault
				}
				return nil
			}}, site)
			report := w.run(t)
			require.Equal(t, 3, report.Added)
			require.Len(t, report.Refused, 1)
			require.Equal(t, "urn:2", report.Refused[0].ID)
			require.Contains(t, report.Refused[0].Error, fault.Message)
		})
	}
}

// What the user has deleted stays deleted, without an error.
func TestDeletedInReader(t *testing.T) {
	for _, version := range []string{"2.2.19", "2.3.3"} {
		t.Run(version, func(t *testing.T) {
			w := newWorld(t, &readertest.Miniflux{Version: version}, site)
			require.Equal(t, 4, w.run(t).Added)
			w.model.Delete(w.site.URL + "/four.html")
			require.Len(t, w.model.Entries(), 3)
			for range 2 {
				report := w.run(t)
				require.Equal(t, 3, report.Had)
				require.Equal(t, 1, report.Removed)
				require.Zero(t, report.Added+len(report.Refused))
				require.Len(t, w.model.Entries(), 3)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for version, old := range map[string]bool{
		"2.2.15": true, "2.0.51": true, "1.9.99": true,
		"2.2.16": false, "2.2.19": false, "2.3.0": false, "3.0.0": false, "Development Version": false,
	} {
		model := (&readertest.Miniflux{Version: version}).Serve(t)
		reader := readerOf(t, model)
		reader.URL += "/v1/"
		err := reader.Check(t.Context())
		require.Equal(t, old, errors.Is(err, ErrOld), "%s: %v", version, err)
	}
}

func TestAddress(t *testing.T) {
	for url, want := range map[string]string{
		"https://r.example":             "https://r.example/v1",
		"https://r.example/":            "https://r.example/v1",
		"https://r.example/v1/":         "https://r.example/v1",
		"http://r.example:8080/reader/": "http://r.example:8080/reader/v1",
		"https://r.example/?x#y":        "https://r.example/v1",
	} {
		got, err := NewMiniflux(Server{URL: url}).base()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for url, says := range map[string]string{
		"": "not the address", "r.example": "not the address", "file:///x": "not the address",
		"https://ann:secret@r.example/": "give credentials separately", "https:///x": "not the address",
	} {
		_, err := NewMiniflux(Server{URL: url}).base()
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "secret")
	}
}

// Credentials are not printed, and are sent nowhere else.
func TestSecret(t *testing.T) {
	m := NewMiniflux(Server{URL: "https://r.example/", Header: http.Header{"Authorization": {"Bearer s3cret"}}})
	for _, form := range []string{"%v", "%+v", "%#v", "%s"} {
		require.NotContains(t, fmt.Sprintf(form, m), "s3cret")
	}
	var asked atomic.Int64
	elsewhere := feedtest.Serve(t, "-- /v1/feeds --\n[]\n")
	model := (&readertest.Miniflux{Fault: func(int, *http.Request) *readertest.Fault {
		asked.Add(1)
		return &readertest.Fault{Status: 302}
	}}).Serve(t)
	reader := readerOf(t, model)
	_, err := reader.Feeds(t.Context())
	require.ErrorContains(t, err, "302")
	require.EqualValues(t, 1, asked.Load())
	require.Empty(t, elsewhere.Requests())
}

func TestMatch(t *testing.T) {
	f := &mirror.Feed{URL: "https://example.org/feed", Address: "https://example.org/feed.atom"}
	feed := func(urls ...string) (feeds []ReaderFeed) {
		for i, url := range urls {
			feeds = append(feeds, ReaderFeed{ID: int64(i + 1), FeedURL: url})
		}
		return feeds
	}
	for _, c := range []struct {
		feeds []ReaderFeed
		id    int64
	}{
		{feed("https://example.org/", "https://example.org/feed"), 2},
		{feed("https://example.org/feed.atom", "https://example.org/feed"), 2},
		{feed("https://example.org/feed.atom", "http://example.org/feed"), 1},
		{feed("https://example.org/feed.rss", "http://example.org/feed/"), 2},
	} {
		got, err := Match(f, c.feeds)
		require.NoError(t, err)
		require.Equal(t, c.id, got.ID)
	}
	_, err := Match(f, feed("https://example.org/"))
	require.ErrorIs(t, err, ErrNotSubscribed)
	_, err = Match(f, feed("http://example.org/feed", "https://example.org/feed/"))
	require.ErrorContains(t, err, "more than once")
}

// If a run is interrupted at any point, for any reason, the next runs complete
// it: everything is there once.
func TestInterruptedAnywhere(t *testing.T) {
	w := newWorld(t, &readertest.Miniflux{}, site)
	rapid.Check(t, func(rt *rapid.T) {
		model := &readertest.Miniflux{Version: rapid.SampledFrom([]string{"2.2.19", "2.3.3"}).Draw(rt, "version")}
		faults := rapid.SliceOfN(rapid.IntRange(0, 6), 1, 25).Draw(rt, "faults")
		var cancel context.CancelFunc
		model.Fault = func(n int, _ *http.Request) *readertest.Fault {
			if n > len(faults) {
				return nil
			}
			switch faults[n-1] {
			case 0:
				cancel()
			case 1:
				return &readertest.Fault{Status: 500}
			case 2:
				return &readertest.Fault{Status: 500, Late: true}
			case 3:
				return &readertest.Fault{Late: true}
			}
			return nil
		}
		model.Start()
		defer model.Close()
		reader := readerOf(t, model)
		reader.Wait = time.Microsecond
		h := *w.Handover
		h.Reader = reader
		to := ReaderFeed{ID: model.Subscribe(w.feed), FeedURL: w.feed}
		for done := false; !done; {
			ctx, stop := context.WithCancel(t.Context())
			cancel = stop
			report, err := h.Run(ctx, w.feed, to)
			done = err == nil && len(report.Refused) == 0
			stop()
			if model.Requests() > 500 {
				rt.Fatal("it never ends")
			}
		}
		var titles []string
		for _, e := range model.Entries() {
			titles = append(titles, e.Title)
		}
		slices.Sort(titles)
		if got := strings.Join(titles, ", "); got != "A note without a title, Four, One, Three & more" {
			rt.Fatal(got)
		}
	})
}
