package mirror

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/settings"
)

// A finishedPoll is the outcome of a poll, with its place in the queue.
type finishedPoll struct {
	turn   *turn
	before *Feed
	report *Report
	err    error
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
			go func() { ended <- p.poll(ctx, t) }()
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
	err := index(ctx, p.Mirror.Store)
	switch {
	case ctx.Err() != nil:
		return nil // the first search will index
	case err != nil && goesOn:
		p.trouble(err)
		return nil
	}
	return err
}

// index indexes the latest entries of a Store, if it indexes at all.
func index(ctx context.Context, s Store) error {
	indexes, ok := s.(interface{ Index(context.Context) error })
	if !ok {
		return nil
	}
	return indexes.Index(ctx)
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
	now := p.Mirror.now()
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
	now := p.Mirror.now()
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
	now := p.Mirror.now()
	p.mu.Lock()
	query, ok := p.query(now)
	p.mu.Unlock()
	if !ok {
		return
	}
	var feeds []candidate
	for f, err := range p.Mirror.Store.Feeds(ctx, query) {
		if err != nil {
			if ctx.Err() == nil {
				p.trouble(err)
				p.mu.Lock()
				p.pauseAll(now)
				p.mu.Unlock()
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

// poll polls a feed.
func (p *Poller) poll(ctx context.Context, t *turn) finishedPoll {
	defer t.cancel()
	e := finishedPoll{turn: t}
	if e.before, e.err = p.Mirror.Store.Feed(ctx, t.feed); e.err != nil {
		e.before = NewFeed(t.feed)
	} else {
		p.mu.Lock()
		until := p.quietUntil(e.before.host(), p.Mirror.now())
		p.mu.Unlock()
		if !until.IsZero() {
			e.report = e.before.leftAlone(until)
			return e
		}
		poll := p.Poll
		if poll == nil {
			poll = func(ctx context.Context, f *Feed) (*Report, error) { return p.Mirror.Update(ctx, f.URL) }
		}
		e.report, e.err = poll(ctx, e.before)
	}
	if err := ctx.Err(); err != nil && e.err != nil && !errors.Is(e.err, err) {
		e.err = errors.Join(err, e.err)
	}
	return e
}

// leftAlone returns the result of a poll of a feed whose host asks to be left
// alone.
func (f *Feed) leftAlone(until time.Time) *Report {
	f = f.clone()
	f.Next, f.Wait = feedtime.Later(f.Next, until), until
	return &Report{Feed: f, Failure: f.waitError(until)}
}

// end processes the result of a poll. The error is the Store's, and ends Drain.
func (p *Poller) end(e finishedPoll, goesOn bool) error {
	err := p.note(e, goesOn)
	if p.Polled != nil {
		p.Polled(e.before, e.report, e.err)
	}
	return err
}

func (p *Poller) note(e finishedPoll, goesOn bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Mirror.now()
	p.queue.done(e.turn, now)
	if c := e.report; c != nil {
		p.wakeFor(c.Feed.Next, now)
		p.added = p.added || c.Added+c.Changed > 0
		if errors.Is(c.Failure, ErrWaits) {
			p.held[e.turn.feed] = c.Feed.Wait
		}
	}
	switch {
	case e.err == nil:
		p.broken = 0
	case errors.Is(e.err, ErrNotFound), errors.Is(e.err, context.Canceled), errors.Is(e.err, context.DeadlineExceeded):
	case errors.Is(e.err, ErrConflict):
		p.hold(e.turn.feed, now)
	case !goesOn:
		return e.err
	default:
		p.hold(e.turn.feed, now)
		if p.broken++; p.broken > 1 { // then the cause is not this feed alone
			p.rest = now.Add(holdFor)
		}
	}
	return nil
}

// A Poller polls the feeds of a Mirror: those added to its queue, and those of the
// Store as they fall due. It polls the feeds of one host one at a time. A host that
// asks to be left alone is left alone, for all its feeds. A feed waits while another
// mirror is at work on it. It polls only feeds in the Store; see NewFeed. Only Mirror
// must be set.
//
// Do not copy or change a Poller after its first use. Many goroutines may use its
// methods at the same time, but only one may be in Run or Drain.
type Poller struct {
	Mirror *Mirror // Mirror polls the feeds.

	// Parallel is the maximum number of feeds to poll at the same time, each on
	// a different host. Zero means 8.
	Parallel int

	// Pause is the time between two polls of the same host. Zero means a
	// second.
	Pause time.Duration

	// Poll polls a feed; before is the feed's state before the poll. Several
	// calls may run at the same time. Nil means Mirror.Update.
	Poll func(ctx context.Context, before *Feed) (*Report, error)

	// Polled, if not nil, is called after each poll, one call at a time, with the feed's state
	// before the poll (if that could not be read, a NewFeed), and with the results of
	// Update. The Report is nil if the poll did not get so far. The error is ErrConflict if
	// another mirror is at work on the feed, ErrNotFound if the feed was removed before its
	// turn came, the context's error if the poll was interrupted, else the Store's.
	Polled func(before *Feed, r *Report, err error)

	// Trouble, if not nil, is called with the errors of the Store outside of polls, if Run
	// cannot read or index it. If it cannot be read, Run starts no poll for a minute.
	Trouble func(error)

	once    sync.Once
	mu      sync.Mutex
	queue   *queue
	changed chan struct{} // signals a change of the queue
	added   bool          // entries have been added since the Store was last told to index
	broken  int           // the number of consecutive polls ended by an error of the Store
	agenda
}

const (
	lookEvery  = 5 * time.Second // time between looks for feeds added or made due by another process
	scanEvery  = time.Hour       // time between looks at all feeds, for those due before their Next
	holdFor    = time.Minute     // how long a feed waits for another mirror's work, and how long all wait if the Store fails
	mostToLook = 10_000          // the maximum number of feeds to enqueue in one look
)

func (p *Poller) setUp() {
	p.queue = newQueue(cmp.Or(p.Pause, time.Second))
	p.changed = make(chan struct{}, 1)
	p.quiet, p.held = map[string]time.Time{}, map[string]time.Time{}
}

// lock locks the Poller and, the first time, initializes it.
func (p *Poller) lock() {
	p.once.Do(p.setUp)
	p.mu.Lock()
}

// Add puts a feed into the queue, whether it is due or not, unless it is there
// already or is being polled. A nil Feed panics.
func (p *Poller) Add(f *Feed) {
	if f == nil {
		panic("mirror: Poller.Add: the Feed is nil")
	}
	p.lock()
	defer p.mu.Unlock()
	p.queue.add(f.URL, f.host())
	p.rouse()
}

// AddAll puts the feeds of the Store for which accept returns true into the queue, the
// longest due first. A nil accept accepts the due feeds. AddAll returns the number of
// feeds waiting now. The error is the Store's.
func (p *Poller) AddAll(ctx context.Context, accept func(f *Feed, due bool) bool) (waiting int, err error) {
	if err := p.check(); err != nil {
		return 0, err
	}
	now := p.Mirror.now()
	var feeds []candidate
	for f, err := range p.Mirror.Store.Feeds(ctx, FeedQuery{}) {
		if err != nil {
			return p.Waiting(), err
		}
		c := candidateOf(f, now)
		due := f.Due(now) || p.isLost(ctx, f, now)
		if accept == nil && due || accept != nil && accept(f, due) {
			c.at = now
		} else {
			c.at = never
		}
		feeds = append(feeds, c)
	}
	p.lock()
	defer p.mu.Unlock()
	p.enqueue(feeds, now)
	p.rouse()
	return p.queue.waiting, nil
}

// Hurry polls a feed next: ahead of all waiting ones, and without a pause. A nil Feed
// panics.
func (p *Poller) Hurry(f *Feed) {
	if f == nil {
		panic("mirror: Poller.Hurry: the Feed is nil")
	}
	p.lock()
	defer p.mu.Unlock()
	delete(p.held, f.URL)
	p.queue.add(f.URL, f.host())
	p.queue.hurry(f.URL)
	p.rouse()
}

// Forget ends a poll of the feed if one is under way, and takes the feed out of the
// queue.
func (p *Poller) Forget(url string) {
	p.lock()
	defer p.mu.Unlock()
	delete(p.held, url)
	switch t := p.queue.turns[url]; {
	case t == nil:
	case t.cancel == nil:
		p.queue.drop(t)
	default:
		t.cancel()
	}
}

// Status reports whether a feed waits for its turn, and whether it is being
// polled.
func (p *Poller) Status(url string) (waits, runs bool) {
	p.lock()
	defer p.mu.Unlock()
	t := p.queue.turns[url]
	return t != nil && t.cancel == nil, t != nil && t.cancel != nil
}

// Waiting returns the number of feeds waiting for their turn.
func (p *Poller) Waiting() int {
	p.lock()
	defer p.mu.Unlock()
	return p.queue.waiting
}

// Run polls the waiting feeds, and those of the Store as they fall due, until the
// context ends. It then ends the polls under way properly before it returns. An error
// means a field of the Poller is not set, or has an impossible value.
//
// An error of the Store, or of its hook, ending a poll is passed to Polled. The feed
// is polled again after a minute; its Failures do not count it. After a second such error
// without a successful poll between them, no feed is polled for a minute.
func (p *Poller) Run(ctx context.Context) error {
	if err := p.check(); err != nil {
		return err
	}
	_ = p.run(ctx, true) // Trouble had its errors
	return nil
}

// Drain polls the waiting feeds until none is left or the context ends. It then ends
// the polls under way properly before it returns. An error of the Store,
// one of its hooks included, ends Drain, which returns it: the other feeds stay in the queue.
func (p *Poller) Drain(ctx context.Context) error {
	if err := p.check(); err != nil {
		return err
	}
	return p.run(ctx, false)
}

// check returns an error for settings a Poller cannot work with.
func (p *Poller) check() error {
	if p.Mirror == nil {
		return errors.New("mirror: Poller.Mirror must be set")
	}
	return cmp.Or(p.Mirror.check(), settings.Check("mirror",
		settings.Number{Name: "Poller.Parallel", Value: int64(p.Parallel)}, settings.Number{Name: "Poller.Pause", Value: int64(p.Pause)}))
}

func (p *Poller) rouse() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// An agenda says when a Poller looks for due feeds, and which it leaves alone until when.
type agenda struct {
	quiet map[string]time.Time // until when each host asks to be left alone
	held  map[string]time.Time // until when each of these feeds is not polled, due or not
	look  time.Time            // when to look for due feeds
	scan  time.Time            // when to look at all feeds
	rest  time.Time            // no poll begins before this time
}

// query returns the query for the Store; ok is false if it is not yet time to look for
// due feeds.
func (a *agenda) query(now time.Time) (FeedQuery, bool) {
	switch {
	case a.look.After(now), a.rest.After(now):
		return FeedQuery{}, false
	case !a.scan.After(now):
		a.look, a.scan = now.Add(lookEvery), now.Add(scanEvery)
		return FeedQuery{}, true
	}
	a.look = now.Add(lookEvery)
	return FeedQuery{Due: a.look, Limit: mostToLook}, true
}

// wakeFor makes the next look happen in time for a feed due then, but at most once a
// second.
func (a *agenda) wakeFor(next, now time.Time) {
	if soon := now.Add(time.Second); next.Before(soon) {
		next = soon
	}
	if next.Before(a.look) {
		a.look = next
	}
}

// quietUntil returns until when a host asks to be left alone; the zero time if it does not.
func (a *agenda) quietUntil(host string, now time.Time) time.Time {
	until := a.quiet[host]
	if !until.After(now) {
		delete(a.quiet, host)
		return time.Time{}
	}
	return until
}

// hold makes a feed wait for a minute, due or not.
func (a *agenda) hold(url string, now time.Time) {
	a.held[url] = now.Add(holdFor)
	a.wakeFor(a.held[url], now)
}

// pauseAll starts no poll for a minute, because the Store cannot be read.
func (a *agenda) pauseAll(now time.Time) {
	a.rest = now.Add(holdFor)
	a.look, a.scan = a.rest, now
}

// A queue holds the feeds waiting to be polled, in a lane for each host. The feeds of a
// host are polled one at a time, with a pause after each poll.
type queue struct {
	pause   time.Duration
	hosts   map[string]*lane
	ready   []*lane          // lanes whose next feed may be polled, longest wait first
	resting []*lane          // lanes in their pause after a poll, by the end of the pause
	turns   map[string]*turn // the turns of all feeds waiting or being polled
	waiting int              // the number of feeds waiting
}

// A lane is the queue of one host. It is ready, or resting, or one of its feeds
// is being polled.
type lane struct {
	host  string
	turns []*turn
	until time.Time // the end of its pause
	hurry bool      // whether to skip the pause after the poll under way
}

// A turn is a feed's place in a lane.
type turn struct {
	feed   string
	lane   *lane
	cancel func() // ends the poll; nil if the poll has not begun
}

func newQueue(pause time.Duration) *queue {
	return &queue{pause: pause, hosts: map[string]*lane{}, turns: map[string]*turn{}}
}

// add puts a feed into the queue, unless it is there already or is being
// polled.
func (q *queue) add(feed, host string) {
	if q.turns[feed] != nil {
		return
	}
	at := q.hosts[host]
	if at == nil {
		at = &lane{host: host}
		q.hosts[host] = at
		q.ready = append(q.ready, at)
	}
	t := &turn{feed: feed, lane: at}
	at.turns = append(at.turns, t)
	q.turns[feed] = t
	q.waiting++
}

// hurry makes a waiting feed the next one, without a pause.
func (q *queue) hurry(feed string) {
	t := q.turns[feed]
	if t == nil || t.cancel != nil {
		return
	}
	same := func(other *turn) bool { return other == t }
	t.lane.turns = slices.Insert(slices.DeleteFunc(t.lane.turns, same), 0, t)
	for _, lanes := range []*[]*lane{&q.ready, &q.resting} {
		if i := slices.Index(*lanes, t.lane); i >= 0 {
			*lanes = slices.Delete(*lanes, i, i+1)
			q.ready = slices.Insert(q.ready, 0, t.lane)
			return
		}
	}
	t.lane.hurry = true
}

// next returns the turn of a feed to be polled now, or nil.
func (q *queue) next(now time.Time) *turn {
	for len(q.resting) > 0 && !q.resting[0].until.After(now) {
		q.ready = append(q.ready, q.resting[0])
		q.resting = q.resting[1:]
	}
	for len(q.ready) > 0 {
		at := q.ready[0]
		q.ready = q.ready[1:]
		if len(at.turns) == 0 {
			delete(q.hosts, at.host)
			continue
		}
		t := at.turns[0]
		at.turns = at.turns[1:]
		q.waiting--
		return t
	}
	return nil
}

// done ends a turn.
func (q *queue) done(t *turn, now time.Time) {
	delete(q.turns, t.feed)
	if t.lane.hurry {
		t.lane.hurry = false
		q.ready = slices.Insert(q.ready, 0, t.lane)
		return
	}
	t.lane.until = now.Add(q.pause)
	q.resting = append(q.resting, t.lane)
}

// drop removes a waiting feed from the queue.
func (q *queue) drop(t *turn) {
	delete(q.turns, t.feed)
	t.lane.turns = slices.DeleteFunc(t.lane.turns, func(other *turn) bool { return other == t })
	q.waiting--
}

// wake returns when the next pause ends; ok is false if no feed waits for one.
func (q *queue) wake() (time.Time, bool) {
	if q.waiting == 0 || len(q.resting) == 0 {
		return time.Time{}, false
	}
	return q.resting[0].until, true
}
