package mirror

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// errEnded ends a walk whose remaining documents are not wanted.
var errEnded = errors.New("the walk has ended")

// walk requests the feed at an address, and processes the documents of the walk.
func (p *poll) walk(address string) error {
	p.address.url = address
	client := p.m.clientFor(p.feed.URL)
	defer func() {
		if p.due.waits.heed(address, client) {
			p.commits.hold()
		}
	}()
	for r, err := range client.Walk(door.WithPast(p.ctx, p.past()), address) {
		if err := p.take(r, err); errors.Is(err, errEnded) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// take processes the next Reading of the walk, or the error that ends it.
func (p *poll) take(r *feedhistory.Reading, err error) error {
	switch {
	case p.documents.err != nil:
		return p.documents.err
	case err != nil:
		doc := r.Readable()
		return p.step(doc, func() error { return p.fail(doc, err) })
	case r.Document != nil || r.Unchanged:
		if err := p.step(r.Document, func() error { return p.read(r) }); err != nil {
			return err
		}
		if r.Document != nil {
			p.chain.received[r.URL], p.chain.received[r.Document.URL] = true, true
		}
	}
	p.chain.ended = r.End
	for _, gap := range r.Gaps {
		if err := p.miss(gap, r); err != nil {
			return err
		}
	}
	return nil
}

// miss processes a gap of a Reading, or in its place. One within a document belongs to the
// document's commit.
func (p *poll) miss(gap *feedhistory.Gap, r *feedhistory.Reading) error {
	p.pages.torn = p.pages.torn || isWithin(gap) || !p.chain.isAside(gap.URL)
	switch {
	case !isWithin(gap):
		return p.step(gap.Document, func() error {
			p.due.waitFor(gap, p.address.url)
			p.reach(gap.URL)
			return p.gap(gap, r.Known)
		})
	case gap.Reason != feedhistory.ReasonContradiction || p.brought || p.alternatives.rereads || p.ledger.Kind == feedhistory.KindComplete:
		p.chain.oweWithin(gap, r.Document)
	}
	return nil
}

// step does the work on a document, or on something without one, in a commit of its own. If it
// fails, neither the held change nor the feed's state can be used.
func (p *poll) step(next *feedhistory.Document, work func() error) error {
	p.brought = false
	if err := p.makeRoom(next); err != nil {
		return err
	}
	p.snapshot, p.merger.digests = p.feed.clone(), newDigests(p.m.shelf != nil)
	err := work()
	if err == nil || errors.Is(err, errEnded) {
		p.snapshot = nil
	}
	return err
}

// makeRoom commits earlier documents, or lets them wait, before the next one is
// processed. The subscription document asks the store for more than its own entries, as
// does any document of a feed that turns out to be complete.
func (p *poll) makeRoom(next *feedhistory.Document) error {
	p.due.notEnded(feedtime.Later(p.m.now(), p.feed.Wait))
	decisive := next != nil && (p.due.update && (!p.chain.read || next.Response.Requested == p.chain.start) || next.Complete || p.merger.mayRename(next))
	return p.commits.makeRoom(next, decisive)
}

// read processes a document, or the answer that it has not changed.
func (p *poll) read(r *feedhistory.Reading) error {
	if !p.chain.read {
		p.changes.Response = r.Response
		if err := p.address.first(r.Document, r.Response); err != nil {
			return err
		}
		if p.due.update && !p.address.doubted {
			if aside, err := p.strangers.meet(r.Document, r.Response, p.address.url); err != nil {
				return err
			} else if aside {
				p.address.failed(&strangerError{p.feed.URL, r.Document.URL})
				return errEnded
			}
		}
	}
	p.reach(r.URL)
	switch {
	case r.Unchanged:
		p.unchanged(r)
		return nil
	case !p.chain.read || r.URL == p.chain.start:
		return p.subscription(r)
	default:
		return p.older(r)
	}
}

// fail processes the error that ends the walk. The entries of a damaged subscription document
// count nevertheless.
func (p *poll) fail(doc *feedhistory.Document, err error) error {
	if p.chain.read || p.ctx.Err() != nil {
		return err
	}
	until, _ := p.due.waits.asked(err)
	p.feed.Wait = feedtime.Later(p.feed.Wait, until)
	if !p.address.failed(err) || doc == nil {
		return nil
	}
	url := iri.WithoutFragment(p.address.url)
	gap := feedhistory.NewGap(url, err)
	gap.From, gap.Found = url, p.now
	p.oweAgain(gap) // it may have more than the mirror
	m, err := p.merger.merge(source{doc: doc, rank: rankOf(doc, p.chain.rank)})
	if err == nil {
		p.commits.held = &m.change
		p.oweLeftOut(doc, m)
	}
	return err
}

// reach notes the arrival of the walk at a document.
func (p *poll) reach(url string) {
	if p.chain.read {
		p.chain.aside = p.chain.own[url] && p.rechecks.urls[url] || p.chain.aside && p.chain.leadsTo(url)
		p.chain.beyond = p.chain.isAside(url)
	}
	if p.backlog.urls[url] && !p.rechecks.urls[url] {
		delete(p.backlog.urls, url) // a gap naming the document may follow
		p.backlog.reached = true
	}
}

// isAside reports whether the walk does not come to a document along the chain from the
// subscription document.
func (c *chainWalk) isAside(url string) bool {
	return url != c.start && (c.beyond || !c.leadsTo(url) && url != c.ledger.Known.Older)
}

// leadsTo reports whether the latest document of the chain links to a URL.
func (c *chainWalk) leadsTo(url string) bool { return url == c.linked || slices.Contains(c.links, url) }

// unchanged notes an unchanged document.
func (p *poll) unchanged(r *feedhistory.Reading) {
	if p.chain.read {
		if d := p.documents.get(r.URL); d != nil {
			p.chain.linked, p.chain.links, p.chain.forms = r.Known.Older, append(slices.Clone(d.Further), r.Known.Instead), r.Known.Formats
			if !p.chain.beyond {
				p.chain.asks = p.chain.asks && d.First >= p.chain.until && p.chain.until > 0
				p.chain.met, p.chain.joined = true, true
			}
			p.chain.again = true
			p.commits.reread(d, r.Known, p.now)
		}
		return
	}
	p.chain.read, p.chain.start = true, r.URL
	p.chain.linked, p.chain.links, p.chain.forms = r.Known.Older, []string{r.Known.Instead}, r.Known.Formats
	p.ledger.Known.ETag, p.ledger.Known.LastModified = r.Known.ETag, r.Known.LastModified
	p.pages.ended = p.pages.toEnd && r.Known.Older == "" && !r.Known.Lost // the only page
	if p.address.asksAnew() || p.ledger.Answered.IsZero() {
		p.ledger.Answered = p.now
	}
	p.address.readAt(r.Response)
}

// subscription processes the subscription document, or a second copy of it,
// which is newer than the first.
func (p *poll) subscription(r *feedhistory.Reading) error {
	f, l, doc, kind := p.feed, p.ledger, r.Document, r.Document.Kind()
	l.Clock = feedtime.Later(l.Clock, p.m.byNow(doc.Response.Received))
	rank := rankOf(doc, Rank{Time: l.Clock, Seq: f.Polls << 32})
	if p.chain.read { // the chain may have moved: an archive was not there
		rank.Seq += 1 << 31
		if d := l.document(p.chain.linked); d != nil {
			d.Missing, d.Reason, d.Message, d.Poll = true, feedhistory.ReasonStatus, "it was not found", f.Polls
			d.Tries++
		}
	}
	contradicts := len(doc.Further(kind)) > 0
	replaces := kind == feedhistory.KindComplete && !contradicts
	m, err := p.merger.merge(source{doc: doc, rank: rank, window: true, replaces: replaces, voids: replaces && !isShortOf(doc)})
	if err != nil {
		return err
	}
	p.chain.rank, p.commits.held, p.pages.fresh = rank, &m.change, m.fresh
	p.changes.Documents++
	p.pages.toEnd = p.pages.toEnd || l.Kind != feedhistory.KindPaged
	p.pages.shift(doc)
	p.chain.joined = p.chain.joined || m.hasSettled() || m.hasFrom(p.merger.from)
	p.chain.clearGaps(doc, m, kind, doc.URL, p.alternatives.rereads)
	p.unname(doc)
	l.crossOut(func(d debt) bool { return d.Again && d.Poll < f.Polls })
	late := p.isLate(doc.Response.Requested) || p.isLate(doc.URL)
	p.alternatives.late = p.alternatives.late || late
	l.take(doc.Response.Requested)
	l.take(doc.URL)
	if !p.chain.read {
		err = p.readings.compare(doc, m, late)
	}
	if err == nil {
		err = p.readings.receive(doc, m, false, f.Polls)
	}
	if err == nil {
		err = p.arrive(doc, m, contradicts)
	}
	if err == nil {
		err = p.readings.keepRanks(m, rank)
	}
	l.crossOut(isLeftOut)
	p.oweLeftOut(doc, m)
	if err != nil {
		return err
	}
	if l.Known.Older != r.Known.Older || l.Kind != kind {
		l.Unsettled = true
	}
	p.chain.read, p.chain.start = true, doc.Response.Requested
	l.Kind, l.Known, l.Further = kind, r.Known, nil
	f.Title, f.Head, l.Schedule = doc.Title, headOf(doc), doc.Schedule
	l.Answered, l.Pace = p.now, paceOf(doc)
	if kind == feedhistory.KindArchived {
		l.Further = furtherOf(doc)
		p.chain.asks = p.chain.asks || p.chain.owes() && !p.backlog.unread
	}
	p.address.readAt(doc.Response)
	if kind == feedhistory.KindPaged {
		p.pages.end(doc, p.chain.beyond)
		if !p.pages.goesOn() {
			return nil
		}
	}
	return p.chain.link(doc, kind, r.Known.Formats)
}

// paceOf returns the time spanned by the entries of a window; zero if it is none, or they have no
// times.
func paceOf(doc *feedhistory.Document) time.Duration {
	if kind := doc.Kind(); kind == feedhistory.KindComplete || kind == feedhistory.KindArchived {
		return 0
	}
	if slices.ContainsFunc(doc.Entries, func(e *feedhistory.Entry) bool { return e.Time().IsZero() }) {
		return 0
	}
	oldest, newest := spanOf(doc)
	return newest.Sub(oldest)
}

// spanOf returns the earliest and the latest time of an entry; zero if none has a time.
func spanOf(doc *feedhistory.Document) (oldest, newest time.Time) {
	for _, e := range doc.Entries {
		at := e.Time()
		if !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
		newest = feedtime.Later(newest, at)
	}
	return oldest, newest
}

// headOf returns a document's head section as Atom, or "" if it cannot be
// written.
func headOf(doc *feedhistory.Document) string {
	head := *doc
	head.Entries, head.Deleted = nil, nil
	var b strings.Builder
	w := compose.NewWriter(&b, feedhistory.FormatAtom, &head)
	w.Verbatim = true // what republishes it repairs it
	if w.Close() != nil {
		return ""
	}
	return b.String()
}

// older processes an archive document or a page.
func (p *poll) older(r *feedhistory.Reading) error {
	p.changes.Documents++
	doc, requested := r.Document, r.URL
	known, digest := p.documents.get(requested), p.merger.digests.ofAll(doc)
	s := source{doc: doc, rank: rankOf(doc, p.chain.neighbour(requested, known))}
	if known != nil && known.Digest == digest {
		s.rank = known.Rank // it is as recent as it was
	}
	p.chain.rank = s.rank
	page, contradicts := p.chain.isPage(requested), p.ledger.Kind == feedhistory.KindComplete
	p.alternatives.late = p.alternatives.late || p.isLate(requested)
	p.ledger.take(requested)
	if p.chain.forms && p.chain.leadsTo(requested) { // the first link leads to this document, too
		p.ledger.take(p.chain.linked)
	}
	p.chain.clearGaps(doc, nil, p.ledger.Kind, p.ledger.Known.URL, p.alternatives.rereads)
	p.unname(doc)
	if s.archive = !page && !contradicts; s.archive {
		// It may be a known one, by its URL or by the target of a redirect. Its self link
		// shows nothing: the address may have another document, or none.
		if there := p.documents.get(doc.URL); known == nil && there != nil && there.URL == doc.URL {
			known = there
		}
		s.again = known != nil
		s.same = s.again && known.Digest == digest
	}
	m, err := p.merger.merge(s)
	if err != nil {
		return err
	}
	p.commits.held, p.brought = &m.change, m.brings()
	switch {
	case contradicts: // fh:complete contradicts a page or an archive
		return nil
	case page:
		return p.page(r, m)
	}
	return p.archive(r, m, known, digest)
}

// neighbour returns the rank of a document without a time of its own.
func (c *chainWalk) neighbour(url string, known *DocumentRecord) Rank {
	rank := c.rank
	if d := c.ledger.document(url); d != nil {
		rank = d.Rank
	}
	rank.Seq--
	if known != nil { // it is as recent as the document that first led to it was then
		rank = known.Rank
	}
	return rank
}

// rankOf returns the rank of a document with the given place. A document without a time
// of its own has its newer neighbour's.
func rankOf(doc *feedhistory.Document, neighbour Rank) Rank {
	neighbour.Time = feedtime.First(doc.Updated, doc.LastModified, neighbour.Time)
	return neighbour
}

// isPage reports whether the document at a URL is read as a page, which the link to it decides,
// the chain's first, else the kind of the feed.
func (c *chainWalk) isPage(url string) bool {
	l := c.ledger
	if d := l.document(url); d != nil && !(l.Kind == feedhistory.KindArchived && url == c.linked) {
		return d.Page
	}
	return l.Kind == feedhistory.KindPaged
}

// page processes a merged page. If it has nothing new, neither do the pages after it.
func (p *poll) page(r *feedhistory.Reading, m *mergeResult) error {
	doc := r.Document
	p.pages.fresh = m.fresh
	p.pages.end(doc, p.chain.beyond)
	if m.refused > 0 {
		return p.refuse(doc, m.refused, m.source.rank, true)
	}
	if p.pages.goesOn() || p.backlog.reached {
		return p.chain.link(doc, feedhistory.KindPaged, r.Known.Formats)
	}
	return nil
}

// archive processes a merged archive document, with its record; nil if it is new.
func (p *poll) archive(r *feedhistory.Reading, m *mergeResult, known *DocumentRecord, digest string) error {
	doc, d := r.Document, p.newDocument(r, m.source.rank, digest)
	p.ledger.Unsettled = true
	first := p.feed.Polls
	if known != nil && known.Digest == d.Digest {
		first = known.First
	}
	p.chain.meetArchive(m, d, known)
	if err := p.readings.receive(doc, m, true, first); err != nil {
		return err
	}
	if m.refused > 0 || known == nil && !p.allowance.reserveDocument(d, nil) {
		return p.refuse(doc, m.refused, d.Rank, false)
	}
	if known == nil {
		p.feed.Documents++
	} else {
		if known.Digest != d.Digest {
			p.changes.Altered++
			d.Altered = p.feed.Polls
		} else {
			d.Altered = known.Altered
		}
		d.URL, d.First = known.URL, known.First
		if known.Digest == d.Digest || known.Known.URL == d.Known.URL { // otherwise its name leads to another document now
			d.Names = slices.Concat(known.Names, d.Names)
		}
		slices.Sort(d.Names)
		d.Names = slices.Compact(d.Names)
		p.allowance.reserveDocument(d, known)
	}
	for _, name := range d.Names { // it may have been pending under another of its names
		p.ledger.take(name)
	}
	if l := p.ledger; d.Known.Digest == "" && len(l.Leading) < pendingLimit && !slices.Contains(l.Leading, d.URL) {
		l.Leading = append(slices.Clone(l.Leading), d.URL)
	}
	m.change.Documents = append(m.change.Documents, d)
	return p.chain.link(doc, feedhistory.KindArchived, r.Known.Formats)
}

// meetArchive notes an archive for the write-offs: whether the chain has entries known
// before, and, of a known document outside of the chain, where its entries are now.
func (c *chainWalk) meetArchive(m *mergeResult, d, known *DocumentRecord) {
	if !c.beyond {
		c.joined = c.joined || m.hasFrom(c.merger.from)
	}
	if known == nil {
		return
	}
	ranks := make([]int64, 0, len(m.items))
	for r := range m.records() {
		if r.State == Live {
			ranks = append(ranks, r.Copy.Rank.Seq)
		}
	}
	for _, name := range append(d.Names, known.Names...) {
		c.ranks[name] = ranks
	}
}

// link marks the document linked by doc as pending, unless it has been processed. Its first two
// links may lead to one document in two formats.
func (c *chainWalk) link(doc *feedhistory.Document, kind feedhistory.Kind, forms bool) error {
	url, ok := olderOf(doc, kind)
	c.linked, c.links, c.forms = url, nil, forms
	for _, l := range doc.Links {
		if l.Rel == "prev-archive" || l.Rel == "next" {
			c.links = append(c.links, iri.Address(l.Href))
		}
	}
	if !ok || url == doc.URL || url == doc.Response.Requested {
		return c.documents.err
	}
	if kind == feedhistory.KindArchived && c.documents.get(url) != nil {
		return c.documents.err
	}
	c.owe(debt{
		Kind: debtDocument, URL: url, From: doc.URL, Reason: feedhistory.ReasonInterrupted, Message: "it has not been read yet", Found: c.now,
		tries: tries{Rank: c.rank, Page: kind == feedhistory.KindPaged, Wait: c.waits.at(url)},
	})
	return c.documents.err
}

// damaged processes the readable part of a damaged document.
func (p *poll) damaged(doc *feedhistory.Document, forms bool) error {
	known := p.documents.get(doc.Response.Requested)
	rank := rankOf(doc, p.chain.neighbour(doc.Response.Requested, known))
	page := p.chain.isPage(doc.Response.Requested)
	m, err := p.merger.merge(source{doc: doc, rank: rank, archive: !page})
	if err != nil {
		return err
	}
	p.chain.rank, p.commits.held, p.pages.fresh = rank, &m.change, true
	p.ledger.meet(m)
	kind := feedhistory.KindArchived
	if page {
		kind = feedhistory.KindPaged
	}
	return p.chain.link(doc, kind, forms)
}
