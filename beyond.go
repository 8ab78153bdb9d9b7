package feedhistory

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// The end of a chain. A history is whole only if its last document names nothing older by
// any relation. Documents with contradictory marks, which RFC 5005 leaves undefined
// (5005#26), name more: a page behind fh:complete, an archive that goes on by next, a
// second prev-archive. A walk reads these too, and reports the contradiction.

// A beyond is the phase of a walk reading the documents that its chains name beyond them.
type beyond struct {
	*session
	leads    []lead // to be explored at the end of the chains
	idle     int    // the number of consecutive documents without anything new
	reported string // the URL of the last document whose contradiction was reported
}

// A lead is a link beyond the chain.
type lead struct {
	Link
	from string // the URL of the linking document
	root string // the URL of the document of the chain leading here
	mark string // the mark its link contradicts
}

// note queues the links by which a document of the current chain goes beyond it.
func (b *beyond) note(l *fetchResult) {
	if l.doc == nil {
		b.partly = true
		return
	}
	further := l.doc.Further(b.kind)
	if next, ok := l.doc.Links.Rel(relNextArchive); ok && b.kind == KindArchived && l.doc.says(relPrevArchive) { // a fork
		next.Href = iri.Address(next.Href)
		further = append(further, next)
	}
	if current, ok := b.otherBeginning(l); ok {
		further = append(further, current)
	}
	for _, link := range further {
		if b.loops.HasSeen(link.Href) {
			continue
		}
		at := lead{link, l.doc.URL, l.doc.URL, b.kind.mark()}
		if (at.Rel == relLast || at.Rel == relNextArchive && l.url == b.feed.start) && (b.gaps > 0 || b.partly) {
			continue // the documents on the way there may not have been read
		}
		b.leads = append(b.leads, at)
		l.again = true
	}
}

// explore reads the documents beyond the chains, as far as they bring anything new.
func (b *beyond) explore() {
	for len(b.leads) > 0 && b.goesOn() {
		next := b.leads[0]
		b.leads = b.leads[1:]
		if b.loops.HasSeen(next.Href) || b.processed(next.Href) {
			continue
		}
		b.begin(KindPaged)
		if next.Rel == relPrevArchive || next.Rel == relNextArchive || next.Rel == relCurrent {
			b.kind = KindArchived
		}
		b.examine(next)
	}
}

// examine reads a document beyond the chain.
func (b *beyond) examine(at lead) {
	from := at.from
	if gap := b.forbids(at.Href); gap != nil {
		if gap.From = from; gap.Reason == ReasonBudget || gap.Reason == ReasonBarren {
			b.giveUp(gap)
			return
		}
		b.gap(gap)
		return
	}
	l := b.load(at.Href)
	l.from = from
	if gap := cmp.Or(b.strayed(l, from), b.isForeign(l, from)); gap != nil {
		b.gap(gap)
		return
	}
	switch {
	case l.unchanged:
		if b.yieldDocument(l); !b.succeeds(at, l) {
			b.contradiction(at)
		}
		if older := l.known.Older; older != "" {
			b.leads = append(b.leads, lead{Link{Rel: b.kind.Older(), Href: iri.Address(older)}, at.from, at.root, at.mark})
		}
		return
	case l.doc == nil:
		if !b.isNeedless(at, l, from) {
			b.fail(l, from)
		}
		return
	case l.doc.URL != l.url && b.loops.HasSeen(l.doc.URL), b.loops.HasRead(l.text):
		return // it is a document of a chain
	}
	newer := b.succeeds(at, l)
	if newer && b.isAhead(l.doc) {
		return
	}
	fresh := b.loops.IsNew(l.doc.facts()) && !newer
	b.goOn(at, l)
	b.yieldDocument(l)
	if fresh {
		b.idle = 0
		b.contradiction(at)
		return
	}
	if b.idle++; b.idle >= b.meter.most.barren && len(b.leads) > 0 {
		b.giveUp(&Gap{URL: l.url, From: from, Reason: ReasonBarren, Err: fmt.Errorf("%d documents in a row brought nothing new", b.idle)})
	}
}

// giveUp yields a gap, and one for each lead left: a later walk finds the links of archives only by
// reading these again.
func (b *beyond) giveUp(gap *Gap) {
	leads, given := b.leads, map[string]bool{gap.URL: true}
	b.leads = nil
	b.gap(gap)
	for _, at := range leads {
		if !given[at.Href] && !b.loops.HasSeen(at.Href) && !b.processed(at.Href) {
			b.gap(&Gap{URL: at.Href, From: at.from, Reason: gap.Reason, Err: gap.Err})
		}
		given[at.Href] = true
	}
}

// goOn queues the links of a document beyond the chain.
func (b *beyond) goOn(at lead, l *fetchResult) {
	d := l.doc
	if current, ok := b.otherBeginning(l); ok && !b.loops.HasSeen(current.Href) {
		b.leads = append(b.leads, lead{current, d.URL, at.root, at.mark})
		l.again = true
	}
	for _, link := range d.Links {
		if isHistory(link.Rel) && link.Rel != relCurrent && link.Rel != relFirst && link.distance() == 0 {
			link.Href = iri.Address(link.Href)
			b.leads = append(b.leads, lead{link, d.URL, at.root, at.mark})
			l.again = l.again || !b.loops.HasSeen(link.Href)
		}
	}
}

// succeeds reports whether an archive named by next-archive follows those of the chain,
// by its own prev-archive. The publisher has closed it, but not changed the subscription
// document yet, or only after this walk had read the latter. Nothing is missing before
// it.
func (b *beyond) succeeds(at lead, l *fetchResult) bool {
	if at.Rel != relNextArchive {
		return false
	}
	older, _ := l.older(KindArchived)
	return len(older) > 0 && b.loops.HasSeen(older[0])
}

// isAhead reports whether all entries of an archive are in the subscription document, or
// newer than it: they are published only once it has changed.
func (b *beyond) isAhead(d *Document) bool {
	return b.feed.shown != nil && !slices.ContainsFunc(d.Entries, func(e *Entry) bool {
		return !b.feed.shown.Has(e.ID) && !e.Changed().After(b.feed.newest)
	})
}

// otherBeginning returns the link by which an archive names a beginning of the feed
// which the walk has not read (5005#13): it was moved, and the old subscription document is still
// there.
func (b *beyond) otherBeginning(l *fetchResult) (Link, bool) {
	current, ok := l.doc.Links.Rel(relCurrent)
	current.Href = iri.Address(current.Href)
	is := ok && b.kind == KindArchived && l.url != b.feed.start && current.Href != l.url && current.Href != l.doc.URL &&
		iri.Post(current.Href) != iri.Post(b.feed.start) && !b.foreign(current.Href) && !b.begins(current.Href)
	return current, is
}

// begins reports whether the subscription document itself names a URL as the feed's beginning: the
// walk has tried it.
func (b *beyond) begins(url string) bool {
	link, ok := b.feedSigns().head.beginning()
	return ok && iri.Address(link.Href) == url
}

// isNeedless reports whether the absence of a lead's document hides nothing.
func (b *beyond) isNeedless(at lead, l *fetchResult, from string) bool {
	return at.from == at.root && b.isPassed(at) && isAbsent(l.err) || at.Rel == relCurrent && isLasting(l.gap(from))
}

// isPassed reports whether the chain has passed the place of the lead's document, a newer
// archive: its absence then hides nothing.
func (b *beyond) isPassed(l lead) bool { return l.Rel == relNextArchive && l.root != b.feed.start }

// isAbsent reports whether an error means there is no such document.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || reasonOf(err) == ReasonNotFeed
}
