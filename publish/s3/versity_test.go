//go:build unix

package s3_test

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/outputtest"
	"github.com/feedhistory/feedhistory/publish/s3"
)

// A gateway is a process of versitygw, an object store of other people that keeps its
// objects in a directory.
type gateway struct{ *store }

// newGateway starts a store. It skips the test unless the environment has
// FEEDHISTORY_VERSITYGW=required.
func newGateway(t *testing.T) gateway {
	t.Helper()
	if os.Getenv("FEEDHISTORY_VERSITYGW") != "required" {
		t.Skip("FEEDHISTORY_VERSITYGW=required runs it with versitygw")
	}
	program, err := exec.LookPath("versitygw")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data", bucket), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "meta"), 0o700))
	for {
		if address, ok := serveGateway(t, program, dir); ok {
			return gateway{&store{Server: &httptest.Server{URL: "http://" + address}}}
		}
	}
}

// serveGateway starts a store on a port that is free now, and waits until it answers. It fails
// if another program has taken the port meanwhile: versitygw does not say which one the system
// has given it, so it cannot be asked for any.
func serveGateway(t *testing.T, program, dir string) (address string, ok bool) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address = l.Addr().String()
	require.NoError(t, l.Close())
	cmd := exec.Command(program, "--port", address, "--quiet", "posix", "--sidecar", filepath.Join(dir, "meta"), filepath.Join(dir, "data"))
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY=key", "ROOT_SECRET_KEY=secret")
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed, or has no port
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	for {
		select {
		case <-ended:
			return "", false
		case <-time.After(20 * time.Millisecond):
		}
		resp, err := http.Get("http://" + address + "/")
		if err == nil && resp.Body.Close() == nil && strings.HasPrefix(resp.Header.Get("Server"), "VERSITYGW") {
			return address, true
		}
	}
}

// The suite passes against a real store, over http.
func TestGateway(t *testing.T) {
	feedtest.Long(t)
	outputtest.Run(t, func(t testing.TB) (out, other publish.Output) {
		g := newGateway(t.(*testing.T))
		return g.output(t), g.output(t)
	})
}

// Documents are as they were put, and nothing is deleted by a request that comes too late
// or that is for another version.
func TestGatewayDocuments(t *testing.T) {
	g := newGateway(t)
	out := g.output(t)
	require.NoError(t, newPublisher(out).Append(t.Context(), entries(t, 1, 25)...))
	requireEntries(t, g.output(t), 25)
	c := g.client(t, "key", "secret")
	_, _, header, err := minio.Core{Client: c}.GetObject(t.Context(), bucket, prefix+"/feed.atom", minio.GetObjectOptions{})
	require.NoError(t, err)
	require.Empty(t, header.Get("Content-Encoding"))
	require.Equal(t, "application/atom+xml", header.Get("Content-Type"))

	u, err := c.Presign(t.Context(), http.MethodDelete, bucket, prefix+"/feed.atom", time.Second, nil)
	require.NoError(t, err)
	time.Sleep(3 * time.Second) // the process was frozen before it sent the request
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, u.String(), nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusForbidden, resp.StatusCode)
	_, err = fs.Stat(g.output(t), "feed.atom")
	require.NoError(t, err)

	unlock, err := out.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, out.Put(t.Context(), "gone.atom", []byte("x")))
	require.NoError(t, out.Remove(t.Context(), "gone.atom"))
	require.NoError(t, out.Remove(t.Context(), "gone.atom"))
	_, err = fs.Stat(g.output(t), "gone.atom")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, unlock())
}

// A process that is killed while it publishes leaves what the next one continues, when the
// lease has run out by the store's own clock. Every second one is frozen first, until
// another has had the lock, and comes back late.
func TestGatewayKill(t *testing.T) {
	feedtest.Long(t)
	t.Setenv(victimLease, "1s")
	g := newGateway(t)
	states, counts := map[string]string{}, map[string]int{}
	rounds, random := 2*max(1, *kills/24), feedtest.Random(0)
	for n := range rounds {
		appended := make(chan bool, 1)
		p := start(t, random, g.store, appended)
		<-appended
		time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		if n%2 == 1 {
			require.NoError(t, p.Process.Signal(syscall.SIGSTOP))
			requireFree(t, g.output(t))
			require.NoError(t, p.Process.Signal(syscall.SIGCONT))
			time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		}
		p.kill(t)
		requirePublished(t, g.store, states, p)
	}
	for _, state := range states {
		counts[state]++
	}
	t.Logf("%d kills, %d of them after the process was frozen: %v", rounds, rounds/2, counts)
	require.NotEmpty(t, states)
}

// requireFree waits until the lock is free.
func requireFree(t *testing.T, out *s3.Output) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for {
		unlock, err := out.Lock(ctx)
		if err == nil {
			require.NoError(t, unlock())
			return
		}
		require.ErrorIs(t, err, publish.ErrLocked)
		select {
		case <-ctx.Done():
			require.NoError(t, fmt.Errorf("the lock is not free: %w", err))
		case <-time.After(200 * time.Millisecond):
		}
	}
}
