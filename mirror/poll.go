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

// A poll is an Update or a Merge under way. The change that a document makes is
// held until the next document comes, so that the last change is committed
// together with the end of the poll.
type poll struct {
	ctx     context.Context
	m       *Mirror
	store   Store
	keep    int
	polls   bool  // whether the poll is an Update, which requests the subscription document
	feed    *Feed // the feed's state, as the next commit stores it
	from    int64 // the version of the feed when the poll began
	now     time.Time
	changes *Changes
	err     error                // an error of the store, from a callback
	looked  map[string]*Document // the results of p.document
	source  string               // the Source.Name of a Merge

	committing
	asking
	following
	resuming
	seeking
	allowance
	ending
}

// committing is what has come and is on its way into the store: first held,
// then waiting, then in flight.
type committing struct {
	held    *Change // the change of the latest document
	waiting *group  // the changes of earlier documents, to be committed next
	flight  *flight // the commit under way
	broken  bool    // a commit has failed, so there will be no more
	sound   *Feed   // a copy of the state, while a document is being processed
}

// asking is where the subscription document is requested.
type asking struct {
	asks    string               // the address that the walk has requested
	doubted bool                 // the answer from there counts only if it is the same feed
	failure error                // why there is no subscription document
	waits   map[string]time.Time // until when hosts have asked, in this poll, to be left alone
}

// following is how far the walk has come from the subscription document.
type following struct {
	read    bool     // the subscription document has come
	start   string   // the URL by which it was requested
	linked  string   // the older document that the latest one links to
	links   []string // all that it links to, as there may be several links
	rank    Rank     // the rank of the latest document
	changed bool     // the chain of archives may have changed
	cut     bool     // the walk did not reach its end
	whole   bool     // the walk reads pages to the end, not only to the first known one
	fresh   bool     // the latest page brought something new
}

// resuming is the state of the walk through documents that earlier polls left
// pending.
type resuming struct {
	resumes map[string]bool // pending documents that the walk has yet to reach
	resumed bool            // the walk has reached one of them
	dropped bool            // the walk has reached one that is no longer pending; what it leads to is not wanted
	unread  bool            // earlier polls left documents unread: these come before any search
}

// seeking is the search for entries that have left the subscription document
// and are in no known archive (5005#9).
type seeking struct {
	sought   map[string]bool // the IDs of the entries
	searches bool            // the walk has reached the place where an earlier search stopped
}

// allowance is what is left of the Quota.
type allowance struct {
	quota    Quota
	full     bool  // the quota is used up
	entering int64 // the number of entries that are about to be counted
}

// ending is what the feed's state says once the poll has ended.
type ending struct {
	ready      time.Time // when the next poll is welcome
	unfinished bool      // an earlier poll has still not finished
}

// address returns the URL to request the feed from.
func (p *poll) address() string {
	if p.feed.Address != "" {
		return p.feed.Address
	}
	return p.feed.URL
}

// next returns the version of the feed that the next commit makes.
func (p *poll) next() int64 { return p.feed.Version + 1 }

func (p *poll) options() *feedhistory.WalkOptions {
	opt := &feedhistory.WalkOptions{Processed: p.processed, Known: p.known}
	for _, pending := range p.feed.Pending { // the documents with the fewest tries come first
		switch {
		case !p.resumes[pending.URL]:
		case pending.Page:
			opt.PendingPages = append(opt.PendingPages, pending.URL)
		default:
			opt.Pending = append(opt.Pending, pending.URL)
		}
	}
	if p.feed.Search != "" && !p.unread {
		opt.Pending = append(opt.Pending, p.feed.Search)
	}
	if !p.whole {
		opt.Last = func(*feedhistory.Document) bool { return !p.fresh && !p.resumed }
	}
	return opt
}

// processed reports whether an archive document was processed in an earlier
// poll. During a search for entries no document counts as processed, but
// documents that have not been read yet come first.
func (p *poll) processed(url string) bool {
	if p.m.Revalidate || len(p.sought) > 0 && !p.unread && (p.searches || p.feed.Search == "" || p.feed.Search == url) {
		return false
	}
	if i := p.feed.pending(url); i >= 0 && (p.leavesAlone(&p.feed.Pending[i]) || p.feed.Pending[i].Quota) {
		return p.leavesAlone(&p.feed.Pending[i])
	}
	d := p.document(url)
	return d != nil && d.First < p.feed.Polls
}

// leavesAlone reports whether a pending document is not to be requested now.
func (p *poll) leavesAlone(pending *Pending) bool {
	return isAsked(pending.Wait, p.now) || pending.Quota && p.full
}

// known returns the validators for a conditional request. If the first of
// several pages has not changed, the second is not requested.
func (p *poll) known(url string) feedhistory.Known {
	if url == iri.WithoutFragment(p.asks) {
		known := p.feed.Known
		if p.doubted || !p.full && slices.ContainsFunc(p.feed.Gaps, isShort) || slices.ContainsFunc(p.feed.Gaps, p.isCut) {
			return feedhistory.Known{}
		}
		if p.feed.Kind == feedhistory.Paged {
			known.Older = ""
		}
		return known
	}
	i := p.feed.pending(url)
	if d := p.document(url); d != nil && (i < 0 || !p.feed.Pending[i].Quota) {
		return d.Known
	}
	return feedhistory.Known{}
}

// document returns a processed document, or nil. It must not be changed.
func (p *poll) document(url string) *Document {
	if d := p.underWay(url); d != nil {
		return d
	}
	if d, ok := p.looked[url]; ok || p.feed.Documents == 0 || p.err != nil {
		return d
	}
	d, err := p.store.Document(p.ctx, p.feed.URL, url)
	if err != nil {
		if d = nil; !errors.Is(err, ErrNotFound) {
			p.err = err
			return nil
		}
	}
	if len(p.looked) > 100 { // each document is looked up a few times in succession
		clear(p.looked)
	}
	p.looked[url] = d
	return d
}

// take processes what the walk yields next.
func (p *poll) take(doc *feedhistory.Document, err error) error {
	if p.err != nil {
		return p.err
	}
	gap, isGap := errors.AsType[*feedhistory.Gap](err)
	next := doc
	if isGap && doc == nil {
		next = gap.Document
	}
	if err := p.flush(next); err != nil {
		return err
	}
	if isGap { // even if the document is no longer wanted
		p.waitFor(gap)
	}
	p.sound = p.feed.clone()
	err = p.takeNext(doc, err)
	if err == nil || errors.Is(err, errEnded) {
		p.sound = nil
	}
	return err
}

// takeNext processes a document, or the gap in its place. If it fails, neither
// what is held nor the feed's state can be used.
func (p *poll) takeNext(doc *feedhistory.Document, err error) error {
	gap, isGap := errors.AsType[*feedhistory.Gap](err)
	unchanged, isUnchanged := errors.AsType[*feedhistory.Unchanged](err)
	if !p.read && (isUnchanged || err == nil) {
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
		if !p.dropped {
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
	case err != nil && (p.read || p.ctx.Err() != nil):
		return err
	case err != nil:
		until, _ := p.asksUntil(err)
		p.feed.Wait = feedtime.Later(p.feed.Wait, until)
		return p.failed(doc, err)
	case !p.read || doc.Response.Requested == p.start:
		return p.subscription(doc)
	default:
		return p.older(doc)
	}
}

// goesOn reports whether a document is wanted. A document that was pending when
// the poll began may no longer be, and then what it leads to is not wanted
// either.
func (p *poll) goesOn(url string) bool {
	if url == p.feed.Search && len(p.sought) > 0 {
		p.searches, p.dropped = true, false
	} else if p.resumes[url] {
		delete(p.resumes, url) // a gap that names the document may follow
		p.resumed = true
		p.dropped = p.feed.pending(url) < 0
	}
	return !p.dropped
}

// unchanged notes that a document has not changed.
func (p *poll) unchanged(u *feedhistory.Unchanged) {
	if p.read {
		return
	}
	p.read, p.start = true, u.Response.Requested
	p.readAt(u.Response)
}

// readAt notes that the subscription document was read, and where.
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
	p.ready, p.unfinished = p.later(f.Schedule.Next(r)), false
}

// failed notes that there is no subscription document, or only a damaged one,
// whose entries count nevertheless.
func (p *poll) failed(doc *feedhistory.Document, err error) error {
	if p.failure != nil { // the subscribed address has no document either
		p.lost(err)
		return nil
	}
	f := p.feed
	f.Failures++
	f.Error = feedhistory.Describe(err)
	p.failure, p.cut = err, true
	p.ready, p.unfinished = p.later(p.now.Add(backoff(p.m.every(), f.Failures, 24*time.Hour))), false
	f.Gone = isGone(err) || p.doubted && isAway(err) // the other address has been withdrawn
	if doc == nil {
		return nil
	}
	url := iri.WithoutFragment(p.asks)
	gap := feedhistory.NewGap(url, err)
	gap.From, gap.Found = url, p.now
	f.addGap(newGap(gap)) // until the document is read: it may have more than the mirror
	m, err := p.merge(source{doc: doc, rank: p.rankOf(doc, p.rank)})
	if err == nil {
		p.held = &m.change
		p.short(doc, m)
	}
	return err
}

// isCut reports whether a gap says that the subscription document was damaged, and
// it has not been read since.
func (p *poll) isCut(g Gap) bool {
	url := iri.WithoutFragment(p.asks)
	return p.feed.Failures > 0 && g.URL == url && g.From == url
}

// later returns when the next poll is welcome, given the time that the feed
// asks for.
func (p *poll) later(asked time.Time) time.Time { return feedtime.Later(asked, p.now.Add(p.m.every())) }

// rankOf returns the rank of a document with the given place, that has the time
// of its newer neighbour if it has none of its own.
func (p *poll) rankOf(doc *feedhistory.Document, neighbour Rank) Rank {
	neighbour.Time = feedtime.First(doc.Updated, doc.LastModified, neighbour.Time)
	return neighbour
}
