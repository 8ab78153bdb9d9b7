//go:build unix

package check

import (
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
)

// Whatever a document repeats, and wherever, its check takes time in proportion. A quadratic
// one takes 64 times as long for eight times as much; the bound is far from both.
func TestCheckScales(t *testing.T) {
	feedtest.Long(t)
	for place, form := range feedtest.Places {
		for _, unit := range feedtest.Units {
			t.Run(place+" "+unit, func(t *testing.T) {
				cost := func(n int) time.Duration {
					text := feedtest.Repeated(form, unit, n)
					before := feedtest.ProcessorTime(t)
					doc, err := feedhistory.Parse(strings.NewReader(text), "https://example.org/feed")
					Document(doc, err, 0)
					return feedtest.ProcessorTime(t) - before
				}
				least := 1e9
				for try := 0; try < 5 && least > 24; try++ {
					least = min(least, float64(cost(8*500))/float64(max(cost(500), 500*time.Microsecond)))
				}
				require.LessOrEqual(t, least, 24.0, "times as much for eight times as many")
			})
		}
	}
}
