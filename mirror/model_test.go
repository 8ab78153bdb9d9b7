package mirror_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const modelURL = "http://model.example/feed"

var schedules = flag.Int("schedules", 300, "how many schedules of the model are tried")

// newMirror returns a mirror that asks a handler directly.
func newMirror(store mirror.Store, h http.Handler) *mirror.Mirror {
	return &mirror.Mirror{Store: store, Client: &feedhistory.Client{
		HTTP:  &http.Client{Transport: feedtest.Direct{Handler: h}},
		Retry: feedhistory.Retry{Tries: 1},
	}}
}

// held returns what a store has of a feed: the text of each entry by its id.
func held(t testing.TB, store mirror.Store, url string) map[string]string {
	t.Helper()
	entries := map[string]string{}
	for r, err := range store.Entries(t.Context(), mirror.Query{Feed: url}) {
		require.NoError(t, err)
		e, err := r.Entry()
		require.NoError(t, err)
		entries[e.ID] = e.Title().Plain()
	}
	return entries
}

// After any schedule of a publisher that edits, deletes, archives, splits its
// log anew, changes the kind of its feed and fails, and of polls that are cut
// short, one clean poll makes the mirror what is published.
func TestModel(t *testing.T) {
	for seed := range uint64(*schedules) {
		synctest.Test(t, func(t *testing.T) { testSchedule(t, seed) })
	}
}

func testSchedule(t *testing.T, seed uint64) {
	model := feedtest.NewModel("/feed", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	store := &mirror.Memory{}
	var story []string
	for range 5 + random.IntN(60) {
		switch n := random.IntN(10); {
		case n < 6:
			story = append(story, model.Step())
		case n == 6:
			kind := []string{"archived", "archived", "complete", "paged", "plain"}[random.IntN(5)]
			model.Become(kind)
			story = append(story, "become "+kind)
		default:
			model.Fail([]float64{0, 0.1, 0.5}[random.IntN(3)])
			story = append(story, poll(t, store, model, random))
		}
	}
	time.Sleep(time.Minute)
	model.Fail(0)
	model.Become([]string{"archived", "complete"}[random.IntN(2)])
	changes, err := newMirror(store, model).Update(t.Context(), modelURL)
	require.NoError(t, err, "seed %d: %q", seed, story)
	require.Equal(t, model.Published(), held(t, store, modelURL), "seed %d: %q", seed, story)
	require.Equal(t, feedhistory.Whole, changes.Verdict, "seed %d: %q %v", seed, story, changes.Gaps)
	testCounts(t, store, fmt.Sprintf("seed %d: %q", seed, story))
}

// poll is a poll that may be cut short: by its budget, its context, or a crash
// after some commits.
func poll(t *testing.T, store mirror.Store, model *feedtest.Model, random *rand.Rand) string {
	time.Sleep(time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := newMirror(store, model)
	m.Revalidate = random.IntN(10) == 0
	how := "poll"
	switch random.IntN(4) {
	case 0:
		m.Client.Budget.Documents = 1 + random.IntN(5)
		how = "poll with a budget"
	case 1:
		m.Store = &crashing{Store: store, left: random.IntN(4)}
		how = "poll that crashes"
	case 2:
		m.Store = &crashing{Store: store, left: random.IntN(4), then: cancel}
		how = "poll that is interrupted"
	}
	changes, err := m.Update(ctx, modelURL)
	if changes != nil && err == nil {
		require.NotZero(t, changes.Next)
	}
	return how
}

// A crashing store stops after some commits: the process has died, or its
// context has ended.
type crashing struct {
	mirror.Store
	left int
	then func()
}

func (s *crashing) Commit(ctx context.Context, c *mirror.Change) error {
	if s.left--; s.left >= 0 {
		return s.Store.Commit(ctx, c)
	}
	if s.then == nil {
		return fmt.Errorf("the process is dead")
	}
	s.then()
	return s.Store.Commit(ctx, c)
}

// testCounts checks what a feed's state says of its entries and documents.
func testCounts(t *testing.T, store mirror.Store, story string) {
	feed, err := store.Feed(t.Context(), modelURL)
	require.NoError(t, err, story)
	var live, gone, documents int64
	for r, err := range store.Entries(t.Context(), mirror.Query{Feed: modelURL, Deleted: true}) {
		require.NoError(t, err)
		if r.State == mirror.Live {
			live++
		} else {
			gone++
		}
	}
	for _, err := range store.Documents(t.Context(), modelURL) {
		require.NoError(t, err)
		documents++
	}
	require.Equal(t, []int64{live, gone, documents}, []int64{feed.Entries, feed.Deleted, feed.Documents}, story)
}

// However small the budget of a poll is, polls come to an end, and then the
// mirror is what is published.
func TestSmallBudgets(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			model, store := feedtest.NewModel("/feed", seed), &mirror.Memory{}
			for _, budget := range []int{5, 2, 20} {
				for range 30 {
					model.Step()
				}
				more := true
				for polls := 0; more; polls++ {
					require.Less(t, polls, 200, "seed %d, budget %d", seed, budget)
					time.Sleep(time.Minute)
					m := newMirror(store, model)
					m.Client.Budget.Documents = budget
					changes, err := m.Update(t.Context(), modelURL)
					require.NoError(t, err)
					more = changes.More
				}
				require.Equal(t, model.Published(), held(t, store, modelURL), "seed %d, budget %d", seed, budget)
			}
		})
	}
}
