package mirror

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/feedhistory/feedhistory/internal/settings"
	"github.com/feedhistory/feedhistory/mirror/words"
)

// NewMemory returns an empty Store in memory, for tests and for programs beginning with an
// empty store each time.
//
// It marshals to JSON with all it holds, and json.Unmarshal adds the feeds in such a text to
// it, in place of any with the same URL. So a Store over a database of keys and values can
// keep one for each feed as the value, and leave the rules to it. A commit then stores the
// whole feed again.
func NewMemory() Store { return &memory{} }

type memory struct {
	mu    sync.RWMutex
	feeds map[string]*memoryFeed
}

type memoryFeed struct {
	state     *Feed
	entries   map[string]memoryEntry     // by ID
	documents []*DocumentRecord          // in the order of their commits
	names     map[string]*DocumentRecord // of the documents, by each of their names: the latest commit counts
	own       map[string]*DocumentRecord // by URL
}

func newMemoryFeed(state *Feed) *memoryFeed {
	return &memoryFeed{state: state, entries: map[string]memoryEntry{}}
}

type memoryEntry struct {
	record   *Record   // nil if there are only versions
	versions []*Record // the newest first
}

// Feed implements Store.
func (m *memory) Feed(ctx context.Context, url string) (*Feed, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	f, err := m.feed(ctx, url)
	if err != nil {
		return nil, err
	}
	return f.state.clone(), nil
}

func (m *memory) feed(ctx context.Context, url string) (*memoryFeed, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f := m.feeds[url]; f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("%s: %w", url, ErrNotFound)
}

// Feeds implements Store.
func (m *memory) Feeds(ctx context.Context, q FeedQuery) iter.Seq2[*Feed, error] {
	return sequence(ctx, m, (*Feed).clone, func() (found []*Feed, err error) {
		if err := settings.Check("mirror", settings.Number{Name: "FeedQuery.Limit", Value: int64(q.Limit)}); err != nil {
			return nil, err
		}
		if q.After != "" && !q.Due.IsZero() {
			return nil, errors.New("mirror: a FeedQuery cannot have both Due and After")
		}
		for _, f := range m.feeds {
			if q.has(f.state) {
				found = append(found, f.state)
			}
		}
		slices.SortFunc(found, q.compare)
		return limited(found, q.Limit), nil
	})
}

// Records implements Store.
func (m *memory) Records(ctx context.Context, feed string, ids []string) (map[string]*Record, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	found := map[string]*Record{}
	f, err := m.feed(ctx, feed)
	if err != nil {
		return found, ctx.Err()
	}
	for _, id := range ids {
		if r := f.entries[id].record; r != nil {
			r = clone(r)
			c := r.Content
			r.Content = Content{Format: c.Format, Updated: c.Updated, Published: c.Published, Size: c.Size}
			found[id] = r
		}
	}
	return found, nil
}

// Document implements Store.
func (m *memory) Document(ctx context.Context, feed, url string) (*DocumentRecord, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	f, err := m.feed(ctx, feed)
	if err != nil {
		return nil, err
	}
	if d := f.names[url]; d != nil {
		return d.clone(), nil
	}
	return nil, fmt.Errorf("document %s: %w", url, ErrNotFound)
}

// Documents implements Store.
func (m *memory) Documents(ctx context.Context, feed string) iter.Seq2[*DocumentRecord, error] {
	return sequence(ctx, m, (*DocumentRecord).clone, func() ([]*DocumentRecord, error) {
		f := m.feeds[feed]
		if f == nil {
			return nil, nil
		}
		return slices.SortedFunc(slices.Values(f.documents), (*DocumentRecord).compare), nil
	})
}

// Entries implements Store.
func (m *memory) Entries(ctx context.Context, q Query) iter.Seq2[*Record, error] {
	q = q.Clone()
	return sequence(ctx, m, clone, func() (found []*Record, err error) {
		if err := settings.Check("mirror", settings.Number{Name: "Query.Limit", Value: int64(q.Limit)}, settings.Number{Name: "Query.Skip", Value: int64(q.Skip)}); err != nil {
			return nil, err
		}
		if q.AfterCommit != nil && q.Feed == "" {
			return nil, errors.New("mirror: a Query with AfterCommit needs a Feed")
		}
		var search words.Query
		if q.Search != "" {
			if search, err = words.Parse(q.Search, q.Prefix); err != nil {
				return nil, fmt.Errorf("mirror: %w", err)
			}
		}
		for url, f := range m.feeds {
			if q.Feed != "" && q.Feed != url {
				continue
			}
			for _, e := range f.entries {
				if e.record != nil && q.has(e.record) && e.record.meets(search) {
					found = append(found, e.record)
				}
			}
		}
		slices.SortFunc(found, q.compare)
		return limited(found[min(q.Skip, len(found)):], q.Limit), nil
	})
}

// meets reports whether the title and the content together meet a search; the zero Query is
// none.
func (r *Record) meets(search words.Query) bool {
	if search == nil {
		return true
	}
	s := words.Set{Phrases: search.Phrases()}
	s.Add(r.Content.Title)
	if e, err := r.Entry(); err == nil {
		s.AddEntry(e)
	}
	return search.Match(s.Contains)
}

// Versions implements Store.
func (m *memory) Versions(ctx context.Context, feed, id string) iter.Seq2[*Record, error] {
	return sequence(ctx, m, clone, func() ([]*Record, error) {
		if f := m.feeds[feed]; f != nil {
			return slices.Clone(f.entries[id].versions), nil
		}
		return nil, nil
	})
}

// Remove implements Store.
func (m *memory) Remove(ctx context.Context, url string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.feed(ctx, url); err != nil {
		return err
	}
	delete(m.feeds, url)
	return nil
}

// Commit implements Store.
func (m *memory) Commit(ctx context.Context, c *Commit) error {
	if c == nil || c.Feed == nil {
		return errors.New("mirror: Commit: the Commit, or its Feed, is nil")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := m.feed(ctx, c.Feed.URL)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		f = newMemoryFeed(&Feed{})
	}
	if f.state.Commits != c.Feed.Commits {
		return fmt.Errorf("%s: %w", c.Feed.URL, ErrConflict)
	}
	if m.feeds == nil {
		m.feeds = map[string]*memoryFeed{}
	}
	m.feeds[c.Feed.URL] = f
	c.Feed.Commits = c.next()
	f.apply(c)
	return nil
}

// apply takes a commit.
func (f *memoryFeed) apply(c *Commit) {
	f.state = c.Feed.clone()
	f.putEntries(c)
	f.putDocuments(c)
}

// next returns the number of the commit.
func (c *Commit) next() int64 { return cmp.Or(c.Number, c.Feed.Commits+1) }

// putEntries stores the entries of a change.
func (f *memoryFeed) putEntries(c *Commit) {
	set := func(r *Record, content Content, e memoryEntry) {
		e.record = clone(r)
		e.record.Feed, e.record.Content = c.Feed.URL, content
		f.entries[r.ID] = e.pruned(c.Keep)
	}
	for _, r := range c.Put {
		e := f.entries[r.ID]
		if old := e.record; old != nil && old.Content.Format != "" {
			e.versions = append(e.versions, &Record{ID: old.ID, Copy: old.Copy, Content: old.Content})
		}
		set(r, r.Content, e)
	}
	for _, r := range c.Touch {
		e := f.entries[r.ID]
		var content Content
		if e.record != nil {
			content = e.record.Content
		}
		set(r, content, e)
	}
	for _, v := range c.Versions {
		e := f.entries[v.ID]
		e.versions = append(e.versions, clone(v))
		if e = e.pruned(c.Keep); e.record != nil || len(e.versions) > 0 {
			f.entries[v.ID] = e
		} else {
			delete(f.entries, v.ID)
		}
	}
}

// pruned returns the entry with its newest versions, each once, and not the current one.
func (e memoryEntry) pruned(keep int) memoryEntry {
	if len(e.versions) == 0 {
		return e
	}
	seen := map[string]bool{}
	if e.record != nil {
		seen[e.record.Copy.Digest] = true
	}
	e.versions = slices.DeleteFunc(e.versions, func(v *Record) bool {
		known := seen[v.Copy.Digest] // of equal ones, the first counts
		seen[v.Copy.Digest] = true
		return known
	})
	slices.SortFunc(e.versions, newer)
	e.versions = e.versions[:min(len(e.versions), max(keep, 0))]
	return e
}

// putDocuments stores the documents of a change.
func (f *memoryFeed) putDocuments(c *Commit) {
	if c.Forget {
		f.documents, f.names, f.own = nil, nil, nil
	}
	for _, d := range c.Documents {
		f.putDocument(d.clone())
	}
}

// putDocument stores a document, whose names are its own from now on.
func (f *memoryFeed) putDocument(d *DocumentRecord) {
	if f.names == nil {
		f.names, f.own = map[string]*DocumentRecord{}, map[string]*DocumentRecord{}
	}
	var lost []string // the names that an earlier document may have again
	if old := f.own[d.URL]; old != nil {
		for _, name := range old.Names {
			if !slices.Contains(d.Names, name) {
				lost = append(lost, name)
			}
		}
		i := slices.Index(f.documents, old)
		f.documents = slices.Delete(f.documents, i, i+1)
	}
	f.documents, f.own[d.URL] = append(f.documents, d), d
	for _, name := range d.Names {
		f.names[name] = d
	}
	for _, name := range lost {
		delete(f.names, name)
		for _, o := range f.documents {
			if slices.Contains(o.Names, name) {
				f.names[name] = o
			}
		}
	}
}

// MarshalJSON implements json.Marshaler.
func (m *memory) MarshalJSON() ([]byte, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	forms := make([]*feedForm, 0, len(m.feeds))
	for _, url := range slices.Sorted(maps.Keys(m.feeds)) {
		forms = append(forms, m.feeds[url].form())
	}
	return unescaped(forms)
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *memory) UnmarshalJSON(text []byte) error {
	var forms []*feedForm
	if err := json.Unmarshal(text, &forms); err != nil {
		return fmt.Errorf("mirror: the JSON of a Memory: %w", err)
	}
	feeds := make(map[string]*memoryFeed, len(forms))
	for _, form := range forms {
		f, err := form.feed()
		if err != nil {
			return fmt.Errorf("mirror: the JSON of a Memory: %w", err)
		}
		feeds[f.state.URL] = f
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.feeds == nil {
		m.feeds = feeds
	}
	maps.Copy(m.feeds, feeds)
	return nil
}

// A feedForm is a memoryFeed as JSON.
type feedForm struct {
	Feed      *Feed             `json:"feed"`
	Commits   int64             `json:"commits,omitempty"`
	Documents []*DocumentRecord `json:"documents,omitempty"`
	Entries   []entryForm       `json:"entries,omitempty"`
}

type entryForm struct {
	ID       string    `json:"id"`
	Versions []*Record `json:"versions,omitempty"`
	*Record
}

// form returns the JSON of a feed.
func (f *memoryFeed) form() *feedForm {
	form := &feedForm{Feed: f.state, Commits: f.state.Commits, Documents: f.documents}
	for _, id := range slices.Sorted(maps.Keys(f.entries)) {
		e := f.entries[id]
		form.Entries = append(form.Entries, entryForm{id, e.versions, e.record})
	}
	return form
}

// feed returns the feed whose JSON was read.
func (form *feedForm) feed() (*memoryFeed, error) {
	switch {
	case form == nil || form.Feed == nil:
		return nil, errors.New("no feed")
	case slices.Contains(form.Documents, nil):
		return nil, errors.New("null in place of a document")
	}
	f := newMemoryFeed(form.Feed)
	f.putDocuments(&Commit{Documents: form.Documents})
	f.state.Commits = form.Commits
	for _, e := range form.Entries {
		if e.Record != nil {
			e.Record.ID, e.Record.Feed = e.ID, f.state.URL
		}
		for _, v := range e.Versions {
			if v == nil {
				return nil, errors.New("null in place of a version")
			}
			v.ID = e.ID
		}
		if e.Record != nil || len(e.Versions) > 0 {
			f.entries[e.ID] = memoryEntry{e.Record, e.Versions}
		}
	}
	return f, nil
}

// sequence yields copies of the values find returns when ranging begins.
func sequence[T any](ctx context.Context, m *memory, copied func(*T) *T, find func() ([]*T, error)) iter.Seq2[*T, error] {
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
