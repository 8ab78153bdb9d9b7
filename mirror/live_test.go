package mirror_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	walks "github.com/feedhistory/feedhistory/internal/chain"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// An aggregator stores each document as the walk yields it, stores the
// documents that it links to as pending in the same transaction, and answers
// Processed from the same store. It has everything in the end, however often it
// dies.
func TestProcessedLive(t *testing.T) {
	for seed := range feedtest.Seeds(*schedules / 5) {
		model, random := feedtest.NewModel("/feed", seed), rand.New(rand.NewPCG(seed, 2))
		ids, processed, pending := map[string]bool{}, map[string]bool{}, map[string]bool{}
		client := newMirror(nil, model).Client
		walk := func(left int) {
			past := &walks.Memory[feedhistory.Known, *feedhistory.Document]{
				Processed: func(url string) bool { return processed[url] },
				Pending:   slices.Sorted(maps.Keys(pending)),
			}
			for r, err := range client.Walk(door.WithPast(t.Context(), past), modelURL) {
				if left--; left == 0 {
					return
				}
				if err != nil || r.Document == nil {
					continue
				}
				doc := r.Document
				for _, e := range doc.Entries {
					ids[e.ID] = true
				}
				if link, ok := doc.Links.Rel("prev-archive"); ok && !processed[link.Href] {
					pending[link.Href] = true
				}
				delete(pending, doc.Response.Requested)
				processed[doc.Response.Requested] = doc.Response.Requested != modelURL
			}
		}
		for range 20 {
			for range 1 + random.IntN(4) {
				model.Step()
			}
			model.Become("archived")
			model.Fail([]float64{0, 0.3}[random.IntN(2)])
			walk(random.IntN(5)) // zero: to its end
		}
		model.Fail(0)
		walk(0)
		for id := range model.Published() {
			require.True(t, ids[id], "seed %d: %s", seed, id)
		}
	}
}
