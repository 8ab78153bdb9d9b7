//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/collection"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/republish"
)

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
	require.Equal(t, exit.OK, end(), says)

	// A server on another machine has the database, and not the credentials.
	require.NoError(t, os.Rename(db+".credentials", db+".elsewhere"))
	base, says, end = history(t, args...)
	hidden()
	require.Equal(t, exit.OK, end(), says)
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
		require.Equal(t, map[string]int{"fetch": exit.OK, "wrong": exit.Failed}[name], status, stderr)
		require.Equal(t, map[string]int{"fetch": 120, "wrong": 0}[name], strings.Count(stdout, "\n"))
	}
	require.Equal(t, exit.OK, end(), says)

	base, says, end = history(t, args...)
	require.Contains(t, says.String(), "1 feed that needs credentials is not shown")
	hidden()
	status, _ = pageFor(t, archive[1], "")
	require.Equal(t, http.StatusNotFound, status, "what was published for those who have the token")
	done(t, "", "rm", "--db", db, feed)
	status, _ = pageFor(t, archive[1], "")
	require.Equal(t, http.StatusNotFound, status, "of a feed that the mirror has no more")
	require.Equal(t, exit.OK, end(), says)
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
		for url := range keys.Feeds {
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
	status, _, stderr := call(t.Context(), "", "harvest", "--db", harvested, "--protocol", collection.ModifiedRange, "--user", "ann", site+"/range.atom")
	require.Contains(t, []int{exit.OK, exit.Partial}, status, stderr)
	require.Equal(t, []string{site + "/range.atom"}, private(harvested))

	// A public feed stays public, whatever else is read.
	done(t, "", "rm", "--db", db, "https://example.org/moved.atom")
	require.Empty(t, private(db))
}
