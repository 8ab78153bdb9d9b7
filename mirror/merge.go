package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	raised   bool    // the rank of its copy has
	touched  bool    // something else to store has changed
	version  *Record // an earlier version of the entry to store: the document's copy, or nil
}

// take merges a copy of the entry. If the document replaces everything, its copy counts
// in any case. A record missing from a complete document takes any copy published after
// the document.
func (r *Record) take(c Copy, e *feedhistory.Entry, from source) (did effect) {
	back := r.Absence != 0 && c.Rank.Seq > r.Absence && !from.recalled
	known := r.Copy.Digest != ""
	if c.Rank.isKept() && r.Tombstone != (TombstoneRecord{}) {
		return did // a reader does not bring back entries the publisher has deleted
	}
	if c.Digest == r.Copy.Digest && r.Copy.Source == "" {
		c.Source = "" // the publisher has shown this very copy
	}
	switch {
	case !known || from.replaces || back || c.compare(r.Copy) >= 0:
		order := c.compare(r.Copy)
		did.raised, did.touched = order > 0, order < 0 || r.Copy.Source != c.Source || back
		if did.content = r.Copy.Digest != c.Digest; did.content {
			r.Content, r.Archived = contentOf(e), false
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
		did.version = &Record{ID: r.ID, Copy: c, Content: contentOf(e)}
	}
	asNew := c.Digest == r.Copy.Digest || e.Updated.IsZero() || !e.Updated.Before(r.Content.Updated)
	if from.archive && asNew && !r.Archived {
		r.Archived, did.touched = true, true
	}
	return did
}

// isVoid reports whether the publisher's copy was read before the complete document with a Seq,
// which did not have the entry, and did not make it absent because it was deleted.
func (r *Record) isVoid(complete int64) bool {
	return r.Copy.Digest != "" && r.Copy.Source == "" && !r.Copy.Rank.isKept() && r.Copy.Rank.Seq < complete && r.Absence == 0
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
}

// digests are the Digests of the entries of a document, which several rules ask for: those as
// published, and those of the stored copies that stand for them. Of nil, they are computed each time.
type digests struct{ published, stored map[*feedhistory.Entry]string }

func newDigests() *digests {
	return &digests{map[*feedhistory.Entry]string{}, map[*feedhistory.Entry]string{}}
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
		digest = e.Digest()
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
	records map[string]*Record // the records of all entries and tombstones in the document, as they are now
	entries map[string]bool    // the IDs of the entries
	fresh   bool               // the document brought something new
	filled  bool               // the document, an archive, has an entry no archive had
	refused int                // the number of entries and tombstones that did not fit
	known   map[string]bool    // the IDs in the document stored before
	shown   map[string]bool    // those of them which a subscription document had shown
	before  map[string]State   // the States that were stored
	still   map[string]bool    // those of them whose times are as they were stored
	digests *digests           // of the document's entries
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
}

// merge merges a source into the store's records, and counts the changes.
func (mg *merger) merge(s source) (*mergeResult, error) {
	if complete := mg.feed.Ledger.l.Complete; s.rank.Seq > complete && !s.recalled {
		s.complete = complete
	}
	s.digests = mg.digests
	entries := s.entries()
	mg.renameDeleted(s.doc)
	ids := make([]string, 0, len(entries)+len(s.doc.Deleted))
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	for _, t := range s.doc.Deleted {
		ids = append(ids, t.Ref)
	}
	records, err := mg.records(ids)
	if err != nil {
		return nil, err
	}
	if joined, err := mg.joinPosts(&s, records); err != nil {
		return nil, err
	} else if joined {
		return mg.merge(s)
	}
	if err := mg.ignoreCounters(&s, entries, records); err != nil {
		return nil, err
	}
	m := &mergeResult{records: records, known: make(map[string]bool, len(records)), shown: map[string]bool{}, before: make(map[string]State, len(records)), still: map[string]bool{}, digests: s.digests, change: Commit{Keep: mg.allowance.keep}}
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
		m.known[id], m.shown[id] = r.Copy.Digest != "", r.isShown()
		if effects[id] == nil {
			m.before[id], effects[id] = r.State, &effect{}
		}
		did := effects[id]
		if r.isVoid(s.complete) {
			r.Absence, did.touched = s.complete, true
		}
		if s.replaces || r.Tombstone.Rank.Seq < s.complete {
			did.touched = did.touched || r.Tombstone != (TombstoneRecord{})
			r.Tombstone = TombstoneRecord{}
		}
	}
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
	return m, mg.replaceUnnamed(m, unnamed)
}

// noteEntries notes the entries, and those whose times are as they were stored.
func (m *mergeResult) noteEntries(entries []*feedhistory.Entry) {
	m.entries = make(map[string]bool, len(entries))
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
		touched := r.bury(TombstoneRecord{When: t.When, Rank: s.rank})
		effects[t.Ref].touched = effects[t.Ref].touched || touched
	}
}

// records returns the stored records of entries, with the ranks that they have; of a feed without
// a commit there are none.
func (mg *merger) records(ids []string) (map[string]*Record, error) {
	if mg.feed.Commits == 0 {
		return map[string]*Record{}, nil
	}
	mg.window() // as it was before this document
	records, err := mg.store.Records(mg.ctx, mg.feed.URL, ids)
	for _, r := range records {
		mg.raise(r)
	}
	return records, err
}

// joinPosts puts an earlier copy of a post in the place of one under another ID, and
// reports whether there was any: see feedhistory.Entry.Post. The earlier ID stays.
func (mg *merger) joinPosts(s *source, records map[string]*Record) (joined bool, err error) {
	var names []string
	doc, here := s.doc, map[string]*feedhistory.Entry{}
	for _, e := range slices.Backward(doc.Entries) {
		here[e.ID] = e
	}
	isNew := func(e *feedhistory.Entry) bool { return records[e.ID] == nil }
	if !slices.ContainsFunc(doc.Entries, isNew) {
		return false, nil
	}
	for _, e := range doc.Entries {
		if post := iri.Post(e.ID); isNew(e) && e.Post() != "" {
			names = append(names, "http://"+post, "https://"+post, iri.OtherScheme(e.ID))
		}
	}
	known := map[string]*Record{}
	if len(names) > 0 {
		if known, err = mg.records(names); err != nil {
			return false, err
		}
	}
	isMixed := mg.noteKinds(doc)
	entries, first := slices.Clone(doc.Entries), map[string]*feedhistory.Entry{}
	shown := sync.OnceValue(func() map[string]bool { return idsOf(mg.feed.Ledger.l.shown()) })
	for i, e := range entries {
		if !isNew(e) {
			continue
		}
		post := e.Post()
		other := first[post]
		if other == nil {
			found, copied, err := mg.findPost(e, known)
			if err == nil && found == nil && !s.recalled && (isMixed || !s.archive && s.rank.isOfSubscription()) {
				found, copied, err = mg.findTwin(e, here, shown)
			}
			if err != nil {
				return false, err
			}
			switch {
			case found == nil:
				other = mg.underAlias(e, here)
			case here[found.ID] != nil:
				other = here[found.ID]
			default:
				other = found
				if copied != "" {
					s.digests.put(found, copied)
				}
			}
		}
		if other != nil && other.ID != e.ID {
			mg.feed.Ledger.l.remember(e.ID, other.ID)
			entries[i], joined = other, true
		} else if post != "" {
			first[post] = e
		}
	}
	doc.Entries = entries
	return joined, nil
}

// aliases has the stored IDs of entries by other IDs under which they have come.
type aliases map[string]string

// aliasLimit is the maximum number of aliases to remember.
const aliasLimit = 2000

// remember notes that an entry has come under another ID than the stored one: when it is edited,
// nothing else will tell. Beyond the limit, those go whose entries the latest reading does not show.
func (l *ledger) remember(alias, id string) {
	if l.Aliases[alias] == id {
		return
	}
	all := maps.Clone(l.Aliases)
	if len(all) >= aliasLimit {
		shown := idsOf(l.shown())
		maps.DeleteFunc(all, func(_, id string) bool { return !shown[id] })
	}
	if all == nil {
		all = aliases{}
	}
	if len(all) < aliasLimit {
		all[alias] = id
	}
	l.Aliases = all
}

// underAlias returns an entry under the ID that an earlier copy was stored with; nil if there is
// none, or the document has that entry, too.
func (mg *merger) underAlias(e *feedhistory.Entry, here map[string]*feedhistory.Entry) *feedhistory.Entry {
	id := mg.feed.Ledger.l.Aliases[e.ID]
	if id == "" || here[id] != nil {
		return nil
	}
	if link, ok := e.Links.Rel("alternate"); ok && !e.WeakID && isOtherPost(link.Href, id) && iri.Post(e.ID) != iri.Post(id) {
		return nil // a guid shared by posts
	}
	return under(e, id)
}

// The kinds of IDs of entries.
const (
	publishedIDs = 1 << iota
	madeIDs
)

// noteKinds notes the kinds of IDs in a document, and reports whether the feed has had both: in
// others, no archive or page needs a search for twins.
func (mg *merger) noteKinds(doc *feedhistory.Document) bool {
	kinds := &mg.feed.Ledger.l.IDKinds
	for _, e := range doc.Entries {
		if e.WeakID {
			*kinds |= madeIDs
		} else {
			*kinds |= publishedIDs
		}
	}
	return *kinds == publishedIDs|madeIDs
}

// mayRename reports whether entries or tombstones of a document may be stored under other IDs than
// its own, beyond those of one post.
func (mg *merger) mayRename(doc *feedhistory.Document) bool {
	aliases := mg.feed.Ledger.l.Aliases
	return slices.ContainsFunc(doc.Deleted, func(t feedhistory.Tombstone) bool { return aliases[t.Ref] != "" }) ||
		slices.ContainsFunc(doc.Entries, func(e *feedhistory.Entry) bool { return aliases[e.ID] != "" }) || mg.noteKinds(doc)
}

// isOtherPost reports whether a link leads to another page than the one that is an entry's ID.
func isOtherPost(link, id string) bool {
	post, own := iri.Post(link), iri.Post(id)
	return post != "" && own != "" && post != own
}

// renameDeleted puts the tombstones of entries stored under another ID under that one.
func (mg *merger) renameDeleted(doc *feedhistory.Document) {
	aliases := mg.feed.Ledger.l.Aliases
	isAlias := func(t feedhistory.Tombstone) bool { return aliases[t.Ref] != "" }
	if !slices.ContainsFunc(doc.Deleted, isAlias) {
		return
	}
	doc.Deleted = slices.Clone(doc.Deleted)
	for i, t := range doc.Deleted {
		doc.Deleted[i].Ref = cmp.Or(aliases[t.Ref], t.Ref)
	}
}

// findTwin returns an entry under the ID of a stored one that it is
// under another kind of ID, and the stored digest unless its texts have changed: guids come and go
// where two servers answer, and are added once for good. Link, title and time are equal, and just
// one of both has an ID of its own. An entry without ID, link and file may be edited where it was.
func (mg *merger) findTwin(e *feedhistory.Entry, here map[string]*feedhistory.Entry, shown func() map[string]bool) (twin *feedhistory.Entry, digest string, err error) {
	at := e.Time()
	_, hasLink := e.Links.Rel("alternate")
	if at.IsZero() || e.Title().Plain() == "" || mg.feed.Commits == 0 || !hasLink && !e.WeakID {
		return nil, "", nil
	}
	_, isBare := mg.store.(*shelf)
	key, texts := twinKeys(e)
	var stored *feedhistory.Entry
	for r, err := range mg.store.Entries(mg.ctx, Query{Feed: mg.feed.URL, Since: at, Until: at.Add(1)}) {
		if err != nil {
			return nil, "", err
		}
		isKind := hasLink && r.Content.WeakID != e.WeakID || !hasLink && r.Content.WeakID && shown()[r.ID]
		if !isKind || here[r.ID] != nil || r.Copy.Rank.isKept() {
			continue
		}
		storedKey, storedTexts := r.Content.Title, r.Content.Link
		if !isBare {
			if stored, err = r.Entry(); err != nil {
				continue
			}
			storedKey, storedTexts = twinKeys(stored)
		}
		switch {
		case storedKey != key:
		case twin != nil:
			return nil, "", nil // either may be it
		case storedTexts != texts:
			twin = under(e, r.ID)
		case isBare:
			twin, digest = under(e, r.ID), r.Copy.Digest
		default:
			twin, digest = stored, r.Copy.Digest
		}
	}
	return twin, digest, nil
}

// twinKeys returns a digest of an entry's link, title and time, and one of its texts.
func twinKeys(e *feedhistory.Entry) (key, texts string) {
	link, _ := e.Links.Rel("alternate")
	return shortKey(link.Href + "\n" + e.Title().Plain() + "\n" + e.Time().UTC().String()), shortKey(e.Summary().Body + "\n" + e.Content().Body)
}

// under returns an entry under another ID.
func under(e *feedhistory.Entry, id string) *feedhistory.Entry {
	e = clone(e)
	e.ID = id
	return e
}

// findPost returns the stored entry that is an entry's post under another ID, and its
// stored digest; nil if there is none. Campaigns can be any, so then all entries of that time are looked at.
func (mg *merger) findPost(e *feedhistory.Entry, known map[string]*Record) (other *feedhistory.Entry, digest string, err error) {
	post := iri.Post(e.ID)
	if e.Post() == "" {
		return nil, "", nil
	}
	query := Query{Feed: mg.feed.URL, Since: e.Time(), Until: e.Time().Add(1)}
	isIn := known["http://"+post] != nil || known["https://"+post] != nil || known[iri.OtherScheme(e.ID)] != nil
	if !isIn && strings.HasSuffix(e.ID, "://"+post) {
		return nil, "", nil
	}
	for r, err := range mg.store.Entries(mg.ctx, query) {
		if err != nil {
			return nil, "", err
		}
		if r.ID == e.ID || r.Copy.Rank.isKept() || iri.Post(r.ID) != post {
			continue
		}
		if s, ok := mg.store.(*shelf); ok && s.isPost(r, e) { // a shelf has no contents, so this copy is used under the earlier ID
			return under(e, r.ID), r.Copy.Digest, nil
		}
		if other, err := r.Entry(); err == nil && other.Post() == e.Post() {
			return other, r.Copy.Digest, nil
		}
	}
	for _, r := range known { // an archive may have an earlier version
		if r.Copy.Digest == "" || r.Copy.Rank.isKept() || iri.Post(r.ID) != post {
			continue
		}
		for v, err := range mg.store.Versions(mg.ctx, mg.feed.URL, r.ID) {
			if err != nil {
				return nil, "", err
			}
			if version, err := v.Entry(); err == nil && version.Post() == e.Post() {
				return under(e, r.ID), v.Copy.Digest, nil
			}
		}
	}
	return nil, "", nil
}

// counters are the elements and attributes counting comments and views, and the parameter that
// podcast hosts renew in the address of each file.
var counters = regexp.MustCompile(`<[\w.-]+:(?:comments|total|statistics|starRating)\b[^<>]*(?:/>|>\s*\d*\s*</[\w.-]+:\w+>)|\s[\w.-]+:(?:count|updated)="[^"]*"|[?&;]updated=\d+`)

// ignoreCounters leaves entries as they are stored changed in nothing but their numbers of
// comments and views: a history has no version for each.
func (mg *merger) ignoreCounters(s *source, entries []*feedhistory.Entry, records map[string]*Record) error {
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
	shown, signed := map[string]*Content{}, map[string]*Record{}
	for _, e := range entries {
		element, err := door.Root.Element(e)
		if r := records[e.ID]; err == nil && iri.Unsigned(element.Raw) != element.Raw && r.Copy.Digest == e.Digest() {
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
			m.filled = m.filled || r.Archived && !was.record.Archived
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
	isChange := r.State != before || did.content
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

// A Quota limits how much of a Store one feed may fill. A Mirror does not store more;
// the rest is a gap, until you raise the Quota. The mirror still updates the entries it
// has, up to twice the Bytes.
type Quota struct {
	// Bytes is the maximum size of the entries and their earlier versions, as published,
	// plus the records of archive documents. A store needs more space, for example for
	// indexes. Zero means 2 GiB, a negative number no limit.
	Bytes int64 `json:"bytes"`

	// Entries is the maximum number of entries (deleted ones included), tombstones of
	// unknown entries, and archive documents, all together. Zero means five million, a
	// negative number no limit.
	Entries int64 `json:"entries"`
}

func (q Quota) withDefaults() Quota {
	q = Quota{Bytes: cmp.Or(q.Bytes, 2<<30), Entries: cmp.Or(q.Entries, 5_000_000)}
	if q.Bytes < 0 {
		q.Bytes = math.MaxInt64
	}
	if q.Entries < 0 {
		q.Entries = math.MaxInt64
	}
	return q
}

// ErrQuota is among the errors of a Gap caused by the Quota.
var ErrQuota = errors.New("the quota of the feed is used up")

// A usage is the part of its Quota a feed has used, counted since quotas exist.
type usage struct {
	Contents   int64 `json:"contents,omitempty"`   // bytes of entries and their earlier versions: the sum of Content.Size
	Tombstones int64 `json:"tombstones,omitempty"` // the number of tombstones of unknown entries
	Refs       int64 `json:"refs,omitempty"`       // bytes of the IDs of those entries
	Documents  int64 `json:"documents,omitempty"`  // bytes of the records of archive documents
}

func (u *usage) bytes() int64 { return u.Contents + u.Refs + u.Documents }

// An allowance is the rest of a feed's Quota.
type allowance struct {
	ctx      context.Context
	store    Store
	feed     *Feed
	keep     int // how many versions the store keeps of an entry
	quota    Quota
	full     bool            // the quota is used up
	entering int64           // the number of entries about to be counted
	rows     map[string]Copy // the copies in the rows of entries that have greater ranks, by ID; see merger.raise
}

// newAllowance returns the allowance at the start of a poll. It determines
// whether the quota is still used up.
func newAllowance(ctx context.Context, m *Mirror, f *Feed) *allowance {
	a := &allowance{ctx: ctx, store: m.Store, feed: f, keep: m.keep(), quota: m.Quota.withDefaults()}
	full := &f.Ledger.l.Full
	if a.quota.Bytes > full.Bytes || a.quota.Entries > full.Entries {
		*full = Quota{}
	}
	a.full = *full != Quota{}
	return a
}

// fits reports whether there is room for the given numbers of entries and
// bytes. Once there is not, nothing new fits until the Quota is raised.
func (a *allowance) fits(entries, bytes int64) bool {
	f := a.feed
	held := f.Entries + f.Deleted + f.Ledger.l.Usage.Tombstones + f.Documents + a.entering
	if a.full || entries > a.quota.Entries-held || bytes > a.quota.Bytes-f.Size() {
		a.fill()
		return false
	}
	return true
}

func (a *allowance) fill() {
	a.full = true
	a.feed.Ledger.l.Full = cmp.Or(a.feed.Ledger.l.Full, a.quota)
}

// admit reports whether there is room for the change of a record from was to r, and
// counts it. It drops an earlier version that does not fit.
func (a *allowance) admit(was, r *Record, did *effect, isStored bool) (bool, error) {
	if !did.content && !did.resigned && did.version == nil {
		return true, nil
	}
	u, isNew := &a.feed.Ledger.l.Usage, was.Copy.Digest == ""
	growth := r.Content.Size
	if !isNew {
		var err error
		if growth, err = a.growth(was, r, did); err != nil {
			return false, err
		}
	}
	switch {
	case isNew:
		if !a.fits(1, growth) {
			return false, nil
		}
		a.entering++
		if isStored { // until now only a tombstone was stored
			u.Tombstones, u.Refs = max(0, u.Tombstones-1), max(0, u.Refs-int64(len(r.ID)))
		}
	case did.version != nil && growth > 0 && (a.full || growth > a.quota.Bytes-u.bytes()):
		did.version = nil
		return true, nil
	case growth > 0 && growth/2 > a.quota.Bytes-u.bytes()/2:
		a.fill()
		return false, nil
	}
	u.Contents = max(0, u.Contents+growth)
	return true, nil
}

// reserveTombstone counts a tombstone of an unknown entry and reports whether
// it fits.
func (a *allowance) reserveTombstone(id string) bool {
	if !a.fits(1, int64(len(id))) {
		return false
	}
	a.feed.Ledger.l.Usage.Tombstones++
	a.feed.Ledger.l.Usage.Refs += int64(len(id))
	return true
}

// growth returns by how many bytes an entry and its earlier versions grow when
// r replaces was and a version is added. It follows the rules for stores in
// Change. It drops a version that is stored already, or for which there is no place.
func (a *allowance) growth(was, r *Record, did *effect) (int64, error) {
	if did.resigned {
		return r.Content.Size - was.Content.Size, nil
	}
	var before, after int64
	var kept []*Record
	for v, err := range a.store.Versions(a.ctx, a.feed.URL, r.ID) {
		if err != nil {
			return 0, err
		}
		before += v.Content.Size
		kept = append(kept, &Record{Copy: v.Copy, Content: Content{Size: v.Content.Size}})
	}
	add := func(v *Record) (isNew bool) {
		same := func(o *Record) bool { return o.Copy.Digest == v.Copy.Digest }
		if isNew = !slices.ContainsFunc(kept, same); isNew {
			kept = append(kept, v)
		}
		return isNew
	}
	if was.Copy.Digest != r.Copy.Digest && was.Content.Format != "" {
		add(&Record{Copy: cmp.Or(a.rows[was.ID], was.Copy), Content: was.Content})
	}
	if added := did.version; added != nil {
		if !add(added) {
			did.version = nil
		}
	}
	kept = slices.DeleteFunc(kept, func(v *Record) bool { return v.Copy.Digest == r.Copy.Digest })
	slices.SortFunc(kept, newer)
	kept = kept[:min(len(kept), a.keep)]
	for _, v := range kept {
		after += v.Content.Size
	}
	if !slices.Contains(kept, did.version) {
		did.version = nil // it is older than those
	}
	return after - before + r.Content.Size - was.Content.Size, nil
}

// reserveDocument counts the record of a document and reports whether it fits. The
// record replaces the one of other, unless other is nil.
func (a *allowance) reserveDocument(d, other *DocumentRecord) bool {
	growth, entries := d.size(), int64(1)
	if other != nil {
		growth, entries = growth-other.size(), 0
	}
	if growth > 0 && !a.fits(entries, growth) && other == nil {
		return false
	}
	u := &a.feed.Ledger.l.Usage
	u.Documents = max(0, u.Documents+growth)
	return true
}

// size returns the size of a document's record in bytes.
func (d *DocumentRecord) size() int64 {
	n := len(d.URL) + len(d.Digest) + len(d.Known.URL) + len(d.Known.ETag) + len(d.Known.LastModified) +
		len(d.Known.Digest) + len(d.Known.Older)
	for _, name := range d.Names {
		n += len(name)
	}
	return int64(n)
}

// refuse leaves a document pending until the Quota is raised, and ends the
// walk, because older documents would not fit either.
func (p *poll) refuse(doc *feedhistory.Document, refused int, rank Rank, page bool) error {
	d := quotaGap(doc, refused, p.now)
	d.Kind, d.URL, d.Poll, d.Page, d.Rank, d.Tries = debtDocument, doc.Response.Requested, p.feed.Polls, page, rank, 1
	d.Rank.Seq++
	p.ledger.take(d.URL)
	p.ledger.Debts = append(p.ledger.Debts, d)
	p.ledger.Unsettled, p.cut = true, true
	return errEnded
}

// quotaGap returns the gap for a document not stored entirely.
func quotaGap(doc *feedhistory.Document, refused int, now time.Time) debt {
	what := fmt.Sprintf("entries of the document that are not stored: %d", refused)
	if refused == 0 {
		what = "the document is not recorded"
	}
	return debt{URL: doc.URL, From: doc.URL, Reason: feedhistory.ReasonLimit, Quota: true, Found: now, Message: what}
}

// isShort reports whether a debt is for entries of the subscription document left out by
// the Quota.
func isShort(d debt) bool { return d.Quota && d.Kind == debtLimit }

// Erase deletes the contents of entries and of all their versions from a feed, as the
// law may demand. It keeps their IDs, so no poll stores them again, however long the
// publisher shows them. If the feed does not have one of the IDs, the error matches
// ErrNotFound and nothing is erased.
//
// A database may keep the bytes in its files until it is told to release free
// space: see sqlstore.Store.Scrub.
func (m *Mirror) Erase(ctx context.Context, url string, ids ...string) error {
	if err := m.check(); err != nil {
		return err
	}
	f, err := m.Store.Feed(ctx, iri.WithoutFragment(url))
	if err != nil {
		return err
	}
	records, err := m.Store.Records(ctx, f.URL, ids)
	if err != nil {
		return err
	}
	f.changed(m.now())
	change := &Commit{Feed: f}
	for _, id := range ids {
		r := records[id]
		if r == nil {
			return fmt.Errorf("entry %s: %w", id, ErrNotFound)
		}
		for v, err := range m.Store.Versions(ctx, f.URL, id) {
			if err != nil {
				return err
			}
			f.Ledger.l.Usage.Contents = max(0, f.Ledger.l.Usage.Contents-v.Content.Size)
		}
		f.Ledger.l.Usage.Contents = max(0, f.Ledger.l.Usage.Contents-r.Content.Size)
		switch {
		case r.State == Live:
			f.Entries--
		case r.Content.Format != "":
			f.Deleted--
		}
		f.Ledger.l.forget(id)
		change.Put = append(change.Put, &Record{
			Feed: f.URL, ID: id, State: Erased, FirstCommit: r.FirstCommit, LastCommit: f.Commits + 1, Added: r.Added, Changed: f.Changed,
		})
	}
	return m.Store.Commit(ctx, change)
}
