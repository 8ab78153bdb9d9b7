package mirror

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// older processes an archive document or a page.
func (p *poll) older(doc *feedhistory.Document) error {
	p.changes.Documents++
	requested := doc.Response.Requested
	known := p.documents.get(requested)
	rank := rankOf(doc, p.neighbour(requested, known))
	p.chain.rank = rank
	page := p.feed.isPage(requested)
	p.feed.takePending(requested)
	if p.chain.isInstead(requested) {
		p.feed.takePending(p.chain.linked)
	}
	p.feed.clearGaps(p.feed.furtherOf(doc), doc.URL, requested)
	if p.feed.Kind == feedhistory.Complete { // a page or an archive contradicted by fh:complete
		m, err := p.merger.merge(source{doc: doc, rank: rank})
		if err == nil {
			p.commits.held = &m.change
		}
		return err
	}
	if page {
		return p.page(doc, rank)
	}
	return p.archive(doc, rank, known)
}

// isInstead reports whether the document was read because the first of several
// links led to no document.
func (c *chain) isInstead(url string) bool {
	return url != c.linked && slices.Contains(c.links, url)
}

// leadsTo reports whether the latest document of the chain links to a URL.
func (c *chain) leadsTo(url string) bool { return url == c.linked || slices.Contains(c.links, url) }

// neighbour returns the rank of a document without a time of its own.
func (p *poll) neighbour(url string, known *DocumentRecord) Rank {
	rank := p.chain.rank
	if i := p.feed.pending(url); i >= 0 {
		rank = p.feed.Pending[i].Rank
	}
	rank.Seq--
	if known != nil {
		rank.Seq = known.Rank.Seq
	}
	return rank
}

// isPage reports whether the document at a URL is read as a page, which the
// link to it decides, else the kind of the feed.
func (f *Feed) isPage(url string) bool {
	if i := f.pending(url); i >= 0 {
		return f.Pending[i].Page
	}
	return f.Kind == feedhistory.Paged
}

// page processes a page. If it has nothing new, neither do the pages after it.
func (p *poll) page(doc *feedhistory.Document, rank Rank) error {
	m, err := p.merger.merge(source{doc: doc, rank: rank})
	if err != nil {
		return err
	}
	p.commits.held, p.pages.fresh = &m.change, m.fresh
	if m.refused > 0 {
		return p.refuse(doc, m.refused, rank, true)
	}
	if p.pages.goesOn() || p.backlog.reached {
		return p.link(doc, feedhistory.Paged)
	}
	return nil
}

// archive processes an archive document. It may be a known one, by its URL or by the
// name it gives itself.
func (p *poll) archive(doc *feedhistory.Document, rank Rank, known *DocumentRecord) error {
	m, err := p.merger.merge(source{doc: doc, rank: rank, archive: true})
	if err != nil {
		return err
	}
	for id, r := range m.records {
		if r.Archived || r.State != Live {
			p.search.found(id)
		}
	}
	d := p.newDocument(doc, rank)
	if self, other := p.ownName(doc, d.Digest); known == nil && other != nil {
		known = other
	} else if self != "" {
		d.Names = append(d.Names, self)
	}
	if p.chain.isInstead(d.URL) {
		d.Names = append(d.Names, p.chain.linked)
	}
	p.commits.held, p.chain.changed = &m.change, true
	p.join.fork(d.Further)
	first := p.feed.Polls
	if known != nil {
		first = known.First
	}
	p.join.meet(m, first)
	if known == nil {
		if m.refused > 0 || !p.allowance.reserveDocument(d, nil) {
			return p.refuse(doc, m.refused, rank, false)
		}
		p.feed.Documents++
	} else {
		if m.refused > 0 {
			return p.refuse(doc, m.refused, rank, false)
		}
		if known.Digest != d.Digest {
			p.changes.Altered++
		}
		d.URL, d.First = known.URL, known.First
		d.Names = slices.Concat(known.Names, d.Names)
		slices.Sort(d.Names)
		d.Names = slices.Compact(d.Names)
		p.allowance.reserveDocument(d, known)
	}
	for _, name := range d.Names { // it may have been pending under another of its names
		p.feed.takePending(name)
	}
	m.change.Documents = append(m.change.Documents, d)
	return p.link(doc, feedhistory.Archived)
}

// newDocument returns the mirror's record of an archive document.
func (p *poll) newDocument(doc *feedhistory.Document, rank Rank) *DocumentRecord {
	d := &DocumentRecord{
		URL: doc.Response.Requested, Known: doc.Known(), Rank: rank, Names: []string{doc.Response.Requested},
		First: p.feed.Polls, Last: p.feed.Polls, Read: p.now, Entries: len(doc.Entries), Digest: doc.Digest(),
	}
	d.Known.Kind = feedhistory.Archived
	d.Known.Older, _ = olderOf(doc, feedhistory.Archived)
	d.Further = furtherOf(doc)
	if doc.URL != d.URL {
		d.Names = append(d.Names, doc.URL)
	}
	for _, e := range doc.Entries {
		at := e.Time()
		if at.IsZero() {
			continue
		}
		if d.Oldest.IsZero() || at.Before(d.Oldest) {
			d.Oldest = at
		}
		d.Newest = feedtime.Later(d.Newest, at)
	}
	return d
}

// ownName returns the name a document gives itself (its self link), unless it is the
// feed's URL, as on sites where all documents have the same one, or the name of a
// different document. If a document of this name is known and has the same entries, the
// two are the same document, which ownName returns.
func (p *poll) ownName(doc *feedhistory.Document, digest string) (self string, known *DocumentRecord) {
	link, ok := doc.Links.Rel(feedhistory.RelSelf)
	self = iri.WithoutFragment(link.Href)
	if !ok || !iri.AreSameOrigin(self, doc.URL) ||
		slices.Contains([]string{p.feed.URL, p.feed.Address, p.feed.Known.URL, doc.URL, doc.Response.Requested}, self) {
		return "", nil
	}
	switch other := p.documents.get(self); {
	case other == nil:
		return self, nil
	case other.Digest == digest:
		return "", other
	}
	return "", nil
}

// furtherOf returns the URLs at which an archive goes on beyond its chain, against its marks.
func furtherOf(doc *feedhistory.Document) (urls []string) {
	for _, l := range doc.Further(feedhistory.Archived) {
		if l.Rel != feedhistory.RelNextArchive && l.Rel != feedhistory.RelLast {
			urls = append(urls, l.Href)
		}
	}
	return urls
}

// olderOf returns the URL of the next document back in time, in a chain of the
// given kind.
func olderOf(doc *feedhistory.Document, kind feedhistory.Kind) (string, bool) {
	rel := kind.Older()
	link, ok := doc.Links.Rel(rel)
	return iri.WithoutFragment(link.Href), ok && rel != ""
}

// link marks the document linked by doc as pending, unless it has been processed.
func (p *poll) link(doc *feedhistory.Document, kind feedhistory.Kind) error {
	url, ok := olderOf(doc, kind)
	p.chain.linked, p.chain.links = url, nil
	for _, l := range doc.Links {
		if l.Rel == feedhistory.RelPrevArchive || l.Rel == feedhistory.RelNext {
			p.chain.links = append(p.chain.links, iri.WithoutFragment(l.Href))
		}
	}
	if !ok && kind == feedhistory.Archived && doc.Response.Requested != p.chain.start && !doc.Known().Lost && len(furtherOf(doc)) == 0 {
		p.join.bottom()
	}
	if !ok || url == doc.URL || url == doc.Response.Requested {
		return p.documents.err
	}
	if kind == feedhistory.Archived && p.documents.get(url) != nil {
		return p.documents.err
	}
	f := p.feed
	if i := f.pending(url); i >= 0 {
		if f.Pending[i].Rank.compare(p.chain.rank) < 0 {
			f.Pending[i].Rank = p.chain.rank
		}
		return p.documents.err
	}
	if len(f.Pending) >= pendingLimit {
		f.addGap(GapRecord{
			URL: url, From: doc.URL, Reason: feedhistory.ReasonLimit, Found: p.now,
			Message: fmt.Sprintf("it is not remembered: %d documents are still to be read", pendingLimit),
		})
		return p.documents.err
	}
	f.Pending = append(f.Pending, PendingDocument{Rank: p.chain.rank, Page: kind == feedhistory.Paged, Wait: p.waits.at(url), GapRecord: GapRecord{
		URL: url, From: doc.URL, Reason: feedhistory.ReasonInterrupted, Message: "it has not been read yet", Found: p.now,
	}})
	return p.documents.err
}

// gap processes a hole in the chain. The readable part of a damaged document counts,
// and so does its link.
func (p *poll) gap(g *feedhistory.Gap) error {
	p.chain.changed = true
	p.cut = p.cut || isPassing(g)
	p.changes.More = p.changes.More || g.Reason == feedhistory.ReasonBudget
	if !p.chain.read {
		p.feed.addGap(newGap(g))
		return nil
	}
	if g.Document != nil {
		if err := p.damaged(g.Document); err != nil {
			return err
		}
	}
	i := p.feed.pending(g.URL)
	switch {
	case i < 0 && g.Reason != feedhistory.ReasonLoop && g.From != g.URL && p.documents.get(g.URL) != nil:
		if g.Reason == feedhistory.ReasonBudget && p.search.runs() {
			p.feed.Search = g.URL
		}
		return p.documents.err // its entries are stored; it only could not be read again
	case i < 0:
		p.feed.addGap(newGap(g))
		return p.documents.err
	}
	pending := &p.feed.Pending[i]
	from, again := pending.From, pending.Reason == feedhistory.ReasonLoop
	pending.GapRecord = newGap(g)
	pending.Poll = p.feed.Polls
	pending.From = cmp.Or(pending.From, from)
	if g.Reason != feedhistory.ReasonBudget {
		pending.Tries++
	}
	pending.Missing = isMissing(g)
	pending.Retry, pending.Wait = time.Time{}, p.waits.at(g.URL)
	switch {
	case pending.isPassing() || pending.Tries < 2:
	case g.Reason != feedhistory.ReasonLoop:
		pending.Retry = p.now.Add(backoff(p.m.every(), pending.Tries, longestRetry))
	case again: // a later walk, which has not just read the redirect's target, may succeed
		pending.Retry = p.now.Add(backoff(p.m.every(), pending.Tries, 24*time.Hour))
	}
	return nil
}

// longestRetry is the maximum time before a document refused for good is requested
// again.
const longestRetry = 7 * 24 * time.Hour

// isWithin reports whether a gap is within a document read to its end: the document is
// damaged, has entries beyond a limit or contradictory marks, or its feed does not lead
// to it. The gap stays until the document is read again.
func isWithin(g *feedhistory.Gap) bool {
	switch g.Reason {
	case feedhistory.ReasonMalformed, feedhistory.ReasonLimit, feedhistory.ReasonContradiction, feedhistory.ReasonDetached:
		return g.From == g.URL
	}
	return false
}

// isPassing reports whether the next poll has a good chance to close the gap.
func isPassing(g *feedhistory.Gap) bool {
	return (&PendingDocument{GapRecord: GapRecord{Reason: g.Reason}, Missing: isMissing(g)}).isPassing()
}

// isMissing reports whether a document is refused for good (5005#18).
func isMissing(err error) bool {
	return feedhistory.IsStatus(err, http.StatusForbidden, http.StatusNotFound, http.StatusGone)
}

// damaged processes the readable part of a damaged document.
func (p *poll) damaged(doc *feedhistory.Document) error {
	known := p.documents.get(doc.Response.Requested)
	rank := rankOf(doc, p.neighbour(doc.Response.Requested, known))
	page := p.feed.isPage(doc.Response.Requested)
	m, err := p.merger.merge(source{doc: doc, rank: rank, archive: !page})
	if err != nil {
		return err
	}
	p.chain.rank, p.commits.held, p.pages.fresh = rank, &m.change, true
	kind := feedhistory.Archived
	if page {
		kind = feedhistory.Paged
	}
	return p.link(doc, kind)
}
