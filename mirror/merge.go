package mirror

import (
	"cmp"
	"context"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/iri"
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
	return r.Tombstone != (TombstoneRecord{}) && r.Tombstone.precedence().Deletes(updated, rank)
}

// An effect is the effect of a document on a record.
type effect struct {
	content  bool    // the entry's content has changed
	resigned bool    // only the signatures in its addresses have: no change, but the newest are to be given out
	presumed bool    // nothing but the entry's ID was known before
	raised   bool    // the rank of its copy has
	touched  bool    // something else to store has changed
	version  *Record // an earlier version of the entry to store: the document's copy, or nil
}

// take merges a copy of the entry. If the document replaces everything, its copy counts
// in any case. A record missing from a complete document takes any copy published after
// the document.
func (r *Record) take(c Copy, e *feedhistory.Entry, from source) (did effect) {
	if r.State != Live && r.Tombstone.Rank.Seq < from.complete {
		r.Tombstone, did.touched = TombstoneRecord{}, true
	}
	back := (r.Absence != 0 && c.Rank.Seq > r.Absence || r.isVoid(from.complete)) && !from.recalled
	known := r.Copy.Digest != ""
	did.presumed = r.Copy.Digest == presumedDigest
	if c.Rank.isKept() && r.Tombstone != (TombstoneRecord{}) {
		return did // a reader does not bring back entries the publisher has deleted
	}
	if c.Digest == r.Copy.Digest && r.Copy.Source == "" {
		c.Source = "" // the publisher has shown this very copy
	}
	switch {
	case !known || from.replaces || back || c.compare(r.Copy) >= 0:
		order := c.compare(r.Copy)
		did.raised, did.touched = order > 0, did.touched || order < 0 || r.Copy.Source != c.Source || back
		if did.content = r.Copy.Digest != c.Digest; did.content {
			r.Content, r.Archived = from.contentOf(e, known), false
		} else if did.resigned = from.resigned[r.ID] != nil; did.resigned {
			r.Content = *from.resigned[r.ID]
		}
		switch r.Copy = c; {
		case !from.recalled:
			r.Absence = 0
		case !known:
			r.Absence = from.absence
		}
	case c.Digest != r.Copy.Digest:
		did.version = &Record{ID: r.ID, Copy: c, Content: from.contentOf(e, known)}
	}
	asNew := c.Digest == r.Copy.Digest || e.Updated.IsZero() || !e.Updated.Before(r.Content.Updated)
	if from.archive && asNew && !r.Archived {
		r.Archived, did.touched = true, true
	}
	return did
}

// isVoid reports whether the copy of a deleted entry was read before the complete document with
// a Seq, which did not make the entry absent because it was deleted.
func (r *Record) isVoid(complete int64) bool {
	return r.State == Deleted && r.Copy.Source == "" && !r.Copy.Rank.isKept() && r.Copy.Rank.Seq < complete
}

// bury merges a tombstone. It replaces one from before the complete document with a Seq, and
// does not bring back the copy that was deleted then.
func (r *Record) bury(t TombstoneRecord, complete int64) (touched bool) {
	old := r.Tombstone
	joined := t.precedence()
	if r.State == Live || old.Rank.Seq >= complete {
		joined = joined.Join(old.precedence())
	}
	t = TombstoneRecord{joined.When, Rank{joined.Rank.Time, joined.Rank.Seq}}
	if r.Tombstone = t; r.isVoid(complete) && r.Absence == 0 && !r.isBuried() {
		r.Absence = complete
	}
	return !t.When.Equal(old.When) || t.Rank.compare(old.Rank) != 0
}

// A source is a document whose entries are merged.
type source struct {
	doc      *feedhistory.Document
	rank     Rank
	window   bool  // the ranks of its entries are left to poll.keepRanks
	archive  bool  // it is an archive: its entries stay in it
	replaces bool  // it is complete: only its entries count
	complete int64 // the Seq of the latest complete document before it; zero if there was none

	digests *digests // of its entries

	recalled bool                               // a Recall has brought it, which says nothing about the feed's present entries
	name     string                             // the Name of that Recall
	stamp    func(*feedhistory.Entry) time.Time // see Source.Stamp
	absence  int64                              // the Absence of the entries it adds; zero means that they are live
	resigned map[string]*Content                // the contents to replace in its unchanged entries; see merger.resigned

	isBare bool // its contents are not stored
	again  bool // it is a known archive
	same   bool // with the entries it had before
	voids  bool // it replaces everything read before it, at once
}

// digests keep the Digests of the entries of a document, because several rules need them: as
// published, and of the stored copies used in their place. Nil keeps none, and computes them each
// time.
type digests struct {
	published, stored map[*feedhistory.Entry]string
	isShort           bool
}

func newDigests(isShort bool) *digests {
	return &digests{map[*feedhistory.Entry]string{}, map[*feedhistory.Entry]string{}, isShort}
}

// put gives an entry the digest of a stored copy.
func (d *digests) put(e *feedhistory.Entry, stored string) { d.stored[e] = stored }

// of returns the digest by which an entry is stored.
func (d *digests) of(e *feedhistory.Entry) string {
	if d != nil && d.stored[e] != "" {
		return d.stored[e]
	}
	return d.asPublished(e)
}

func (d *digests) asPublished(e *feedhistory.Entry) string {
	if d == nil {
		return e.Digest()
	}
	digest := d.published[e]
	if digest == "" {
		if digest = e.Digest(); d.isShort {
			digest = digest[:shortDigest]
		}
		d.published[e] = digest
	}
	return digest
}

func (s source) copyOf(e *feedhistory.Entry) Copy {
	c := Copy{At: s.precedence(e).At, Rank: s.rank, Digest: s.digests.of(e), Source: cmp.Or(e.KeptBy, s.name)}
	if e.KeptBy != "" { // the order among readers' copies must not depend on when they come
		n, _ := strconv.ParseInt(c.Digest[:15], 16, 64)
		c.At, c.Rank = time.Time{}, Rank{Time: e.Changed(), Seq: -2 - n}
	}
	return c
}

// precedence returns the source's copy of an entry as the duplicate rules see it.
func (s source) precedence(e *feedhistory.Entry) feedtime.Copy {
	rank := s.rank.precedence()
	rank.Kept = e.KeptBy != ""
	updated := e.Updated
	if s.stamp != nil {
		updated = s.stamp(e)
	}
	return feedtime.CopyOf(updated, rank)
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
	raised  []*Record          // those of which only the rank has risen, of a window
	records map[string]*Record // the records of all entries and tombstones in the document, as they are now, but for the settled
	settled map[string]settledEntry
	entries map[string]bool  // the IDs of the entries
	fresh   bool             // the document brought something new
	refused int              // the number of entries and tombstones that did not fit
	known   map[string]bool  // the IDs in the document stored before
	shown   map[string]bool  // those of them which a subscription document had shown
	before  map[string]State // the States that were stored
	still   map[string]bool  // those of them whose times are as they were stored
	source  source
}

func newMergeResult(s source, records map[string]*Record, settled map[string]settledEntry, entries, keep int) *mergeResult {
	flags := func() map[string]bool { return make(map[string]bool, entries) }
	m := &mergeResult{
		records: records, settled: settled, source: s, change: Commit{Keep: keep},
		entries: flags(), known: flags(), shown: flags(), still: flags(), before: make(map[string]State, entries),
	}
	for id, e := range settled {
		m.entries[id], m.known[id], m.shown[id], m.before[id], m.still[id] = true, true, true, Live, !e.Time().IsZero()
	}
	return m
}

// isShown reports whether the stored copy of an entry is a subscription document's.
func (r *Record) isShown() bool { return r.Copy.Digest != "" && r.Copy.Rank.isOfSubscription() }

// brings reports whether the document has an entry never known before.
func (m *mergeResult) brings() bool {
	return slices.Contains(slices.Collect(maps.Values(m.known)), false)
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
	shown     *window         // see merger.window
	digests   *digests        // of the document being merged
	program   *program        // nil if the entries are in a Store

	left map[string]*Record // the entries of the window missing from the subscription document being merged
}

// merge merges a source into the store's records, and counts the changes.
func (mg *merger) merge(s source) (*mergeResult, error) {
	if complete := mg.feed.Ledger.l.Complete; s.rank.Seq > complete && !s.recalled {
		s.complete = complete
	}
	s.digests, s.isBare = mg.digests, mg.program != nil
	entries := s.entries()
	mg.renameDeleted(s.doc)
	settled := mg.settled(s, entries)
	ids := make([]string, 0, len(entries)-len(settled)+len(s.doc.Deleted))
	for _, e := range entries {
		if _, ok := settled[e.ID]; !ok {
			ids = append(ids, e.ID)
		}
	}
	for _, t := range s.doc.Deleted {
		ids = append(ids, t.Ref)
	}
	records, err := mg.recordsAnd(s, entries, ids)
	if err != nil {
		return nil, err
	}
	mg.program.presume(s, entries, records)
	if joined, err := mg.joinPosts(&s, records, settled); err != nil {
		return nil, err
	} else if joined {
		return mg.merge(s)
	}
	all := entries
	entries = slices.DeleteFunc(slices.Clone(all), func(e *feedhistory.Entry) bool { _, ok := settled[e.ID]; return ok })
	if err := mg.ignoreCounters(&s, entries, records); err != nil {
		return nil, err
	}
	m := newMergeResult(s, records, settled, len(all), mg.allowance.keep)
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
	stored := make(map[string]bool, len(records))
	for id := range records {
		stored[id] = true
	}
	effects := m.begin(s, mg.feed.URL, ids)
	m.noteEntries(entries)
	if s.resigned, err = mg.resigned(entries, records); err != nil {
		return nil, err
	}
	if err := mg.takeAll(m, s, entries, effects, stored); err != nil {
		return nil, err
	}
	mg.buryAll(m, s, deleted, effects, stored)
	for _, id := range ids {
		if did := effects[id]; did != nil {
			delete(effects, id)
			mg.settle(m, records[id], m.before[id], did)
		}
	}
	if !s.window {
		m.change.Touch, m.raised = append(m.change.Touch, m.raised...), nil
	}
	mg.allowance.entering = 0
	m.change.changes = mg.program.read(s, entries, m.known)
	return m, mg.replaceUnnamed(m, unnamed)
}

// begin returns the effects of a document on the records of the IDs, before it is merged.
func (m *mergeResult) begin(s source, feed string, ids []string) map[string]*effect {
	effects := make(map[string]*effect, len(ids))
	for _, id := range ids {
		r := m.records[id]
		if r == nil {
			r = &Record{Feed: feed, ID: id, State: Unseen}
			m.records[id] = r
		}
		m.known[id], m.shown[id] = r.Copy.Digest != "", r.isShown()
		if effects[id] == nil {
			m.before[id], effects[id] = r.State, &effect{}
		}
		if s.replaces {
			effects[id].touched = effects[id].touched || r.Tombstone != (TombstoneRecord{})
			r.Tombstone = TombstoneRecord{}
		}
	}
	return effects
}

// noteEntries notes the entries, and those whose times are as they were stored.
func (m *mergeResult) noteEntries(entries []*feedhistory.Entry) {
	for _, e := range entries {
		m.entries[e.ID] = true
		m.still[e.ID] = m.records[e.ID].Time().Equal(e.Time())
	}
}

// buryAll takes tombstones. One of an entry never seen needs room for itself.
func (mg *merger) buryAll(m *mergeResult, s source, deleted []feedhistory.Tombstone, effects map[string]*effect, stored map[string]bool) {
	for _, t := range deleted {
		r := m.records[t.Ref]
		if !stored[t.Ref] && r.Copy.Digest == "" {
			if !mg.allowance.reserveTombstone(t.Ref) {
				m.refused++
				continue
			}
			stored[t.Ref] = true
		}
		touched := r.bury(TombstoneRecord{When: t.When, Rank: s.rank}, s.complete)
		effects[t.Ref].touched = effects[t.Ref].touched || touched
	}
}

// records returns the stored records of entries, with the ranks that they have; of a feed without
// a commit there are none.
func (mg *merger) records(ids []string) (map[string]*Record, error) {
	mg.window() // as it was before this document
	if mg.feed.Commits == 0 || len(ids) == 0 {
		return map[string]*Record{}, nil
	}
	records, err := mg.store.Records(mg.ctx, mg.feed.URL, ids)
	for _, r := range records {
		mg.raise(r)
	}
	return records, err
}

// counters are the elements and attributes counting comments and views, and the parameter that
// podcast hosts renew in the address of each file.
var counters = regexp.MustCompile(`<[\w.-]+:(?:comments|total|statistics|starRating)\b[^<>]*(?:/>|>\s*\d*\s*</[\w.-]+:\w+>)|\s[\w.-]+:(?:count|updated)="[^"]*"|[?&;]updated=\d+`)

// ignoreCounters leaves entries as they are stored changed in nothing but their numbers of
// comments and views: a history has no version for each.
func (mg *merger) ignoreCounters(s *source, entries []*feedhistory.Entry, records map[string]*Record) error {
	if mg.program != nil { // the contents are not known
		return nil
	}
	counting, data := map[string]*Record{}, map[string]string{}
	for _, e := range entries {
		r := records[e.ID]
		if r == nil || r.Copy.Digest == "" || r.Copy.Digest == s.digests.of(e) {
			continue
		}
		if text := contentOf(e).Data; counters.MatchString(text) {
			counting[e.ID], data[e.ID] = r, text
		}
	}
	stored, err := mg.contents(counting)
	for _, e := range entries {
		if text, ok := data[e.ID]; ok && counters.ReplaceAllString(text, "") == counters.ReplaceAllString(stored[e.ID], "") {
			s.digests.put(e, counting[e.ID].Copy.Digest)
		}
	}
	return err
}

// resigned returns the contents of the entries that are stored with other signatures in
// their addresses, by ID: a download needs the newest.
func (mg *merger) resigned(entries []*feedhistory.Entry, records map[string]*Record) (map[string]*Content, error) {
	if mg.program != nil {
		return nil, nil
	}
	shown, signed := map[string]*Content{}, map[string]*Record{}
	for _, e := range entries {
		_, isSigned, err := signedText(e)
		if r := records[e.ID]; err == nil && isSigned && r.Copy.Digest == e.Digest() {
			c := contentOf(e)
			shown[e.ID], signed[e.ID] = &c, r
		}
	}
	stored, err := mg.contents(signed)
	for id, data := range stored {
		if shown[id].Data == data {
			delete(shown, id)
		}
	}
	return shown, err
}

// signedText returns the text of an entry, and whether its addresses have signatures.
func signedText(e *feedhistory.Entry) (text string, isSigned bool, err error) {
	element, err := door.Root.Element(e)
	return element.Raw, iri.Unsigned(element.Raw) != element.Raw, err
}

// contents returns the Data of the contents of entries as they are stored, by ID.
func (mg *merger) contents(of map[string]*Record) (map[string]string, error) {
	if len(of) == 0 {
		return nil, nil
	}
	after, data := int64(math.MaxInt64), make(map[string]string, len(of))
	for _, r := range of {
		after = min(after, r.LastCommit-1)
	}
	for r, err := range mg.store.Entries(mg.ctx, Query{Feed: mg.feed.URL, AfterCommit: &after, States: AllStates}) {
		if err != nil {
			return nil, err
		}
		if of[r.ID] != nil {
			data[r.ID] = r.Content.Data
		}
		if len(data) == len(of) {
			break
		}
	}
	return data, nil
}

// takeAll merges the entries of a document into their records. If the new ones do not
// all fit, none of them is taken: the store's entries then stay the oldest part, so a
// later poll can tell whether entries have come and gone.
func (mg *merger) takeAll(m *mergeResult, s source, entries []*feedhistory.Entry, effects map[string]*effect, stored map[string]bool) error {
	usage, isFull := mg.feed.Ledger.l.Usage, mg.allowance.full
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
			did.touched = did.touched || was.touched
			*effects[e.ID] = did
		}
		return refused, nil
	}
	if refused, err := take(); err != nil || !refused || isFull {
		return err
	}
	mg.feed.Ledger.l.Usage, mg.allowance.entering, m.refused = usage, 0, 0 // again, with the quota used up
	_, err := take()
	return err
}

// settle adds the record of an entry or a tombstone of the document to the change.
func (mg *merger) settle(m *mergeResult, r *Record, before State, did *effect) {
	r.State = r.state()
	if did.version != nil && mg.allowance.keep > 0 {
		m.change.Versions = append(m.change.Versions, did.version)
	}
	isChange := r.State != before || did.content && !did.presumed
	if isChange {
		mg.count(r, before)
		m.fresh = true
	}
	if isChange || did.resigned {
		mg.feed.changed(mg.now)
		r.LastCommit, r.Changed = mg.feed.next(), mg.feed.Changed
	}
	if r.FirstCommit == 0 && r.Copy.Digest != "" {
		r.FirstCommit, r.Added = mg.feed.next(), mg.now
	}
	switch {
	case did.content || did.resigned:
		m.change.Put = append(m.change.Put, r)
	case did.touched || r.State != before:
		m.change.Touch = append(m.change.Touch, r)
	case did.raised:
		m.raised = append(m.raised, r)
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
