package mirror

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
)

// A finishedPoll is a PollResult with its place in the queue.
type finishedPoll struct {
	PollResult
	turn *turn
}

// run polls the waiting feeds and, if goesOn, those falling due.
func (p *Poller) run(ctx context.Context, goesOn bool) (err error) {
	p.lock()
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan finishedPoll)
	running := 0
	end := func(e finishedPoll) {
		running--
		if failed := p.end(e, goesOn); failed != nil && err == nil {
			err = failed
			cancel()
		}
	}
	for ctx.Err() == nil {
		if goesOn {
			p.due(ctx)
		}
		for ; running < cmp.Or(p.Parallel, 8); running++ {
			t, ctx := p.next(ctx)
			if t == nil {
				break
			}
			go func() { ended <- finishedPoll{p.poll(ctx, t), t} }()
		}
		if running == 0 && p.Waiting() == 0 {
			if err := p.rests(ctx, goesOn); err != nil || !goesOn {
				return err
			}
		}
		select {
		case e := <-ended:
			end(e)
		case <-p.alarm(goesOn):
		case <-p.changed:
		case <-ctx.Done():
		}
	}
	for running > 0 {
		end(<-ended)
	}
	return err
}

// rests does the work best left until no feed is being polled. If goesOn, it passes an
// error of the Store to Trouble; otherwise it returns the error.
func (p *Poller) rests(ctx context.Context, goesOn bool) error {
	if !p.added {
		return nil
	}
	p.added = false
	indexer, ok := p.Mirror.Store.(Indexer)
	if !ok {
		return nil
	}
	err := indexer.Index(ctx)
	switch {
	case ctx.Err() != nil:
		return nil // the first search will index
	case err != nil && goesOn:
		p.trouble(err)
		return nil
	}
	return err
}

func (p *Poller) trouble(err error) {
	if p.Trouble != nil {
		p.Trouble(err)
	}
}

// alarm returns a channel that fires when there may be something to do even though no
// poll has ended.
func (p *Poller) alarm(goesOn bool) <-chan time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	at, ok := p.queue.wake()
	if goesOn && (!ok || p.look.Before(at)) {
		at, ok = p.look, true
	}
	if p.rest.After(now) {
		at = p.rest
	}
	if !ok {
		return nil
	}
	return time.After(max(at.Sub(now), time.Millisecond))
}

// next returns the turn of the feed to poll now, with the context for the poll.
// The turn is nil if there is no such feed.
func (p *Poller) next(ctx context.Context) (*turn, context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.rest.After(now) {
		return nil, ctx
	}
	t := p.queue.next(now)
	if t != nil {
		ctx, t.cancel = context.WithCancel(ctx)
	}
	return t, ctx
}

// never is the due time of a feed not due. A later look finds out when it is.
var never = time.Unix(1<<40, 0)

// A candidate is a feed now or later due.
type candidate struct {
	url, host  string
	next, wait time.Time
	at         time.Time // when to poll it; a time not after now means now
}

func candidateOf(f *Feed, now time.Time) candidate {
	c := candidate{url: f.URL, host: f.host(), next: f.Next}
	if f.Waits(now) {
		c.wait = f.Wait
	}
	return c
}

// due enqueues the due feeds, and sets when to look again.
func (p *Poller) due(ctx context.Context) {
	now := time.Now()
	query, ok := p.query(now)
	if !ok {
		return
	}
	var feeds []candidate
	for f, err := range p.Mirror.Store.Feeds(ctx, query) {
		if err != nil {
			if ctx.Err() == nil {
				p.trouble(err)
				p.pauseAll(now)
			}
			return
		}
		c := candidateOf(f, now)
		c.at = p.dueAt(ctx, f, now)
		feeds = append(feeds, c)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.enqueue(feeds, now)
}

// query returns the query for the Store; ok is false if it is not yet time to look for
// due feeds.
func (p *Poller) query(now time.Time) (FeedQuery, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.look.After(now), p.rest.After(now):
		return FeedQuery{}, false
	case !p.scan.After(now):
		p.look, p.scan = now.Add(lookEvery), now.Add(scanEvery)
		return FeedQuery{}, true
	}
	p.look = now.Add(lookEvery)
	return FeedQuery{Due: p.look, Limit: mostToLook}, true
}

// enqueue puts the feeds whose time has come into the queue, in the order of
// their times.
func (p *Poller) enqueue(feeds []candidate, now time.Time) {
	slices.SortStableFunc(feeds, func(a, b candidate) int { return a.next.Compare(b.next) })
	for _, c := range feeds {
		if !c.wait.IsZero() {
			p.quiet[c.host] = feedtime.Later(p.quiet[c.host], c.wait)
		}
		if at := feedtime.Later(c.at, p.held[c.url]); at.After(now) {
			p.wakeFor(at, now)
			continue
		}
		delete(p.held, c.url)
		p.queue.add(c.url, c.host)
	}
}

// dueAt returns when to poll a feed; a time not after now means now. If another mirror
// seems to be at work on a feed, the feed is left to it.
func (p *Poller) dueAt(ctx context.Context, f *Feed, now time.Time) time.Time {
	switch {
	case p.isLost(ctx, f, now):
		return now
	case f.Gone, f.Alias != "":
		return never
	case f.underWay(now):
		return f.Next.Add(holdFor)
	case f.Due(now) && !f.More:
		return now
	}
	return f.Next
}

// isLost reports whether a feed is an alias of a removed or continually failing feed,
// and must be polled itself again.
func (p *Poller) isLost(ctx context.Context, f *Feed, now time.Time) bool {
	if f.Alias == "" || f.Gone || f.Waits(now) || f.Failures > 0 && f.Next.After(now) {
		return false
	}
	other, err := p.Mirror.Store.Feed(ctx, f.Alias)
	return errors.Is(err, ErrNotFound) || err == nil && !other.canStandFor(f)
}

// wakeFor makes the next look happen in time for a feed due then, but at most once a
// second.
func (p *Poller) wakeFor(next, now time.Time) {
	if soon := now.Add(time.Second); next.Before(soon) {
		next = soon
	}
	if next.Before(p.look) {
		p.look = next
	}
}

// poll polls a feed.
func (p *Poller) poll(ctx context.Context, t *turn) (e PollResult) {
	defer t.cancel()
	e.URL = t.feed
	if e.Before, e.Err = p.Mirror.Store.Feed(ctx, t.feed); e.Err == nil {
		if until := p.quietUntil(e.Before.host()); !until.IsZero() {
			e.Report = e.Before.leftAlone(until)
			return e
		}
		poll := p.Poll
		if poll == nil {
			poll = func(ctx context.Context, f *Feed) (*Report, error) { return p.Mirror.Update(ctx, f.URL) }
		}
		e.Report, e.Err = poll(ctx, e.Before)
	}
	if err := ctx.Err(); err != nil && e.Err != nil && !errors.Is(e.Err, err) {
		e.Err = errors.Join(err, e.Err)
	}
	return e
}

func (p *Poller) quietUntil(host string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := p.quiet[host]
	if !until.After(time.Now()) {
		delete(p.quiet, host)
		return time.Time{}
	}
	return until
}

// leftAlone returns the result of a poll of a feed whose host asks to be left
// alone.
func (f *Feed) leftAlone(until time.Time) *Report {
	return &Report{
		URL: f.URL, Kind: f.Kind, Verdict: f.Verdict, AsOf: f.WholeAsOf(), Checked: f.Checked, Gaps: f.Missing(), Next: feedtime.Later(f.Next, until), Gone: f.Gone,
		Failure: &WaitError{URL: f.URL, Until: until},
	}
}

// end processes the result of a poll. The error is the Store's, and ends Drain.
func (p *Poller) end(e finishedPoll, goesOn bool) error {
	err := p.note(e, goesOn)
	if p.Polled != nil {
		p.Polled(e.PollResult)
	}
	return err
}

func (p *Poller) note(e finishedPoll, goesOn bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.queue.done(e.turn, now)
	if c := e.Report; c != nil {
		p.wakeFor(c.Next, now)
		p.added = p.added || c.Added+c.Changed > 0
		if wait, ok := errors.AsType[*WaitError](c.Failure); ok {
			p.held[e.URL] = wait.Until
		}
	}
	switch {
	case e.Err == nil:
		p.broken = 0
	case errors.Is(e.Err, ErrNotFound), errors.Is(e.Err, context.Canceled), errors.Is(e.Err, context.DeadlineExceeded):
	case errors.Is(e.Err, ErrConflict):
		p.hold(e.URL, now)
	case !goesOn:
		return e.Err
	default:
		p.hold(e.URL, now)
		if p.broken++; p.broken > 1 { // then the cause is not this feed alone
			p.rest = now.Add(holdFor)
		}
	}
	return nil
}

// hold makes a feed wait for a minute, due or not.
func (p *Poller) hold(url string, now time.Time) {
	p.held[url] = now.Add(holdFor)
	p.wakeFor(p.held[url], now)
}

// pauseAll starts no poll for a minute, because the Store cannot be read.
func (p *Poller) pauseAll(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest = now.Add(holdFor)
	p.look, p.scan = p.rest, now
}
