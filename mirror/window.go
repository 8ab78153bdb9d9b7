package mirror

import (
	"cmp"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
)

// Each reading of a feed whose time has changed raises the ranks of all entries still in the
// subscription document. The ledger keeps them, once for all, and a row has the rank it was
// stored with until it is stored for another reason, or its entry leaves the document. So a
// poll with one new entry stores two rows. An earlier version has the rank of its row.

// A window has the entries of a subscription document whose rows have older ranks.
type window struct {
	rank     Rank
	versions map[string]uint32 // by ID; see versionOf
}

// window returns the entries whose rank is in the ledger.
func (l *lastReading) window() *window {
	w := &window{l.Rank, map[string]uint32{}}
	for _, e := range l.shown() {
		if e.held {
			w.versions[e.id] = e.version
		}
	}
	return w
}

// raised returns the copy of a record with the rank of the window, and whether this is
// greater.
func (w *window) raised(r *Record) (Copy, bool) {
	if version, ok := w.versions[r.ID]; !ok || version != versionOf(r.Copy.Digest) {
		return r.Copy, false
	}
	c := r.Copy
	c.At, c.Rank = w.at(r), w.rank
	return c, c.compare(r.Copy) > 0
}

// at returns the time of a record's copy in the window.
func (w *window) at(r *Record) time.Time {
	return feedtime.CopyOf(r.Content.Updated, w.rank.precedence()).At
}

// dates reports whether the window can tell the time of a record's copy. An entry stored under
// another ID may have another time than its content.
func (w *window) dates(r *Record) bool { return w.at(r).Equal(r.Copy.At) }

// versionOf returns four bytes of a digest, which tell a version of an entry from others.
func versionOf(digest string) uint32 { return uint32(keyOf(digest)[0]) }

// window returns the window of the feed, as it was when the poll first needed it, or as the
// subscription document has shown it since.
func (mg *merger) window() *window {
	if mg.shown == nil {
		mg.shown = mg.feed.Ledger.l.window()
	}
	return mg.shown
}

// raise gives a record the rank in the ledger.
func (mg *merger) raise(r *Record) {
	delete(mg.allowance.rows, r.ID)
	if c, ok := mg.window().raised(r); ok {
		if mg.allowance.rows == nil {
			mg.allowance.rows = map[string]Copy{}
		}
		mg.allowance.rows[r.ID], r.Copy = r.Copy, c
	}
}

// keepRanks keeps the ranks raised by a reading of the subscription document in the ledger. It
// stores those of entries no longer there, or no longer as they were.
func (rs *readings) keepRanks(m *mergeResult, rank Rank) error {
	l, mg := rs.ledger, rs.merger
	next, shown := &window{rank, map[string]uint32{}}, l.shown()
	for i := range shown {
		shown[i].held = false
	}
	at := places(shown)
	for _, r := range m.raised {
		version := versionOf(r.Copy.Digest)
		if i, ok := at[r.ID]; ok && shown[i].version == version && next.dates(r) {
			shown[i].held, next.versions[r.ID] = true, version
		} else {
			m.change.Touch = append(m.change.Touch, r)
		}
	}
	left, err := rs.leaving(m, next)
	if err != nil {
		return err
	}
	m.change.Touch = append(m.change.Touch, left...)
	if l.setShown(shown); len(next.versions) > 0 {
		l.Rank = rank
	}
	mg.shown = next
	return nil
}

// leaving returns the records, with their ranks, of the entries in the window so far, but
// neither in the next one nor in the change.
func (rs *readings) leaving(m *mergeResult, next *window) (left []*Record, err error) {
	stored := map[string]bool{}
	for _, r := range slices.Concat(m.change.Put, m.change.Touch) {
		stored[r.ID] = true
	}
	var ids []string
	for id := range rs.merger.window().versions {
		if _, ok := next.versions[id]; !ok && !stored[id] {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	slices.Sort(ids)
	records, err := rs.merger.records(ids)
	for _, id := range ids {
		r := cmp.Or(m.records[id], records[id])
		if _, ok := rs.allowance.rows[id]; ok && r != nil {
			left = append(left, r)
		}
	}
	return left, err
}
