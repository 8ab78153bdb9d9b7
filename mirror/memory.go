package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/feedhistory/feedhistory/internal/settings"
	"github.com/feedhistory/feedhistory/mirror/words"
)

// A Memory is a Store in memory, for tests and for programs beginning with an empty
// store each time. The zero value is empty and ready to use. Do not copy a Memory.
type Memory struct {
	mu    sync.RWMutex
	feeds map[string]*memoryFeed
}

type memoryFeed struct {
	state     *Feed
	entries   map[string]StoredEntry // by ID
	documents []*DocumentRecord      // in the order of their commits
	marks     map[string]*Marks      // by ID
	posts     map[string]string      // the shortKey of each entry's Post, by ID; only in a shelf
}

// Feed implements Store.
func (m *Memory) Feed(ctx context.Context, url string) (*Feed, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	f, err := m.feed(ctx, url)
	if err != nil {
		return nil, err
	}
	return f.state.clone(), nil
}

func (m *Memory) feed(ctx context.Context, url string) (*memoryFeed, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f := m.feeds[url]; f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("%s: %w", url, ErrNotFound)
}

// Feeds implements Store.
func (m *Memory) Feeds(ctx context.Context, q FeedQuery) iter.Seq2[*Feed, error] {
	return sequence(ctx, m, (*Feed).clone, func() (found []*Feed, err error) {
		if err := settings.Check("mirror", settings.Number{Name: "FeedQuery.Limit", Value: int64(q.Limit)}); err != nil {
			return nil, err
		}
		if q.After != "" && !q.Due.IsZero() {
			return nil, errors.New("mirror: a FeedQuery cannot have both Due and After")
		}
		for _, f := range m.feeds {
			if q.Has(f.state) {
				found = append(found, f.state)
			}
		}
		slices.SortFunc(found, q.Compare)
		return limited(found, q.Limit), nil
	})
}

// Records implements Store.
func (m *Memory) Records(ctx context.Context, feed string, ids []string) (map[string]*Record, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	found := map[string]*Record{}
	f, err := m.feed(ctx, feed)
	if err != nil {
		return found, ctx.Err()
	}
	for _, id := range ids {
		if r := f.entries[id].Record; r != nil {
			r = clone(r)
			c := r.Content
			r.Content = Content{Format: c.Format, Updated: c.Updated, Published: c.Published, Size: c.Size}
			found[id] = r
		}
	}
	return found, nil
}

// Document implements Store.
func (m *Memory) Document(ctx context.Context, feed, url string) (*DocumentRecord, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	f, err := m.feed(ctx, feed)
	if err != nil {
		return nil, err
	}
	for _, d := range slices.Backward(f.documents) {
		if slices.Contains(d.Names, url) {
			return d.clone(), nil
		}
	}
	return nil, fmt.Errorf("document %s: %w", url, ErrNotFound)
}

// Documents implements Store.
func (m *Memory) Documents(ctx context.Context, feed string) iter.Seq2[*DocumentRecord, error] {
	return sequence(ctx, m, (*DocumentRecord).clone, func() ([]*DocumentRecord, error) {
		f := m.feeds[feed]
		if f == nil {
			return nil, nil
		}
		return slices.SortedFunc(slices.Values(f.documents), (*DocumentRecord).Compare), nil
	})
}

// Entries implements Store.
func (m *Memory) Entries(ctx context.Context, q Query) iter.Seq2[*Record, error] {
	if q.AfterCommit != nil {
		after := *q.AfterCommit // which the caller may change during the range
		q.AfterCommit = &after
	}
	return sequence(ctx, m, clone, func() (found []*Record, err error) {
		if err := settings.Check("mirror", settings.Number{Name: "Query.Limit", Value: int64(q.Limit)}); err != nil {
			return nil, err
		}
		if q.AfterCommit != nil && q.Feed == "" {
			return nil, errors.New("mirror: a Query with AfterCommit needs a Feed")
		}
		search := words.Fields(q.Search)
		if q.Search != "" && len(search) == 0 {
			return nil, fmt.Errorf("mirror: no words in %q: %w", q.Search, errors.ErrUnsupported)
		}
		for url, f := range m.feeds {
			if q.Feed != "" && q.Feed != url {
				continue
			}
			for _, e := range f.entries {
				if q.Has(e.Record) && e.Record.says(search, q.Prefix) {
					found = append(found, e.Record)
				}
			}
		}
		slices.SortFunc(found, q.Compare)
		return limited(found, q.Limit), nil
	})
}

// says reports whether the title and the content together contain all of the
// words. With prefix, the last one may be the beginning of a word.
func (r *Record) says(all []string, prefix bool) bool {
	if len(all) == 0 {
		return true
	}
	var s words.Set
	s.Add(r.Content.Title)
	if e, err := r.Entry(); err == nil {
		s.AddEntry(e)
	}
	return s.Contains(all, prefix)
}

// Versions implements Store.
func (m *Memory) Versions(ctx context.Context, feed, id string) iter.Seq2[*Version, error] {
	return sequence(ctx, m, clone, func() ([]*Version, error) {
		if f := m.feeds[feed]; f != nil {
			return slices.Clone(f.entries[id].Versions), nil
		}
		return nil, nil
	})
}

// Remove implements Store.
func (m *Memory) Remove(ctx context.Context, url string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.feed(ctx, url); err != nil {
		return err
	}
	delete(m.feeds, url)
	return nil
}

// Commit implements Store.
func (m *Memory) Commit(ctx context.Context, c *Commit) error {
	if c == nil || c.Feed == nil {
		return errors.New("mirror: Memory.Commit: the Change, or its Feed, is nil")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := m.feed(ctx, c.Feed.URL)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		f = &memoryFeed{state: &Feed{}, entries: map[string]StoredEntry{}}
	}
	if f.state.Commits != c.Feed.Commits {
		return fmt.Errorf("%s: %w", c.Feed.URL, ErrConflict)
	}
	if m.feeds == nil {
		m.feeds = map[string]*memoryFeed{}
	}
	m.feeds[c.Feed.URL] = f
	c.Feed.Commits = c.next()
	f.state = c.Feed.clone()
	c.Apply(func(id string) StoredEntry { return f.entries[id] }, func(id string, e StoredEntry) { f.entries[id] = e })
	f.file(c)
	return nil
}

// next returns the number of the commit.
func (c *Commit) next() int64 { return cmp.Or(c.Number, c.Feed.Commits+1) }

// file stores the documents of a change.
func (f *memoryFeed) file(c *Commit) {
	if c.Forget {
		f.documents = nil
	}
	for _, d := range c.Documents {
		f.documents = slices.DeleteFunc(f.documents, func(o *DocumentRecord) bool { return o.URL == d.URL })
		f.documents = append(f.documents, d.clone())
	}
}

// sequence yields copies of the values find returns when ranging begins.
func sequence[T any](ctx context.Context, m *Memory, copied func(*T) *T, find func() ([]*T, error)) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		m.mu.RLock()
		found, err := find()
		m.mu.RUnlock()
		for i := 0; err == nil && ctx.Err() == nil && i < len(found); i++ {
			if !yield(copied(found[i]), nil) {
				return
			}
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			yield(nil, err)
		}
	}
}

func limited[T any](list []T, limit int) []T {
	if limit > 0 && limit < len(list) {
		return list[:limit]
	}
	return list
}

func clone[T any](v *T) *T {
	twin := *v
	return &twin
}

func (f *Feed) clone() *Feed {
	twin := clone(f)
	twin.Ledger.l, twin.Mark = f.Ledger.l.clone(), slices.Clone(f.Mark)
	twin.Folders = slices.Clone(f.Folders)
	for i, path := range f.Folders {
		twin.Folders[i] = slices.Clone(path)
	}
	return twin
}

func (d *DocumentRecord) clone() *DocumentRecord {
	twin := clone(d)
	twin.Names, twin.Further = slices.Clone(d.Names), slices.Clone(d.Further)
	return twin
}
