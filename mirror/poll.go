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

// A poll is an Update or a Keep under way. Its parts share a session.
type poll struct {
	*session
	address      *address
	due          *due
	chain        *chainWalk
	pages        *pageWalk
	backlog      *backlog
	rechecks     *rechecks
	readings     *readings
	strangers    *strangers
	alternatives *alternatives

	completed *mergeResult // the complete document whose links contradict its mark
	brought   bool         // the latest document has entries never known before
	snapshot  *Feed        // a copy of the state, while a document is being processed
}

// A session has the state shared by the parts of a poll.
type session struct {
	ctx     context.Context
	m       *Mirror
	feed    *Feed   // the feed's state, as the next commit stores it
	ledger  *ledger // that of the feed
	now     time.Time
	changes *Report
	had     bool // the feed had entries before the poll
	cut     bool // the walk did not reach its end

	commits   *commits
	documents *documents
	merger    *merger
	allowance *allowance
}

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
	if ledger.Ahead != feed.Commits-feed.Polls { // something else has changed its entries
		ledger.Rows, ledger.Ahead = nil, 0
	}
	if ledger.Known.URL != "" && !ledger.hasReading() {
		ledger.Inherited = now
	}
	if ledger.Kind = feed.Kind; feed.Kind == feedhistory.KindUnknown { // an import may have set it, of a feed never read
		ledger.Kind = ""
	}
	ledger.Unsettled = feed.Kind == feedhistory.KindArchived && feed.Verdict <= feedhistory.VerdictPartial // between that and whole, the publisher's own word bounds it
	s := &session{
		ctx: ctx, m: m, feed: feed, ledger: ledger, now: now, changes: &Report{}, had: feed.Entries+feed.Deleted > 0,
		allowance: newAllowance(ctx, m, feed),
	}
	s.commits = &commits{ctx: ctx, commit: m.Store.Commit, feed: feed, prepare: s.prepare}
	if m.shelf != nil {
		s.commits.commit, s.commits.inline = m.shelf.commit, true
	}
	s.documents = &documents{ctx: ctx, store: m.Store, feed: feed, commits: s.commits, found: map[string]*DocumentRecord{}}
	s.merger = &merger{
		ctx: ctx, store: m.Store, feed: feed, from: feed.Commits, now: now, changes: s.changes, allowance: s.allowance,
		program: newProgram(m, ledger),
	}
	feed.Polls++
	feed.Polled = now
	return s.poll(), nil
}

// poll returns the parts of a poll.
func (s *session) poll() *poll {
	f, l := s.feed, s.ledger
	p := &poll{session: s, backlog: &backlog{session: s}, strangers: &strangers{session: s}, alternatives: &alternatives{}}
	p.due = &due{
		session: s, ready: f.Next, unended: f.Unfinished,
		waits: &hostWaits{feed: f, m: s.m, now: s.now, until: map[string]time.Time{}},
	}
	p.address = &address{session: s, due: p.due}
	reading := &chainReading{
		session: s, backlog: p.backlog, received: map[string]bool{}, gone: map[string]bool{}, ranks: map[string][]int64{},
	}
	p.chain = &chainWalk{
		chainReading: reading, waits: p.due.waits, rank: Rank{Time: feedtime.Later(s.now, l.Clock), Seq: f.Polls << 32},
	}
	p.readings = &readings{session: s, chain: reading}
	p.rechecks = &rechecks{session: s, backlog: p.backlog, chain: reading}
	if i := slices.IndexFunc(l.Debts, debt.isAlternative); i >= 0 {
		p.alternatives.rereads, p.alternatives.vain = !l.Debts[i].rests(s.now), l.Debts[i].Tries
	}
	p.pages = &pageWalk{
		session: s,
		toEnd:   f.Kind != feedhistory.KindPaged || l.Known.URL == "" || l.owes(func(d debt) bool { return d.Again }),
	}
	p.pages.leave()
	p.backlog.fill(reading)
	return p
}

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
		if err := p.miss(gap, r.Known); err != nil {
			return err
		}
	}
	return nil
}

// miss processes a gap of a Reading, or in its place. One within a document belongs to the
// document's commit.
func (p *poll) miss(gap *feedhistory.Gap, known feedhistory.Known) error {
	p.pages.torn = p.pages.torn || isWithin(gap) || !p.chain.isAside(gap.URL)
	switch {
	case !isWithin(gap):
		return p.step(gap.Document, func() error {
			p.due.waitFor(gap, p.address.url)
			p.reach(gap.URL)
			return p.gap(gap, known)
		})
	case gap.Reason != feedhistory.ReasonContradiction || p.brought || p.alternatives.rereads || p.ledger.Kind == feedhistory.KindComplete:
		p.chain.oweWithin(gap)
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
				p.address.failed(&strangerError{p.feed.URL})
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
		p.short(doc, m)
	}
	return err
}

// reach notes that the walk has come to a document.
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

// prepare updates the feed's state for a change to be committed.
func (s *session) prepare(c *Commit) {
	s.ledger.Cap = s.feed.bound()
	s.ledger.Unsettled = s.ledger.Unsettled && s.ledger.Kind == feedhistory.KindArchived
	s.feed.Kind, s.feed.Verdict = cmp.Or(s.ledger.Kind, feedhistory.KindUnknown), s.ledger.verdict()
	s.documents.forget(c)
	s.ledger.checkRows(c, s.feed.next()-s.feed.Polls)
	c.response = s.changes.Response
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
	begun := p.commits.waiting != nil || p.feed.Commits > p.merger.from || len(p.due.waits.until) > 0
	if begun {
		p.due.notEnded(p.feed.Wait) // nobody is at work on the feed
	} else {
		p.feed.Next = p.due.ready
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
	p.ledger.crossOut(p.chain.isNotMissed)
	p.pages.settle()
	changed := p.ledger.Unsettled
	if changed || p.chain.owes() {
		if err := p.chain.settle(p.alternatives); err != nil {
			return p.stop(err)
		}
	}
	if err := p.rechecks.note(changed); err != nil {
		return p.stop(err)
	}
	p.declare()
	p.due.ended(p.address.failure)
	if err := p.commits.last(p.ctx); err != nil {
		return p.stop(err)
	}
	return p.report(), nil
}

func (p *poll) report() *Report {
	c := p.changes
	c.Feed, c.Failure = p.feed, p.address.failure
	return c
}
