package backfill

import (
	"slices"

	"github.com/feedhistory/feedhistory"
)

// rounds is the maximum number of times a walk reads the entries that came while it was
// reading; after that, the verdict is lossy.
const rounds = 4

// settle reads the posts modified during the walk, from page latest on, until there is
// nothing new. Then it asks the site for its list of posts. It reads the pages of
// missing posts, if any, and begins again. It reports whether the history is proved
// whole.
func (s *stable) settle(posts string, latest int) (proven bool) {
	s.come(place{Latest: latest})
	var missed []string
	for range rounds {
		unchanged, ok := s.close(latest)
		if !ok {
			return false
		}
		latest = 1
		if posts == "" {
			break
		}
		if !unchanged {
			continue
		}
		c, err := s.census(posts)
		if err != nil {
			s.task.soon = answer{err: err}.failure() != nil
			break
		}
		missing := c.missing(s.has)
		if c.proves(s.has) {
			s.task.total, s.task.proven = c.total, c.at
			proven = true
			break
		}
		if len(missing) == 0 || slices.Equal(missing, missed) || 2*len(missing) > len(c.posts) {
			break // the feed has different posts, or different names for them
		}
		if missed = missing; !s.fill(c, missing) {
			return false
		}
	}
	s.come(place{})
	return proven
}

// has returns the IDs whose entries have come, in this walk or before.
func (s *stable) has(ids []string) map[string]bool { return s.seen.and(s.task, ids) }

// mostClosing is the number of pages, beyond as many as the walk has read, possibly
// modified during it.
const mostClosing = 20

// close reads the posts modified during the walk, latest first, from page n on. It
// reports whether there was nothing, and whether to continue. It ends where the server
// repeats a page.
func (s *stable) close(n int) (unchanged, ok bool) {
	tail := s.tail
	var before []*feedhistory.Entry
	for end := n + s.read + mostClosing; n < end; n++ {
		url := with(s.doc.URL, "orderby", orderBy, "paged", pageNumber(n))
		a := s.get(url)
		if a.missing() && n > 1 {
			return false, true
		}
		if a.err != nil {
			return false, s.yield(nil, a.gap(url, s.doc.URL)) && false
		}
		latest := a.doc.Entries
		if before != nil && slices.EqualFunc(latest, before, same) {
			break
		}
		before = latest
		meets := s.task.overlaps(latest)
		if n == 1 {
			s.tail = latest
			if len(tail) == 0 && meets || len(tail) > 0 && slices.EqualFunc(latest, tail[:min(len(latest), len(tail))], same) {
				return true, true
			}
		}
		s.seen.add(latest)
		s.come(place{Latest: n + 1})
		if !s.yield(a.doc, nil) {
			return false, false
		}
		if meets || len(latest) == 0 || has(tail, latest[len(latest)-1]) {
			s.come(place{Latest: 1})
			return false, true
		}
	}
	return false, true
}

// has reports whether an entry equals one of the previous latest entries.
func has(tail []*feedhistory.Entry, e *feedhistory.Entry) bool {
	return slices.ContainsFunc(tail, func(known *feedhistory.Entry) bool { return same(known, e) })
}

// same reports whether two copies of an entry say the same. Their XML may
// differ, because it contains the base of the page.
func same(a, b *feedhistory.Entry) bool {
	return a.ID == b.ID && a.Updated.Equal(b.Updated) && a.Title().Body == b.Title().Body &&
		a.Summary().Body == b.Summary().Body && a.Content().Body == b.Content().Body
}

// fill reads the pages of the missing posts, and reports whether to continue.
func (s *stable) fill(c *census, missing []string) bool {
	for _, n := range c.pagesOf(missing, s.size) {
		url := stablePage(s.source, n)
		a := s.get(url)
		if a.missing() {
			continue // there are fewer pages now
		}
		if a.err != nil {
			return s.yield(nil, a.gap(url, s.doc.URL)) && false
		}
		slices.Reverse(a.doc.Entries)
		s.seen.add(a.doc.Entries)
		if !s.yield(a.doc, nil) {
			return false
		}
	}
	return true
}
