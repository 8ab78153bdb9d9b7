package mirror

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
)

const (
	// shownLimit is the maximum number of entries of a subscription document to remember.
	shownLimit = 10_000

	// sideLimit is the maximum number of entries to remember of each side of a window.
	sideLimit = 8

	// recentLimit is the maximum number of readings, and of the feed's ids, to remember.
	recentLimit = 8
)

// A shownEntry is an entry that the subscription document showed.
type shownEntry struct {
	id      string
	version uint32
	back    bool // it had left the document before, so it proves nothing
	held    bool // its row has no newer rank than the ledger
	row     rowKey
}

// shown returns the entries of the latest reading.
func (l *lastReading) shown() (shown []shownEntry) {
	shown = slices.Grow(shown, len(l.Shown))
	for i, id := range l.Shown {
		shown = append(shown, shownEntry{id: id, version: binary.BigEndian.Uint32(l.Versions[4*i:])})
	}
	for _, i := range l.Back {
		shown[i].back = true
	}
	for i := range len(l.Rows) / len(rowKey{}) {
		shown[i].row = rowKey(l.Rows[i*len(rowKey{}):])
	}
	if l.Rank == (Rank{}) {
		return shown
	}
	for i := range shown {
		shown[i].held = true
	}
	for _, i := range l.Stored {
		shown[i].held = false
	}
	return shown
}

func (l *lastReading) setShown(shown []shownEntry) {
	l.Shown, l.Versions, l.Back, l.Stored, l.Rows = nil, nil, nil, nil, nil
	isAnySettled := slices.ContainsFunc(shown, func(e shownEntry) bool { return e.row != rowKey{} })
	l.Shown, l.Versions = slices.Grow(l.Shown, len(shown)), slices.Grow(l.Versions, 4*len(shown))
	for i, e := range shown {
		l.Shown, l.Versions = append(l.Shown, e.id), binary.BigEndian.AppendUint32(l.Versions, e.version)
		if e.back {
			l.Back = append(l.Back, i)
		}
		if !e.held {
			l.Stored = append(l.Stored, i)
		}
		if isAnySettled {
			l.Rows = append(l.Rows, e.row[:]...)
		}
	}
	if len(l.Stored) == len(shown) {
		l.Rank, l.Stored = Rank{}, nil
	}
}

// shownOf returns the entries of a document in its order, each once.
func shownOf(doc *feedhistory.Document, m *mergeResult) []shownEntry {
	most := min(len(doc.Entries), shownLimit)
	shown, seen := make([]shownEntry, 0, most), make(map[string]bool, most)
	for _, e := range doc.Entries {
		if seen[e.ID] || len(shown) == shownLimit {
			continue
		}
		seen[e.ID] = true
		if it := m.at[e.ID]; it.settled != nil {
			shown = append(shown, shownEntry{id: e.ID, version: it.settled.version})
		} else {
			shown = append(shown, shownEntry{id: e.ID, version: versionOf(m.source.digests.of(e).stored)})
		}
	}
	return shown
}

// A reading compares a subscription document with the reading before it. In both lists
// the newest entries come first, if there is an order.
type reading struct {
	old, now  []shownEntry
	wasAt, at map[string]int
	fresh     []int // the places in now of entries never known before
}

func newReading(old, now []shownEntry, isKnown func(id string) bool, rising bool) *reading {
	r := &reading{old: old, now: slices.Clone(now)}
	if rising {
		r.old = slices.Clone(old)
		slices.Reverse(r.old)
		slices.Reverse(r.now)
	}
	r.wasAt, r.at = places(r.old), places(r.now)
	for i, e := range r.now {
		if _, was := r.wasAt[e.id]; !was && !isKnown(e.id) {
			r.fresh = append(r.fresh, i)
		}
	}
	return r
}

func places(list []shownEntry) map[string]int {
	at := make(map[string]int, len(list))
	for i, e := range list {
		at[e.id] = i
	}
	return at
}

// isRising reports whether a document's oldest entries come first, by their times.
func isRising(doc *feedhistory.Document) bool {
	rising, falling := 0, 0
	for i := 1; i < len(doc.Entries); i++ {
		switch doc.Entries[i].Time().Compare(doc.Entries[i-1].Time()) {
		case 1:
			rising++
		case -1:
			falling++
		}
	}
	return rising > 2*falling
}

// proofs returns the entries of the reading before which prove that nothing has passed
// between. Returning entries, pinned ones, changed ones and those above a new one do not.
func (r *reading) proofs(l *ledger) map[string]bool {
	if s, ok := r.slide(); ok && !l.Unordered {
		return idsOf(r.old[s:])
	}
	if r.hasAll() {
		return idsOf(r.old)
	}
	shared := 0
	for _, e := range r.old {
		if _, ok := r.at[e.id]; ok {
			shared++
		}
	}
	ends := map[string]bool{}
	if shared < len(r.old) && !l.Unordered {
		r.pinned(ends)
	}
	good, onlyEnds, inOrder := make(map[string]bool, shared), true, make([]int, 0, shared)
	for _, e := range r.old {
		if i, ok := r.at[e.id]; ok && !e.back {
			onlyEnds = onlyEnds && ends[e.id]
			if e.version == r.now[i].version || shared == len(r.old) {
				good[e.id] = true
				inOrder = append(inOrder, i)
			}
		}
	}
	if onlyEnds && (shared <= 1 || 2*shared <= len(r.old)) {
		return nil
	}
	l.Unordered = l.Unordered || !isNearlySorted(inOrder)
	if !l.Unordered && len(r.fresh) > 0 {
		for id := range good {
			if r.at[id] < r.fresh[0] {
				delete(good, id)
			}
		}
	}
	return good
}

// hasAll reports whether the document still shows the whole reading before, of more than one
// entry, in the same order: below the first new one, or side by side. Nothing was pushed out.
func (r *reading) hasAll() bool {
	if len(r.old) < 2 {
		return false
	}
	isBelow, isSideBySide := true, true
	for k, e := range r.old {
		i, ok := r.at[e.id]
		if !ok || k > 0 && i <= r.at[r.old[k-1].id] {
			return false
		}
		isBelow = isBelow && (len(r.fresh) == 0 || i > r.fresh[0])
		isSideBySide = isSideBySide && (k == 0 || i == r.at[r.old[k-1].id]+1)
	}
	return isBelow || isSideBySide
}

// leaveSlidIn leaves out of the new entries older ones come in at the end, in the
// places of entries withdrawn above: the last entry of the reading before is still there, and
// there are no more new ones than have left. Where it is the only one left of several, it may have
// been put on top.
func (r *reading) leaveSlidIn() {
	if len(r.old) == 0 {
		return
	}
	last, ok := r.at[r.old[len(r.old)-1].id]
	left := 0
	for _, e := range r.old {
		if _, is := r.at[e.id]; !is {
			left++
		}
	}
	if ok && len(r.fresh) <= left && (left < 2 || left < len(r.old)-1) {
		r.fresh = slices.DeleteFunc(r.fresh, func(i int) bool { return i > last })
	}
}

// slide reports whether the document shows the end of the reading before from place s on,
// and then new entries only: the document has grown, or its oldest entries come first.
func (r *reading) slide() (s int, ok bool) {
	if len(r.now) == 0 || len(r.old) == 0 {
		return 0, false
	}
	s, ok = r.wasAt[r.now[0].id]
	rest := len(r.old) - s
	if !ok || rest > len(r.now) || s > 0 && rest < 2 {
		return 0, false
	}
	for i, e := range r.old[s:] {
		if e.id != r.now[i].id || e.version != r.now[i].version || e.back {
			return 0, false
		}
	}
	return s, len(r.fresh) == len(r.now)-rest
}

// pinned adds the entries which stand at the same end of both lists.
func (r *reading) pinned(ends map[string]bool) {
	n := min(len(r.old), len(r.now))
	for i := 0; i < n && r.old[i].id == r.now[i].id; i++ {
		ends[r.old[i].id] = true
	}
	for i := 1; i <= n && r.old[len(r.old)-i].id == r.now[len(r.now)-i].id; i++ {
		ends[r.old[len(r.old)-i].id] = true
	}
}

// isNearlySorted reports whether a list is sorted but for at most one element.
func isNearlySorted(list []int) bool {
	sorted := func(without int) bool {
		last := -1
		for i, n := range list {
			if i != without {
				if n < last {
					return false
				}
				last = n
			}
		}
		return true
	}
	for i := 1; i < len(list); i++ {
		if list[i] < list[i-1] {
			return sorted(i) || sorted(i-1)
		}
	}
	return true
}

func idsOf(list []shownEntry) map[string]bool {
	ids := make(map[string]bool, len(list))
	for _, e := range list {
		ids[e.id] = true
	}
	return ids
}

// readings compare the subscription document with itself, as it was at the poll before.
type readings struct {
	*session
	chain *chainReading
}

// compare compares the subscription document with the reading before it, and enters the
// window or the entries that may have come and gone between.
func (rs *readings) compare(doc *feedhistory.Document, m *mergeResult, late bool) error {
	l := rs.ledger
	was, now, wasRead := l.shown(), shownOf(doc, m), l.Known.URL != "" && !(late && l.Elsewhere)
	isOrdered := true
	if !l.Inherited.IsZero() && was == nil && l.Recent == nil {
		var err error
		if was, isOrdered, err = rs.inherit(isRising(doc)); err != nil {
			return err
		}
	}
	r := newReading(was, now, m.knows, isRising(doc))
	r.leaveSlidIn()
	if wasRead {
		l.markBack(r, now, m)
	}
	if l.Elsewhere = len(rs.chain.newer) > 0 && (l.Known.URL == "" || l.Elsewhere); l.Elsewhere {
		return nil
	}
	if rs.returns(now, m.knows, isRising(doc)) { // the readings between were no window of the feed
		l.setShown(now)
		return nil
	}
	rs.noteCopy(doc, r)
	if len(now) == 0 { // its database was down, say: the next reading is compared with the one before
		return nil
	}
	before := l.keepCopied(doc, r)
	l.setShownOf(now, m)
	if !wasRead || !rs.had || doc.Kind() == feedhistory.KindPaged || doc.Kind() == feedhistory.KindComplete {
		return nil
	}
	if len(r.fresh) == 0 {
		if !slices.ContainsFunc(r.old, func(e shownEntry) bool { _, ok := r.at[e.id]; return ok }) {
			l.keepFormer(was, now, rs.feed.Polls) // a notice that was there before
		}
		return nil
	}
	if is, err := rs.isBehindChain(doc, r, m); err != nil || is {
		return err
	}
	good := r.proofs(l)
	l.Unordered = l.Unordered && isOrdered // otherwise the order of the reading before is unknown
	if len(good) == 0 {
		good = r.renewed(m)
	}
	if len(good) == 0 && len(before) > 0 {
		r = newReading(before, now, m.knows, isRising(doc))
		good = r.proofs(l)
	}
	switch {
	case len(good) == 0:
		l.keepFormer(was, now, rs.feed.Polls)
		return rs.missWindow(doc, r)
	case l.Unordered || !isOrdered || len(was) == 0:
		return nil
	}
	return rs.oweEntries(doc, r, good)
}

// setShownOf keeps a reading for the next one to be compared with, but for the entries left out by
// the Quota.
func (l *lastReading) setShownOf(now []shownEntry, m *mergeResult) {
	l.setShown(slices.DeleteFunc(now, func(e shownEntry) bool {
		r := m.record(e.id)
		return r != nil && r.State == Unseen
	}))
}

// keepFormer keeps the reading before one that may be a notice.
func (l *lastReading) keepFormer(was, now []shownEntry, poll int64) {
	if l.Former == nil && len(now) <= noticeLimit && len(was) > 2*noticeLimit {
		l.Former = &former{Poll: poll, Shown: idList(was)}
	}
}

// keepCopied keeps the reading before an old copy, and returns that before the copies which have
// answered last.
func (l *lastReading) keepCopied(doc *feedhistory.Document, r *reading) (before []shownEntry) {
	if l.Copied != nil {
		before = l.Copied.shown()
	}
	_, hasNewest := r.at[l.Newest]
	isDeleted := slices.ContainsFunc(doc.Deleted, func(t feedhistory.Tombstone) bool { return t.Ref == l.Newest })
	if hasNewest || isDeleted || l.Newest == "" || len(r.fresh) > 0 {
		l.Copied = nil
	} else if l.Copied == nil && len(l.Shown) > 0 {
		l.Copied = &lastReading{Shown: l.Shown, Versions: l.Versions, Back: l.Back}
	}
	return before
}

// markBack marks the entries of a reading which had left the document before, and not only an old
// copy of it.
func (l *lastReading) markBack(r *reading, now []shownEntry, m *mergeResult) {
	var copied map[string]int
	if l.Copied != nil {
		copied = places(l.Copied.shown())
	}
	for i, e := range now {
		before, ok := r.wasAt[e.id]
		_, isCopied := copied[e.id]
		now[i].back = ok && r.old[before].back || !ok && !isCopied && m.at[e.id].shown
	}
}

// A former is a window in whose place the subscription document has shown a notice.
type former struct {
	Poll  int64    `json:"poll"`  // the number of the first poll to find the notice
	Shown []string `json:"shown"` // its entries in order
}

// noticeLimit is the maximum number of entries of a notice, of maintenance, say.
const noticeLimit = 2

// returns reports whether the window before a notice has returned with new entries on top, so
// nothing has been missed meanwhile; it then crosses out the debts entered since. A document
// without new entries may be an old copy.
func (rs *readings) returns(now []shownEntry, isKnown func(id string) bool, rising bool) bool {
	l := rs.ledger
	if l.Former == nil {
		return false
	}
	old := make([]shownEntry, len(l.Former.Shown))
	for i, id := range l.Former.Shown {
		old[i].id = id
	}
	r := newReading(old, now, isKnown, rising)
	there, isInOrder := 0, true
	for k, e := range r.old {
		i, ok := r.at[e.id]
		if !ok {
			continue
		}
		isInOrder = isInOrder && there == k && i == len(r.fresh)+k
		there++
	}
	switch {
	case there == 0 && len(now) > noticeLimit: // the feed goes on elsewhere
		l.Former = nil
		return false
	case !isInOrder, len(r.fresh) == 0, r.fresh[len(r.fresh)-1] != len(r.fresh)-1, 2*there < len(r.old):
		return false
	}
	since := l.Former.Poll
	l.crossOut(func(d debt) bool { return d.isMissed() && d.Poll >= since })
	l.Former = nil
	return true
}

func idList(list []shownEntry) (ids []string) {
	for _, e := range list {
		ids = append(ids, e.id)
	}
	return ids
}

// renewed returns the entries of the reading before, if all those still there have changed but
// for their times, and stand below the new ones in their order: numbers of views, or pictures
// counting readers, change so.
func (r *reading) renewed(m *mergeResult) map[string]bool {
	good, last := map[string]bool{}, -1
	if len(r.fresh) > 0 {
		last = r.fresh[len(r.fresh)-1]
	}
	for _, e := range r.old {
		i, ok := r.at[e.id]
		if !ok {
			continue
		}
		if i <= last || e.back || e.version == r.now[i].version || !m.at[e.id].isStill() {
			return nil
		}
		last, good[e.id] = i, true
	}
	if len(good) < 2 {
		return nil
	}
	return good
}

// isBehindChain reports whether nothing of the reading before is left but its chain's entries: it
// showed no entry, or deleted ones alone, and the document leads to an archive known since. The
// entries between are then in the document and its chain (RFC 5005 §4).
func (rs *readings) isBehindChain(doc *feedhistory.Document, r *reading, m *mergeResult) (bool, error) {
	deleted := map[string]bool{}
	for _, t := range doc.Deleted {
		deleted[t.Ref] = true
	}
	isLeft := func(e shownEntry) bool {
		_, ok := r.at[e.id]
		return ok && m.at[e.id].before == Live && !deleted[e.id]
	}
	if slices.ContainsFunc(r.old, isLeft) { // as usual
		return false, nil
	}
	older, ok := olderOf(doc, feedhistory.KindArchived)
	if !ok || rs.documents.get(older) == nil {
		return false, rs.documents.err
	}
	standing, err := rs.standing(slices.Collect(maps.Keys(r.wasAt)))
	for _, t := range doc.Deleted {
		standing = slices.DeleteFunc(standing, func(id string) bool { return id == t.Ref })
	}
	return len(standing) == 0, err
}

// inherit finds the entries of the last reading before there were ledgers: their copies
// are of its rank. It reports whether their order is known, from their times.
func (rs *readings) inherit(rising bool) (shown []shownEntry, isOrdered bool, err error) {
	seq := int64(0)
	isOrdered = true
	for rec, err := range rs.m.Store.Entries(rs.ctx, Query{Feed: rs.feed.URL, States: Current | Former}) {
		if err != nil {
			return nil, false, err
		}
		rank := rec.Copy.Rank
		if !rec.isShown() || rank.Seq <= 0 || rank.Seq < seq || rank.Seq == seq && len(shown) >= shownLimit {
			continue
		}
		if rank.Seq > seq {
			shown, seq, isOrdered = nil, rank.Seq, true
		}
		shown = append(shown, shownEntry{id: rec.ID, version: versionOf(rec.Copy.Digest)})
		isOrdered = isOrdered && !rec.Time().IsZero()
	}
	if rising {
		slices.Reverse(shown)
	}
	return shown, isOrdered, nil
}

// missWindow enters the debt for what may have come and gone between two readings.
func (rs *readings) missWindow(doc *feedhistory.Document, r *reading) error {
	g := missedWindow(doc, rs.now)
	if len(r.old) == 0 {
		if rs.ledger.owes(debt.isMissed) {
			return nil // nothing has been stored since
		}
		for rec, err := range rs.m.Store.Entries(rs.ctx, Query{Feed: rs.feed.URL, Limit: 2}) {
			if err != nil {
				return err
			}
			g.Before = append(g.Before, rec.ID)
		}
	}
	for _, e := range r.old {
		if _, ok := r.at[e.id]; !ok && !e.back && len(g.Before) < sideLimit {
			g.Before = append(g.Before, e.id)
		}
	}
	if len(g.Before) == 0 { // none has left, and those that are there prove nothing
		for _, e := range r.old[:min(2, len(r.old))] {
			g.Before = append(g.Before, e.id)
		}
	}
	g.After = r.oldestFresh()
	g.Since = rs.chain.since()
	rs.owe(g)
	return nil
}

// oldestNew returns the IDs of the oldest entries in the document never known before, the oldest
// first.
func (m *mergeResult) oldestNew(rising bool) (ids []string) {
	items := slices.Clone(m.entries)
	if !rising {
		slices.Reverse(items)
	}
	for _, it := range items {
		if !it.isKnown() && len(ids) < sideLimit {
			ids = append(ids, it.id)
		}
	}
	return ids
}

// oldestFresh returns the IDs of the oldest new entries, the oldest first.
func (r *reading) oldestFresh() (ids []string) {
	for _, i := range slices.Backward(r.fresh) {
		if len(ids) < sideLimit {
			ids = append(ids, r.now[i].id)
		}
	}
	return ids
}

func missedWindow(doc *feedhistory.Document, now time.Time) debt {
	return debt{
		URL: doc.URL, Reason: feedhistory.ReasonMissedWindow, Found: now,
		Message: fmt.Sprintf("its %d entries do not reach back to known ones: others may have come and gone since the last poll",
			len(doc.Entries)),
	}
}

// oweEntries enters the entries that have left the document from above one that proves
// the join, unless an archive has them, they are deleted, or their neighbours stand side
// by side.
func (rs *readings) oweEntries(doc *feedhistory.Document, r *reading, good map[string]bool) error {
	last := -1
	for i, e := range r.old {
		if good[e.id] {
			last = i
		}
	}
	var left []string
	for _, e := range r.old[:max(last, 0)] {
		if _, ok := r.at[e.id]; !ok && len(left) < gapLimit {
			left = append(left, e.id)
		}
	}
	if len(left) == 0 {
		return nil
	}
	for _, t := range doc.Deleted {
		left = slices.DeleteFunc(left, func(id string) bool { return id == t.Ref })
	}
	records, err := rs.m.Store.Records(rs.ctx, rs.feed.URL, left)
	if err != nil {
		return err
	}
	for _, id := range left {
		if record := records[id]; record == nil || record.State != Live || record.Archived || r.isWithdrawn(id) {
			continue
		}
		g := missedWindow(doc, rs.now)
		g.Message = "it no longer shows an entry that is in no archive: others may have come and gone with it"
		g.Entry, g.Before, g.After = id, r.neighbours(id), r.oldestFresh()
		rs.owe(g)
	}
	return nil
}

// neighbours returns the entries above and below one that has left, beyond those gone
// with it; "" for none.
func (r *reading) neighbours(id string) []string {
	sides := []string{"", ""}
	isThere := func(e shownEntry) bool { _, ok := r.at[e.id]; return ok }
	for _, e := range slices.Backward(r.old[:r.wasAt[id]]) {
		if isThere(e) {
			sides[0] = e.id
			break
		}
	}
	if i := slices.IndexFunc(r.old[r.wasAt[id]:], isThere); i >= 0 {
		sides[1] = r.old[r.wasAt[id]+i].id
	}
	return sides
}

// isWithdrawn reports whether the neighbours of an entry that has left stand side by side:
// new entries above, if it was the first.
func (r *reading) isWithdrawn(id string) bool {
	sides := r.neighbours(id)
	down, ok := r.at[sides[1]]
	if !ok {
		return false
	}
	if sides[0] == "" {
		return down == 0 || slices.Contains(r.fresh, down-1)
	}
	up, ok := r.at[sides[0]]
	return ok && down == up+1
}

// noteCopy notes whether a subscription document may be an old copy: it was replaced
// before, or it brings nothing new and lacks the newest entry.
func (rs *readings) noteCopy(doc *feedhistory.Document, r *reading) {
	l, digest := rs.ledger, shortKey(rs.merger.digests.ofAll(doc))
	seen := slices.Index(l.Recent, digest)
	if seen >= 0 && seen == len(l.Recent)-1 {
		return // as at the last reading
	}
	_, hasNewest := r.at[l.Newest]
	switch {
	case seen >= 0 && len(r.now) > 0, len(r.fresh) == 0 && l.Newest != "" && !hasNewest:
		if l.Stale.IsZero() {
			l.Stale = rs.now
		}
	default:
		l.Stale = time.Time{}
	}
	recent := slices.DeleteFunc(slices.Clone(l.Recent), func(d string) bool { return d == digest })
	l.Recent = lastOf(append(recent, digest), recentLimit)
	if len(r.now) > 0 && slices.Contains(r.fresh, 0) {
		l.Newest = r.now[0].id
	}
	if doc.ID != "" && !slices.Contains(l.IDs, doc.ID) {
		l.IDs = lastOf(append(slices.Clone(l.IDs), doc.ID), recentLimit)
	}
}

func lastOf[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }

// receive crosses out the windows and entries for which a document has the receipt.
// First is the poll that first read it, as it is now.
func (rs *readings) receive(doc *feedhistory.Document, m *mergeResult, archive bool, first int64) error {
	l := rs.ledger
	if !l.owes(debt.isMissed) {
		return nil
	}
	l.meet(m)
	at := make(map[string]int, len(doc.Entries))
	for i, e := range doc.Entries {
		at[e.ID] = i
	}
	tombs := map[string]bool{}
	for _, t := range doc.Deleted {
		tombs[t.Ref] = true
	}
	adjacent := func(a, b string) bool {
		i, okA := at[a]
		j, okB := at[b]
		return okA && okB && (i-j == 1 || j-i == 1)
	}
	rs.ledger.crossOut(func(g debt) bool {
		_, found := at[g.Entry]
		return g.Entry != "" && (found || tombs[g.Entry] || len(g.Before) == 2 && adjacent(g.Before[0], g.Before[1]))
	})
	if err := rs.receiveAcross(doc, at); err != nil {
		return err
	}
	for i, g := range l.Debts {
		if g.Kind != debtWindow || !archive || first < g.Poll {
			continue
		}
		before, err := rs.standing(g.Before)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(before[:min(2, len(before))], func(id string) bool { _, ok := at[id]; return ok }) {
			l.Debts[i].Joined = doc.Response.Requested
			rs.chain.paid++
		}
	}
	return nil
}

// since returns the Since of a window missed by this poll.
func (cr *chainReading) since() int64 {
	if cr.joined {
		return 0
	}
	return cr.merger.from
}

// meet notes the windows from before which a document has an entry. The reading before had the
// settled ones.
func (l *ledger) meet(m *mergeResult) {
	for i := range l.Debts {
		if d := &l.Debts[i]; d.Since > 0 && m.hasFrom(d.Since) {
			d.Since = 0
		}
	}
}

// receiveAcross crosses out the windows with both sides in one document, and entries between
// them: the whole earlier side, since single entries may be pinned or return. The places are those
// of the document's entries.
func (rs *readings) receiveAcross(doc *feedhistory.Document, at map[string]int) (err error) {
	rs.ledger.crossOut(func(g debt) bool {
		if g.Kind != debtWindow || len(g.After) == 0 || err != nil {
			return false
		}
		there := 0
		for _, id := range g.Before {
			if _, ok := at[id]; ok {
				there++
			}
		}
		after, ok := at[g.After[0]]
		if !ok || there < 2 {
			return false
		}
		var before []string
		if before, err = rs.standing(g.Before); err != nil || len(before) < 2 {
			return false
		}
		if slices.ContainsFunc(before, func(id string) bool { _, ok := at[id]; return !ok }) {
			return false
		}
		low, high := min(after, at[before[0]]), max(after, at[before[0]])
		return slices.ContainsFunc(doc.Entries[low:high], func(e *feedhistory.Entry) bool {
			return !slices.Contains(g.After, e.ID) && !slices.Contains(g.Before, e.ID)
		})
	})
	return err
}

// standing returns those of the entries that are not known to be deleted.
func (s *session) standing(ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	records, err := s.m.Store.Records(s.ctx, s.feed.URL, ids)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return records[id] != nil && records[id].State != Live }), nil
}

// fillSides finds the sides of windows that were missed before the ledger kept them. It
// reads the feed once.
func (f *Feed) fillSides(ctx context.Context, store Store) error {
	l := &f.Ledger.l
	lacks := func(d debt) bool { return d.Kind == debtWindow && len(d.Before)+len(d.After) == 0 }
	if !l.owes(lacks) {
		return nil
	}
	newest, oldest := make([]*Record, len(l.Debts)), make([]*Record, len(l.Debts))
	for rec, err := range store.Entries(ctx, Query{Feed: f.URL, States: Current | Former}) {
		if err != nil {
			return err
		}
		if rec.Copy.Source != "" || rec.FirstCommit == 0 {
			continue // the feed has not shown it
		}
		for i, d := range l.Debts {
			if before := rec.Added.Before(d.Found); before && (newest[i] == nil || rec.Time().After(newest[i].Time())) {
				newest[i] = rec
			} else if !before && rec.Added.Equal(d.Found) && (oldest[i] == nil || rec.Time().Before(oldest[i].Time())) {
				oldest[i] = rec
			}
		}
	}
	for i := range l.Debts {
		if d := &l.Debts[i]; lacks(*d) {
			if newest[i] != nil {
				d.Before = []string{newest[i].ID}
			}
			if oldest[i] != nil {
				d.After = []string{oldest[i].ID}
			}
		}
	}
	return nil
}
