package backfill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// The pages of a JSON Feed are linked, so no method is needed; but what is
// published meanwhile comes last.
func TestOwnLinks(t *testing.T) {
	for _, moment := range []int{2, 3, 15, 30, 31} {
		s := newSite(300)
		s.before = func(n int) {
			if n == moment {
				s.publish()
			}
		}
		guid := func(p post) string { return fmt.Sprint(p.id) }
		r := s.fetch(t, func(w http.ResponseWriter, r *http.Request) {
			from := atoi(r.URL.Query().Get("from"))
			page := window(s.sorted(published), from, 10)
			feed := map[string]any{"version": "https://jsonfeed.org/version/1.1", "title": "A feed", "items": []any{}}
			for _, p := range page {
				feed["items"] = append(feed["items"].([]any), map[string]any{"id": guid(p), "title": p.text})
			}
			if from+10 < len(s.posts) {
				feed["next_url"] = fmt.Sprintf("%s/feed.json?from=%d", s.url, from+10)
			}
			_ = json.NewEncoder(w).Encode(feed)
		}, "/feed.json")
		s.has(t, r.History, guid)
		require.Empty(t, r.RecoveredBy)
		require.Equal(t, feedhistory.VerdictLossy, r.Verdict())
		require.Empty(t, r.History.Gaps)
		require.LessOrEqual(t, len(s.requests), 32)
		require.Zero(t, r.Probe, "nothing had to be tried")
	}
}

// A feed that declares its history causes no further requests.
func TestComplete(t *testing.T) {
	site := feedtest.Serve(t, `
-- /complete.rss --
<rss xmlns:fh="http://purl.org/syndication/history/1.0"><channel><fh:complete/><generator>https://wordpress.org/?v=6</generator>
<item><guid>1</guid></item></channel></rss>
-- /archived.rss --
<rss xmlns:a="http://www.w3.org/2005/Atom"><channel><a:link rel="prev-archive" href="1.rss"/><generator>https://wordpress.org/?v=6</generator>
<item><guid>2</guid></item></channel></rss>
-- /1.rss --
<rss xmlns:fh="http://purl.org/syndication/history/1.0"><channel><fh:archive/><item><guid>1</guid></item></channel></rss>
`)
	for path, requests := range map[string]int{"/complete.rss": 1, "/archived.rss": 2} {
		before := len(site.Requests())
		r, err := (&Backfill{HTTP: private(t)}).Fetch(t.Context(), site.URL+path, Probe{})
		require.NoError(t, err)
		require.Equal(t, feedhistory.VerdictWhole, r.Verdict())
		require.Len(t, site.Requests(), before+requests)
	}
}

// faulty is a feed of Ghost's, page by page.
const faulty = `
-- /rss/ --
<rss><channel><generator>Ghost 2.1</generator><item><guid>9</guid></item><item><guid>8</guid></item></channel></rss>
-- /rss/2/ --
<rss><channel><generator>Ghost 2.1</generator><item><guid>7</guid></item><item><guid>6</guid></item></channel></rss>
-- /rss/3/ --
%s
-- /rss/4/ --
<rss><channel><generator>Ghost 2.1</generator><item><guid>3</guid></item></channel></rss>
`

func TestFaults(t *testing.T) {
	const page = `<rss><channel><item><guid>5</guid></item><item><guid>4</guid></item></channel></rss>`
	for _, test := range []struct {
		name   string
		third  string
		adapt  func(*feedhistory.Client)
		ids    string
		reason string
	}{
		{"none", page, nil, "9 8 7 6 5 4 3", ""},
		{"emptied by deletions", "<rss><channel></channel></rss>", nil, "9 8 7 6 3", ""},
		{"forbidden", "Status: 403", nil, "9 8 7 6 3", "status"},
		{"broken off", page[:60], nil, "9 8 7 6 5 3", "truncated"},
		{"not a feed", "<html></html>", nil, "9 8 7 6 3", "not-feed"},
		{"documents", page, func(c *feedhistory.Client) { c.Budget.Documents = 2 }, "9 8 7 6", "budget"},
		{"bytes", page, func(c *feedhistory.Client) { c.Budget.Bytes = 200 }, "9 8 7 6", "budget"},
		{"elsewhere", "Status: 302\nLocation: {{other}}/rss/2/", func(c *feedhistory.Client) { c.OneOrigin = true }, "9 8 7 6 3", "refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			site := feedtest.Serve(t, fmt.Sprintf(faulty, test.third))
			c := private(t)
			if test.adapt != nil {
				test.adapt(c)
			}
			r, err := (&Backfill{HTTP: c}).Fetch(t.Context(), site.URL+"/rss/", Probe{})
			require.NoError(t, err)
			require.Equal(t, test.ids, strings.Join(list(r.History.Entries), " "))
			reason := ""
			for _, gap := range r.History.Gaps {
				reason += string(gap.Reason)
				require.NotEmpty(t, gap.URL)
			}
			require.Equal(t, test.reason, reason)
			require.Equal(t, reason != "", r.Verdict() == feedhistory.VerdictPartial)
		})
	}
}

// A walk ends with a gap if a server sends the last page for ever, or new
// entries for ever.
func TestEndless(t *testing.T) {
	for reason, guid := range map[feedhistory.Reason]func(n int) int{
		feedhistory.ReasonLoop:   func(n int) int { return min(n, 4) },
		feedhistory.ReasonBudget: func(n int) int { return n },
		feedhistory.ReasonBarren: func(n int) int { return min(n, 3) + 1 - n%2*min(n/3, 1) },
	} {
		s := newSite(0)
		s.handler = func(w http.ResponseWriter, r *http.Request) {
			n := max(1, atoi(strings.Trim(strings.TrimPrefix(r.URL.Path, "/rss/"), "/")))
			fmt.Fprintf(w, "<rss><channel><generator>Ghost 2</generator><item><guid>%d</guid></item></channel></rss>", guid(n))
		}
		b := Backfill{HTTP: &feedhistory.Client{
			AllowPrivate: true, Transport: s, Budget: feedhistory.Budget{Documents: 60},
		}}
		r, err := b.Fetch(t.Context(), "http://example.org/rss/", Probe{})
		require.NoError(t, err)
		require.Len(t, r.History.Gaps, 1)
		require.Equal(t, reason, r.History.Gaps[0].Reason)
		require.LessOrEqual(t, len(s.requests), 64)
	}
}

// A walk over a slow list without end ends after the time of its budget, and says so. The time of
// its caller does not count, and a walk that resumes has the time again.
func TestSlow(t *testing.T) {
	for budget, want := range map[feedhistory.Budget]int{
		{Time: 2 * time.Minute}: 8,
		{Documents: 60}:         44, // eleven minutes
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(0)
			s.handler = func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(15 * time.Second)
				n := max(1, atoi(strings.Trim(strings.TrimPrefix(r.URL.Path, "/rss/"), "/")))
				fmt.Fprintf(w, "<rss><channel><generator>Ghost 2</generator><item><guid>%d</guid></item></channel></rss>", n)
			}
			b := Backfill{HTTP: &feedhistory.Client{AllowPrivate: true, NoGuess: true, Transport: s, Budget: budget}}
			walk, documents, reasons := b.Attempt(t.Context(), "http://example.org/rss/", Probe{}), 0, []feedhistory.Reason{}
			for r, err := range walk.Readings() {
				require.NoError(t, err)
				if r.Document != nil {
					documents++
				}
				for _, g := range r.Gaps {
					reasons = append(reasons, g.Reason)
				}
				time.Sleep(time.Hour)
			}
			require.Equal(t, []feedhistory.Reason{feedhistory.ReasonBudget}, reasons)
			require.InDelta(t, want, documents, 2)
		})
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := newBlog(t, 200, 10)
	b.before = func(n int) {
		if n == 7 {
			cancel()
		}
	}
	r, err := (&Backfill{HTTP: private(t)}).Fetch(ctx, b.url+"/feed/", Probe{})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, feedhistory.VerdictPartial, r.Verdict())
	require.False(t, r.Proven)

	b.mu.Lock() // a request may still be in flight
	b.before = nil
	b.mu.Unlock()
	w := (&Backfill{HTTP: private(t)}).Attempt(t.Context(), b.url+"/feed/", Probe{})
	n := 0
	var merger feedhistory.Merger
	for reading, err := range w.Readings() {
		merger.Add(reading, err)
		if n++; n == 3 {
			break
		}
	}
	require.Equal(t, "wordpress", w.Probe().Method)
	h, err := merger.History()
	require.NoError(t, err)
	r = w.Recovery(h)
	require.Equal(t, feedhistory.VerdictPartial, r.Verdict(), "there may be more")
	require.Equal(t, feedhistory.ReasonInterrupted, r.History.Gaps[0].Reason)
	require.ErrorContains(t, r.History.Gaps[0], "has not been read")
	n, merger = 0, feedhistory.Merger{}
	for reading, err := range w.Readings() { // again
		merger.Add(reading, err)
		n++
	}
	require.Equal(t, 22, n, "and the end")
	h, err = merger.History()
	require.NoError(t, err)
	require.NotEqual(t, feedhistory.VerdictPartial, w.Recovery(h).Verdict())
}

// A first document that cannot be retrieved is an error.
func TestFirstDocument(t *testing.T) {
	b := newBlog(t, 30, 10)
	r, err := (&Backfill{HTTP: private(t)}).Fetch(t.Context(), b.url+"/nowhere", Probe{})
	require.Nil(t, r)
	require.ErrorAs(t, err, new(*feedhistory.FetchError))
}

// A Probe can be stored, and is made again if its method no longer suits the
// feed.
func TestProbe(t *testing.T) {
	b := newBlog(t, 30, 10)
	r := b.recover(t, "/feed/")
	data, err := json.Marshal(r.Probe)
	require.NoError(t, err)
	require.JSONEq(t, `{"method":"wordpress","mode":"modified"}`, string(data))
	var stored Probe
	require.NoError(t, json.Unmarshal(data, &stored))
	stored.Method = "blogger"
	again, err := (&Backfill{HTTP: private(t)}).Fetch(t.Context(), b.url+"/feed/", stored)
	require.NoError(t, err)
	require.Equal(t, "wordpress", again.RecoveredBy)
	require.Equal(t, Probe{Method: "wordpress", Mode: modeModified, Proven: true}, again.Probe)
}

// A server that is in trouble proves nothing.
func TestProbeFailed(t *testing.T) {
	for _, nameless := range []bool{false, true} {
		b := &blog{site: newSite(30), size: 10, nameless: nameless}
		down := func(w http.ResponseWriter, r *http.Request) {
			if len(b.requests) > 1 {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			b.answer(w, r)
		}
		r := b.fetch(t, down, "/feed/")
		require.Zero(t, r.Probe)
		require.Equal(t, feedhistory.VerdictWindow, r.Verdict())
	}
}

// A server that lies about how much there is gets no more requests than the
// budget allows.
func TestHostileTotal(t *testing.T) {
	for _, total := range []string{"999999999999999999", "9223372036854775807", "-1", "2000", "x"} {
		b := &blog{site: newSite(30), size: 10}
		r := b.fetch(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/wp-json") {
				w.Header().Set("X-WP-Total", total)
				fmt.Fprint(w, "[]")
				return
			}
			if n := r.URL.Query().Get("paged"); len(n) > 2 {
				r.URL.RawQuery = strings.Replace(r.URL.RawQuery, "paged="+n, "paged=3", 1) // more of the same
			}
			b.answer(w, r)
		}, "/feed/")
		if len(r.History.Gaps) == 0 {
			b.has(t, r.History, b.guid)
		}
		require.Equal(t, total == "2000", r.Verdict() == feedhistory.VerdictPartial)
		require.NotEqual(t, feedhistory.VerdictWhole, r.Verdict())
		require.Less(t, len(b.requests), 40, total)
	}
}

func TestMainFeed(t *testing.T) {
	for feed, api := range map[string]string{
		"https://x/feed/":               "https://x/wp-json/",
		"https://x/blog/feed/atom/":     "https://x/blog/wp-json/",
		"https://x/?feed=rss2":          "https://x/index.php?rest_route=/",
		"https://x/index.php/feed/":     "https://x/index.php/wp-json/",
		"https://x/index.php?feed=atom": "https://x/?rest_route=/",
	} {
		require.True(t, mainFeed(feed, api), feed)
	}
	for feed, api := range map[string]string{
		"https://x/category/a/feed/": "https://x/wp-json/",
		"https://x/comments/feed/":   "https://x/wp-json/",
		"https://x/feed/?cat=3":      "https://x/wp-json/",
		"https://x/feed":             "https://y/wp-json/",
		"https://x/feed/podcast":     "",
		"https://x/blog/feed/":       "https://x/wp-json/",
	} {
		require.False(t, mainFeed(feed, api), feed)
	}
}

// If a stored method no longer works as it did, the walk uses another way, or
// reports it.
func TestProbeOutdated(t *testing.T) {
	b := newBlog(t, 30, 10)
	probe := b.recover(t, "/feed/").Probe
	b.unordered = true
	r, err := (&Backfill{HTTP: private(t)}).Fetch(t.Context(), b.url+"/feed/", probe)
	require.NoError(t, err)
	require.Equal(t, feedhistory.VerdictLossy, r.Verdict())
	require.Equal(t, modePaged, r.Probe.Mode)
	b.has(t, r.History, b.guid)

	b.unpaged = true
	r, err = (&Backfill{HTTP: private(t)}).Fetch(t.Context(), b.url+"/feed/", r.Probe)
	require.NoError(t, err)
	require.Equal(t, feedhistory.VerdictPartial, r.Verdict())
	require.True(t, errors.Is(r.History.Gaps[0], errNothing))
}

func TestWith(t *testing.T) {
	for _, test := range [][2]string{
		{with("http://x/feed/", "paged", "2"), "http://x/feed/?paged=2"},
		{with("http://x/?feed=rss2&paged=1#top", "paged", "2"), "http://x/?feed=rss2&paged=2"},
		{with("http://x/?a=%7E&b", "order", "ASC", "orderby", "modified ID"), "http://x/?a=%7E&b&order=ASC&orderby=modified+ID"},
		{with("http://x/?start-index=5", "start-index", ""), "http://x/"},
		{resolveWithQuery("http://x/rss", "page/2/rss"), "http://x/page/2/rss"},
		{resolveWithQuery("http://x/rss/?a=1", "2/"), "http://x/rss/2/?a=1"},
	} {
		require.Equal(t, test[1], test[0])
	}
}
