package publish

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
)

// shownIDs returns the ids in the subscription document, newest first.
func shownIDs(t require.TestingT, p *Publisher) (ids []string) {
	doc, err := publishedDocument(p)
	require.NoError(t, err)
	for _, e := range doc.Entries {
		ids = append(ids, e.ID)
	}
	return ids
}

func publishedDocument(p *Publisher) (*feedhistory.Document, error) {
	f, err := p.Output.Open(p.name())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return feedhistory.Parse(f, p.URL())
}

// A reader that follows no archives, and reads at least after every tenth call or
// every third day, misses nothing, whatever bursts come and whoever publishes
// them. Nor does it find fewer entries than the source shows.
func TestRecent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		out := newMemory()
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		size := rapid.SampledFrom([]int{1, 3, 20, 100}).Draw(t, "archive")
		recent, source := rapid.SampledFrom([]int{0, 5, 50}).Draw(t, "recent"), rapid.SampledFrom([]int{0, 30}).Draw(t, "source")
		format := rapid.SampledFrom([]feedhistory.Format{feedhistory.Atom, feedhistory.RSS}).Draw(t, "format")
		n, had, asleep, slept := 0, 0, 0, now
		for call := range rapid.IntRange(1, 16).Draw(t, "calls") {
			p := newPublisher(out)
			p.Recent, p.Split.Size, p.Format = recent, size, format
			now = now.Add(time.Duration(rapid.SampledFrom([]int{1, 600, 20_000, 100_000}).Draw(t, "seconds")) * time.Second)
			burst := rapid.SampledFrom([]int{0, 1, 3, 25, 60}).Draw(t, "burst")
			var all []*feedhistory.Entry
			for range burst {
				n++
				all = append(all, entry(t, fmt.Sprint("e", n), day.Add(time.Duration(n)*time.Hour), "x"))
			}
			_, err := p.Publish(t.Context(), Batch{Entries: all, Now: now, Shown: source})
			require.NoError(t, err)
			if n == 0 {
				continue
			}
			ids := shownIDs(t, p)
			require.GreaterOrEqual(t, len(ids), min(n, max(feedtime.LeastShown, recent, source)))
			if asleep++; had == 0 || asleep >= feedtime.RecentUpdates && now.Sub(slept) >= feedtime.RecentTime-2*time.Hour || rapid.Bool().Draw(t, "awake") {
				if had > 0 {
					for i := had + 1; i <= n; i++ {
						require.True(t, slices.Contains(ids, fmt.Sprint("e", i)), "call %d: e%d of e%d … e%d", call, i, had+1, n)
					}
				}
				had, asleep, slept = n, 0, now
			}
		}
	})
}

// What comes again in another order, after edits and deletions, is shown once.
func TestRecentEdited(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	p.Recent = 5
	for _, e := range entries(t, 1, 20) {
		require.NoError(t, p.Append(t.Context(), e))
		require.Equal(t, e.ID, shownIDs(t, p)[0])
	}
	require.NoError(t, p.Append(t.Context(), entry(t, "e18", day.Add(100*time.Hour), "changed")))
	require.NoError(t, p.Delete(t.Context(), "e17", day.Add(100*time.Hour)))
	require.Len(t, fetch(t, out, p.URL()).Entries, 19)
	require.Equal(t, []string{"e18", "e20", "e19", "e16"}, shownIDs(t, p)[:4])
	require.Len(t, shownIDs(t, p), 19)
}

// A first call, a backlog and what is old do not make the document large, nor do
// large entries; and a call without entries changes nothing.
func TestRecentBounded(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	p.Recent = 0
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 90)...))
	require.Len(t, shownIDs(t, p), 20)
	p.Backlog = true
	require.NoError(t, p.Append(t.Context(), entries(t, 91, 90)...))
	require.Len(t, shownIDs(t, p), 20)
	p.Backlog = false
	for i := range 12 {
		_, err := p.Publish(t.Context(), Batch{Entries: entries(t, 181+3*i, 3), Now: day.Add(time.Duration(i) * 1000 * time.Hour)})
		require.NoError(t, err)
	}
	require.Len(t, shownIDs(t, p), 20+30)
	before := out.clone()
	_, err := p.Publish(t.Context(), Batch{Entries: entries(t, 181, 9), Now: day.Add(1e6 * time.Hour)})
	require.NoError(t, err)
	require.Equal(t, before.files, out.files)

	var large []*feedhistory.Entry
	for i := range 90 {
		large = append(large, entry(t, fmt.Sprint("large", i), day.Add(time.Duration(1000+i)*time.Hour), strings.Repeat("long ", 10_000)))
	}
	require.NoError(t, p.Append(t.Context(), large...))
	doc, err := publishedDocument(p)
	require.NoError(t, err)
	require.Less(t, len(doc.Entries), 50)
	require.GreaterOrEqual(t, len(doc.Entries), 20)

	p.Recent = -1
	require.NoError(t, p.Append(t.Context(), entry(t, "last", day.Add(9000*time.Hour), "x")))
	require.Equal(t, []string{"last"}, shownIDs(t, p))
}

// The history of another feed is shown as far as that feed's own document shows
// it.
func TestRecentOfHistory(t *testing.T) {
	theirs := newPublisher(newMemory())
	theirs.Recent, theirs.Split.Size = 33, 1
	require.NoError(t, theirs.Append(t.Context(), entries(t, 1, 90)...))
	h := fetch(t, theirs.Output, theirs.URL())
	require.Equal(t, 33, ShownIn(h))
	p := newPublisher(newMemory())
	p.Recent = 0
	require.NoError(t, p.AppendHistory(t.Context(), h))
	require.Len(t, shownIDs(t, p), 33)
}
