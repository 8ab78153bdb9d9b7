package mirror

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/precedence"
)

// This file applies the duplicate rules (5005#20, 5005#21) and tombstones (RFC 6721
// §2) to documents from many polls in any order. The result is the same as
// feedhistory.Merge's for the documents of one walk.

// state returns the State following from a record's copy, tombstone and absence.
func (r *Record) state() State {
	switch {
	case r.Copy.Digest == "":
		return Unseen
	case r.Absence != 0:
		return Absent
	case r.isBuried():
		return Deleted
	}
	return Live
}

// isBuried reports whether a tombstone deletes the copy.
func (r *Record) isBuried() bool {
	rank := r.Copy.Rank.precedence()
	rank.Kept = r.Copy.Rank.isKept()
	updated := r.Content.Updated
	if !updated.IsZero() {
		updated = r.Copy.At // the entry's own time, unless its source knew better
	}
	return !r.Tombstone.IsZero() && r.Tombstone.precedence().Deletes(updated, rank)
}

// An effect is the effect of a document on a record.
type effect struct {
	content bool     // the entry's content has changed
	touched bool     // something else to store has changed
	version *Version // an earlier version of the entry to store: the document's copy, or nil
}

// take merges a copy of the entry. If the document replaces everything, its copy counts
// in any case. A record missing from a complete document takes any copy published after
// the document.
func (r *Record) take(c Copy, e *feedhistory.Entry, from source) (did effect) {
	back := r.Absence != 0 && c.Rank.Seq > r.Absence && !from.recalled
	known := r.Copy.Digest != ""
	if c.Rank.isKept() && !r.Tombstone.IsZero() {
		return did // a reader does not bring back entries the publisher has deleted
	}
	if c.Digest == r.Copy.Digest && r.Copy.Source == "" {
		c.Source = "" // the publisher has shown this very copy
	}
	switch {
	case !known || from.replaces || back || c.compare(r.Copy) >= 0:
		did.touched = r.Copy.compare(c) != 0 || r.Copy.Source != c.Source || back
		if did.content = r.Copy.Digest != c.Digest; did.content {
			r.Content, r.Archived = contentOf(e), false
		}
		switch r.Copy = c; {
		case !from.recalled:
			r.Absence = 0
		case !known:
			r.Absence = from.absence
		}
	case c.Digest != r.Copy.Digest:
		did.version = &Version{ID: r.ID, Copy: c, Content: contentOf(e)}
	}
	asNew := c.Digest == r.Copy.Digest || e.Updated.IsZero() || !e.Updated.Before(r.Content.Updated)
	if from.archive && asNew && !r.Archived {
		r.Archived, did.touched = true, true
	}
	return did
}

// bury merges a tombstone.
func (r *Record) bury(t TombstoneRecord) (touched bool) {
	old := r.Tombstone
	joined := t.precedence().Join(old.precedence())
	t = TombstoneRecord{joined.When, Rank{joined.Rank.Time, joined.Rank.Seq}}
	r.Tombstone = t
	return !t.When.Equal(old.When) || t.Rank.compare(old.Rank) != 0
}

// A source is a document whose entries are merged.
type source struct {
	doc      *feedhistory.Document
	rank     Rank
	archive  bool // it is an archive: its entries stay in it
	replaces bool // it is complete: only its entries count

	recalled bool                               // a Recall has brought it, which says nothing about the feed's present entries
	name     string                             // the Name of that Recall
	stamp    func(*feedhistory.Entry) time.Time // see Source.Stamp
	absence  int64                              // the Absence of the entries it adds; zero means that they are live
}

func (s source) copyOf(e *feedhistory.Entry) Copy {
	c := Copy{At: s.precedence(e).At, Rank: s.rank, Digest: e.Digest(), Source: cmp.Or(e.KeptBy, s.name)}
	if e.KeptBy != "" { // the order among readers' copies must not depend on when they come
		n, _ := strconv.ParseInt(c.Digest[:15], 16, 64)
		c.At, c.Rank = time.Time{}, Rank{Time: e.Changed(), Seq: -2 - n}
	}
	return c
}

// precedence returns the source's copy of an entry as the duplicate rules see it.
func (s source) precedence(e *feedhistory.Entry) precedence.Copy {
	rank := s.rank.precedence()
	rank.Kept = e.KeptBy != ""
	updated := e.Updated
	if s.stamp != nil {
		updated = s.stamp(e)
	}
	return precedence.CopyOf(updated, rank)
}

// entries returns the document's entries, each once. Of several copies it
// returns the most recently updated one, else the first.
func (s source) entries() []*feedhistory.Entry {
	index := make(map[string]int, len(s.doc.Entries))
	list := make([]*feedhistory.Entry, 0, len(s.doc.Entries))
	for _, e := range s.doc.Entries {
		if i, ok := index[e.ID]; !ok {
			index[e.ID] = len(list)
			list = append(list, e)
		} else if s.precedence(e).Compare(s.precedence(list[i])) > 0 {
			list[i] = e
		}
	}
	return list
}

// A mergeResult is the outcome of merging one document.
type mergeResult struct {
	change  Commit
	records map[string]*Record // the records of all entries in the document, as they are now
	fresh   bool               // the document brought something new
	filled  bool               // the document, an archive, has an entry no archive had
	refused int                // the number of entries and tombstones that did not fit
	known   map[string]bool    // the IDs in the document stored before
}

// A merger merges documents into the records of a feed's entries.
type merger struct {
	ctx       context.Context
	store     Store
	feed      *Feed
	from      int64 // the feed's Commits when the poll began
	now       time.Time
	changes   *Report
	allowance *allowance
	taken     map[string]bool // entries without the publisher's ids that have come under these in this poll
}

// merge merges a source into the store's records, and counts the changes.
func (mg *merger) merge(s source) (*mergeResult, error) {
	entries := s.entries()
	ids := make([]string, 0, len(entries)+len(s.doc.Deleted))
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	for _, t := range s.doc.Deleted {
		ids = append(ids, t.Ref)
	}
	records, err := mg.store.Records(mg.ctx, mg.feed.URL, ids)
	if err != nil {
		return nil, err
	}
	m := &mergeResult{records: records, known: make(map[string]bool, len(records)), change: Commit{Keep: mg.allowance.keep}}
	erased := func(id string) bool { return records[id] != nil && records[id].State == Erased }
	entries = slices.DeleteFunc(entries, func(e *feedhistory.Entry) bool { return erased(e.ID) })
	deleted := slices.DeleteFunc(slices.Clone(s.doc.Deleted), func(t feedhistory.Tombstone) bool { return erased(t.Ref) })
	ids = slices.DeleteFunc(ids, func(id string) bool {
		m.known[id] = erased(id)
		return m.known[id]
	})
	unnamed, err := mg.unnamed(entries, records)
	if err != nil {
		return nil, err
	}
	before := make(map[string]State, len(ids))
	effects := make(map[string]*effect, len(ids))
	stored := make(map[string]bool, len(records))
	for id := range records {
		stored[id] = true
	}
	for _, id := range ids {
		r := records[id]
		if r == nil {
			r = &Record{Feed: mg.feed.URL, ID: id, State: Unseen}
			records[id] = r
		}
		if m.known[id] = r.Copy.Digest != ""; effects[id] == nil {
			before[id], effects[id] = r.State, &effect{}
		}
		if s.replaces {
			effects[id].touched = effects[id].touched || !r.Tombstone.IsZero()
			r.Tombstone = TombstoneRecord{}
		}
	}
	if err := mg.takeAll(m, s, entries, effects, stored); err != nil {
		return nil, err
	}
	for _, t := range deleted {
		r := records[t.Ref]
		if !stored[t.Ref] && r.Copy.Digest == "" {
			if !mg.allowance.reserveTombstone(t.Ref) {
				m.refused++
				continue
			}
			stored[t.Ref] = true
		}
		touched := r.bury(TombstoneRecord{When: t.When, Rank: s.rank})
		effects[t.Ref].touched = effects[t.Ref].touched || touched
	}
	for _, id := range ids {
		if did := effects[id]; did != nil {
			delete(effects, id)
			mg.settle(m, records[id], before[id], did)
		}
	}
	mg.allowance.entering = 0
	return m, mg.replaceUnnamed(m, unnamed)
}

// takeAll merges the entries of a document into their records. If the new ones do not
// all fit, none of them is taken: the store's entries then stay the oldest part, so a
// later poll can tell whether entries have come and gone.
func (mg *merger) takeAll(m *mergeResult, s source, entries []*feedhistory.Entry, effects map[string]*effect, stored map[string]bool) error {
	usage, isFull := mg.feed.Usage, mg.allowance.full
	type moment struct {
		record  Record
		touched bool
	}
	before := make(map[string]moment, len(entries))
	for _, e := range entries {
		before[e.ID] = moment{*m.records[e.ID], effects[e.ID].touched}
	}
	take := func() (refused bool, err error) {
		for _, e := range entries {
			r, was := m.records[e.ID], before[e.ID]
			*r = was.record
			did := r.take(s.copyOf(e), e, s)
			fits, err := mg.allowance.admit(&was.record, r, &did, stored[e.ID])
			if err != nil {
				return false, err
			}
			if !fits {
				*r, did = was.record, effect{}
				m.refused++
				refused = refused || r.Copy.Digest == ""
			}
			m.filled = m.filled || r.Archived && !was.record.Archived
			did.touched = did.touched || was.touched
			*effects[e.ID] = did
		}
		return refused, nil
	}
	if refused, err := take(); err != nil || !refused || isFull {
		return err
	}
	mg.feed.Usage, mg.allowance.entering, m.refused = usage, 0, 0 // again, with the quota used up
	_, err := take()
	return err
}

// settle adds the record of an entry or a tombstone of the document to the change.
func (mg *merger) settle(m *mergeResult, r *Record, before State, did *effect) {
	r.State = r.state()
	if did.version != nil && mg.allowance.keep > 0 {
		m.change.Versions = append(m.change.Versions, did.version)
	}
	if r.State != before || did.content {
		mg.count(r, before)
		r.LastCommit, r.Changed = mg.feed.next(), mg.feed.Changed
		m.fresh = true
	}
	if r.FirstCommit == 0 && r.Copy.Digest != "" {
		r.FirstCommit, r.Added = mg.feed.next(), mg.now
	}
	switch {
	case did.content:
		m.change.Put = append(m.change.Put, r)
	case did.touched || r.State != before:
		m.change.Touch = append(m.change.Touch, r)
	}
}

// count updates the counters for a record whose content or state has changed.
func (mg *merger) count(r *Record, before State) {
	f, c := mg.feed, mg.changes
	added := r.FirstCommit == 0 || r.FirstCommit > mg.from // in this poll
	switch {
	case r.State == Live && before != Live:
		f.Entries++
		if before != Unseen {
			f.Deleted--
		}
		c.Added++
	case r.State != Live && before == Live:
		f.Entries--
		f.Deleted++
		if added {
			c.Added--
		} else {
			c.Deleted++
		}
	case r.State == Live && r.LastCommit <= mg.from: // not counted in this poll yet
		c.Changed++
	case r.State != Live && before == Unseen: // deleted before it ever came
		f.Deleted++
	}
	f.changed(mg.now)
}
