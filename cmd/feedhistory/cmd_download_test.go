package main

import (
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A podcast whose host signs the addresses of episodes again at each poll, and refuses the
// signatures of other days: over four days each episode is downloaded once, no entry has
// changed, none has an earlier version, and the newest addresses are those given out.
func TestResignedEpisodes(t *testing.T) {
	feedtest.Long(t)
	var day, downloads, refused atomic.Int64
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		today := fmt.Sprintf("token-time=%d&token-hash=hash%d", 1_700_000_000+day.Load()*86400, day.Load())
		switch {
		case r.URL.Path == "/pod.rss":
			_, _ = fmt.Fprint(w, `<rss version="2.0"><channel><title>Pod</title>`)
			for n := 2 + day.Load(); n > 0; n-- { // a new episode each day
				_, _ = fmt.Fprintf(w, `<item><guid isPermaLink="false">%d</guid><title>Episode %d</title><pubDate>%s</pubDate><enclosure url="/%d/1.mp3?%s" length="9" type="audio/mpeg"/></item>`,
					n, n, time.Date(2003, 12, int(n), 0, 0, 0, 0, time.UTC).Format(time.RFC1123Z), n, strings.ReplaceAll(today, "&", "&amp;"))
			}
			_, _ = fmt.Fprint(w, `</channel></rss>`)
		case r.URL.RawQuery != today:
			refused.Add(1)
			http.Error(w, "Expired URL", http.StatusForbidden)
		default:
			downloads.Add(1)
			_, _ = fmt.Fprint(w, "episode "+r.URL.Path[1:2])
		}
	}))
	dir := t.TempDir()
	db, out, url := filepath.Join(dir, "feeds.db"), filepath.Join(dir, "pod"), server.URL+"/pod.rss"
	for range 4 {
		episodes := 2 + day.Add(1)
		added := 1
		if day.Load() == 1 {
			added = 3
		}
		status, stdout, stderr := call(t.Context(), "", "sync", "--db", db, "--allow-private", "--json", url)
		require.Zero(t, status, stderr)
		require.Contains(t, stdout, fmt.Sprintf(`"added":%d,"changed":0,`, added))
		status, _, stderr = call(t.Context(), "", "download", "--db", db, "--allow-private", "--out", out)
		require.Zero(t, status, stderr)
		require.Equal(t, episodes, downloads.Load())
	}
	files, err := os.ReadDir(out)
	require.NoError(t, err)
	require.Len(t, files, 6)
	_, stdout, _ := call(t.Context(), "", "entries", "--db", db, "--enclosures")
	require.Equal(t, 6, strings.Count(stdout, "hash4"), stdout)
	conn, err := sql.Open("sqlite", "file:"+db)
	require.NoError(t, err)
	defer conn.Close()
	var versions int
	require.NoError(t, conn.QueryRow("SELECT count(*) FROM feedhistory_versions").Scan(&versions))
	require.Zero(t, versions)

	// An episode that is damaged is downloaded again from its newest address.
	require.NoError(t, os.WriteFile(filepath.Join(out, "2003-12-01 Episode 1.mp3"), []byte("episode X"), 0o600))
	status, _, stderr := call(t.Context(), "", "download", "--db", db, "--allow-private", "--out", out, "--verify", "--again")
	require.Zero(t, status, stderr)
	require.EqualValues(t, 7, downloads.Load())
	require.Zero(t, refused.Load())
}
