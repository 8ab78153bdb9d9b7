package backfill

import (
	"slices"
	"strconv"

	"github.com/feedhistory/feedhistory"
)

// A stable walk reads the pages of a WordPress feed in the order in which posts
// were modified, the last first.
type stable struct {
	*source
	yield func(*feedhistory.Document, error) bool

	seen   set
	tail   []*feedhistory.Entry // the latest of all as they were first read, the latest first
	size   int                  // of a page
	failed int                  // pages in a row
	barren int                  // pages in a row that brought nothing new
}

// stablePage returns the URL of page n in the order of modification. The first
// is not asked for by its number: that would be redirected.
func stablePage(s *source, n int) string {
	return with(s.doc.URL, "order", "ASC", "orderby", orderBy, "paged", pageNumber(n))
}

func pageNumber(n int) string {
	if n == 1 {
		return ""
	}
	return strconv.Itoa(n)
}

// works reports whether the server heeds the order.
func (s *stable) works() bool {
	oldest := s.keep(stablePage(s.source, 1))
	return oldest.err == nil && reordered(list(s.doc.Entries), list(oldest.doc.Entries))
}

// walk reports whether it is proved that nothing is missing.
func (s *stable) walk(yield func(*feedhistory.Document, error) bool) (proven bool) {
	s.yield, s.seen = yield, set{}
	oldest := s.keep(stablePage(s.source, 1))
	s.size = len(oldest.doc.Entries)
	total := s.total(oldest.header)
	for n := s.lastPage(total); n >= 1; n-- {
		if !s.page(n) {
			return false
		}
	}
	return s.close() && total == len(s.seen)
}

// page yields a page, if there is one, and reports whether to go on.
func (s *stable) page(n int) bool {
	url := stablePage(s.source, n)
	a := s.get(url)
	if a.err != nil {
		s.failed++
		if a.missing() && len(s.seen) == 0 && s.failed == 1 {
			return true // there are fewer by now
		}
		return s.yield(nil, a.gap(url, s.doc.URL)) && s.failed == 1
	}
	s.failed = 0
	slices.Reverse(a.doc.Entries)
	if s.barren++; s.seen.add(a.doc.Entries) > 0 {
		s.barren = 0
	}
	if s.barren >= withDefaults(s.c.Budget).Barren {
		s.yield(nil, repeating(url, feedhistory.ReasonBarren))
		return false
	}
	if len(s.tail) < s.size {
		s.tail = append(s.tail, a.doc.Entries...)
	}
	return s.yield(a.doc, nil)
}

// lastPage returns the number of the last page. The total may be that of other
// posts than the feed has: then there is no such page, or close finds more.
func (s *stable) lastPage(total int) int {
	n := (total + s.size - 1) / s.size
	switch {
	case n == 1:
		return 1
	case n < 1 || n > s.most():
		return s.search(0)
	case s.exists(n):
		delete(s.kept, stablePage(s.source, 1)) // in its turn: it may have changed by then
		return n
	}
	defer clear(s.kept) // likewise
	return s.search(n)
}

// search finds the last page by doubling and bisection; there is none at high,
// if that is not zero. What comes is kept, and so does not cost a request more.
// But a page that is read so early may have got another post by the time that
// the page after it is read, if one was edited or deleted in between: that post
// is then lost.
func (s *stable) search(high int) int {
	low := 1
	for high == 0 || high-low > 1 {
		n := low + (high-low)/2
		if high == 0 {
			n = 2 * low
		}
		if n > s.most() {
			return low
		}
		if s.exists(n) {
			low = n
		} else {
			high = n
		}
	}
	return low
}

// exists reports whether there is a page n. One that cannot be read is one.
func (s *stable) exists(n int) bool {
	a := s.keep(stablePage(s.source, n))
	return !a.missing() && s.ctx.Err() == nil && (a.err != nil || len(a.doc.Entries) > 0)
}

// most is how many pages there may be.
func (s *stable) most() int { return withDefaults(s.c.Budget).Documents }

// close reads what was modified during the walk, and reports whether there is
// nothing.
func (s *stable) close() (unchanged bool) {
	for n := 1; ; n++ {
		url := with(s.doc.URL, "orderby", orderBy, "paged", pageNumber(n))
		a := s.get(url)
		if a.missing() && n > 1 {
			return false
		}
		if a.err != nil {
			s.yield(nil, a.gap(url, s.doc.URL))
			return false
		}
		latest := a.doc.Entries
		if n == 1 && slices.EqualFunc(latest, s.tail[:min(len(latest), len(s.tail))], same) {
			return true
		}
		if !s.yield(a.doc, nil) || len(latest) == 0 || s.reaches(latest[len(latest)-1]) {
			return false
		}
	}
}

// reaches reports whether an entry is one of the latest as they were before.
func (s *stable) reaches(e *feedhistory.Entry) bool {
	return slices.ContainsFunc(s.tail, func(known *feedhistory.Entry) bool { return same(known, e) })
}

// same reports whether two copies of an entry say the same. Their XML may not
// be, as it has the base of the page.
func same(a, b *feedhistory.Entry) bool {
	return a.ID == b.ID && a.Updated.Equal(b.Updated) && a.Title().Body == b.Title().Body &&
		a.Summary().Body == b.Summary().Body && a.Content().Body == b.Content().Body
}
