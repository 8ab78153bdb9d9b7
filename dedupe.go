package feedhistory

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// A History is the logical feed, as far as it could be reconstructed, with each entry
// once.
type History struct {
	Head      *Document   // the newest document without its Entries and Deleted; nil if it had not changed
	Kind      Kind        // the feed's kind, by the newest document
	Entries   []*Entry    // the entries in the order of the documents, usually newest first
	Deleted   []Tombstone // the deletions in force: no deleted entry is in Entries
	Gaps      []*Gap      // the missing parts
	Documents int         // the number of documents read to their end
	Unchanged int         // the number of documents that had not changed: their entries are not here
}

// Verdict returns how much of the logical feed this is: unknown if there is neither a
// document nor a gap, if a document is Unchanged, and for a nil History, as Fetch returns it
// after a 404. It is never better than the Coverage declared by the newest document.
//
// A walk cannot detect everything: a document may have vanished from the chain
// without a trace, or an archive may have been emptied.
func (h *History) Verdict() Verdict {
	if h == nil {
		return VerdictUnknown
	}
	bound := VerdictWhole
	if h.Head != nil && h.Head.Coverage != nil {
		bound = h.Head.Coverage.Verdict
	}
	switch {
	case len(h.Gaps) > 0:
		return VerdictPartial
	case h.Head == nil, h.Unchanged > 0:
		return VerdictUnknown
	case h.Kind == KindPaged:
		return min(bound, VerdictLossy)
	case h.Kind == KindPlain:
		return min(bound, VerdictWindow)
	case h.Kind == KindComplete, h.Kind == KindArchived:
		return bound
	}
	return VerdictUnknown
}

// Merge merges the documents of a walk, newest first, into one history.
//
// Of duplicates (entries with the same ID), Merge keeps the most recently updated one
// (5005#20), within one document and on several pages, too (5005#3, 5005#7). If their times are equal or missing, it keeps the one from the most
// recently updated document (5005#21), by the document's own time, or else its
// Last-Modified, or else its place in the sequence, which also breaks ties. A tombstone
// removes an entry unless the entry is newer. Of the entries that are one post under
// different IDs (see Entry.Post), the first stays.
//
// Merge collects the Gaps of the Readings. An error ends it: it returns the error with the
// history so far, which then has a gap, and the readable part of the failed document. The
// history is nil if there was neither a document nor a gap, and its Head is nil if
// there was no document. If the Readings of a walk do not reach its End, the history has a gap
// for the rest, with ReasonInterrupted. Of documents without a walk, which [Parse] or
// Client.Get has read, see Readings, it has such a gap for each link to an
// older document, or to the beginning of the feed, that is not among them.
func Merge(readings iter.Seq2[*Reading, error]) (*History, error) {
	if readings == nil {
		return nil, errors.New("feedhistory: Merge: the sequence is nil")
	}
	var m Merger
	for r, err := range readings {
		if !m.Add(r, err) {
			break
		}
	}
	return m.History()
}

// Readings returns the Readings of documents read without a walk, for Merge.
func Readings(docs ...*Document) iter.Seq2[*Reading, error] {
	return func(yield func(*Reading, error) bool) {
		for _, doc := range docs {
			if doc == nil {
				yield(nil, errors.New("feedhistory: Readings: a Document is nil"))
				return
			}
			if !yield(&Reading{URL: doc.URL, Document: doc, Response: doc.Response}, nil) {
				return
			}
		}
	}
}

// errUnread is the Err of the Gap for the rest of a walk, if the documents merged do
// not reach its end.
var errUnread = errors.New("the rest of the feed has not been read")

// A Merger is Merge with one Reading at a time, for a reader showing entries during
// a walk. Its zero value is ready to use. It keeps the entries and tombstones of the
// documents: set them to nil before Add for the Kind, the Gaps and the Verdict alone.
type Merger struct {
	h       History
	index   map[string]int // the place of each ID in entries and ranks
	entries []*Entry       // the newest copy of each entry
	ranks   []int32        // the documents of these copies
	docs    []feedtime.Rank
	deleted map[string]deletion
	last    *Document
	links   map[string]string // where the links of documents without a walk lead, and from where
	read    map[string]bool   // the names of these documents

	ofWalk    bool  // the Readings are a walk's
	ended     bool  // and have reached its end
	kindKnown bool  // the newest document is unchanged, and its kind is known
	err       error // the walk's last error
}

// Add adds a Reading, or the error of a walk. It returns false once an error has ended the walk,
// and ignores everything afterwards.
func (m *Merger) Add(r *Reading, err error) bool {
	if m.err != nil {
		return false
	}
	if err == nil && r == nil {
		err = errors.New("feedhistory: Merger.Add: both the Reading and the error are nil")
	} else if r != nil && r.Document != nil && slices.Contains(r.Document.Entries, nil) {
		r, err = nil, fmt.Errorf("feedhistory: Merger.Add: an entry of %s is nil", cmp.Or(r.Document.URL, "the document"))
	}
	if err != nil {
		m.interrupt(r, err)
		m.err = err
		return false
	}
	m.ofWalk, m.ended = m.ofWalk || r.origin != ofDocument, m.ended || r.End
	if r.Unchanged {
		if m.h.Unchanged++; m.h.Unchanged == 1 && m.h.Head == nil {
			m.h.Kind, m.kindKnown = r.Known.Kind, true
		}
	}
	if r.Document != nil {
		m.h.Documents++
		if m.h.Head == nil && r.origin == ofDocument {
			m.links, m.read = map[string]string{}, map[string]bool{}
		}
		m.add(r.Document, r)
	}
	for _, gap := range r.Gaps {
		if slices.Contains(m.h.Gaps, gap) {
			continue // its document has it as well
		}
		m.h.Gaps = append(m.h.Gaps, gap)
		if gap.Document != nil {
			m.add(gap.Document, r)
		}
	}
	return true
}

// History returns the history of the Readings added so far, and the error Merge would
// return. Until a walk is at its End, a Gap with ReasonInterrupted covers the rest,
// so the verdict is partial.
func (m *Merger) History() (*History, error) {
	if m.err == nil && m.h.Head == nil && m.h.Unchanged == 0 {
		return nil, errors.New("no document to merge")
	}
	return m.history(), m.err
}

// endOfTime is the time of a subscription document without a time, not even one when it was
// received: it is the newest.
var endOfTime = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// rank returns the rank of the next document. A document without a time counts as updated
// when its newer neighbour was, so there is one order of all documents, and the result
// does not depend on which copies are compared first.
func (m *Merger) rank(doc *Document, reread bool) int32 {
	r := feedtime.Rank{Time: doc.documentTime(), Seq: -int64(len(m.docs))}
	switch {
	case !r.Time.IsZero():
	case len(m.docs) == 0 || reread:
		r.Time = feedtime.First(doc.Response.Received, endOfTime)
	default:
		r.Time = m.docs[len(m.docs)-1].Time
	}
	if reread {
		r.Seq = -r.Seq
	}
	m.docs = append(m.docs, r)
	return int32(len(m.docs) - 1)
}

// add adds a document of a Reading.
func (m *Merger) add(doc *Document, from *Reading) {
	m.last = doc
	m.h.Gaps = append(m.h.Gaps, doc.gaps...)
	n := m.rank(doc, from.origin == ofWalkAgain)
	first := m.h.Head == nil
	if first {
		head := doc.headOnly()
		m.h.Head = &head
		if !m.kindKnown {
			m.h.Kind = doc.Kind()
		}
		m.declare(doc)
	} else if from.origin == ofWalkAgain {
		m.h.Head.Coverage = m.h.Head.Coverage.join(doc.Coverage)
		m.declare(doc)
	}
	if m.links != nil {
		m.follow(doc, first)
	}
	if m.index == nil {
		m.index = map[string]int{}
	}
	for _, e := range doc.Entries {
		i, seen := m.index[e.ID]
		if !seen {
			m.index[e.ID] = len(m.entries)
			m.entries, m.ranks = append(m.entries, e), append(m.ranks, n)
		} else if m.copy(e, n).Compare(m.copy(m.entries[i], m.ranks[i])) > 0 {
			m.entries[i], m.ranks[i] = e, n
		}
	}
	for _, t := range doc.Deleted {
		m.delete(t, n)
	}
}

// follow notes where the links of a document without a walk lead.
func (m *Merger) follow(doc *Document, first bool) {
	self, _ := doc.Links.Rel(relSelf)
	for _, name := range []string{doc.URL, doc.Response.Requested, self.Href} {
		m.read[iri.Address(name)] = true
	}
	targets := doc.Links.targets(m.h.Kind.Older())
	if link, ok := doc.beginning(); first && !doc.isSubscription() {
		if !ok {
			link.Href = "" // nothing says where the newer ones are
		}
		targets = append(targets, link.Href)
	}
	for _, url := range targets {
		m.links[iri.Address(url)] = doc.URL
	}
}

// unread returns the gaps of the links to none of the documents without a walk.
func (m *Merger) unread() (gaps []*Gap) {
	for _, url := range slices.Sorted(maps.Keys(m.links)) {
		if url == "" || !m.read[url] {
			gaps = append(gaps, &Gap{URL: cmp.Or(url, m.links[url]), From: m.links[url], Reason: ReasonInterrupted, Err: errUnread, Found: time.Now()})
		}
	}
	return gaps
}

// declare collects the gaps declared by the newest document itself.
func (m *Merger) declare(doc *Document) {
	for _, gap := range doc.Declared() {
		if !slices.ContainsFunc(m.h.Gaps, gap.isSame) {
			m.h.Gaps = append(m.h.Gaps, gap)
		}
	}
}

// copy returns a document's copy of an entry.
func (m *Merger) copy(e *Entry, doc int32) feedtime.Copy {
	return feedtime.CopyOf(e.Updated, m.rankOf(e, doc))
}

// rankOf returns the rank of an entry's copy in a document.
func (m *Merger) rankOf(e *Entry, doc int32) feedtime.Rank {
	rank := m.docs[doc]
	rank.Kept = e.KeptBy != ""
	return rank
}

// A deletion is the latest tombstone of an entry, with the newest of the documents with
// one.
type deletion struct {
	Tombstone
	doc feedtime.Rank
}

// precedence returns the deletion as the duplicate rules see it.
func (d deletion) precedence() feedtime.Tombstone {
	return feedtime.Tombstone{When: d.When, Rank: d.doc}
}

func (m *Merger) delete(t Tombstone, doc int32) {
	if m.deleted == nil {
		m.deleted = map[string]deletion{}
	}
	d := deletion{t, m.docs[doc]}
	if old, ok := m.deleted[t.Ref]; ok {
		d.doc = d.precedence().Join(old.precedence()).Rank
		if !t.When.After(old.When) {
			d.Tombstone = old.Tombstone
		}
	}
	m.deleted[t.Ref] = d
}

// interrupt adds a gap where the documents ended early: at the one not read completely,
// or else at the one due next, if known.
func (m *Merger) interrupt(r *Reading, err error) {
	if doc := r.Readable(); doc != nil {
		m.add(doc, r)
		m.h.Gaps = append(m.h.Gaps, &Gap{URL: doc.URL, Reason: reasonOf(err), Err: err, Found: time.Now(), Document: doc})
	} else if m.h.Head != nil {
		m.h.Gaps = append(m.h.Gaps, m.rest(err))
	}
}

// rest returns a gap for the documents due next.
func (m *Merger) rest(err error) *Gap {
	gap := &Gap{URL: m.h.Head.URL, Reason: ReasonInterrupted, Err: err, Found: time.Now()}
	if older, ok := m.last.Links.Rel(m.h.Kind.Older()); ok {
		gap.URL, gap.From = older.Href, m.last.URL
	}
	return gap
}

func (m *Merger) history() *History {
	if m.h.Head == nil && len(m.h.Gaps) == 0 && m.h.Unchanged == 0 {
		return nil
	}
	h := m.h
	h.Entries, h.Gaps = slices.Clone(m.entries), slices.Clone(m.h.Gaps)
	if m.err == nil && m.last != nil && m.ofWalk && !m.ended {
		h.Gaps = append(h.Gaps, m.rest(errUnread))
	}
	h.Gaps = append(h.Gaps, m.unread()...)
	if len(m.deleted) == 0 {
		h.Entries = onePost(h.Entries)
		return &h
	}
	h.Entries = make([]*Entry, 0, len(m.entries))
	stale := map[string]bool{} // the tombstones whose entries came back
	for i, e := range m.entries {
		d, ok := m.deleted[e.ID]
		if !ok || !d.precedence().Deletes(e.Updated, m.rankOf(e, m.ranks[i])) {
			h.Entries, stale[e.ID] = append(h.Entries, e), ok
		}
	}
	h.Entries = onePost(h.Entries)
	for _, d := range m.deleted {
		if !stale[d.Ref] {
			h.Deleted = append(h.Deleted, d.Tombstone)
		}
	}
	slices.SortFunc(h.Deleted, func(a, b Tombstone) int {
		return cmp.Or(b.When.Compare(a.When), strings.Compare(a.Ref, b.Ref))
	})
	return &h
}
