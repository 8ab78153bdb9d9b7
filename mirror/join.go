package mirror

import (
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A join is the proof that nothing lies unread between a subscription document
// and the entries of earlier polls. A subscription document that shares no entry
// with them leaves a missed window. To close it, the walk reads the chain from
// the newest archive on, known ones too, up to one of the earlier side:
// publishers fill archives although they should not (5005#9), or link them late
// (5005#15).
type join struct {
	feed    *Feed
	over    bool // no further archive is to be read for it
	beyond  bool // the walk has left the chain that begins at the subscription document
	renewed bool // the chain begins with an archive that is newer than the window
	empty   bool // the subscription document was empty before, so that no entry has left it
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

// meet notes an archive with the result of its merge, the number of the poll
// that read it first, and whether it is as it was then. An archive that has
// entries of the earlier side closes the window if it is new, has been filled
// since, or has entries of both sides; one that is as before, if a new one leads
// to it.
func (j *join) meet(m *mergeResult, first int64, same bool) {
	i := lastMissedWindow(j.feed.Gaps)
	if i < 0 {
		return
	}
	g := j.feed.Gaps[i]
	isNew := first >= g.Poll
	if isNew {
		j.feed.Joining, j.renewed = true, j.renewed || !j.beyond
	}
	before, after := m.sides(g.Found)
	switch {
	case j.beyond || !before && (isNew || !same):
	case same && !isNew:
		j.unchanged(first)
	case before && (isNew || after || m.filled || j.renewed):
		j.close(func(g Gap) bool {
			before, _ := m.sides(g.Found)
			return before || first < g.Poll
		})
	default:
		j.over = true
	}
}

// sides reports whether the merged document has entries that were stored before
// a time, and whether it has others.
func (m *mergeResult) sides(at time.Time) (before, after bool) {
	for _, r := range m.records {
		before = before || r.First > 0 && r.Added.Before(at)
		after = after || r.First > 0 && !r.Added.Before(at)
	}
	return before, after
}

// unchanged notes that an archive, given the poll that read it first, has not
// changed.
func (j *join) unchanged(first int64) {
	i := lastMissedWindow(j.feed.Gaps)
	switch {
	case i < 0 || j.beyond:
	case first >= j.feed.Gaps[i].Poll:
		j.renewed = true
	case j.renewed, j.empty:
		j.close(func(g Gap) bool { return first < g.Poll })
	default:
		j.over = true
	}
}

// close ends the join, and closes windows.
func (j *join) close(closes func(Gap) bool) {
	j.over = true
	j.feed.Gaps = slices.DeleteFunc(j.feed.Gaps, func(g Gap) bool { return isMissedWindow(g) && closes(g) })
}

// reaches notes a subscription document. It closes the windows whose earlier
// side it still reaches back to.
func (j *join) reaches(doc *feedhistory.Document, records map[string]*Record) {
	j.feed.Gaps = slices.DeleteFunc(j.feed.Gaps, func(g Gap) bool {
		before := map[string]bool{}
		for id, r := range records {
			before[id] = r.First > 0 && r.Added.Before(g.Found)
		}
		return isMissedWindow(g) && len(doc.Entries) > 0 && overlaps(doc, before)
	})
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
