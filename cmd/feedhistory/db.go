package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// The flag of the verbs that have to do with mirrored feeds.
type database struct {
	DB string `name:"db" env:"FEEDHISTORY_DB" placeholder:"FILE|URL" help:"Where feeds are mirrored: a file, or the postgres:// URL of a database (default: ${db})."`
}

// defaultDB is where feeds are mirrored if nobody says otherwise: among the
// user's data, in the place that the system has for them. "" if it has none.
func defaultDB() string {
	dir := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(dir) {
		dir = dataDir()
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "feedhistory", "feeds.db")
}

func dataDir() string {
	var dir string
	var err error
	switch runtime.GOOS {
	case "windows":
		dir, err = os.UserCacheDir() // what is not to roam
	case "darwin", "ios":
		dir, err = os.UserConfigDir() // Application Support
	default:
		dir, err = os.UserHomeDir()
		dir = filepath.Join(dir, ".local", "share")
	}
	if err != nil {
		return ""
	}
	return dir
}

// name is the database for people: without a password.
func (d *database) name() string {
	if !d.isPostgres() {
		return d.DB
	}
	if u, err := url.Parse(d.DB); err == nil {
		return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	}
	return "the PostgreSQL database"
}

func (d *database) isPostgres() bool {
	return strings.HasPrefix(d.DB, "postgres://") || strings.HasPrefix(d.DB, "postgresql://")
}

// An openStore is a store with the database that it is in.
type openStore struct {
	*sqlstore.Store
	db *sql.DB
}

// Close closes the database.
func (s *openStore) Close() error { return s.db.Close() }

// create opens the database, and makes it if it is not there.
func (d *database) create(w *world) (*openStore, error) {
	if err := d.locate(); err != nil {
		return nil, err
	}
	if !d.isPostgres() {
		if err := os.MkdirAll(filepath.Dir(d.DB), 0o700); err != nil {
			return nil, err
		}
	}
	return d.connect(w.ctx)
}

// open opens a database that is there.
func (d *database) open(w *world) (*openStore, error) {
	if err := d.locate(); err != nil {
		return nil, err
	}
	if !d.isPostgres() {
		if _, err := os.Stat(d.DB); errors.Is(err, fs.ErrNotExist) {
			return nil, errors.New(d.DB + ": there is no such database yet: feedhistory sync URL makes it")
		}
	}
	return d.connect(w.ctx)
}

// locate fills in where the database is if it was not said.
func (d *database) locate() error {
	if d.DB = cmp.Or(d.DB, defaultDB()); d.DB == "" {
		return usageError("--db: the system has no place for a user's data, so say where the database is")
	}
	if isURL(d.DB) && !d.isPostgres() {
		return usageError("--db: a file, or a postgres:// URL")
	}
	return nil
}

func (d *database) connect(ctx context.Context) (*openStore, error) {
	driver, source, dialect := "sqlite", sqlstore.SQLiteDSN(d.DB), sqlstore.SQLite
	if d.isPostgres() {
		driver, source, dialect = "pgx", d.DB, sqlstore.PostgreSQL
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, d.failure(err)
	}
	if !d.isPostgres() {
		db.SetMaxOpenConns(4) // each has a cache of its own
	}
	store, err := sqlstore.Open(ctx, db, dialect)
	if err != nil {
		return nil, errors.Join(d.failure(err), db.Close())
	}
	return &openStore{store, db}, nil
}

// An unknownError is a feed that is not in the database.
type unknownError struct{ feed, db string }

func (e *unknownError) Error() string {
	return fmt.Sprintf("%s is not in %s; feedhistory list shows what is", e.feed, e.db)
}

func isUnknown(err error) bool {
	_, ok := errors.AsType[*unknownError](err)
	return ok
}

// unknown says of an error that the feed an argument names is not there, or
// what else is wrong.
func (d *database) unknown(arg string, err error) error {
	if errors.Is(err, mirror.ErrNotFound) {
		return &unknownError{withoutUser(arg), d.name()}
	}
	return d.failure(err)
}

// failure says what is wrong with the database, if the error is its own.
func (d *database) failure(err error) error {
	if what := storeProblem(err); what != "" {
		return errors.New(d.name() + ": " + what)
	}
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	return err
}

// storeProblem says what is wrong with a database, and what to do; "" if the
// error is none of a database.
func storeProblem(err error) string {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return sqliteProblem(e)
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return postgresProblem(e)
	}
	if e, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		what := "this is no URL of a PostgreSQL database"
		if why := errors.Unwrap(e); why != nil {
			what += ": " + why.Error()
		}
		return what // the error's own text has the URL
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		what := "the server cannot be reached"
		if e, ok := errors.AsType[*net.OpError](err); ok {
			what += ": " + e.Err.Error()
		}
		return what + "; is it running, and is the address right?"
	}
	return ""
}

func sqliteProblem(e *sqlite.Error) string {
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return "the disk is full; nothing that was stored is lost: make room, and go on"
	case sqlite3.SQLITE_NOTADB:
		return "this is not a database of feedhistory's: another file?"
	case sqlite3.SQLITE_CORRUPT:
		return "the file is damaged; sqlite3's .recover may help: " + e.Error()
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return "the file cannot be opened; is it, or its directory, another user's?"
	case sqlite3.SQLITE_READONLY:
		return "the file cannot be written to; is it, or its directory, another user's?"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "another process holds the database; try again later"
	case sqlite3.SQLITE_IOERR:
		return "the disk does not work: " + e.Error()
	}
	return e.Error()
}

func postgresProblem(e *pgconn.PgError) string {
	switch e.Code {
	case "53100":
		return "the server's disk is full; nothing that was stored is lost: make room, and go on"
	case "28P01", "28000":
		return "the server refuses the user or the password"
	case "3D000":
		return "there is no such database on the server; createdb makes one"
	case "42501":
		return "the user has no right to do this: " + e.Message
	}
	return e.Message
}
