//go:build linux

package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

var memories = flag.Int("memories", max(2, feedtest.Count(8)), "how many limits of memory TestSmallMemory tries, from 40 to 400 MB")

// With any limit of memory, a large feed is mirrored, or the end says that memory is short.
// Nothing stored is lost, and the next run completes the mirror.
func TestSmallMemory(t *testing.T) {
	feedtest.Long(t)
	t.Parallel()
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		items, size := 300, 100
		if r.URL.Path == "/large" {
			items, size = 1500, 4000
		}
		_, _ = io.WriteString(w, `<rss version="2.0"><channel><title>F</title>`)
		for n := range items {
			_, _ = fmt.Fprintf(w, `<item><guid>urn:%s:%d</guid><title>T</title><description>%s</description></item>`, r.URL.Path, n, strings.Repeat("x", size))
		}
		_, _ = io.WriteString(w, `</channel></rss>`)
	}))
	program := filepath.Join(commandDir(t), "feedhistory")
	small, large := 0, 0
	for n := range *memories {
		db := filepath.Join(t.TempDir(), "feeds.db")
		status, _, stderr := call(t.Context(), "", "sync", "--db", db, "--allow-private", server.URL+"/small")
		require.Zero(t, status, stderr)
		kilobytes := 40_000 + 360_000*n/max(*memories-1, 1)
		c := exec.Command("sh", "-c", `ulimit -d "$0"; exec "$@"`, strconv.Itoa(kilobytes), program, "sync", "--db", db, "--allow-private", server.URL+"/large")
		var said bytes.Buffer
		c.Stderr, c.Env = &said, append(os.Environ(), "GORACE=atexit_sleep_ms=10", "XDG_CONFIG_HOME="+filepath.Dir(db))
		if err := c.Run(); err != nil {
			small++
			require.Regexp(t, `memory|cannot allocate|panic: OOM|pthread_create failed|new OS thread`, said.String(), "%d kB", kilobytes)
		} else {
			large++
		}
		_, stdout, _ := call(t.Context(), "", "entries", "--db", db, server.URL+"/small")
		require.Equal(t, 300, strings.Count(stdout, "\n"), "%d kB", kilobytes)
		for _, args := range [][]string{{"db", "check", "--db", db}, {"sync", "--db", db, "--allow-private", server.URL + "/large"}, {"db", "check", "--db", db}} {
			status, stdout, stderr := call(t.Context(), "", args...)
			require.Zero(t, status, "%d kB: %s", kilobytes, stderr)
			require.NotContains(t, stdout, "damaged in")
		}
		_, stdout, _ = call(t.Context(), "", "entries", "--db", db)
		require.Equal(t, 1800, strings.Count(stdout, "\n"), "%d kB", kilobytes)
	}
	t.Logf("%d of %d limits were too small", small, *memories)
	require.Positive(t, small, "all limits are large enough")
	require.Positive(t, large, "no limit is large enough")
}
