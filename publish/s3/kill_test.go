//go:build unix

package s3_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/outputtest"
	"github.com/feedhistory/feedhistory/publish/s3"
)

var kills = flag.Int("kills", feedtest.Count(12), "how often TestKill kills a publishing process; two are at work at a time")

// victim is the variable that makes the test binary a publishing process; its
// value is the store's URL.
const victim = "FEEDHISTORY_PUBLISH_STORE"

// victimLease is the variable with such a process's Lease, for a store whose clock cannot
// be put forward.
const victimLease = "FEEDHISTORY_PUBLISH_LEASE"

// TestMain publishes instead of testing if the process is one to be killed.
func TestMain(m *testing.M) {
	if url := os.Getenv(victim); url != "" {
		if err := publishForever(url, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	feedtest.Main(m)
}

// publishForever appends, deletes and erases, and writes a word to w before and
// after each call. It tries again if another process has the lock, or has taken
// it away.
func publishForever(url string, w io.Writer) error {
	client, err := minio.New(strings.TrimPrefix(url, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4("key", "secret", ""), Region: "us-east-1",
	})
	if err != nil {
		return err
	}
	lease, _ := time.ParseDuration(os.Getenv(victimLease)) // zero is the usual one
	p := &publish.Publisher{Output: &s3.Output{Client: client, Bucket: bucket, Prefix: prefix, Lease: lease}, Base: base, Recent: -1}
	random := feedtest.Random(0)
	for {
		p.Split = compose.Split{Size: 1 + random.IntN(5)}
		now := time.Now()
		id := strconv.FormatInt(now.UnixNano(), 36) + strconv.Itoa(os.Getpid())
		e, err := compose.Draft{ID: id, Updated: now, Title: feedhistory.Text{Body: id}}.Entry()
		if err != nil {
			return err
		}
		for i, step := range []struct {
			verb string
			do   func() error
		}{
			{"append", func() error { return p.Append(context.Background(), e) }},
			{"delete", func() error { return p.Delete(context.Background(), id, now.Add(1)) }},
			{"erase", func() error { return p.Erase(context.Background(), id) }},
		} {
			if i > 0 && random.IntN(4) > 0 {
				break
			}
			fmt.Fprintln(w, step.verb, id)
			err := step.do()
			for errors.Is(err, publish.ErrLocked) || errors.Is(err, s3.ErrChanged) {
				time.Sleep(time.Duration(random.IntN(5)) * time.Millisecond)
				err = step.do()
			}
			if err != nil && !errors.Is(err, publish.ErrNotPublished) { // erased before the lock was lost
				return fmt.Errorf("%s %s: %w", step.verb, id, err)
			}
			fmt.Fprintln(w, "done", id)
		}
	}
}

// A process is a publishing process.
type process struct {
	*exec.Cmd
	read sync.WaitGroup

	states map[string]string // by id, the last verb that was acknowledged
	begun  map[string]string // by id, a verb that was not acknowledged
}

// start starts a publishing process, which reports when it has gone on to another entry
// after it had only appended one.
func start(t *testing.T, random *rand.Rand, s *store, appended chan<- bool) *process {
	p := &process{Cmd: exec.Command(os.Args[0]), states: map[string]string{}, begun: map[string]string{}}
	p.Env = append(os.Environ(), victim+"="+s.URL, fmt.Sprint("RAPID_SEED=", random.Uint64()))
	p.Stderr = os.Stderr
	pipe, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	p.read.Go(func() {
		last := ""
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			verb, id, _ := strings.Cut(lines.Text(), " ")
			if verb == "done" {
				p.states[id] = p.begun[id]
				delete(p.begun, id)
				continue
			}
			p.begun[id] = verb
			if id != last && p.states[last] == "append" {
				select {
				case appended <- true:
				default:
				}
			}
			last = id
		}
	})
	return p
}

// kill kills a process, and requires that it had not ended by itself.
func (p *process) kill(t *testing.T) {
	require.NoError(t, p.Process.Kill())
	p.read.Wait()
	exit := feedtest.ErrorAs[*exec.ExitError](t, p.Wait())
	require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal(), "it had ended before")
}

// TestKill lets two processes publish to one store, and kills them at random
// points, again and again. Some are suspended for a while instead, and the
// store's clock is put forward, so that the other process takes the lock and
// they come back late. Whenever both are dead, readers find a valid archived
// feed, nothing that was acknowledged is missing or there twice, and no link
// dangles.
func TestKill(t *testing.T) {
	feedtest.Long(t)
	counts := map[string]int{}
	random := feedtest.Random(0)
	for done := 0; done < *kills; done += perStore {
		killAll(t, random, min(perStore, *kills-done), counts)
	}
	t.Logf("%d kills: %v", *kills, counts)
	require.NotZero(t, counts["append"])
}

// perStore is the number of kills before a new store is used, so that a long
// test does not read the same feed all the time.
const perStore = 50

// killAll does that with one store, and counts the entries by their states.
func killAll(t *testing.T, random *rand.Rand, kills int, counts map[string]int) {
	s := newStore(t)
	states := map[string]string{}
	pause := func() { time.Sleep(time.Duration(20+random.IntN(150)) * time.Millisecond) }
	for kill := 0; kill < kills; kill += 2 {
		appended := make(chan bool, 1)
		one, two := start(t, random, s, appended), start(t, random, s, appended)
		if kill == 0 || random.IntN(2) == 0 { // on a busy machine a pause is not enough to publish anything
			<-appended
		}
		pause()
		for range random.IntN(4) {
			sleeper := []*process{one, two}[random.IntN(2)]
			require.NoError(t, sleeper.Process.Signal(syscall.SIGSTOP))
			s.advance()
			pause()
			require.NoError(t, sleeper.Process.Signal(syscall.SIGCONT))
			pause()
		}
		one.kill(t)
		s.advance()
		pause()
		two.kill(t)
		s.advance()
		requirePublished(t, s, states, one, two)
	}
	for _, state := range states {
		counts[state]++
	}
}

// requirePublished requires that readers find what the processes have
// published, and adds that to the states.
func requirePublished(t *testing.T, s *store, states map[string]string, all ...*process) {
	t.Helper()
	begun := map[string]string{}
	for _, p := range all {
		maps.Copy(states, p.states)
		maps.Copy(begun, p.begun)
	}
	defer func() {
		for id := range begun {
			states[id] = "unknown" // the next holder of the lock may still do it
		}
	}()
	out := s.output(t)
	if _, err := fs.Stat(out, "feed.atom"); errors.Is(err, fs.ErrNotExist) {
		for id, state := range states {
			require.Equal(t, "unknown", state, id)
		}
		return
	}
	found := outputtest.Fetch(t, out, base, "feed.atom")
	for id, state := range states {
		title, ok := found[id]
		switch {
		case begun[id] != "" || state == "unknown": // the call may have taken effect or not
		case state == "append":
			require.True(t, ok, "acknowledged and lost")
			require.Equal(t, id, title)
		case state == "delete":
			require.Equal(t, "deleted", title)
		case state == "erase":
			require.True(t, !ok || title == "deleted")
		}
		delete(found, id)
	}
	for id := range found {
		require.NotEmpty(t, begun[id], "published, but nobody wanted that: %s", id)
	}
}
