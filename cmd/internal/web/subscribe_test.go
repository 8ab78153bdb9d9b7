package web

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// requireWellFormed checks a document with a different parser.
func requireWellFormed(t require.TestingT, text string) {
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			require.NoError(t, err, text)
		}
	}
}

// Slices are separate feeds, and together they are the feed.
func TestSlices(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(2003, 2012)
	for _, path := range []string{"/blog/feed.atom", "/news.rss"} {
		page, feed := w.add(path), w.feedURL(path)
		body := w.page(page+"/subscribe", http.StatusOK)
		require.Contains(t, body, "from its beginning")
		require.Equal(t, len(readers), strings.Count(body, ">everything in one document</a>"), "every reader takes so little")
		f, err := w.Store.Feed(t.Context(), feed)
		require.NoError(t, err)

		// With the sizes that readers accept, as small as possible here.
		var groups []slice
		for r, err := range w.Store.Entries(t.Context(), mirror.Query{Feed: feed}) {
			require.NoError(t, err)
			groups = append(groups, slice{Since: r.Time(), Entries: 1, Bytes: 1000})
		}
		cut := cut(groups, 40_000, 1000)
		require.Equal(t, path == "/blog/feed.atom", len(cut.slices) > 3)
		for _, format := range []string{"atom", "rss"} {
			got := map[string]string{}
			for _, part := range cut.slices {
				address := page + "/slice." + format + "?" + part.Query
				status, body, header := w.get(address)
				require.Equal(t, http.StatusOK, status, body)
				require.Contains(t, header.Get("Content-Type"), format)
				requireWellFormed(t, body)
				h, err := reader().Fetch(t.Context(), strings.TrimSuffix(w.url, "/")+address)
				require.NoError(t, err)
				require.Len(t, h.Entries, part.Entries)
				require.Equal(t, f.Verdict == feedhistory.Whole, h.Head.Complete)
				for _, e := range h.Entries {
					require.NotContains(t, got, e.ID)
					got[e.ID] = words(e)
				}
				w.checked(address)
			}
			require.Equal(t, w.mirrored(feed), got)
		}
	}
	page := "/feeds/" + ShortName(w.feedURL("/news.rss"))
	for query, want := range map[string]string{
		"since=x": "neither a date", "since=2004-01-01&until=2004-01-01": "must be before",
	} {
		require.Contains(t, w.page(page+"/slice.atom?"+query, http.StatusBadRequest), want)
	}
	require.Contains(t, w.page(page+"/subscribe?size=0", http.StatusUnprocessableEntity), "between 1 and 50")
	w.page(page+"/subscribe?size=7", http.StatusOK)
}

// However entries are spread, each is in one slice, no slice is too large, and
// existing slices stay as the feed grows.
func TestCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := time.Date(2003, 1, 1, 0, 0, 0, 0, time.UTC)
		most := int64(rapid.IntRange(100, 1000).Draw(t, "most"))
		var groups []slice // newest first
		total := 0
		for range rapid.IntRange(0, 60).Draw(t, "groups") {
			at = at.Add(time.Duration(1+rapid.IntRange(0, 1000).Draw(t, "gap")) * time.Second)
			g := slice{Since: at, Entries: rapid.IntRange(1, 3).Draw(t, "entries"), Bytes: int64(rapid.IntRange(1, 300).Draw(t, "bytes"))}
			groups = append([]slice{g}, groups...)
			total += g.Entries
		}
		all := cut(groups, most, 10)
		for i, part := range all.slices {
			total -= part.Entries
			single := 0
			for _, g := range groups {
				if !g.Since.Before(part.Since) && (part.Until.IsZero() || g.Since.Before(part.Until)) {
					single++
				}
			}
			require.True(t, part.Bytes <= most || single == 1)
			require.Equal(t, i == 0, part.Since.IsZero())
			require.Equal(t, i == len(all.slices)-1, part.Until.IsZero())
			if i > 0 {
				require.Equal(t, all.slices[i-1].Until, part.Since)
			}
		}
		require.Zero(t, total)
		if len(groups) > 1 {
			before := cut(groups[1:], most, 10)
			for i, part := range before.slices[:len(before.slices)-1] {
				require.Equal(t, part, all.slices[i])
			}
		}
	})
}

// A replay of each kind of feed, in both formats, from the form that makes its
// address to what a reader gets.
func TestReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	now := time.Date(2026, 12, 10, 12, 0, 0, 0, time.UTC)
	w.clock = func() time.Time { return now }
	w.write(2003, 2016)
	for _, path := range []string{"/blog/feed.atom", "/news.rss", "/tides.atom", "/odd.atom", "/pod.rss"} {
		page := w.add(path)
		body := w.page(page+"/subscribe?start=2026-12-01&every=1d&per=30&time=&until=&pace=&asof=99999&zone=UTC", http.StatusOK)
		require.Contains(t, body, "entries every day, from 1 December 2026, 00:00 UTC on.")
		addresses := regexp.MustCompile(`href="(http[^"]*/replay\.(?:atom|rss)\?[^"]*)"`).FindAllStringSubmatch(body, -1)
		require.Len(t, addresses, 2)
		for _, match := range addresses {
			address := strings.ReplaceAll(match[1], "&amp;", "&")
			require.Contains(t, address, "asof=")
			relative := strings.TrimPrefix(address, strings.TrimSuffix(w.url, "/"))
			status, text, header := w.get(relative)
			require.Equal(t, http.StatusOK, status, text)
			requireWellFormed(t, text)
			if path == "/blog/feed.atom" {
				require.Equal(t, "public, max-age=300", header.Get("Cache-Control"), "all is released")
			}
			h, err := reader().Fetch(t.Context(), address)
			require.NoError(t, err)
			require.Empty(t, h.Gaps)
			require.Len(t, h.Entries, len(w.mirrored(w.feedURL(path))), path)
			w.checked(relative)
			for _, e := range h.Entries {
				text := e.Content().Plain() + e.Summary().Plain()
				require.Contains(t, text, "First published ", path)
				at := e.Updated
				if at.IsZero() {
					at = e.Published
				}
				require.Equal(t, 2026, at.Year(), path)
			}
		}
	}
	pod := "/feeds/" + ShortName(w.feedURL("/pod.rss"))
	_, text, _ := w.get(pod + "/replay.rss?start=2026-12-10&every=1w")
	for _, part := range []string{
		`<enclosure url="https://pod.example/1.mp3" length="1234567" type="audio/mpeg"/>`, "<itunes:duration>12:34</itunes:duration>", "<pubDate>Thu, 10 Dec 2026 00:00:00 GMT</pubDate>",
		"First published on 4 January 2020.", "&lt;p&gt;Notes &amp;amp; links", `<guid isPermaLink="false">pod-1</guid>`,
	} {
		require.Contains(t, text, part)
	}
	require.NotContains(t, text, "pod-2")
	require.Equal(t, 1, strings.Count(text, "<pubDate>"))
	_, text, header := w.get(pod + "/replay.atom?start=2026-12-10&every=1w")
	require.Equal(t, "public, max-age=86400", header.Get("Cache-Control"))
	require.Contains(t, text, "<updated>2020-01-04T10:00:00Z</updated></source>", "the source tells the date, too")
	_, _, header = w.get(pod + "/replay.atom?start=2026-12-10T11:00:00Z&every=2h")
	require.Equal(t, "public, max-age=3600", header.Get("Cache-Control"), "until the next release")

	blog := "/feeds/" + ShortName(w.feedURL("/blog/feed.atom"))
	for query, want := range map[string]string{
		"every=1d": "start= is missing", "start=2026-12-01": "every= is missing", "start=2026-12-01&every=1s": "every=1s", "start=2026-12-01&every=1d&from=nothing": "there was no such entry then",
		"start=2026-12-01&every=1d&asof=99999999": "the mirror has no such version yet", "start=2026-12-01&every=1d&asof=9999999999999999999999": "asof=9",
	} {
		for _, format := range []string{"atom", "rss"} {
			require.Contains(t, w.page(blog+"/replay."+format+"?"+query, http.StatusBadRequest), want)
		}
		if !strings.Contains(query, "asof") && strings.Contains(query, "start") {
			require.Contains(t, w.page(blog+"/subscribe?"+query, map[bool]int{true: http.StatusOK, false: http.StatusUnprocessableEntity}[query == "start=2026-12-01"]), "replay")
		}
	}
	require.Contains(t, w.page(blog+"/replay.atom?start=2026-12-09&every=1d&archive=1", http.StatusNotFound), "no such archive")

	// From an entry on, and then at a different pace, with nothing repeated.
	id := regexp.MustCompile(`/entry\?id=(tag[^"]+)"`).FindStringSubmatch(w.page(blog+"?month=2012-06&span=12", http.StatusOK))[1]
	id, err := url.QueryUnescape(id)
	require.NoError(t, err)
	form := w.page(blog+"/subscribe?from="+url.QueryEscape(id), http.StatusOK)
	require.Contains(t, form, `<input type="hidden" name="from" value="`+id+`">`)
	made := w.page(blog+"/subscribe?start=2026-12-08&every=1d&from="+url.QueryEscape(id), http.StatusOK)
	require.Contains(t, made, "3 entries would be there already")
	_, first, _ := w.get(blog + "/replay.atom?start=2026-12-08&every=1d&from=" + url.QueryEscape(id))
	goOn := strings.ReplaceAll(regexp.MustCompile(`href="\?([^"]*)#replay">Make an address`).FindStringSubmatch(made)[1], "&amp;", "&")
	_, second, _ := w.get(blog + "/replay.atom?start=2026-12-10&every=12h&per=2&" + strings.ReplaceAll(goOn, "zone=UTC", "zone=UTC"))
	seen := map[string]bool{}
	for _, text := range []string{first, second} {
		doc, err := feedhistory.Parse(strings.NewReader(text), "")
		require.NoError(t, err)
		require.NotEmpty(t, doc.Entries)
		for _, e := range doc.Entries {
			require.False(t, seen[e.ID], "%s comes once", e.ID)
			seen[e.ID] = true
		}
	}
	require.Len(t, seen, 3+4)
}

// The order stays as it was frozen, over restarts, whatever is edited.
func TestReplayOrderIsKept(t *testing.T) {
	store, out := &mirror.Memory{}, &publish.Memory{}
	feed := &mirror.Feed{URL: replayURL, Known: feedhistory.Known{URL: replayURL}, Head: `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:s</id><title>S</title><updated>2026-01-01T00:00:00Z</updated></feed>`}
	put := func(n int, when string) {
		at, err := time.Parse(time.DateOnly, when)
		require.NoError(t, err)
		known, err := store.Records(t.Context(), replayURL, []string{fmt.Sprint("urn:", n)})
		require.NoError(t, err)
		first := feed.Version + 1
		if r := known[fmt.Sprint("urn:", n)]; r != nil {
			first = r.First
		}
		require.NoError(t, store.Commit(t.Context(), &mirror.Change{Feed: feed, Put: []*mirror.Record{{
			Feed: replayURL, ID: fmt.Sprint("urn:", n), State: mirror.Live, First: first, Change: feed.Version + 1, Added: at, Changed: at, Copy: mirror.Copy{At: at, Digest: when},
			Content: mirror.Content{Format: feedhistory.Atom, Updated: at, Data: fmt.Sprintf(`<entry xmlns="http://www.w3.org/2005/Atom"><id>urn:%d</id><title>%[1]d</title><updated>%sT00:00:00Z</updated></entry>`, n, when)},
		}}}))
	}
	for n := range 5 {
		put(n, fmt.Sprintf("2020-01-%02d", n+1))
	}
	order := func() string {
		s := &Server{Store: store, Output: out, clock: func() time.Time { return time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC) }}
		doc, err := feedhistory.Parse(strings.NewReader(asked(t, s, "/feeds/"+ShortName(replayURL)+"/replay.atom?start=2026-01-01&every=1d&asof=5")), "")
		require.NoError(t, err)
		var ids []string
		for _, e := range doc.Entries {
			ids = append(ids, strings.TrimPrefix(e.ID, "urn:"))
		}
		return strings.Join(ids, " ")
	}
	require.Equal(t, "4 3 2 1 0", order())
	put(1, "2021-01-01") // edited, with a different date
	put(9, "2019-01-01") // found later, with an old date
	require.Equal(t, "9 4 3 2 1 0", order())
}
