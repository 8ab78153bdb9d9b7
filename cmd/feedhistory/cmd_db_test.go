package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
	"github.com/feedhistory/feedhistory/mirror/sqlstore/pgtest"
	"github.com/feedhistory/feedhistory/republish"
	"github.com/stretchr/testify/require"
)

// The scripts that write mirrored feeds also run on PostgreSQL. In a long run, those that only
// read them do, too: the suite of stores has their questions.
func TestScriptsOnPostgreSQL(t *testing.T) {
	feedtest.Long(t)
	t.Parallel()
	names := []string{"sync", "synckill", "move"}
	if feedtest.LongRun() {
		names = append(names, "syncevery", "list", "entries", "export")
	}
	server, empty := postgres(t), emptyStore(t)
	runScripts(t, func() string { return server.Copy(t, empty) }, names...)
}

// Without a word about it, they run behind a pooler, too. Its statement mode has no transactions.
// In a run that is not long, it is the script that writes most.
func TestScriptsBehindPooler(t *testing.T) {
	feedtest.Required(t, "FEEDHISTORY_PGBOUNCER")
	t.Parallel()
	names := []string{"sync"}
	if feedtest.LongRun() {
		names = append(names, "syncevery", "list", "entries", "export")
	}
	server := postgres(t)
	site := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(manyEntries(t, feedhistory.FormatAtom, 3)))
	}))
	for _, mode := range []string{"session", "transaction"} {
		t.Run(mode, func(t *testing.T) {
			runScripts(t, func() string { return server.Pooled(t, server.Database(t), mode) }, names...)
			db := server.Pooled(t, server.Database(t), mode)
			done(t, "", "sync", "--db", db, "--allow-private", site.URL)
			base, _, end := history(t, "--db", db, "--allow-private", "--listen", "127.0.0.1:0", "--published", t.TempDir())
			feed := base + "feeds/" + republish.Name(site.URL)
			for _, page := range []string{feed, feed + "/index.atom", feed + "/index.rss", feed + "/complete.atom", base + "entries?q=entry"} {
				require.Contains(t, pageAt(t, page), "Entry", page)
			}
			require.Zero(t, end())
		})
	}
	t.Run("statement", func(t *testing.T) {
		db := server.Pooled(t, server.Database(t), "statement")
		for _, args := range [][]string{{"sync", "--db", db, site.URL}, {"serve", "--db", db, "--listen", "127.0.0.1:0"}} {
			status, _, stderr := call(t.Context(), "", args...)
			require.Equal(t, terminal.ExitFailed, status, args)
			require.Contains(t, stderr, "the pooler has no transactions: PgBouncer's pool_mode must be session or transaction\n", args)
		}
	})
}

// All tests share a server, which the first of them starts, and TestMain stops.
var (
	startPostgres = sync.OnceValues(func() (server *pgtest.Server, err error) {
		if server, err = pgtest.Start(); err == nil {
			stopPostgres = server.Stop
		}
		return server, err
	})
	stopPostgres func() error
)

// postgres returns the server, or skips the test if there is none.
func postgres(t *testing.T) *pgtest.Server {
	server, err := startPostgres()
	if !errors.Is(err, pgtest.ErrMissing) {
		require.NoError(t, err)
	}
	server.Database(t) // skips without a server
	return server
}

// emptyStore returns the URL of a database with the tables of a mirror, to be copied. Behind
// the pooler, the command makes them itself.
func emptyStore(t *testing.T) string {
	url := postgres(t).Database(t)
	db, err := sql.Open("pgx", url)
	require.NoError(t, err)
	_, err = sqlstore.Open(t.Context(), db, sqlstore.PostgreSQL)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	return url
}

// On a server that cannot be written to, a replica for instance, everything can be read and
// searched. Nothing is polled that cannot be stored.
func TestReadOnlyServer(t *testing.T) {
	feedtest.Long(t)
	t.Parallel()
	dsn := postgres(t).Database(t)
	var polls atomic.Int64
	site := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `<rss version="2.0"><channel><title>F</title><item><guid>urn:%d</guid><title>Whale</title></item></channel></rss>`, polls.Add(1))
	}))
	status, _, stderr := call(t.Context(), "", "sync", "--db", dsn, "--allow-private", site.URL)
	require.Zero(t, status, stderr)
	frozen := dsn + "&options=-c%20default_transaction_read_only%3Don"
	for _, args := range [][]string{{"sync", "--all"}, {"sync", "--allow-private", site.URL}, {"sync", site.URL + "/new"}, {"rm", site.URL}, {"erase", "urn:1"}} {
		status, _, stderr := call(t.Context(), "", append(args, "--db", frozen)...)
		require.Equal(t, terminal.ExitFailed, status, args)
		require.Contains(t, stderr, ": the store is open for reading only: the server is a replica, or its user may not write; nothing was polled or changed\n", args)
	}
	for _, args := range [][]string{{"list"}, {"entries"}, {"entries", "--search", "whale"}, {"db", "check"}} {
		status, stdout, stderr := call(t.Context(), "", append(args, "--db", frozen)...)
		require.Zero(t, status, stderr)
		require.NotEmpty(t, stdout)
	}
	base, _, end := history(t, "--db", frozen, "--allow-private", "--listen", "127.0.0.1:0", "--published", t.TempDir())
	for path, want := range map[string]int{"/": http.StatusOK, "/entries?q=whale": http.StatusOK} {
		resp, err := http.Get(base + path[1:])
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, errors.Join(err, resp.Body.Close()))
		require.Equal(t, want, resp.StatusCode, path)
		require.NotContains(t, string(body), "went wrong")
	}
	resp, err := http.PostForm(base+"feeds", url.Values{"url": {site.URL + "/new"}})
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, errors.Join(err, resp.Body.Close()))
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	require.Contains(t, string(body), "can only be read")
	require.Equal(t, 0, end())
	require.EqualValues(t, 1, polls.Load())
}

// A database opened for reading only is enough to serve its feeds again; only to remove one
// is an error.
func TestRepublishReader(t *testing.T) {
	t.Parallel()
	site := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(manyEntries(t, feedhistory.FormatAtom, 3)))
	}))
	db := filepath.Join(t.TempDir(), "feeds.db")
	status, _, stderr := call(t.Context(), "", "sync", "--db", db, "--allow-private", site.URL)
	require.Zero(t, status, stderr)
	store, err := (&database.Location{DB: db}).Read(&command.World{Ctx: t.Context()})
	require.NoError(t, err)
	defer store.Close()
	h := &republish.Handler{Store: store}
	for _, document := range []string{"index.atom", "index.rss", "complete.atom", "slice.atom?since=1970-01-01", "replay.atom?start=2020-01-01&every=1d"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/feeds/"+republish.Name(site.URL)+"/"+document, nil))
		require.Equal(t, http.StatusOK, w.Code, "%s: %s", document, w.Body)
		require.Contains(t, w.Body.String(), "urn:3", document)
	}
	require.NoError(t, h.Reserve(t.Context(), site.URL))
	require.NoError(t, h.Prepare(t.Context(), site.URL, 1))
	require.ErrorIs(t, h.Remove(t.Context(), site.URL), sqlstore.ErrReadOnly)
}

// damagedStore makes a database with a whole feed of three entries, of which one is
// damaged, and returns the feed's URL.
func damagedStore(t *testing.T, db string) string {
	store, url := mirrored(t, manyEntries(t, feedhistory.FormatAtom, 3))
	f, err := store.Feed(t.Context(), url)
	require.NoError(t, err)
	require.Equal(t, feedhistory.VerdictWhole, f.Verdict)
	change := &mirror.Commit{Feed: f}
	f.Commits, f.Next = 0, time.Now().Add(time.Hour)
	for r, err := range store.Entries(t.Context(), mirror.Query{Feed: url}) {
		require.NoError(t, err)
		if r.ID == "urn:2" {
			r.Content.Data = "<entry"
		}
		change.Put = append(change.Put, r)
	}
	to := created(t, db)
	require.NoError(t, to.Commit(t.Context(), change))
	require.NoError(t, to.Close())
	return url
}

// An entry that cannot be read is named; the others are shown, and nothing says that they
// are all.
func TestDamagedEntryIsNamed(t *testing.T) {
	db := filepath.Join(t.TempDir(), "feeds.db")
	url := damagedStore(t, db)
	for _, args := range [][]string{
		{"entries"}, {"entries", "--json"}, {"entries", "-l"}, {"export"}, {"export", "--format", "csv"}, {"export", "--format", "json", url},
		{"export", "--format", "atom", url}, {"export", "--format", "rss", url}, {"export", "--format", "greader"}, {"export", "--format", "nextcloud"},
	} {
		t.Run(strings.Join(args[:min(3, len(args))], " "), func(t *testing.T) {
			status, stdout, stderr := call(t.Context(), "", append(args, "--db", db)...)
			require.Equal(t, terminal.ExitPartial, status, stderr)
			require.Contains(t, said(stderr), "the entry urn:2 cannot be read, and is left out")
			require.Contains(t, stdout, "Entry")
			if !strings.Contains(strings.Join(args, " "), "atom") && !strings.Contains(strings.Join(args, " "), "rss") {
				return
			}
			doc, err := feedhistory.Parse(strings.NewReader(stdout), url)
			require.NoError(t, err)
			require.False(t, doc.Complete)
			require.Equal(t, feedhistory.VerdictPartial, doc.Coverage.Verdict)
			require.NotEmpty(t, doc.Declared())
		})
	}
	require.Contains(t, done(t, "", "export", "--raw", "--db", db), `"data":"<entry"`)
}

// What a mirror does not have as a whole is read back with the same verdict.
func TestExportCarriesTheVerdict(t *testing.T) {
	for name, change := range map[string]func(f *mirror.Feed){
		"lossy":  func(f *mirror.Feed) { f.Verdict, f.Kind = feedhistory.VerdictLossy, feedhistory.KindPaged },
		"window": func(f *mirror.Feed) { f.Verdict, f.Kind = feedhistory.VerdictWindow, feedhistory.KindPlain },
		"whole":  func(*mirror.Feed) {},
		"whole of then": func(f *mirror.Feed) {
			f.Kind, f.Source = feedhistory.KindPlain, "x"
			require.NoError(t, json.Unmarshal([]byte(`{"as_of":"2024-05-06T07:08:09Z"}`), &f.Ledger))
		},
	} {
		for _, format := range []string{"atom", "rss"} {
			t.Run(name+" "+format, func(t *testing.T) {
				db := filepath.Join(t.TempDir(), "feeds.db")
				store, url := mirrored(t, manyEntries(t, feedhistory.FormatAtom, 3))
				f, err := store.Feed(t.Context(), url)
				require.NoError(t, err)
				change(f)
				want, at := f.Verdict, f.WholeAsOf()
				to := created(t, db)
				f.Commits = 0
				require.NoError(t, to.Commit(t.Context(), &mirror.Commit{Feed: f}))
				require.NoError(t, to.Close())
				doc, err := feedhistory.Parse(strings.NewReader(done(t, "", "export", "--db", db, "--format", format, url)), url)
				require.NoError(t, err)
				h, err := feedhistory.Merge(feedhistory.Readings(doc))
				require.NoError(t, err)
				require.Equal(t, want, h.Verdict())
				if at.IsZero() {
					require.True(t, doc.Coverage == nil || doc.Coverage.AsOf.IsZero())
				} else {
					require.Equal(t, at, doc.Coverage.AsOf)
				}
			})
		}
	}
}

// created returns a new database.
func created(t *testing.T, db string) *database.Store {
	store, err := (&database.Location{DB: db}).Create(&command.World{Ctx: t.Context()})
	require.NoError(t, err)
	return store
}
