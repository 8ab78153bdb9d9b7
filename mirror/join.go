package mirror

import (
	"slices"

	"github.com/feedhistory/feedhistory"
)

// A join is the proof that nothing lies unread between a subscription document and the
// entries of earlier polls. A subscription document with no entry in common with them
// leaves a missed window, and the walk goes on until an archive joins the two sides:
// through new archives, and into the newest of the known ones, which publishers fill
// although they should not (5005#9), or link late (5005#15).
type join struct {
	feed   *Feed
	state  joinState
	again  string // the known archive to request again, to which new archives lead
	beyond bool   // the walk has left the chain from the subscription document
	forks  bool   // the chain goes on elsewhere, too, so all its archives must be read again
	fresh  bool   // the chain has archives unknown when the window was found
}

// A joinState is how far a join has come.
type joinState uint8

const (
	joinNeedless joinState = iota
	joinWanted             // the walk looks for a joining archive
	joinOver               // no further archive is to be read for it
)

// want makes the walk look for a joining archive.
func (j *join) want() {
	j.feed.Joining = true
	j.state = max(j.state, joinWanted)
}

// begin notes a subscription document with no entry in common with earlier ones.
func (j *join) begin(g GapRecord) {
	j.feed.addGap(g)
	j.want()
	j.fork(nil)
}

// beginAnew notes that the feed has become an archived one. If all its archives are yet to
// be read, they have everything a window may have lacked; otherwise the newest of the
// known ones is to be read again, for all windows at once.
func (j *join) beginAnew() {
	if first := slices.IndexFunc(j.feed.Gaps, isMissedWindow); first >= 0 && j.feed.Documents > 0 {
		widest := j.feed.Gaps[first]
		widest.Anew = true
		j.feed.Gaps = append(slices.DeleteFunc(j.feed.Gaps, isMissedWindow), widest)
		j.want()
		return
	}
	j.feed.Gaps = slices.DeleteFunc(j.feed.Gaps, isMissedWindow)
}

// covers reports whether the join needs known archives.
func (j *join) covers() bool {
	return j.state == joinWanted && !j.beyond && lastMissedWindow(j.feed.Gaps) >= 0
}

// meet notes an archive of the chain, with the result of its merge and the first poll
// to read it.
func (j *join) meet(m *mergeResult, first int64) {
	i := lastMissedWindow(j.feed.Gaps)
	if i < 0 {
		return
	}
	before, after := false, false
	for _, r := range m.records {
		before = before || r.FirstCommit > 0 && r.Added.Before(j.feed.Gaps[i].Found)
		after = after || r.FirstCommit > 0 && !r.Added.Before(j.feed.Gaps[i].Found)
	}
	if first < j.feed.Gaps[i].Poll && !before {
		return // all of its ids have changed: those of older ones may have, too
	}
	if j.pass(first, before, after || m.filled) && before {
		j.state = joinOver
	}
}

// unchanged notes an unchanged archive of the chain.
func (j *join) unchanged(first int64) {
	if i := lastMissedWindow(j.feed.Gaps); i >= 0 && j.feed.Gaps[i].Anew && j.state != joinOver && !j.beyond {
		j.close()
	}
	if j.pass(first, false, false) {
		j.state = joinOver
	}
}

// pass notes an archive. A new one joins if it has entries of the earlier side. A known
// one joins if new ones lead to it, or if it has entries of the earlier side and has been
// filled since. It reports whether the archive is a known one and does not join.
func (j *join) pass(first int64, before, filled bool) bool {
	i := lastMissedWindow(j.feed.Gaps)
	if j.beyond || j.state == joinOver || i < 0 {
		return false
	}
	if isNew := first >= j.feed.Gaps[i].Poll; isNew {
		j.fresh = true
		j.want()
		if before {
			j.close()
		}
		return false
	}
	if j.fresh || before && filled {
		j.close()
		return false
	}
	return true
}

// bottom notes the end of the chain: all existing archives have been read.
func (j *join) bottom() {
	if j.covers() && j.fresh {
		j.close()
	}
}

// joins reports whether the archives of the current chain, newest first, have joined a
// window since it was found: new ones, down to a known one read again. If the known one
// is yet to be read again, unread is its URL.
func joins(g GapRecord, chain []step) (joined bool, unread string) {
	i := slices.IndexFunc(chain, func(at step) bool {
		return at.first < g.Poll && (!g.Deep || at.read.Before(g.Found))
	})
	switch {
	case i < 0:
		return len(chain) > 0 && !slices.ContainsFunc(chain, func(at step) bool { return len(at.further) > 0 }), ""
	case chain[i].read.Before(g.Found):
		return false, chain[i].url
	}
	return i > 0, ""
}

// resume chooses the known archive needed by a missed window, if an earlier poll was
// interrupted before it.
func (j *join) resume(chain []step) {
	for _, g := range j.feed.Gaps {
		if !isMissedWindow(g) {
			continue
		}
		if _, unread := joins(g, chain); unread != "" {
			j.again = unread
		}
	}
}

// reaches notes a subscription document. It closes the missed windows whose
// earlier side it still reaches back to.
func (j *join) reaches(doc *feedhistory.Document, records map[string]*Record) {
	j.feed.Gaps = slices.DeleteFunc(j.feed.Gaps, func(g GapRecord) bool {
		before := map[string]bool{}
		for id, r := range records {
			before[id] = r.FirstCommit > 0 && r.Added.Before(g.Found)
		}
		return isMissedWindow(g) && len(doc.Entries) > 0 && overlaps(doc, before)
	})
}

// fork notes a document of the chain with links beyond it.
func (j *join) fork(further []string) {
	if j.forks = j.forks || len(further) > 0; !j.forks || j.state == joinOver {
		return
	}
	if i := lastMissedWindow(j.feed.Gaps); i >= 0 {
		j.feed.Gaps[i].Deep = true
	}
}

// close ends the join: everything between the two sides has been read.
func (j *join) close() {
	j.state = joinOver
	gaps := j.feed.Gaps
	if i := lastMissedWindow(gaps); i >= 0 && !gaps[i].Deep {
		j.feed.Gaps = slices.Delete(gaps, i, i+1)
	}
}

// end ends the join with the poll that has completed it. Entries of the earlier
// subscription document in no archive prove that the publisher does not archive all.
func (j *join) end(unfound bool, g GapRecord) {
	if !j.feed.Joining {
		return
	}
	if unfound && lastMissedWindow(j.feed.Gaps) < 0 {
		j.feed.addGap(g)
	}
	j.feed.Joining = false
}

func isMissedWindow(g GapRecord) bool {
	return g.Reason == feedhistory.ReasonMissedWindow && g.From == ""
}

func lastMissedWindow(gaps []GapRecord) int {
	for i, g := range slices.Backward(gaps) {
		if isMissedWindow(g) {
			return i
		}
	}
	return -1
}
