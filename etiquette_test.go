package feedhistory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
)

// A subscriber is a small poll loop, as a user of the package would write it.
type subscriber struct {
	client   *Client
	url      string
	known    map[string]Known
	schedule Schedule
	archives map[string]bool // that have been stored
	entries  map[string]bool
	whole    bool // read the archives as well
}

const halfAnHour = 30 * time.Minute

// run polls until the given time, or until the feed is gone.
func (s *subscriber) run(ctx context.Context, until time.Time) {
	for time.Now().Before(until) {
		next, gone := s.poll(ctx)
		if gone {
			return
		}
		if now := time.Now(); next.Before(now.Add(halfAnHour)) {
			next = s.schedule.Next(Response{Received: now, Fresh: now.Add(halfAnHour)})
		}
		time.Sleep(max(time.Until(next), time.Minute)) // so that a mistake here is seen, and ends
	}
}

// poll asks once, and returns when to ask again.
func (s *subscriber) poll(ctx context.Context) (next time.Time, gone bool) {
	if !s.whole {
		doc, err := s.client.Poll(ctx, s.url, s.known[s.url])
		return s.head(doc, err)
	}
	first := true
	for doc, err := range s.client.Walk(ctx, s.url, &WalkOptions{
		Known:     func(url string) Known { return s.known[url] },
		Processed: func(url string) bool { return s.archives[url] },
	}) {
		if first {
			first = false
			next, gone = s.head(doc, err)
		} else if err == nil {
			s.archives[doc.URL] = true
			s.store(doc)
		}
	}
	return next, gone
}

// head learns from the answer for the feed itself.
func (s *subscriber) head(doc *Document, err error) (next time.Time, gone bool) {
	unchanged, _ := errors.AsType[*Unchanged](err)
	status, _ := errors.AsType[*StatusError](err)
	var resp Response
	known := s.known[s.url]
	switch {
	case err == nil:
		s.store(doc)
		resp, known, s.schedule = doc.Response, doc.Known(), doc.Schedule
	case unchanged != nil:
		resp = unchanged.Response
		known.ETag, known.LastModified = resp.ETag, resp.LastModified
	case status != nil && status.Gone:
		return time.Time{}, true
	case status != nil && !status.At.IsZero():
		return s.schedule.Next(Response{Received: time.Now(), Fresh: status.At}), false
	default:
		return time.Now().Add(time.Hour), false
	}
	if resp.Permanent != "" {
		s.url = resp.Permanent
	}
	s.known[s.url] = known
	return s.schedule.Next(resp), false
}

func (s *subscriber) store(doc *Document) {
	for _, e := range doc.Entries {
		s.entries[e.ID] = true
	}
}

const week = 7 * 24 * time.Hour

// A week of polls is a week of good manners.
func TestEtiquette(t *testing.T) {
	for _, whole := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := feedtest.NewWatcher()
			s := &subscriber{
				client: &Client{Transport: feedtest.Pipe(t, w)}, url: "http://feed.example" + feedtest.FeedPath,
				known: map[string]Known{}, archives: map[string]bool{}, entries: map[string]bool{}, whole: whole,
			}
			s.run(t.Context(), time.Now().Add(week))
			t.Logf("whole history: %v\n%s", whole, w.Report())
			require.Empty(t, w.Broken(), "%s", w.Report())
			require.Equal(t, "http://feed.example"+feedtest.MovedPath, s.url)
			require.True(t, w.Gone)
			require.Greater(t, w.Unchanged, 30, "few polls were conditional with success")
			for _, what := range []string{"429", "503", "short 503", "moved"} {
				require.True(t, w.Told[what], what)
			}
			for n := range 6 { // what was there at the end of a day or so has come
				require.Equal(t, whole, s.entries[fmt.Sprintf("urn:old:%d", n)])
			}
			require.Greater(t, len(s.entries), 15)
		})
	}
}

// The watcher condemns a loop that polls every minute.
func TestEtiquetteCondemnsARudePoller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := feedtest.NewWatcher()
		client := &http.Client{Transport: feedtest.Pipe(t, w)}
		for range int(week / time.Minute) {
			resp, err := client.Get("http://feed.example" + feedtest.FeedPath)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			time.Sleep(time.Minute)
		}
		t.Logf("\n%s", w.Report())
		require.Equal(t, []string{
			feedtest.RuleConditional, feedtest.RuleVerbatim, feedtest.RuleSpacing, feedtest.RuleHours, feedtest.RuleRetryAfter, feedtest.RuleAgent,
			feedtest.RulePrivate, // a Referer, after the redirect
			feedtest.RuleMoved, feedtest.RuleGone,
		}, w.Broken())
	})
}

// It also condemns one that polls every three hours and thinks it knows better.
func TestEtiquetteCondemnsASlyPoller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := feedtest.NewWatcher()
		jar, err := cookiejar.New(nil)
		require.NoError(t, err)
		client := &http.Client{Transport: feedtest.Pipe(t, w), Jar: jar}
		etag, lastModified := "", ""
		for range 20 {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
				"http://feed.example"+feedtest.FeedPath+"?nocache="+url.QueryEscape(time.Now().String()), nil)
			require.NoError(t, err)
			req.Header.Set("User-Agent", "sly/1.0 (+https://sly.example)")
			req.SetBasicAuth("user", "secret")
			if etag != "" {
				req.Header.Set("If-None-Match", strings.TrimPrefix(etag, "W/"))
			}
			if at, err := time.Parse("Mon, 2 Jan 2006 15:04:05 GMT", lastModified); err == nil {
				req.Header.Set("If-Modified-Since", at.Format(http.TimeFormat))
			}
			resp, err := client.Do(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			etag, lastModified = resp.Header.Get("Etag"), resp.Header.Get("Last-Modified")
			time.Sleep(3 * time.Hour)
		}
		t.Logf("\n%s", w.Report())
		broken := w.Broken()
		for _, name := range []string{feedtest.RuleVerbatim, feedtest.RulePrivate, feedtest.RuleQuery} {
			require.Contains(t, broken, name)
		}
		for _, name := range []string{feedtest.RuleAgent, feedtest.RuleGone} {
			require.NotContains(t, broken, name)
		}
	})
}
