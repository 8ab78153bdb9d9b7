package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/feedhistory/feedhistory/internal/postgres"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// The flag of the verbs that have to do with mirrored feeds.
type database struct {
	DB string `name:"db" env:"FEEDHISTORY_DB" placeholder:"FILE|URL" help:"Where feeds are mirrored: a file, or the postgres:// URL of a database (default: ${db})."`

	reading bool // nothing is to be written
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
	return postgres.Name(d.DB)
}

func (d *database) isPostgres() bool { return postgres.IsURL(d.DB) }

// An openStore is a store with the database that it is in.
type openStore struct {
	*sqlstore.Store
	db   *sql.DB
	file string      // that was opened as one nobody writes to; "" if there is none
	info os.FileInfo // of that
}

// Close closes the database. The error says that somebody did write to a file
// that was opened as one nobody writes to.
func (s *openStore) Close() error {
	err := s.db.Close()
	if s.file == "" {
		return err
	}
	info, failed := os.Stat(s.file)
	if failed == nil && (!info.ModTime().Equal(s.info.ModTime()) || info.Size() != s.info.Size()) || hasLog(s.file) {
		failed = errors.New(s.file + ": it was written to meanwhile, so that what was read may be wrong: do it again")
	}
	return errors.Join(err, failed)
}

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
	if err := d.find(); err != nil {
		return nil, err
	}
	return d.connect(w.ctx)
}

// find locates a database that must be there.
func (d *database) find() error {
	if err := d.locate(); err != nil || d.isPostgres() {
		return err
	}
	if _, err := os.Stat(d.DB); errors.Is(err, fs.ErrNotExist) {
		return errors.New(d.DB + ": there is no such database yet: feedhistory sync URL makes it")
	}
	return nil
}

// read opens a database that is there, and writes nothing to it, unless an
// earlier program has made it: then it is brought up to date.
func (d *database) read(w *world) (store *openStore, err error) {
	if err := d.find(); err != nil {
		return nil, err
	}
	if d.isPostgres() {
		store, err = d.reader(w.ctx, d.DB)
	} else {
		store, err = d.readFile(w.ctx)
	}
	if errors.Is(err, sqlstore.ErrOutdated) {
		if store, err = d.connect(w.ctx); err != nil {
			err = fmt.Errorf("%w; an earlier feedhistory has made it, and it has to be brought up to date before it can be read", err)
		}
		return store, err
	}
	d.reading = true
	return store, d.failure(err)
}

// readFile opens a file for reading. At first no other file is made: it may
// be another program's. Then SQLite may make what it reads a log by, which it
// removes again, so that others may write meanwhile; where it cannot, as the
// directory is read-only, the first way will do.
func (d *database) readFile(ctx context.Context) (*openStore, error) {
	info, err := os.Stat(d.DB)
	if err == nil && info.IsDir() {
		err = errDirectory
	}
	if err != nil {
		return nil, err
	}
	alone := !hasLog(d.DB)
	first, err := d.reader(ctx, sqlstore.SQLiteReaderDSN(d.DB, alone))
	if err != nil {
		return nil, err
	}
	second, err := d.reader(ctx, sqlstore.SQLiteDSN(d.DB)+"&_pragma=query_only(ON)")
	if err == nil {
		return second, first.db.Close()
	}
	if alone {
		first.file, first.info = d.DB, info
	}
	return first, nil
}

var errDirectory = errors.New("a directory")

// hasLog reports whether a file has a write-ahead log, with something in it.
func hasLog(file string) bool {
	info, err := os.Stat(file + "-wal")
	return err == nil && info.Size() > 0
}

func (d *database) reader(ctx context.Context, source string) (*openStore, error) {
	driver, dialect := d.driver()
	return d.openStore(ctx, driver, source, dialect, sqlstore.OpenReader)
}

func (d *database) driver() (string, sqlstore.Dialect) {
	if d.isPostgres() {
		return "pgx", sqlstore.PostgreSQL
	}
	return "sqlite", sqlstore.SQLite
}

func (d *database) openStore(
	ctx context.Context, driver, source string, dialect sqlstore.Dialect,
	open func(context.Context, *sql.DB, sqlstore.Dialect) (*sqlstore.Store, error),
) (*openStore, error) {
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, err
	}
	if !d.isPostgres() {
		db.SetMaxOpenConns(4) // each has a cache of its own
	}
	store, err := open(ctx, db, dialect)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &openStore{Store: store, db: db}, nil
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

// connect opens the database for reading and writing. A file is read first, so
// that one which is another program's is not touched.
func (d *database) connect(ctx context.Context) (*openStore, error) {
	driver, dialect := d.driver()
	source := d.DB
	if !d.isPostgres() {
		source = sqlstore.SQLiteDSN(d.DB)
		if err := d.checkFile(ctx); err != nil {
			return nil, d.failure(err)
		}
	}
	store, err := d.openStore(ctx, driver, source, dialect, sqlstore.Open)
	return store, d.failure(err)
}

// checkFile refuses a file that is there and another program's.
func (d *database) checkFile(ctx context.Context) error {
	switch info, err := os.Stat(d.DB); {
	case err != nil || info.Size() == 0:
		return nil
	case info.IsDir():
		return errDirectory
	}
	store, err := d.reader(ctx, sqlstore.SQLiteReaderDSN(d.DB, !hasLog(d.DB)))
	switch {
	case err == nil:
		return store.db.Close()
	case errors.Is(err, sqlstore.ErrNone), errors.Is(err, sqlstore.ErrOutdated):
		return nil
	}
	return err
}

// An unknownError is a feed that is not in the database.
type unknownError struct{ feed, db string }

// Error names the feed and the database.
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
	if e, ok := errors.AsType[*sqlite.Error](err); ok && d.reading && e.Code()&0xff == sqlite3.SQLITE_READONLY {
		return errors.New(d.name() + ": the file cannot be read as it is: its log (-wal) is to be taken in first, and that needs " +
			"the right to write; copy both to a directory of your own")
	}
	if what := storeProblem(err); what != "" {
		return errors.New(d.name() + ": " + what)
	}
	if errors.Is(err, context.Canceled) {
		return errInterrupted
	}
	return err
}

// storeProblem says what is wrong with a database, and what to do; "" if the
// error is none of a database.
func storeProblem(err error) string {
	switch {
	case errors.Is(err, sqlstore.ErrForeign):
		return "this is another program's database, and has been left as it was"
	case errors.Is(err, errDirectory):
		return "the file cannot be opened: it is a directory"
	case errors.Is(err, sqlstore.ErrNone):
		return "there is no mirror in it yet: feedhistory sync URL makes one"
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return sqliteProblem(e)
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return postgres.Problem(e.Code, e.Message)
	}
	if e, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		return postgres.Malformed(e)
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return postgres.Unreachable(err)
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
