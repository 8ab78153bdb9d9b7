//go:build unix

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/fleet"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A stalling store stalls in its first commit until it is released.
type stalling struct {
	mirror.Store
	once           sync.Once
	stalled, goOn  chan struct{}
	refused, taken chan error // the outcome of the commit
}

func (s *stalling) Commit(ctx context.Context, c *mirror.Commit) error {
	first := false
	s.once.Do(func() { first = true })
	if !first {
		return s.Store.Commit(ctx, c)
	}
	close(s.stalled)
	<-s.goOn
	err := s.Store.Commit(context.WithoutCancel(ctx), c) // the time limit alone would prevent the commit otherwise
	if errors.Is(err, mirror.ErrConflict) {
		s.refused <- err
	} else {
		s.taken <- err
	}
	return err
}

// A worker that stalls in a commit cannot commit after its job has been given
// to another: nothing is lost, nothing is doubled.
func TestFence(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t)
	first, second := open(t, dsn), open(t, dsn)
	s := newSite(t)
	m, url := s.model("/feed", 3)
	for range 20 {
		m.Step()
	}
	store := &stalling{
		Store: first.Store, stalled: make(chan struct{}), goOn: make(chan struct{}),
		refused: make(chan error, 1), taken: make(chan error, 1),
	}
	first.Store = store
	wake := sync.OnceFunc(func() { close(store.goOn) })
	subscribe(t, first, url)
	a, b := newWorker(t, first), newWorker(t, second)
	a.Slice, b.Slice = 2*time.Second, 2*time.Second
	start(t, a)
	t.Cleanup(wake)
	<-store.stalled
	for range 20 {
		m.Step()
	}
	start(t, b)
	eventually(t, second, func(s *fleet.Status) bool { return s.Running == 0 })
	// The leader rescues jobs: twice a minute, and when it has been elected.
	sql(t, second, `DELETE FROM river_leader`)
	eventually(t, second, func(s *fleet.Status) bool { return s.Verdicts["whole"] == 1 && s.Running == 0 })
	before, err := second.Store.Feed(t.Context(), url)
	require.NoError(t, err)
	wake()
	select {
	case err := <-store.refused:
		require.ErrorIs(t, err, mirror.ErrConflict)
	case err := <-store.taken:
		require.Fail(t, "the commit was not refused", "%v", err)
	}
	require.Eventually(t, func() bool { return metric(t, a, `feedhistory_polls_total{outcome="conflict"}`) == 1 }, patience, 10*time.Millisecond)
	after, err := second.Store.Feed(t.Context(), url)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.Equal(t, m.Published(), held(t, second.Store, url))
	st := status(t, second)
	require.Zero(t, st.Failing+st.Dead+st.Due)
}

// suspend stops a process where it has no transaction open: the locks of one would
// keep all others from their work until it continues.
func (p *process) suspend(t *testing.T, db *fleet.Database) {
	t.Helper()
	require.Eventually(t, func() bool {
		err := p.Process.Signal(syscall.SIGSTOP)
		if err == nil {
			err = db.Exec(t.Context(), `DO $$ BEGIN IF EXISTS (SELECT FROM pg_stat_activity
				WHERE datname = current_database() AND backend_type = 'client backend' AND state <> 'idle' AND pid <> pg_backend_pid())
				THEN RAISE 'a transaction is open'; END IF; END $$`)
		}
		if err != nil {
			_ = p.Process.Signal(syscall.SIGCONT)
		}
		return err == nil
	}, patience, 10*time.Millisecond)
}

// A process that is stopped in the middle of a poll is overtaken by another.
// When it continues, it polls what is due like any other.
func TestStopped(t *testing.T) {
	feedtest.Long(t)
	t.Parallel()
	dsn := newDatabase(t)
	db := open(t, dsn)
	s := newSite(t)
	asked, answer := s.gate("/gate")
	m, url := s.model("/model", 5)
	for range 20 {
		m.Step()
	}
	subscribe(t, db, s.URL+"/gate")
	config := processConfig{DSN: dsn, Every: time.Second, Slice: 2 * time.Second, Pause: -1, Commits: filepath.Join(t.TempDir(), "commits")}
	a := startProcess(t, config)
	<-asked
	a.suspend(t, db)
	close(answer)
	subscribe(t, db, url)
	b := startProcess(t, config)
	eventually(t, db, func(s *fleet.Status) bool { return s.Verdicts["whole"] == 1 && s.Verdicts["window"] == 1 })
	require.NoError(t, a.Process.Signal(syscall.SIGCONT))
	time.Sleep(time.Second)
	b.stop(t)
	for range 20 {
		m.Step()
	}
	eventually(t, db, func(*fleet.Status) bool { return fmt.Sprint(m.Published()) == fmt.Sprint(held(t, db.Store, url)) })
	a.stop(t)
	require.EqualValues(t, 1, s.most.Load())
	checkCommits(t, db, config.Commits)
}
