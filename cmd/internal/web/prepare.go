package web

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// largeFeed is the number of entries from which on a feed is published before anybody asks
// for it: with 50,000, the first request would take seconds.
const largeFeed = 2000

// A preparer publishes feeds after their polls, one at a time.
type preparer struct {
	published *republish.Handler
	log       *slog.Logger
	busy      func(feed string) bool
	wake      chan struct{} // has a value if there may be a feed

	mu    sync.Mutex
	feeds []string // waiting
}

func newPreparer(h *republish.Handler) *preparer {
	return &preparer{published: h, log: h.Logger, busy: h.Busy, wake: make(chan struct{}, 1)}
}

// add makes a feed wait for its turn.
func (p *preparer) add(feed string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.feeds, feed) {
		p.feeds = append(p.feeds, feed)
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// next returns the feed whose turn has come; "" if none waits.
func (p *preparer) next() (feed string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.feeds) == 0 {
		return ""
	}
	feed, p.feeds = p.feeds[0], p.feeds[1:]
	return feed
}

// run prepares feeds until the context ends, beginning with the large ones of the store,
// which another program may have read.
func (p *preparer) run(ctx context.Context, store mirror.Store) {
	for feed, err := range store.Feeds(ctx, mirror.FeedQuery{}) {
		if err != nil {
			break // polling reports it
		}
		if feed.Entries >= largeFeed {
			p.add(feed.URL)
		}
	}
	for {
		for feed := p.next(); feed != "" && ctx.Err() == nil; feed = p.next() {
			p.prepare(ctx, feed)
		}
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
	}
}

// endStep is how long prepare waits for a poll to end, before it looks again.
const endStep = 50 * time.Millisecond

func (p *preparer) prepare(ctx context.Context, feed string) {
	for p.busy(feed) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(endStep):
		}
	}
	err := p.published.Prepare(ctx, feed, largeFeed)
	if err != nil && ctx.Err() == nil && !errors.Is(err, mirror.ErrNotFound) {
		p.log.WarnContext(ctx, "a feed cannot be published in advance", "feed", feed, "err", err)
	}
}
