package mirror

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A poll is one Update or Merge under way. What a document brings is held until the
// next one comes, so that the last is committed together with the poll's end.
type poll struct {
	ctx     context.Context
	m       *Mirror
	store   Store
	keep    int
	polls   bool  // it asks for the subscription document: it is an Update
	feed    *Feed // its state as it is to be committed next
	from    int64 // the version that the poll began with
	now     time.Time
	changes *Changes
	err     error                // the store's, in a callback
	looked  map[string]*Document // what document found out
	source  string               // of a Merge

	committing
	asking
	following
	resuming
	seeking
	allowance
	ending
}

// committing is what has come, on its way into the store: held, then waiting, then
// in flight.
type committing struct {
	held    *Change // of the document that came last
	waiting *group  // of those before it, to be committed next
	flight  *flight // what is being committed
	broken  bool    // a commit has failed: there are no more
	sound   *Feed   // the state as it was, while what has come is being taken
}

// asking is where the subscription document is asked for.
type asking struct {
	asks    string               // the address that the walk has asked for
	doubted bool                 // what answers there counts only if it is the same feed
	failure error                // of the subscription document
	waits   map[string]time.Time // until when hosts asked, in this poll, to be left alone
}

// following is how far the walk has come from the subscription document.
type following struct {
	read    bool     // that has come
	start   string   // the URL that it was requested by
	linked  string   // what the document that came last links to
	links   []string // all that it links to, as there may be several links
	rank    Rank     // of the document that came last
	changed bool     // the chain of archives may not be what it was
	cut     bool     // the walk did not come to its end
	whole   bool     // pages are read to the end, not to what is known
	fresh   bool     // the page that came last brought something new
}

// resuming is the way through the documents that earlier polls have left pending.
type resuming struct {
	resumes map[string]bool // pending documents that the walk goes on to
	resumed bool            // it has come to one
	dropped bool            // to one that is pending no more: what it leads to is not wanted
	unread  bool            // some were cut off from earlier polls: they come before any search
}

// seeking is the search for entries that have left the subscription document, and
// are in no archive that is known (5005#9).
type seeking struct {
	sought   map[string]bool // the entries
	searches bool            // the walk is where an earlier search had come to
}

// allowance is what is left of the Quota.
type allowance struct {
	quota    Quota
	full     bool  // it is used up
	entering int64 // entries that are about to be counted
}

// ending is what the feed's state says once the poll has ended.
type ending struct {
	ready      time.Time // when the next poll is welcome
	unfinished bool      // an earlier poll has still not ended
}

// address is where to ask for the feed.
func (p *poll) address() string {
	if p.feed.Address != "" {
		return p.feed.Address
	}
	return p.feed.URL
}

// next is the version of the feed that the next commit makes.
func (p *poll) next() int64 { return p.feed.Version + 1 }

func (p *poll) options() *feedhistory.WalkOptions {
	opt := &feedhistory.WalkOptions{Processed: p.processed, Known: p.known}
	for _, pending := range p.feed.Pending { // what was tried least comes first
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

// processed reports whether an archive document has been processed in an
// earlier poll. Where an entry is sought, none has; but first come those that
// have not been read yet.
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

// leavesAlone reports whether a pending document is not to be asked for now.
func (p *poll) leavesAlone(pending *Pending) bool {
	return isAsked(pending.Wait, p.now) || pending.Quota && p.full
}

// known returns what to make a request conditional with. The second page of
// pages that have not changed is not asked for.
func (p *poll) known(url string) feedhistory.Known {
	if url == withoutFragment(p.asks) {
		known := p.feed.Known
		if p.doubted || !p.full && slices.ContainsFunc(p.feed.Gaps, isShort) {
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

// document returns a processed document; nil if it is none. It must not be
// changed.
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
	if len(p.looked) > 100 { // each is asked for a few times, and in a row
		clear(p.looked)
	}
	p.looked[url] = d
	return d
}

// take takes what the walk yields next.
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
	if isGap { // also at what is not wanted any more
		p.waitFor(gap)
	}
	p.sound = p.feed.clone()
	err = p.takeNext(doc, err)
	if err == nil || errors.Is(err, errEnded) {
		p.sound = nil
	}
	return err
}

// takeNext takes a document, or what came in its place. If it fails, what is held
// and the feed's state are not sound any more.
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
		p.feed.Wait = later(p.feed.Wait, until)
		return p.failed(doc, err)
	case !p.read || doc.Response.Requested == p.start:
		return p.subscription(doc)
	default:
		return p.older(doc)
	}
}

// goesOn reports whether a document is wanted: what was pending when the poll
// began may not be any more, and so neither is what it leads to.
func (p *poll) goesOn(url string) bool {
	if url == p.feed.Search && len(p.sought) > 0 {
		p.searches, p.dropped = true, false
	} else if p.resumes[url] {
		delete(p.resumes, url) // a gap may follow that names the document
		p.resumed = true
		p.dropped = p.feed.pending(url) < 0
	}
	return !p.dropped
}

// unchanged notes that a document is what it was.
func (p *poll) unchanged(u *feedhistory.Unchanged) {
	if p.read {
		return
	}
	p.read, p.start = true, u.Response.Requested
	p.readAt(u.Response)
}

// readAt notes that, and where, the subscription document was read.
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

// failed notes that there is no subscription document, or a damaged one, whose
// entries count all the same.
func (p *poll) failed(doc *feedhistory.Document, err error) error {
	if p.failure != nil { // nor is there one at the address that was subscribed to
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
	m, err := p.merge(source{doc: doc, rank: p.rankOf(doc, p.rank)})
	if err == nil {
		p.held = &m.change
		p.short(doc, m)
	}
	return err
}

// later is when the next poll is welcome, given when the feed wants it.
func (p *poll) later(asked time.Time) time.Time { return later(asked, p.now.Add(p.m.every())) }

// rankOf returns the rank of a document with the given place, that has the time
// of its newer neighbour if it has none of its own.
func (p *poll) rankOf(doc *feedhistory.Document, neighbour Rank) Rank {
	for _, t := range []time.Time{doc.Updated, doc.LastModified} {
		if !t.IsZero() {
			neighbour.Time = t
			break
		}
	}
	return neighbour
}
