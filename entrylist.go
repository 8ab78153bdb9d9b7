package feedhistory

import (
	"fmt"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// An entryList collects the entries of a document, in memory they share.
type entryList struct {
	in   *reading
	room []Entry // memory for entries
	pool Links   // memory for their links

	own  Links // the current entry's links
	lent int   // the bytes they take; negative if there are too many

	skipped      int // the number of entries left out
	firstSkipped *ParseError
}

// full reports whether the document has as many entries as allowed.
func (l *entryList) full() bool { return len(l.in.doc.Entries)+l.skipped >= l.in.limits.Entries }

// add begins an entry.
func (l *entryList) add(sc *xmlscan.Scope) *Entry {
	if len(l.room) == cap(l.room) {
		l.room = make([]Entry, 0, min(max(4, 2*cap(l.room)), 1024))
	}
	l.own, l.lent = l.own[:0], 0
	l.room = append(l.room, Entry{Source: l.in.head, scope: sc})
	return &l.room[len(l.room)-1]
}

// drop forgets the entry begun last.
func (l *entryList) drop() { l.room = l.room[:len(l.room)-1] }

// keep adds an entry to the document, unless it exceeds a limit.
func (l *entryList) keep(e *Entry, offset int, need xmlscan.Loan) {
	need.Raw, need.Links = e.raw, l.lent
	switch {
	case len(e.ID) > l.in.limits.ID:
		l.skip(offset, fmt.Sprintf("its id has more than %d bytes", l.in.limits.ID))
		return
	case len(l.own) > maxLinks:
		l.skip(offset, fmt.Sprintf("it has more than %d links", maxLinks))
		return
	case l.lent < 0, !e.scope.Lends(need):
		l.skip(offset, fmt.Sprintf("it inherits more than %d times its length", xmlscan.MaxInherited))
		return
	}
	if e.ID == "" {
		e.identify(l.in.doc.Format)
	}
	e.read = e.fields()
	l.in.doc.Entries = append(l.in.doc.Entries, e)
}

// noteShared notes an id which two entries share although they have neither title, link nor
// time in common: readers keep only one of them.
func (l *entryList) noteShared() {
	entries := l.in.doc.Entries
	const few = 64 // comparing the ends of IDs in pairs is faster than a map
	var ends [few]uint64
	var first map[string]*Entry
	if len(entries) > few {
		first = make(map[string]*Entry, len(entries))
	}
	for i, e := range entries {
		other := first[e.ID]
		if first != nil && other == nil {
			first[e.ID] = e
		} else if first == nil {
			ends[i] = endOf(e.ID)
			for k, end := range ends[:i] {
				if end == ends[i] && entries[k].ID == e.ID {
					other = entries[k]
					break
				}
			}
		}
		if other != nil && !e.WeakID && e.differs(other) {
			l.in.note("id-shared", "entries with nothing else in common share an id, so only one of them counts: "+clip(e.ID), max(0, strings.Index(l.in.text, e.raw)))
		}
	}
}

// endOf returns the last eight bytes of an ID, which differ in most feeds.
func endOf(id string) (end uint64) {
	for i := max(0, len(id)-8); i < len(id); i++ {
		end = end<<8 | uint64(id[i])
	}
	return end
}

// differs reports whether two entries have titles, links and times, and share none.
func (e *Entry) differs(other *Entry) bool {
	a, _ := e.Links.Rel(RelAlternate)
	b, _ := other.Links.Rel(RelAlternate)
	title := e.Title().Body
	return a.Href != b.Href && a.Href != "" && b.Href != "" && !e.Time().Equal(other.Time()) &&
		title != "" && title != other.Title().Body
}

// skip leaves out an entry beyond a limit.
func (l *entryList) skip(offset int, why string) {
	l.drop()
	l.in.note("entry-skipped", "an entry is left out: "+why, offset)
	if l.skipped++; l.skipped == 1 {
		l.firstSkipped = l.in.failure(offset, ReasonLimit, clauseLimits, why)
	}
}

// addGaps adds a gap for the entries left out.
func (l *entryList) addGaps() {
	if l.skipped == 0 {
		return
	}
	err := l.firstSkipped
	if l.skipped == 1 {
		err.Err = fmt.Errorf("an entry is left out: %w", err.Err)
	} else {
		err.Err = fmt.Errorf("%d entries are left out, the first here: %w", l.skipped, err.Err)
	}
	doc := l.in.doc
	doc.Gaps = append(doc.Gaps, &Gap{URL: doc.URL, From: doc.URL, Reason: ReasonLimit, Err: err, Found: time.Now()})
}

// maxLinks is the maximum number of links of an entry.
const maxLinks = 4096

// takesLinks reports whether the current entry has room for further links.
func (l *entryList) takesLinks() bool { return l.lent >= 0 && len(l.own) <= maxLinks }

// setLinks replaces the current entry's links, of which those from the index from on are
// new. So far, the entry has n bytes.
func (l *entryList) setLinks(links Links, from, n int) {
	l.own = links
	for _, link := range links[from:] {
		l.lent += xmlscan.RoomOfLink + len(link.Href)
	}
	if !xmlscan.Affords(n, l.lent) {
		l.lent = -1
	}
}

// links returns the current entry's links, in memory the entries share.
func (l *entryList) links() Links {
	n := len(l.own)
	if n == 0 || n > maxLinks {
		return nil
	}
	if n > cap(l.pool)-len(l.pool) {
		l.pool = make(Links, 0, min(max(n, 4, 2*cap(l.pool)), 4096))
	}
	from := len(l.pool)
	l.pool = append(l.pool, l.own...)
	return l.pool[from:len(l.pool):len(l.pool)]
}
