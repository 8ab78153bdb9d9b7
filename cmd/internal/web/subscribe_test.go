package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/republish"
)

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
	pod := "/feeds/" + republish.Name(w.feedURL("/pod.rss"))
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

	blog := "/feeds/" + republish.Name(w.feedURL("/blog/feed.atom"))
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
	id := regexp.MustCompile(`/entry\?id=(tag[^"&]+)[^"]*"`).FindStringSubmatch(w.page(blog+"?month=2012-06&span=12", http.StatusOK))[1]
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

// The page asks for the reader, and gives one address for it; the rest is folded.
func TestSubscribeReaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *Server) { s.Base = "https://feeds.example/"; s.Names = []string{"127.0.0.1"} })
	w.extra.Store(new(http.Handler(http.HandlerFunc(serveLargeFeed))))
	w.write(2003, 2004)
	small, large := w.add("/blog/feed.atom"), w.add("/large.atom")
	offered := func(page, reader string) string {
		t.Helper()
		body := w.page(page+"/subscribe?reader="+reader, http.StatusOK)
		_, offer, ok := strings.Cut(body, `<div class="offer">`)
		require.True(t, ok)
		offer, _, _ = strings.Cut(offer, "</div>")
		require.LessOrEqual(t, strings.Count(offer, "<button")+strings.Count(offer, `class="button`), 1+strings.Count(offer, "<li>")*2, "one address has one button")
		return offer
	}
	at := "https://feeds.example" + small
	for reader, want := range map[string]string{
		"": at + "/complete.atom", "nonsense": at + "/complete.atom", "other": at + "/complete.atom", "archives": at + "/index.atom", "commafeed": at + "/complete.atom", "newsboat": at + "/complete.atom",
		"feedly": `href="https://feedly.com/i/subscription/feed/` + url.QueryEscape(at+"/complete.atom"), "theoldreader": `href="https://theoldreader.com/feeds/subscribe?url=` + url.QueryEscape(at+"/complete.atom"),
	} {
		require.Contains(t, offered(small, reader), want, reader)
	}
	require.Contains(t, offered(large, "newsboat"), "/complete.atom")
	require.NotContains(t, offered(large, "newsboat"), "slice")
	w.write(2004, 2005)
	require.Contains(t, w.page(small+"/subscribe", http.StatusOK), ">Another pace, day or time</summary>")
	require.NotContains(t, w.page(small+"/subscribe", http.StatusOK), "<details open>")
	body := w.page(small+"/subscribe?start=2026-12-01&pace=original%C3%9710", http.StatusOK)
	require.Contains(t, body, `aria-current="true">Ten times as fast`)
	require.NotContains(t, body, "<details open>")
	require.Contains(t, w.page(small+"/subscribe?start=2026-12-01&every=2d", http.StatusOK), "<details open>", "no plain choice")
}
