package backfill

import (
	"context"
	"slices"
	"strconv"

	"github.com/feedhistory/feedhistory"
)

// A stable walk reads the pages of a WordPress feed in the order in which posts were
// modified, last page first. Then it reads the posts it has missed.
type stable struct {
	*source
	yield func(*feedhistory.Document, error) bool
	seen  set

	tail   []*feedhistory.Entry // the latest entries as they were read, latest first; nil if unknown
	size   int                  // entries per page
	read   int                  // number of pages read
	barren int                  // pages in succession without new entries

	inRow    int    // failed pages in succession
	failed   place  // the place of the first failed page
	lastFail int    // the number of the last failed page
	lost     answer // why the last page could not be determined

	early earlyPage // the page after the current one
}

// stablePage returns the URL of page n in the order of modification. The first page is
// not requested by its number, because the server would redirect it.
func stablePage(s *source, n int) string {
	return with(s.doc.URL, "order", "ASC", "orderby", orderBy, "paged", pageNumber(n))
}

func pageNumber(n int) string {
	if n == 1 {
		return ""
	}
	return strconv.Itoa(n)
}

// works reports whether the server supports the order.
func (s *stable) works() bool {
	oldest := s.keep(stablePage(s.source, 1))
	return oldest.err == nil && reordered(list(s.doc.Entries), list(oldest.doc.Entries))
}

// walk reads the pages, or the rest of them, and the missed posts. It reports whether
// the history is proved whole.
func (s *stable) walk(yield func(*feedhistory.Document, error) bool) (proven bool) {
	s.yield, s.seen = yield, ids(s.doc.Entries)
	oldest := s.keep(stablePage(s.source, 1))
	s.size = len(oldest.doc.Entries)
	posts := s.postsURL(oldest.header)
	s.task.counter = counterURL(posts)
	from := s.task.place
	switch {
	case from.Page > 0:
		delete(s.kept, stablePage(s.source, 1))
		if !s.exists(from.Page) {
			from.Page = min(from.Page, s.lastPage(s.count(s.task.counter)))
		}
	case !from.begun() && !s.task.refill:
		from.Page = s.lastPage(s.count(s.task.counter))
		s.tail = []*feedhistory.Entry{}
	}
	if s.lost.err != nil {
		s.task.state = restart
		s.yield(nil, s.lost.gap(stablePage(s.source, 1), s.doc.URL))
		return false
	}
	ctx, cancel := context.WithCancel(s.ctx)
	pages := *s.source
	pages.ctx, s.early.source = ctx, &pages
	goOn := s.pages(from)
	cancel()
	s.early.running.Wait()
	return goOn && s.settle(posts, max(from.Latest, 1))
}

// pages reads the pages from a place back to the first one; below the place's
// Until only as far as known entries. It reports whether to continue.
func (s *stable) pages(from place) bool {
	for n := from.Page; n >= 1; n-- {
		goOn, meets := s.page(n, from.Until)
		if !goOn {
			return false
		}
		if meets && n < from.Until {
			break
		}
	}
	if s.failed.begun() {
		s.failed.Until = s.lastFail
		s.task.place = s.failed
	}
	return true
}

// page yields a page if it exists. It reports whether to continue, and whether
// everything on the page is known already.
func (s *stable) page(n, until int) (goOn, meets bool) {
	url := stablePage(s.source, n)
	a := s.overlapped(n, until)
	if a.err != nil {
		s.inRow++
		if a.missing() && s.read == 0 && s.inRow == 1 {
			return true, false // there are fewer pages now
		}
		s.fail(n, until)
		return s.yield(nil, a.gap(url, s.doc.URL)) && s.inRow == 1, false
	}
	s.inRow = 0
	s.read++
	slices.Reverse(a.doc.Entries)
	if s.barren++; s.seen.add(a.doc.Entries) > 0 {
		s.barren = 0
	}
	if s.barren >= withDefaults(s.c.Budget).Barren {
		s.task.place = place{}
		s.yield(nil, repeating(url, feedhistory.ReasonBarren))
		return false, false
	}
	if s.tail != nil && len(s.tail) < s.size {
		s.tail = append(s.tail, a.doc.Entries...)
	}
	next := place{Page: n - 1, Until: until}
	if n == 1 {
		next = place{Latest: 1}
	}
	s.come(next)
	return s.yield(a.doc, nil), until > 0 && s.task.overlaps(a.doc.Entries)
}

// fail records that a page could not be read; the next walk continues there.
func (s *stable) fail(n, until int) {
	if !s.failed.begun() {
		s.failed = place{Page: n, Until: until}
	}
	s.lastFail = n
	s.task.place = s.failed
}

// come records how far the walk has come, unless an earlier page has failed.
func (s *stable) come(to place) {
	if !s.failed.begun() {
		s.task.place = to
	}
}

// lastPage returns the number of the last page. The total may count different
// posts than the feed has: then there is no such page, or settle finds more.
func (s *stable) lastPage(total int) int {
	n := (total + s.size - 1) / s.size
	switch {
	case n == 1:
		return 1
	case n < 1 || n > mostPages:
		return s.search(0)
	case s.exists(n):
		delete(s.kept, stablePage(s.source, 1)) // it is read in its turn, because it may have changed by then
		return n
	}
	defer clear(s.kept) // for the same reason
	return s.search(n)
}

// mostPages is a number of pages that no site reaches.
const mostPages = 1 << 20

// search finds the last page by doubling and bisection. If high is not zero,
// there is no page high. Pages that it reads are kept, and so cost no further
// request. But after a page is read so early, another post may move to it,
// because a post was edited or deleted before the walk reads the next page;
// that post is then lost. Two pages in succession that cannot be read end the
// search.
func (s *stable) search(high int) int {
	low, failed := 1, false
	for high == 0 || high-low > 1 {
		n := low + (high-low)/2
		if high == 0 {
			n = 2 * low
		}
		if n > mostPages {
			return low
		}
		if !s.exists(n) {
			high = n
			continue
		}
		low = n
		a := s.keep(stablePage(s.source, n))
		if a.err != nil && failed {
			s.lost = a
			return low
		}
		failed = a.err != nil
	}
	return low
}

// exists reports whether there is a page n. A page that cannot be read counts
// as existing.
func (s *stable) exists(n int) bool {
	a := s.keep(stablePage(s.source, n))
	return !a.missing() && s.ctx.Err() == nil && (a.err != nil || len(a.doc.Entries) > 0)
}
