package mirror_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

var clocks = flag.Int("clocks", feedtest.Count(100), "the number of schedules TestWrongClocks draws")

// The clock of the machine is wrong by a second up to a year, and is set again before each
// poll. Nothing is lost: once it is right, polls when they are due make the mirror equal to
// the feed, and no wait lasts for a year.
func TestWrongClocks(t *testing.T) {
	errors := []time.Duration{0, time.Second, 30 * time.Minute, 36 * time.Hour, 400 * 24 * time.Hour}
	for seed := range feedtest.Seeds(*clocks) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			s := &schedule{t, newRoads(feedtest.NewModel("/feed", seed), random), random, mirror.NewMemory(), []string{fmt.Sprint("seed ", seed)}}
			model := s.roads.model
			for range 5 + random.IntN(30) {
				s.story = append(s.story, model.Step())
				model.Fail([]float64{0, 0, 0.3}[random.IntN(3)])
				time.Sleep([]time.Duration{time.Minute, time.Hour, 26 * time.Hour}[random.IntN(3)])
				wrong := errors[random.IntN(len(errors))] * time.Duration(1-2*random.IntN(2))
				m := newMirror(s.slowly(), s.roads)
				m.Now = func() time.Time { return time.Now().Add(wrong) }
				_, err := m.Update(t.Context(), modelURL)
				s.story = append(s.story, fmt.Sprintf("polled with a clock wrong by %v: %v", wrong, err))
			}
			model.Fail(0)
			s.roads.settle()
			model.Close()
			model.Become([]string{"archived", "complete"}[random.IntN(2)])
			for range 8 {
				time.Sleep(time.Minute)
				if f := feedOf(t, s.store, modelURL); !f.Gone && !f.Due(time.Now()) {
					require.Less(t, time.Until(f.Next), 25*time.Hour, s)
					time.Sleep(max(0, time.Until(f.Next)))
				}
				if changes, err := newMirror(s.slowly(), s.roads).Update(t.Context(), modelURL); err == nil && changes.Feed.Verdict == feedhistory.Whole {
					break
				}
			}
			require.Equal(t, model.Published(), held(t, s.store, modelURL), s)
			testUsage(t, s.store, modelURL, s.String())
			testCounts(t, s.store, s.String())
		})
	}
}
