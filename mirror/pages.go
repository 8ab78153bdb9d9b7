package mirror

import (
	"time"

	"github.com/feedhistory/feedhistory"
)

// Pages are read until one has nothing new. What is missing behind it is found by a poll that
// reads every page, from the first to one that names no next: while something is owed, one a day.

// isOfPages reports whether a reading of every page pays for a debt.
func (l *ledger) isOfPages(d debt) bool {
	isWithin := d.isWithin() && d.URL != l.Known.URL
	return (d.isDocument() && d.Page || isWithin) && !d.Quota || d.isMissed()
}

// leavePages turns debts within pages, to which the feed no longer leads, into debts for these
// pages: they are asked for, and may be written off.
func (p *poll) leavePages() {
	if p.ledger.Kind == feedhistory.KindPaged {
		return
	}
	for i := range p.ledger.Debts {
		d := &p.ledger.Debts[i]
		if (d.Kind == debtDamage || d.Kind == debtContradiction) && p.ledger.isOfPages(*d) && p.ledger.document(d.URL) == nil && p.documents.get(d.URL) == nil {
			d.Kind, d.Page, d.From, d.Tries = debtDocument, true, "", 1
		}
	}
}

// choosePages decides whether the poll reads every page.
func (p *poll) choosePages() {
	l := p.ledger
	isTime := l.Looked.IsZero() || p.now.Sub(l.Looked) >= 24*time.Hour
	if l.Kind == feedhistory.KindPaged && isTime && l.owes(func(d debt) bool { return l.isOfPages(d) && !d.isCut() }) {
		p.pages.toEnd, l.Looked = true, p.now
	}
}

// endPages notes that a page names no next one.
func (p *poll) endPages(doc *feedhistory.Document) {
	_, goesOn := olderOf(doc, feedhistory.KindPaged)
	p.pages.ended = p.pages.ended || !p.chain.beyond && !goesOn && !doc.Known().Lost
}

// settlePages crosses out what a reading of every page pays.
func (p *poll) settlePages() {
	if p.ledger.Kind != feedhistory.KindPaged || !p.pages.ended || p.pages.torn {
		return
	}
	p.ledger.crossOut(func(d debt) bool {
		isPaid := p.ledger.isOfPages(d) && (d.isDocument() || d.Poll < p.feed.Polls)
		if isPaid && d.isDocument() {
			p.withdraw(d)
		}
		return isPaid
	})
}
