package backfill

import (
	"fmt"
	"math/bits"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
)

// A blog is a model of WordPress 6: its queries (class-wp-query.php), its
// canonical redirects (canonical.php), its 404 for pages without posts
// (class-wp.php, handle_404), and its REST API.
type blog struct {
	*site
	size       int  // posts_per_rss
	nameless   bool // whether the generator was removed
	unordered  bool // whether a cache drops order and orderby
	unpaged    bool // and paged
	withoutAPI bool
	bare       bool // whether it sends no header fields of its own
	secret     int  // how many posts the API counts and does not list
	schemes    bool // whether every other page has the guids of before the site moved to https
}

func newBlog(t testing.TB, n, size int) *blog {
	b := &blog{site: newSite(n), size: size}
	b.serve(t, b.answer)
	return b
}

func (b *blog) answer(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if !b.withoutAPI && !b.bare {
		w.Header().Set("Link", "<"+b.url+`/wp-json/>; rel="https://api.w.org/"`)
	}
	switch path := r.URL.Path; {
	case path == "/wp-json/wp/v2/posts":
		b.rest(w, r)
		return
	case path == "/feed", path == "/" && q.Get("feed") == "rss2": // redirect_canonical
		q.Del("feed")
		w.Header().Set("X-Redirect-By", "WordPress")
		http.Redirect(w, r, strings.TrimSuffix("/feed/?"+q.Encode(), "?"), http.StatusMovedPermanently)
		return
	case path != "/feed/":
		http.NotFound(w, r)
		return
	}
	if b.unpaged {
		q.Del("paged")
	} else if q.Get("paged") == "1" {
		q.Del("paged")
		http.Redirect(w, r, strings.TrimSuffix("/feed/?"+q.Encode(), "?"), http.StatusMovedPermanently)
		return
	}
	posts := slices.DeleteFunc(b.query(q.Get("orderby"), q.Get("order")), func(p post) bool { return p.withheld })
	b.feed(w, posts, max(1, atoi(q.Get("paged"))))
}

// query returns all posts in the requested order, by default newest first.
func (b *blog) query(orderBy, order string) []post {
	if b.unordered && orderBy != "ID" {
		return b.sorted(published)
	}
	posts := b.sorted(published)
	if strings.HasPrefix(orderBy, "modified") {
		posts = b.sorted(modified)
	} else if orderBy == "ID" {
		posts = b.sorted(func(post) time.Time { return time.Time{} })
	}
	if order == "ASC" {
		slices.Reverse(posts)
	}
	return posts
}

func (b *blog) feed(w http.ResponseWriter, posts []post, paged int) {
	page := window(posts, (paged-1)*b.size, b.size)
	if !b.bare {
		w.Header().Set("X-Pingback", b.url+"/xmlrpc.php")
	}
	w.Header().Set("Content-Type", "application/rss+xml; charset=UTF-8")
	if len(page) == 0 && paged > 1 {
		w.WriteHeader(http.StatusNotFound)
	}
	generator := "<generator>https://wordpress.org/?v=6.7.1</generator>"
	if b.nameless {
		generator = ""
	}
	guid := b.guid
	if b.schemes && paged%2 == 0 {
		guid = func(p post) string { return otherScheme(b.guid(p)) }
	}
	fmt.Fprint(w, rss(page, b.url, lastBuild(page)+generator, guid))
}

// rest lists posts, at most a hundred at a time. A page after the last is a bad
// request.
func (b *blog) rest(w http.ResponseWriter, r *http.Request) {
	if b.withoutAPI {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	q := r.URL.Query()
	size, page := atoi(q.Get("per_page")), max(1, atoi(q.Get("page")))
	posts := slices.DeleteFunc(b.query("ID", "ASC"), func(p post) bool { return p.podcast })
	if size > 100 || page > 1 && (page-1)*size >= len(posts) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("X-WP-Total", strconv.Itoa(len(posts)+b.secret))
	list := []string{}
	for _, p := range window(posts, (page-1)*size, size) {
		if q.Get("_fields") == "id" {
			list = append(list, fmt.Sprintf(`{"id":%d}`, p.id))
			continue
		}
		list = append(list, fmt.Sprintf(`{"id":%d,"modified":%q,"guid":{"rendered":%q},"link":"%s\/%d"}`,
			p.id, p.modified.Format("2006-01-02T15:04:05"), strings.ReplaceAll(b.guid(p), "&", "&#038;"), b.url, p.id))
	}
	fmt.Fprintf(w, "[%s]", strings.Join(list, ","))
}

func (b *blog) guid(p post) string { return p.guid(b.url) }

func (b *blog) pages() int { return (len(b.posts) + b.size - 1) / b.size }

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// allowed is the maximum number of requests of a walk.
func allowed(pages int) int { return pages + bits.Len(uint(pages)) - 1 + 3 }

// counted is the maximum for a walk that requests the list of all posts, and
// requests it again n times.
func (b *blog) counted(again int) int {
	return b.pages() + 7 + (again+1)*(len(b.posts)+99)/100 + 3*again
}

func (b *blog) allowed(again int) int { return max(allowed(b.pages()), b.counted(again)) }

func TestWordPress(t *testing.T) {
	for _, test := range []struct {
		name  string
		path  string
		setUp func(*blog)
		mode  string
		want  feedhistory.Verdict
	}{
		{"stable, counted", "/feed/", func(*blog) {}, modeModified, feedhistory.VerdictWhole},
		{"stable, searched", "/feed/", func(b *blog) { b.withoutAPI = true }, modeModified, feedhistory.VerdictLossy},
		{"the order is ignored", "/feed/", func(b *blog) { b.unordered = true }, modePaged, feedhistory.VerdictLossy},
		{"known by its header", "/feed/", func(b *blog) { b.nameless = true }, modeModified, feedhistory.VerdictWhole},
		{"known by its pingback", "/feed/", func(b *blog) { b.nameless, b.withoutAPI, b.unordered = true, true, true }, modePaged, feedhistory.VerdictLossy},
		{"redirected", "/feed", func(*blog) {}, modeModified, feedhistory.VerdictWhole},
		{"redirected, with a query", "/?feed=rss2", func(b *blog) { b.withoutAPI = true }, modeModified, feedhistory.VerdictLossy},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, n := range []int{11, 19, 20, 160, 161, 345} {
				b := newBlog(t, n, 10)
				test.setUp(b)
				r := b.recover(t, test.path)
				b.has(t, r.History, b.guid)
				require.Empty(t, r.History.Gaps)
				require.Equal(t, "wordpress", r.RecoveredBy)
				require.Equal(t, test.mode, r.Probe.Mode)
				require.Equal(t, test.want, r.Verdict())
				if test.mode == modeModified {
					last := "order=ASC&orderby=modified+ID&paged=" + strconv.Itoa(b.pages())
					require.Contains(t, strings.Join(b.requests, "\n")+"\n", last+"\n")
				}
				spare := 0
				if test.path != "/feed/" {
					spare = 1 // the redirect of the given address
				}
				require.LessOrEqual(t, len(b.requests), b.allowed(0)+spare, "%s", strings.Join(b.requests, "\n"))
			}
		})
	}
}

// A post that is published at any moment of the walk is neither lost nor comes
// twice, and the walk stays within the limit on requests.
func TestWordPressPublishedMeanwhile(t *testing.T) {
	for _, set := range []func(*blog){
		func(*blog) {},
		func(b *blog) { b.withoutAPI = true },
		func(b *blog) { b.unordered = true },
	} {
		for moment := 2; moment <= 20; moment += 3 {
			b := newBlog(t, 160, 10)
			set(b)
			at := 0
			b.before = func(n int) {
				if n == moment {
					at = n
					b.publish()
				}
			}
			r := b.recover(t, "/feed/")
			if at == 0 || moment == len(b.requests) && !strings.Contains(b.requests[moment-1], "order") {
				continue // too late for the closing request to see it
			}
			b.has(t, r.History, b.guid)
			require.Empty(t, r.History.Gaps)
			require.LessOrEqual(t, len(b.requests), b.allowed(1), "%d: %s", moment, strings.Join(b.requests, "\n"))
		}
	}
}

// Whatever is published, edited or deleted between two requests, a stable walk
// of known length has every post that existed from the beginning to the end.
func TestWordPressAnyChange(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := &blog{
			site:       newSite(rapid.IntRange(2, 60).Draw(rt, "posts")),
			size:       rapid.IntRange(2, 7).Draw(rt, "size"),
			withoutAPI: rapid.Bool().Draw(rt, "without API"),
			unordered:  rapid.Bool().Draw(rt, "unordered"),
		}
		for range rapid.IntRange(0, 5).Draw(rt, "edits before") {
			b.edit(rapid.IntRange(1, b.next).Draw(rt, "edited before"))
		}
		changes := rapid.IntRange(0, 3).Draw(rt, "changes")
		moved, closed := false, false // moved: anything but a post at the end
		immune := !b.unordered && !b.withoutAPI
		pages := b.pages()
		b.before = func(n int) {
			request := b.requests[n-1]
			closed = closed || strings.Contains(request, "orderby=modified+ID") && !strings.Contains(request, "order=ASC")
			if n < 3 || changes == 0 || closed { // later changes are those of the next walk
				return
			}
			what := rapid.IntRange(0, 9).Draw(rt, "what")
			switch {
			case what == 0:
				b.publish()
			case what == 1 && immune:
				b.edit(rapid.IntRange(1, b.next).Draw(rt, "edited"))
			case what == 2 && immune:
				delete(b.posts, rapid.IntRange(1, b.next).Draw(rt, "deleted"))
			default:
				return
			}
			moved = moved || what > 0
			changes--
		}
		r := b.fetch(rt, b.answer, "/feed/")
		if len(r.History.Gaps) > 0 {
			return // it has been reported
		}
		if r.RecoveredBy == "" {
			require.True(rt, pages == 1 || b.pages() == 1)
			return
		}
		if r.Probe.Mode == modePaged && moved {
			return // the order of modification happened to be that of publication
		}
		b.has(rt, r.History, b.guid)
	})
}

// However many posts there are, on pages of any size, and whenever one is
// published: all come, and no walk costs more than its limit.
func TestWordPressCost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := &blog{
			site:       newSite(rapid.IntRange(1, 250).Draw(rt, "posts")),
			size:       rapid.IntRange(2, 30).Draw(rt, "size"),
			withoutAPI: rapid.Bool().Draw(rt, "without API"),
			unordered:  rapid.Bool().Draw(rt, "unordered"),
		}
		moment := rapid.IntRange(3, 20).Draw(rt, "moment")
		b.before = func(n int) {
			if n == moment && n < b.pages() { // not after the last request
				b.publish()
			}
		}
		r := b.fetch(rt, b.answer, "/feed/")
		b.has(rt, r.History, b.guid)
		require.Empty(rt, r.History.Gaps)
		require.LessOrEqual(rt, len(b.requests), b.allowed(1), "%s", strings.Join(b.requests, "\n"))
	})
}

// Page 2 may be redirected to the URL of page 1 by an old plugin for
// FeedBurner, or by one that tidies addresses.
func TestWordPressRedirectsPages(t *testing.T) {
	b := &blog{site: newSite(35), size: 10}
	r := b.fetch(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "" {
			http.Redirect(w, r, "/feed/", http.StatusFound)
			return
		}
		b.answer(w, r)
	}, "/feed/")
	require.Equal(t, None, r.Probe.Method)
	require.Contains(t, r.Probe.Reason, "WordPress")
	require.Equal(t, feedhistory.VerdictWindow, r.Verdict())
	require.Len(t, r.History.Entries, 10)
}

// Nothing is reported as whole that is not.
func TestWordPressPlain(t *testing.T) {
	t.Run("paged is ignored", func(t *testing.T) {
		b := newBlog(t, 35, 10)
		b.unpaged, b.unordered = true, true
		r := b.recover(t, "/feed/")
		require.Equal(t, None, r.Probe.Method)
		require.Contains(t, r.Probe.Reason, "neither order nor paged")
		require.Equal(t, feedhistory.VerdictWindow, r.Verdict())
		require.Empty(t, r.RecoveredBy)
		require.Len(t, b.requests, 3)
	})
	t.Run("not WordPress", func(t *testing.T) {
		b := newBlog(t, 35, 10)
		b.nameless, b.bare, b.unpaged, b.unordered = true, true, true, true
		r := b.recover(t, "/feed/")
		require.Equal(t, Probe{Method: None}, r.Probe)
		require.Len(t, b.requests, 2)
		_, err := (&Backfill{HTTP: private(t)}).Fetch(t.Context(), b.url+"/feed/", r.Probe)
		require.NoError(t, err)
		require.Len(t, b.requests, 3, "what is remembered is not asked again")
	})
	t.Run("one page", func(t *testing.T) {
		b := newBlog(t, 7, 10)
		r := b.recover(t, "/feed/")
		b.has(t, r.History, b.guid)
		require.LessOrEqual(t, len(b.requests), b.allowed(0))
		require.Equal(t, feedhistory.VerdictWhole, r.Verdict())
	})
	t.Run("remembered", func(t *testing.T) {
		b := newBlog(t, 95, 10)
		first := b.recover(t, "/feed/")
		b.requests = nil
		again, err := (&Backfill{HTTP: private(t)}).Fetch(t.Context(), b.url+"/feed/", first.Probe)
		require.NoError(t, err)
		b.has(t, again.History, b.guid)
		require.Equal(t, first.Verdict(), again.Verdict())
		require.LessOrEqual(t, len(b.requests), b.allowed(0))
	})
}

// A server that answers every page number beyond the last with the last page is not asked for page
// after page, however the posts change meanwhile.
func TestWordPressRepeatsItsLastPage(t *testing.T) {
	for name, change := range map[string]func(b *blog, n int){
		"unchanged":   func(*blog, int) {},
		"all edited":  func(b *blog, n int) { b.edit(1 + n%60) },
		"new content": func(b *blog, n int) { b.edit(60 - n%60); b.publish() },
		"emptied tail": func(b *blog, n int) {
			if n == 5 {
				for id := range 60 {
					b.edit(id + 1)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBlog(t, 60, 10)
			b.before = func(n int) { change(b, n) }
			repeats := func(w http.ResponseWriter, r *http.Request) {
				q := r.URL.Query()
				if last := b.pages(); atoi(q.Get("paged")) > last {
					q.Set("paged", strconv.Itoa(last))
					r.URL.RawQuery = q.Encode()
				}
				b.answer(w, r)
			}
			r := b.fetch(t, repeats, "/feed/")
			require.NotNil(t, r.History)
			require.LessOrEqual(t, len(b.requests), 150)
		})
	}
}

// A post whose guid has another scheme on another page is one post, and is counted as one.
func TestWordPressSchemes(t *testing.T) {
	for _, unordered := range []bool{false, true} {
		for moment := range 24 {
			b := newBlog(t, 65, 10)
			b.schemes, b.unordered = true, unordered
			b.before = func(n int) {
				if n == moment {
					b.publish()
					b.edit(5)
				}
			}
			r := b.recover(t, "/feed/")
			got := map[string]int{}
			for _, e := range r.History.Entries {
				_, rest, _ := strings.Cut(e.ID, "://")
				got[rest]++
				require.Equal(t, 1, got[rest], e.ID)
			}
			require.Len(t, got, len(b.posts), moment)
			require.Empty(t, r.History.Gaps)
			if !unordered {
				require.Equal(t, feedhistory.VerdictWhole, r.Verdict(), moment)
			}
		}
	}
}
