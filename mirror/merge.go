package mirror

import (
	"cmp"
	"context"
	"iter"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
)

// A merge applies the duplicate rules (5005#20, 5005#21) and tombstones (RFC 6721 §2) to
// documents from many polls in any order; Record.take has them for one entry. The result is the
// same as feedhistory.Merge's for the documents of one walk.

// A source is a document whose entries are merged.
type source struct {
	doc      *feedhistory.Document
	rank     Rank
	window   bool  // the ranks of its entries are left to readings.keepRanks
	archive  bool  // it is an archive: its entries stay in it
	replaces bool  // it is complete: only its entries count
	complete int64 // the Seq of the latest complete document before it; zero if there was none

	digests *digests // of its entries

	recalled bool                               // a Recall has brought it, which says nothing about the feed's present entries
	name     string                             // the Name of that Recall
	stamp    func(*feedhistory.Entry) time.Time // see Source.Stamp
	absence  int64                              // the Absence of the entries it adds; zero means that they are live

	isBare bool // its contents are not stored
	again  bool // it is a known archive
	same   bool // with the entries it had before
	voids  bool // it replaces everything read before it, at once
}

func (s source) copyOf(e *feedhistory.Entry, digest string) Copy {
	c := Copy{At: s.precedence(e).At, Rank: s.rank, Digest: digest, Source: cmp.Or(e.KeptBy, s.name)}
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

// An item is an entry in a document, or one with a tombstone there, on its way into its record.
type item struct {
	id      string
	entry   *feedhistory.Entry // nil if there is a tombstone alone, or the entry was erased
	digest  *digest            // of the entry
	settled *shownEntry        // what the ledger knows of its row, so the store is not asked for it; nil if it is
	record  *Record            // as it is now; nil if it is settled, or nothing is stored yet

	stored   bool      // it had a record before
	before   State     // the record's then; Unseen if there was none
	at       time.Time // the record's then
	shown    bool      // a subscription document had shown it
	resigned bool      // it is stored with other signatures in its addresses
	did      effect    // what the document changes
	made     *Content  // see content; nil until it is needed
}

// isKnown reports whether a copy of it was stored, or erased.
func (it *item) isKnown() bool { return it.before != Unseen }

// isStill reports whether the time of the entry is as it was stored.
func (it *item) isStill() bool {
	switch {
	case it.entry == nil:
		return false
	case it.settled != nil:
		return !it.entry.Time().IsZero()
	}
	return it.at.Equal(it.entry.Time())
}

// content returns the content of the entry to store. Of a Poll, the Ledger remembers more of a known
// one.
func (it *item) content(s source, isKnown bool) Content {
	if it.made == nil {
		c := s.contentOf(it.entry, isKnown)
		it.made = &c
	}
	return *it.made
}

// isErased reports whether the record says that the entry must not come again.
func (it *item) isErased() bool { return it.record != nil && it.record.State == Erased }

// isNew reports whether nothing is stored of the item's entry.
func (it *item) isNew() bool { return it.settled == nil && it.record == nil }

// A mergeResult is the outcome of merging one document.
type mergeResult struct {
	source  source
	change  Commit
	items   []*item          // of the entries in their order, then of those with a tombstone alone
	entries []*item          // the former
	at      map[string]*item // these and the others, by ID
	raised  []*Record        // of a window, whose ranks alone have risen
	others  []*item          // of entries now under other IDs; see merger.replaceUnnamed
	fresh   bool             // the document brought something new
	refused int              // the number of entries and tombstones that did not fit
}

// newMergeResult returns the items of a document. Of several copies of an entry, the most recently
// updated one counts, else the first.
func newMergeResult(s source, keep int) *mergeResult {
	most := len(s.doc.Entries) + len(s.doc.Deleted)
	m := &mergeResult{source: s, change: Commit{Keep: keep}, at: make(map[string]*item, most)}
	all := make([]item, 0, most) // in one piece
	add := func(it item) {
		all = append(all, it)
		m.items, m.at[it.id] = append(m.items, &all[len(all)-1]), &all[len(all)-1]
	}
	for _, e := range s.doc.Entries {
		if it := m.at[e.ID]; it == nil {
			add(item{id: e.ID, entry: e, before: Unseen})
		} else if s.precedence(e).Compare(s.precedence(it.entry)) > 0 {
			it.entry = e
		}
	}
	m.entries = m.items[:len(m.items):len(m.items)]
	for _, it := range m.entries {
		it.digest = s.digests.of(it.entry)
	}
	for _, t := range s.doc.Deleted {
		if m.at[t.Ref] == nil {
			add(item{id: t.Ref, before: Unseen})
		}
	}
	return m
}

// record returns the record of an item, as it is now; nil if there is none.
func (m *mergeResult) record(id string) *Record {
	if it := m.at[id]; it != nil {
		return it.record
	}
	return nil
}

// records yields the records of all items, as they are now, but for the settled.
func (m *mergeResult) records() iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		for _, it := range slices.Concat(m.items, m.others) {
			if it.record != nil && !yield(it.record) {
				return
			}
		}
	}
}

// has reports whether the document has an entry, and not only its tombstone.
func (m *mergeResult) has(id string) bool { return m.at[id] != nil && m.at[id].entry != nil }

// knows reports whether an entry in the document was stored before.
func (m *mergeResult) knows(id string) bool { return m.at[id] != nil && m.at[id].isKnown() }

// hasSettled reports whether the document shows an entry just as the one before did.
func (m *mergeResult) hasSettled() bool {
	return slices.ContainsFunc(m.entries, func(it *item) bool { return it.settled != nil })
}

// hasFrom reports whether an entry in the document, settled ones aside, was stored by a commit up
// to a number, or may have been.
func (m *mergeResult) hasFrom(commit int64) bool {
	return slices.ContainsFunc(m.entries, func(it *item) bool {
		return it.settled == nil && it.isKnown() && (it.record.FirstCommit <= commit || it.record.FirstCommit == presumedCommit)
	})
}

// brings reports whether the document has an entry never known before.
func (m *mergeResult) brings() bool {
	return slices.ContainsFunc(m.items, func(it *item) bool { return !it.isKnown() })
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
	mg.renameDeleted(s.doc)
	m := newMergeResult(s, mg.allowance.keep)
	if err := mg.find(m); err != nil {
		return nil, err
	}
	if joined, err := mg.joinPosts(m); err != nil {
		return nil, err
	} else if joined {
		return mg.merge(s)
	}
	if err := mg.ignoreCounters(m); err != nil {
		return nil, err
	}
	unnamed, err := mg.unnamed(m)
	if err != nil {
		return nil, err
	}
	m.begin(mg.feed.URL)
	if err := mg.findResigned(m); err != nil {
		return nil, err
	}
	if err := mg.takeAll(m); err != nil {
		return nil, err
	}
	mg.buryAll(m)
	for _, it := range m.items {
		if it.settled == nil && !it.isErased() {
			mg.settle(m, it)
		}
	}
	if !s.window {
		m.change.Touch, m.raised = append(m.change.Touch, m.raised...), nil
	}
	mg.allowance.entering = 0
	m.change.changes = mg.program.read(m)
	return m, mg.replaceUnnamed(m, unnamed)
}

// find finds the records of the items, but for the settled.
func (mg *merger) find(m *mergeResult) error {
	mg.findSettled(m)
	ids := make([]string, 0, len(m.items))
	for _, it := range m.items {
		if it.settled == nil {
			ids = append(ids, it.id)
		}
	}
	records, err := mg.recordsAnd(m, ids)
	if err != nil {
		return err
	}
	for id, r := range records {
		m.at[id].record = r
	}
	mg.program.presume(m)
	for _, it := range m.items {
		if it.isErased() {
			it.entry, it.before = nil, Erased
		}
	}
	return nil
}

// begin gives each item a record, and notes what is stored before the document is merged.
func (m *mergeResult) begin(feed string) {
	for _, it := range m.items {
		switch {
		case it.settled != nil:
			it.shown, it.before = true, Live
			continue
		case it.isErased():
			continue
		case it.record == nil:
			it.record = &Record{Feed: feed, ID: it.id, State: Unseen}
		default:
			it.stored = true
		}
		r := it.record
		it.shown, it.before, it.at = r.isShown(), r.State, r.Time()
		if m.source.replaces {
			it.did.touched = r.Tombstone != (TombstoneRecord{})
			r.Tombstone = TombstoneRecord{}
		}
	}
}

// buryAll takes tombstones. One of an entry never seen needs room for itself, if there is a Quota.
func (mg *merger) buryAll(m *mergeResult) {
	for _, t := range m.source.doc.Deleted {
		it := m.at[t.Ref]
		if it.isErased() {
			continue
		}
		if mg.program == nil && !it.stored && it.record.Copy.Digest == "" {
			if !mg.allowance.reserveTombstone(t.Ref) {
				m.refused++
				continue
			}
			it.stored = true
		}
		touched := it.record.bury(TombstoneRecord{When: t.When, Rank: m.source.rank}, m.source.complete)
		it.did.touched = it.did.touched || touched
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
func (mg *merger) ignoreCounters(m *mergeResult) error {
	if mg.program != nil { // the contents are not known
		return nil
	}
	counting, data := map[string]*Record{}, map[string]string{}
	for _, it := range m.entries {
		if r := it.record; it.entry != nil && r != nil && r.Copy.Digest != "" && r.Copy.Digest != it.digest.stored {
			if text := it.content(m.source, true).Data; counters.MatchString(text) {
				counting[it.id], data[it.id] = r, text
			}
		}
	}
	stored, err := mg.contents(counting)
	for id, text := range data {
		if counters.ReplaceAllString(text, "") == counters.ReplaceAllString(stored[id], "") {
			m.at[id].digest.stored = counting[id].Copy.Digest
		}
	}
	return err
}

// findResigned finds the entries stored with other signatures in their addresses: a download needs the
// newest.
func (mg *merger) findResigned(m *mergeResult) error {
	if mg.program != nil {
		return nil
	}
	signed := map[string]*Record{}
	for _, it := range m.entries {
		if it.entry != nil && it.settled == nil && it.digest.text != "" && it.record.Copy.Digest == it.digest.published {
			signed[it.id] = it.record
		}
	}
	stored, err := mg.contents(signed)
	for id := range signed {
		data, isStored := stored[id]
		m.at[id].resigned = !isStored || data != m.at[id].content(m.source, true).Data
	}
	return err
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
func (mg *merger) takeAll(m *mergeResult) error {
	usage, isFull := mg.feed.Ledger.l.Usage, mg.allowance.full
	var items []*item
	for _, it := range m.entries {
		if it.entry != nil && it.settled == nil {
			items = append(items, it)
		}
	}
	if mg.program != nil { // which has no Quota
		for _, it := range items {
			touched := it.did.touched
			it.did = it.record.take(m.source.copyOf(it.entry, it.digest.stored), it, m.source)
			it.did.touched = it.did.touched || touched
		}
		return nil
	}
	type moment struct {
		record  Record
		touched bool
	}
	before := make([]moment, len(items))
	for i, it := range items {
		before[i] = moment{*it.record, it.did.touched}
	}
	take := func() (refused bool, err error) {
		for i, it := range items {
			r, was := it.record, &before[i]
			*r = was.record
			did := r.take(m.source.copyOf(it.entry, it.digest.stored), it, m.source)
			fits, err := mg.allowance.admit(&was.record, r, &did, it.stored)
			if err != nil {
				return false, err
			}
			if !fits {
				*r, did = was.record, effect{}
				m.refused++
				refused = refused || r.Copy.Digest == ""
			}
			did.touched = did.touched || was.touched
			it.did = did
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

// settle adds the record of an item to the change.
func (mg *merger) settle(m *mergeResult, it *item) {
	r, did := it.record, &it.did
	r.State = r.state()
	if did.version != nil && mg.allowance.keep > 0 {
		m.change.Versions = append(m.change.Versions, did.version)
	}
	isChange := r.State != it.before || did.content && !did.presumed
	if isChange {
		mg.count(r, it.before)
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
	case did.touched || r.State != it.before:
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
