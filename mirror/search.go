package mirror

import (
	"maps"
	"slices"

	"github.com/feedhistory/feedhistory"
)

// A search looks for entries that have left the subscription document and are in no
// known archive: first in documents still to be read, then in known ones (5005#9).
type search struct {
	feed    *Feed
	ids     map[string]bool // the entries sought
	reached bool            // the walk has reached the place where an earlier search stopped
}

func newSearch(f *Feed) search {
	s := search{feed: f, ids: make(map[string]bool, len(f.Sought))}
	for _, id := range f.Sought {
		s.ids[id] = true
	}
	return s
}

// runs reports whether entries are sought.
func (s *search) runs() bool { return len(s.ids) > 0 }

// covers reports whether the search reads the document at a URL again.
func (s *search) covers(url string) bool {
	return s.runs() && (s.reached || s.feed.Search == "" || s.feed.Search == url)
}

// resumes notes the walk's arrival at a URL, and reports whether an earlier search
// stopped there.
func (s *search) resumes(url string) bool {
	if url != s.feed.Search || !s.runs() {
		return false
	}
	s.reached = true
	return true
}

// found ends the search for an entry.
func (s *search) found(id string) { delete(s.ids, id) }

// add begins the search for an entry, at the newest archive.
func (s *search) add(id string) { s.ids[id], s.feed.Search = true, "" }

// end ends the search for all entries.
func (s *search) end() { clear(s.ids) }

// sorted returns the entries sought.
func (s *search) sorted() []string { return slices.Sorted(maps.Keys(s.ids)) }

// shownLimit is the maximum number of entries of a subscription document to
// remember.
const shownLimit = 10_000

// seek begins the search for entries that have left the subscription document.
func (p *poll) seek(doc *feedhistory.Document) error {
	f := p.feed
	shown := make(map[string]bool, len(doc.Entries))
	ids := make([]string, 0, len(doc.Entries))
	for _, e := range doc.Entries {
		if !shown[e.ID] && len(ids) < shownLimit {
			ids = append(ids, e.ID)
		}
		shown[e.ID] = true
		p.search.found(e.ID)
	}
	left := slices.DeleteFunc(f.Shown, func(id string) bool { return shown[id] })
	f.Shown = ids
	for _, t := range doc.Deleted {
		left = slices.DeleteFunc(left, func(id string) bool { return id == t.Ref })
		p.search.found(t.Ref)
	}
	if len(left) == 0 {
		return nil
	}
	records, err := p.m.Store.Records(p.ctx, f.URL, left)
	if err != nil {
		return err
	}
	for id, r := range records {
		if r.State == Live && !r.Archived {
			p.search.add(id)
		}
	}
	return nil
}
