package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/examples/site"
	"github.com/feedhistory/feedhistory/republish"
)

// A lockedBuffer can be read while it is written to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var siteLine = regexp.MustCompile(`at (http://\S+/)\n`)

// history starts the history server and returns its URL, what it says, and what
// ends it and returns its status.
func history(t *testing.T, args ...string) (base string, says *lockedBuffer, end func() int) {
	ctx, cancel := context.WithCancel(t.Context())
	says = &lockedBuffer{}
	status := make(chan int, 1)
	go func() {
		status <- run(ctx, append([]string{"serve"}, args...), strings.NewReader(""), io.Discard, says)
	}()
	require.Eventually(t, func() bool {
		found := siteLine.FindStringSubmatch(says.String())
		if found != nil {
			base = found[1]
		}
		return found != nil || len(status) > 0
	}, patience, 10*time.Millisecond)
	require.NotEmpty(t, base, says)
	resp, err := http.Get(base) // which is answered when all has been said
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return base, says, func() int {
		cancel()
		return <-status
	}
}

func pageAt(t *testing.T, url string) string {
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}

// From an empty file to a feed with its whole history, which another instance
// reads; after a restart everything is where it was.
func TestServeHistory(t *testing.T) {
	_, publisher, stop := site.Start()
	defer stop()
	defer http.DefaultClient.CloseIdleConnections()
	file := filepath.Join(t.TempDir(), "new", "feeds.db")
	args := []string{"--allow-private", "--db", file, "--listen", freeAddress()}
	base, says, end := history(t, args...)
	require.Contains(t, says.String(), "the feeds of "+file+" at "+base)
	require.Contains(t, pageAt(t, base), "No feeds yet.")

	resp, err := http.PostForm(base+"feeds", url.Values{"url": {publisher + site.Archived}})
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	feed := strings.TrimPrefix(resp.Request.URL.Path, "/")
	require.Eventually(t, func() bool { return strings.Contains(pageAt(t, base+feed), ">whole</span>") }, patience, 20*time.Millisecond)
	status, want, _ := call(t.Context(), "", "fetch", publisher+site.Archived, "--allow-private", "--format", "json")
	require.Equal(t, exit.OK, status)
	status, got, stderr := call(t.Context(), "", "fetch", base+feed+"/index.atom", "--allow-private", "--format", "json")
	require.Equal(t, exit.OK, status, stderr)
	ids := regexp.MustCompile(`"id":"[^"]+"`)
	require.ElementsMatch(t, ids.FindAllString(want, -1), ids.FindAllString(got, -1))
	status, _, stderr = call(t.Context(), "", "check", "--chain", "--allow-private", base+feed+"/index.atom")
	require.Equal(t, exit.OK, status, stderr)
	index := pageAt(t, base+feed+"/index.atom")
	require.Equal(t, exit.OK, end(), says)

	again, says, end := history(t, args...)
	require.Equal(t, base, again)
	require.Equal(t, index, pageAt(t, base+feed+"/index.atom"))
	require.Equal(t, exit.OK, end(), says)
	published, err := fs.Glob(os.DirFS(file+".published"), "*/*/index.atom")
	require.NoError(t, err)
	require.Len(t, published, 1)
}

// A history server that other machines can reach has a token.
func TestServeHistoryToken(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	file := filepath.Join(t.TempDir(), "feeds.db")
	base, says, end := history(t, "--db", file, "--listen", "0.0.0.0:0", "--name", "mirror.example")
	token := regexp.MustCompile(`the token for changes is (\S+)`).FindStringSubmatch(says.String())
	require.NotNil(t, token, says)
	require.Contains(t, says.String(), "other machines can reach this server and read")
	for host, want := range map[string]int{"mirror.example:1": http.StatusOK, "192.0.2.1": http.StatusOK, "evil.example": http.StatusMisdirectedRequest} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base, nil)
		require.NoError(t, err)
		r.Host = host
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, resp.StatusCode, host)
	}
	for bearer, want := range map[string]int{"": http.StatusUnauthorized, token[1]: http.StatusUnprocessableEntity} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"feeds", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+bearer)
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, resp.StatusCode)
	}
	require.Equal(t, exit.OK, end())
}

func TestServeUsage(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "feeds.db")
	for _, test := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--db", file, "--base", "https://example.org/path?x=y"}, exit.Usage, "--base: give the URL of the server"},
		{[]string{"--db", file, "--base", "example.org"}, exit.Usage, "--base: give the URL of the server"},
		{[]string{t.TempDir(), "--base", "https://example.org"}, exit.Usage, "leave out DIR"},
		{[]string{t.TempDir(), "--name", "example.org"}, exit.Usage, "leave out DIR"},
		{[]string{"--db", "https://example.org"}, exit.Usage, "--db: a file, or a postgres:// URL"},
		{[]string{"--db", t.TempDir()}, exit.Failed, "the file cannot be opened"},
		{[]string{"--db", file, "--listen", taken.Addr().String()}, exit.Failed, "address already in use"},
	} {
		status, _, stderr := call(t.Context(), "", append([]string{"serve"}, test.args...)...)
		require.Equal(t, test.status, status, "%s: %s", test.args, stderr)
		require.Contains(t, stderr, test.says)
	}
}

// An entry that is erased while the history server runs disappears from its pages and its
// documents, even if the server has shown it before.
func TestServeErased(t *testing.T) {
	t.Setenv("FEEDHISTORY_ALLOW_PRIVATE", "true")
	defer http.DefaultClient.CloseIdleConnections()
	dir, url := serveDirectory(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "feed.atom"), fmt.Appendf(nil, feedWithSecret, 1, 1), 0o600))
	data := t.TempDir()
	db := filepath.Join(data, "feeds.db")
	done(t, "", "sync", "--db", db, url+"/feed.atom")
	base, says, end := history(t, "--db", db, "--listen", "127.0.0.1:0")
	name := "feeds/" + republish.Name(url+"/feed.atom")
	shown := func() (on []string) {
		for _, path := range []string{
			name, name + "/entry?id=urn:1", name + "/index.atom", name + "/index.rss", name + "/complete.atom", name + "/slice.atom",
			name + "/slice.rss", name + "/replay.atom?start=2020-01-01&every=1d", name + "/day?date=2003-01-01", "entries", "overview",
		} {
			if strings.Contains(strings.ToLower(pageAt(t, base+path)), "xylosecret") {
				on = append(on, strings.TrimPrefix(path, name))
			}
		}
		return on
	}
	require.Subset(t, shown(), []string{"", "/entry?id=urn:1", "/index.atom", "/index.rss", "/complete.atom", "/slice.atom", "/replay.atom?start=2020-01-01&every=1d", "entries"})
	done(t, "", "erase", "--db", db, "urn:1")
	require.Empty(t, shown())
	require.Empty(t, holds(t, data, "xylosecret"))
	require.Equal(t, exit.OK, end(), says)
	require.Empty(t, holds(t, data, "xylosecret"))
}
