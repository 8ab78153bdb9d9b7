package database_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

func TestMain(m *testing.M) { feedtest.Main(m) }

// No password is in what people are told.
func TestPlace(t *testing.T) {
	for address, want := range map[string]string{
		"postgres://ann:s3cret@db.example:5433/feeds?password=s3cret": "postgres://db.example:5433/feeds",
		"postgresql://localhost/feeds":                                "postgresql://localhost/feeds",
		"postgres://ann:s3cret%zz@db/feeds":                           "the PostgreSQL database",
	} {
		d := database.Location{DB: address}
		require.True(t, d.IsPostgres())
		require.Equal(t, want, d.Place())
	}
	require.False(t, (&database.Location{DB: "feeds.db"}).IsPostgres())
}

// The errors of a PostgreSQL server, and those of the driver without a type, are explained.
func TestFailure(t *testing.T) {
	d := database.Location{DB: "postgres://ann:s3cret@127.0.0.1:1/feeds"}
	_, refused := pgx.Connect(t.Context(), d.DB)
	for _, test := range []struct {
		err  error
		want string
	}{
		{&pgconn.PgError{Code: "28P01", Message: "password authentication failed"}, "the server refuses the user or the password"},
		{&pgconn.PgError{Code: "53100"}, "the server's disk is full; nothing stored is lost: make room, and run the command again"},
		{&pgconn.PgError{Code: "3D000"}, "there is no such database on the server; createdb makes one"},
		{&pgconn.PgError{Code: "42501", Message: "permission denied"}, "the user may not do this: permission denied"},
		{&pgconn.PgError{Code: "XX000", Message: "odd"}, "odd"},
		{pgconn.NewParseConfigError("s3cret", "s3cret", errors.New("no port")), "this is not the URL of a PostgreSQL database: no port"},
		{pgconn.NewParseConfigError("s3cret", "s3cret", nil), "this is not the URL of a PostgreSQL database"},
		{errors.New("sqlstore: CString: cannot allocate 4667 bytes"), "there is not enough memory; nothing stored is lost: allow more (ulimit -d, or MemoryMax), and run the command again"},
		{refused, "the server cannot be reached: connect: connection refused; is it running, and is the address right?"},
	} {
		require.EqualError(t, d.Failure(test.err), "postgres://127.0.0.1:1/feeds: "+test.want)
	}
}

// The record of downloads that earlier versions kept goes when the database is opened.
func TestDownloadsGo(t *testing.T) {
	d := database.Location{DB: filepath.Join(t.TempDir(), "feeds.db")}
	w := &command.World{Ctx: t.Context()}
	store, err := d.Create(w)
	require.NoError(t, err)
	_, err = store.DB.Exec("CREATE TABLE feedhistory_downloads (key TEXT PRIMARY KEY); INSERT INTO feedhistory_downloads VALUES ('x')")
	require.NoError(t, errors.Join(err, store.Close()))
	store, err = d.Open(w)
	require.NoError(t, err)
	defer store.Close()
	_, err = store.DB.Exec("SELECT * FROM feedhistory_downloads")
	require.ErrorContains(t, err, "no such table")
}

// The login of a feed that a killed process was about to add goes; that of one it has added stays.
func TestAdding(t *testing.T) {
	d, w := database.Location{DB: filepath.Join(t.TempDir(), "feeds.db")}, &command.World{Ctx: t.Context()}
	store, err := d.Create(w)
	require.NoError(t, err)
	const there, added, lost, done = "http://a.example/there", "http://a.example/added", "http://a.example/lost", "http://a.example/done"
	subscribe := func(feed string) {
		require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: mirror.NewFeed(feed)}))
	}
	subscribe(there)
	_, err = store.Adding(t.Context(), []string{there, added, lost})
	require.NoError(t, err)
	end, err := store.Adding(t.Context(), []string{done})
	require.NoError(t, err)
	login := http.Header{"Authorization": {"Basic s3cret"}}
	require.NoError(t, store.Keys.Set(map[string]http.Header{there: login, added: login, lost: login, done: login}))
	subscribe(added)
	require.NoError(t, errors.Join(end(), store.Close()))
	store, err = d.Open(w)
	require.NoError(t, err)
	defer store.Close()
	logins, err := store.Keys.Load()
	require.NoError(t, err)
	require.Equal(t, map[string]http.Header{there: login, added: login, done: login}, logins)
}

// A database that a verb has made for nothing is removed, but no other one is: not if the verb
// has not failed, if it was there before, if there is a feed in it, or while others have it open.
func TestCloseAfter(t *testing.T) {
	failed, w := errors.New("failed"), &command.World{Ctx: t.Context()}
	for name, test := range map[string]struct {
		before, feed, open bool
		failed             error
		kept               bool
	}{
		"for nothing":     {failed: failed},
		"no failure":      {kept: true},
		"there before":    {before: true, failed: failed, kept: true},
		"a feed":          {feed: true, failed: failed, kept: true},
		"open by another": {open: true, failed: failed, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := database.Location{DB: filepath.Join(t.TempDir(), "feeds.db")}
			if test.before {
				store, err := d.Create(w)
				require.NoError(t, errors.Join(err, store.Close()))
			}
			store, err := d.Create(w)
			require.NoError(t, err)
			require.NoError(t, store.Keys.Set(map[string]http.Header{"http://a.example/": {}}))
			if test.feed {
				require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: mirror.NewFeed("http://a.example/")}))
			}
			if test.open {
				other, err := d.Open(w)
				require.NoError(t, err)
				defer other.Close()
			}
			require.NoError(t, store.CloseAfter(test.failed))
			files, err := filepath.Glob(filepath.Join(filepath.Dir(d.DB), "*"))
			require.NoError(t, err)
			require.Equal(t, test.kept, len(files) > 0, files)
		})
	}
}

// Nothing is lost if one process stores a feed while another removes the database.
func TestCloseAfterAtOnce(t *testing.T) {
	feedtest.Long(t)
	failed, w := errors.New("failed"), &command.World{Ctx: t.Context()}
	for range feedtest.Count(80) {
		file := filepath.Join(t.TempDir(), "feeds.db")
		made, err := (&database.Location{DB: file}).Create(w)
		require.NoError(t, err)
		feedtest.AtOnce(t, 4, func(i int) error {
			if i == 0 {
				return made.CloseAfter(failed)
			}
			return commitElsewhere(t, file, fmt.Sprintf("http://%d.example/", i))
		})
		store, err := (&database.Location{DB: file}).Open(w)
		require.NoError(t, err)
		require.Len(t, feedtest.All(t, store.Feeds(t.Context(), mirror.FeedQuery{})), 3)
		require.NoError(t, store.Close())
	}
}

// commitElsewhere adds a feed in a process of its own: within one, closing any file of a database
// gives up the locks of all its connections.
func commitElsewhere(t *testing.T, file, feed string) error {
	own := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCommit$")
	own.Env = append(os.Environ(), "DATABASE_FILE="+file, "DATABASE_FEED="+feed)
	if out, err := own.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// The part of TestCloseAfterAtOnce in another process.
func TestCommit(t *testing.T) {
	file := os.Getenv("DATABASE_FILE")
	if file == "" {
		t.Skip("it is a part of TestCloseAfterAtOnce")
	}
	store, err := (&database.Location{DB: file}).Create(&command.World{Ctx: t.Context()})
	require.NoError(t, err)
	require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: mirror.NewFeed(os.Getenv("DATABASE_FEED"))}))
	require.NoError(t, store.CloseAfter(nil))
}
