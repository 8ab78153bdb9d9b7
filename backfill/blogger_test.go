package backfill

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest"
)

// A blogspot is a model of Blogger's feeds: start-index and max-results with a
// silent limit, rel=next, and ranges, which need orderby=updated (the GData
// protocol reference, and Blogger's own).
type blogspot struct {
	*site
	withheld int  // the post that only the list without contents has; 0 for none
	most     int  // maximum entries in one answer
	deaf     bool // ignores ranges

	unstamped bool // RSS items do not say when they were updated
}

func newBlogspot(n int) *blogspot { return &blogspot{site: newSite(n), most: 150} }

func (b *blogspot) answer(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/feeds/posts/default" && r.URL.Path != "/feeds/posts/summary" {
		http.NotFound(w, r)
		return
	}
	q := r.URL.Query()
	posts := b.sorted(published)
	if q.Get("orderby") == "updated" {
		posts = b.sorted(modified)
		if !b.deaf {
			posts = within(posts, q.Get("updated-min"), q.Get("updated-max"))
		}
	}
	if !strings.HasSuffix(r.URL.Path, "/summary") {
		posts = slices.DeleteFunc(posts, func(p post) bool { return p.id == b.withheld })
	}
	start, most := max(1, atoi(q.Get("start-index"))), 25
	if q.Has("max-results") {
		most = min(atoi(q.Get("max-results")), b.most)
	}
	page := window(posts, start-1, most)
	next := ""
	if start-1+len(page) < len(posts) {
		q.Set("start-index", strconv.Itoa(start+len(page)))
		q.Set("max-results", strconv.Itoa(most))
		next = "<link rel='next' type='application/atom+xml' href='" + strings.ReplaceAll(b.url+"/feeds/posts/default?"+q.Encode(), "&", "&amp;") + "'/>"
	}
	head := fmt.Sprintf("<openSearch:totalResults>%d</openSearch:totalResults><openSearch:startIndex>%d</openSearch:startIndex>"+
		"<openSearch:itemsPerPage>%d</openSearch:itemsPerPage>", len(posts), start, most)
	if q.Get("alt") == "rss" {
		w.Header().Set("Content-Type", "application/rss+xml; charset=UTF-8")
		text := rss(page, b.url, head+"<generator>Blogger</generator>", b.guid)
		for _, p := range page {
			text = strings.Replace(text, "</pubDate></item>", "</pubDate>"+b.updated(p)+"</item>", 1)
		}
		fmt.Fprint(w, text)
		return
	}
	w.Header().Set("Content-Type", "application/atom+xml; charset=UTF-8")
	fmt.Fprintf(w, "<?xml version='1.0' encoding='UTF-8'?><feed xmlns='http://www.w3.org/2005/Atom' xmlns:openSearch='http://a9.com/-/spec/opensearchrss/1.0/'>"+
		"<id>tag:blogger.com,1999:blog-1</id><title>A blog</title>%s<generator version='7.00' uri='http://www.blogger.com'>Blogger</generator>%s", next, head)
	for _, p := range page {
		fmt.Fprintf(w, "\n<entry><id>%s</id><published>%s</published><updated>%s</updated><title>%s</title></entry>",
			b.guid(p), p.published.Format(stamp), p.modified.Format(stamp), p.text)
	}
	fmt.Fprint(w, "\n</feed>")
}

// updated is the element of RSS items, because RSS has no such element.
func (b *blogspot) updated(p post) string {
	if b.unstamped {
		return "<!-- -->"
	}
	return "<atom:updated>" + p.modified.Format(stamp) + "</atom:updated>"
}

const stamp = "2006-01-02T15:04:05.000-07:00"

// within returns the posts of a range, which includes its start but not its
// end.
func within(posts []post, low, high string) (found []post) {
	from, _ := time.Parse(time.RFC3339, low)
	until, err := time.Parse(time.RFC3339, high)
	for _, p := range posts {
		if !p.modified.Before(from) && (err != nil || p.modified.Before(until)) {
			found = append(found, p)
		}
	}
	return found
}

func (b *blogspot) guid(p post) string {
	return "tag:blogger.com,1999:blog-1.post-" + strconv.Itoa(p.id)
}

func TestBlogger(t *testing.T) {
	for _, test := range []struct {
		name  string
		setUp func(*blogspot)
		mode  string
		want  feedhistory.Verdict
	}{
		{"ranges", func(*blogspot) {}, "", feedhistory.VerdictWhole},
		{"a lower cap", func(b *blogspot) { b.most = 40 }, "", feedhistory.VerdictWhole},
		{"ranges ignored", func(b *blogspot) { b.deaf = true }, modeIndex, feedhistory.VerdictLossy},
		{"ranges ignored, a lower cap", func(b *blogspot) { b.deaf, b.most = true, 40 }, modeIndex, feedhistory.VerdictLossy},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, n := range []int{3, 150, 151, 480} {
				for _, path := range []string{"/feeds/posts/default", "/feeds/posts/default?start-index=1"} {
					b := newBlogspot(n)
					test.setUp(b)
					b.serve(t, b.answer)
					r := b.recover(t, path)
					b.has(t, r.History, b.guid)
					require.Empty(t, r.History.Gaps)
					require.Equal(t, "blogger", r.RecoveredBy)
					require.Equal(t, test.mode, r.Probe.Mode)
					require.Equal(t, test.want, r.Verdict())
					require.LessOrEqual(t, len(b.requests), max(allowed((n+24)/25)+1, 2+2*(n/(b.most-1)+3)), "%s", strings.Join(b.requests, "\n"))
				}
			}
		})
	}
}

// A post that the server lists, and does not show, is a gap.
func TestBloggerWithheld(t *testing.T) {
	b := newBlogspot(260)
	b.withheld = 100
	r := b.fetch(t, b.answer, "/feeds/posts/default")
	require.Len(t, r.History.Entries, 259)
	require.Equal(t, feedhistory.VerdictPartial, r.Verdict())
	require.Len(t, r.History.Gaps, 1)
	require.ErrorContains(t, r.History.Gaps[0], "1 of the 260 entries that the server lists have not come: tag:blogger.com,1999:blog-1.post-100")
	require.Less(t, len(b.requests), 20, "%s", strings.Join(b.requests, "\n"))
}

// A post that is published or edited at any moment is neither lost nor comes
// twice.
func TestBloggerMeanwhile(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newBlogspot(rapid.IntRange(1, 200).Draw(rt, "posts"))
		b.most = rapid.IntRange(20, 60).Draw(rt, "cap")
		b.deaf = rapid.Bool().Draw(rt, "deaf")
		moment := rapid.IntRange(2, 8).Draw(rt, "moment")
		edit := !b.deaf && rapid.Bool().Draw(rt, "edit")
		before := b.now
		b.before = func(n int) {
			if n != moment || strings.Contains(b.requests[n-1], "updated-min") || strings.Contains(b.requests[n-1], "summary") {
				return
			}
			b.now = before.Add(2 * time.Hour) // later than the server says that it is
			if edit {
				b.edit(rapid.IntRange(1, b.next).Draw(rt, "edited"))
			} else {
				b.publish()
			}
		}
		r := b.fetch(rt, b.answer, "/feeds/posts/default")
		if edit && len(r.History.Gaps) > 0 {
			require.ErrorIs(rt, r.History.Gaps[0], harvest.ErrLoss)
			return // the last post of a range was edited out of it, which is reported
		}
		require.Empty(rt, r.History.Gaps, "%s", strings.Join(b.requests, "\n"))
		if moment <= len(b.requests)-1 {
			b.has(rt, r.History, b.guid)
		}
	})
}

// RSS is requested as RSS.
func TestBloggerRSS(t *testing.T) {
	for _, unstamped := range []bool{false, true} {
		b := newBlogspot(260)
		b.unstamped = unstamped
		b.serve(t, b.answer)
		r := b.recover(t, "/feeds/posts/default?alt=rss")
		require.Equal(t, "blogger", r.RecoveredBy)
		require.Equal(t, unstamped, r.Probe.Mode == modeIndex)
		require.Equal(t, unstamped, r.Verdict() == feedhistory.VerdictLossy)
		for _, request := range b.requests {
			require.Contains(t, request, "alt=rss")
		}
		b.has(t, r.History, b.guid)
		require.Empty(t, r.History.Gaps)
	}
}
