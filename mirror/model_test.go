package mirror_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/mirror"
)

func TestMain(m *testing.M) { feedtest.Main(m) }

const modelURL = "http://model.example/feed"

var schedules = flag.Int("schedules", feedtest.Count(1000), "the number of schedules to test the model with")

// newMirror returns a mirror whose requests go to a handler directly, in an order that
// tests can tell.
func newMirror(store mirror.Store, h http.Handler) *mirror.Mirror {
	return &mirror.Mirror{Store: store, Client: &feedhistory.Client{
		AllowPrivate: true, Transport: feedtest.Direct{Handler: h},
		NoGuess: true,
		Tries:   1,
	}}
}

// polled polls a feed, and requires that neither the store nor the feed fails.
func polled(t testing.TB, m *mirror.Mirror, url string) *mirror.Report {
	t.Helper()
	changes, err := m.Update(t.Context(), url)
	require.NoError(t, err)
	require.NoError(t, changes.Failure)
	return changes
}

// held returns what a store has of a feed: the text of each entry, by ID.
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

// A publisher edits, deletes, archives, splits its log again, changes the kind
// of its feed, moves it and fails; polls are cut short. After any such
// schedule, a few polls when they are due make the mirror equal to what is
// published, without polling a feed by name.
func TestModel(t *testing.T) {
	for seed := range feedtest.Seeds(*schedules) {
		synctest.Test(t, func(t *testing.T) { testSchedule(t, seed) })
	}
}

// A feed that has become complete is not read further where the poll before owed a look at
// an archive: the first schedules kept entries so that the publisher had deleted. In the
// next, a poll crashes after the host has asked to be left alone. In the next three, a document
// that nothing names any more is owed because of a known one with several names, of which
// one still led somewhere, or a known one was taken for another because a redirect led to it:
// the feed stayed partial. In the last, the subscription document at the end equals an
// earlier one, and may be an old copy.
func TestModelAgain(t *testing.T) {
	for _, seed := range []uint64{20259, 46740, 74151, 100650, 403820, 412338, 529350, 566382, 645953} {
		synctest.Test(t, func(t *testing.T) { testSchedule(t, seed) })
	}
}

// A schedule is the sequence of events in a test of the model.
type schedule struct {
	*testing.T
	roads  *roads
	random *rand.Rand
	store  mirror.Store
	story  []string
	own    *rows // a program's, in place of the store; nil if there is none
}

func (s *schedule) String() string { return fmt.Sprintf("%q", s.story) }

func testSchedule(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	s := &schedule{t, newRoads(feedtest.NewModel("/feed", seed), random), random, mirror.NewMemory(), []string{fmt.Sprint("seed ", seed)}, nil}
	model := s.roads.model
	for range 5 + random.IntN(60) {
		switch n := random.IntN(11); {
		case n < 6:
			s.story = append(s.story, model.Step())
		case n == 6:
			kind := []string{"archived", "archived", "complete", "paged", "plain"}[random.IntN(5)]
			model.Become(kind)
			s.story = append(s.story, "become "+kind)
		case n == 7 && seed%3 == 0:
			s.story = append(s.story, s.roads.move())
		default:
			model.Fail([]float64{0, 0.1, 0.5}[random.IntN(3)])
			s.poll()
		}
	}
	model.Fail(0)
	s.roads.settle()
	model.Close() // until then, what came and went may be in an archive to come
	model.Become([]string{"archived", "complete"}[random.IntN(2)])
	s.ends()
	testUsage(t, s.store, modelURL, s.String())
	testCounts(t, s.store, s.String())
}

// ends polls the feed as a sync without names does, until the mirror is whole.
// A feed that is gone is polled by name.
func (s *schedule) ends() {
	var changes *mirror.Report
	most := 0
	for polls := 0; ; polls++ {
		time.Sleep(time.Minute)
		f, err := s.feed()
		most = max(most, s.most(changes, f))
		if polls >= most && s.owesOnlyWindows(changes) {
			undecided.windows++
			return
		}
		require.Less(s, polls, most, "%v %v", s, changes)
		if err == nil && !f.Gone && !f.Due(time.Now()) {
			next := f.Next
			if f.Waits(time.Now()) { // a poll that crashed has left no other Next
				next = feedtime.Later(next, f.Wait)
			}
			require.Less(s, time.Until(next), 25*time.Hour, s)
			time.Sleep(max(0, time.Until(next)))
			require.True(s, f.Due(time.Now()), s)
		}
		if changes, err = s.update(s.Context(), newMirror(s.slowly(), s.roads), 1000); err != nil {
			continue
		}
		if v := changes.Feed.Verdict; v == feedhistory.VerdictWhole || v == feedhistory.VerdictLossy {
			break
		}
		require.NotEmpty(s, changes.Feed.Ledger.Gaps(), "%v %+v", s, changes)
	}
	s.hasAll(true)
	f, err := s.feed()
	require.NoError(s, err)
	require.False(s, f.Due(time.Now()) || f.Unfinished || f.More, s)
}

// owesOnlyWindows reports whether a feed in any weather is partial because of a missed window
// alone.
func (s *schedule) owesOnlyWindows(changes *mirror.Report) bool {
	isWindow := func(g *feedhistory.Gap) bool { return g.Reason == feedhistory.ReasonMissedWindow }
	if s.roads.weather == nil || changes == nil {
		return false
	}
	gaps := changes.Feed.Ledger.Gaps()
	return len(gaps) > 0 && !slices.ContainsFunc(gaps, func(g *feedhistory.Gap) bool { return !isWindow(g) })
}

// most returns how many polls that may take. A document under another name
// looks like a loop to a walk that has just read it under the first name; it
// has to wait for a walk that has not. A subscription document that may be an old copy
// writes nothing off until it has answered for a day, in which there are hourly polls.
func (s *schedule) most(changes *mirror.Report, f *mirror.Feed) int {
	isLoop := func(g *feedhistory.Gap) bool { return g.Reason == feedhistory.ReasonLoop }
	if changes != nil && slices.ContainsFunc(changes.Feed.Ledger.Gaps(), isLoop) {
		return 60
	}
	if f != nil {
		ledger, err := f.Ledger.MarshalJSON()
		require.NoError(s, err)
		if bytes.Contains(ledger, []byte(`"stale":`)) {
			return 8 + 25
		}
	}
	if s.roads.weather != nil {
		if f != nil && f.Kind == feedhistory.KindPaged { // every page is read once a day
			return 10 + 25
		}
		return 10
	}
	return 8
}

// feed returns the state of the feed.
func (s *schedule) feed() (*mirror.Feed, error) {
	if s.own == nil {
		return s.store.Feed(s.Context(), modelURL)
	}
	f := s.own.ledger(s).Feed()
	if f.URL == "" {
		return nil, mirror.ErrNotFound
	}
	return f, nil
}

// update polls the feed; a program stores most readings, and no more.
func (s *schedule) update(ctx context.Context, m *mirror.Mirror, most int) (*mirror.Report, error) {
	if s.own == nil {
		return m.Update(ctx, modelURL)
	}
	commits := s.own.commits
	err := s.own.walk(ctx, s, m, modelURL, most)
	s.own.stored = nil
	f, notFound := s.feed()
	if notFound != nil || ctx.Err() != nil || s.own.commits-commits == int64(most) {
		return nil, cmp.Or(err, ctx.Err(), errors.New("it could not be stored"))
	}
	return &mirror.Report{Feed: f, Failure: err}, nil
}

// has returns the verdict, and the texts of the entries.
func (s *schedule) has() (feedhistory.Verdict, map[string]string) {
	if s.own == nil {
		return feedOf(s.T, s.store, modelURL).Verdict, held(s, s.store, modelURL)
	}
	return s.own.ledger(s).Feed().Verdict, s.own.titles()
}

// poll polls the feed, if it is due. A budget, the context, or a crash after
// some commits may cut the poll short.
func (s *schedule) poll() {
	time.Sleep([]time.Duration{time.Minute, time.Hour, 26 * time.Hour}[s.random.IntN(3)])
	before, err := s.feed()
	if err == nil && s.random.IntN(2) == 0 && !before.Due(time.Now()) {
		s.story = append(s.story, "not due")
		return
	}
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	m := newMirror(s.slowly(), s.roads)
	s.roads.guesses = s.random.IntN(2) > 0
	m.Client.NoGuess = !s.roads.guesses
	m.Revalidate = s.random.IntN(10) == 0
	if s.wrong() != 0 { // what is asked for by its clock may be too early
		m.Now = s.now
		s.roads.quiet = [3]time.Time{}
	}
	if s.random.IntN(5) == 0 {
		m.Quota = mirror.Quota{Entries: int64(s.random.IntN(40)), Bytes: int64(s.random.IntN(20_000))}
	}
	how, cut, most := "poll", true, 1000
	switch s.random.IntN(4) {
	case 0:
		m.Client.Budget.Documents = 1 + s.random.IntN(5)
		how, cut = "poll with a budget", false
	case 1:
		most = s.random.IntN(4)
		m.Store = &crashing{Store: m.Store, left: most, reads: s.random.IntN(6)}
		how = "poll that crashes"
	case 2:
		m.Store = &crashing{Store: m.Store, left: s.random.IntN(4), reads: s.random.IntN(6), then: cancel}
		how = "poll that is interrupted"
	default:
		cut = false
	}
	s.story = append(s.story, how)
	if s.own != nil && how == "poll that is interrupted" {
		left := s.random.IntN(4)
		s.own.stored = func() {
			if left--; left < 0 {
				cancel()
			}
		}
	}
	changes, err := s.update(ctx, m, most)
	clear(s.roads.asked)
	if cut || m.Quota != (mirror.Quota{}) || s.wrong() != 0 { // the poll may have ended before it saw an answer, or not know until when to wait
		s.roads.quiet = [3]time.Time{}
	}
	if s.own == nil {
		s.wasPolled(before, changes, err, ctx.Err() != nil)
	}
	if w := s.roads.weather; w != nil && err == nil && changes.Failure == nil && w.glitch == "" &&
		(changes.Feed.Verdict == feedhistory.VerdictWhole || changes.Feed.Verdict == feedhistory.VerdictLossy) {
		s.hasAll(false)
	}
}

// slowly returns the store with some random commits that take long, so that
// what comes meanwhile is committed together.
func (s *schedule) slowly() mirror.Store {
	return &slow{Store: s.store, t: s.T, story: s, bits: s.random.Uint64()}
}

// wrong is how wrong the reader's clock is at the poll, and now the time it shows.
func (s *schedule) wrong() time.Duration {
	if s.roads.weather == nil {
		return 0
	}
	return s.roads.weather.clock
}

func (s *schedule) now() time.Time { return time.Now().Add(s.wrong()) }

// wasPolled checks when a poll says that the next one is due.
func (s *schedule) wasPolled(before *mirror.Feed, changes *mirror.Report, err error, interrupted bool) {
	require.Empty(s, s.roads.impolite, s)
	after, failed := s.store.Feed(s.Context(), modelURL)
	if failed != nil || before != nil && before.Commits == after.Commits { // nothing has come of it
		require.Error(s, cmp.Or(err, failure(changes)), s)
		return
	}
	now := s.now()
	switch waits := errors.Is(failure(changes), mirror.ErrWaits); {
	case err == nil && waits:
		require.True(s, before.Waits(now) && changes.Feed.Wait.Equal(before.Wait), s)
	case err == nil && changes.Failure == nil:
		require.False(s, after.Unfinished, s)
		require.True(s, changes.Feed.Next.Equal(after.Next) && after.Next.After(now), s)
		require.Equal(s, after.More && !after.Waits(now) && !after.Gone, after.Due(now), s)
	case err == nil:
		require.Positive(s, after.Failures, s)
		require.False(s, after.Unfinished || after.Due(now), s)
	default: // it was cut short
		require.True(s, after.Unfinished, s)
		require.Equal(s, !after.Waits(now) && !after.Gone, after.Due(now), s)
		if after.Due(now) && s.wrong() == 0 {
			require.Equal(s, !interrupted, isLeft(s, after), s)
		}
	}
	if after.Verdict == feedhistory.VerdictWhole || after.Verdict == feedhistory.VerdictLossy || after.Verdict == feedhistory.VerdictWindow {
		require.Empty(s, after.Ledger.Debts(), s)
	}
}

// A crashing store stops after some commits or, if reads is not zero, before
// that many calls of Records: the process has died, or its context has ended.
type crashing struct {
	mirror.Store
	left, reads int
	then        func()
	mu          sync.Mutex // protects left and reads, because a poll reads while a commit is under way
}

func (s *crashing) Commit(ctx context.Context, c *mirror.Commit) error {
	s.mu.Lock()
	s.left--
	alive := s.left >= 0
	s.mu.Unlock()
	if alive {
		return s.Store.Commit(ctx, c)
	}
	if s.then == nil {
		return fmt.Errorf("the process is dead")
	}
	s.then()
	return s.Store.Commit(ctx, c)
}

func (s *crashing) Records(ctx context.Context, feed string, ids []string) (map[string]*mirror.Record, error) {
	s.mu.Lock()
	s.reads--
	alive := s.reads != 0
	if !alive {
		s.left = 0
	}
	s.mu.Unlock()
	if alive {
		return s.Store.Records(ctx, feed, ids)
	}
	if s.then == nil {
		return nil, fmt.Errorf("the process is dead")
	}
	s.then()
	return nil, ctx.Err()
}

// testCounts checks the numbers of entries and documents in a feed's state.
func testCounts(t *testing.T, store mirror.Store, story string) {
	feed, err := store.Feed(t.Context(), modelURL)
	require.NoError(t, err, story)
	var live, gone int64
	for _, r := range feedtest.All(t, store.Entries(t.Context(), mirror.Query{Feed: modelURL, States: mirror.Current | mirror.Former})) {
		if r.State == mirror.Live {
			live++
		} else {
			gone++
		}
	}
	documents := feedtest.All(t, store.Documents(t.Context(), modelURL))
	require.Equal(t, []int64{live, gone, int64(len(documents))}, []int64{feed.Entries, feed.Deleted, feed.Documents}, story)
}

// However small the budget of a poll is, polls come to an end, and then the
// mirror equals what is published.
func TestSmallBudgets(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			model, store := feedtest.NewModel("/feed", seed), mirror.NewMemory()
			for _, budget := range []int{5, 2, 20} {
				for range 30 {
					model.Step()
				}
				more := true
				for polls := 0; more; polls++ {
					require.Less(t, polls, 200, "seed %d, budget %d", seed, budget)
					time.Sleep(time.Minute)
					m := newMirror(store, model)
					m.Client.NoGuess = seed%2 == 0
					m.Client.Budget.Documents = budget
					changes := polled(t, m, modelURL)
					more = changes.More
				}
				require.Equal(t, model.Published(), held(t, store, modelURL), "seed %d, budget %d", seed, budget)
			}
		})
	}
}

// failure returns why there was no subscription document; nil if there was one.
func failure(c *mirror.Report) error {
	if c == nil {
		return nil
	}
	return c.Failure
}
