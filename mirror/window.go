package mirror

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
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
	w := &window{l.Rank, make(map[string]uint32, len(l.Shown))}
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

// A rowKey is twelve bytes of a digest, by which the ledger knows the row of a live entry. Zero is
// no key: the row may have more than the document shows.
type rowKey [12]byte

// rowKeyOf returns the key of an entry's row, from everything merging compares.
func rowKeyOf(digest string, updated, published time.Time) (key rowKey) {
	text := append(make([]byte, 0, 96), digest...)
	for _, t := range []time.Time{updated, published} {
		text = binary.BigEndian.AppendUint64(text, uint64(t.Unix()))
		text = binary.BigEndian.AppendUint32(text, uint32(t.Nanosecond()))
	}
	sum := sha256.Sum256(text)
	copy(key[:], sum[:])
	return key
}

// rowKey returns the key of a record's row: zero unless the entry is live, by the subscription
// document with a rank, and has neither tombstone nor absence.
func (r *Record) rowKey(rank Rank) (key rowKey) {
	c := r.Copy
	if r.State != Live || r.Absence != 0 || r.Tombstone != (TombstoneRecord{}) || c.Source != "" || c.Rank.compare(rank) != 0 {
		return key
	}
	return rowKeyOf(c.Digest, r.Content.Updated, r.Content.Published)
}

// findSettled finds the items of a subscription document whose rows, by the ledger, already are as
// it shows the entries: only their ranks rise. An entry with signatures in its addresses never is
// one: its digest leaves them out.
func (mg *merger) findSettled(m *mergeResult) {
	l, s := &mg.feed.Ledger.l, m.source
	if !s.window || s.replaces || len(l.Rows) == 0 || l.Unnamed > 0 || s.doc.Kind() == feedhistory.KindComplete || s.rank.compare(l.Rank) <= 0 {
		return
	}
	shown := l.shown()
	at := places(shown)
	for _, t := range s.doc.Deleted {
		delete(at, t.Ref)
	}
	for _, it := range m.entries {
		i, ok := at[it.id]
		if !ok || !shown[i].held || shown[i].row == (rowKey{}) || it.entry.KeptBy != "" || !it.digest.isPlain {
			continue
		}
		if shown[i].row == rowKeyOf(it.digest.published, it.entry.Updated, it.entry.Published) {
			it.settled = &shown[i]
		}
	}
}

// checkRows drops the keys of rows stored otherwise by a change.
func (l *lastReading) checkRows(c *Commit, ahead int64) {
	if l.Ahead = 0; len(l.Rows) == 0 {
		return
	}
	stored := make(map[string]*Record, len(c.Put)+len(c.Touch))
	for _, r := range slices.Concat(c.Put, c.Touch) {
		stored[r.ID] = r
	}
	shown, isOther := l.shown(), false
	for i := range shown {
		e := &shown[i]
		if r := stored[e.id]; r != nil && (e.row != r.rowKey(l.Rank) || e.version != versionOf(r.Copy.Digest)) {
			e.row, isOther = rowKey{}, true
		}
	}
	if isOther {
		l.setShown(shown)
	}
	if len(l.Rows) > 0 {
		l.Ahead = ahead
	}
}

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

// recordsAnd returns records as records does. Of a subscription document, it also keeps the records
// of the window's entries it lacks.
func (mg *merger) recordsAnd(m *mergeResult, ids []string) (map[string]*Record, error) {
	var left []string
	if m.source.window {
		for id := range mg.window().versions {
			if m.at[id] == nil {
				left = append(left, id)
			}
		}
		slices.Sort(left)
	}
	records, err := mg.records(slices.Concat(ids, left))
	mg.left = make(map[string]*Record, len(left))
	for _, id := range left {
		mg.left[id] = records[id]
		delete(records, id)
	}
	return records, err
}

// keepRanks keeps the ranks raised by a reading of the subscription document in the ledger. It
// stores those of entries no longer there, or no longer as they were.
func (rs *readings) keepRanks(m *mergeResult, rank Rank) error {
	l, mg := rs.ledger, rs.merger
	shown := l.shown()
	next := &window{rank, make(map[string]uint32, len(shown))}
	for i := range shown {
		shown[i].held, shown[i].row = false, rowKey{}
	}
	at := places(shown)
	keep := func(id string, version uint32, key rowKey) bool {
		if mg.program != nil { // nothing is asked of a Store
			key = rowKey{}
		}
		i, ok := at[id]
		if ok = ok && shown[i].version == version; ok {
			shown[i].held, shown[i].row, next.versions[id] = true, key, version
		}
		return ok
	}
	for _, it := range m.entries {
		if it.settled != nil {
			keep(it.id, it.settled.version, it.settled.row)
		}
	}
	for _, r := range m.raised {
		if !next.dates(r) || !keep(r.ID, versionOf(r.Copy.Digest), r.rowKey(rank)) {
			m.change.Touch = append(m.change.Touch, r)
		}
	}
	for _, r := range m.change.Put {
		if r.Copy.Rank.compare(rank) == 0 && next.dates(r) {
			keep(r.ID, versionOf(r.Copy.Digest), r.rowKey(rank))
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
	var ids, unknown []string
	for id := range rs.merger.window().versions {
		if _, ok := next.versions[id]; ok || stored[id] {
			continue
		}
		ids = append(ids, id)
		if _, ok := rs.merger.left[id]; !ok && m.record(id) == nil {
			unknown = append(unknown, id)
		}
	}
	slices.Sort(ids)
	var records map[string]*Record
	if len(unknown) > 0 {
		slices.Sort(unknown)
		records, err = rs.merger.records(unknown)
	}
	for _, id := range ids {
		r := cmp.Or(m.record(id), rs.merger.left[id], records[id])
		_, isRaised := rs.allowance.rows[id]
		if it := m.at[id]; it != nil && it.settled != nil && r != nil { // it is beyond the entries remembered
			r.Copy.At, r.Copy.Rank, isRaised = next.at(r), next.rank, true
		}
		if isRaised && r != nil {
			left = append(left, r)
		}
	}
	return left, err
}
