package backfill

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
)

// count returns the number of the request with which the server last counted.
func (s *site) count(mark string) int {
	for n := len(s.requests) - 1; n >= 0; n-- {
		if strings.HasSuffix(s.requests[n], mark) {
			return n
		}
	}
	return -1
}

// requireTrue checks that a whole history has every post that existed at the moment of
// the count: for WordPress, while the feed's last pages were read before it. A post that
// came between two of these requests came after the count.
func (s *site) requireTrue(t require.TestingT, r *Recovery, mark string) {
	got := ids(r.History.Entries)
	for _, g := range r.History.Gaps {
		_, names, listed := strings.Cut(g.Error(), "have not come: ")
		for name := range strings.SplitSeq(names, ", ") {
			require.False(t, listed && got[name], "%s", g)
		}
		require.NotContains(t, g.Error(), "the server counts", "%s", strings.Join(s.requests, "\n"))
	}
	if r.Verdict() != feedhistory.VerdictWhole {
		return
	}
	n := s.count(mark)
	require.GreaterOrEqual(t, n, 0, "%s", strings.Join(s.requests, "\n"))
	isLast := func(n int) bool { return strings.Contains(s.requests[n], "order=ASC&orderby") }
	for mark == wordPressCount && !isLast(n) {
		n--
	}
	for guid := range s.moments[n] {
		existed := true
		for i := n - 1; mark == wordPressCount && isLast(i); i-- {
			existed = existed && s.moments[i][guid]
		}
		require.True(t, got[guid] || !existed, "%s: %s", guid, strings.Join(s.requests, "\n"))
	}
}

// wordPressCount and bloggerCount match the requests that count.
const (
	wordPressCount = "per_page=100&page=1"
	bloggerCount   = "/summary?max-results=150&orderby=updated"
)

// A post that appears during a walk with an old time moves another onto a page
// that has been read. However often that happens, a whole history has all
// posts; and if it happens once, the walk is whole.
func TestWordPressOldPostMeanwhile(t *testing.T) {
	for name, appears := range map[string]func(*blog){
		"scheduled": func(b *blog) { b.schedule(50*time.Minute + time.Second) },
		"backdated": func(b *blog) { b.backdate(50*time.Minute + time.Second) },
		"oldest":    func(b *blog) { b.backdate(1000 * time.Hour) },
		"and another withdrawn": func(b *blog) {
			b.backdate(1000 * time.Hour)
			delete(b.posts, 117)
		},
		"as the latest is withdrawn": func(b *blog) {
			b.schedule(55 * time.Minute)
			delete(b.posts, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for moment := 2; moment <= 22; moment++ {
				b := &blog{site: newSite(128), size: 10}
				b.guids = b.guid
				b.before = func(n int) {
					if n == moment {
						appears(b)
					}
				}
				r := b.fetch(t, b.answer, "/feed/")
				b.requireTrue(t, r, wordPressCount)
				require.Equal(t, feedhistory.VerdictWhole, r.Verdict(), "moment %d: %s", moment, strings.Join(b.requests, "\n"))
				require.LessOrEqual(t, len(b.requests), b.allowed(1)+2)
				if moment < b.count(wordPressCount) {
					b.has(t, r.History, b.guid)
				}
			}
		})
	}
}

// A server that publishes something old at every request is never whole, but
// the walk ends.
func TestWordPressRestless(t *testing.T) {
	for name, appears := range map[string]func(*blog){
		"scheduled": func(b *blog) { b.schedule(100 * time.Minute) },
		"backdated": func(b *blog) { b.backdate(100 * time.Minute) },
		"and another withdrawn": func(b *blog) {
			b.backdate(100 * time.Minute)
			delete(b.posts, b.next/2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &blog{site: newSite(128), size: 10}
			b.guids = b.guid
			b.before = func(n int) {
				if n > 1 {
					appears(b)
				}
			}
			r := b.fetch(t, b.answer, "/feed/")
			b.requireTrue(t, r, wordPressCount)
			require.Equal(t, feedhistory.VerdictLossy, r.Verdict())
			require.Less(t, len(b.requests), 60, "%s", strings.Join(b.requests, "\n"))
		})
	}
}

// change does anything that an author can do between two requests, except put
// back a withdrawn post.
func (s *site) change(random *rand.Rand) {
	age := time.Duration(1+random.IntN(200)) * time.Minute
	switch random.IntN(6) {
	case 0:
		s.publish()
	case 1:
		s.schedule(age)
	case 2:
		s.backdate(age)
	case 3:
		delete(s.posts, 1+random.IntN(s.next))
	case 4:
		s.edit(1 + random.IntN(s.next))
	case 5:
		if s.podcasts {
			s.podcast(age)
		}
	}
}

// podcast publishes an old one.
func (s *site) podcast(age time.Duration) {
	s.backdate(age)
	p := s.posts[s.next]
	p.podcast = true
	s.posts[s.next] = p
}

// Entries that the API neither counts nor lists may be missing: a podcast that has moved
// onto a page already read is in no list. So the walk is lossy, however it ends.
func TestWordPressUncounted(t *testing.T) {
	for name, podcasts := range map[string]int{"one of 63": 1, "a page of them": 10} {
		t.Run(name, func(t *testing.T) {
			for moment := 2; moment <= 14; moment++ {
				b := &blog{site: newSite(62), size: 10}
				b.guids = b.guid
				for range podcasts {
					b.podcast(30 * time.Minute)
				}
				b.before = func(n int) {
					if n == moment {
						b.podcast(1000 * time.Hour)
					}
				}
				r := b.fetch(t, b.answer, "/feed/")
				if r.Verdict() == feedhistory.VerdictPartial { // a listed post has moved, too, and its page cannot be told from the list
					require.Len(t, r.History.Gaps, 1)
					require.Less(t, len(r.History.Entries), len(b.posts))
					continue
				}
				require.Equal(t, feedhistory.VerdictLossy, r.Verdict(), "moment %d: %s", moment, strings.Join(b.requests, "\n"))
			}
		})
	}
}

// chance is a source of random numbers for requests, which may come from other
// goroutines.
func chance(t *rapid.T) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
}

// Whatever happens between the requests, even while the server lists its posts:
// a whole history has every post that was counted.
func TestWordPressIsWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := &blog{
			site:      newSite(rapid.SampledFrom([]int{1, 5, 30, 99, 100, 101, 230}).Draw(rt, "posts")),
			size:      rapid.IntRange(2, 25).Draw(rt, "size"),
			unordered: rapid.Bool().Draw(rt, "unordered"),
		}
		b.guids, b.podcasts = b.guid, rapid.Bool().Draw(rt, "podcasts")
		often, random := rapid.IntRange(2, 9).Draw(rt, "often"), chance(rt)
		b.before = func(n int) {
			for n > 1 && random.IntN(often) == 0 {
				b.change(random)
			}
		}
		r := b.fetch(rt, b.answer, "/feed/")
		b.requireTrue(rt, r, wordPressCount)
	})
}

func TestBloggerIsWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newBlogspot(rapid.IntRange(1, 200).Draw(rt, "posts"))
		b.most = rapid.IntRange(20, 60).Draw(rt, "cap")
		b.guids = b.guid
		often, random := rapid.IntRange(2, 9).Draw(rt, "often"), chance(rt)
		b.before = func(n int) {
			for n > 1 && random.IntN(often) == 0 {
				b.change(random)
			}
		}
		r := b.fetch(rt, b.answer, "/feeds/posts/default")
		b.requireTrue(rt, r, bloggerCount)
	})
}

// A single post that appears with an old time is found.
func TestBloggerOldPostMeanwhile(t *testing.T) {
	for moment := 2; moment <= 12; moment++ {
		b := newBlogspot(200)
		b.most = 40
		b.guids = b.guid
		b.before = func(n int) {
			if n == moment {
				b.backdate(50*time.Minute + time.Second)
			}
		}
		r := b.fetch(t, b.answer, "/feeds/posts/default")
		require.Equal(t, feedhistory.VerdictWhole, r.Verdict(), "moment %d: %s", moment, strings.Join(b.requests, "\n"))
		b.requireTrue(t, r, bloggerCount)
		if moment <= b.count(bloggerCount) {
			b.has(t, r.History, b.guid)
		}
	}
}

// A count that does not belong to the feed proves nothing, and costs little.
func TestWordPressOtherPosts(t *testing.T) {
	for name, rest := range map[string]func(b *blog) string{
		"other names": func(b *blog) string { return `[{"id":1,"guid":{"rendered":"urn:x"},"link":"urn:y"}]` },
		"not a list":  func(*blog) string { return `{"code":"rest_disabled"}` },
		"no JSON":     func(*blog) string { return `<html></html>` },
		"nothing":     func(*blog) string { return `[]` },
	} {
		t.Run(name, func(t *testing.T) {
			b := &blog{site: newSite(35), size: 10}
			r := b.fetch(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, "/wp-json") {
					w.Header().Set("X-WP-Total", "35")
					fmt.Fprint(w, rest(b))
					return
				}
				b.answer(w, r)
			}, "/feed/")
			b.has(t, r.History, b.guid)
			require.Equal(t, feedhistory.VerdictLossy, r.Verdict())
			require.LessOrEqual(t, len(b.requests), allowed(b.pages())+3)
		})
	}
}
