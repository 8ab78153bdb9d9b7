package mirror

import (
	"cmp"
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
		if p.address.doubted || !p.allowance.full && p.ledger.owes(isLeftOut) || p.ledger.owes(isCutShort) {
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
		if (b.m.Revalidate || !rests) && !b.leavesAlone(&d) && !(d.Shifted && l.Kind == feedhistory.KindPaged) {
			b.urls[d.URL] = true
			b.unread = b.unread || d.Tries == 0
		}
	}
}
