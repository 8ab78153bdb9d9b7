package mirror

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory/internal/plain"
)

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

	// Polled, if not nil, is called after each poll, one call at a time.
	Polled func(PollResult)

	// Trouble, if not nil, is called with the errors of the Store outside of polls, if Run
	// cannot read or index it. If it cannot be read, Run starts no poll for a minute.
	Trouble func(error)

	once    sync.Once
	mu      sync.Mutex
	queue   *queue
	changed chan struct{}        // signals a change of the queue
	added   bool                 // entries have been added since the Store was last told to index
	broken  int                  // the number of consecutive polls ended by an error of the Store
	quiet   map[string]time.Time // until when each host asks to be left alone
	held    map[string]time.Time // until when each of these feeds is not polled, due or not
	look    time.Time            // when to look for due feeds
	scan    time.Time            // when to look at all feeds
	rest    time.Time            // no poll begins before this time
}

// A PollResult is the outcome of a poll.
type PollResult struct {
	URL    string // the feed's URL, as you subscribed to it
	Before *Feed  // the feed's state before the poll; nil if it could not be read

	// Report is the result of Mirror.Update; nil if the poll did not get so far.
	Report *Report

	// Err is the error of Mirror.Update: ErrConflict if another mirror is at
	// work on the feed, ErrNotFound if the feed was removed before its turn
	// came, the context's error if the poll was interrupted, else the Store's.
	Err error
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
// feeds waiting now. The error is the Store's. The error may be the context's.
func (p *Poller) AddAll(ctx context.Context, accept func(f *Feed, due bool) bool) (waiting int, err error) {
	if err := p.check(); err != nil {
		return 0, err
	}
	now := time.Now()
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
// An error of the Store, or of its hook, that ends a poll is in PollResult.Err. The feed
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
// its Hook's included, ends Drain, which returns it: the other feeds stay in the queue.
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
	return cmp.Or(p.Mirror.check(), plain.Check("mirror",
		plain.Number{Name: "Poller.Parallel", Value: int64(p.Parallel)}, plain.Number{Name: "Poller.Pause", Value: int64(p.Pause)}))
}

func (p *Poller) rouse() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}
