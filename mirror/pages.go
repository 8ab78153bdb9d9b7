package mirror

import (
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
)

// Pages are read until one has nothing new. While something is owed, one poll a day reads every
// page, from the first to one without a next link, and finds the missing parts behind it.

// A pageWalk is how far the walk follows a paged feed.
type pageWalk struct {
	*session
	toEnd bool // to the end, not only to the first known page
	fresh bool // the latest page brought something new
	ended bool // it has come to a page that names no next
	torn  bool // a page on the way could not be read, or not all of it
}

// goesOn reports whether the page after the latest one is wanted.
func (w *pageWalk) goesOn() bool { return w.toEnd || w.fresh }

// isOfPages reports whether a reading of every page pays for a debt.
func (l *ledger) isOfPages(d debt) bool {
	isWithin := d.isWithin() && d.URL != l.Known.URL
	return (d.isDocument() && d.Page || isWithin) && !d.Quota || d.isMissed()
}

// leave turns debts within pages, to which the feed no longer leads, into debts for these
// pages: they are asked for, and may be written off.
func (w *pageWalk) leave() {
	if w.ledger.Kind == feedhistory.KindPaged {
		return
	}
	for i := range w.ledger.Debts {
		d := &w.ledger.Debts[i]
		if (d.Kind == debtDamage || d.Kind == debtContradiction) && w.ledger.isOfPages(*d) && w.ledger.document(d.URL) == nil && w.documents.get(d.URL) == nil {
			d.Kind, d.Page, d.From, d.Tries = debtDocument, true, "", 1
		}
	}
}

// choose decides whether the poll reads every page.
func (w *pageWalk) choose() {
	l := w.ledger
	isTime := l.Looked.IsZero() || w.now.Sub(l.Looked) >= 24*time.Hour
	isWanted := func(d debt) bool { return isTime && l.isOfPages(d) && !d.isCut() || d.Shifted && !d.rests(w.now) }
	if l.Kind == feedhistory.KindPaged && l.owes(isWanted) {
		w.toEnd, l.Looked = true, w.now
	}
}

// shift notes that the entries of a page owed may have moved to those before it, since an entry has
// left the first page, and not by its end. Then only a reading of every page pays, and is due.
func (w *pageWalk) shift(first *feedhistory.Document) {
	l, shows := w.ledger, map[string]bool{}
	for _, e := range first.Entries {
		shows[e.ID] = true
	}
	left := slices.IndexFunc(l.Shown, func(id string) bool { return !shows[id] })
	isByEnd := left > 0 && !slices.ContainsFunc(l.Shown[left:], func(id string) bool { return shows[id] })
	if l.Kind != feedhistory.KindPaged || left < 0 || isByEnd {
		return
	}
	for i := range l.Debts {
		if d := &l.Debts[i]; d.isDocument() && l.isOfPages(*d) && !d.isCut() && !d.Shifted {
			d.Shifted, d.Retry = true, time.Time{}
		}
	}
	w.choose()
}

// end notes that a page names no next one.
func (w *pageWalk) end(doc *feedhistory.Document, beyond bool) {
	_, goesOn := olderOf(doc, feedhistory.KindPaged)
	w.ended = w.ended || !beyond && !goesOn && !doc.Known().Lost
}

// settle crosses out the debts paid by a reading of every page.
func (w *pageWalk) settle() {
	if w.ledger.Kind != feedhistory.KindPaged {
		return
	}
	if !w.ended || w.torn {
		w.retry()
		return
	}
	w.ledger.crossOut(func(d debt) bool {
		isPaid := w.ledger.isOfPages(d) && (d.isDocument() || d.Poll < w.feed.Polls)
		if isPaid && d.isDocument() {
			w.withdraw(d)
		}
		return isPaid
	})
}

// retry puts off the next reading of every page for the sake of one owed. If the Budget does not
// reach the end, the page is requested alone.
func (w *pageWalk) retry() {
	for i := range w.ledger.Debts {
		if d := &w.ledger.Debts[i]; d.Shifted && w.toEnd {
			d.Tries++
			d.Shifted, d.Retry = !w.ledger.owes(debt.isCut), w.now.Add(backoff(w.m.every(), d.Tries, 24*time.Hour))
		}
	}
}
