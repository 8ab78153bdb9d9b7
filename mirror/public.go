package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Public returns a view of a Store for programs that show feeds to everybody. The view
// has neither the feeds whose Private is set nor their entries, and refuses to store
// them: Commit returns an error matching ErrConflict. If the state of a feed cannot be
// read, the feed may be private: the view then has an error in the place of its
// contents.
//
// The view counts months and indexes if the Store does. s must not be nil: the
// view's methods would panic.
func Public(s Store) Store { return publicStore{s} }

type publicStore struct{ Store }

// version returns the Commits of a public feed. Call it after reading from the
// feed, never before: the next commit may make the feed private.
func (s publicStore) version(ctx context.Context, feed string) (version int64, isPublic bool, err error) {
	f, err := s.Store.Feed(ctx, feed)
	switch {
	case errors.Is(err, ErrNotFound):
		return 0, true, nil
	case err != nil:
		return 0, false, err
	case f.Private:
		return 0, false, nil
	}
	return f.Commits, true, nil
}

// shows reports whether a feed is not private.
func (s publicStore) shows(ctx context.Context, feed string) (bool, error) {
	_, isPublic, err := s.version(ctx, feed)
	return isPublic, err
}

// Feed implements Store.
func (s publicStore) Feed(ctx context.Context, url string) (*Feed, error) {
	f, err := s.Store.Feed(ctx, url)
	if err == nil && f.Private {
		return nil, fmt.Errorf("%s: %w", url, ErrNotFound)
	}
	return f, err
}

// Feeds implements Store.
func (s publicStore) Feeds(ctx context.Context, q FeedQuery) iter.Seq2[*Feed, error] {
	limit := q.Limit
	q.Limit = min(limit, 0) // the number of hidden feeds is not known
	return visible(s.Store.Feeds(ctx, q), limit, func(f *Feed) (bool, error) { return !f.Private, nil })
}

// Records implements Store.
func (s publicStore) Records(ctx context.Context, feed string, ids []string) (map[string]*Record, error) {
	records, err := s.Store.Records(ctx, feed, ids)
	if err != nil {
		return nil, err
	}
	if shows, err := s.shows(ctx, feed); !shows {
		return map[string]*Record{}, err
	}
	return records, nil
}

// Document implements Store.
func (s publicStore) Document(ctx context.Context, feed, url string) (*DocumentRecord, error) {
	d, err := s.Store.Document(ctx, feed, url)
	if err != nil {
		return nil, err
	}
	if shows, err := s.shows(ctx, feed); !shows {
		return nil, cmp.Or(err, fmt.Errorf("%s: %w", url, ErrNotFound))
	}
	return d, nil
}

// Documents implements Store.
func (s publicStore) Documents(ctx context.Context, feed string) iter.Seq2[*DocumentRecord, error] {
	return visible(s.Store.Documents(ctx, feed), 0, func(*DocumentRecord) (bool, error) { return s.shows(ctx, feed) })
}

// Versions implements Store.
func (s publicStore) Versions(ctx context.Context, feed, id string) iter.Seq2[*Record, error] {
	return visible(s.Store.Versions(ctx, feed, id), 0, func(*Record) (bool, error) { return s.shows(ctx, feed) })
}

// Entries implements Store.
func (s publicStore) Entries(ctx context.Context, q Query) iter.Seq2[*Record, error] {
	limit, skip := q.Limit, 0
	if q.Feed == "" && q.Skip >= 0 {
		q.Limit = min(limit, 0) // the number of hidden entries is not known
		q.Skip, skip = 0, q.Skip
	}
	type visibility struct {
		version  int64
		isPublic bool
	}
	entries := s.Store.Entries(ctx, q)
	return func(yield func(*Record, error) bool) {
		known := map[string]visibility{} // of one range: a feed may become private before the next
		visible(entries, limit, func(r *Record) (bool, error) {
			f, ok := known[r.Feed]
			if !ok || f.isPublic && r.LastCommit > f.version { // it was committed since
				var err error
				if f.version, f.isPublic, err = s.version(ctx, r.Feed); err != nil {
					return false, err
				}
				known[r.Feed] = f
			}
			left := skip
			if f.isPublic {
				skip = max(skip-1, 0)
			}
			return f.isPublic && left == 0, nil
		})(yield)
	}
}

// Months counts the visible entries, for the function Months.
func (s publicStore) Months(ctx context.Context, q Query) (map[time.Time]int64, error) {
	months, err := Months(ctx, s.Store, q)
	if err != nil {
		return nil, err
	}
	if shows, err := s.shows(ctx, q.Feed); !shows {
		return map[time.Time]int64{}, err
	}
	return months, nil
}

// Index indexes the Store, if it indexes.
func (s publicStore) Index(ctx context.Context) error {
	return index(ctx, s.Store)
}

// Commit implements Store.
func (s publicStore) Commit(ctx context.Context, c *Commit) error {
	before, err := s.Store.Feed(ctx, c.Feed.URL)
	switch {
	case err != nil && !errors.Is(err, ErrNotFound):
		return err
	case c.Feed.Private || err == nil && before.Private:
		return ErrConflict
	}
	return s.Store.Commit(ctx, c)
}

// Remove implements Store.
func (s publicStore) Remove(ctx context.Context, url string) error {
	if _, err := s.Feed(ctx, url); err != nil {
		return err
	}
	return s.Store.Remove(ctx, url)
}

// visible yields the visible part of a sequence, up to a limit; zero means all.
func visible[T any](of iter.Seq2[T, error], limit int, isVisible func(T) (bool, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		n := 0
		for value, err := range of {
			if err == nil {
				var isShown bool
				if isShown, err = isVisible(value); err != nil {
					var none T
					value = none
				} else if !isShown {
					continue
				}
			}
			if !yield(value, err) || err != nil {
				return
			}
			if n++; n == limit {
				return
			}
		}
	}
}
