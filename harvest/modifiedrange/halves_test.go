package modifiedrange

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
)

// A cutter is a server that names the range it was asked for, although it leaves out all but
// a number of items: those its order puts first.
type cutter struct {
	*store
	limit int
	order func(a, b version) int
	names func(asked Range, items []version) Range
}

// ServeHTTP implements http.Handler.
func (c *cutter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	within, _ := asked(r)
	found := c.within(within)
	slices.SortFunc(found, func(a, b version) int { return cmp.Or(c.order(a, b), strings.Compare(a.id, b.id)) })
	found = found[:min(len(found), c.limit)]
	var items []Item
	for _, v := range found {
		items = append(items, v.item())
	}
	w.Header().Set("Date", c.now.UTC().Format(http.TimeFormat))
	named, status := within, http.StatusOK
	if c.names != nil && len(found) > 0 {
		named, status = c.names(within, found), http.StatusPartialContent
	}
	w.Header().Set(fieldModifiedRange, named.String())
	w.WriteHeader(status)
	_ = feedhistory.WriteAtom(w, new(Handler).document(items))
}

// A server that names ranges it has cut is noticed, and asked in smaller pieces: all items
// come, or a loss is reported; never is one missing in silence.
//
// Duties: modified-range#3, modified-range#4, modified-range#12.
func TestCutters(t *testing.T) {
	latest := func(a, b version) int { return b.at.Compare(a.at) }
	orders := map[string]func(a, b version) int{
		"latest": latest, "oldest": func(a, b version) int { return a.at.Compare(b.at) },
		"any": func(a, b version) int { return strings.Compare(scrambled(a.id), scrambled(b.id)) },
	}
	for name, order := range orders {
		for seed := range uint64(30) {
			random := rand.New(rand.NewPCG(seed, 0))
			var sizes []int
			for range 1 + random.IntN(25) {
				sizes = append(sizes, 1+random.IntN(1+int(seed%3)*2))
			}
			c := &cutter{store: groups(sizes...), limit: 2 + random.IntN(8), order: order}
			testCutter(t, fmt.Sprint(name, seed), c, sizes)
			// The range ends at the oldest item, of which there may be more. A group that fills an
			// answer looks the same from an honest server.
			if name == "latest" && slices.Max(sizes) < c.limit {
				c.names = func(asked Range, items []version) Range {
					if len(items) < c.limit {
						return asked
					}
					return Range{items[len(items)-1].at, asked.End}
				}
				testCutter(t, fmt.Sprint(name, seed, " named"), c, sizes)
			}
		}
	}
}

func scrambled(id string) string { return id[len(id)-1:] + id }

func testCutter(t *testing.T, name string, c *cutter, sizes []int) {
	w := &wire{handler: c}
	client := w.client()
	client.Dialect = ModifiedRange
	sync := client.Harvest(t.Context(), Mark{})
	h, err := feedhistory.Merge(sync.Documents())
	require.NoError(t, err, name)
	require.Less(t, sync.Requests(), 20+20*len(c.items), name)
	_, whole := sync.Mark()
	if missing := len(c.items) - len(h.Entries); missing > 0 || slices.Max(sizes) > c.limit {
		require.NotEmpty(t, h.Gaps, "%s: %d of %d items are missing, limit %d, sizes %v\n%s", name, missing, len(c.items), c.limit, sizes, w.log.String())
		require.False(t, whole, name)
		require.Greater(t, slices.Max(sizes), c.limit-1, "%s: only a group that cannot be divided may lack items", name)
	}
	require.Equal(t, whole, len(h.Gaps) == 0, name)
}

// An honest server is asked twice more if everything comes in one answer, and no more if the
// last answer is smaller than others.
func TestHonest(t *testing.T) {
	for size, want := range map[int]int{1: 1, 2: 3, 50: 3, 99: 3, 101: 2, 250: 3} {
		s := groupsApart(time.Minute, slices.Repeat([]int{1}, size)...)
		w := &wire{handler: s.handler(100)}
		sync := w.client().Harvest(t.Context(), Mark{})
		h, err := feedhistory.Merge(sync.Documents())
		require.NoError(t, err)
		require.Len(t, h.Entries, size)
		require.Empty(t, h.Gaps)
		require.Equal(t, want, sync.Requests(), size)
	}
}
