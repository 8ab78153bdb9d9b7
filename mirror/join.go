package mirror

import (
	"slices"

	"github.com/feedhistory/feedhistory"
)

// A join is the proof that nothing lies unread between a subscription document
// and the entries of earlier polls. A subscription document that shares no entry
// with them leaves a missed window, which an archive closes if it has an entry
// of each side. The walk looks for that archive from the newest one on, even in
// archives that are known: publishers fill them although they should not
// (5005#9), or link them late (5005#15).
type join struct {
	feed   *Feed
	over   bool // no further archive is to be read for it
	beyond bool // the walk has left the chain that begins at the subscription document
}

// begin notes that the subscription document shares no entry with earlier ones.
func (j *join) begin(g Gap) {
	j.feed.addGap(g)
	j.feed.Joining = true
}

// covers reports whether the join needs archives that are known.
func (j *join) covers() bool {
	return j.feed.Joining && !j.over && !j.beyond && lastMissedWindow(j.feed.Gaps) >= 0
}

// meet notes an archive of the chain, with the result of its merge. A known one
// closes a missed window if it has entries of both sides, or of the earlier side
// and has been filled since. A new one, to which the subscription document links,
// shows that the publisher archives the entries that leave that document.
func (j *join) meet(m *mergeResult, isNew bool) {
	switch {
	case j.beyond:
		return
	case isNew && j.covers():
		j.close()
		return
	case isNew:
		j.over = true
		return
	}
	meets, filled := false, m.filled && j.covers()
	j.feed.Gaps = slices.DeleteFunc(j.feed.Gaps, func(g Gap) bool {
		if !isMissedWindow(g) {
			return false
		}
		before, after := false, false
		for _, r := range m.records {
			before = before || r.First > 0 && r.Added.Before(g.Found)
			after = after || r.First > 0 && !r.Added.Before(g.Found)
		}
		meets = meets || before
		return before && (after || filled)
	})
	j.over = j.over || meets
}

// reaches notes a subscription document. It closes the missed windows whose
// earlier side it still reaches back to.
func (j *join) reaches(doc *feedhistory.Document, records map[string]*Record) {
	j.feed.Gaps = slices.DeleteFunc(j.feed.Gaps, func(g Gap) bool {
		before := map[string]bool{}
		for id, r := range records {
			before[id] = r.First > 0 && r.Added.Before(g.Found)
		}
		return isMissedWindow(g) && len(doc.Entries) > 0 && overlaps(doc, before)
	})
}

// unchanged notes that an archive has not changed: it has nothing to join with.
func (j *join) unchanged() { j.over = true }

// close ends the join: everything between the two sides has been read.
func (j *join) close() {
	j.over = true
	gaps := j.feed.Gaps
	if i := lastMissedWindow(gaps); i >= 0 {
		j.feed.Gaps = slices.Delete(gaps, i, i+1)
	}
}

// end ends the join with the poll that has completed it. Entries of the earlier
// subscription document that are in no archive show that the publisher does not
// archive all.
func (j *join) end(unfound bool, g Gap) {
	if !j.feed.Joining {
		return
	}
	if unfound && lastMissedWindow(j.feed.Gaps) < 0 {
		j.feed.addGap(g)
	}
	j.feed.Joining = false
}

func isMissedWindow(g Gap) bool { return g.Reason == feedhistory.ReasonMissedWindow && g.From == "" }

func lastMissedWindow(gaps []Gap) int {
	for i, g := range slices.Backward(gaps) {
		if isMissedWindow(g) {
			return i
		}
	}
	return -1
}
