package mirror_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A served is a feed whose answers a test decides, and its mirror.
type served struct {
	answer   func(w http.ResponseWriter, r *http.Request)
	statuses []int // of the answers since the last poll
	store    mirror.Store
	report   *mirror.Report
}

func (s *served) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status := &feedtest.StatusWriter{ResponseWriter: w, Status: http.StatusOK}
	s.answer(status, r)
	s.statuses = append(s.statuses, status.Status)
}

// poll polls the feed some time after the last poll.
func (s *served) poll(t *testing.T, after time.Duration) {
	t.Helper()
	time.Sleep(after)
	s.statuses = nil
	m := &mirror.Mirror{Store: s.store, Client: &feedhistory.Client{NoGuess: true, AllowPrivate: true, Transport: feedtest.Direct{Handler: s}, Tries: 1}}
	report, err := m.Update(t.Context(), "http://feed.example/feed")
	require.NoError(t, err)
	require.NoError(t, report.Failure)
	s.report = report
}

// rssOf returns a feed with some entries; at returns the time of each.
func rssOf(at func(i int) time.Time, entries ...int) string {
	var b strings.Builder
	b.WriteString("<rss><channel><title>Log</title><link>http://feed.example/</link>")
	for _, i := range entries {
		fmt.Fprintf(&b, `<item><guid isPermaLink="false">%d</guid><title>%d</title>`, i, i)
		if at != nil {
			fmt.Fprintf(&b, "<pubDate>%s</pubDate>", at(i).UTC().Format(time.RFC1123))
		}
		b.WriteString("</item>")
	}
	b.WriteString("</channel></rss>")
	return b.String()
}

// A site that is deployed again sends another ETag with the same bytes, and a 304 may bring one:
// from then on the new one is sent.
func TestNewValidators(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusNotModified} {
		synctest.Test(t, func(t *testing.T) {
			tag := `"1"`
			s := &served{store: mirror.NewMemory(), answer: func(w http.ResponseWriter, r *http.Request) {
				sent := r.Header.Get("If-None-Match")
				w.Header().Set("ETag", tag)
				if sent == tag || sent != "" && status == http.StatusNotModified {
					require.True(t, sent == tag || sent == `"1"`)
					w.WriteHeader(http.StatusNotModified)
					return
				}
				_, _ = w.Write([]byte(rssOf(nil, 2, 1)))
			}}
			s.poll(t, time.Hour)
			tag = `"2"`
			s.poll(t, time.Hour)
			require.Equal(t, []int{status}, s.statuses)
			status = http.StatusOK // the first tag is unknown from now on
			s.poll(t, time.Hour)
			require.Equal(t, []int{http.StatusNotModified}, s.statuses)
		})
	}
}

// A server that answers 304 to each condition is found out within a week, and at once by
// Revalidate.
func TestUnchangedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		newest := 2
		s := &served{store: mirror.NewMemory(), answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"x"`)
			if r.Header.Get("If-None-Match") != "" {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			_, _ = w.Write([]byte(rssOf(nil, newest, newest-1)))
		}}
		s.poll(t, time.Hour)
		newest++
		for range 6 {
			s.poll(t, 25*time.Hour)
			require.Equal(t, []int{http.StatusNotModified}, s.statuses)
		}
		s.poll(t, 25*time.Hour)
		require.Equal(t, 1, s.report.Added)
		s.poll(t, 25*time.Hour)
		require.Equal(t, []int{http.StatusNotModified}, s.statuses, "and then conditionally again")
	})
}

// What caches may keep for a year is polled within a day, and sooner where the window fills
// meanwhile. Six hours stay six hours.
func TestLongMaxAge(t *testing.T) {
	for _, tt := range []struct {
		header   string
		apart    time.Duration // the time between the two entries
		wantNext time.Duration
	}{
		{"max-age=31536000, immutable", 0, 24 * time.Hour},
		{"max-age=31536000", 16 * time.Hour, 8 * time.Hour},
		{"max-age=31536000", 2 * time.Hour, 6 * time.Hour},
		{"max-age=31536000", 90 * 24 * time.Hour, 24 * time.Hour},
		{"max-age=21600", time.Hour, 6 * time.Hour},
		{"max-age=43200", 40 * time.Hour, 12 * time.Hour},
		{"max-age=60", 40 * time.Hour, time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			at := func(i int) time.Time { return time.Now().Add(time.Duration(i-2) * tt.apart) }
			if tt.apart == 0 {
				at = nil
			}
			s := &served{store: mirror.NewMemory(), answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cache-Control", tt.header)
				_, _ = w.Write([]byte(rssOf(at, 2, 1)))
			}}
			s.poll(t, time.Hour)
			require.Equal(t, tt.wantNext, time.Until(s.report.Feed.Next), tt)
		})
	}
}
