package main

import (
	"context"
	"iter"

	"github.com/feedhistory/feedhistory/mirror"
)

// A publicStore is a store without the feeds that only some may read: those that
// have credentials. Who reaches the history server can read what it shows, and so
// it neither shows nor publishes them, nor polls them: that is sync's.
type publicStore struct {
	mirror.Store
	private map[string]bool
}

// public returns what the history server may show of a store.
func (c *serveCommand) public(w *world, store *openStore) (mirror.Store, error) {
	keys, err := c.keyring()
	if err != nil || len(keys.feeds) == 0 {
		return store.Store, err
	}
	public := &publicStore{Store: store.Store, private: map[string]bool{}}
	for feed := range keys.feeds {
		public.private[feed] = true
	}
	w.tell(count(len(keys.feeds), "feed that needs credentials is", "feeds that need credentials are") + " not shown: whoever reaches the server can read")
	return public, nil
}

// Feed implements mirror.Store.
func (s *publicStore) Feed(ctx context.Context, url string) (*mirror.Feed, error) {
	if s.private[url] {
		return nil, mirror.ErrNotFound
	}
	return s.Store.Feed(ctx, url)
}

// Feeds implements mirror.Store.
func (s *publicStore) Feeds(ctx context.Context, q mirror.FeedQuery) iter.Seq2[*mirror.Feed, error] {
	limit := q.Limit
	if q.Limit > 0 {
		q.Limit += len(s.private)
	}
	return visible(s.Store.Feeds(ctx, q), limit, func(f *mirror.Feed) bool { return !s.private[f.URL] })
}

// Records implements mirror.Store.
func (s *publicStore) Records(ctx context.Context, feed string, ids []string) (map[string]*mirror.Record, error) {
	if s.private[feed] {
		return map[string]*mirror.Record{}, nil
	}
	return s.Store.Records(ctx, feed, ids)
}

// Document implements mirror.Store.
func (s *publicStore) Document(ctx context.Context, feed, url string) (*mirror.Document, error) {
	if s.private[feed] {
		return nil, mirror.ErrNotFound
	}
	return s.Store.Document(ctx, feed, url)
}

// Documents implements mirror.Store.
func (s *publicStore) Documents(ctx context.Context, feed string) iter.Seq2[*mirror.Document, error] {
	if s.private[feed] {
		return func(func(*mirror.Document, error) bool) {}
	}
	return s.Store.Documents(ctx, feed)
}

// Versions implements mirror.Store.
func (s *publicStore) Versions(ctx context.Context, feed, id string) iter.Seq2[*mirror.Version, error] {
	if s.private[feed] {
		return func(func(*mirror.Version, error) bool) {}
	}
	return s.Store.Versions(ctx, feed, id)
}

// Entries implements mirror.Store.
func (s *publicStore) Entries(ctx context.Context, q mirror.Query) iter.Seq2[*mirror.Record, error] {
	if s.private[q.Feed] {
		return func(func(*mirror.Record, error) bool) {}
	}
	limit := q.Limit
	if q.Feed == "" {
		q.Limit = 0 // how many are left out is not known
	}
	return visible(s.Store.Entries(ctx, q), limit, func(r *mirror.Record) bool { return !s.private[r.Feed] })
}

// Commit implements mirror.Store: a feed that is not shown cannot be added again.
func (s *publicStore) Commit(ctx context.Context, c *mirror.Change) error {
	if s.private[c.Feed.URL] {
		return mirror.ErrConflict
	}
	return s.Store.Commit(ctx, c)
}

// Remove implements mirror.Store.
func (s *publicStore) Remove(ctx context.Context, url string) error {
	if s.private[url] {
		return mirror.ErrNotFound
	}
	return s.Store.Remove(ctx, url)
}

// visible yields what may be seen of a sequence, up to a limit; zero: all.
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
