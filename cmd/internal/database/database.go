// Package database opens the database of the mirrored feeds, with the credentials kept in
// the file next to it, and explains its errors in plain words. It polls the feeds, and
// reports on the polls.
package database

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
	"github.com/feedhistory/feedhistory/mirror/words"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Location is the flag of the verbs for mirrored feeds.
type Location struct {
	DB string `name:"db" env:"FEEDHISTORY_DB" placeholder:"FILE|URL" help:"Where the mirrored feeds are: a file, or the postgres:// URL of a database (default: ${db})."`

	reading bool // the verb only reads
}

// DefaultDB returns the name of the default database, in the system's directory for the
// user's data; "" if there is no such directory.
func DefaultDB() string {
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
		dir, err = os.UserCacheDir() // %LocalAppData%, whose files do not roam
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

// Place returns the name of the database for messages: a URL is without its password.
func (d *Location) Place() string {
	if !d.IsPostgres() {
		return d.DB
	}
	if u, err := url.Parse(d.DB); err == nil {
		return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	}
	return "the PostgreSQL database"
}

// IsPostgres reports whether the database is a PostgreSQL server, not a file.
func (d *Location) IsPostgres() bool {
	return strings.HasPrefix(d.DB, "postgres://") || strings.HasPrefix(d.DB, "postgresql://")
}

// Create opens the database. It creates a missing one.
func (d *Location) Create(w *command.World) (*Store, error) {
	if err := d.Locate(); err != nil {
		return nil, err
	}
	if d.IsPostgres() {
		return d.Connect(w.Ctx)
	}
	if err := os.MkdirAll(filepath.Dir(d.DB), 0o700); err != nil {
		return nil, err
	}
	for {
		store, err := d.make(w.Ctx)
		if errors.Is(err, fs.ErrExist) {
			store, err = d.Connect(w.Ctx)
		}
		if !errors.Is(err, errRemoved) {
			return store, err
		}
	}
}

// make makes the database, if there is none; otherwise the error is fs.ErrExist.
func (d *Location) make(ctx context.Context) (*Store, error) {
	if _, err := os.Lstat(d.DB); err == nil {
		return nil, fs.ErrExist
	}
	defer lockDirectory(d.DB, true)()
	f, err := os.OpenFile(d.DB, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // addresses may be secrets
	if errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return nil, d.Failure(err)
	}
	made := []string{d.DB}
	if _, err := os.Lstat(d.keyringName()); errors.Is(err, fs.ErrNotExist) {
		made = append(made, d.keyringName())
	}
	store, err := d.connectFile(ctx)
	if err == nil {
		store.made = made
	}
	return store, err
}

// Open opens an existing database.
func (d *Location) Open(w *command.World) (*Store, error) {
	if err := d.find(); err != nil {
		return nil, err
	}
	return d.Connect(w.Ctx)
}

// find fills in the default place of the database, and returns an error if it does not
// exist.
func (d *Location) find() error {
	if err := d.Locate(); err != nil || d.IsPostgres() {
		return err
	}
	if _, err := os.Stat(d.DB); errors.Is(err, fs.ErrNotExist) {
		return errors.New(d.DB + ": there is no such database yet: feedhistory sync URL creates it")
	}
	return nil
}

// Read opens a database, which must exist, for reading. It writes to the database only to
// bring the schema of an earlier version up to date.
func (d *Location) Read(w *command.World) (store *Store, err error) {
	if err := d.find(); err != nil {
		return nil, err
	}
	if d.IsPostgres() {
		store, err = d.Reader(w.Ctx, d.DB)
	} else {
		store, err = d.readFile(w.Ctx)
	}
	if errors.Is(err, sqlstore.ErrOutdated) {
		if store, err = d.Connect(w.Ctx); err != nil {
			err = fmt.Errorf("%w; an earlier version of feedhistory made it, and it must be brought up to date before it can be read", err)
		}
		return store, err
	}
	d.reading = true
	return store, d.Failure(err)
}

// readFile opens a file for reading. It opens the file twice. The first time, SQLite
// creates no other file, because this one may belong to another program. The second
// time, SQLite may create the shared memory of the log, which it removes later, so
// other processes can write meanwhile. If this fails, as in a read-only directory,
// readFile returns the store opened the first time.
func (d *Location) readFile(ctx context.Context) (*Store, error) {
	info, err := os.Stat(d.DB)
	if err == nil {
		err = checkKind(info)
	}
	if err != nil {
		return nil, err
	}
	alone := !hasLog(d.DB)
	first, err := d.Reader(ctx, sqlstore.SQLiteReaderDSN(d.DB, alone))
	if err != nil {
		return nil, err
	}
	second, err := d.Reader(ctx, sqlstore.SQLiteDSN(d.DB)+"&_pragma=query_only(ON)")
	if err == nil {
		return second, first.DB.Close()
	}
	if alone {
		first.File, first.Info = d.DB, info
	}
	return first, nil
}

var (
	ErrDirectory = errors.New("a directory")
	errDevice    = errors.New("not a regular file") // reading it might never end
)

func checkKind(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return ErrDirectory
	case !info.Mode().IsRegular():
		return errDevice
	}
	return nil
}

// hasLog reports whether a file has a nonempty write-ahead log.
func hasLog(file string) bool {
	info, err := os.Stat(file + "-wal")
	return err == nil && info.Size() > 0
}

// Reader opens a database at a source for reading only.
func (d *Location) Reader(ctx context.Context, source string) (*Store, error) {
	return d.openStore(ctx, source, sqlstore.OpenReader)
}

// openStore opens a database at a source.
func (d *Location) openStore(ctx context.Context, source string, open func(context.Context, *sql.DB, sqlstore.Dialect) (*sqlstore.Store, error)) (*Store, error) {
	driver, dialect := "sqlite", sqlstore.SQLite
	if d.IsPostgres() {
		driver, dialect = "pgx", sqlstore.PostgreSQL
	}
	db, err := sql.Open(driver, source)
	if err == nil && d.IsPostgres() {
		db, err = besidePooler(ctx, db, source)
	}
	if err != nil {
		return nil, err
	}
	if !d.IsPostgres() {
		db.SetMaxOpenConns(4) // each connection has its own cache
	}
	store, err := open(ctx, db, dialect)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Store{Store: store, DB: db}, nil
}

// besidePooler returns the database, with statements that are not prepared on the server
// if a pooler stands before it: in its transaction mode, each transaction may have another
// connection. A pooler does not know the process of a connection in advance.
func besidePooler(ctx context.Context, db *sql.DB, source string) (*sql.DB, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	defer conn.Close()
	var announced, actual uint32
	err = conn.Raw(func(driver any) error {
		c := driver.(*stdlib.Conn).Conn()
		announced = c.PgConn().PID()
		return c.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&actual)
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	config, err := pgx.ParseConfig(source)
	if err != nil || announced == actual || config.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement {
		return db, err
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	return stdlib.OpenDB(*config), db.Close()
}

// Locate fills in the default place of the database. The error is that of a usage.
func (d *Location) Locate() error {
	if d.DB = cmp.Or(d.DB, DefaultDB()); d.DB == "" {
		return terminal.UsageError("--db: this system has no directory for a user's data, so say where the database is")
	}
	if terminal.IsURL(d.DB) && !d.IsPostgres() {
		return terminal.UsageError("--db: a file, or a postgres:// URL")
	}
	if !d.IsPostgres() {
		d.DB = linked(d.DB)
	}
	return nil
}

// linked returns the file to which a symbolic link leads, even if the file does not exist yet.
// It returns any other name unchanged. The log of SQLite and the file with the logins are beside
// the file, not beside the link.
func linked(name string) string {
	if info, err := os.Lstat(name); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return name
	}
	if file, err := filepath.EvalSymlinks(name); err == nil {
		return file
	}
	to, err := os.Readlink(name)
	if err != nil || filepath.IsAbs(to) {
		return cmp.Or(to, name)
	}
	return filepath.Join(filepath.Dir(name), to)
}

// Connect opens the database for reading and writing. It reads a file first, so as not
// to change a file of another program.
func (d *Location) Connect(ctx context.Context) (*Store, error) {
	if d.IsPostgres() {
		return d.connect(ctx)
	}
	defer lockDirectory(d.DB, false)()
	return d.connectFile(ctx)
}

func (d *Location) connectFile(ctx context.Context) (*Store, error) {
	info, _ := os.Stat(d.DB)
	store, err := d.connect(ctx)
	if now, failed := os.Stat(d.DB); info == nil || failed != nil || !os.SameFile(info, now) {
		if err == nil {
			err = store.Close()
		}
		return nil, errors.Join(errRemoved, err)
	}
	return store, err
}

func (d *Location) connect(ctx context.Context) (*Store, error) {
	source := d.DB
	if !d.IsPostgres() {
		source = sqlstore.SQLiteDSN(d.DB)
		if err := d.checkFile(ctx); err != nil {
			return nil, d.Failure(err)
		}
	}
	keys, err := d.Keyring()
	if err != nil {
		return nil, err
	}
	store, err := d.openStore(ctx, source, sqlstore.Open)
	if err != nil {
		return nil, d.Failure(err)
	}
	store.Keys = keys
	// Earlier versions recorded downloads.
	_, err = store.DB.ExecContext(ctx, "DROP TABLE IF EXISTS feedhistory_downloads")
	if err = cmp.Or(err, store.resume(ctx)); err != nil {
		return nil, errors.Join(d.Failure(err), store.Close())
	}
	return store, nil
}

// errRemoved means another process removed the file while it was being opened (CloseAfter).
var errRemoved = errors.New("the database has been removed meanwhile; run the command again")

// checkFile refuses a file of another program, and a directory.
func (d *Location) checkFile(ctx context.Context) error {
	info, err := os.Stat(d.DB)
	if err != nil {
		return nil
	}
	if err := checkKind(info); err != nil || info.Size() == 0 {
		return err
	}
	store, err := d.Reader(ctx, sqlstore.SQLiteReaderDSN(d.DB, !hasLog(d.DB)))
	switch {
	case err == nil:
		return store.DB.Close()
	case errors.Is(err, sqlstore.ErrForeign): // a program's own tables may be beside ours, but this is a mistake
		return err
	case errors.Is(err, sqlstore.ErrNone), errors.Is(err, sqlstore.ErrOutdated):
		return nil
	}
	return err
}

// Failure turns an error of the database into a message, and the end of the context into
// errInterrupted. It returns other errors unchanged.
func (d *Location) Failure(err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok && d.reading && e.Code()&0xff == sqlite3.SQLITE_READONLY {
		return errors.New(d.Place() + ": the file cannot be read, because its log (-wal) has to be merged first, which needs " +
			"permission to write; copy both files to a directory of your own")
	}
	if errors.Is(err, sqlstore.ErrReadOnly) {
		return fmt.Errorf("%s: %w: the server is a replica, or its user may not write; nothing was polled or changed", d.Place(), sqlstore.ErrReadOnly)
	}
	if what := storeProblem(err); what != "" {
		if _, ok := errors.AsType[*sqlite.Error](err); ok && !d.IsPostgres() {
			what = cmp.Or(diskProblem(d.DB, what), what)
		}
		return errors.New(d.Place() + ": " + what)
	}
	if errors.Is(err, context.Canceled) {
		return terminal.ErrInterrupted
	}
	return err
}

// storeProblem describes the fault of a database, with advice; "" if a database did not
// cause the error.
func storeProblem(err error) string {
	switch {
	case errors.Is(err, sqlstore.ErrForeign):
		return "this is another program's database; it was not changed"
	case errors.Is(err, ErrDirectory):
		return "the file cannot be opened: it is a directory"
	case errors.Is(err, errDevice):
		return "the file cannot be opened: it is not a regular file"
	case errors.Is(err, sqlstore.ErrNone):
		return "there is no mirror in it yet: feedhistory sync URL creates one"
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return sqliteProblem(e)
	}
	if err != nil && strings.Contains(err.Error(), "CString: cannot allocate") { // the driver's, without a type
		return noMemory
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return postgresProblem(e.Code, e.Message)
	}
	if e, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		return postgresMalformed(e)
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return postgresUnreachable(err)
	}
	return ""
}

// CopyFailure is Failure for a copy of the database to a new file: only that is written to.
func (d *Location) CopyFailure(err error, file string) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok && (e.Code()&0xff == sqlite3.SQLITE_FULL || e.Code()&0xff == sqlite3.SQLITE_IOERR) {
		return (&Location{DB: file}).Failure(err)
	}
	return d.Failure(err)
}

// diskProblem describes the fault of a file's disk, which SQLite reports as something
// else; "" if the disk is sound.
func diskProblem(file, reported string) string {
	err := probe(file)
	switch {
	case errors.Is(err, syscall.EROFS):
		return "the file system is read-only"
	case errors.Is(err, syscall.EIO):
		return "the disk has failed: " + syscall.EIO.Error()
	case errors.Is(err, syscall.ENOSPC):
		return diskFull
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), err == nil && reported == notOpened:
		return "too many files are open: allow more (ulimit -n), and run the command again"
	}
	return ""
}

// probe reads a file, and writes another one beside it, which it removes.
func probe(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err == nil {
		_, err = io.Copy(io.Discard, f)
		_ = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	beside, err := os.CreateTemp(filepath.Dir(file), ".feedhistory-*")
	if err != nil {
		return err
	}
	if os.Remove(beside.Name()) != nil { // removed now, so a kill leaves no file; Windows cannot remove an open one
		defer os.Remove(beside.Name())
	}
	_, err = beside.WriteAt(make([]byte, 64<<10), 0)
	return errors.Join(err, beside.Sync(), beside.Close())
}

const (
	diskFull  = "the disk is full; nothing stored is lost: make room, and run the command again"
	noMemory  = "there is not enough memory; nothing stored is lost: allow more (ulimit -d, or MemoryMax), and run the command again"
	notOpened = "the file cannot be opened; does it, or its directory, belong to another user?"
)

func sqliteProblem(e *sqlite.Error) string {
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return diskFull
	case sqlite3.SQLITE_NOMEM:
		return noMemory
	case sqlite3.SQLITE_NOTADB:
		return "this file is not a database"
	case sqlite3.SQLITE_CORRUPT:
		return "the file is damaged; sqlite3's .recover may help: " + e.Error()
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return notOpened
	case sqlite3.SQLITE_READONLY:
		return "the file cannot be written to; does it, or its directory, belong to another user?"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "another process holds the database; try again later"
	case sqlite3.SQLITE_IOERR:
		switch e.Code() {
		case sqlite3.SQLITE_IOERR_NOMEM, sqlite3.SQLITE_IOERR_SHMMAP: // the disk has answered
			return noMemory
		case sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_TRUNCATE, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMOPEN:
			return "the file cannot grow; nothing stored is lost: if the disk is not full, allow larger files (ulimit -f, or the quota), and run the command again"
		}
		return "the disk has failed: " + e.Error()
	}
	return e.Error()
}

// postgresProblem explains the server's error, given its code and message.
func postgresProblem(code, message string) string {
	switch code {
	case "53100":
		return "the server's disk is full; nothing stored is lost: make room, and run the command again"
	case "28P01", "28000":
		return "the server refuses the user or the password"
	case "3D000":
		return "there is no such database on the server; createdb makes one"
	case "42501":
		return "the user may not do this: " + message
	case "08P01":
		if strings.Contains(message, "statement pooling") {
			return "the pooler has no transactions: PgBouncer's pool_mode must be session or transaction"
		}
	}
	return message
}

// postgresMalformed describes the fault of a database's URL. The error's own text contains the
// URL, so only its cause is given.
func postgresMalformed(err error) string {
	what := "this is not the URL of a PostgreSQL database"
	if why := errors.Unwrap(err); why != nil {
		what += ": " + why.Error()
	}
	return what
}

// postgresUnreachable says why there is no connection.
func postgresUnreachable(err error) string {
	what := "the server cannot be reached"
	if e, ok := errors.AsType[*net.OpError](err); ok {
		what += ": " + e.Err.Error()
	}
	return what + "; is it running, and is the address right?"
}

// A Store is a store with its open database.
type Store struct {
	*sqlstore.Store
	DB   *sql.DB
	Keys *command.Keyring // the private feeds; nil if the store is only read
	File string           // a file opened on the assumption of no writers; "" if none was
	Info os.FileInfo      // about this file, when it was opened
	made []string         // the file, if Create made it, and that of its keyring
}

// Commit implements mirror.Store. It marks private feeds in the database, so history
// servers on other machines, which do not have the credentials, do not show these feeds.
func (s *Store) Commit(ctx context.Context, c *mirror.Commit) error {
	if s.Keys != nil {
		private, err := s.Keys.Load()
		if err != nil {
			return err
		}
		c.Feed.Private = c.Feed.Private || private[c.Feed.URL] != nil
	}
	return s.Store.Commit(ctx, c)
}

// Close closes the database. It returns an error if another process wrote to a file
// opened on the assumption of no writers.
func (s *Store) Close() error {
	err := s.DB.Close()
	if s.File == "" {
		return err
	}
	info, failed := os.Stat(s.File)
	if failed == nil && (!info.ModTime().Equal(s.Info.ModTime()) || info.Size() != s.Info.Size()) || hasLog(s.File) {
		failed = errors.New(s.File + ": another process wrote to it meanwhile, so the output may be wrong; run the command again")
	}
	return errors.Join(err, failed)
}

// CloseAfter closes the database after a verb that ended with an error, or nil. If the verb
// failed, and made the database for nothing, because there is no feed in it, CloseAfter removes it.
func (s *Store) CloseAfter(failed error) error {
	if failed == nil || len(s.made) == 0 {
		return s.Close()
	}
	// One that is opening the file would make a log for it, by its name: that of the next file.
	defer lockDirectory(s.made[0], true)()
	if !s.isUnused() {
		return s.Close()
	}
	if runtime.GOOS == "windows" { // where an open file cannot be removed, nor one that others have open
		defer s.unmake()
	} else if _, err := s.DB.Exec("PRAGMA journal_mode = OFF"); err == nil {
		_ = os.Remove(s.made[0] + "-journal") // which the exclusive lock has kept
		s.unmake()
		// A process that has opened the file, but not read it, refuses this version, and then opens
		// the one that has the name.
		_, _ = s.DB.Exec("UPDATE feedhistory_schema SET version = 1000000")
	}
	return s.Close()
}

// unmake removes the files Create made, the database last.
func (s *Store) unmake() {
	for _, name := range slices.Backward(s.made) {
		_ = os.Remove(name)
	}
}

// isUnused reports whether a database has no feed, and locks it: no other process has it open.
func (s *Store) isUnused() bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if lockAlone(ctx, s.DB, s.made[0], 0) != nil {
		return false
	}
	for range s.Feeds(ctx, mirror.FeedQuery{Limit: 1}) {
		return false
	}
	return true
}

// keyringName returns the name of the file with the credentials for a database's feeds.
func (d *Location) keyringName() string {
	if !d.IsPostgres() {
		return d.DB + ".credentials"
	}
	sum := sha256.Sum256([]byte(d.Place()))
	return filepath.Join(filepath.Dir(DefaultDB()), "credentials-"+hex.EncodeToString(sum[:4]))
}

// Keyring reads the keyring of the database, which may be empty.
func (d *Location) Keyring() (*command.Keyring, error) {
	k := command.NewKeyring(d.keyringName())
	_, err := k.Load()
	return k, err
}

// Keep stores the credentials given by the flags for feeds, which must have one origin,
// and returns the keyring.
func Keep(f *command.Login, d *Location, feeds []string) (*command.Keyring, error) {
	if _, err := f.Authorize(&feedhistory.Client{}, feeds); err != nil {
		return nil, err
	}
	k, err := d.Keyring()
	if err != nil {
		return nil, err
	}
	if f.Netrc || f.Cookies != "" {
		k.Files = &command.Login{Netrc: f.Netrc, Cookies: f.Cookies}
	}
	flags := command.Login{Credentials: f.Credentials}
	given := map[string]http.Header{}
	for _, feed := range feeds {
		header, err := flags.HeaderFor(feed)
		if err != nil {
			return nil, err
		}
		if len(header) > 0 {
			given[feed] = header
		}
	}
	return k, k.Set(given)
}

// PrivateFeeds returns a function reporting whether a feed of a mirror, by its URL, is
// private: those the mirror calls private, and those with credentials. A feed that cannot be read
// may be.
func (d *Location) PrivateFeeds(ctx context.Context, store mirror.Store) (func(url string) bool, error) {
	keyring, err := d.Keyring()
	if err != nil {
		return nil, err
	}
	keys, err := keyring.Load()
	known := map[string]bool{}
	return func(url string) bool {
		private, ok := known[url]
		if !ok {
			f, err := store.Feed(ctx, url)
			private = keys[url] != nil || err != nil || f.Private
			known[url] = private
		}
		return private
	}, err
}

// Feed returns the feed people mean by an argument: the one with this address, with or
// without its scheme, else with this title, else the only one with the text in its
// address or title. With exact, the text must be the whole address or title. If there is none,
// the error matches mirror.ErrNotFound.
func (d *Location) Feed(ctx context.Context, store mirror.Store, arg string, exact bool) (*mirror.Feed, error) {
	f, err := store.Feed(ctx, terminal.FeedName(arg))
	if !errors.Is(err, mirror.ErrNotFound) {
		return f, d.Failure(err)
	}
	var fitting [noFit + 1][]*mirror.Feed
	want := feedText{bare(terminal.FeedName(arg)), strings.ToLower(terminal.Clean(arg)), terminal.IsURL(arg)}
	for f, err := range store.Feeds(ctx, mirror.FeedQuery{}) {
		if err != nil {
			return nil, d.Failure(err)
		}
		fit := want.fit(f)
		fitting[fit] = append(fitting[fit], f)
	}
	for fit, feeds := range fitting[:noFit] {
		if current := slices.DeleteFunc(slices.Clone(feeds), func(f *mirror.Feed) bool { return f.Alias != "" }); len(current) > 0 {
			feeds = current
		}
		partial := exact && fit == int(partOfFeed)
		switch {
		case len(feeds) == 1 && !partial:
			return feeds[0], nil
		case len(feeds) > 0:
			return nil, choice(arg, feeds, partial)
		}
	}
	return nil, &show.WordedError{Text: terminal.WithoutUser(arg) + " is not in " + d.Place() + "; feedhistory list shows what is", Err: mirror.ErrNotFound}
}

// Feeds returns the feeds people mean by arguments, each once.
func (d *Location) Feeds(ctx context.Context, store mirror.Store, args []string) (feeds []*mirror.Feed, err error) {
	for _, arg := range args {
		f, err := d.Feed(ctx, store, arg, false)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(feeds, func(other *mirror.Feed) bool { return other.URL == f.URL }) {
			feeds = append(feeds, f)
		}
	}
	return feeds, nil
}

// FeedsOrAll yields the feeds people mean by arguments, or all feeds if there are none.
func (d *Location) FeedsOrAll(ctx context.Context, store mirror.Store, args []string) (iter.Seq2[*mirror.Feed, error], error) {
	if len(args) == 0 {
		return store.Feeds(ctx, mirror.FeedQuery{}), nil
	}
	feeds, err := d.Feeds(ctx, store, args)
	return func(yield func(*mirror.Feed, error) bool) {
		for _, f := range feeds {
			if !yield(f, nil) {
				return
			}
		}
	}, err
}

// AddressesOf returns the address of the feed with a name, which must be whole with exact, or
// those of all feeds without a name.
func (d *Location) AddressesOf(ctx context.Context, store mirror.Store, name string, exact bool) (urls []string, err error) {
	if name != "" {
		f, err := d.Feed(ctx, store, name, exact)
		if err != nil {
			return nil, err
		}
		return []string{f.URL}, nil
	}
	for f, err := range store.Feeds(ctx, mirror.FeedQuery{}) {
		if err != nil {
			return nil, err
		}
		urls = append(urls, f.URL)
	}
	return urls, nil
}

// choice returns the error of an argument that fits several feeds, or a part of one where
// only a whole name counts.
func choice(arg string, feeds []*mirror.Feed, partial bool) error {
	text := fmt.Sprintf("several feeds fit %q; give more of the address or title:", terminal.WithoutUser(arg))
	if partial {
		text = fmt.Sprintf("%q is a part only; give the whole address or title:", terminal.WithoutUser(arg))
	}
	err := &terminal.ChoiceError{Text: text}
	for _, f := range feeds {
		err.Choices = append(err.Choices, strings.TrimSpace(show.Address(f.URL)+"  "+cmp.Or(f.Named, f.Title)))
	}
	return err
}

// A feedFit is how an argument fits a feed, the best first.
type feedFit int

const (
	addressOfFeed feedFit = iota
	titleOfFeed
	partOfFeed
	noFit
)

// A feedText is an argument in the forms in which it is compared.
type feedText struct {
	address, title string
	isURL          bool // whether it has a scheme, so that it is no part of a word
}

func (t feedText) fit(f *mirror.Feed) feedFit {
	address, current := bare(f.URL), bare(f.Address)
	named, title := strings.ToLower(terminal.Clean(f.Named)), strings.ToLower(terminal.Clean(f.Title))
	switch {
	case t.address == address, t.address == current:
		return addressOfFeed
	case t.title == named, t.title == title:
		return titleOfFeed
	case t.isURL && !strings.HasPrefix(address, t.address+"/"), t.address == "":
		return noFit
	case strings.Contains(address, t.address), strings.Contains(current, t.address), strings.Contains(named, t.title), strings.Contains(title, t.title):
		return partOfFeed
	}
	return noFit
}

// bare returns an address as people write it, in lower case: without its scheme, www and a
// slash at the end.
func bare(address string) string {
	_, rest, ok := strings.Cut(address, "://")
	if !ok {
		rest = address
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(rest), "www."), "/")
}

// EntriesOfFeeds yields the entries of some feeds, or of all feeds if it gets none.
// As in the store, the newest entries come first.
func EntriesOfFeeds(ctx context.Context, store mirror.Store, q mirror.Query, feeds []*mirror.Feed) iter.Seq2[*mirror.Record, error] {
	var lists []iter.Seq2[*mirror.Record, error]
	for _, feed := range feeds {
		q.Feed = feed.URL
		lists = append(lists, store.Entries(ctx, q))
	}
	if len(lists) == 0 {
		lists = append(lists, store.Entries(ctx, q))
	}
	if len(lists) == 1 {
		return lists[0]
	}
	return func(yield func(*mirror.Record, error) bool) {
		var heads []*head
		for _, list := range lists {
			next, stop := iter.Pull2(list)
			defer stop()
			h := &head{next: next}
			h.record, h.err, _ = next()
			heads = append(heads, h)
		}
		var unread error // the results of the other lists come before it
		for n := 0; q.Limit == 0 || n < q.Limit; n++ {
			heads = slices.DeleteFunc(heads, func(h *head) bool {
				if _, ok := errors.AsType[*sqlstore.UnindexedError](h.err); ok {
					unread, h.err = h.err, nil
				}
				return h.record == nil && h.err == nil
			})
			if len(heads) == 0 {
				break
			}
			first := slices.MinFunc(heads, compareHeads)
			if !yield(first.record, first.err) || first.err != nil {
				return
			}
			first.record, first.err, _ = first.next()
		}
		if unread != nil {
			yield(nil, unread)
		}
	}
}

// A head is the first element of the rest of a list; at the end of the list, record and
// err are nil.
type head struct {
	next   func() (*mirror.Record, error, bool)
	record *mirror.Record
	err    error
}

// compareHeads has the head of a failed list first, and then that with the newest entry.
func compareHeads(a, b *head) int {
	switch {
	case a.err != nil:
		return -1
	case b.err != nil:
		return 1
	}
	return cmp.Or(b.record.Time().Compare(a.record.Time()), cmp.Compare(b.record.Feed, a.record.Feed))
}

// ID returns the id of an entry, given its beginning, or an ellipsis and its end: the text
// itself if an entry of the feeds has it as its id, or if it fits no id. It returns a usage
// error if the text fits several ids.
func ID(ctx context.Context, store mirror.Store, feeds []string, text string) (string, error) {
	for _, feed := range feeds {
		known, err := store.Records(ctx, feed, []string{text})
		if err != nil || known[text] != nil {
			return text, err
		}
	}
	fits, side := strings.HasPrefix, "begin with "
	part := text
	if end, ok := strings.CutPrefix(text, "…"); ok {
		fits, side, part = strings.HasSuffix, "end with ", end
	}
	var found []string
	for _, feed := range feeds {
		for r, err := range store.Entries(ctx, mirror.Query{Feed: feed, States: mirror.Current | mirror.Former}) {
			if err != nil {
				return "", err
			}
			if fits(r.ID, part) && !slices.Contains(found, r.ID) {
				if found = append(found, r.ID); len(found) > 1 {
					return "", terminal.UsageError("several ids " + side + part + ": " + strings.Join(found, ", ") + ", …")
				}
			}
		}
	}
	if len(found) == 0 {
		return text, nil
	}
	return found[0], nil
}

// mostChoices is the maximum number of entries among which a message lets people choose.
const mostChoices = 20

// NamedEntry returns the id of the entry people mean by a text, and the feeds to look in: by its
// id, as ID has it, else by its title, else by a part of its title. It returns the text itself if
// there is none, and a terminal.ChoiceError if there are several.
func NamedEntry(ctx context.Context, store mirror.Store, feeds []string, text string) (id string, in []string, err error) {
	id, err = ID(ctx, store, feeds, text)
	if err != nil || id != text {
		return id, feeds, err
	}
	for _, feed := range feeds {
		known, err := store.Records(ctx, feed, []string{text})
		if err != nil || known[text] != nil {
			return text, feeds, err
		}
	}
	whole, parts, err := titled(ctx, store, feeds, text)
	if err != nil {
		return "", nil, err
	}
	if len(whole) == 0 {
		whole = parts
	}
	switch len(whole) {
	case 0:
		return text, feeds, nil
	case 1:
		return whole[0].ID, []string{whole[0].Feed}, nil
	}
	how := "give an id"
	isShared := slices.ContainsFunc(whole, func(r *mirror.Record) bool { return r.Feed != whole[0].Feed })
	if isShared {
		how += ", and --feed if feeds share it"
	}
	choice := &terminal.ChoiceError{Text: fmt.Sprintf("several entries have %q in their title; %s:", terminal.Clean(text), how)}
	for i, r := range whole {
		if i == mostChoices {
			choice.Choices = append(choice.Choices, "…")
			break
		}
		title := ""
		if e, err := r.Entry(); err == nil {
			title = e.Title().Plain()
		}
		line := r.ID + "  " + terminal.Clean(title)
		if isShared {
			line += " (of " + show.Address(r.Feed) + ")"
		}
		choice.Choices = append(choice.Choices, line)
	}
	return "", nil, choice
}

// titled returns the entries with a title, and those with it as a part of theirs, in upper or
// lower case.
func titled(ctx context.Context, store mirror.Store, feeds []string, title string) (whole, parts []*mirror.Record, err error) {
	search, want := strings.Join(words.Fields(title), " "), strings.ToLower(terminal.Clean(title))
	for _, feed := range feeds {
		for r, err := range store.Entries(ctx, mirror.Query{Feed: feed, Search: search, Prefix: true, States: mirror.Current | mirror.Former}) {
			if errors.Is(err, errors.ErrUnsupported) { // there is no word in it
				return nil, nil, nil
			}
			if err != nil {
				return nil, nil, err
			}
			e, err := r.Entry()
			if err != nil {
				continue // a damaged entry has no title
			}
			switch has := strings.ToLower(terminal.Clean(e.Title().Plain())); {
			case has == want:
				whole = append(whole, r)
			case strings.Contains(has, want):
				parts = append(parts, r)
			}
		}
	}
	return whole, parts, nil
}

// mostTries bounds the attempts to change a feed while it is polled.
const mostTries = 20

// Amend changes the state of a feed in a store, unless amend returns false. It changes
// nothing if the store does not have the feed.
func Amend(ctx context.Context, store mirror.Store, url string, amend func(*mirror.Feed) bool) (err error) {
	for range mostTries {
		f, missing := store.Feed(ctx, url)
		if errors.Is(missing, mirror.ErrNotFound) {
			return nil
		}
		if missing != nil || !amend(f) {
			return missing
		}
		if err = store.Commit(ctx, &mirror.Commit{Feed: f}); !errors.Is(err, mirror.ErrConflict) {
			return err
		}
	}
	return err
}

// Printed are a database's records of the entries that have been printed under a name: for
// each feed the number of the last commit whose entries were.
type Printed struct {
	DB   *sql.DB
	Name string
}

const (
	printedSchema   = `CREATE TABLE IF NOT EXISTS feedhistory_printed (name TEXT NOT NULL, feed TEXT NOT NULL, commits BIGINT NOT NULL, PRIMARY KEY (name, feed))`
	deliveredSchema = `CREATE TABLE IF NOT EXISTS feedhistory_delivered (name TEXT NOT NULL, feed TEXT NOT NULL, mail TEXT NOT NULL, PRIMARY KEY (name, mail))`
)

func createPrinted(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, printedSchema)
	if err == nil {
		_, err = db.ExecContext(ctx, deliveredSchema)
	}
	return err
}

// Read returns the last commit of each feed.
func (p *Printed) Read(ctx context.Context) (map[string]int64, error) {
	if err := createPrinted(ctx, p.DB); err != nil {
		return nil, err
	}
	rows, err := p.DB.QueryContext(ctx, "SELECT feed, commits FROM feedhistory_printed WHERE name = $1", p.Name)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	last := map[string]int64{}
	for rows.Next() {
		var feed string
		var commits int64
		if err := rows.Scan(&feed, &commits); err != nil {
			return nil, err
		}
		last[feed] = commits
	}
	return last, rows.Err()
}

// Delivered returns the mails of unfinished runs, by their file names. Read comes first.
func (p *Printed) Delivered(ctx context.Context) (mails map[string]bool, err error) {
	rows, err := p.DB.QueryContext(ctx, "SELECT mail FROM feedhistory_delivered WHERE name = $1", p.Name)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	mails = map[string]bool{}
	for rows.Next() {
		var mail string
		if err := rows.Scan(&mail); err != nil {
			return nil, err
		}
		mails[mail] = true
	}
	return mails, rows.Err()
}

// Deliver records a mail of a feed as delivered, until Write.
func (p *Printed) Deliver(ctx context.Context, feed, mail string) error {
	_, err := p.DB.ExecContext(ctx, "INSERT INTO feedhistory_delivered (name, feed, mail) VALUES ($1, $2, $3) ON CONFLICT (name, mail) DO NOTHING", p.Name, feed, mail)
	return err
}

// Write records the feeds' entries up to now as printed.
func (p *Printed) Write(ctx context.Context, feeds []*mirror.Feed) error {
	tx, err := p.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, f := range feeds {
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT INTO feedhistory_printed (name, feed, commits) VALUES ($1, $2, $3)
				ON CONFLICT (name, feed) DO UPDATE SET commits = excluded.commits`, p.Name, f.URL, f.Commits)
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, "DELETE FROM feedhistory_delivered WHERE name = $1 AND feed = $2", p.Name, f.URL)
		}
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
