package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// An outcome is the result of a poll, as a label of the metrics.
type outcome string

const (
	changed     outcome = "changed"
	unchanged   outcome = "unchanged"
	failed      outcome = "failed"      // the subscription document could not be read
	gone        outcome = "gone"        // the publisher has withdrawn the feed
	sliced      outcome = "sliced"      // there is more to read
	interrupted outcome = "interrupted" // the worker is ending
	conflict    outcome = "conflict"    // something else was at work on the feed
	early       outcome = "early"       // the feed was not due, or its host asks to be left alone
	broken      outcome = "broken"      // the poll did not end properly
	buried      outcome = "buried"      // the feed is now a dead letter
)

var outcomes = []outcome{changed, unchanged, failed, gone, sliced, interrupted, conflict, early, broken, buried}

// A session is the store as one poll sees it.
type session struct {
	mirror.Store
	turn    *turn
	again   bool         // an earlier poll may have ended without a record
	feed    *mirror.Feed // as it was read or last committed
	commits int

	// A routine change may be held, to be stored with others. Then before is the state as
	// it was read, and held the state to store.
	holds        bool
	before, held *mirror.Feed
}

// errEarly says the feed must not be polled yet.
var errEarly = errors.New("the feed is not due")

// Feed implements mirror.Store.
func (s *session) Feed(ctx context.Context, url string) (f *mirror.Feed, err error) {
	own := url == s.turn.url
	if f = s.turn.state; own && f != nil {
		s.turn.state = nil
	} else if f, err = s.Store.Feed(ctx, url); err != nil || !own {
		return f, err
	}
	before := *f
	s.feed, s.before = f, &before
	if s.again && !f.Gone && f.Alias == "" && !f.Due(time.Now()) {
		return nil, errEarly
	}
	return f, nil
}

// Commit implements mirror.Store.
func (s *session) Commit(ctx context.Context, c *mirror.Commit) error {
	if s.held != nil { // more has come
		err := s.Store.Commit(ctx, &mirror.Commit{Feed: s.held})
		if err != nil {
			return err
		}
		s.held = nil
	}
	if s.holds && s.commits == 0 && isRoutine(s.before, c) {
		held := *c.Feed
		s.feed, s.held = c.Feed, &held
		c.Feed.Commits++
		return nil
	}
	err := s.Store.Commit(ctx, c)
	if err == nil {
		s.feed = c.Feed
		s.commits++
	}
	return err
}

// isRoutine reports whether a change records only a poll, and when the feed is due
// next. Such a change may be lost, because another poll finds it out again with a
// conditional request. A host's Retry-After may not be lost.
func isRoutine(before *mirror.Feed, c *mirror.Commit) bool {
	f := c.Feed
	switch {
	case before == nil, f.Commits == 0, f.Commits != before.Commits, c.Number != 0,
		len(c.Put)+len(c.Touch)+len(c.Versions)+len(c.Documents) > 0, c.Forget,
		f.Unfinished, f.More, f.Gone, f.Alias != "", f.Lost != "", !f.Wait.IsZero(), f.Failures > 0, f.Error != "",
		len(f.Pending)+len(f.Gaps)+len(f.Sought) > 0:
		return false
	}
	was, is := *before, *f
	for _, f := range []*mirror.Feed{&was, &is} {
		f.Polls, f.Polled, f.Next = 0, time.Time{}, time.Time{}
	}
	return reflect.DeepEqual(was, is)
}

// A panicError is a panic of a poll.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// update calls Mirror.Update, and returns a panic as an error.
func update(ctx context.Context, m *mirror.Mirror, url string) (changes *mirror.Report, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value, debug.Stack()}
		}
	}()
	return m.Update(ctx, url)
}

// afterConflict is the time until a feed is due again after something else was
// at work on it.
const afterConflict = time.Minute

// poll polls a feed.
func (w *Worker) poll(ctx context.Context, t *turn) pollResult {
	if t.tries > w.tries() {
		return pollResult{outcome: buried, dead: fmt.Sprintf("%d polls in a row have begun and not ended", w.tries())}
	}
	s := &session{Store: w.Database.Store, turn: t, again: t.tries > 1 || t.doubtful, holds: !t.noted}
	m := &mirror.Mirror{Store: s, Client: w.client, Every: w.Every, Versions: w.Versions, Recheck: cmp.Or(w.Recheck, -1)}
	limited, cancel := context.WithTimeout(context.WithValue(ctx, hostKey{}, t.host), w.slice())
	defer cancel()
	changes, err := update(limited, m, t.url)
	now := time.Now()
	e := pollResult{feed: s.feed, changes: changes}
	rest := now // when the rest is due
	if s.feed != nil && s.feed.Waits(now) {
		rest = s.feed.Wait
	}
	switch {
	case errors.Is(err, errEarly):
		e.outcome, e.due, e.err = early, s.feed.Next, s.feed.Error
	case errors.Is(err, mirror.ErrConflict):
		e.outcome, e.due, e.feed = conflict, now.Add(afterConflict), nil
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
		return pollResult{outcome: buried, dead: fmt.Sprintf("more than %d archive documents", w.documents())}
	case err == nil && changes.More && changes.Documents > 0, err != nil && limited.Err() != nil && s.commits > 0:
		e.outcome, e.due = sliced, rest
	case err == nil:
		e.outcome, e.due = unchanged, changes.Next
		if changes.Added+changes.Changed+changes.Deleted > 0 {
			e.outcome = changed
		} else {
			e.held = s.held
		}
	default:
		return w.broken(ctx, t, err, limited.Err() != nil)
	}
	return e
}

// broken returns the result of a poll cut short.
func (w *Worker) broken(ctx context.Context, t *turn, err error, late bool) pollResult {
	what := feedhistory.Describe(err)
	if late {
		what = fmt.Sprintf("it has brought nothing in %v", w.slice())
	}
	if fault, ok := errors.AsType[*panicError](err); ok && w.Logger != nil {
		w.Logger.ErrorContext(ctx, "a poll has panicked", "feed", t.url, "panic", fault.value, "stack", string(fault.stack))
	}
	if max(t.tries, 1) >= w.tries() {
		return pollResult{outcome: buried, dead: what}
	}
	return pollResult{outcome: broken, err: what}
}
