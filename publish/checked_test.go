package publish

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/check"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// At each step of a feed's life, in both formats, check finds nothing but notes
// in the whole chain as it is published and served.
func TestPublishedIsClean(t *testing.T) {
	for _, format := range []feedhistory.Format{feedhistory.Atom, feedhistory.RSS} {
		t.Run(format.String(), func(t *testing.T) {
			out := newMemory()
			server := feedtest.Server(t, http.StripPrefix("/feeds", &Handler{FS: out}))
			client := &feedhistory.Client{Policy: feedhistory.Policy{AllowPrivate: true}}
			defer client.CloseIdle()
			p := newPublisher(out)
			p.Format, p.Base, p.Recent = format, server.URL+"/feeds/", 0

			var log []*feedhistory.Entry
			for i := range 25 {
				at := day.Add(time.Duration(i) * time.Hour)
				log = append(log, entry(t, fmt.Sprintf("urn:e%d", i), at, fmt.Sprintf("text %d", i)))
			}
			last, later := log[19].Updated, log[20:]
			for i, e := range later {
				later[i] = entry(t, e.ID, last.Add(time.Duration(3+i)*time.Hour), "later")
			}
			for n, step := range []func() error{
				func() error { return p.Append(t.Context(), log[0]) },
				func() error { return p.Append(t.Context(), log[1:4]...) },
				func() error { return p.Append(t.Context(), log[4:20]...) },
				func() error { return p.Correct(t.Context(), entry(t, log[2].ID, last.Add(time.Hour), "corrected")) },
				func() error { return p.Delete(t.Context(), log[5].ID, last.Add(2*time.Hour)) },
				func() error {
					p.Split = feedhistory.Split{Period: feedhistory.Day}
					return p.Append(t.Context(), later...)
				},
				func() error { return p.Erase(t.Context(), log[7].ID) },
			} {
				require.NoError(t, step(), "step %d", n)
				var chain check.Chain
				for _, finding := range feedtest.All(t, chain.Walk(t.Context(), client, p.URL())) {
					require.Equal(t, check.Note, finding.Level, "step %d: %v", n, finding)
				}
				require.NotZero(t, chain.Documents())
			}
		})
	}
}
