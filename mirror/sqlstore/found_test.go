package sqlstore_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// A search finds the same entries in the same order whether a word is in nearly
// all entries, in few, or in many that are all far away; and also for a reader,
// for whom some of them are not indexed yet.
func TestSearchMany(t *testing.T) {
	feedtest.Long(t)
	const entries = 6_000
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	says := map[string]func(n int) bool{
		"common": func(n int) bool { return n%10 != 0 },
		"some":   func(n int) bool { return n%100 == 7 },
		"old":    func(n int) bool { return n < 2500 },
		"few":    func(n int) bool { return n%5000 == 4999 },
		"fresh":  func(n int) bool { return n >= entries-30 },
	}
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		d := create(t)
		s := d.open(t)
		feeds := []*mirror.Feed{{URL: "a"}, {URL: "b"}}
		for from := 0; from < entries; from += 1000 {
			changes := map[*mirror.Feed]*mirror.Commit{}
			for n := range 1000 {
				n += from
				f := feeds[n%2]
				if changes[f] == nil {
					changes[f] = &mirror.Commit{Feed: f}
				}
				r := &mirror.Record{ID: fmt.Sprint(n), State: mirror.Live, FirstCommit: 1, LastCommit: 1, Added: start.Add(time.Duration(n/3) * time.Minute)}
				r.Copy.Digest, r.Content.Format, r.Content.Title = "x", "atom", "entry"
				for word, has := range says {
					if has(n) {
						r.Content.Title += " " + word
					}
				}
				changes[f].Put = append(changes[f].Put, r)
			}
			if from == entries-1000 {
				require.NoError(t, s.Index(t.Context()))
			}
			for _, f := range feeds {
				require.NoError(t, s.Commit(t.Context(), changes[f]))
			}
		}
		reader, err := sqlstore.OpenReader(t.Context(), d.connect(t), d.dialect)
		require.NoError(t, err)
		for _, store := range []*sqlstore.Store{reader, s} {
			for word, has := range says {
				for _, q := range []mirror.Query{
					{Limit: 20}, {Limit: 300}, {Reverse: true, Feed: "a", Limit: 20}, {Until: start.Add(24 * time.Hour), Limit: 20},
				} {
					q.Search = word
					require.Equal(t, expected(entries, start, q, has), ids(t, store, q), "%s %+v", word, q)
				}
			}
		}
	})
}

// Newest agrees with the newest entry that a query finds.
func TestNewest(t *testing.T) {
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		s := create(t).open(t)
		w := newWriter()
		names := []string{"missing", "empty", "https://example.org/" + strings.Repeat("long", 500)}
		require.NoError(t, s.Commit(t.Context(), &mirror.Commit{Feed: &mirror.Feed{URL: "empty"}}))
		for n := range 5 {
			names = append(names, fmt.Sprint("feed\x00", n))
		}
		for _, name := range names[2:] {
			c := w.change(&mirror.Feed{URL: name}, 20)
			c.Put[0].State = mirror.Deleted
			require.NoError(t, s.Commit(t.Context(), c))
		}
		got, err := s.Newest(t.Context(), names)
		require.NoError(t, err)
		require.Len(t, got, 6)
		for _, name := range names[2:] {
			for _, r := range feedtest.All(t, s.Entries(t.Context(), mirror.Query{Feed: name, Limit: 1})) {
				require.Equal(t, r.Time(), got[name])
			}
		}
	})
}

// expected returns the entries that a query should find.
func expected(entries int, start time.Time, q mirror.Query, has func(int) bool) (found []string) {
	var all []mirror.Record
	for n := range entries {
		c := mirror.Record{Added: start.Add(time.Duration(n/3) * time.Minute), Feed: []string{"a", "b"}[n%2], ID: fmt.Sprint(n)}
		if has(n) && (q.Feed == "" || c.Feed == q.Feed) && (q.Until.IsZero() || c.Time().Before(q.Until)) {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b mirror.Record) int {
		if q.Reverse {
			a, b = b, a
		}
		return cmp.Or(b.Time().Compare(a.Time()), cmp.Compare(b.Feed, a.Feed), cmp.Compare(b.ID, a.ID))
	})
	for _, c := range all {
		if q.Limit == 0 || len(found) < q.Limit {
			found = append(found, c.ID)
		}
	}
	return found
}

func ids(t *testing.T, s *sqlstore.Store, q mirror.Query) (found []string) {
	for _, r := range feedtest.All(t, s.Entries(t.Context(), q)) {
		found = append(found, r.ID)
	}
	return found
}

// A search reaches its end, whatever happens meanwhile to the entries that it
// finds.
func TestSearchGoesOn(t *testing.T) {
	feedtest.Long(t)
	const entries = 1200
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		s := create(t).open(t)
		s.SetReach(10, 64, 1024, 1<<20, 256)
		c := &mirror.Commit{Feed: &mirror.Feed{URL: "a"}}
		for n := range entries {
			r := &mirror.Record{ID: fmt.Sprintf("%04d", n), State: mirror.Live, FirstCommit: 1, LastCommit: 1, Added: minute(n)}
			r.Copy.Digest, r.Content.Format, r.Content.Title = "x", "atom", "common"
			c.Put = append(c.Put, r)
		}
		require.NoError(t, s.Commit(t.Context(), c))
		flipped := *c.Put[entries/2]
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() {
			for ctx.Err() == nil {
				flipped.State = map[mirror.State]mirror.State{mirror.Live: mirror.Deleted, mirror.Deleted: mirror.Live}[flipped.State]
				if err := s.Commit(t.Context(), &mirror.Commit{Feed: c.Feed, Touch: []*mirror.Record{&flipped}}); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		for range feedtest.Count(40) {
			found := ids(t, s, mirror.Query{Search: "common"})
			require.GreaterOrEqual(t, len(found), entries-1)
			require.Equal(t, "0000", found[len(found)-1])
		}
		cancel()
		require.NoError(t, <-done)
	})
}

// A reader looks into the latest entries that wait to be indexed, and says how many it has not
// looked into, after the results.
func TestUnindexed(t *testing.T) {
	const entries, looked = 5000, 4096
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		d := create(t)
		s := d.open(t)
		c := &mirror.Commit{Feed: &mirror.Feed{URL: "a"}}
		for n := range entries {
			r := &mirror.Record{ID: fmt.Sprintf("%04d", n), State: mirror.Live, FirstCommit: 1, LastCommit: 1, Added: minute(n)}
			r.Copy.Digest, r.Content.Format, r.Content.Title = "x", "atom", "common"
			c.Put = append(c.Put, r)
		}
		require.NoError(t, s.Commit(t.Context(), c))
		reader, err := sqlstore.OpenReader(t.Context(), d.connect(t), d.dialect)
		require.NoError(t, err)
		read := func(q mirror.Query) (found int, unread *sqlstore.UnindexedError) {
			for _, err := range reader.Entries(t.Context(), q) {
				if err != nil {
					require.ErrorAs(t, err, &unread)
					break
				}
				found++
			}
			return found, unread
		}
		for limit, want := range map[int]int{0: looked, 10: 10} {
			found, unread := read(mirror.Query{Search: "common", Limit: limit})
			require.Equal(t, want, found)
			require.Equal(t, &sqlstore.UnindexedError{Entries: entries - looked}, unread)
		}
		_, err = reader.Months(t.Context(), mirror.Query{Feed: "a", Search: "common"})
		require.ErrorAs(t, err, new(*sqlstore.UnindexedError))
		require.NoError(t, s.Index(t.Context()))
		found, unread := read(mirror.Query{Search: "common"})
		require.Equal(t, entries, found)
		require.Nil(t, unread)
		months, err := reader.Months(t.Context(), mirror.Query{Feed: "a", Search: "common"})
		require.NoError(t, err)
		require.Equal(t, map[time.Time]int64{time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC): entries}, months)
	})
}
