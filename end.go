package feedhistory

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// The end of a chain. A history is whole only if its last document names nothing older by
// any relation. Documents with contradictory marks, which RFC 5005 leaves undefined
// (5005#26), name more: a page behind fh:complete, an archive that goes on by next, a
// second prev-archive. A walk reads these too, and reports the contradiction.

// Further returns the links by which the document names more of the history than Older
// does, in a feed of the given kind: those that contradict the kind, of several links
// to an older document all but the first, and at the end of a chain next-archive and
// last, which should lead to documents already read. A history is whole only if all of
// them have been, or brought nothing new. There are at most eight.
func (d *Document) Further(feed Kind) (further Links) {
	var main *Link
	if older, ok := d.Links.Rel(feed.Older()); ok {
		main = &older
	}
	for _, link := range d.Links {
		link.Href = iri.WithoutFragment(link.Href)
		switch {
		case !d.goesBeyond(feed, link.Rel), link.distance() > 0, len(further) == 2*mostTargets,
			link.Href == d.URL, link.Href == d.Response.Requested,
			main != nil && link.Href == iri.WithoutFragment(main.Href),
			main != nil && link.Rel == main.Rel && link.Type != main.Type && link.Type != "" && main.Type != "", // another format of the same document
			slices.ContainsFunc(further, func(l Link) bool { return l.Href == link.Href }):
		default:
			further = append(further, link)
		}
	}
	return further
}

// goesBeyond reports whether a link with the relation leads beyond the chain, if it leads
// to a document outside of it.
func (d *Document) goesBeyond(feed Kind, rel string) bool {
	switch feed {
	case Complete:
		return isHistory(rel)
	case Archived:
		return rel == RelNext || rel == RelPrevious || rel == RelLast || rel == RelPrevArchive ||
			rel == RelNextArchive && !d.says(RelPrevArchive)
	case Paged:
		return rel == RelPrevArchive || rel == RelNext || rel == RelLast && !d.says(RelNext)
	}
	return false
}

// contradicts reports whether the document's marks contradict each other.
func (d *Document) contradicts(feed Kind) bool {
	return slices.ContainsFunc(d.Further(feed), func(l Link) bool { return l.Rel != RelNextArchive })
}

// mark returns the mark of a document of this kind.
func (k Kind) mark() string {
	if k == Complete {
		return "fh:complete"
	}
	return k.Older()
}

// A lead is a link beyond the chain.
type lead struct {
	Link
	from string // the URL of the linking document
	root string // the URL of the document of the chain leading here
	mark string // the mark its link contradicts
}

// noteLeads queues the links by which a document of the current chain goes beyond it.
func (w *walk) noteLeads(l *fetchResult) {
	if l.doc == nil {
		w.partly = true
		return
	}
	further := l.doc.Further(w.kind)
	if next, ok := l.doc.Links.Rel(RelNextArchive); ok && w.kind == Archived && l.doc.says(RelPrevArchive) { // a fork
		next.Href = iri.WithoutFragment(next.Href)
		further = append(further, next)
	}
	for _, link := range further {
		if w.loops.HasSeen(link.Href) {
			continue
		}
		at := lead{link, l.doc.URL, l.doc.URL, w.kind.mark()}
		if at.Rel != at.mark && at.isOptional() && (w.gaps > 0 || w.partly) { // the documents it should lead to may not have been read
			continue
		}
		w.leads = append(w.leads, at)
		l.doc.place.again = true
	}
}

// lostBeyond returns a relation that contradicts the kind of the document's feed, with an
// unusable link; "" if there is none.
func (d *Document) lostBeyond(feed Kind) string {
	for _, rel := range []string{RelPrevArchive, RelNext, RelPrevious} {
		if rel != feed.Older() && d.goesBeyond(feed, rel) && d.loses(rel) {
			return rel
		}
	}
	return ""
}

// explore reads the documents beyond the chains, as far as they bring anything new.
func (w *walk) explore() {
	for len(w.leads) > 0 && w.goesOn() {
		next := w.leads[0]
		w.leads = w.leads[1:]
		if w.loops.HasSeen(next.Href) || w.processed(next.Href) {
			continue
		}
		w.begin(Paged)
		if next.Rel == RelPrevArchive || next.Rel == RelNextArchive {
			w.kind = Archived
		}
		w.examine(next)
	}
}

// examine reads a document beyond the chain.
func (w *walk) examine(at lead) {
	from := at.from
	if gap := w.forbids(at.Href); gap != nil {
		if gap.From = from; gap.Reason == ReasonBudget || gap.Reason == ReasonBarren {
			w.leads = nil // one gap covers all
		}
		w.gap(gap)
		return
	}
	l := w.load(at.Href)
	l.from = from
	if gap := cmp.Or(w.strayed(l, from), w.isForeign(l.doc, from)); gap != nil {
		w.gap(gap)
		return
	}
	switch {
	case l.unchanged() != nil:
		w.yieldDocument(l)
		w.contradiction(at)
		if older := l.unchanged().Known.Older; older != "" {
			w.leads = append(w.leads, lead{Link{Rel: w.kind.Older(), Href: iri.WithoutFragment(older)}, at.from, at.root, at.mark})
		}
		return
	case l.doc == nil:
		if at.from != at.root || !at.isOptional() || !isAbsent(l.err) {
			w.fail(l, from)
		}
		return
	case l.doc.URL != l.url && w.loops.HasSeen(l.doc.URL), w.loops.HasRead(l.text):
		return // it is a document of a chain
	}
	newer := w.succeeds(at, l.doc)
	if newer && w.isAhead(l.doc) {
		return
	}
	fresh := w.loops.IsNew(l.doc.facts()) && !newer
	for _, link := range l.doc.Links {
		if isHistory(link.Rel) && link.Rel != RelCurrent && link.Rel != RelFirst && link.distance() == 0 {
			link.Href = iri.WithoutFragment(link.Href)
			w.leads = append(w.leads, lead{link, l.doc.URL, at.root, at.mark})
		}
	}
	if !fresh {
		w.yieldDocument(l)
		if w.idle++; w.idle >= w.budget.Barren && len(w.leads) > 0 {
			w.leads = nil
			w.gap(&Gap{URL: l.url, From: from, Reason: ReasonBarren, Err: fmt.Errorf("%d documents in a row brought nothing new", w.idle)})
		}
		return
	}
	w.idle = 0
	w.pending++ // the gap
	w.yieldDocument(l)
	w.pending--
	w.contradiction(at)
}

// succeeds reports whether an archive named by next-archive follows those of the chain,
// by its own prev-archive. The publisher has closed it, but not changed the subscription
// document yet, or only after this walk had read the latter. Nothing is missing before
// it.
func (w *walk) succeeds(at lead, d *Document) bool {
	if at.Rel != RelNextArchive {
		return false
	}
	older, ok := d.Links.Rel(RelPrevArchive)
	return ok && w.loops.HasSeen(iri.WithoutFragment(older.Href))
}

// isAhead reports whether all entries of an archive are in the subscription document, or
// newer than it: they are published only once it has changed.
func (w *walk) isAhead(d *Document) bool {
	return w.shown != nil && !slices.ContainsFunc(d.Entries, func(e *Entry) bool {
		return !w.shown.Has(e.ID) && !e.Changed().After(w.newest)
	})
}

// contradiction reports a link that contradicts the marks of its document.
func (w *walk) contradiction(at lead) {
	if w.reported == at.root {
		return
	}
	w.reported = at.root
	err := fmt.Errorf("it has %s, and a link %s that leads elsewhere, to %s (5005#26)", at.mark, at.Rel, iri.Redact(at.Href))
	if at.mark == at.Rel {
		err = fmt.Errorf("it has two links %s; the second leads elsewhere, to %s", at.Rel, iri.Redact(at.Href))
	}
	w.gap(&Gap{URL: at.root, From: at.root, Reason: ReasonContradiction, Err: err})
}

// isOptional reports whether the lead's document may be absent: it is one of several for
// the same step, or newer, or named by a stale link.
func (l lead) isOptional() bool {
	return l.Rel == l.mark || l.Rel == RelNextArchive || l.Rel == RelLast
}

// isAbsent reports whether an error means there is no such document.
func isAbsent(err error) bool {
	return IsStatus(err, http.StatusNotFound, http.StatusGone) || is[*NotFeedError](err)
}

// isForeign returns a gap if a document in the chain is one of another feed: its id
// differs, and it has no mark of an archive, which may have an id of its own.
func (w *walk) isForeign(d *Document, from string) *Gap {
	if d == nil || w.kind != Archived || d.ID == "" || w.id == "" || d.ID == w.id || d.Archive || d.says(RelNextArchive) {
		return nil
	}
	if link, ok := d.Links.Rel(RelCurrent); ok && iri.WithoutFragment(link.Href) != d.URL && w.loops.HasSeen(iri.WithoutFragment(link.Href)) {
		return nil
	}
	return w.foreigner(d, from)
}

// foreigner returns the gap for a document of another feed.
func (w *walk) foreigner(d *Document, from string) *Gap {
	return &Gap{URL: d.Response.Requested, From: from, Reason: ReasonForeign,
		Err: fmt.Errorf("it is a document of another feed: its id is %s, not %s", clip(d.ID), clip(w.id))}
}

// unreached continues with a document read to find the beginning, but not reached by
// the chain from there. It may belong to another feed, because links to the beginning
// become stale.
func (w *walk) unreached(l *fetchResult) {
	proven := (w.feed == Complete || w.feed == Archived) && w.gaps == 0 && !w.partly
	if proven && l.doc.ID != "" && w.id != "" && l.doc.ID != w.id {
		w.gap(w.foreigner(l.doc, ""))
		return
	}
	proven = proven && w.loops.IsNew(l.doc.facts())
	if proven {
		w.pending++ // the gap
	}
	w.begin(l.kind())
	w.follow(l)
	if !proven {
		return
	}
	if w.pending--; w.gaps == 0 {
		w.gap(&Gap{URL: l.url, From: l.url, Reason: ReasonDetached, Err: fmt.Errorf("the feed that it names as its own, at %s, does not lead to it", iri.Redact(w.start))})
	}
}
