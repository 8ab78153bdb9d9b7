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

	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/protocols"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/examples/site"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/republish"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// listen puts an address on which nobody listens into the environment as ADDR.
func listen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: listen")
	}
	ts.Setenv("ADDR", freeAddress())
}

// reach ADDRESS waits until a server answers there.
func reach(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: reach ADDRESS")
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if answers(args[0]) {
			return
		}
	}
	ts.Fatalf("nobody answers on %s", args[0])
}

// answers reports whether a server answers at an address. A server that only listens does
// not serve yet: an interrupt would end it before it does.
func answers(address string) bool {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := client.Head("http://" + address + "/")
	return err == nil && resp.Body.Close() == nil && resp.StatusCode != http.StatusServiceUnavailable
}

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
	file := filepath.Join(t.TempDir(), "feeds.db")
	args := []string{"--allow-private", "--db", file, "--listen"}
	base, says, end := history(t, append(args, "127.0.0.1:0")...)
	require.Contains(t, says.String(), file+" is a new database: ")
	require.Contains(t, says.String(), "the feeds of "+file+" at "+base)
	require.Contains(t, pageAt(t, base), "No feeds yet.")

	resp, err := http.PostForm(base+"feeds", url.Values{"url": {publisher + site.Archived}})
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	feed := strings.TrimPrefix(resp.Request.URL.Path, "/")
	require.Eventually(t, func() bool { return strings.Contains(pageAt(t, base+feed), ">whole</span>") }, patience, 20*time.Millisecond)
	status, want, _ := call(t.Context(), "", "fetch", publisher+site.Archived, "--allow-private", "--format", "json")
	require.Equal(t, terminal.ExitOK, status)
	status, got, stderr := call(t.Context(), "", "fetch", base+feed+"/index.atom", "--allow-private", "--format", "json")
	require.Equal(t, terminal.ExitOK, status, stderr)
	ids := regexp.MustCompile(`"id":"[^"]+"`)
	require.ElementsMatch(t, ids.FindAllString(want, -1), ids.FindAllString(got, -1))
	status, _, stderr = call(t.Context(), "", "check", "--chain", "--allow-private", base+feed+"/index.atom")
	require.Equal(t, terminal.ExitOK, status, stderr)
	index := pageAt(t, base+feed+"/index.atom")
	require.Equal(t, terminal.ExitOK, end(), says)

	again, says, end := history(t, append(args, strings.TrimSuffix(strings.TrimPrefix(base, "http://"), "/"))...)
	require.Equal(t, base, again)
	require.NotContains(t, says.String(), "new database")
	require.Equal(t, index, pageAt(t, base+feed+"/index.atom"))
	require.Equal(t, terminal.ExitOK, end(), says)
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
	require.Equal(t, terminal.ExitOK, end())
}

func TestServeUsage(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	file, mistyped := filepath.Join(t.TempDir(), "feeds.db"), filepath.Join(t.TempDir(), "feds")
	for _, test := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--db", file, "--base", "https://example.org/path?x=y"}, terminal.ExitUsage, "--base: give the URL of the server"},
		{[]string{"--db", file, "--base", "example.org"}, terminal.ExitUsage, "--base: give the URL of the server"},
		{[]string{t.TempDir(), "--base", "https://example.org"}, terminal.ExitUsage, "leave out DIR"},
		{[]string{t.TempDir(), "--name", "example.org"}, terminal.ExitUsage, "leave out DIR"},
		{[]string{"--db", "https://example.org", "--listen", taken.Addr().String()}, terminal.ExitUsage, "--db: a file, or a postgres:// URL"},
		{[]string{"--db", file, "--trusted-proxy", "proxy.example"}, terminal.ExitUsage, "--trusted-proxy: proxy.example: give an IP address"},
		{[]string{t.TempDir(), "--trusted-proxy", "127.0.0.1"}, terminal.ExitUsage, "leave out DIR"},
		{[]string{"--db", t.TempDir(), "--listen", taken.Addr().String()}, terminal.ExitFailed, "the file cannot be opened"},
		{[]string{"--db", filepath.Join(mistyped, "feeds.db"), "--listen", "127.0.0.1:0"}, terminal.ExitFailed, "there is no directory " + mistyped},
		{[]string{"--db", file, "--listen", taken.Addr().String()}, terminal.ExitFailed, "address already in use"},
	} {
		status, _, stderr := call(t.Context(), "", append([]string{"serve"}, test.args...)...)
		require.Equal(t, test.status, status, "%s: %s", test.args, stderr)
		require.Contains(t, stderr, test.says)
	}
	require.NoFileExists(t, file)
	require.NoDirExists(t, mistyped)
}

// A server behind a proxy has a token, too, and says when one is short.
func TestServeBehindProxy(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	for _, flags := range [][]string{{"--base", "https://feeds.example/"}, {"--trusted-proxy", "127.0.0.1"}} {
		_, says, end := history(t, append(flags, "--db", filepath.Join(t.TempDir(), "feeds.db"), "--listen", "127.0.0.1:0")...)
		require.Contains(t, says.String(), "the token for changes is ")
		require.NotContains(t, says.String(), "can be guessed")
		require.Equal(t, terminal.ExitOK, end())
	}
	_, says, end := history(t, "--token", "anchor", "--db", filepath.Join(t.TempDir(), "feeds.db"), "--listen", "127.0.0.1:0")
	require.Contains(t, says.String(), "--token is so short that it can be guessed")
	require.Equal(t, terminal.ExitOK, end())
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
	require.Equal(t, terminal.ExitOK, end(), says)
	require.Empty(t, holds(t, data, "xylosecret"))
}

// secretFeeds serves an archived feed, at any path, to clients that log in.
func secretFeeds(t *testing.T) string {
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ann" || password != "s3cret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `<feed xmlns="http://www.w3.org/2005/Atom"><title>Secret plans</title><id>urn:f</id><updated>2003-03-01T00:00:00Z</updated><author><name>A</name></author>`)
		for n := range 120 {
			fmt.Fprintf(w, `<entry><id>urn:%d</id><title>Secret %d</title><updated>%s</updated><content>Hush</content></entry>`, n, n,
				time.Date(2003, 1, 1, n, 0, 0, 0, time.UTC).Format(time.RFC3339))
		}
		fmt.Fprint(w, `</feed>`)
	}))
	return server.URL
}

// pageFor requests a page of the history server with a password.
func pageFor(t *testing.T, url, password string) (status int, body string) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if password != "" {
		r.SetBasicAuth("reader", password)
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

var tokenLine = regexp.MustCompile(`the token for reading and changes is (\S+)`)

// Private feeds are shown and published again where reading needs the token, and by
// no other server of the same mirror: before, meanwhile or afterwards.
func TestServePrivate(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	t.Setenv("FEEDHISTORY_PASSWORD", "s3cret")
	t.Setenv("FEEDHISTORY_ALLOW_PRIVATE", "true")
	feed := secretFeeds(t) + "/feed.atom"
	db := filepath.Join(t.TempDir(), "feeds.db")
	address := freeAddress()
	args := []string{"--db", db, "--listen", address, "--base", "http://" + address + "/"}
	name := "feeds/" + republish.Name(feed)

	// It becomes known while a public server runs.
	base, says, end := history(t, args...)
	done(t, "", "sync", "--db", db, "--user", "ann", feed)
	hidden := func(paths ...string) {
		for _, path := range append(paths, "", "entries", "overview", "feeds.opml", "feeds.opml?mirrored") {
			status, body := pageFor(t, base+path, "")
			require.Equal(t, http.StatusOK, status, path)
			require.NotContains(t, body, "ecret", path)
			require.NotContains(t, body, feed, path)
		}
		for _, path := range []string{"", "/index.atom", "/index.rss", "/complete.atom", "/slice.atom", "/replay.atom", "/entry?id=urn:1", "/subscribe"} {
			status, body := pageFor(t, base+name+path, "")
			require.Equal(t, http.StatusNotFound, status, path)
			require.NotContains(t, body, "ecret", path)
		}
	}
	hidden()
	require.Equal(t, terminal.ExitOK, end(), says)

	// A server on another machine has the database, and not the credentials.
	require.NoError(t, os.Rename(db+".credentials", db+".elsewhere"))
	base, says, end = history(t, args...)
	hidden()
	require.Equal(t, terminal.ExitOK, end(), says)
	require.Contains(t, done(t, "", "export", "--raw", "--db", db), `"private":true,"state"`)
	require.NoError(t, os.Rename(db+".elsewhere", db+".credentials"))

	base, says, end = history(t, append(args, "--private")...)
	token := tokenLine.FindStringSubmatch(says.String())
	require.NotNil(t, token, says)
	require.NotContains(t, says.String(), "not shown")
	status, body := pageFor(t, base+name+"/index.atom", "")
	require.Equal(t, http.StatusUnauthorized, status)
	require.NotContains(t, body, "ecret")
	status, body = pageFor(t, base+name+"/index.atom", token[1])
	require.Equal(t, http.StatusOK, status, body)
	archive := regexp.MustCompile(`rel="prev-archive" href="([^"]*)"`).FindStringSubmatch(body)
	require.NotNil(t, archive, body)
	status, body = pageFor(t, archive[1], token[1])
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "Secret 1")
	status, _ = pageFor(t, archive[1], "")
	require.Equal(t, http.StatusUnauthorized, status)
	for name, password := range map[string]string{"fetch": token[1], "wrong": "x"} {
		t.Setenv("FEEDHISTORY_PASSWORD", password)
		status, stdout, stderr := call(t.Context(), "", "fetch", "--user", "any", base+"feeds/"+republish.Name(feed)+"/index.atom")
		require.Equal(t, map[string]int{"fetch": terminal.ExitOK, "wrong": terminal.ExitFailed}[name], status, stderr)
		require.Equal(t, map[string]int{"fetch": 120, "wrong": 0}[name], strings.Count(stdout, "\n"))
	}
	require.Equal(t, terminal.ExitOK, end(), says)

	base, says, end = history(t, args...)
	require.Contains(t, says.String(), "1 feed that needs credentials is not shown")
	hidden()
	status, _ = pageFor(t, archive[1], "")
	require.Equal(t, http.StatusNotFound, status, "what was published for those who have the token")
	done(t, "", "rm", "--db", db, feed)
	status, _ = pageFor(t, archive[1], "")
	require.Equal(t, http.StatusNotFound, status, "of a feed that the mirror has no more")
	require.Equal(t, terminal.ExitOK, end(), says)
	info, err := os.Stat(db + ".published.private")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

// A feed that was read with credentials in any way stays private: with a password from a
// netrc file, harvested, moved, or imported from another mirror.
func TestStaysPrivate(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	site := secretFeeds(t)
	dir := t.TempDir()
	db := filepath.Join(dir, "feeds.db")
	netrc := filepath.Join(dir, "netrc")
	require.NoError(t, os.WriteFile(netrc, []byte("machine 127.0.0.1 login ann password s3cret\n"), 0o600))
	for name, value := range map[string]string{"FEEDHISTORY_PASSWORD": "s3cret", "FEEDHISTORY_ALLOW_PRIVATE": "true", "NETRC": netrc} {
		t.Setenv(name, value)
	}
	private := func(db string) (urls []string) {
		keys, err := (&database.Location{DB: db}).Keyring()
		require.NoError(t, err)
		feeds, err := keys.Load()
		require.NoError(t, err)
		for url := range feeds {
			urls = append(urls, url)
		}
		return urls
	}
	done(t, "", "sync", "--db", db, "--netrc", site+"/netrc.atom")
	require.Equal(t, []string{site + "/netrc.atom"}, private(db))
	text := feedtest.ReadFile(t, db+".credentials")
	require.NotContains(t, string(text), "Basic", "what the netrc file has is not copied")
	done(t, "", "move", "--db", db, site+"/netrc.atom", "https://example.org/moved.atom")
	require.Equal(t, []string{"https://example.org/moved.atom"}, private(db))

	other := filepath.Join(dir, "other.db")
	done(t, done(t, "", "export", "--db", db, "--raw"), "import", "--db", other)
	require.Equal(t, []string{"https://example.org/moved.atom"}, private(other))
	done(t, done(t, "", "fetch", "--raw", "--user", "ann", site+"/fetched.atom"), "import", "--db", other)
	require.Contains(t, private(other), site+"/fetched.atom")

	harvested := filepath.Join(dir, "harvested.db")
	status, _, stderr := call(t.Context(), "", "harvest", "--db", harvested, "--protocol", protocols.ModifiedRange, "--user", "ann", site+"/range.atom")
	require.Contains(t, []int{terminal.ExitOK, terminal.ExitPartial}, status, stderr)
	require.Equal(t, []string{site + "/range.atom"}, private(harvested))

	// A public feed stays public, whatever else is read.
	done(t, "", "rm", "--db", db, "https://example.org/moved.atom")
	require.Empty(t, private(db))
}
