package mirror_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// put commits a feed with n entries, some of them of the same times as others', each
// with a document and an earlier version.
func put(t require.TestingT, s mirror.Store, url string, private bool, n int) {
	f := &mirror.Feed{URL: url, Private: private}
	for round := range 2 {
		c := &mirror.Commit{Feed: f}
		for i := range n {
			id := fmt.Sprintf("%s#%d", url, i)
			c.Put = append(c.Put, &mirror.Record{
				Feed: url, ID: id, State: mirror.Live, Added: time.Date(2003, time.Month(1+i%5), 1, 0, 0, 0, 0, time.UTC),
				FirstCommit: 1, LastCommit: f.Commits + 1,
				Content: mirror.Content{Updated: time.Date(2003, time.Month(1+i%5), 1, 0, round, 0, 0, time.UTC), Format: feedhistory.FormatAtom, Data: fmt.Sprint(id, round)},
				Copy:    mirror.Copy{Digest: fmt.Sprint(id, round)},
			})
		}
		c.Documents = append(c.Documents, &mirror.DocumentRecord{URL: url, Names: []string{url}, Digest: url, Entries: round})
		c.Keep = 5
		require.NoError(t, s.Commit(context.Background(), c))
	}
}

// all returns the values of a sequence as text, which compares their fields.
func all[T any](t require.TestingT, seq iter.Seq2[*T, error]) (list []string) {
	for v, err := range seq {
		require.NoError(t, err)
		list = append(list, fmt.Sprintf("%+v", *v))
	}
	return list
}

func requireSame(t require.TestingT, want, got error) {
	if want == nil {
		require.NoError(t, got)
		return
	}
	require.EqualError(t, got, want.Error())
	require.ErrorIs(t, got, mirror.ErrNotFound)
}

// The public view of a store is like a store that never had the private feeds.
func TestPublic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		full, without := mirror.NewMemory(), mirror.NewMemory()
		urls := []string{"urn:none"}
		for i := range rapid.IntRange(0, 6).Draw(t, "feeds") {
			url, private, n := fmt.Sprintf("urn:%d", i), rapid.Bool().Draw(t, "private"), rapid.IntRange(0, 4).Draw(t, "entries")
			urls = append(urls, url)
			put(t, full, url, private, n)
			if !private {
				put(t, without, url, false, n)
			}
		}
		view, ctx := mirror.Public(full), context.Background()
		limit := rapid.IntRange(0, 5).Draw(t, "limit")
		q := mirror.FeedQuery{Limit: limit}
		require.Equal(t, all(t, without.Feeds(ctx, q)), all(t, view.Feeds(ctx, q)))
		q = mirror.FeedQuery{After: "urn:1"}
		require.Equal(t, all(t, without.Feeds(ctx, q)), all(t, view.Feeds(ctx, q)))
		require.Equal(t, all(t, without.Entries(ctx, mirror.Query{Limit: limit})), all(t, view.Entries(ctx, mirror.Query{Limit: limit})))
		for _, url := range urls {
			want, failed := without.Feed(ctx, url)
			got, err := view.Feed(ctx, url)
			require.Equal(t, want, got)
			requireSame(t, failed, err)
			require.Equal(t, all(t, without.Documents(ctx, url)), all(t, view.Documents(ctx, url)))
			require.Equal(t, all(t, without.Entries(ctx, mirror.Query{Feed: url, Limit: limit})), all(t, view.Entries(ctx, mirror.Query{Feed: url, Limit: limit})))
			document, failed := without.Document(ctx, url, url)
			other, err := view.Document(ctx, url, url)
			require.Equal(t, document, other)
			requireSame(t, failed, err)
			id := url + "#0"
			records, err := without.Records(ctx, url, []string{id})
			require.NoError(t, err)
			found, err := view.Records(ctx, url, []string{id})
			require.NoError(t, err)
			require.Equal(t, records, found)
			require.Equal(t, all(t, without.Versions(ctx, url, id)), all(t, view.Versions(ctx, url, id)))
			months, err := mirror.Months(ctx, without, mirror.Query{Feed: url})
			require.NoError(t, err)
			counted, err := mirror.Months(ctx, view, mirror.Query{Feed: url})
			require.NoError(t, err)
			require.Equal(t, months, counted)
		}
	})
}

// Nothing private can be changed through the public view.
func TestPublicRefuses(t *testing.T) {
	ctx := t.Context()
	full := mirror.NewMemory()
	put(t, full, "urn:private", true, 1)
	put(t, full, "urn:public", false, 1)
	view := mirror.Public(full)
	before, err := full.Feed(ctx, "urn:private")
	require.NoError(t, err)
	seen := *before
	seen.Private = false
	for _, f := range []*mirror.Feed{{URL: "urn:private"}, before, &seen, {URL: "urn:new", Private: true}} {
		require.ErrorIs(t, view.Commit(ctx, &mirror.Commit{Feed: f}), mirror.ErrConflict)
	}
	require.ErrorIs(t, view.Remove(ctx, "urn:private"), mirror.ErrNotFound)
	require.NoError(t, view.Remove(ctx, "urn:public"))
	require.NoError(t, view.(interface {
		Index(ctx context.Context) error
	}).Index(ctx))
	after, err := full.Feed(ctx, "urn:private")
	require.NoError(t, err)
	require.Equal(t, before, after)
	_, err = full.Feed(ctx, "urn:new")
	require.ErrorIs(t, err, mirror.ErrNotFound)

	for _, s := range []mirror.Store{full, view} {
		_, err = mirror.Months(ctx, s, mirror.Query{})
		require.ErrorContains(t, err, "needs a Feed")
	}

	ended, end := context.WithCancel(ctx)
	end()
	require.ErrorIs(t, view.Remove(ended, "urn:private"), context.Canceled)
	require.ErrorIs(t, view.Commit(ended, &mirror.Commit{Feed: &mirror.Feed{URL: "urn:private"}}), context.Canceled)
	_, err = view.Feed(ended, "urn:private")
	require.ErrorIs(t, err, context.Canceled)
	_, err = mirror.Months(ended, view, mirror.Query{Feed: "urn:private"})
	require.ErrorIs(t, err, context.Canceled)
}

// A turningStore makes a feed private, with content that is, just before something is
// read.
type turningStore struct {
	mirror.Store
	turn func()
}

func (s turningStore) Records(ctx context.Context, feed string, ids []string) (map[string]*mirror.Record, error) {
	s.turn()
	return s.Store.Records(ctx, feed, ids)
}

func (s turningStore) Document(ctx context.Context, feed, url string) (*mirror.DocumentRecord, error) {
	s.turn()
	return s.Store.Document(ctx, feed, url)
}

func (s turningStore) Documents(ctx context.Context, feed string) iter.Seq2[*mirror.DocumentRecord, error] {
	s.turn()
	return s.Store.Documents(ctx, feed)
}

// Entries reads in portions, as stores may: the feed turns private after the first.
func (s turningStore) Entries(ctx context.Context, q mirror.Query) iter.Seq2[*mirror.Record, error] {
	return func(yield func(*mirror.Record, error) bool) {
		known := map[string]bool{}
		for range 2 {
			for r, err := range s.Store.Entries(ctx, q) {
				if err == nil && !known[r.ID] && !yield(r, err) {
					return
				}
				known[r.ID] = true
			}
			s.turn()
		}
	}
}

func (s turningStore) Versions(ctx context.Context, feed, id string) iter.Seq2[*mirror.Record, error] {
	s.turn()
	return s.Store.Versions(ctx, feed, id)
}

// A feed that becomes private while it is read shows nothing of what came with that.
func TestPublicTurns(t *testing.T) {
	ctx := t.Context()
	for name, read := range map[string]func(s mirror.Store) []string{
		"records": func(s mirror.Store) (list []string) {
			records, err := s.Records(ctx, "urn:f", []string{"urn:f#0", "urn:secret"})
			require.NoError(t, err)
			for _, r := range records {
				list = append(list, fmt.Sprintf("%+v", *r))
			}
			return list
		},
		"document": func(s mirror.Store) []string {
			d, err := s.Document(ctx, "urn:f", "urn:secret")
			require.ErrorIs(t, err, mirror.ErrNotFound)
			return []string{fmt.Sprint(d)}
		},
		"documents": func(s mirror.Store) []string { return all(t, s.Documents(ctx, "urn:f")) },
		"entries":   func(s mirror.Store) []string { return all(t, s.Entries(ctx, mirror.Query{Feed: "urn:f"})) },
		"river":     func(s mirror.Store) []string { return all(t, s.Entries(ctx, mirror.Query{})) },
		"versions":  func(s mirror.Store) []string { return all(t, s.Versions(ctx, "urn:f", "urn:secret")) },
	} {
		t.Run(name, func(t *testing.T) {
			m := mirror.NewMemory()
			put(t, m, "urn:f", false, 2)
			turned := false
			turn := func() {
				if turned {
					return
				}
				turned = true
				f, err := m.Feed(ctx, "urn:f")
				require.NoError(t, err)
				f.Private = true
				for _, text := range []string{"secret 1", "secret 2"} {
					require.NoError(t, m.Commit(ctx, &mirror.Commit{
						Feed: f, Keep: 5,
						Put:       []*mirror.Record{{Feed: "urn:f", ID: "urn:secret", State: mirror.Live, LastCommit: f.Commits + 1, Copy: mirror.Copy{Digest: text}, Content: mirror.Content{Format: feedhistory.FormatAtom, Data: text}}},
						Documents: []*mirror.DocumentRecord{{URL: "urn:secret", Names: []string{"urn:secret"}, Digest: text}},
					}))
				}
			}
			shown := read(mirror.Public(turningStore{m, turn}))
			require.True(t, turned)
			require.NotContains(t, fmt.Sprint(shown), "secret")
			require.Contains(t, fmt.Sprint(all(t, m.Entries(ctx, mirror.Query{}))), "secret 2", "the store has it")
		})
	}
}

// A feed that has become private since a sequence was made is hidden when somebody ranges over
// it again.
func TestPublicAgain(t *testing.T) {
	store := mirror.NewMemory()
	put(t, store, "urn:feed", false, 3)
	entries := mirror.Public(store).Entries(t.Context(), mirror.Query{})
	require.Len(t, all(t, entries), 3)
	feed, err := store.Feed(t.Context(), "urn:feed")
	require.NoError(t, err)
	feed.Private = true
	require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: feed}))
	require.Empty(t, all(t, entries))
}

// A feed is private from the beginning if its query has a value like a secret's.
func TestNewFeed(t *testing.T) {
	for url, private := range map[string]bool{
		"https://example.org/feed?token=abcd":     true,
		"https://example.org/feed?token=1":        false,
		"https://example.org/token/abcd":          false,
		"https://user:password@example.org/feed/": false, // it is never read
	} {
		require.Equal(t, private, mirror.NewFeed(url).Private, url)
	}
}

// A record without content has no entry, and the error names it.
func TestEntryWithoutContent(t *testing.T) {
	_, err := (&mirror.Record{}).Entry()
	require.EqualError(t, err, `mirror: the entry "" has no content`)
	_, err = (&mirror.Record{ID: "urn:1"}).Entry()
	require.EqualError(t, err, `mirror: the entry "urn:1" has no content`)
}
