package sqlstore_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// eachDatabase runs a benchmark with a store in each kind of database.
func eachDatabase(b *testing.B, run func(b *testing.B, s *sqlstore.Store)) {
	b.Run("sqlite", func(b *testing.B) { run(b, newSQLite(b).open(b)) })
	b.Run("postgresql", func(b *testing.B) { run(b, newPostgreSQL(b).open(b)) })
}

// A writer commits documents of entries, with random words that are as frequent
// as in a language.
type writer struct {
	random     *rand.Rand
	vocabulary []string
	often      *rand.Zipf
	next       int // the next entry
}

func newWriter() *writer {
	w := &writer{random: rand.New(rand.NewPCG(1, 2))}
	for range 50_000 {
		word := make([]byte, 2+w.random.IntN(9))
		for i := range word {
			word[i] = 'a' + byte(w.random.IntN(26))
		}
		w.vocabulary = append(w.vocabulary, string(word))
	}
	w.often = rand.NewZipf(w.random, 1.1, 5, 49_999)
	return w
}

// change returns a change with new entries of a kilobyte each, half an hour
// apart, newest first.
func (w *writer) change(f *mirror.Feed, entries int) *mirror.Commit {
	c := &mirror.Commit{Feed: f, Keep: 10}
	url := fmt.Sprintf("%s/%d", f.URL, f.Commits)
	c.Documents = []*mirror.DocumentRecord{{URL: url, Names: []string{url}, Rank: mirror.Rank{Seq: -f.Commits}, Entries: entries}}
	for range entries {
		w.next++
		var text strings.Builder
		for text.Len() < 650 {
			text.WriteString(w.vocabulary[w.often.Uint64()])
			text.WriteByte(' ')
		}
		id := fmt.Sprintf("https://example.org/posts/%d", w.next)
		updated := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Duration(w.next) * 30 * time.Minute)
		title := fmt.Sprintf("Post %d about %s", w.next, w.vocabulary[w.next%len(w.vocabulary)])
		c.Put = append(c.Put, &mirror.Record{
			ID: id, State: mirror.Live, Archived: true, FirstCommit: f.Commits + 1, LastCommit: f.Commits + 1,
			Added: updated, Changed: updated,
			Copy: mirror.Copy{At: updated, Rank: c.Documents[0].Rank, Digest: fmt.Sprintf("%032x", w.next)},
			Content: mirror.Content{
				Format: feedhistory.FormatAtom, Title: title, Link: id, Updated: updated,
				Data: `<entry xmlns="http://www.w3.org/2005/Atom"><title>` + title + `</title><id>` + id + `</id><link href="` + id +
					`"/><updated>` + updated.Format(time.RFC3339) + `</updated><content type="html">&lt;p&gt;` + text.String() + `&lt;/p&gt;</content></entry>`,
			},
		})
	}
	return c
}

// fill commits entries, 50 at a time.
func (w *writer) fill(b *testing.B, s *sqlstore.Store, url string, entries int) *mirror.Feed {
	b.Helper()
	f := &mirror.Feed{URL: url}
	for n := 0; n < entries; n += 50 {
		require.NoError(b, s.Commit(b.Context(), w.change(f, min(50, entries-n))))
	}
	return f
}

// BenchmarkCommit does what a first mirror does to the store: for each document
// of 50 new entries, one query for the known ones, and one commit.
func BenchmarkCommit(b *testing.B) {
	eachDatabase(b, func(b *testing.B, s *sqlstore.Store) {
		w := newWriter()
		f := &mirror.Feed{URL: "https://example.org/feed"}
		entries := 0
		for b.Loop() {
			b.StopTimer()
			c := w.change(f, 50)
			ids := make([]string, len(c.Put))
			for i, r := range c.Put {
				ids[i] = r.ID
			}
			b.StartTimer()
			_, err := s.Records(b.Context(), f.URL, ids)
			require.NoError(b, err)
			require.NoError(b, s.Commit(b.Context(), c))
			entries += 50
		}
		b.ReportMetric(float64(entries)/b.Elapsed().Seconds(), "entries/s")
	})
}

// BenchmarkIndex indexes for full-text search.
func BenchmarkIndex(b *testing.B) {
	eachDatabase(b, func(b *testing.B, s *sqlstore.Store) {
		w := newWriter()
		entries, size := 0, feedtest.Scaled(10_000, 500)
		for b.Loop() {
			b.StopTimer()
			w.fill(b, s, fmt.Sprint("feed", entries), size)
			entries += size
			b.StartTimer()
			require.NoError(b, s.Index(b.Context()))
		}
		b.ReportMetric(float64(entries)/b.Elapsed().Seconds(), "entries/s")
	})
}

// BenchmarkLarge queries a store that has one feed with 100,000 entries.
func BenchmarkLarge(b *testing.B) {
	eachDatabase(b, func(b *testing.B, s *sqlstore.Store) {
		w := newWriter()
		const url = "https://example.org/feed"
		w.fill(b, s, url, feedtest.Scaled(100_000, 4000))
		require.NoError(b, s.Index(b.Context()))
		ask := func(name string, q mirror.Query) {
			b.Run(name, func(b *testing.B) {
				n := 0
				for b.Loop() {
					n = 0
					for _, err := range s.Entries(b.Context(), q) {
						require.NoError(b, err)
						n++
					}
				}
				b.ReportMetric(float64(n), "entries")
			})
		}
		ask("search/rare", mirror.Query{Search: "99999", Limit: 20})
		ask("search/some", mirror.Query{Search: w.vocabulary[3000], Limit: 20})
		ask("search/common", mirror.Query{Search: w.vocabulary[0], Limit: 20})
		ask("search/two", mirror.Query{Search: w.vocabulary[0] + " " + w.vocabulary[300], Limit: 20})
		ask("search/none", mirror.Query{Search: "nothinglikeit", Limit: 20})
		ask("newest", mirror.Query{Limit: 20})
		ask("newest/feed", mirror.Query{Feed: url, Limit: 20})
		ask("all", mirror.Query{Feed: url})
		b.Run("months", func(b *testing.B) {
			for b.Loop() {
				months, err := s.Months(b.Context(), mirror.Query{Feed: url})
				require.NoError(b, err)
				require.NotEmpty(b, months)
			}
		})
	})
}

// BenchmarkFeeds queries a store of 10,000 feeds, of which 100 are due.
func BenchmarkFeeds(b *testing.B) {
	eachDatabase(b, func(b *testing.B, s *sqlstore.Store) {
		w := newWriter()
		now := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
		var last *mirror.Feed
		feeds := feedtest.Scaled(10_000, 500)
		for n := range feeds {
			last = &mirror.Feed{
				URL: fmt.Sprintf("https://example.org/feeds/%d", n*7919%feeds), Title: "A feed", Kind: feedhistory.KindArchived,
				Entries: 10, Polled: now, Next: now.Add(time.Duration(n-99) * time.Minute),
				Head: strings.Repeat("x", 500),
			}
			require.NoError(b, json.Unmarshal([]byte(`{"known":{"URL":"https://example.org/feed","ETag":"\"abc\"","Digest":"`+strings.Repeat("0", 32)+`"}}`), &last.Ledger))
			require.NoError(b, s.Commit(b.Context(), w.change(last, 2)))
		}
		for name, q := range map[string]mirror.FeedQuery{"list": {}, "due": {Due: now}, "page": {After: "https://example.org/feeds/5", Limit: 100}} {
			b.Run(name, func(b *testing.B) {
				n := 0
				for b.Loop() {
					n = 0
					for _, err := range s.Feeds(b.Context(), q) {
						require.NoError(b, err)
						n++
					}
				}
				b.ReportMetric(float64(n), "feeds")
			})
		}
		b.Run("add", func(b *testing.B) {
			for b.Loop() {
				require.NoError(b, s.Commit(b.Context(), w.change(last, 1)))
			}
		})
	})
}

var searched = flag.Int("searched", 100_000, "how many entries BenchmarkSearch searches")

// BenchmarkSearch searches entries of ten feeds, as somebody types: the last word may be the
// beginning of one.
func BenchmarkSearch(b *testing.B) {
	eachDatabase(b, func(b *testing.B, s *sqlstore.Store) {
		total := feedtest.Scaled(*searched, 2000)
		rare := rand.New(rand.NewPCG(5, 5))
		for feed := range 10 {
			w := newWriter()
			w.random = rand.New(rand.NewPCG(uint64(feed), 7))
			w.often = rand.NewZipf(w.random, 1.1, 5, 49_999)
			f := &mirror.Feed{URL: fmt.Sprint("https://example.org/", feed)}
			for n := 0; n < total/10; n += 500 {
				c := w.change(f, min(500, total/10-n))
				for _, r := range c.Put {
					for word, each := range map[string]int{"halfall": 2, "uncommon": 200, "rareword": total / 10} {
						if rare.IntN(each) == 0 {
							r.Content.Title += " " + word
						}
					}
				}
				require.NoError(b, s.Commit(b.Context(), c))
			}
		}
		require.NoError(b, s.Index(b.Context()))
		for _, search := range []string{"nothinglikeit", "rareword", "nothinglikeit hal", "rareword hal", "uncommon", "halfall"} {
			for _, feed := range []string{"", "https://example.org/3"} {
				b.Run(strings.ReplaceAll(search, " ", "-")+map[bool]string{true: "/feed"}[feed != ""], func(b *testing.B) {
					for b.Loop() {
						for _, err := range s.Entries(b.Context(), mirror.Query{Feed: feed, Search: search, Prefix: true, Limit: 51}) {
							require.NoError(b, err)
						}
					}
				})
			}
		}
	})
}
