package mirror

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// A poll is an Update or a Keep under way.
type poll struct {
	ctx     context.Context
	m       *Mirror
	feed    *Feed // the feed's state, as the next commit stores it
	from    int64 // the feed's Commits when the poll began
	now     time.Time
	changes *Report
	update  bool   // the poll is an Update, which requests the subscription document
	source  string // the Source.Name of a Keep, as debt.From has it

	request   request
	chain     chainWalk
	pages     pageWalk
	backlog   backlog
	completed *mergeResult    // the complete document whose links contradict its mark
	whole     map[string]bool // those of them to request even if they have not changed
	rechecks  map[string]bool // the known archives to request again
	waits     hostWaits
	ready     time.Time // when the feed is due again after the poll
	failure   error     // why there is no subscription document
	spent     bool      // the budget has left a known archive unasked
	brought   bool      // the latest document has entries never known before
	had       bool      // the feed had entries before the poll
	late      bool      // a document was read that had failed before
	rereads   bool      // the poll reads all documents again; see settle
	vain      int       // the number of polls that have done so in vain
	cut       bool      // the walk did not reach its end
	unended   bool      // an earlier poll has still not finished
	snapshot  *Feed     // a copy of the state, while a document is being processed
	ledger    *ledger   // that of the feed

	commits   commits
	allowance *allowance
	documents documents
	merger    merger
}

// request is where the subscription document is requested.
type request struct {
	url     string // the address requested by the walk
	doubted bool   // the answer from there counts only if it is the same feed
}

// A chainWalk is how far the walk has come from the subscription document.
type chainWalk struct {
	read   bool     // the subscription document has come
	start  string   // the URL by which it was requested
	linked string   // the older document linked by the latest one
	links  []string // all it links to, as there may be several links
	forms  bool     // the first two of these lead to one document in two formats
	rank   Rank     // the rank of the latest document
	beyond bool     // the walk has left the chain from the subscription document
	aside  bool     // it reads a document of that chain again, and perhaps those the document newly leads to
	ended  bool     // the walk has ended by itself
	chainReading
}

// A pageWalk is how far the walk follows a paged feed.
type pageWalk struct {
	toEnd bool // to the end, not only to the first known page
	fresh bool // the latest page brought something new
	ended bool // it has come to a page that names no next
	torn  bool // a page on the way could not be read, or not all of it
}

// goesOn reports whether the page after the latest one is wanted.
func (w pageWalk) goesOn() bool { return w.toEnd || w.fresh }

// begin starts a poll.
func (m *Mirror) begin(ctx context.Context, url string) (*poll, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	url = iri.WithoutFragment(strings.TrimSpace(url))
	feed, err := m.Store.Feed(ctx, url)
	if errors.Is(err, ErrNotFound) {
		feed, err = NewFeed(url), checkURL(url)
	}
	if err != nil {
		return nil, err
	}
	now, ledger := m.now(), &feed.Ledger.l
	ledger.setRight(now)
	if ledger.Known.URL != "" && !ledger.hasReading() {
		ledger.Inherited = now
	}
	if ledger.Kind = feed.Kind; feed.Kind == feedhistory.KindUnknown { // an import may have set it, of a feed never read
		ledger.Kind = ""
	}
	ledger.Unsettled = feed.Kind == feedhistory.KindArchived && feed.Verdict != feedhistory.VerdictWhole
	p := &poll{
		ctx: ctx, m: m, feed: feed, ledger: ledger, from: feed.Commits, now: now, changes: &Report{},
		ready: feed.Next, unended: feed.Unfinished, had: feed.Entries+feed.Deleted > 0,
		pages: pageWalk{toEnd: feed.Kind != feedhistory.KindPaged || ledger.Known.URL == ""},
		waits: hostWaits{feed: feed, m: m, now: now, until: map[string]time.Time{}}, allowance: newAllowance(ctx, m, feed),
	}
	p.commits = commits{ctx: ctx, store: m.Store, feed: feed, prepare: p.prepare}
	p.documents = documents{ctx: ctx, store: m.Store, feed: feed, commits: &p.commits, found: map[string]*DocumentRecord{}}
	p.merger = merger{
		ctx: ctx, store: m.Store, feed: feed, from: feed.Commits, now: now, changes: p.changes, allowance: p.allowance,
	}
	feed.Polls++
	feed.Polled = now
	p.chain.rank = Rank{Time: feedtime.Later(now, ledger.Clock), Seq: feed.Polls << 32}
	p.chain.received, p.chain.gone, p.chain.ranks = map[string]bool{}, map[string]bool{}, map[string][]int64{}
	if i := slices.IndexFunc(ledger.Debts, debt.isAlternative); i >= 0 {
		p.rereads, p.vain = !ledger.Debts[i].rests(now), ledger.Debts[i].Tries
	}
	p.pages.toEnd = p.pages.toEnd || ledger.owes(func(d debt) bool { return d.Again })
	p.leavePages()
	p.backlog.fill(p)
	return p, nil
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
		if err := p.miss(gap, r.Known); err != nil {
			return err
		}
	}
	return nil
}

// miss processes a gap of a Reading, or in its place. One within a document belongs to the
// document's commit.
func (p *poll) miss(gap *feedhistory.Gap, known feedhistory.Known) error {
	p.pages.torn = p.pages.torn || isWithin(gap) || !p.isAside(gap.URL)
	switch {
	case !isWithin(gap):
		return p.step(gap.Document, func() error {
			p.waitFor(gap)
			p.reach(gap.URL)
			return p.gap(gap, known)
		})
	case gap.Reason != feedhistory.ReasonContradiction || p.brought || p.rereads || p.ledger.Kind == feedhistory.KindComplete:
		p.oweWithin(gap)
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
	p.snapshot, p.merger.digests = p.feed.clone(), newDigests()
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
	p.notEnded(feedtime.Later(p.m.now(), p.feed.Wait))
	decisive := next != nil && (p.update && (!p.chain.read || next.Response.Requested == p.chain.start) || next.Complete || p.merger.mayRename(next))
	return p.commits.makeRoom(next, decisive)
}

// read processes a document, or the answer that it has not changed.
func (p *poll) read(r *feedhistory.Reading) error {
	if !p.chain.read {
		p.changes.Response = r.Response
		if err := p.first(r.Document, r.Response); err != nil {
			return err
		}
		if p.update && !p.request.doubted {
			if aside, err := p.meet(r.Document, r.Response); err != nil {
				return err
			} else if aside {
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

// fail processes the error that ends the walk.
func (p *poll) fail(doc *feedhistory.Document, err error) error {
	if p.chain.read || p.ctx.Err() != nil {
		return err
	}
	until, _ := p.waits.asked(err)
	p.feed.Wait = feedtime.Later(p.feed.Wait, until)
	return p.failed(doc, err)
}

// reach notes that the walk has come to a document.
func (p *poll) reach(url string) {
	if p.chain.read {
		p.chain.aside = p.chain.own[url] && p.rechecks[url] || p.chain.aside && p.chain.leadsTo(url)
		p.chain.beyond = p.isAside(url)
	}
	if p.backlog.urls[url] && !p.rechecks[url] {
		delete(p.backlog.urls, url) // a gap naming the document may follow
		p.backlog.reached = true
	}
}

// isAside reports whether the walk does not come to a document along the chain from the
// subscription document.
func (p *poll) isAside(url string) bool {
	return url != p.chain.start && (p.chain.beyond || !p.chain.leadsTo(url) && url != p.ledger.Known.Older)
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
			p.commits.reread(d, r.Known, p.now)
		}
		return
	}
	p.chain.read, p.chain.start = true, r.URL
	p.chain.linked, p.chain.links, p.chain.forms = r.Known.Older, []string{r.Known.Instead}, r.Known.Formats
	p.ledger.Known.ETag, p.ledger.Known.LastModified = r.Known.ETag, r.Known.LastModified
	p.pages.ended = p.pages.toEnd && r.Known.Older == "" && !r.Known.Lost // the only page
	if p.asksAnew() || p.ledger.Answered.IsZero() {
		p.ledger.Answered = p.now
	}
	p.readAt(r.Response)
}

// prepare updates the feed's state for a change to be committed.
func (p *poll) prepare(c *Commit) {
	p.ledger.Cap = p.feed.bound()
	p.ledger.Unsettled = p.ledger.Unsettled && p.ledger.Kind == feedhistory.KindArchived
	p.feed.Kind, p.feed.Verdict = cmp.Or(p.ledger.Kind, feedhistory.KindUnknown), p.ledger.verdict()
	p.documents.forget(c)
	c.response = p.changes.Response
}

// stop ends the poll with an error not caused by the feed.
func (p *poll) stop(err error) (*Report, error) {
	if p.snapshot != nil {
		*p.feed, p.commits.held = *p.snapshot, nil
	}
	if failed := p.commits.land(); failed != nil {
		err = errors.Join(err, failed)
	}
	p.commits.gather()
	if p.ctx.Err() == nil && p.commits.waiting != nil && !p.commits.broken {
		err = errors.Join(err, p.commits.drain()) // this stores everything read until then
	}
	begun := p.commits.waiting != nil || p.feed.Commits > p.from || len(p.waits.until) > 0
	if begun {
		p.notEnded(p.feed.Wait) // nobody is at work on the feed
	} else {
		p.feed.Next = p.ready
	}
	if p.ctx.Err() != nil && begun && !p.commits.broken && !errors.Is(err, ErrConflict) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), landing)
		defer cancel()
		err = errors.Join(err, p.commits.last(ctx))
	}
	if p.commits.broken || p.commits.waiting != nil {
		p.feed.Verdict = feedhistory.VerdictUnknown // of what the Store has
	}
	return p.report(), err
}

// finish commits the end of the poll.
func (p *poll) finish() (*Report, error) {
	if p.documents.err != nil {
		return p.stop(p.documents.err)
	}
	if err := p.commits.land(); err != nil {
		return p.stop(err)
	}
	p.commits.gather()
	if err := p.replace(); err != nil {
		return p.stop(err)
	}
	p.ledger.crossOut(func(d debt) bool {
		if failed := d.Tries > 0 && d.Poll == p.feed.Polls; failed || !d.isDocument() || d.Page || d.Quota {
			return false
		}
		known := p.documents.get(d.URL) // processed under another name, or before; an earlier, damaged copy pays for nothing
		return known != nil && (known.Last >= d.Poll || !known.Known.Damaged)
	})
	if p.documents.err != nil {
		return p.stop(p.documents.err)
	}
	p.ledger.crossOut(p.isNotMissed)
	p.settlePages()
	changed := p.ledger.Unsettled
	if changed || p.owes() {
		if err := p.settle(); err != nil {
			return p.stop(err)
		}
	}
	if err := p.noteChecked(changed); err != nil {
		return p.stop(err)
	}
	p.declare()
	p.ended()
	if err := p.commits.last(p.ctx); err != nil {
		return p.stop(err)
	}
	return p.report(), nil
}

func (p *poll) report() *Report {
	c := p.changes
	c.Feed, c.Failure = p.feed, p.failure
	return c
}
