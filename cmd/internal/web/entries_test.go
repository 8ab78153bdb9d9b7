package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var entryLink = regexp.MustCompile(`/entry\?id=([^"]+)"`)

// listed returns the number of entries that a page lists.
func (w *world) listed(path string) int {
	_, list, ok := strings.Cut(w.page(path, http.StatusOK), `<ol class="entries">`)
	require.True(w.t, ok, path)
	return len(entryLink.FindAllString(list, -1))
}

// requireFilters checks that a list's conditions are shown, can be removed, and
// can be combined.
func requireFilters(t *testing.T, w *world, blog, tides string) {
	// While somebody types a word, the entries appear that it may become.
	for _, q := range []string{"sto", "storm", "Storm pet", "storm petrels"} {
		found := w.page(blog+"?q="+url.QueryEscape(q), http.StatusOK)
		require.Regexp(t, `<mark>Storm</mark> (<mark>)?petrels`, found, q)
		require.NotContains(t, found, "No entry matches", q)
	}
	require.Contains(t, w.page(blog+"?q=pet+storm", http.StatusOK), "No entry matches", "only the last word is unfinished")
	require.Contains(t, w.page("/entries?q=cran", http.StatusOK), "New <mark>crane</mark>")

	// Only deleted entries.
	require.Equal(t, 1, w.listed(tides+"?deleted=1"))
	gone := w.page(tides+"?deleted=1", http.StatusOK)
	require.NotContains(t, gone, "Neap")
	require.Contains(t, gone, "<bdi>No longer part of the feed</bdi>")
	require.Contains(t, gone, `href="?#entries">Show all entries`)
	require.Contains(t, gone, "1 entry: ")
	require.Contains(t, w.page(tides+"?deleted=1&q=spr", http.StatusOK), "<mark>Spring</mark>")
	require.Contains(t, w.page(tides+"?deleted=1&q=neap", http.StatusOK), "No entry matches")
	require.Contains(t, w.page("/entries?deleted=1", http.StatusOK), "Spring")

	// A search in a period, and the hits of each month on the timeline.
	all := w.page(blog+"?q=storm", http.StatusOK)
	bars := regexp.MustCompile(`href="(\?month=\d{4}-\d\d&amp;q=storm)#entries"><title>([^:]+): (\d+) entr`).FindAllStringSubmatch(all, -1)
	require.NotEmpty(t, bars)
	require.Contains(t, all, `href="?month=2012-01&amp;q=storm&amp;span=12#entries"`)
	for _, bar := range bars[:3] {
		list := w.page(blog+strings.ReplaceAll(bar[1], "&amp;", "&"), http.StatusOK)
		require.Contains(t, list, "<bdi>With “storm”</bdi>")
		require.Contains(t, list, "<bdi>From "+bar[2]+"</bdi>")
		require.Contains(t, list, `class="chosen" aria-current="true"><title>`+bar[2]+`: `+bar[3]+` entr`)
		require.Equal(t, 1, strings.Count(list, `class="chosen"`))
		require.Contains(t, list, `<input type="hidden" name="month" value="`)
		_, without, _ := strings.Cut(list, "From "+bar[2]+`</bdi> <a href="`)
		require.True(t, strings.HasPrefix(without, `?q=storm#entries"`), without[:20])
	}
	require.Contains(t, w.page(blog+"?month=2012-01&span=12", http.StatusOK), "<bdi>From 2012</bdi>")
	require.Contains(t, w.page(blog+"?month=2012-01&span=12", http.StatusOK), `span=12#entries" aria-current="true"`)
}
