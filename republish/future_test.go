package republish

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
)

// A new chain is not made because an entry that is dated in the future leaves
// the subscription document: over many rounds, archives stay what they were,
// and each entry is in one of them.
func TestRepublishedFuture(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"for ever": 50 * 365 * 24 * time.Hour, "for an hour": time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(s *Handler) { s.Size = 10 })
			start := time.Now().UTC().Truncate(time.Second)
			count := 0
			publish := func(at time.Time) {
				count++
				e, err := feedhistory.Draft{
					ID: fmt.Sprintf("tag:lighthouse.example,2026:%d", count), Updated: at,
					Title: feedhistory.Text{Body: fmt.Sprint("Entry ", count)},
					Links: feedhistory.Links{{Rel: "alternate", Href: fmt.Sprint("https://lighthouse.example/", count)}},
				}.Entry()
				require.NoError(t, err)
				require.NoError(t, w.blog.Append(t.Context(), e))
			}
			for i := range 30 {
				publish(start.Add(time.Duration(i-1000) * time.Minute))
			}
			page := w.add("/blog/feed.atom")
			feed := w.feedURL("/blog/feed.atom")
			w.fetched(page + "/index.atom")
			publish(start.Add(ahead))
			for round := range 8 {
				w.poll(feed)
				_, h := w.fetched(page + "/index.atom")
				require.Len(t, h.Entries, count, "round %d", round)
				before := archivesIn(t, w.Handler, feed)
				for i := range 9 {
					publish(start.Add(time.Duration(9*round+i-900) * time.Minute))
				}
				w.poll(feed)
				_, h = w.fetched(page + "/index.atom")
				require.Len(t, h.Entries, count, "round %d", round)
				after := archivesIn(t, w.Handler, feed)
				most := len(before) + 1
				require.LessOrEqual(t, len(after), most, "round %d: a new chain was made", round)
			}
			w.requireSame(page, feed)
		})
	}
}
