// Package syncing polls the feeds of a mirror for the verb sync, and reports on the polls.
package syncing

import (
	"context"
	"errors"
	"fmt"

	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/opml"
	"github.com/feedhistory/feedhistory/cmd/internal/recovery"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// A Sync is a sync in progress.
type Sync struct {
	Poller   *mirror.Poller
	Backfill *backfill.Backfill // nil without --backfill and --backfill-archive
	Report   *Report
	Strays   strays
	Every    bool // do not end; poll each feed when it is due
	Public   bool // the feeds named by the user are public, even if their addresses seem to have secrets
}

// Run polls the queued feeds. With every, it polls each feed when it is due, until the
// context ends. It returns an error of the store or of the output.
func (s *Sync) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.Poller.Polled = func(p mirror.PollResult) {
		if err := s.end(ctx, outcomeOf(p)); err != nil {
			cancel(&exit.OutputError{Err: err})
		}
	}
	var err error
	if s.Every {
		s.Poller.Run(ctx)
	} else {
		err = s.Poller.Drain(ctx)
	}
	if output, ok := errors.AsType[*exit.OutputError](context.Cause(ctx)); ok {
		return output.Err
	}
	return err
}

// Subscribe adds the given feeds to the store before the first poll. An interrupt ends it;
// the error says how many feeds are still to be added.
func (s *Sync) Subscribe(ctx context.Context, given []opml.Outline, bar *terminal.Bar) error {
	for i, feed := range given {
		if ctx.Err() != nil {
			return exit.InterruptedError{Err: fmt.Errorf("interrupted: %d of %s added; run the same command again to continue", i, terminal.Count(len(given), "feed", "feeds"))}
		}
		bar.Step()
		isNew, err := subscribe(context.WithoutCancel(ctx), s.Poller.Mirror.Store, feed)
		if err != nil {
			return err
		}
		if isNew && s.Strays.Named[feed.URL] {
			s.Strays.add(feed.URL, true)
		}
		if isNew && mirror.NewFeed(feed.URL).Private && !(s.Public && s.Strays.Named[feed.URL]) {
			s.Report.private(feed.URL)
		}
	}
	return nil
}

// subscribe adds a feed to the store, and reports whether it is new. A feed in the store
// gets the title and the folders of a list.
func subscribe(ctx context.Context, store mirror.Store, feed opml.Outline) (isNew bool, err error) {
	f := mirror.NewFeed(feed.URL)
	feed.Apply(f)
	err = store.Commit(ctx, &mirror.Commit{Feed: f})
	if errors.Is(err, mirror.ErrConflict) { // the store has it
		return false, feed.Keep(ctx, store, feed.URL)
	}
	return err == nil, err
}

// end reports the outcome of a poll, and replaces or removes an address other than a
// feed's. It returns an error of the output, of the store or of the keyring.
func (s *Sync) end(ctx context.Context, o Outcome) error {
	if o.kind == busy || o.kind == removed {
		if _, err := s.Poller.Mirror.Store.Feed(context.WithoutCancel(ctx), o.URL); errors.Is(err, mirror.ErrNotFound) {
			o.kind = removed
			s.Report.gone(o.URL)
		}
	}
	feeds, stray := s.Strays.of(o.URL)
	if o.stray = stray; !stray {
		return errors.Join(s.Report.tell(o), s.pass(&o))
	}
	if err := s.forget(ctx, o.URL, feeds); err != nil || len(feeds) > 0 {
		return err
	}
	return s.Report.tell(o)
}

// Poll polls a feed, and recovers entries to which it does not link.
func (s *Sync) Poll(ctx context.Context, before *mirror.Feed) (*mirror.Report, error) {
	changes, err := s.Poller.Mirror.Update(ctx, before.URL)
	if err == nil && changes.Failure != nil && before.Known.URL == "" {
		s.Strays.look(ctx, s.Poller.Mirror, before.URL, changes.Failure)
	}
	if err != nil || changes.Failure != nil || s.Backfill == nil || changes.Alias != "" {
		return changes, err
	}
	b, err := s.backfillOf(ctx, changes.URL)
	if err != nil {
		return changes, err
	}
	more, err := b.Keep(ctx, s.Poller.Mirror, changes.URL)
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

// backfillOf returns how to recover entries of a feed: with its own credentials and, if it
// is private, without asking web archives, which would learn its address.
func (s *Sync) backfillOf(ctx context.Context, feed string) (*backfill.Backfill, error) {
	b := *s.Backfill
	if own := ownClient(s.Poller.Mirror, feed); own != nil {
		b.HTTP = own
	}
	state, err := s.Poller.Mirror.Store.Feed(ctx, feed)
	private := err != nil || state.Private
	if s.Strays.Keys != nil {
		keys, keysErr := s.Strays.Keys.Private()
		private, err = private || keys[feed] != nil, errors.Join(err, keysErr)
	}
	if private {
		b.Methods = recovery.WithoutArchives(b.Methods)
	}
	return &b, err
}
