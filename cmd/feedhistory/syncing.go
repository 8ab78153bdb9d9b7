package main

import (
	"context"
	"errors"
	"time"

	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/mirror"
)

// A syncing is a sync in progress.
type syncing struct {
	poller   *mirror.Poller
	backfill *backfill.Backfill // nil without --backfill and --backfill-archive
	report   *syncReport
	strays   strays
	every    bool // do not end; poll each feed when it is due
}

// run polls the queued feeds. With every, it polls each feed when it is due, until the
// context ends. It returns an error of the store or of the output.
func (s *syncing) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.poller.Polled = func(p mirror.Polled) {
		if err := s.end(ctx, outcomeOf(p)); err != nil {
			cancel(&exit.OutputError{Err: err})
		}
	}
	var err error
	if s.every {
		s.poller.Run(ctx)
	} else {
		err = s.poller.Drain(ctx)
	}
	if output, ok := errors.AsType[*exit.OutputError](context.Cause(ctx)); ok {
		return output.Err
	}
	return err
}

// An outcome is the result of a poll.
type outcome struct {
	mirror.Polled
	kind   outcomeKind
	forget bool      // no poll has ever read the feed, so its address may be wrong
	until  time.Time // when the host accepts requests again
	stray  bool      // the address was not that of a feed, and has been removed
}

type outcomeKind uint8

const (
	polled      outcomeKind = iota // the poll read the feed
	failed                         // the subscription document could not be read
	busy                           // another process is polling the feed
	interrupted                    // an interrupt ended the poll early
	broken                         // an error of the store ended the poll
	removed                        // another process removed the feed before its turn
	waiting                        // the host asks for no requests, so there was none
)

func outcomeOf(p mirror.Polled) outcome {
	o := outcome{Polled: p}
	switch {
	case errors.Is(p.Err, context.Canceled), errors.Is(p.Err, context.DeadlineExceeded):
		o.kind = interrupted
	case errors.Is(p.Err, mirror.ErrNotFound):
		o.kind = removed
	case errors.Is(p.Err, mirror.ErrConflict):
		o.kind = busy
	case p.Err != nil:
		o.kind = broken
	case p.Changes.Failure != nil:
		o.kind, o.forget = failed, p.Before.Known.URL == ""
		if wait, ok := errors.AsType[*mirror.WaitError](p.Changes.Failure); ok {
			o.kind, o.until = waiting, wait.Until
		}
	}
	return o
}

// subscribe adds all given feeds to the store before the first poll, so that an interrupt
// loses none of them.
func (s *syncing) subscribe(ctx context.Context, given []string) error {
	ctx = context.WithoutCancel(ctx)
	for _, url := range given {
		isNew, err := subscribe(ctx, s.poller.Mirror.Store, url)
		if err != nil {
			return err
		}
		if isNew && s.strays.named[url] {
			s.strays.add(url, true)
		}
	}
	return nil
}

// subscribe adds a feed to the store, and reports whether it is new.
func subscribe(ctx context.Context, store mirror.Store, url string) (isNew bool, err error) {
	err = store.Commit(ctx, &mirror.Change{Feed: mirror.NewFeed(url)})
	if errors.Is(err, mirror.ErrConflict) { // the store has it
		return false, nil
	}
	return err == nil, err
}

// end reports the outcome of a poll, and replaces or removes an address that is not that of
// a feed. It returns an error of the output, of the store or of the keyring.
func (s *syncing) end(ctx context.Context, o outcome) error {
	feeds, stray := s.strays.of(o.URL)
	if o.stray = stray; !stray {
		return errors.Join(s.report.tell(o), s.pass(&o))
	}
	if err := s.forget(ctx, o.URL, feeds); err != nil || len(feeds) > 0 {
		return err
	}
	return s.report.tell(o)
}

// poll polls a feed, and recovers entries to which it does not link.
func (s *syncing) poll(ctx context.Context, before *mirror.Feed) (*mirror.Changes, error) {
	changes, err := s.poller.Mirror.Update(ctx, before.URL)
	if err == nil && changes.Failure != nil && before.Known.URL == "" {
		s.strays.look(ctx, s.poller.Mirror, before.URL, changes.Failure)
	}
	if err != nil || changes.Failure != nil || s.backfill == nil || changes.Alias != "" {
		return changes, err
	}
	b := s.backfill
	if own := ownClient(s.poller.Mirror, changes.URL); own != nil {
		b = &backfill.Backfill{HTTP: own, Methods: b.Methods}
	}
	more, err := b.Keep(ctx, s.poller.Mirror, changes.URL)
	if more == nil {
		return changes, err
	}
	more.Added += changes.Added
	more.Changed += changes.Changed
	more.Deleted += changes.Deleted
	more.Documents += changes.Documents
	more.Moved = changes.Moved
	return more, err
}
