package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The first page has entries of this day in other years, an old one and the new ones.
func TestWelcome(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 9, 12, 0, 0, 0, time.UTC)
	w := newWorld(t, func(s *Server) { s.Token, s.clock = "open sesame", func() time.Time { return now } })
	_, _, _ = w.do(http.MethodPost, "/token", url.Values{"token": {"open sesame"}})
	require.NotContains(t, w.page("/", http.StatusOK), "On this day")
	w.write(2003, 2007)
	w.add("/blog/feed.atom")
	w.add("/news.rss")
	body := w.page("/", http.StatusOK)
	_, today, _ := strings.Cut(body, "On this day")
	today, _, _ = strings.Cut(today, "</ul>")
	require.Contains(t, today, "9 Jan 2006 · <bdi>The Lighthouse Log</bdi>")
	require.Contains(t, today, "9 Jan 2003 · ")
	require.Equal(t, 1, strings.Count(strings.SplitN(body, "From the past", 2)[1][:500], "/entry?id="))
	require.Equal(t, body, w.page("/", http.StatusOK), "the old entry is the same all day")
	require.Contains(t, body, "The ferry is back")
	require.Contains(t, body, `>2003<span class="hidden"> to </span><span>2026</span>`)
	require.Contains(t, body, `<summary>Add a feed</summary>`)

	for range mostBuilding { // pages that read entries
		w.building <- struct{}{}
	}
	require.NotContains(t, w.page("/", http.StatusOK), "On this day", "the list of feeds does not wait")
	for range mostBuilding {
		<-w.building
	}
	w.client.Jar = nil
	body = w.page("/", http.StatusOK)
	require.NotContains(t, body, "Add a feed")
	require.Contains(t, body, "show the token")
}
