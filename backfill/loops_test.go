package backfill

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
)

// Each loop over pages ends, even if the server never runs out of them. The numbers count
// requests.
func TestLoops(t *testing.T) {
	const posts = 60 // in pages of 10: 6 pages, and about as many requests to look again
	list := func(w http.ResponseWriter, total, from, n int) {
		w.Header().Set("X-WP-Total", strconv.Itoa(total))
		var ids []string
		for i := range n {
			ids = append(ids, fmt.Sprintf(`{"id":%d,"modified":"2020-01-01T00:00:00","guid":{"rendered":"urn:new:%[1]d"},"link":"http://x.example/%[1]d"}`, from+i))
		}
		fmt.Fprintf(w, "[%s]", strings.Join(ids, ","))
	}
	isList := func(r *http.Request) bool {
		return strings.HasPrefix(r.URL.Path, "/wp-json") && r.URL.Query().Get("per_page") == "100"
	}
	page := func(r *http.Request) int {
		return max(1, atoi(r.URL.Query().Get("page")), atoi(r.URL.Query().Get("paged")))
	}
	for name, test := range map[string]struct {
		most   int
		answer func(b *blog, w http.ResponseWriter, r *http.Request) bool // false: as WordPress
	}{
		"a census of new posts without end": {60, func(_ *blog, w http.ResponseWriter, r *http.Request) bool {
			if isList(r) {
				list(w, posts, 1000*page(r), 100)
			}
			return isList(r)
		}},
		"a census that repeats a page": {60, func(_ *blog, w http.ResponseWriter, r *http.Request) bool {
			if isList(r) {
				list(w, 5000, 1, 100)
			}
			return isList(r)
		}},
		"a census of posts that the feed lacks": {120, func(_ *blog, w http.ResponseWriter, r *http.Request) bool {
			if isList(r) {
				list(w, posts, 40, 40)
			}
			return isList(r)
		}},
		"a count beyond all pages, each of which exists": {130, func(b *blog, w http.ResponseWriter, r *http.Request) bool {
			if strings.HasPrefix(r.URL.Path, "/wp-json") {
				list(w, 1<<40, 1, 1)
				return true
			}
			if n := page(r); n > 6 {
				b.feed(w, b.query(r.URL.Query().Get("orderby"), r.URL.Query().Get("order")), 6)
				return true
			}
			return false
		}},
		"every other page fails": {80, func(_ *blog, w http.ResponseWriter, r *http.Request) bool {
			if page(r) > 1 && page(r)%2 == 0 {
				w.WriteHeader(http.StatusForbidden)
				return true
			}
			return false
		}},
		"all pages but the first fail": {40, func(_ *blog, w http.ResponseWriter, r *http.Request) bool {
			if page(r) > 1 {
				w.WriteHeader(http.StatusForbidden)
			}
			return page(r) > 1
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBlog(t, posts, 10)
			r := b.fetch(t, func(w http.ResponseWriter, r *http.Request) {
				if !test.answer(b, w, r) {
					b.answer(w, r)
				}
			}, "/feed/")
			require.NotNil(t, r.History)
			require.LessOrEqual(t, len(b.requests), test.most)
			require.NotEqual(t, feedhistory.VerdictWhole, r.Verdict())
		})
	}
}

// A server whose lists of snapshots name one more each is asked for few of them.
func TestLoopOfTimeMaps(t *testing.T) {
	s := newSite(3)
	s.serve(t, func(w http.ResponseWriter, r *http.Request) {
		n, isMap := strings.CutPrefix(r.URL.Path, "/map/")
		if !isMap {
			fmt.Fprint(w, `<rss version="2.0"><channel><title>T</title><item><guid>urn:1</guid></item></channel></rss>`)
			return
		}
		w.Header().Set("Content-Type", "application/link-format")
		fmt.Fprintf(w, `<%s/map/%d>; rel="timemap", <%[1]s/at/%[2]d>; rel="memento"; datetime="Tue, 01 Jan 2019 00:00:%02d GMT"`, s.url, atoi(n)+1, atoi(n)%60)
	})
	m := Memento{TimeMap: s.url + "/map/1?url=", Pace: 1}
	_ = s.recover(t, "/feed", m)
	maps := slices.DeleteFunc(slices.Clone(s.requests), func(url string) bool { return !strings.Contains(url, "/map/") })
	require.NotEmpty(t, maps)
	require.LessOrEqual(t, len(maps), maxLists)
	require.LessOrEqual(t, len(s.requests), 2*maxLists)
}
