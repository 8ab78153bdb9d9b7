package storetest_test

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/storetest"
)

// A values is a Store over a database of keys and values, here a map: the key is a feed's
// URL, the value a Memory of the feed.
type values struct {
	commit sync.Mutex // held while a feed is changed
	mu     sync.Mutex
	texts  map[string][]byte
	read   map[string]mirror.Store // what has been read of them since they changed
}

func TestValues(t *testing.T) {
	storetest.Run(t, func(testing.TB) (store, other mirror.Store) {
		s := &values{texts: map[string][]byte{}, read: map[string]mirror.Store{}}
		return s, s
	})
}

// get returns a Memory of a feed, or of all feeds if the URL is "", to read.
func (s *values) get(ctx context.Context, url string) (m mirror.Store, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.read[url]
	if !ok {
		texts := [][]byte{s.texts[url]}
		if url == "" {
			texts = slices.Collect(maps.Values(s.texts))
		}
		if m, err = decoded(texts...); err != nil {
			return nil, err
		}
		s.read[url] = m
	}
	return m, ctx.Err()
}

// decoded returns the Memory of feeds; a text may be nil.
func decoded(texts ...[]byte) (mirror.Store, error) {
	m := mirror.NewMemory()
	for _, text := range texts {
		if text == nil {
			break
		}
		if err := json.Unmarshal(text, m); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// put stores a Memory of a feed; nil removes the feed.
func (s *values) put(url string, m mirror.Store) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.read, url)
	delete(s.read, "")
	if s.texts[url] = text; m == nil {
		delete(s.texts, url)
	}
	return nil
}

// each yields the results of find in a feed, or in all feeds if the URL is "".
func each[T any](ctx context.Context, s *values, feed string, find func(mirror.Store) iter.Seq2[*T, error]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		m, err := s.get(ctx, feed)
		if err != nil {
			yield(nil, err)
			return
		}
		find(m)(yield)
	}
}

func (s *values) Feed(ctx context.Context, url string) (*mirror.Feed, error) {
	m, err := s.get(ctx, url)
	if err != nil {
		return nil, err
	}
	return m.Feed(ctx, url)
}

func (s *values) Feeds(ctx context.Context, q mirror.FeedQuery) iter.Seq2[*mirror.Feed, error] {
	return each(ctx, s, "", func(m mirror.Store) iter.Seq2[*mirror.Feed, error] { return m.Feeds(ctx, q) })
}

func (s *values) Records(ctx context.Context, feed string, ids []string) (map[string]*mirror.Record, error) {
	m, err := s.get(ctx, feed)
	if err != nil {
		return nil, err
	}
	return m.Records(ctx, feed, ids)
}

func (s *values) Document(ctx context.Context, feed, url string) (*mirror.DocumentRecord, error) {
	m, err := s.get(ctx, feed)
	if err != nil {
		return nil, err
	}
	return m.Document(ctx, feed, url)
}

func (s *values) Documents(ctx context.Context, feed string) iter.Seq2[*mirror.DocumentRecord, error] {
	return each(ctx, s, feed, func(m mirror.Store) iter.Seq2[*mirror.DocumentRecord, error] { return m.Documents(ctx, feed) })
}

func (s *values) Entries(ctx context.Context, q mirror.Query) iter.Seq2[*mirror.Record, error] {
	q = q.Clone()
	return each(ctx, s, q.Feed, func(m mirror.Store) iter.Seq2[*mirror.Record, error] { return m.Entries(ctx, q) })
}

func (s *values) Versions(ctx context.Context, feed, id string) iter.Seq2[*mirror.Record, error] {
	return each(ctx, s, feed, func(m mirror.Store) iter.Seq2[*mirror.Record, error] { return m.Versions(ctx, feed, id) })
}

func (s *values) Remove(ctx context.Context, url string) error {
	return s.change(ctx, url, func(m mirror.Store) (mirror.Store, error) { return nil, m.Remove(ctx, url) })
}

func (s *values) Commit(ctx context.Context, c *mirror.Commit) error {
	return s.change(ctx, c.Feed.URL, func(m mirror.Store) (mirror.Store, error) { return m, m.Commit(ctx, c) })
}

func (s *values) change(ctx context.Context, url string, change func(mirror.Store) (mirror.Store, error)) error {
	s.commit.Lock()
	defer s.commit.Unlock()
	s.mu.Lock()
	m, err := decoded(s.texts[url])
	s.mu.Unlock()
	if err == nil {
		m, err = change(m)
	}
	if err == nil {
		err = s.put(url, m)
	}
	return err
}

// TestMemoryJSON reads values that no Memory has written.
func TestMemoryJSON(t *testing.T) {
	for text, message := range map[string]string{
		`{}`:     "cannot unmarshal object",
		`[null]`: "no feed",
		`[{}]`:   "no feed",
		`[{"feed": {"url": "http://a.example/"}}, {"commits": 1}]`:                                   "no feed",
		`[{"feed": {"url": "http://a.example/"}, "documents": [null]}]`:                              "null in place of a document",
		`[{"feed": {"url": "http://a.example/"}, "entries": [{"id": "urn:1", "versions": [null]}]}]`: "null in place of a version",
	} {
		t.Run(text, func(t *testing.T) {
			m := mirror.NewMemory()
			require.ErrorContains(t, json.Unmarshal([]byte(text), m), message)
			_, err := m.Feed(t.Context(), "http://a.example/")
			require.ErrorIs(t, err, mirror.ErrNotFound)
		})
	}
}
