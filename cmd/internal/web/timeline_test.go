package web

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// Whatever dates a feed has, everything is drawn in its place.
func TestTimeline(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		when := rapid.Custom(func(t *rapid.T) time.Time {
			if rapid.IntRange(0, 9).Draw(t, "none") == 0 {
				return time.Time{}
			}
			return time.Date(rapid.OneOf(rapid.IntRange(1995, 2026), rapid.IntRange(1, 9999)).Draw(t, "year"), 1, 1+rapid.IntRange(0, 364).Draw(t, "day"), 0, 0, 0, 0, time.UTC)
		})
		feed := &mirror.Feed{
			URL: "https://example.org/", Polled: when.Draw(t, "polled"),
			Kind: rapid.SampledFrom([]feedhistory.Kind{feedhistory.KindUnknown, feedhistory.Plain, feedhistory.Complete, feedhistory.Paged, feedhistory.Archived}).Draw(t, "kind"),
		}
		var documents []*mirror.DocumentRecord
		for i := range rapid.OneOf(rapid.IntRange(0, 5), rapid.IntRange(150, 320)).Draw(t, "documents") {
			name := fmt.Sprintf("https://example.org/%d", i)
			documents = append(documents, &mirror.DocumentRecord{URL: name, Names: []string{name}, Oldest: when.Draw(t, "oldest"), Newest: when.Draw(t, "newest")})
		}
		for i := range rapid.IntRange(0, 5).Draw(t, "gaps") {
			feed.Ledger.Add(&feedhistory.Gap{
				URL: "https://example.org/gap", From: fmt.Sprintf("https://example.org/%d", i*i), Found: when.Draw(t, "found"),
				Reason: rapid.SampledFrom([]feedhistory.Reason{feedhistory.ReasonStatus, feedhistory.ReasonMalformed, feedhistory.ReasonLoop, feedhistory.ReasonMissedWindow}).Draw(t, "reason"),
			})
		}
		var months []month
		total := int64(0)
		at := rapid.IntRange(1, 9000).Draw(t, "first")
		for range rapid.IntRange(0, 50).Draw(t, "months") {
			m := month{Start: time.Date(at/12+rapid.SampledFrom([]int{1, 1960, 2000}).Draw(t, "era"), time.Month(at%12+1), 1, 0, 0, 0, 0, time.UTC), Entries: 3}
			if len(months) > 0 && !m.Start.After(months[len(months)-1].Start) {
				continue
			}
			months = append(months, m)
			at += rapid.IntRange(1, 30).Draw(t, "step")
			total += m.Entries
		}
		drawn := newTimeline(feed, months, reading{read: months, starred: months}, documents, gapsOf(feed), &entriesView{})

		for _, m := range drawn.Marks {
			require.GreaterOrEqual(t, m.Y, drawn.Top)
			require.Less(t, m.Y, drawn.Base)
		}
		require.Equal(t, total > 0, len(drawn.Marks) > 0)
		counted := int64(0)
		for _, y := range drawn.Years {
			counted += y.Entries
		}
		require.Equal(t, total, counted)
		require.LessOrEqual(t, len(drawn.Bars), mostBars+1)
		require.Equal(t, total > 0, len(drawn.Bars) > 0)
		last := 0.0
		for _, b := range drawn.Bars {
			require.GreaterOrEqual(t, b.X, last)
			require.Greater(t, b.Width, 0.0)
			require.LessOrEqual(t, b.X+b.Width, lineWidth)
			require.InDelta(t, drawn.Base, b.Y+b.Height, 0.1)
			require.GreaterOrEqual(t, b.Y, drawn.Top)
			last = b.X
		}
		gaps := 0
		for _, b := range drawn.Blocks {
			require.GreaterOrEqual(t, b.X, 0.0)
			require.Greater(t, b.Width, 0.0)
			require.LessOrEqual(t, b.X+b.Width, lineWidth+0.1)
			require.NotEmpty(t, b.Says)
			if b.Kind == "gap" {
				gaps++
			}
		}
		require.Equal(t, len(feed.Ledger.Debts()), gaps, "every gap is drawn")
		require.LessOrEqual(t, len(drawn.Blocks), 2*mostBlocks+2*len(feed.Ledger.Debts())+1)
	})
}
