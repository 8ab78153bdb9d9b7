//go:build unix

package fleet_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/fleet"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A heldPoll is a feed whose second poll has brought nothing new, and is not
// written yet, because the next feed of the host does not answer.
type heldPoll struct {
	db     *fleet.Database
	w      *fleet.Worker
	url    string
	before *mirror.Feed
	answer func()
	stop   func()
}

func newHeldPoll(t *testing.T, late time.Duration, statements ...string) *heldPoll {
	t.Parallel()
	db := open(t, newDatabase(t))
	s := newSite(t)
	s.mux.HandleFunc("/quiet", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprintf(w, crowdFeed, "")
	})
	h := &heldPoll{db: db, w: newWorker(t, db), url: s.URL + "/quiet"}
	subscribe(t, db, h.url)
	stop := start(t, newWorker(t, db))
	eventually(t, db, func(s *fleet.Status) bool { return s.New+s.Running == 0 })
	stop()
	var err error
	h.before, err = db.Store.Feed(t.Context(), h.url)
	require.NoError(t, err)

	asked, answer := s.gate("/slow")
	subscribe(t, db, s.URL+"/slow")
	sql(t, db, `UPDATE fleet_feeds SET due = now() - interval '1 minute' WHERE url LIKE '%/quiet'`)
	for _, statement := range append(statements, `UPDATE fleet_hosts SET due = now()`) {
		sql(t, db, statement)
	}
	h.answer = func() { close(answer) }
	h.w.Slice = time.Hour // a poll that waits for the test's answer is not too late
	h.w.Batch(10, late)
	h.stop = start(t, h.w)
	<-asked
	return h
}

// state returns the feed's state in the store.
func (h *heldPoll) state(t *testing.T) *mirror.Feed {
	f, err := h.db.Store.Feed(t.Context(), h.url)
	require.NoError(t, err)
	return f
}

func (h *heldPoll) conflicts(t *testing.T) float64 {
	return metric(t, h.w, `feedhistory_polls_total{outcome="conflict"}`)
}

// An unchanged poll is written together with the other polls of the host, and
// the feed is then due when it wants to be.
func TestHeld(t *testing.T) {
	h := newHeldPoll(t, time.Hour)
	require.Equal(t, h.before, h.state(t))
	h.answer()
	eventually(t, h.db, func(s *fleet.Status) bool { return s.New+s.Running+s.Due == 0 })
	after := h.state(t)
	require.Equal(t, h.before.Polls+1, after.Polls)
	require.Equal(t, h.before.Commits+1, after.Commits)
	require.True(t, after.Next.After(h.before.Next))
	require.Zero(t, h.conflicts(t))
}

// It is written in time although the next feed does not answer.
func TestHeldLate(t *testing.T) {
	h := newHeldPoll(t, 50*time.Millisecond)
	require.Eventually(t, func() bool { return h.state(t).Polls == h.before.Polls+1 }, patience, 10*time.Millisecond)
	require.EqualValues(t, 1, status(t, h.db).Running)
	h.answer()
	eventually(t, h.db, func(s *fleet.Status) bool { return s.New+s.Running+s.Due == 0 })
	require.Equal(t, h.before.Polls+1, h.state(t).Polls)
}

// What something else has changed meanwhile stays unchanged.
func TestHeldConflict(t *testing.T) {
	h := newHeldPoll(t, time.Hour)
	other := h.state(t)
	other.Title = "changed by another"
	require.NoError(t, h.db.Store.Commit(t.Context(), &mirror.Commit{Feed: other}))
	h.answer()
	eventually(t, h.db, func(s *fleet.Status) bool { return s.New+s.Running+s.Due == 0 })
	require.Equal(t, other, h.state(t))
	require.EqualValues(t, 1, h.conflicts(t))
}

// A feed that something else adds during its first poll stays as that has stored it.
func TestFirstConflict(t *testing.T) {
	t.Parallel()
	db := open(t, newDatabase(t))
	s := newSite(t)
	asked, answer := s.gate("/first")
	subscribe(t, db, s.URL+"/first")
	h := &heldPoll{db: db, w: newWorker(t, db), url: s.URL + "/first"}
	start(t, h.w)
	<-asked
	other := mirror.NewFeed(h.url)
	require.NoError(t, db.Store.Commit(t.Context(), &mirror.Commit{Feed: other}))
	close(answer)
	require.Eventually(t, func() bool { return h.conflicts(t) == 1 }, patience, 10*time.Millisecond)
	require.Equal(t, other, h.state(t))
}

// Nothing is written after another worker has taken the host.
func TestHeldLost(t *testing.T) {
	h := newHeldPoll(t, time.Hour)
	sql(t, h.db, `UPDATE fleet_hosts SET holder = 1, until = now() + interval '1 hour'`)
	h.answer()
	require.Eventually(t, func() bool { return h.conflicts(t) == 1 }, patience, 10*time.Millisecond)
	require.Equal(t, h.before, h.state(t))
	require.EqualValues(t, 2, status(t, h.db).Due)
}

// If the previous worker has not released the host, one of its polls may have
// ended the process: so each poll is recorded before it begins, and written by
// itself.
func TestHeldDoubtful(t *testing.T) {
	h := newHeldPoll(t, time.Hour, `UPDATE fleet_hosts SET holder = 1, until = now()`,
		`UPDATE feedhistory.polls SET next = '2020-01-01T00:00:00.000000000Z'`)
	require.Equal(t, h.before.Polls+1, h.state(t).Polls)
	tries := func(path string, want int) {
		sql(t, h.db, fmt.Sprintf(`DO $$ DECLARE n integer; BEGIN SELECT tries INTO n FROM fleet_feeds WHERE url LIKE '%%%s';
			IF n <> %d THEN RAISE 'there are %% tries', n; END IF; END $$`, path, want))
	}
	tries("/quiet", 0)
	tries("/slow", 1)
	h.answer()
	eventually(t, h.db, func(s *fleet.Status) bool { return s.New+s.Running+s.Due == 0 })
	tries("/slow", 0)
}

// A feed that was unsubscribed from meanwhile does not come back.
func TestHeldUnsubscribed(t *testing.T) {
	h := newHeldPoll(t, time.Hour)
	_, err := h.db.Unsubscribe(t.Context(), []string{h.url})
	require.NoError(t, err)
	h.answer()
	eventually(t, h.db, func(s *fleet.Status) bool { return s.New+s.Running+s.Due == 0 && s.Feeds == 1 })
	_, err = h.db.Store.Feed(t.Context(), h.url)
	require.ErrorIs(t, err, mirror.ErrNotFound)
}

// A worker that must end writes what it holds.
func TestHeldStop(t *testing.T) {
	h := newHeldPoll(t, time.Hour)
	h.w.Client.CloseIdle()
	go h.stop()
	h.answer()
	eventually(t, h.db, func(s *fleet.Status) bool { return s.Running == 0 })
	require.Equal(t, h.before.Polls+1, h.state(t).Polls)
}

// A feed whose state cannot be stored becomes a dead letter, and does not
// affect the feeds that are written with it.
func TestHeldPoison(t *testing.T) {
	feedtest.Long(t)
	t.Parallel()
	db := open(t, newDatabase(t))
	_, proxy := startCrowd(t)
	urls := feedURLs(40, 4)
	subscribe(t, db, urls...)
	sql(t, db, `CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.version > 1 AND NEW.feed = (SELECT key FROM feedhistory.feeds WHERE url = '`+urls[5]+`') THEN RAISE 'such a state is not taken'; END IF; RETURN NEW; END $$`)
	sql(t, db, `CREATE TRIGGER poison BEFORE UPDATE ON feedhistory.polls FOR EACH ROW EXECUTE FUNCTION poison()`)
	w := newWorker(t, db)
	w.Client.Transport = proxyTransport(proxy)
	w.Slice, w.Tries, w.Every = 2*time.Second, 2, time.Second
	start(t, w)
	st := eventually(t, db, func(s *fleet.Status) bool { return s.Dead == 1 })
	require.Equal(t, urls[5], st.Letters[0].URL)
	require.Contains(t, st.Letters[0].Reason, "such a state is not taken")
	for _, url := range urls {
		if url != urls[5] {
			require.Eventually(t, func() bool {
				f, err := db.Store.Feed(t.Context(), url)
				return err == nil && f.Polls > 1
			}, patience, 50*time.Millisecond, url)
		}
	}
	require.EqualValues(t, 1, status(t, db).Dead)
}
