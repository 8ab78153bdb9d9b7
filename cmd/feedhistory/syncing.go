package main

import (
	"context"
	"errors"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/mirror"
)

// A syncing is a sync under way.
type syncing struct {
	mirror   *mirror.Mirror
	backfill *backfill.Backfill // nil: what feeds do not declare is left alone
	lanes    *lanes
	parallel int
	report   *syncReport
	strays   strays
	keys     *keyring // the feeds' credentials; nil: there are none

	index func(context.Context) error // makes what was added ready to be searched
	added bool                        // something was, since it last did

	every bool                 // go on with whatever is due
	look  time.Time            // when to look for that next
	scan  time.Time            // when to look at all feeds next
	held  map[string]time.Time // feeds that are due, but not to be polled before this
	quiet map[string]time.Time // hosts that ask to be left alone until this, as feeds of theirs say
	rest  time.Time            // no poll begins before, for the store has failed
}

// An outcome is what a poll came to.
type outcome struct {
	turn
	changes *mirror.Changes // nil: there was no poll
	err     error
	kind    outcomeKind
	forget  bool      // the feed was never read, so that its address may be wrong
	until   time.Time // when the host that asks to be left alone may be asked again

	stray bool              // the address never was a feed's, and is to be forgotten
	found feedhistory.Links // the feeds of the page that is there
}

type outcomeKind uint8

const (
	polled      outcomeKind = iota
	failed                  // there is no subscription document
	busy                    // another mirror is at work on the feed
	interrupted             // before its end
	broken                  // by the store
	removed                 // another process has removed the feed before its turn came
	waiting                 // the host asks to be left alone: nothing was requested
)

// run polls the feeds that wait, and with every those that fall due, until the
// context ends. The polls that are under way then come to a proper end. The
// error is the store's; with every it is only told, and does not end the sync.
func (s *syncing) run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	outcomes := make(chan outcome)
	running := 0
	end := func(o outcome) {
		running--
		if failed := s.end(o); failed != nil && err == nil {
			err = failed
			cancel()
		}
	}
	for ctx.Err() == nil {
		now := time.Now()
		if s.every && !s.look.After(now) {
			s.due(ctx, now)
		}
		for running < s.parallel && !s.rest.After(now) {
			t, ok := s.lanes.next(now)
			if !ok {
				break
			}
			running++
			go func() { outcomes <- s.poll(ctx, t) }()
		}
		if running == 0 && s.lanes.waiting == 0 {
			if err := s.idle(ctx); err != nil || !s.every {
				return err
			}
		}
		select {
		case o := <-outcomes:
			end(o)
		case <-s.alarm(now):
		case <-s.report.tick():
		case <-ctx.Done():
		}
	}
	for running > 0 {
		end(<-outcomes)
	}
	return err
}

// idle does what can wait until no feed is polled. The error is the store's; with
// every it is only told.
func (s *syncing) idle(ctx context.Context) error {
	if !s.added {
		return nil
	}
	s.added = false
	err := s.index(ctx)
	switch {
	case ctx.Err() != nil:
		return nil // the first search will do it
	case err != nil && s.every:
		s.report.trouble(err)
		return nil
	}
	return err
}

// alarm rings when there may be something to do though no poll has ended.
func (s *syncing) alarm(now time.Time) <-chan time.Time {
	at, ok := s.lanes.wake()
	if s.every && (!ok || s.look.Before(at)) {
		at, ok = s.look, true
	}
	if s.rest.After(now) {
		at = s.rest
	}
	if !ok {
		return nil
	}
	return time.After(max(at.Sub(now), time.Millisecond))
}

const (
	lookEvery = time.Minute // for feeds that another process has added, at least
	scanEvery = time.Hour   // for feeds that are due though their time has not come
	holdFor   = time.Minute // a feed that another mirror is at work on, or all if the store fails
)

// subscribe has the store have all feeds that are given, before any is polled:
// a sync that is interrupted forgets none.
func (s *syncing) subscribe(ctx context.Context, given []string) error {
	ctx = context.WithoutCancel(ctx)
	for _, url := range given {
		isNew, err := s.subscribeOne(ctx, url)
		if err != nil {
			return err
		}
		if isNew && s.strays.named[url] {
			s.strays.add(url, true)
		}
	}
	return nil
}

// subscribeOne has the store have a feed, and reports whether it had not before.
func (s *syncing) subscribeOne(ctx context.Context, url string) (isNew bool, err error) {
	err = s.mirror.Store.Commit(ctx, &mirror.Change{Feed: &mirror.Feed{URL: url, Verdict: feedhistory.Partial}})
	if errors.Is(err, mirror.ErrConflict) { // it is there already
		return false, nil
	}
	return err == nil, err
}

// due has the feeds wait that are due, and sets when to look again.
func (s *syncing) due(ctx context.Context, now time.Time) {
	s.look = now.Add(lookEvery)
	query := mirror.FeedQuery{Due: s.look}
	if !s.scan.After(now) {
		query, s.scan = mirror.FeedQuery{}, now.Add(scanEvery)
	}
	for f, err := range s.mirror.Store.Feeds(ctx, query) {
		if err != nil {
			if ctx.Err() == nil {
				s.report.trouble(err)
			}
			return
		}
		if at := s.dueAt(ctx, f, now); at.After(now) {
			s.wakeFor(at, now)
			continue
		}
		delete(s.held, f.URL)
		s.lanes.add(f.URL, f.Host())
	}
}

// dueAt returns when a feed is to be polled, by a sync that goes on: now, if it
// is not later. What another mirror seems to be at work on is left to it.
func (s *syncing) dueAt(ctx context.Context, f *mirror.Feed, now time.Time) time.Time {
	switch {
	case s.isLost(ctx, f, now):
		return now
	case f.Gone, f.Alias != "":
		return never
	case s.held[f.URL].After(now):
		return s.held[f.URL]
	case f.UnderWay(now):
		return f.Next.Add(holdFor)
	case f.Due(now) && !f.More:
		return now
	}
	return f.Next
}

// isLost reports whether a feed is an alias of one that cannot stand for it any
// more, as it was removed or fails.
func (s *syncing) isLost(ctx context.Context, f *mirror.Feed, now time.Time) bool {
	if f.Alias == "" || f.Gone || f.Waits(now) || f.Failures > 0 && f.Next.After(now) {
		return false
	}
	other, err := s.mirror.Store.Feed(ctx, f.Alias)
	return errors.Is(err, mirror.ErrNotFound) || err == nil && !other.CanStandFor(f)
}

// wakeFor has the look come in time for a feed that is due then, but not at
// every moment.
func (s *syncing) wakeFor(next, now time.Time) {
	if soon := now.Add(time.Second); next.Before(soon) {
		next = soon
	}
	if next.Before(s.look) {
		s.look = next
	}
}

// poll polls a feed.
func (s *syncing) poll(ctx context.Context, t turn) outcome {
	o := outcome{turn: t}
	f, err := s.mirror.Store.Feed(ctx, t.feed)
	if o.err = err; err == nil {
		if until := s.quiet[f.Host()]; until.After(time.Now()) {
			o.kind, o.until = waiting, until
			o.changes = &mirror.Changes{URL: f.URL, Kind: f.Kind, Verdict: f.Verdict, Gaps: f.Missing(), Next: f.Next}
			return o
		}
		o.changes, o.err = s.mirror.Update(ctx, t.feed)
		if o.err == nil && s.backfill != nil && o.changes.Alias == "" {
			o.changes, o.err = s.recover(ctx, o.changes)
		}
	}
	o.judge(ctx, s.mirror.Store)
	s.strays.look(ctx, s.mirror, &o)
	return o
}

// judge says what kind of error a poll has ended with, if it has.
func (o *outcome) judge(ctx context.Context, store mirror.Store) {
	wait, isWait := errors.AsType[*mirror.WaitError](o.err)
	switch {
	case o.err == nil:
	case isWait:
		o.kind, o.until = waiting, wait.Until
	case ctx.Err() != nil:
		o.kind = interrupted
	case errors.Is(o.err, mirror.ErrNotFound):
		o.kind = removed
	case errors.Is(o.err, mirror.ErrConflict):
		o.kind = busy
	default:
		o.kind = broken
		f, err := store.Feed(ctx, o.feed)
		if err == nil && f.Error == o.err.Error() { // it is the feed's own, and noted
			o.kind, o.forget = failed, f.Known.URL == ""
		}
	}
}

// recover adds to what a poll brought what the feed does not declare.
func (s *syncing) recover(ctx context.Context, polled *mirror.Changes) (*mirror.Changes, error) {
	b := s.backfill
	if s.mirror.ClientFor != nil {
		if own := s.mirror.ClientFor(polled.URL); own != nil {
			b = &backfill.Backfill{HTTP: own, Methods: b.Methods}
		}
	}
	more, err := b.Keep(ctx, s.mirror, polled.URL)
	if more == nil {
		return polled, err
	}
	more.Added += polled.Added
	more.Changed += polled.Changed
	more.Deleted += polled.Deleted
	more.Documents += polled.Documents
	more.Moved = polled.Moved
	return more, err
}

// end takes what a poll came to. The error, the store's, ends the sync.
func (s *syncing) end(o outcome) error {
	now := time.Now()
	s.lanes.done(o.turn, now)
	if o.changes != nil {
		s.wakeFor(o.changes.Next, now)
		s.added = s.added || o.changes.Added+o.changes.Changed > 0
	}
	switch {
	case o.kind == busy:
		s.held[o.feed] = now.Add(holdFor)
		s.wakeFor(s.held[o.feed], now)
	case o.kind == waiting:
		s.held[o.feed] = o.until
	case o.kind == broken && !s.every:
		return o.err
	case o.kind == broken:
		s.rest = now.Add(holdFor)
		s.look = s.rest
	}
	if o.stray {
		if err := s.forget(o); err != nil || len(o.found) > 0 {
			return err
		}
	}
	return s.report.tell(o)
}
