//go:build unix

package publish

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

var kills = flag.Int("kills", feedtest.Count(15), "how often TestKill kills a publishing process")

// victim is the variable that makes the test binary a publishing process; its
// value is the directory.
const victim = "FEEDHISTORY_PUBLISH_DIR"

// TestMain publishes instead of testing if the process is one to be killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(victim); dir != "" {
		if err := publishForever(dir, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	feedtest.Main(m)
}

// publishForever appends, publishes, deletes and erases, and writes a word to w before and
// after each call.
func publishForever(dir string, w io.Writer) error {
	p, random := &Publisher{Output: Dir{Path: dir}, Base: base, Recent: -1, least: 2, most: 20, mostQueued: 1}, feedtest.Random(0)
	for {
		p.Split = compose.Split{Size: 1 + random.IntN(5)}
		now := time.Now()
		id := strconv.FormatInt(now.UnixNano(), 36)
		draft := compose.Draft{ID: id, Updated: now, Title: feedhistory.Text{Body: id}}
		steps := []struct {
			verb string
			do   func() error
		}{
			{"append", func() error {
				e, err := draft.Entry()
				if err != nil {
					return err
				}
				if random.IntN(2) > 0 {
					return p.Append(context.Background(), e)
				}
				_, err = p.Publish(context.Background(), Batch{Entries: []*feedhistory.Entry{e}})
				return err
			}},
			{"delete", func() error { return p.Delete(context.Background(), id, now.Add(1)) }},
			{"erase", func() error { return p.Erase(context.Background(), id) }},
		}
		for i, s := range steps {
			if i > 0 && random.IntN(8) > 0 {
				break
			}
			fmt.Fprintln(w, s.verb, id)
			if err := s.do(); err != nil {
				return fmt.Errorf("%s %s: %w", s.verb, id, err)
			}
			fmt.Fprintln(w, "done", id)
		}
	}
}

// TestKill kills a publishing process at random points, again and again. Each
// time the directory is a valid archived feed, nothing that was acknowledged is
// missing, no link dangles, and the next process continues.
func TestKill(t *testing.T) {
	feedtest.Long(t)
	dir := t.TempDir()
	states := map[string]string{} // by id, the last verb that was acknowledged
	random := feedtest.Random(0)
	for kill := range *kills {
		begun := publishUntilKilled(t, random, dir, states)
		d := Dir{Path: dir}
		p := &Publisher{Output: d, Base: base}
		checkChain(t, d, p)
		if _, err := d.Open(p.name()); isNotExist(err) {
			for id, state := range states {
				require.Equal(t, "unknown", state, id)
			}
			doubt(states, begun)
			continue
		}
		found := facts(fetch(t, d, p.URL()))
		for id, state := range states {
			switch deleted := strings.HasSuffix(found[id], " deleted"); {
			case begun[id] != "": // the call may have taken effect or not
			case state == "append":
				require.Contains(t, found, id, "after kill %d", kill)
				require.False(t, deleted)
			case state == "delete":
				require.True(t, deleted)
			case state == "erase":
				require.True(t, deleted || found[id] == "")
			}
			delete(found, id)
		}
		for id := range found {
			require.NotEmpty(t, begun[id], "published, but nobody wanted that: %s", id)
		}
		doubt(states, begun)
	}
	t.Logf("%d kills, %d entries", *kills, len(states))
}

// doubt notes what was begun and not acknowledged: the next process may still do it.
func doubt(states, begun map[string]string) {
	for id := range begun {
		states[id] = "unknown"
	}
}

// publishUntilKilled runs a publishing process for a while after it has begun. It returns the
// calls that were begun but not acknowledged, and adds those that were to
// states.
func publishUntilKilled(t *testing.T, random *rand.Rand, dir string, states map[string]string) (begun map[string]string) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victim+"="+dir, fmt.Sprint("RAPID_SEED=", random.Uint64()))
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	begin := sync.OnceFunc(func() {
		time.AfterFunc(time.Duration(random.IntN(150))*time.Millisecond, func() { _ = cmd.Process.Kill() })
	})
	begun = map[string]string{}
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		begin()
		verb, id, _ := strings.Cut(lines.Text(), " ")
		if verb == "done" {
			states[id] = begun[id]
			delete(begun, id)
		} else {
			begun[id] = verb
		}
	}
	err = cmd.Wait()
	exit, ok := err.(*exec.ExitError)
	require.True(t, ok && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL, "%v", err)
	return begun
}
