package sqlstore_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

var mirrorKills = flag.Int("mirrorkills", feedtest.Count(10), "how often a mirror is killed, on each database")

func newMirror(t testing.TB, store mirror.Store) *mirror.Mirror {
	m := &mirror.Mirror{Store: store, Client: &feedhistory.Client{
		AllowPrivate: true, Tries: 1,
	}}
	t.Cleanup(m.Client.CloseIdle)
	return m
}

// held returns what a store has of a feed: the text of each entry by its id.
func held(t testing.TB, store mirror.Store, url string) map[string]string {
	t.Helper()
	entries := map[string]string{}
	for _, r := range feedtest.All(t, store.Entries(t.Context(), mirror.Query{Feed: url})) {
		entries[r.ID] = r.Content.Title
	}
	return entries
}

// testCounts checks the numbers of entries and documents in a feed's state.
func testCounts(t testing.TB, store mirror.Store, url string) {
	t.Helper()
	feed, err := store.Feed(t.Context(), url)
	require.NoError(t, err)
	var got [3]int64
	for _, r := range feedtest.All(t, store.Entries(t.Context(), mirror.Query{Feed: url, States: mirror.Current | mirror.Former})) {
		if r.State == mirror.Live {
			got[0]++
		} else {
			got[1]++
		}
	}
	got[2] = int64(len(feedtest.All(t, store.Documents(t.Context(), url))))
	require.Equal(t, got, [3]int64{feed.Entries, feed.Deleted, feed.Documents})
}

// A publisher edits, deletes, archives, splits its log again and fails, while a
// mirror in a separate process is killed at any moment. One undisturbed poll brings
// everything published. It may have to read documents that a killed one has left unread,
// and then writes off none that was withdrawn meanwhile; the next poll finds the feed whole.
func TestKilledMirror(t *testing.T) {
	feedtest.Long(t)
	faultyDatabases(t, func(t *testing.T, create func(testing.TB) database) {
		d := create(t)
		d.open(t) // makes the schema
		model := feedtest.NewModel("/feed", 5005)
		site := feedtest.Server(t, model)
		random := feedtest.Random(1)
		polls := 0
		for kill := range *mirrorKills {
			model.Fail([]float64{0, 0.05, 0.3}[kill%3])
			polls += killMirror(t, d, site.URL+"/feed", model, random)
		}
		t.Logf("%d polls, %d kills", polls, *mirrorKills)
		require.NotZero(t, polls)
		model.Fail(0)
		model.Close() // until then, what came and went may be in an archive to come
		model.Become("archived")
		store := d.open(t)
		changes, err := newMirror(t, store).Update(t.Context(), site.URL+"/feed")
		require.NoError(t, err)
		require.NoError(t, changes.Failure)
		require.Equal(t, model.Published(), held(t, store, site.URL+"/feed"))
		testCounts(t, store, site.URL+"/feed")
		changes, err = newMirror(t, store).Update(t.Context(), site.URL+"/feed")
		require.NoError(t, err)
		require.NoError(t, changes.Failure)
		require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict, "%v", changes.Feed.Ledger.Gaps())
		testCounts(t, store, site.URL+"/feed")
		if d.dialect == sqlstore.SQLite {
			var sound string
			require.NoError(t, d.connect(t).QueryRow("PRAGMA integrity_check").Scan(&sound))
			require.Equal(t, "ok", sound)
		}
	})
}

// killMirror runs a mirror in a separate process, while the publisher works, and
// kills it a moment after one of its first polls, or before. It returns how many
// polls had ended.
func killMirror(t *testing.T, d database, url string, model *feedtest.Model, random *rand.Rand) (polls int) {
	child := exec.Command(os.Args[0], "-test.run", "^TestMirrorProcess$", "-test.timeout", patience.String())
	child.Env = append(os.Environ(), "SQLSTORE_MIRROR="+string(d.dialect)+" "+url+" "+d.victim().dsn)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "the process said nothing")
	require.Equal(t, "ready", lines.Text())
	last, moment := random.IntN(5), time.Duration(random.IntN(20_000))*time.Microsecond
	kill := func() { time.AfterFunc(moment, func() { _ = child.Process.Kill() }) }
	if last == 0 {
		kill()
	}
	for lines.Scan() {
		if polls++; polls == last {
			kill()
		}
		model.Step()
		if random.IntN(10) == 0 {
			model.Become([]string{"archived", "archived", "complete", "paged", "plain"}[random.IntN(5)])
		}
	}
	require.Error(t, child.Wait()) // it was killed
	d.bury(t)
	return polls
}

// TestMirrorProcess is the process that TestKilledMirror kills.
func TestMirrorProcess(t *testing.T) {
	words := strings.SplitN(os.Getenv("SQLSTORE_MIRROR"), " ", 3)
	if len(words) < 3 {
		t.Skip("it is started by TestKilledMirror")
	}
	d := database{dialect: sqlstore.SQLite, driver: "sqlite", dsn: words[2]}
	if words[0] == string(sqlstore.PostgreSQL) {
		d.dialect, d.driver = sqlstore.PostgreSQL, "pgx"
	}
	m := newMirror(t, d.open(t))
	fmt.Println("ready")
	for {
		_, _ = m.Update(context.Background(), words[1]) // failures are the publisher's
		fmt.Println("polled")
	}
}

// Two mirrors at work on one feed at the same time do no harm: one gives way.
func TestTwoMirrors(t *testing.T) {
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		d := create(t)
		model := feedtest.NewModel("/feed", 2)
		site := feedtest.Server(t, model)
		url := site.URL + "/feed"
		store := d.open(t)
		var mirrors sync.WaitGroup
		for _, m := range []*mirror.Mirror{newMirror(t, store), newMirror(t, d.open(t))} {
			mirrors.Go(func() {
				for range 20 {
					if _, err := m.Update(t.Context(), url); err != nil && !errors.Is(err, mirror.ErrConflict) {
						t.Error(err)
						return
					}
					model.Step()
				}
			})
		}
		mirrors.Wait()
		model.Become("archived")
		changes, err := newMirror(t, store).Update(t.Context(), url)
		require.NoError(t, err)
		require.NoError(t, changes.Failure)
		require.Equal(t, model.Published(), held(t, store, url))
		require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict)
		testCounts(t, store, url)
	})
}
