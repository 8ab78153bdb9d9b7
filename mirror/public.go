package mirror

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Public returns a view of a Store for programs that show feeds to everybody. The
// view has neither the feeds whose Private is set nor their entries, and refuses
// to store them: Commit returns an error that matches ErrConflict. It also leaves
// out a feed whose state cannot be read.
//
// The view is an Indexer and a Calendar. If the Store is not an Indexer, Index
// does nothing; if it is not a Calendar, Months reads the entries.
func Public(s Store) interface {
	Indexer
	Calendar
} {
	return publicStore{s}
}

type publicStore struct{ Store }

// version returns the present version of a feed that is not private. Call it after
// reading from the feed, never before: the next commit may make the feed private.
func (s publicStore) version(ctx context.Context, feed string) (version int64, isPublic bool) {
	f, err := s.Store.Feed(ctx, feed)
	if errors.Is(err, ErrNotFound) {
		return 0, true
	}
	if err != nil || f.Private {
		return 0, false
	}
	return f.Version, true
}

// hides reports whether a feed is private, or may be.
func (s publicStore) hides(ctx context.Context, feed string) bool {
	_, isPublic := s.version(ctx, feed)
	return !isPublic
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
	q.Limit = 0 // the number of hidden feeds is not known
	return visible(s.Store.Feeds(ctx, q), limit, func(f *Feed) bool { return !f.Private })
}

// Records implements Store.
func (s publicStore) Records(ctx context.Context, feed string, ids []string) (map[string]*Record, error) {
	records, err := s.Store.Records(ctx, feed, ids)
	if err == nil && s.hides(ctx, feed) {
		return map[string]*Record{}, nil
	}
	return records, err
}

// Document implements Store.
func (s publicStore) Document(ctx context.Context, feed, url string) (*Document, error) {
	d, err := s.Store.Document(ctx, feed, url)
	if err == nil && s.hides(ctx, feed) {
		return nil, fmt.Errorf("%s: %w", url, ErrNotFound)
	}
	return d, err
}

// Documents implements Store.
func (s publicStore) Documents(ctx context.Context, feed string) iter.Seq2[*Document, error] {
	return visible(s.Store.Documents(ctx, feed), 0, func(*Document) bool { return !s.hides(ctx, feed) })
}

// Versions implements Store.
func (s publicStore) Versions(ctx context.Context, feed, id string) iter.Seq2[*Version, error] {
	return visible(s.Store.Versions(ctx, feed, id), 0, func(*Version) bool { return !s.hides(ctx, feed) })
}

// Entries implements Store.
func (s publicStore) Entries(ctx context.Context, q Query) iter.Seq2[*Record, error] {
	limit := q.Limit
	if q.Feed == "" {
		q.Limit = 0 // the number of hidden entries is not known
	}
	type visibility struct {
		version  int64
		isPublic bool
	}
	entries := s.Store.Entries(ctx, q)
	return func(yield func(*Record, error) bool) {
		known := map[string]visibility{} // of one range: a feed may become private before the next
		visible(entries, limit, func(r *Record) bool {
			f, ok := known[r.Feed]
			if !ok || f.isPublic && r.Change > f.version { // it was committed since
				f.version, f.isPublic = s.version(ctx, r.Feed)
				known[r.Feed] = f
			}
			return f.isPublic
		})(yield)
	}
}

// Months implements Calendar.
func (s publicStore) Months(ctx context.Context, q Query) ([]Month, error) {
	months, err := Months(ctx, s.Store, q)
	if err == nil && s.hides(ctx, q.Feed) {
		return nil, nil
	}
	return months, err
}

// Index implements Indexer.
func (s publicStore) Index(ctx context.Context) error {
	if indexer, ok := s.Store.(Indexer); ok {
		return indexer.Index(ctx)
	}
	return nil
}

// Commit implements Store.
func (s publicStore) Commit(ctx context.Context, c *Change) error {
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

// visible yields what may be seen of a sequence, up to a limit; zero means all.
func visible[T any](of iter.Seq2[T, error], limit int, isVisible func(T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		n := 0
		for value, err := range of {
			if err == nil && !isVisible(value) {
				continue
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
