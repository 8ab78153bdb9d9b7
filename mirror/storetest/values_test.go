package storetest_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/storetest"
)

// A values is a Store over a database of keys and values, here a map: the key is a feed's
// URL, the value everything of the feed. It does not search.
type values struct {
	mu    sync.RWMutex
	texts map[string][]byte
}

func TestValues(t *testing.T) {
	storetest.Run(t, func(testing.TB) (store, other mirror.Store) {
		s := &values{texts: map[string][]byte{}}
		return s, s
	})
}

// A value is everything of a feed.
type value struct {
	Feed      *mirror.Feed
	Commits   int64
	Entries   map[string]mirror.StoredEntry
	Documents []*mirror.DocumentRecord // in the order of their commits
}

// get returns the value of a feed; one without a Feed if there is none.
func (s *values) get(ctx context.Context, url string) (*value, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.read(ctx, url)
}

func (s *values) read(ctx context.Context, url string) (*value, error) {
	v := &value{Entries: map[string]mirror.StoredEntry{}}
	text, ok := s.texts[url]
	if !ok {
		return v, ctx.Err()
	}
	if err := json.Unmarshal(text, v); err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	v.Feed.Commits = v.Commits
	for id, e := range v.Entries {
		if e.Record != nil {
			e.Record.ID, e.Record.Feed = id, url
		}
		for _, old := range e.Versions {
			old.ID = id
		}
	}
	return v, ctx.Err()
}

// urls returns the feed's URL or, if that is "", those of all feeds.
func (s *values) urls(feed string) (urls []string) {
	if feed != "" {
		return []string{feed}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for url := range s.texts {
		urls = append(urls, url)
	}
	return urls
}

// each yields what find finds in the values of feeds, in order, and at most limit of them.
func each[T any](ctx context.Context, s *values, feed string, limit int, compare func(a, b *T) int, find func(*value) []*T) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		var all []*T
		for _, url := range s.urls(feed) {
			v, err := s.get(ctx, url)
			if err != nil {
				yield(nil, err)
				return
			}
			if v.Feed != nil {
				all = append(all, find(v)...)
			}
		}
		slices.SortFunc(all, compare)
		for i, v := range all {
			if ctx.Err() != nil || limit > 0 && i == limit {
				break
			}
			if !yield(v, nil) {
				return
			}
		}
		if ctx.Err() != nil {
			yield(nil, ctx.Err())
		}
	}
}

func failed[T any](err error) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) { yield(nil, err) }
}

func (s *values) Feed(ctx context.Context, url string) (*mirror.Feed, error) {
	v, err := s.get(ctx, url)
	if err == nil && v.Feed == nil {
		err = mirror.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return v.Feed, nil
}

func (s *values) Feeds(ctx context.Context, q mirror.FeedQuery) iter.Seq2[*mirror.Feed, error] {
	if q.Limit < 0 || q.After != "" && !q.Due.IsZero() {
		return failed[mirror.Feed](errors.New("values: a query that makes no sense"))
	}
	return each(ctx, s, "", q.Limit, q.Compare, func(v *value) []*mirror.Feed {
		if !q.Has(v.Feed) {
			return nil
		}
		return []*mirror.Feed{v.Feed}
	})
}

func (s *values) Records(ctx context.Context, feed string, ids []string) (map[string]*mirror.Record, error) {
	v, err := s.get(ctx, feed)
	if err != nil {
		return nil, err
	}
	found := map[string]*mirror.Record{}
	for _, id := range ids {
		if r := v.Entries[id].Record; r != nil {
			c := r.Content
			r.Content = mirror.Content{Format: c.Format, Updated: c.Updated, Published: c.Published, Size: c.Size}
			found[id] = r
		}
	}
	return found, nil
}

func (s *values) Document(ctx context.Context, feed, url string) (*mirror.DocumentRecord, error) {
	v, err := s.get(ctx, feed)
	if err != nil {
		return nil, err
	}
	for _, d := range slices.Backward(v.Documents) {
		if slices.Contains(d.Names, url) {
			return d, nil
		}
	}
	return nil, mirror.ErrNotFound
}

func (s *values) Documents(ctx context.Context, feed string) iter.Seq2[*mirror.DocumentRecord, error] {
	return each(ctx, s, feed, 0, (*mirror.DocumentRecord).Compare, func(v *value) []*mirror.DocumentRecord { return v.Documents })
}

func (s *values) Entries(ctx context.Context, q mirror.Query) iter.Seq2[*mirror.Record, error] {
	switch {
	case q.Search != "":
		return failed[mirror.Record](errors.ErrUnsupported)
	case q.Limit < 0, q.AfterCommit != nil && q.Feed == "":
		return failed[mirror.Record](errors.New("values: a query that makes no sense"))
	case q.AfterCommit != nil:
		after := *q.AfterCommit // which the caller may change
		q.AfterCommit = &after
	}
	return each(ctx, s, q.Feed, q.Limit, q.Compare, func(v *value) (found []*mirror.Record) {
		for _, e := range v.Entries {
			if q.Has(e.Record) {
				found = append(found, e.Record)
			}
		}
		return found
	})
}

func (s *values) Versions(ctx context.Context, feed, id string) iter.Seq2[*mirror.Version, error] {
	return each(ctx, s, feed, 0, (*mirror.Version).Compare, func(v *value) []*mirror.Version { return v.Entries[id].Versions })
}

func (s *values) Remove(ctx context.Context, url string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.texts[url] == nil:
		return mirror.ErrNotFound
	}
	delete(s.texts, url)
	return nil
}

func (s *values) Commit(ctx context.Context, c *mirror.Commit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.read(ctx, c.Feed.URL)
	if err == nil && v.Commits != c.Feed.Commits {
		err = mirror.ErrConflict
	}
	if err != nil {
		return err
	}
	v.Feed, v.Commits = c.Feed, cmp.Or(c.Number, c.Feed.Commits+1)
	c.Apply(func(id string) mirror.StoredEntry { return v.Entries[id] }, func(id string, e mirror.StoredEntry) { v.Entries[id] = e })
	if c.Forget {
		v.Documents = nil
	}
	for _, d := range c.Documents {
		v.Documents = append(slices.DeleteFunc(v.Documents, func(o *mirror.DocumentRecord) bool { return o.URL == d.URL }), d)
	}
	text, err := json.Marshal(v)
	if err == nil {
		s.texts[c.Feed.URL], c.Feed.Commits = text, v.Commits
	}
	return err
}
