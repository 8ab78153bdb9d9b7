//go:build unix

package fleet_test

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/fleet"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror/sqlstore/pgtest"
)

var chaos = flag.Bool("chaos", feedtest.LongRun(), "the full test of kills: a few minutes")

// A disorder describes the test of kills.
type disorder struct {
	hosts, feeds int // feeds per host
	workers      int
	kills        int
	restarts     int // of PostgreSQL; every second one is a crash
	between      time.Duration
}

// Whatever is killed, the mirror ends up equal to what is published, no entry
// is there twice, no host has had two requests at once or one before the end of a wait it
// asked for, and nothing that was acknowledged is lost.
func TestChaos(t *testing.T) {
	feedtest.Long(t)
	t.Parallel()
	d := disorder{hosts: 8, feeds: 3, workers: 2, kills: 4, restarts: 2, between: 400 * time.Millisecond}
	if *chaos {
		d = disorder{hosts: 25, feeds: 4, workers: 4, kills: 40, restarts: 4, between: 2 * time.Second}
	}
	own, err := pgtest.Start()
	if err != nil {
		server.Database(t) // skips
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = own.Stop() }) // it removes the data; the server that it started has ended long since
	config := processConfig{
		DSN: own.Database(t), Every: time.Second, Slice: 2 * time.Second, Pause: -1, Random: true,
		Commits: filepath.Join(t.TempDir(), "commits"), Waits: filepath.Join(t.TempDir(), "waits"),
		Tries: 2, MaxWait: time.Second, // a wait of a second is spent in the client
	}
	w := &world{models: map[string]*feedtest.Model{}}
	db := open(t, config.DSN)
	postgres := newControl(t, db)
	t.Cleanup(func() { postgres.do(t, "stop", "-m", "immediate") })
	for range d.hosts {
		s := newSite(t)
		s.mood.set(0.03)
		w.sites = append(w.sites, s)
	}
	random := feedtest.Random(0)
	w.publish(t, db, d.feeds-1, 30)
	endPublishing := w.goOn(random.Uint64())
	var workers []*process
	for range d.workers {
		workers = append(workers, startProcess(t, config))
	}
	for n := range d.kills {
		time.Sleep(time.Duration(random.Int64N(int64(2 * d.between))))
		i := random.IntN(len(workers))
		workers[i].kill()
		if every := d.kills / d.restarts; n%(2*every) == every-1 {
			postgres.do(t, "restart", "-m", "fast")
		} else if n%(2*every) == 2*every-1 {
			crash(t, db)
		}
		if n == d.kills/2 { // an acknowledged subscription is not lost
			w.publish(t, db, 1, 10)
		}
		workers[i] = startProcess(t, config)
	}
	endPublishing()
	if !*chaos { // jobs are rescued twice a minute, and when a worker becomes the leader
		time.Sleep(3 * config.Slice)
		for i := range workers {
			workers[i].stop(t)
		}
		for i := range workers {
			workers[i] = startProcess(t, config)
		}
	}
	w.await(t, db)
	for _, p := range workers {
		p.stop(t)
	}
	w.check(t, db)
	checkCommits(t, db, config.Commits)
	w.checkWaits(t, config.Waits)
	s := status(t, db)
	require.EqualValues(t, d.hosts*d.feeds, s.Feeds)
	require.Zero(t, s.Dead)
	// The last worker may have planned jobs that nobody fetches: their holds expire.
	require.Eventually(t, func() bool { return status(t, db).Running == 0 }, patience, 50*time.Millisecond)
}

// A world is a set of sites with model publishers.
type world struct {
	sites  []*site
	mu     sync.Mutex
	models map[string]*feedtest.Model
}

// publish adds feeds to every site, after some steps, and subscribes to them.
func (w *world) publish(t *testing.T, db *fleet.Database, feeds, steps int) {
	var urls []string
	w.mu.Lock()
	for _, s := range w.sites {
		for range feeds {
			n := len(w.models)
			m, url := s.model(fmt.Sprintf("/feed-%d", n), uint64(n))
			for range steps {
				m.Step()
			}
			m.Fail(0.03)
			w.models[url] = m
			urls = append(urls, url)
		}
	}
	w.mu.Unlock()
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		_, err := db.Subscribe(t.Context(), urls)
		if err == nil {
			return
		}
		require.True(t, time.Now().Before(end), "%v", err)
	}
}

// goOn lets the publishers work until the returned function is called. After
// that they no longer fail.
func (w *world) goOn(seed uint64) (end func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for random := rand.New(rand.NewPCG(seed, 0)); ; {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
			w.mu.Lock()
			n := random.IntN(len(w.models))
			for _, m := range w.models {
				if n--; n < 0 {
					m.Step()
					break
				}
			}
			w.mu.Unlock()
		}
	}()
	return func() {
		close(stop)
		<-ended
		for _, m := range w.models {
			m.Fail(0)
		}
		for _, s := range w.sites {
			s.mood.set(0)
		}
	}
}

// await waits until the mirror equals what is published.
func (w *world) await(t *testing.T, db *fleet.Database) {
	end := time.Now().Add(3 * patience)
	for url, m := range w.models {
		for {
			entries, err := tryHeld(t, db.Store, url)
			if err == nil && fmt.Sprint(m.Published()) == fmt.Sprint(entries) {
				break
			}
			require.True(t, time.Now().Before(end), "%s: %v", url, err)
			time.Sleep(50 * time.Millisecond)
		}
	}
}

func (w *world) check(t *testing.T, db *fleet.Database) {
	for url, m := range w.models {
		require.Equal(t, m.Published(), held(t, db.Store, url), url)
	}
	for _, s := range w.sites {
		require.EqualValues(t, 1, s.most.Load(), s.URL)
	}
}

// crash makes PostgreSQL drop all connections and all its memory and recover
// from its log, by killing one of its processes.
func crash(t *testing.T, db *fleet.Database) {
	var pid int
	require.Eventually(t, func() bool { // a connection may be from before a restart
		var err error
		pid, err = db.Backend(t.Context())
		return err == nil
	}, patience, 10*time.Millisecond)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

// A control is PostgreSQL's own program for starting and stopping a server.
type control struct{ program, data string }

func newControl(t *testing.T, db *fleet.Database) control {
	programs, data, err := db.Where(t.Context())
	require.NoError(t, err)
	return control{filepath.Join(programs, "pg_ctl"), data}
}

func (c control) do(t *testing.T, what ...string) {
	args := append(what, "-D", c.data, "-w", "-s", "-l", filepath.Join(c.data, "restarted.log"))
	cmd := exec.Command(c.program, args...)
	cmd.Dir = c.data
	if owner, err := os.Stat(c.data); os.Getuid() == 0 && err == nil { // root may not
		stat := owner.Sys().(*syscall.Stat_t)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}}
	}
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
}

// checkCommits checks that no acknowledged commit is lost, and that no two were
// made from the same state.
func checkCommits(t *testing.T, db *fleet.Database, file string) {
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	last := map[string]int64{}
	seen := map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var version int64
		var url string
		_, err := fmt.Sscan(lines.Text(), &version, &url)
		require.NoError(t, err)
		require.False(t, seen[lines.Text()], lines.Text())
		seen[lines.Text()] = true
		last[url] = max(last[url], version)
	}
	require.NotEmpty(t, last)
	for url, version := range last {
		feed, err := db.Store.Feed(t.Context(), url)
		require.NoError(t, err)
		require.GreaterOrEqual(t, feed.Commits, version, url)
	}
	t.Logf("%d commits of %d feeds", len(seen), len(last))
}
