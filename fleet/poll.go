package fleet

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// An outcome is what became of a poll, as the metrics name it.
type outcome string

const (
	changed     outcome = "changed"
	unchanged   outcome = "unchanged"
	failed      outcome = "failed"      // there is no subscription document
	gone        outcome = "gone"        // the publisher has withdrawn the feed
	sliced      outcome = "sliced"      // there is more to read
	interrupted outcome = "interrupted" // as the worker is to end
	conflict    outcome = "conflict"    // another was at work on the feed
	early       outcome = "early"       // it was polled already
	broken      outcome = "broken"      // it did not come to its end
	buried      outcome = "buried"      // it is a dead letter now
)

var outcomes = []outcome{changed, unchanged, failed, gone, sliced, interrupted, conflict, early, broken, buried}

// A session is the store as one poll has it.
type session struct {
	mirror.Store
	again   bool         // an earlier poll may have ended without a note
	feed    *mirror.Feed // as it was read, or committed last
	commits int
}

// errEarly says that the feed is not to be polled yet.
var errEarly = errors.New("the feed is not due")

// Feed implements mirror.Store.
func (s *session) Feed(ctx context.Context, url string) (*mirror.Feed, error) {
	f, err := s.Store.Feed(ctx, url)
	if err != nil {
		return nil, err
	}
	s.feed = f
	if s.again && !f.Due(time.Now()) {
		return nil, errEarly
	}
	return f, nil
}

// Commit implements mirror.Store.
func (s *session) Commit(ctx context.Context, c *mirror.Change) error {
	err := s.Store.Commit(ctx, c)
	if err == nil {
		s.feed = c.Feed
		s.commits++
	}
	return err
}

// A panicError is a panic of a poll.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// update is Mirror.Update, with a panic as an error.
func update(ctx context.Context, m *mirror.Mirror, url string) (changes *mirror.Changes, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value, debug.Stack()}
		}
	}()
	return m.Update(ctx, url)
}

// poll polls a feed.
func (w *Worker) poll(ctx context.Context, t *turn) ending {
	if t.tries > w.tries() {
		return ending{outcome: buried, dead: fmt.Sprintf("%d polls in a row have begun and not ended", w.tries())}
	}
	s := &session{Store: w.Database.Store, again: t.tries > 1}
	m := &mirror.Mirror{Store: s, Client: w.client, Every: w.Every, Versions: w.Versions}
	limited, cancel := context.WithTimeout(ctx, w.slice())
	defer cancel()
	changes, err := update(limited, m, t.url)
	now := time.Now()
	e := ending{feed: s.feed, changes: changes}
	rest := now // when what is left is due
	if s.feed != nil && s.feed.Waits(now) {
		rest = s.feed.Wait
	}
	switch {
	case errors.Is(err, errEarly):
		e.outcome, e.due, e.err = early, s.feed.Next, s.feed.Error
	case errors.Is(err, mirror.ErrConflict):
		e.outcome, e.due, e.feed = conflict, now.Add(time.Minute), nil
	case err != nil && ctx.Err() != nil:
		e.outcome, e.due = interrupted, rest
	case err == nil && changes.Failure != nil:
		e.outcome, e.due, e.err = failed, s.feed.Next, s.feed.Error
		if _, waits := errors.AsType[*mirror.WaitError](changes.Failure); waits {
			e.outcome = early
		} else if s.feed.Gone {
			e.outcome = gone
		}
	case err == nil && s.feed.Documents > w.documents():
		return ending{outcome: buried, dead: fmt.Sprintf("more than %d archive documents", w.documents())}
	case err == nil && changes.More && changes.Documents > 0, err != nil && limited.Err() != nil && s.commits > 0:
		e.outcome, e.due = sliced, rest
	case err == nil:
		e.outcome, e.due = unchanged, changes.Next
		if changes.Added+changes.Changed+changes.Deleted > 0 {
			e.outcome = changed
		}
	default:
		return w.broken(ctx, t, err, limited.Err() != nil)
	}
	return e
}

// broken is the ending of a poll that did not come to its end.
func (w *Worker) broken(ctx context.Context, t *turn, err error, late bool) ending {
	what := feedhistory.Describe(err)
	if late {
		what = fmt.Sprintf("nothing has come of it in %v", w.slice())
	}
	if fault, ok := errors.AsType[*panicError](err); ok && w.Logger != nil {
		w.Logger.ErrorContext(ctx, "a poll has panicked", "feed", t.url, "panic", fault.value, "stack", string(fault.stack))
	}
	if t.tries >= w.tries() {
		return ending{outcome: buried, dead: what}
	}
	return ending{outcome: broken, err: what}
}
