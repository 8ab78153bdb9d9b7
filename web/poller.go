package web

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
)

// Run polls feeds, those that somebody asks for at once and the others as they
// fall due, until the context ends; of one host one feed at a time. Without it
// nothing is fetched. It returns nil when all that was under way has ended.
func (s *Server) Run(ctx context.Context) error {
	s.once.Do(s.setUp)
	return s.polls.run(ctx)
}

const (
	mostPolls = 8                // at the same time
	mostDue   = 200              // that wait to be polled
	lookEvery = 5 * time.Second  // for feeds that are due
	restAfter = 60 * time.Second // before a feed is tried again that could not be stored
	hostPause = time.Second      // between the feeds of one host
)

// A poller polls feeds.
type poller struct {
	mirror *mirror.Mirror
	store  mirror.Store
	log    *slog.Logger
	wake   chan struct{}
	polled func(ctx context.Context, before *mirror.Feed, err error) // is told of the end of a poll

	mu      sync.Mutex
	jobs    []*job               // that wait or run, in the order in which they are to begin
	resting map[string]time.Time // feeds that are not tried again before
	paused  map[string]time.Time // hosts that are not asked again before, unless somebody waits
}

// A job is a poll of a feed.
type job struct {
	url, host string
	asked     bool               // somebody waits for it
	cancel    context.CancelFunc // nil: it waits
	removed   bool
}

func newPoller(m *mirror.Mirror, store mirror.Store, log *slog.Logger) *poller {
	return &poller{
		mirror: m, store: store, log: log, wake: make(chan struct{}, 1),
		resting: map[string]time.Time{}, paused: map[string]time.Time{},
	}
}

func (p *poller) run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for look := true; ; {
		if look {
			p.due(ctx)
		}
		for j, ctx := p.next(ctx); j != nil; j, ctx = p.next(ctx) {
			running.Go(func() { p.poll(ctx, j) })
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
			look = false
		case <-tick.C:
			look = true
		}
	}
}

// due has the feeds wait that are due.
func (p *poller) due(ctx context.Context) {
	now := time.Now()
	for feed, err := range p.store.Feeds(ctx, mirror.FeedQuery{Due: now, Limit: mostDue}) {
		if err != nil {
			if ctx.Err() == nil {
				p.log.ErrorContext(ctx, "what is due cannot be read", "err", err)
			}
			return
		}
		if feed.UnderWay(now) { // in another process, unless it is one of ours
			continue
		}
		p.mu.Lock()
		if p.resting[feed.URL].Before(now) && p.find(feed.URL) == nil {
			p.jobs = append(p.jobs, newJob(feed))
		}
		p.mu.Unlock()
	}
}

func newJob(feed *mirror.Feed) *job {
	return &job{url: feed.URL, host: feed.Host()}
}

// find returns the job of a feed; nil if there is none.
func (p *poller) find(feed string) *job {
	i := slices.IndexFunc(p.jobs, func(j *job) bool { return j.url == feed })
	if i < 0 {
		return nil
	}
	return p.jobs[i]
}

// ask has a feed polled before all that are merely due.
func (p *poller) ask(feed *mirror.Feed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.resting, feed.URL)
	j := p.find(feed.URL)
	switch {
	case j == nil:
		j = newJob(feed)
	case j.cancel != nil:
		return
	default:
		p.drop(j)
	}
	j.asked = true
	p.jobs = slices.Insert(p.jobs, 0, j)
	p.rouse()
}

func (p *poller) drop(j *job) {
	p.jobs = slices.DeleteFunc(p.jobs, func(other *job) bool { return other == j })
}

func (p *poller) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// isBusy reports whether a feed is being polled, or is about to be.
func (p *poller) isBusy(feed string) (waits, runs bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.find(feed)
	return j != nil && j.cancel == nil, j != nil && j.cancel != nil
}

// forget ends what is under way with a feed.
func (p *poller) forget(feed string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.resting, feed)
	switch j := p.find(feed); {
	case j == nil:
	case j.cancel == nil:
		p.drop(j)
	default:
		j.removed = true
		j.cancel()
	}
}

// next returns the job that is to begin now, with its context; nil if there is
// none.
func (p *poller) next(ctx context.Context) (*job, context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	busy := map[string]bool{}
	for _, j := range p.jobs {
		if j.cancel != nil {
			busy[j.host] = true
		}
	}
	if len(busy) >= mostPolls || ctx.Err() != nil {
		return nil, ctx
	}
	now := time.Now()
	for _, j := range p.jobs {
		if j.cancel == nil && !busy[j.host] && (j.asked || p.paused[j.host].Before(now)) {
			ctx, j.cancel = context.WithCancel(ctx)
			return j, ctx
		}
	}
	return nil, ctx
}

// poll polls a feed. What becomes of it is in the store.
func (p *poller) poll(ctx context.Context, j *job) {
	defer j.cancel()
	before, _ := p.store.Feed(ctx, j.url)
	changes, err := p.mirror.Update(ctx, j.url)
	stored := err == nil
	if err != nil && ctx.Err() == nil {
		// The feed's own failures are in its state, which says when it is due again.
		feed, failed := p.store.Feed(ctx, j.url)
		stored = failed == nil && feed.Next.After(time.Now())
		p.log.WarnContext(ctx, "a poll failed", "feed", j.url, "err", err)
	} else if err == nil {
		p.log.InfoContext(ctx, "polled", "feed", j.url, "verdict", changes.Verdict, "documents", changes.Documents,
			"added", changes.Added, "changed", changes.Changed, "deleted", changes.Deleted)
		p.index(ctx)
	}
	if before != nil && ctx.Err() == nil {
		p.polled(ctx, before, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(j)
	if !stored && !j.removed && !errors.Is(err, context.Canceled) {
		p.resting[j.url] = time.Now().Add(restAfter)
	}
	p.paused[j.host] = time.Now().Add(hostPause)
	time.AfterFunc(hostPause, p.resume)
	p.rouse()
}

// resume forgets hosts whose pause is over.
func (p *poller) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(p.paused, func(_ string, until time.Time) bool { return !until.After(now) })
	maps.DeleteFunc(p.resting, func(_ string, until time.Time) bool { return !until.After(now) })
	p.rouse()
}

// index has what is new indexed, in a store that does so afterwards, so that the
// next search need not wait for it.
func (p *poller) index(ctx context.Context) {
	if indexer, ok := p.store.(interface{ Index(context.Context) error }); ok {
		if err := indexer.Index(ctx); err != nil && ctx.Err() == nil {
			p.log.ErrorContext(ctx, "entries cannot be indexed", "err", err)
		}
	}
}
