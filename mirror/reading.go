package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/iri"
)

const (
	// shownLimit is the maximum number of entries of a subscription document to remember.
	shownLimit = 10_000

	// sideLimit is the maximum number of entries to remember of each side of a window.
	sideLimit = 8

	// recentLimit is the maximum number of readings, and of the feed's ids, to remember.
	recentLimit = 8
)

// shownOf returns the entries of a document in its order, each once.
func shownOf(doc *feedhistory.Document, digests *digests) (shown []shownEntry) {
	seen := make(map[string]bool, len(doc.Entries))
	for _, e := range doc.Entries {
		if !seen[e.ID] && len(shown) < shownLimit {
			seen[e.ID] = true
			shown = append(shown, shownEntry{id: e.ID, version: versionOf(digests.of(e))})
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
	known     map[string]bool
}

func newReading(old, now []shownEntry, known map[string]bool, rising bool) *reading {
	r := &reading{old: slices.Clone(old), now: slices.Clone(now), known: known}
	if rising {
		slices.Reverse(r.old)
		slices.Reverse(r.now)
	}
	r.wasAt, r.at = places(r.old), places(r.now)
	for i, e := range r.now {
		if _, was := r.wasAt[e.id]; !was && !known[e.id] {
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
	good, onlyEnds, inOrder := map[string]bool{}, true, []int{}
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
// there are no more new ones than have left.
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
	if ok && len(r.fresh) <= left {
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

// compare compares the subscription document with the reading before it, and enters the
// window or the entries that may have come and gone between.
func (p *poll) compare(doc *feedhistory.Document, m *mergeResult, late bool) error {
	l := p.ledger
	was, now, wasRead := l.shown(), shownOf(doc, m.digests), l.Known.URL != "" && !(late && l.Elsewhere)
	isOrdered := true
	if !l.Inherited.IsZero() && was == nil && l.Recent == nil {
		var err error
		if was, isOrdered, err = p.inherit(isRising(doc)); err != nil {
			return err
		}
	}
	r := newReading(was, now, m.known, isRising(doc))
	r.leaveSlidIn()
	if wasRead {
		r.markBack(now, m.shown)
	}
	if l.Elsewhere = len(p.chain.newer) > 0 && (l.Known.URL == "" || l.Elsewhere); l.Elsewhere {
		return nil
	}
	if p.returns(now, m.known, isRising(doc)) { // the readings between were no window of the feed
		l.setShown(now)
		return nil
	}
	p.noteCopy(doc, r)
	if len(now) == 0 { // its database was down, say: the next reading is compared with the one before
		return nil
	}
	l.setShownOf(now, m)
	if !wasRead || !p.had || doc.Kind() == feedhistory.KindPaged || doc.Kind() == feedhistory.KindComplete {
		return nil
	}
	if len(r.fresh) == 0 {
		if !slices.ContainsFunc(r.old, func(e shownEntry) bool { _, ok := r.at[e.id]; return ok }) {
			l.keepFormer(was, now, p.feed.Polls) // a notice that was there before
		}
		return nil
	}
	if is, err := p.isBehindChain(doc, r, m); err != nil || is {
		return err
	}
	good := r.proofs(l)
	l.Unordered = l.Unordered && isOrdered // otherwise the order of the reading before is unknown
	if len(good) == 0 {
		good = r.renewed(m.still)
	}
	switch {
	case len(good) == 0:
		l.keepFormer(was, now, p.feed.Polls)
		return p.missWindow(doc, r)
	case l.Unordered || !isOrdered || len(was) == 0:
		return nil
	}
	return p.oweEntries(doc, r, good)
}

// setShownOf keeps a reading for the next one to be compared with, but for the entries left out by
// the Quota.
func (l *ledger) setShownOf(now []shownEntry, m *mergeResult) {
	l.setShown(slices.DeleteFunc(now, func(e shownEntry) bool {
		return m.records[e.id] != nil && m.records[e.id].State == Unseen
	}))
}

// keepFormer keeps the reading before one that may be a notice.
func (l *ledger) keepFormer(was, now []shownEntry, poll int64) {
	if l.Former == nil && len(now) <= noticeLimit && len(was) > 2*noticeLimit {
		l.Former = &former{Poll: poll, Shown: idList(was)}
	}
}

// markBack marks the entries of a reading which had left the document before.
func (r *reading) markBack(now []shownEntry, shown map[string]bool) {
	for i, e := range now {
		before, ok := r.wasAt[e.id]
		now[i].back = ok && r.old[before].back || !ok && shown[e.id]
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
func (p *poll) returns(now []shownEntry, known map[string]bool, rising bool) bool {
	l := p.ledger
	if l.Former == nil {
		return false
	}
	old := make([]shownEntry, len(l.Former.Shown))
	for i, id := range l.Former.Shown {
		old[i].id = id
	}
	r := newReading(old, now, known, rising)
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
func (r *reading) renewed(still map[string]bool) map[string]bool {
	good, last := map[string]bool{}, -1
	if len(r.fresh) > 0 {
		last = r.fresh[len(r.fresh)-1]
	}
	for _, e := range r.old {
		i, ok := r.at[e.id]
		if !ok {
			continue
		}
		if i <= last || e.back || e.version == r.now[i].version || !still[e.id] {
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
func (p *poll) isBehindChain(doc *feedhistory.Document, r *reading, m *mergeResult) (bool, error) {
	deleted := map[string]bool{}
	for _, t := range doc.Deleted {
		deleted[t.Ref] = true
	}
	isLeft := func(e shownEntry) bool {
		_, ok := r.at[e.id]
		return ok && m.before[e.id] == Live && !deleted[e.id]
	}
	if slices.ContainsFunc(r.old, isLeft) { // as usual
		return false, nil
	}
	older, ok := olderOf(doc, feedhistory.KindArchived)
	if !ok || p.documents.get(older) == nil {
		return false, p.documents.err
	}
	standing, err := p.standing(slices.Collect(maps.Keys(r.wasAt)))
	for _, t := range doc.Deleted {
		standing = slices.DeleteFunc(standing, func(id string) bool { return id == t.Ref })
	}
	return len(standing) == 0, err
}

// inherit finds the entries of the last reading before there were ledgers: their copies
// are of its rank. It reports whether their order is known, from their times.
func (p *poll) inherit(rising bool) (shown []shownEntry, isOrdered bool, err error) {
	seq := int64(0)
	isOrdered = true
	for rec, err := range p.m.Store.Entries(p.ctx, Query{Feed: p.feed.URL, States: Current | Former}) {
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
func (p *poll) missWindow(doc *feedhistory.Document, r *reading) error {
	g := missedWindow(doc, p.now)
	if len(r.old) == 0 {
		if p.ledger.owes(debt.isMissed) {
			return nil // nothing has been stored since
		}
		for rec, err := range p.m.Store.Entries(p.ctx, Query{Feed: p.feed.URL, Limit: 2}) {
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
	p.owe(g)
	return nil
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
func (p *poll) oweEntries(doc *feedhistory.Document, r *reading, good map[string]bool) error {
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
	records, err := p.m.Store.Records(p.ctx, p.feed.URL, left)
	if err != nil {
		return err
	}
	for _, id := range left {
		if record := records[id]; record == nil || record.State != Live || record.Archived || r.isWithdrawn(id) {
			continue
		}
		g := missedWindow(doc, p.now)
		g.Message = "it no longer shows an entry that is in no archive: others may have come and gone with it"
		g.Entry, g.Before, g.After = id, r.neighbours(id), r.oldestFresh()
		p.owe(g)
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

// isOfSubscription reports whether the rank is that of a subscription document.
func (r Rank) isOfSubscription() bool { return r.Seq&(1<<31-1) == 0 }

// noteCopy notes whether a subscription document may be an old copy: it was replaced
// before, or it brings nothing new and lacks the newest entry.
func (p *poll) noteCopy(doc *feedhistory.Document, r *reading) {
	l, digest := p.ledger, shortKey(digestOf(doc, p.merger.digests))
	seen := slices.Index(l.Recent, digest)
	if seen >= 0 && seen == len(l.Recent)-1 {
		return // as at the last reading
	}
	_, hasNewest := r.at[l.Newest]
	switch {
	case seen >= 0 && len(r.now) > 0, len(r.fresh) == 0 && l.Newest != "" && !hasNewest:
		if l.Stale.IsZero() {
			l.Stale = p.now
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

func shortKey(text string) string { return fmt.Sprintf("%016x", keyOf(text)[0]) }

func lastOf[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }

// mayBeStale reports whether the subscription document may be an old copy, which has not
// answered for a day yet. It is none if an archive has the newest entry, and none is newer
// than the one it leads to.
func (p *poll) mayBeStale(head step, steps map[string]step) (bool, error) {
	l := p.ledger
	if l.Stale.IsZero() || !p.now.Before(l.Stale.Add(24*time.Hour)) {
		return false, nil
	}
	for _, at := range steps {
		if at.seq > head.seq {
			return true, nil
		}
	}
	records, err := p.m.Store.Records(p.ctx, p.feed.URL, []string{l.Newest})
	return records[l.Newest] == nil || !records[l.Newest].Archived, err
}

// receive crosses out the windows and entries for which a document has the receipt.
// First is the poll that first read it, as it is now.
func (p *poll) receive(doc *feedhistory.Document, m *mergeResult, archive bool, first int64) error {
	l := p.ledger
	if !l.owes(debt.isMissed) {
		return nil
	}
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
	p.ledger.crossOut(func(g debt) bool {
		_, found := at[g.Entry]
		return g.Entry != "" && (found || tombs[g.Entry] || len(g.Before) == 2 && adjacent(g.Before[0], g.Before[1]))
	})
	if err := p.receiveAcross(doc, at); err != nil {
		return err
	}
	for i, g := range l.Debts {
		if g.Kind != debtWindow || !archive || first < g.Poll {
			continue
		}
		before, err := p.standing(g.Before)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(before[:min(2, len(before))], func(id string) bool { _, ok := at[id]; return ok }) {
			l.Debts[i].Joined = doc.Response.Requested
			p.chain.paid++
		}
	}
	return nil
}

// receiveAcross crosses out the windows with both sides in one document, and entries between
// them: the whole earlier side, since single entries may be pinned or return. The places are those
// of the document's entries.
func (p *poll) receiveAcross(doc *feedhistory.Document, at map[string]int) (err error) {
	p.ledger.crossOut(func(g debt) bool {
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
		if before, err = p.standing(g.Before); err != nil || len(before) < 2 {
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

// join removes the windows whose earlier side a document of the chain has, if all those
// before it are new, or have been asked for since.
func (l *ledger) join(current []step) {
	l.crossOut(func(g debt) bool {
		if g.Joined == "" {
			return false
		}
		for _, at := range current {
			if slices.Contains(at.names, g.Joined) {
				return true
			}
			if at.first < g.Poll && !at.isReadSince(g) {
				return false
			}
		}
		return false
	})
}

// standing returns those of the entries that are not known to be deleted.
func (p *poll) standing(ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	records, err := p.m.Store.Records(p.ctx, p.feed.URL, ids)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return records[id] != nil && records[id].State != Live }), nil
}

// owes reports whether the ledger has a debt that a reading of known archives may pay, or
// write off in this poll.
func (p *poll) owes() bool {
	return p.ledger.owes(func(d debt) bool {
		return p.isAskedAgain(d) || d.isMissed() && (d.Joined == "" || p.chain.paid == 0) || d.isWithin() && !d.Quota
	})
}

// hasFailed reports whether a document has been asked for in vain, and its host has not
// asked for patience.
func (p *poll) hasFailed(d debt) bool {
	return d.isDocument() && d.Tries > 0 && !d.isCut() && !d.Quota && !isAsked(d.Wait, p.now)
}

// isAskedAgain reports whether the poll asks for a document that has failed before.
func (p *poll) isAskedAgain(d debt) bool {
	return p.hasFailed(d) && (p.backlog.urls[d.URL] || d.Poll == p.feed.Polls)
}

// owe enters a debt that the poll has found.
func (p *poll) owe(d debt) {
	d.Poll = p.feed.Polls
	p.ledger.enter(d)
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

// A chainReading is the reading of a chain by one poll, as far as write-offs need it.
type chainReading struct {
	asks     bool               // known archives are asked for, until one has not changed
	until    int64              // the asking goes on to one known before this poll, for a window
	met      bool               // one of them has not changed
	paid     int                // the windows that documents have joined
	joined   bool               // the chain has an entry known before
	newer    []string           // the documents at which the feed is said to begin, but which could not be read
	received map[string]bool    // the URLs of the documents read, without the unchanged ones
	own      map[string]bool    // the links of the chain as it was before
	gone     map[string]bool    // known documents that no longer answer
	ranks    map[string][]int64 // for a known document outside of the chain, the ranks its entries have their copies from
}

// A chainPath is the chain from the subscription document through the stored archives.
type chainPath struct {
	steps   map[string]step // all documents, by their names
	current []step          // those of the chain, newest first
	beyond  []step          // those to which its links lead against their marks
	passed  map[string]bool // the URLs of the chain
	named   map[string]bool // the documents to which the chain links
	whole   bool            // it reaches its end
	loop    *debt           // it leads back into itself; nil if it does not
}

// path follows the links of the feed through its documents, as they were last read.
func (p *poll) path() (*chainPath, error) {
	l := p.ledger
	steps, err := p.documents.all()
	if err != nil {
		return nil, err
	}
	c := &chainPath{steps: steps, passed: map[string]bool{}, named: map[string]bool{l.Known.Older: true}}
	seen, further := map[string]bool{}, slices.Clone(l.Further)
	follow := func(url, instead string) (followed []step, end string) {
		for url != "" {
			if _, ok := steps[url]; !ok && instead != "" {
				url = instead
			}
			at, ok := steps[url]
			if !ok || seen[at.url] {
				break
			}
			seen[at.url] = true
			at.link = url
			followed, further, url = append(followed, at), append(further, at.further...), at.older
			instead = at.instead
		}
		return followed, url
	}
	var end string
	c.current, end = follow(l.Known.Older, otherFormat(l.Known))
	for _, url := range slices.Concat(p.chain.newer, further) {
		c.named[url] = true
	}
	from, lost := l.Known.URL, l.Known.Lost
	for _, at := range c.current {
		c.passed[at.url], c.named[at.older] = true, true
		from, lost = at.url, at.lost
	}
	c.whole = end == "" && !lost // otherwise there is something older, and a gap says so
	if _, ok := steps[end]; ok {
		c.loop = &debt{
			URL: end, From: from, Reason: feedhistory.ReasonLoop, Found: p.now,
			Message: "the chain of archives leads back to this document",
		}
	}
	for i := 0; i < len(further); i++ {
		followed, _ := follow(further[i], "")
		c.beyond = append(c.beyond, followed...)
	}
	return c, nil
}

// isContradictory reports whether links lead beyond the chain, against its marks. If one of
// its documents came late, only a walk that reads all of them can say whether they are one.
func (c *chainPath) isContradictory(l *ledger) bool {
	return len(l.Further)+len(c.beyond) > 0 || slices.ContainsFunc(c.current, func(at step) bool { return len(at.further) > 0 })
}

// has reports whether a document is the subscription document or in the chain.
func (c *chainPath) has(p *poll, url string) bool {
	return url == p.ledger.Known.URL || url == p.chain.start || c.passed[c.steps[url].url]
}

// isRead reports whether the poll has read the chain from the newest archive down to the
// first that has not changed, and no document of it is damaged or contradicts itself.
func (c *chainPath) isRead(p *poll) bool {
	for i, at := range c.current {
		if at.last < p.feed.Polls && (i == 0 || !p.chain.met) {
			return false
		}
	}
	return len(c.current) > 0 && !p.ledger.owes(func(g debt) bool { return g.isWithin() && c.has(p, g.URL) })
}

// settle crosses out the debts that a complete reading of the chain pays or writes off. A
// reading without a subscription document settles nothing.
func (p *poll) settle() error {
	l := p.ledger
	if !p.chain.read || l.Kind != feedhistory.KindArchived {
		return nil
	}
	c, err := p.path()
	if err != nil {
		return err
	}
	l.crossOut(isChainLoop)
	if c.loop != nil { // which a single walk may not notice
		p.owe(*c.loop)
	}
	l.join(c.current)
	p.oweAsBefore(c)
	if !c.whole {
		return nil
	}
	if p.late && c.isContradictory(l) {
		d := debt{
			Kind: debtAlternative, URL: l.Known.URL, Reason: feedhistory.ReasonContradiction, Found: p.now,
			Message: "its links lead to two chains of archives, and a part of one came late: a poll that reads all of it again shows whether they are one",
		}
		if p.rereads {
			d.Tries = p.vain + 1
			d.Retry = p.now.Add(backoff(p.m.every(), d.Tries, longestRetry))
		}
		p.owe(d)
	}
	if l.Unsettled = false; !c.isRead(p) {
		return nil
	}
	if err := p.commits.drain(); err != nil {
		return err
	}
	stale, err := p.mayBeStale(c.current[0], c.steps)
	if err != nil {
		return err
	}
	if !stale {
		p.writeOff(c)
	}
	return p.settleWindows(c)
}

// isNotMissed reports whether an unreadable document hides nothing: a walk to the end has read each
// document naming it again, and reports no gap.
func (p *poll) isNotMissed(d debt) bool {
	names := d.namedBy()
	return p.chain.ended && d.isDocument() && !d.Page && !d.Quota && d.Tries > 0 && d.Poll < p.feed.Polls && len(names) > 0 &&
		!slices.ContainsFunc(names, func(url string) bool { return !p.chain.received[url] })
}

// oweAsBefore enters the debts of the earlier feed at the address for documents in the present
// chain: it is the same feed, after all.
func (p *poll) oweAsBefore(c *chainPath) {
	past := p.ledger.Past
	if past == nil {
		return
	}
	for _, d := range past.Ledger.Debts {
		at, isKnown := c.steps[d.URL]
		isWithdrawn := slices.ContainsFunc(p.ledger.Unread, func(u debt) bool { return u.URL == d.URL })
		if d.isDocument() && c.named[d.URL] && !isKnown && !isWithdrawn || d.isWithin() && c.passed[at.url] && at.altered <= d.Poll {
			p.owe(d)
		}
	}
}

// writeOff crosses out the documents which the poll has asked for in vain, and which the
// chain neither names nor needs: it has all entries of those that named them.
func (p *poll) writeOff(c *chainPath) {
	f, l, rebuilt := p.feed, p.ledger, p.had && !p.chain.joined // of a feed read for the first time, nothing was known
	isNeeded := func(url string) bool { return !rebuilt && !p.chain.gone[url] && !p.isCovered(url, c.current) }
	isOwed := func(d debt) bool {
		return d.Poll < f.Polls || !p.isAskedAgain(d) || c.named[d.URL] || slices.ContainsFunc(d.namedBy(), func(url string) bool {
			_, isKnown := c.steps[url] // otherwise it has never been read, or was a subscription document
			return c.has(p, url) && d.Reason != feedhistory.ReasonLoop || (isKnown || l.document(url) != nil) && !c.has(p, url) && isNeeded(url)
		})
	}
	for n := -1; n != len(l.Debts); { // one written off may name another
		n = len(l.Debts)
		owed := slices.Clone(l.Debts)
		l.Debts = slices.DeleteFunc(owed, func(d debt) bool {
			isUnread := d.isDocument() && !isOwed(d)
			if isUnread {
				p.withdraw(d)
			}
			return isUnread
		})
	}
	l.crossOut(func(d debt) bool {
		isElsewhere := d.isWithin() && !d.Quota && d.Reason != feedhistory.ReasonDetached && !c.has(p, d.URL)
		return rebuilt && d.isMissed() || isElsewhere && !isNeeded(d.URL)
	})
}

// withdraw notes a document written off.
func (p *poll) withdraw(d debt) {
	d.Found = p.now
	p.ledger.Unread = lastOf(append(slices.Clone(p.ledger.Unread), d), recentLimit)
}

// Pages are read until one has nothing new. What is missing behind it is found by a poll that
// reads every page, from the first to one that names no next: while something is owed, one a day.

// isOfPages reports whether a reading of every page pays for a debt.
func (l *ledger) isOfPages(d debt) bool {
	isWithin := d.isWithin() && d.URL != l.Known.URL
	return (d.isDocument() && d.Page || isWithin) && !d.Quota || d.isMissed()
}

// leavePages turns debts within pages, to which the feed no longer leads, into debts for these
// pages: they are asked for, and may be written off.
func (p *poll) leavePages() {
	if p.ledger.Kind == feedhistory.KindPaged {
		return
	}
	for i := range p.ledger.Debts {
		d := &p.ledger.Debts[i]
		if (d.Kind == debtDamage || d.Kind == debtContradiction) && p.ledger.isOfPages(*d) && p.ledger.document(d.URL) == nil && p.documents.get(d.URL) == nil {
			d.Kind, d.Page, d.From, d.Tries = debtDocument, true, "", 1
		}
	}
}

// choosePages decides whether the poll reads every page.
func (p *poll) choosePages() {
	l := p.ledger
	isTime := l.Looked.IsZero() || p.now.Sub(l.Looked) >= 24*time.Hour
	if l.Kind == feedhistory.KindPaged && isTime && l.owes(func(d debt) bool { return l.isOfPages(d) && !d.isCut() }) {
		p.pages.toEnd, l.Looked = true, p.now
	}
}

// endPages notes that a page names no next one.
func (p *poll) endPages(doc *feedhistory.Document) {
	_, goesOn := olderOf(doc, feedhistory.KindPaged)
	p.pages.ended = p.pages.ended || !p.chain.beyond && !goesOn && !doc.Known().Lost
}

// settlePages crosses out what a reading of every page pays.
func (p *poll) settlePages() {
	if p.ledger.Kind != feedhistory.KindPaged || !p.pages.ended || p.pages.torn {
		return
	}
	p.ledger.crossOut(func(d debt) bool {
		isPaid := p.ledger.isOfPages(d) && (d.isDocument() || d.Poll < p.feed.Polls)
		if isPaid && d.isDocument() {
			p.withdraw(d)
		}
		return isPaid
	})
}

// triesUnnamed is how often a document that the chain no longer names is asked for at each
// poll: if it does not answer, it may be written off.
const triesUnnamed = 6

// unnamed returns a function that reports whether a document may be written off once it is
// asked for: no document of the chain links to it, as they were last read, and it was not
// asked for often, or not since the chain has grown.
func (p *poll) unnamed() func(debt) bool {
	c, err := p.path()
	if err != nil {
		p.documents.err = cmp.Or(p.documents.err, err)
		return func(debt) bool { return false }
	}
	grown := int64(0)
	for _, at := range slices.Concat(c.current, c.beyond) {
		c.named[at.older], grown = true, max(grown, at.first)
	}
	return func(d debt) bool {
		return (d.Tries < triesUnnamed || d.Poll <= grown) && !c.named[d.URL]
	}
}

// isChainLoop reports whether a gap is the loop that settle finds.
func isChainLoop(g debt) bool {
	return g.Kind == debtChain && g.Reason == feedhistory.ReasonLoop && g.From != "" && g.From != g.URL && !g.Again
}

// isCovered reports whether the documents of the chain have all entries of a known
// document outside of it, as this poll has read it.
func (p *poll) isCovered(url string, current []step) bool {
	ranks, ok := p.chain.ranks[url]
	if !ok {
		return false
	}
	return !slices.ContainsFunc(ranks, func(seq int64) bool {
		return seq>>32 != p.feed.Polls && !slices.ContainsFunc(current, func(at step) bool { return at.seq == seq })
	})
}

// isAsked reports whether the archives of the chain that were known before the gap have
// been asked for since, from the newest down to the first that has not changed; and all
// those beyond it, which no order leads to.
func (d debt) isAsked(c *chainPath) bool {
	if slices.ContainsFunc(c.beyond, func(at step) bool { return !at.isReadSince(d) }) {
		return false
	}
	for _, at := range c.current {
		if at.first < d.Poll && at.altered < d.Poll {
			return at.isReadSince(d)
		}
		if !at.isReadSince(d) {
			return false
		}
	}
	return true
}

// isUnasked reports whether a document beyond the chain has not been asked for since a
// window was missed that no archive joins.
func (p *poll) isUnasked(d *DocumentRecord) bool {
	return !p.backlog.unread && p.ledger.Kind == feedhistory.KindArchived &&
		p.ledger.owes(func(g debt) bool { return g.isMissed() && g.Joined == "" && !d.step().isReadSince(g) })
}

// settleWindows writes off the windows and entries behind which archives have the oldest
// entry from after, or everything the subscription document shows.
func (p *poll) settleWindows(c *chainPath) error {
	l := p.ledger
	if !l.owes(debt.isMissed) {
		return nil
	}
	ids := slices.Clone(l.Shown)
	for _, g := range l.Debts {
		ids = append(ids, g.After...)
	}
	records, err := p.m.Store.Records(p.ctx, p.feed.URL, ids)
	if err != nil {
		return err
	}
	archived := func(id string) bool { return records[id] != nil && records[id].Archived }
	shown := places(l.shown())
	all := len(shown) > 0
	for id := range shown {
		all = all && archived(id)
	}
	p.ledger.crossOut(func(g debt) bool {
		if !g.isMissed() || !g.isAsked(c) {
			return false
		}
		oldest := slices.IndexFunc(g.After, func(id string) bool { _, ok := shown[id]; return ok || archived(id) })
		return all || oldest >= 0 && archived(g.After[oldest])
	})
	return nil
}

// A step is a document in the chain.
type step struct {
	url, older string
	instead    string // another format of the older one; "" if there is none
	link       string // the name by which the chain leads to it
	names      []string
	further    []string  // where it goes on beyond the chain
	lost       bool      // whether its link cannot be used
	read       time.Time // when it was last read
	last       int64     // the number of the last poll to read it
	seq        int64     // of its rank
	first      int64     // the number of the first poll to read it
	altered    int64     // the number of the last poll to find it changed
}

// all returns the documents by all of their names, including those of the next commit. The
// Store is read once.
func (ds *documents) all() (map[string]step, error) {
	if ds.steps == nil {
		steps := map[string]step{}
		for d, err := range ds.store.Documents(ds.ctx, ds.feed.URL) {
			if err != nil {
				return nil, err
			}
			for _, name := range d.Names {
				if _, ok := steps[name]; !ok || name == d.URL {
					steps[name] = d.step()
				}
			}
		}
		ds.steps = steps
	}
	if ds.commits.waiting != nil {
		ds.replace(&ds.commits.waiting.change)
	}
	return ds.steps, nil
}

// replace replaces the documents of a change.
func (ds *documents) replace(c *Commit) {
	if ds.steps == nil || c.Forget {
		ds.steps = nil
		return
	}
	for _, d := range c.Documents {
		for _, name := range d.Names {
			if name == d.URL || ds.steps[name].url != name { // it is no other document's first name
				ds.steps[name] = d.step()
			}
		}
	}
}

// step returns the document as the chain sees it.
func (d *DocumentRecord) step() step {
	return step{
		url: d.URL, older: d.Known.Older, instead: otherFormat(d.Known), names: d.Names, further: d.Further, lost: d.Known.Lost,
		read: d.Read, last: d.Last, seq: d.Rank.Seq, first: d.First, altered: d.Altered,
	}
}

// isReadSince reports whether the document has been read since a debt was entered: by the
// numbers of the polls, which no clock can spoil, and by their times, as a debt from elsewhere
// has no number.
func (at step) isReadSince(d debt) bool { return at.last >= d.Poll && !at.read.Before(d.Found) }

// otherFormat returns the URL of the next document back in time in its second format; "" if it
// has one alone.
func otherFormat(k feedhistory.Known) string {
	if !k.Formats {
		return ""
	}
	return k.Instead
}

// Archives should not change (5005#9), but do: entries are backdated into them, links are
// corrected, older archives are added behind the oldest. So each poll asks again for some
// of the documents that name debts, and from time to time for some of the others: those
// unread for longest, so that each is read within thirty days, and one of both ends.

// recheck returns the time between two such requests; a negative one means none.
func (m *Mirror) recheck() time.Duration { return cmp.Or(m.Recheck, 24*time.Hour) }

// share returns how many of n documents a poll asks for again.
func share(n int) int { return min(n, 20, max(4, (n+4)/5)) }

// chooseRechecks decides which known archives the poll requests again.
func (p *poll) chooseRechecks() error {
	l := p.ledger
	every, most := recheckPace(p.feed.Documents, p.m.recheck())
	if every < 0 && l.isUnverified() {
		every, most = recheckPace(p.feed.Documents, longestRecheck)
	}
	p.chain.asks = p.ledger.Kind == feedhistory.KindArchived && p.owes() && !p.backlog.unread
	p.rechecks, p.whole = map[string]bool{}, map[string]bool{}
	if p.ledger.Kind != feedhistory.KindArchived || every < 0 || p.m.Revalidate {
		return nil
	}
	isTime := !l.Looked.IsZero() && !p.now.Before(l.Looked.Add(every))
	if !isTime && !p.owes() && !l.owes(p.hasFailed) {
		return nil
	}
	c, err := p.path()
	if err != nil {
		return err
	}
	for _, g := range l.Debts {
		if g.isMissed() && !g.isAsked(c) && (p.chain.until == 0 || g.Poll < p.chain.until) {
			p.chain.until = g.Poll
		}
	}
	if err := p.recheckNames(c.current); err != nil || !isTime || len(c.current) == 0 {
		return err
	}
	p.chain.own = map[string]bool{}
	for _, at := range c.current {
		p.chain.own[at.link] = true
	}
	known := slices.Concat(c.current, c.beyond)
	end, oldest := c.current[0], c.current[len(c.current)-1]
	if oldest.last < end.last {
		end = oldest
	}
	slices.SortStableFunc(known, func(a, b step) int { return cmp.Compare(a.last, b.last) })
	for _, at := range append(known[:min(most, len(known)):len(known)], end) {
		p.rechecks[at.link] = true
		p.whole[at.link] = p.whole[at.link] || at.read.Before(l.Inherited) || !l.Inherited.IsZero() && at.read.After(p.now)
	}
	l.Looked = p.now
	return nil
}

// Each archive is read again within longestRecheck, by polls that read at most recheckShare.
const (
	longestRecheck = 30 * 24 * time.Hour
	recheckShare   = 20
)

// recheckPace returns how often, and how many archives, polls read again; a negative time
// means none.
func recheckPace(documents int64, every time.Duration) (time.Duration, int) {
	if every < 0 {
		return every, 0
	}
	every = min(every, longestRecheck*recheckShare/time.Duration(max(documents, recheckShare)))
	return every, int(min(recheckShare, 1+documents*int64(every/time.Second)/int64(longestRecheck/time.Second)))
}

// recheckNames chooses among the known documents that name debts, the stalest first.
func (p *poll) recheckNames(chain []step) error {
	var names []string
	for _, d := range p.ledger.Debts {
		if p.hasFailed(d) {
			names = append(names, d.namedBy()...)
		} else if d.isWithin() {
			names = append(names, d.URL)
		}
	}
	slices.Sort(names)
	var known []*DocumentRecord
	by := map[string][]string{} // the names in debts: another one may still answer, or no longer
	for _, url := range slices.Compact(names) {
		if d := p.documents.get(url); d != nil {
			if by[d.URL] == nil {
				known = append(known, d)
			}
			by[d.URL] = append(by[d.URL], url)
		}
	}
	slices.SortStableFunc(known, func(a, b *DocumentRecord) int { return cmp.Compare(a.Last, b.Last) })
	for _, d := range known[:share(len(known))] {
		name := by[d.URL][p.feed.Polls%int64(len(by[d.URL]))]
		p.rechecks[name] = true
		p.whole[name] = !slices.ContainsFunc(chain, func(at step) bool { return at.seq == d.Rank.Seq })
	}
	return p.documents.err
}

// noteChecked records since when each archive of the chain has been read.
func (p *poll) noteChecked(changed bool) error {
	l := p.ledger
	if l.Kind != feedhistory.KindArchived {
		l.Checked = time.Time{}
		if l.Kind != feedhistory.KindPaged || !l.owes(l.isOfPages) {
			l.Looked = time.Time{}
		}
		return nil
	}
	if l.Looked.IsZero() || p.m.Revalidate && !p.cut {
		l.Looked = p.now
	}
	if !changed && len(p.rechecks) == 0 && !p.m.Revalidate && !l.Checked.IsZero() {
		return nil
	}
	c, err := p.path()
	if err != nil {
		return err
	}
	l.Checked = time.Time{}
	for _, at := range slices.Concat(c.current, c.beyond) {
		read := at.read
		if read.After(p.now) { // by a wrong clock
			read = p.now
		}
		if l.Checked.IsZero() || read.Before(l.Checked) {
			l.Checked = read
		}
	}
	return nil
}

// reread notes an archive requested again and unchanged.
func (cs *commits) reread(d *DocumentRecord, known feedhistory.Known, now time.Time) {
	d = d.clone()
	d.Known.ETag, d.Known.LastModified = known.ETag, known.LastModified
	d.Read, d.Last = now, cs.feed.Polls
	cs.hold()
	cs.held.Documents = append(cs.held.Documents, d)
}

// isAbsent reports whether a known document is gone for good.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist)
}

// Another feed may answer at the address: a parked domain, a captive portal, a new owner.
// It is set aside, until it has answered for a day or the known feed leads to it.

const (
	strangerPolls = 3
	strangerTime  = 24 * time.Hour
)

// isStranger reports whether a document is of another feed than the one known: another
// id, or without ids nothing of the head in common, no known entry, and no link to a known
// archive.
func (p *poll) isStranger(doc *feedhistory.Document) (bool, error) {
	if p.ledger.Known.URL == "" || !p.had && p.ledger.Known.Older == "" { // a feed without entries, which leads to none
		return false, nil
	}
	head, err := p.feed.Document()
	if err != nil {
		return false, nil // nothing to compare it with
	}
	if older, ok := olderOf(doc, feedhistory.KindArchived); ok && p.documents.get(older) != nil {
		return false, nil
	}
	if !door.Root.IsStranger(doc, head, p.ledger.IDs, p.ledger.Shown) {
		return false, p.documents.err
	}
	has, err := p.hasEntryOf(doc)
	return !has && !p.joins(doc, head), cmp.Or(err, p.documents.err)
}

// mostJoining is the maximum number of archives to request to find whether a document is of
// another feed.
const mostJoining = 10

// joins reports whether the chain from a document leads to a known archive, to one with a known
// entry, or to the own address of the document shown before: feeds of which each document has an id of its own show only the
// entries since the last archive was closed.
func (p *poll) joins(doc, before *feedhistory.Document) bool {
	own := map[string]bool{}
	for _, l := range before.Links {
		if url := iri.Address(l.Href); (l.Rel == "self" || l.Rel == "via") && url != p.request.url && url != p.feed.URL {
			own[url] = true
		}
	}
	client := p.m.clientFor(p.feed.URL)
	for range mostJoining {
		older, ok := olderOf(doc, feedhistory.KindArchived)
		if !ok {
			return false
		}
		if own[older] || p.documents.get(older) != nil {
			return true
		}
		var err error
		if doc, err = client.Get(p.ctx, older); err != nil {
			return false
		}
		if has, err := p.hasEntryOf(doc); has || err != nil {
			p.documents.err = cmp.Or(p.documents.err, err)
			return has
		}
	}
	return false
}

// hasEntryOf reports whether an entry of a document is known, of the feed at the address now.
func (p *poll) hasEntryOf(doc *feedhistory.Document) (bool, error) {
	ids := make([]string, len(doc.Entries))
	for i, e := range doc.Entries {
		ids[i] = e.ID
	}
	records, err := p.m.Store.Records(p.ctx, p.feed.URL, ids)
	for _, r := range records {
		if r.Copy.Digest != "" && r.FirstCommit > p.ledger.Since {
			return true, err
		}
	}
	return false, err
}

// meet decides about a subscription document that may be of another feed. It reports
// whether the document is set aside.
func (p *poll) meet(doc *feedhistory.Document, r feedhistory.Response) (aside bool, err error) {
	f := p.feed
	if doc == nil { // it has not changed
		p.answered()
		return false, nil
	}
	if past := p.ledger.Past; past != nil && slices.Contains(past.Ledger.IDs, doc.ID) && !slices.Contains(p.ledger.IDs, doc.ID) {
		p.revive(past)
		return false, nil
	}
	is, err := p.isStranger(doc)
	if err != nil || !is {
		p.answered()
		return false, err
	}
	signature := shortKey(doc.ID + "\n" + doc.Title)
	s := p.ledger.Stranger
	if s == nil || s.Digest != signature {
		s = &stranger{Digest: signature, Since: p.now}
	}
	s = &stranger{s.Digest, s.Polls + 1, s.Since}
	led := r.Requested != iri.WithoutFragment(p.request.url) || // current, say; a redirect proves nothing
		r.Permanent != "" && r.Permanent == f.NewAddress() // unless the feed has announced it
	if led || s.Polls >= strangerPolls && !p.now.Before(s.Since.Add(strangerTime)) {
		p.adopt()
		return false, nil
	}
	p.ledger.Stranger = s
	p.ledger.crossOut(isStrangerDebt)
	p.owe(debt{
		URL: r.Requested, Reason: feedhistory.ReasonForeign, Found: p.now,
		Message: "another feed answers at the address: neither its id nor any of its entries is known",
	})
	_ = p.failed(nil, &strangerError{f.URL}) // without a document, failed returns no error
	return true, nil
}

func isStrangerDebt(d debt) bool { return d.Kind == debtStranger }

// answered notes that the feed itself has answered.
func (p *poll) answered() {
	p.ledger.Stranger = nil
	p.ledger.crossOut(isStrangerDebt)
}

// adopt closes the ledger and begins an empty one, for the feed that answers now. Entries
// of the earlier one stay.
func (p *poll) adopt() {
	f := p.feed
	p.merger.window() // whose ranks keepRanks stores
	past := &generation{f.Title, f.Head, p.ledger.clone()}
	past.Ledger.Rank, past.Ledger.Stored = Rank{}, nil
	past.Ledger.crossOut(isStrangerDebt)
	past.Ledger.Past, past.Ledger.Stranger, past.Ledger.upkeep = nil, nil, upkeep{}
	if head, err := f.Document(); err == nil && head.ID != "" && !slices.Contains(past.Ledger.IDs, head.ID) {
		past.Ledger.IDs = append(slices.Clone(past.Ledger.IDs), head.ID)
	}
	*p.ledger = ledger{Past: past, Since: f.Commits, Census: past.Ledger.Census, upkeep: p.ledger.upkeep}
	f.Head = ""
}

// revive continues the ledger of the earlier feed, which answers again.
func (p *poll) revive(past *generation) {
	p.merger.window() // whose ranks keepRanks stores
	l := past.Ledger.clone()
	l.upkeep = p.ledger.upkeep
	p.feed.Title, p.feed.Head, *p.ledger = past.Title, past.Head, l
	p.feed.Ledger.Reset(false)
}
