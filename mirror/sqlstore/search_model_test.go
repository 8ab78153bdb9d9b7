package sqlstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// Whichever method a search uses, it finds the same entries as mirror.NewMemory, which
// compares the words of all entries: in the same order, also for a reader, and
// with some entries that are not indexed yet.
func TestSearchModel(t *testing.T) {
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		d := create(t)
		s := d.open(t)
		reader, err := sqlstore.OpenReader(t.Context(), d.connect(t), d.dialect)
		require.NoError(t, err)
		rapid.Check(t, func(t *rapid.T) {
			memory := mirror.NewMemory()
			for _, f := range feedtest.All(t, s.Feeds(t.Context(), mirror.FeedQuery{})) {
				require.NoError(t, s.Remove(t.Context(), f.URL))
			}
			for n := range rapid.IntRange(1, 3).Draw(t, "changes") {
				for _, url := range []string{"a", "b"} {
					commitBoth(t, s, memory, url)
				}
				if n == 0 && rapid.Bool().Draw(t, "index") {
					require.NoError(t, s.Index(t.Context()))
				}
			}
			for range 10 {
				q := drawSearch.Draw(t, "query")
				want := feedtest.All(t, memory.Entries(t.Context(), q))
				for _, store := range []*sqlstore.Store{reader, s} {
					store.SetReach(rapid.IntRange(0, 20).Draw(t, "few"), rapid.SampledFrom([]int{1, 2, 8, 64}).Draw(t, "first"),
						rapid.IntRange(0, 20).Draw(t, "last"), rapid.SampledFrom([]int{0, 100, 500, 1 << 20}).Draw(t, "bytes"),
						rapid.IntRange(0, 3).Draw(t, "steps"))
					require.Equal(t, places(want), places(feedtest.All(t, store.Entries(t.Context(), q))), "%+v", q)
				}
			}
		})
	})
}

// commitBoth commits entries with few words, some of which are in nearly all
// entries.
func commitBoth(t *rapid.T, s, memory mirror.Store, url string) {
	f, err := s.Feed(t.Context(), url)
	if err != nil {
		require.ErrorIs(t, err, mirror.ErrNotFound)
		f = &mirror.Feed{URL: url}
	}
	c := &mirror.Commit{Feed: f}
	for _, id := range rapid.SliceOfNDistinct(rapid.IntRange(0, 30), 1, 30, rapid.ID).Draw(t, "ids") {
		title := ""
		for _, w := range rapid.SliceOfN(rapid.SampledFrom([]string{"all", "all", "all", "also", "some", "rare"}), 0, 3).Draw(t, "words") {
			title += " " + w
		}
		c.Put = append(c.Put, &mirror.Record{
			ID: fmt.Sprint(id), State: rapid.SampledFrom([]mirror.State{mirror.Live, mirror.Live, mirror.Live, mirror.Deleted}).Draw(t, "state"),
			FirstCommit: 1, LastCommit: f.Commits + 1, Added: minute(rapid.IntRange(1, 10).Draw(t, "time")), Copy: mirror.Copy{Digest: fmt.Sprint(f.Commits)},
			Content: mirror.Content{
				Format: feedhistory.FormatAtom, Title: title,
				Data: `<entry xmlns="http://www.w3.org/2005/Atom"><content>` + rapid.SampledFrom([]string{"", "also", "all"}).Draw(t, "content") + `</content></entry>`,
			},
		})
	}
	before := *f
	require.NoError(t, s.Commit(t.Context(), c))
	c.Feed = &before
	require.NoError(t, memory.Commit(t.Context(), c))
}

func minute(n int) time.Time { return time.Date(2024, 1, 1, 0, n, 0, 0, time.UTC) }

var drawSearch = rapid.Custom(func(t *rapid.T) mirror.Query {
	q := mirror.Query{
		Search: rapid.SampledFrom([]string{
			"all", "also", "some", "rare", "all some", "some also", "none", "rare OR also", "all -some", "all -some OR rare also", `"all some"`,
			`"all all" -rare`, `all -"also some"`, "al", "alls", "rares", "raring OR none", `"rares"`, `all OR "some also`,
		}).Draw(t, "search"),
		Feed:  rapid.SampledFrom([]string{"", "", "a"}).Draw(t, "feed"),
		Limit: rapid.IntRange(0, 20).Draw(t, "limit"), Skip: rapid.SampledFrom([]int{0, 0, 1, 5}).Draw(t, "skip"), Reverse: rapid.Bool().Draw(t, "reverse"),
		States: mirror.States(rapid.IntRange(0, int(mirror.AllStates)).Draw(t, "states")),
	}
	if rapid.Bool().Draw(t, "prefix") {
		q.Prefix, q.Search = true, rapid.SampledFrom([]string{"a", "al", "all s", "so", "r", "x", `"all s`, `"also`, "rare OR s", "all -s", `x OR "some al`}).Draw(t, "beginning")
	}
	if rapid.Bool().Draw(t, "bounded") {
		q.Since, q.Until = minute(rapid.IntRange(0, 4).Draw(t, "since")), minute(rapid.IntRange(5, 11).Draw(t, "until"))
	}
	if rapid.Bool().Draw(t, "from a place") {
		q.Beyond = &mirror.Record{Added: minute(rapid.IntRange(1, 10).Draw(t, "beyond")), Feed: "a", ID: "15"}
	}
	if version := rapid.Int64Range(-1, 6).Draw(t, "changes"); q.Feed != "" && version >= 0 {
		q.AfterCommit, q.Beyond = &version, nil
	}
	return q
})

func places(records []*mirror.Record) (list []string) {
	for _, r := range records {
		list = append(list, fmt.Sprint(r.Time(), r.Feed, r.ID, r.LastCommit, r.Content.Title))
	}
	return list
}
