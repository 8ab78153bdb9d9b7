package mirror

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
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
		session: s, backlog: p.backlog, received: map[string]bool{}, gone: map[string]bool{}, unread: map[string]bool{}, ranks: map[string][]int64{},
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

// prepare updates the feed's state for a change to be committed.
func (s *session) prepare(c *Commit) {
	s.ledger.Cap = s.feed.bound()
	s.ledger.Unsettled = s.ledger.Unsettled && s.ledger.Kind == feedhistory.KindArchived
	s.feed.judge()
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
	if p.alternatives.rereads && p.chain.read {
		p.ledger.crossOut(debt.isAlternative) // only now, as the poll could have been cut short
	}
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
	if p.chain.ended && p.ledger.Kind == feedhistory.KindArchived {
		p.ledger.Leading = slices.DeleteFunc(slices.Clone(p.ledger.Leading), func(url string) bool { return !p.chain.unread[url] })
	}
	p.ledger.Unsettled = p.ledger.Unsettled || len(p.ledger.Leading) > 0
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
