package mirror

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/chain"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// past returns the memory of the walk.
func (p *poll) past() *chain.Memory[feedhistory.Known, *feedhistory.Document] {
	past := &chain.Memory[feedhistory.Known, *feedhistory.Document]{Processed: p.processed, Known: p.known, Wanted: p.wants}
	if p.had || p.ledger.Known.URL != "" { // of a feed without entries, its head tells
		past.Shown, past.IDs, past.Has = p.shownBefore, p.ledger.IDs, p.hasOrShows
	}
	if p.m.Revalidate || p.alternatives.rereads {
		past.Processed = nil
	}
	for _, d := range p.ledger.Debts {
		switch {
		case !d.isDocument() || !p.backlog.urls[d.URL]:
		case d.Page:
			past.PendingPages = append(past.PendingPages, d.URL)
		default:
			past.Pending = append(past.Pending, d.URL)
		}
	}
	past.Pending = append(past.Pending, slices.Sorted(maps.Keys(p.rechecks.urls))...)
	if !p.pages.toEnd {
		past.Last = func(*feedhistory.Document) bool { return !p.pages.goesOn() && !p.backlog.reached }
	}
	return past
}

// shownBefore returns the head section of the subscription document as it was last read, and the
// IDs of its entries.
func (s *session) shownBefore() (*feedhistory.Document, []string) {
	head, err := s.feed.Document()
	if err != nil {
		return nil, nil
	}
	return head, s.ledger.Shown
}

// hasOrShows reports whether an entry of a document is known.
func (s *session) hasOrShows(doc *feedhistory.Document) bool {
	shown := idsOf(s.ledger.shown())
	if slices.ContainsFunc(doc.Entries, func(e *feedhistory.Entry) bool { return shown[e.ID] }) {
		return true
	}
	has, err := s.hasEntryOf(doc)
	s.documents.err = cmp.Or(s.documents.err, err)
	return has
}

// processed reports whether an archive document was processed in an earlier poll.
// During a search for entries no document counts as processed, but unread documents
// come first; nor does one needed by the join, or to be requested again.
func (p *poll) processed(url string) bool {
	if p.completed != nil || p.rechecks.urls[url] || p.chain.asks && !p.chain.beyond && p.chain.owes() {
		return false
	}
	if d := p.ledger.document(url); d != nil && (p.leavesAlone(d) || d.Quota || p.backlog.urls[url]) {
		return p.leavesAlone(d)
	}
	d := p.documents.get(url)
	return d != nil && d.First < p.feed.Polls && !(p.chain.beyond && !p.chain.aside && p.chain.isUnasked(d))
}

// leavesAlone reports whether a document owed is not to be requested now.
func (s *session) leavesAlone(d *debt) bool {
	return isAsked(d.Wait, s.now) || d.Quota && s.allowance.full
}

// known returns the validators for a conditional request. If the first of
// several pages has not changed, the second is not requested.
func (p *poll) known(url string) feedhistory.Known {
	if p.alternatives.rereads {
		return feedhistory.Known{}
	}
	if url == iri.WithoutFragment(p.address.url) {
		known := p.ledger.Known
		if p.address.doubted || !p.allowance.full && p.ledger.owes(isShort) || p.ledger.owes(isCutShort) {
			return feedhistory.Known{}
		}
		if p.ledger.Kind == feedhistory.KindPaged && !p.pages.toEnd {
			known.Older, known.Instead = "", ""
		}
		if p.address.asksAnew() {
			known.ETag, known.LastModified = "", ""
		}
		return known
	}
	owed := p.ledger.document(url)
	if d := p.documents.get(url); d != nil && (owed == nil || !owed.Quota) && !p.rechecks.whole[url] {
		return d.Known
	}
	return feedhistory.Known{}
}

// wants reports whether a document owed or to be requested again is still wanted: a link
// may have led to it under another name, or the feed's new kind may make it needless, with
// the documents it leads to.
func (p *poll) wants(url string) bool {
	if p.rechecks.urls[url] {
		return p.ledger.Kind == feedhistory.KindArchived || p.completed != nil
	}
	return p.ledger.document(url) != nil
}

// asksAnew reports whether the poll requests the subscription document without conditions,
// to detect a server that always answers 304.
func (a *address) asksAnew() bool {
	at := a.ledger.Answered
	return a.m.Revalidate || !at.IsZero() && a.now.Sub(at) >= anewAfter
}

// anewAfter is the time after which an unchanged subscription document is requested
// without conditions.
const anewAfter = 7 * 24 * time.Hour

// A backlog is the walk through documents left pending by earlier polls.
type backlog struct {
	*session
	urls    map[string]bool // the documents still ahead of the walk
	reached bool            // the walk has reached one of them
	unread  bool            // earlier polls left documents unread: these come before any search
}

// fill decides which of the documents owed the walk requests. Those with the fewest tries
// come first.
func (b *backlog) fill(chain *chainReading) {
	l := b.ledger
	b.urls = map[string]bool{}
	isUnnamed := func(debt) bool { return false }
	if l.Kind == feedhistory.KindArchived && l.owes(func(d debt) bool { return d.Tries > 1 }) {
		isUnnamed = chain.unnamed()
	}
	slices.SortStableFunc(l.Debts, func(a, b debt) int { return cmp.Or(compareKinds(a, b), cmp.Compare(a.Tries, b.Tries)) })
	for _, d := range l.Debts[:l.documents()] {
		rests := d.rests(b.now) && !isUnnamed(d)
		if (b.m.Revalidate || !rests) && !b.leavesAlone(&d) {
			b.urls[d.URL] = true
			b.unread = b.unread || d.Tries == 0
		}
	}
}

// documents are the archive documents a feed has processed.
type documents struct {
	ctx     context.Context
	store   Store
	feed    *Feed
	commits *commits
	found   map[string]*DocumentRecord
	steps   map[string]step // all of them, by their names; nil until they are needed
	err     error           // an error of the store, which callbacks cannot return
}

// get returns a processed document, or nil. It must not be changed.
func (ds *documents) get(url string) *DocumentRecord {
	if d := ds.commits.document(url); d != nil {
		return d
	}
	if d, ok := ds.found[url]; ok || ds.feed.Documents == 0 || ds.err != nil {
		return d
	}
	d, err := ds.store.Document(ds.ctx, ds.feed.URL, url)
	if err != nil {
		if d = nil; !errors.Is(err, ErrNotFound) {
			ds.err = err
			return nil
		}
	}
	if len(ds.found) > 100 { // each document is looked up a few times in succession
		clear(ds.found)
	}
	ds.found[url] = d
	return d
}

// forget forgets the documents replaced by a change.
func (ds *documents) forget(c *Commit) {
	ds.replace(c)
	for _, d := range c.Documents {
		for _, name := range d.Names {
			delete(ds.found, name)
		}
	}
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

// A step is a document in the chain.
type step struct {
	url, older string
	instead    string // another format of the older one; "" if there is none
	link       string // the name by which the chain leads to it
	names      []string
	further    []string  // where it goes on beyond the chain
	lost       bool      // whether its link cannot be used
	damaged    bool      // whether it was, as it was last read
	read       time.Time // when it was last read
	last       int64     // the number of the last poll to read it
	seq        int64     // of its rank
	first      int64     // the number of the first poll to read it
	altered    int64     // the number of the last poll to find it changed
}

// step returns the document as the chain sees it.
func (d *DocumentRecord) step() step {
	return step{
		url: d.URL, older: d.Known.Older, instead: otherFormat(d.Known), names: d.Names, further: d.Further, lost: d.Known.Lost, damaged: d.Known.Damaged,
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
