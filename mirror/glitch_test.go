package mirror_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A seasonedBlog posts now and then, shows its latest posts, and may keep archives or pages of the
// others. On some days a request for it is answered by something else.
type seasonedBlog struct {
	kind     string // plain, archived or paged
	rss      bool
	window   int
	every    time.Duration // between two posts
	begun    time.Time
	glitch   string
	requests atomic.Int64
}

// archiveSize is the number of posts in an archive, or on a page.
const archiveSize = 25

func (b *seasonedBlog) posts() int { return 30 + int(time.Since(b.begun)/b.every) }

// archives returns the number of closed archives: their posts are no longer shown.
func (b *seasonedBlog) archives() int { return (b.posts() - b.window) / archiveSize }

func (b *seasonedBlog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.requests.Add(1)
	n, k, isArchive := b.posts(), 0, false
	if _, err := fmt.Sscanf(r.URL.RequestURI(), "/archive/%d", &k); err == nil {
		isArchive = true
	}
	page := 1
	_, _ = fmt.Sscanf(r.URL.RawQuery, "page=%d", &page)
	head, from, to := "", n-b.window, n
	link := func(rel string, to any) { head += fmt.Sprintf(`<a:link rel="%s" href="%v"/>`, rel, to) }
	switch {
	case isArchive && k >= 1 && k <= b.archives():
		head, from, to = `<fh:archive/>`, (k-1)*archiveSize, k*archiveSize
		link("current", "/feed")
		if k > 1 {
			link("prev-archive", fmt.Sprintf("/archive/%d", k-1))
		}
	case r.URL.Path != "/feed":
		http.NotFound(w, r)
		return
	case b.kind == "archived":
		from = b.archives() * archiveSize
		link("prev-archive", fmt.Sprintf("/archive/%d", b.archives()))
	case b.kind == "paged":
		from, to = max(0, n-page*b.window), n-(page-1)*b.window
		link("first", "/feed")
		if from > 0 {
			link("next", fmt.Sprintf("/feed?page=%d", page+1))
		}
	}
	isFeed, glitch := r.URL.RequestURI() == "/feed", b.glitch
	var items []string
	if !isFeed || glitch == "" {
		for i := to - 1; i >= from; i-- {
			items = append(items, fmt.Sprint("post-", i))
		}
	} else if head = ""; glitch == "maintenance" {
		items = []string{"maintenance"}
	} else if glitch == "deleted" {
		head, items = `<at:deleted-entry xmlns:at="http://purl.org/atompub/tombstones/1.0" ref="maintenance" when="2090-01-01T00:00:00Z"/>`, []string{"maintenance"}
	}
	_, _ = w.Write([]byte(b.document(head, items)))
}

// document renders a document with these items.
func (b *seasonedBlog) document(head string, ids []string) string {
	const spaces = `xmlns:a="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"`
	var t strings.Builder
	fmt.Fprintf(&t, `<feed xmlns="http://www.w3.org/2005/Atom" %s><id>urn:blog</id><title>Blog</title>%s`, spaces, head)
	item, end := `<entry><id>urn:blog:%s</id><title>%[1]s</title></entry>`, `</feed>`
	if b.rss {
		t.Reset()
		fmt.Fprintf(&t, `<rss version="2.0" %s><channel><title>Blog</title><link>http://a.example/</link>%s`, spaces, head)
		item, end = `<item><guid isPermaLink="false">%s</guid><title>%[1]s</title></item>`, `</channel></rss>`
	}
	for _, id := range ids {
		fmt.Fprintf(&t, item, id)
	}
	return t.String() + end
}

// Twenty-four blogs are polled for 120 days, and meet with 31 glitches: an empty document, a notice
// of maintenance, or one that is deleted at once, for one poll. None is partial in the end, and
// none lacks a post. A year of a healthy one takes no more requests than polls, archives and
// rechecks.
func TestGlitches(t *testing.T) {
	random := feedtest.Random(120)
	kinds := []string{"plain", "archived", "paged"}
	glitches := map[int][]int{} // the days, by blog
	for k := range 31 {
		glitches[k%24] = append(glitches[k%24], 2+k/24*60+random.IntN(50))
	}
	for i := range feedtest.Count(24) {
		b := &seasonedBlog{kind: kinds[i%3], rss: i%2 == 1, window: 10 + random.IntN(6), every: time.Duration(12+random.IntN(60)) * time.Hour}
		t.Run(fmt.Sprint(i, " ", b.kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { b.live(t, 120, glitches[i], random.IntN(3)) })
		})
	}
}

// A healthy blog with archives is polled for a year.
func TestRequestsOfAYear(t *testing.T) {
	for _, every := range []time.Duration{12 * time.Hour, 70 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			b := &seasonedBlog{kind: "archived", window: 10, every: every}
			polls := b.live(t, 365, nil, 0)
			rechecks := 365 * 3 // one of both ends, and the one unread for longest
			require.LessOrEqual(t, int(b.requests.Load()), polls+b.archives()+rechecks)
		})
	}
}

// live polls the blog when it is due, some times a day, and returns how often.
func (b *seasonedBlog) live(t *testing.T, days int, glitches []int, which int) (polls int) {
	store := mirror.NewMemory()
	b.begun = time.Now()
	end, met := b.begun.Add(time.Duration(days)*24*time.Hour), 0
	for ; time.Now().Before(end); polls++ {
		b.glitch = ""
		if day := int(time.Since(b.begun) / (24 * time.Hour)); met < len(glitches) && day >= glitches[met] {
			b.glitch = []string{"empty", "maintenance", "deleted"}[(which+met)%3]
			met++
		}
		report := polled(t, newMirror(store, b), "http://a.example/feed")
		time.Sleep(max(4*time.Hour, time.Until(report.Feed.Next)))
	}
	b.glitch = ""
	require.Equal(t, len(glitches), met)
	report := polled(t, newMirror(store, b), "http://a.example/feed")
	want := map[string]feedhistory.Verdict{"plain": feedhistory.VerdictWindow, "archived": feedhistory.VerdictWhole, "paged": feedhistory.VerdictLossy}
	require.Equal(t, want[b.kind], report.Feed.Verdict, "%v", report.Feed.Ledger.Gaps())
	prefix := "urn:blog:"
	if b.rss {
		prefix = ""
	}
	has, first := held(t, store, "http://a.example/feed"), 0
	if b.kind == "plain" {
		first = 30 - b.window
	}
	for n := first; n < b.posts(); n++ {
		require.Contains(t, has, fmt.Sprint(prefix, "post-", n))
	}
	return polls + 1
}
