package database_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
)

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
