package mirror

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// Update polls a feed, and adds it to the Store if it is not there yet, even if it cannot
// be read: Remove it then, unless it should be polled again. Update requests the
// subscription document even if you have just read it, because it keeps the validators
// and the place in the chain itself; WalkOptions.First is for walks of your own.
//
// The error comes from the Store or from the context, or says that the URL of a new feed is
// not an absolute one. The Store keeps everything read before an error of the context, and
// the Report is of it. After an error of the Store, it may lack the last of what the Report
// counts; the Verdict is then Unknown. The Report is nil only if the Store could not be read,
// or the feed not added. An unreadable subscription document is not an error of Update but
// Report.Failure. Other unreadable documents are in Gaps.
func (m *Mirror) Update(ctx context.Context, url string) (*Report, error) {
	p, err := m.begin(ctx, url)
	if err != nil {
		return nil, err
	}
	defer p.commits.await()
	if p.feed.Waits(p.now) {
		p.failure = &WaitError{URL: p.feed.URL, Until: p.feed.Wait}
		return p.report(), nil
	}
	p.update, p.feed.Wait = true, time.Time{}
	if err := p.chooseRecheck(); err != nil {
		return p.stop(err)
	}
	if err := p.walks(); err != nil {
		return p.stop(err)
	}
	return p.finish()
}

// errEnded ends a walk whose remaining documents are not wanted.
var errEnded = errors.New("the walk has ended")

// walk requests the feed at an address, and processes the documents of the walk.
func (p *poll) walk(address string) error {
	p.request.url = address
	client := p.m.clientFor(p.feed.URL)
	defer func() {
		if p.waits.heed(address, client) {
			p.commits.hold()
		}
	}()
	for doc, err := range client.Walk(p.ctx, address, p.options()) {
		if err := p.take(doc, err); errors.Is(err, errEnded) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// take processes the next document of the walk, or the error in its place.
func (p *poll) take(doc *feedhistory.Document, err error) error {
	if p.documents.err != nil {
		return p.documents.err
	}
	gap, isGap := errors.AsType[*feedhistory.Gap](err)
	next := doc
	if isGap && doc == nil {
		next = gap.Document
	}
	if err := p.makeRoom(next); err != nil {
		return err
	}
	if isGap { // even if the document is no longer wanted
		p.waitFor(gap)
	}
	p.snapshot = p.feed.clone()
	err = p.takeNext(doc, err)
	if err == nil || errors.Is(err, errEnded) {
		p.snapshot = nil
	}
	return err
}

// makeRoom commits earlier documents, or lets them wait, before the next one is
// processed. The subscription document asks the store for more than its own entries, as
// does any document of a feed that turns out to be complete.
func (p *poll) makeRoom(next *feedhistory.Document) error {
	p.notEnded(feedtime.Later(time.Now(), p.feed.Wait))
	decisive := next != nil && (p.update && (!p.chain.read || next.Response.Requested == p.chain.start) || next.Complete)
	return p.commits.makeRoom(next, decisive)
}

// takeNext processes a document, or the gap in its place. If it fails, neither
// the held change nor the feed's state can be used.
func (p *poll) takeNext(doc *feedhistory.Document, err error) error {
	gap, isGap := errors.AsType[*feedhistory.Gap](err)
	unchanged, isUnchanged := errors.AsType[*feedhistory.Unchanged](err)
	if !p.chain.read && (isUnchanged || err == nil) {
		r := feedhistory.Response{}
		if isUnchanged {
			r = unchanged.Response
		} else {
			r = doc.Response
		}
		if err := p.first(doc, r); err != nil {
			return err
		}
	}
	switch {
	case isGap && isWithin(gap):
		if !p.backlog.dropped {
			p.feed.addGap(newGap(gap))
		}
		return nil
	case isGap && p.goesOn(gap.URL):
		return p.gap(gap)
	case isUnchanged && p.goesOn(unchanged.Response.Requested):
		p.unchanged(unchanged)
		return nil
	case isGap || isUnchanged || doc != nil && !p.goesOn(doc.Response.Requested):
		return nil
	case err != nil && (p.chain.read || p.ctx.Err() != nil):
		return err
	case err != nil:
		until, _ := p.waits.asked(err)
		p.feed.Wait = feedtime.Later(p.feed.Wait, until)
		return p.failed(doc, err)
	case !p.chain.read || doc.Response.Requested == p.chain.start:
		return p.subscription(doc)
	default:
		return p.older(doc)
	}
}

// goesOn reports whether a document is wanted. One pending when the poll began may no
// longer be; then neither it nor its links are wanted.
func (p *poll) goesOn(url string) bool {
	b := &p.backlog
	if p.chain.read {
		p.join.beyond = url != p.chain.start && (p.join.beyond || url != p.join.again && !p.chain.leadsTo(url) && url != p.feed.Known.Older)
	}
	if p.search.resumes(url) || url == p.recheck {
		b.dropped = false
	} else if b.urls[url] {
		delete(b.urls, url) // a gap naming the document may follow
		b.reached = true
		b.dropped = p.feed.pending(url) < 0
	}
	return !b.dropped && (url != p.recheck || p.feed.Kind == feedhistory.Archived || p.completed != nil)
}

// unchanged notes an unchanged document.
func (p *poll) unchanged(u *feedhistory.Unchanged) {
	if p.chain.read {
		if d := p.documents.get(u.Response.Requested); d != nil {
			p.chain.linked, p.chain.links = u.Known.Older, append(slices.Clone(d.Further), u.Known.Instead)
			p.join.fork(d.Further)
			p.join.unchanged(d.First)
			p.commits.reread(d, p.now)
		}
		return
	}
	p.chain.read, p.chain.start = true, u.Response.Requested
	p.readAt(u.Response)
}

// readAt notes the reading of the subscription document, and where.
func (p *poll) readAt(r feedhistory.Response) {
	f := p.feed
	address := f.Address
	switch {
	case r.Permanent != "":
		f.Address, p.changes.Moved = r.Permanent, r.Permanent
	default:
		f.Address = r.Requested
	}
	if f.Address == f.URL {
		f.Address = ""
	}
	if f.Address == address {
		p.changes.Moved = ""
	}
	f.Failures, f.Error, f.Gone, f.Alias, f.Lost = 0, "", false, "", ""
	p.ready, p.unended = p.later(f.Schedule.Next(r)), false
}

// failed notes the lack of a subscription document, or a damaged one, whose entries
// count nevertheless.
func (p *poll) failed(doc *feedhistory.Document, err error) error {
	if p.failure != nil { // the subscribed address has no document either
		p.lost(err)
		return nil
	}
	f := p.feed
	f.Failures++
	f.Error = feedhistory.Describe(err)
	p.failure, p.cut = err, true
	p.ready, p.unended = p.later(p.now.Add(backoff(p.m.every(), f.Failures, 24*time.Hour))), false
	f.Gone = isGone(err) || p.request.doubted && isAway(err) // the other address has been withdrawn
	if doc == nil {
		return nil
	}
	url := iri.WithoutFragment(p.request.url)
	gap := feedhistory.NewGap(url, err)
	gap.From, gap.Found = url, p.now
	f.addGap(newGap(gap)) // until the document is read: it may have more than the mirror
	m, err := p.merger.merge(source{doc: doc, rank: rankOf(doc, p.chain.rank)})
	if err == nil {
		p.commits.held = &m.change
		p.feed.short(doc, m, p.now)
	}
	return err
}

// isCut reports whether a gap is for a damaged subscription document, and it has not
// been read since.
func (f *Feed) isCut(g GapRecord, url string) bool {
	url = iri.WithoutFragment(url)
	return f.Failures > 0 && g.URL == url && g.From == url
}

// rankOf returns the rank of a document with the given place. A document without a time
// of its own has its newer neighbour's.
func rankOf(doc *feedhistory.Document, neighbour Rank) Rank {
	neighbour.Time = feedtime.First(doc.Updated, doc.LastModified, neighbour.Time)
	return neighbour
}
