// Package sqlstore keeps mirrors of feeds in SQLite or PostgreSQL.
//
// It includes no driver: import the one you want to use. It is tested with
// modernc.org/sqlite and github.com/jackc/pgx/v5/stdlib.
//
//	db, err := sql.Open("sqlite", sqlstore.SQLiteDSN("feeds.db"))
//	…
//	store, err := sqlstore.Open(ctx, db, sqlstore.SQLite)
//
// Entries are indexed for full-text search after they have been committed, by
// the first search or by Store.Index.
//
// A function that takes a context may return the error of the context. Methods of nil pointers
// may panic, unless their comments say otherwise.
package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/words"
)

// A Store is a mirror.Store in a database. All of its methods may be called at
// the same time, even by other processes.
type Store struct {
	// Hook, if not nil, is called in the transaction of each Commit, Move and Remove.
	// Set it before you use the store.
	Hook Hook

	db *sql.DB
	dialect
	reads bool // whether it only reads
	reach reach

	write    chan struct{} // has room for one, because SQLite allows one writer at a time
	mu       sync.Mutex
	prepared map[string]*sql.Stmt // by their text
}

// Open returns the store in a database, and brings its schema up to date. The database
// may have other tables: ours begin with feedhistory_ in SQLite, and are in the schema
// feedhistory in PostgreSQL. Open refuses a database in which these names are taken,
// with an error that matches ErrForeign; a database written to by a newer version of
// this package; a server or a user of PostgreSQL that cannot write, with an error that
// matches ErrReadOnly; and connections to SQLite that could break the store's promises.
// The caller owns the database, and closes it.
//
// A database behind a pooler that shares connections, such as PgBouncer in transaction
// mode, needs default_query_exec_mode=cache_describe in the URL of pgx.
func Open(ctx context.Context, db *sql.DB, d Dialect) (*Store, error) {
	s, err := newStore(db, d)
	if err != nil {
		return nil, err
	}
	_, err = s.version(ctx, db)
	switch { // before anything is written
	case err != nil:
	case s.one:
		err = cmp.Or(s.logAhead(ctx), checkPragmas(ctx, db))
	default:
		err = checkWritable(ctx, db)
	}
	if err == nil {
		err = s.migrate(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("sqlstore: %w", err)
	}
	return s, nil
}

func newStore(db *sql.DB, d Dialect) (*Store, error) {
	if db == nil {
		return nil, errors.New("sqlstore: the database is nil")
	}
	s := &Store{db: db, dialect: dialects[d], write: make(chan struct{}, 1), prepared: map[string]*sql.Stmt{}}
	if s.directory == "" {
		return nil, fmt.Errorf("sqlstore: unknown dialect %q", d)
	}
	s.reach = reach{few: 2000, first: 64, last: 256, bytes: 4 << 20, steps: s.steps}
	return s, nil
}

// statement returns a statement prepared before, or nil.
func (s *Store) statement(query string) *sql.Stmt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prepared[query]
}

// prepare prepares a statement permanently.
func (s *Store) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if st := s.statement(query); st != nil {
		return st, nil
	}
	st, err := s.db.PrepareContext(ctx, s.text(query))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.prepared[query]; first != nil {
		return first, st.Close()
	}
	s.prepared[query] = st
	return st, nil
}

// query runs a query, prepared once. The driver of PostgreSQL prepares by itself, unless
// there is a pooler, where a statement would be prepared on another connection than the
// one that uses it.
func (s *Store) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if s.dollars {
		return s.db.QueryContext(ctx, s.text(query), args...)
	}
	st, err := s.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, args...)
}

// A transaction writes. Its statements are prepared permanently after it has ended,
// because preparing takes a separate connection, and there may be no other.
type transaction struct {
	*Store
	conn  *sql.Conn
	tx    *sql.Tx
	ctx   context.Context
	brief context.Context // of short statements
	new   *[]string
	sums  *summer
}

// brief returns the context for short statements. The driver of SQLite starts a goroutine
// for each statement whose context may end, which wakes another core. The end of a transaction's
// context still counts between its statements.
func (s *Store) brief(ctx context.Context) context.Context {
	if s.one && ctx.Err() == nil {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// transact runs do in a transaction, which it commits unless do returns an
// error.
func (s *Store) transact(ctx context.Context, do func(transaction) error) (err error) {
	defer func() { err = failure(ctx, err) }()
	if s.reads {
		return ErrReadOnly
	}
	if s.one {
		select {
		case s.write <- struct{}{}:
			defer func() { <-s.write }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	queries, err := s.commit(ctx, do)
	if err != nil {
		return err
	}
	for _, query := range queries {
		if _, err := s.prepare(ctx, query); err != nil {
			break // it is done already
		}
	}
	return nil
}

// commit runs do in a transaction of a connection of its own, and returns the queries to
// prepare.
func (s *Store) commit(ctx context.Context, do func(transaction) error) (queries []string, err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { // even if do panics, because conn.Close waits for the end of the transaction
		if failed := tx.Rollback(); !errors.Is(failed, sql.ErrTxDone) {
			err = errors.Join(err, failed)
		}
	}()
	sums := summers.Get().(*summer)
	defer summers.Put(sums)
	if err := do(transaction{s, conn, tx, ctx, s.brief(ctx), &queries, sums}); err != nil {
		return nil, err
	}
	return queries, tx.Commit()
}

func (t transaction) statement(query string) (*sql.Stmt, error) {
	if st := t.Store.statement(query); st != nil {
		return t.tx.StmtContext(t.brief, st), nil
	}
	*t.new = append(*t.new, query)
	return t.tx.PrepareContext(t.brief, t.text(query))
}

func (t transaction) exec(query string, args ...any) error {
	if t.dollars {
		_, err := t.tx.ExecContext(t.ctx, t.text(query), args...)
		return err
	}
	st, err := t.statement(query)
	if err != nil {
		return err
	}
	_, err = st.ExecContext(t.brief, args...)
	return err
}

func (t transaction) query(query string, args ...any) (*sql.Rows, error) {
	if t.dollars {
		return t.tx.QueryContext(t.ctx, t.text(query), args...)
	}
	st, err := t.statement(query)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(t.brief, args...)
}

// numbers runs a query for a list of numbers.
func (t transaction) numbers(query string, args ...any) (list []int64, err error) {
	return firstColumn[int64](t.query(query, args...))
}

// numbers runs a query for a list of numbers.
func (s *Store) numbers(ctx context.Context, query string, args ...any) ([]int64, error) {
	return firstColumn[int64](s.query(ctx, query, args...))
}

// firstColumn returns the values in the first column of a query's result.
func firstColumn[T any](rows *sql.Rows, err error) (list []T, _ error) {
	err = eachRow(rows, err, func() error {
		var value T
		err := rows.Scan(&value)
		list = append(list, value)
		return err
	})
	return list, err
}

// eachRow calls scan at each row of a query's result, which it closes. Given the query's
// error, it returns that.
func eachRow(rows *sql.Rows, err error, scan func() error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(); err != nil {
			return err
		}
	}
	return cmp.Or(rows.Err(), rows.Close())
}

// failure returns the context's error if it is the cause of err.
func failure(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, mirror.ErrConflict) || errors.Is(err, mirror.ErrNotFound) {
		return err
	}
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	return fmt.Errorf("sqlstore: %w", err)
}

// A Dialect is a kind of database.
type Dialect string

// The dialects.
const (
	SQLite     Dialect = "sqlite"     // 3.43 or newer, with FTS5
	PostgreSQL Dialect = "postgresql" // 15 or newer
)

// A dialect has the differences between the databases' statements.
type dialect struct {
	directory string    // the directory of the migrations
	prefix    string    // stands for "fh." in statements
	own       string    // lists the tables with our prefix
	earlier   string    // lists the columns of the tables of an earlier version, before there was a prefix
	claim     string    // the first statement of a migration
	one       bool      // whether there is only one writer at a time
	in        string    // follows a column: it is in the list given as a parameter
	known     [2]string // the entries with IDs in the list given as a parameter, in the feed inserted between the two parts
	several   string    // the entries of new feeds that have contents, by two lists given as parameters, of IDs and of their feeds
	locked    string    // follows a query: its rows are locked
	found     string    // the key is among the results of the search given as a parameter
	among     string    // the same, for entries read in an order
	steps     int       // the number of entries to step through for each entry of a page
	hits      string    // the keys of the results of the search given as a parameter
	newest    string    // follows the table of entries: how to find the newest of all
	byKey     string    // the same: how to find few by their keys
	words     string    // the words given as a parameter
	mark      upsert    // stores entries whose contents do not change
	put       upsert    // stores entries with contents
	dollars   bool      // whether parameters are written $1, $2, …
}

var dialects = map[Dialect]dialect{
	SQLite: {
		directory: "sqlite",
		prefix:    "feedhistory_",
		own:       `SELECT substr(name, 13) FROM sqlite_schema WHERE name LIKE 'feedhistory\_%' ESCAPE '\'`,
		earlier: "SELECT m.name || '.' || p.name FROM sqlite_schema m, pragma_table_info(m.name) p " +
			"WHERE m.name IN ('schema_versions', 'feeds', 'entries', 'documents')",
		one: true,
		in:  " IN (SELECT value FROM json_each(?))",
		known: [2]string{
			" FROM (SELECT value AS wanted FROM json_each(?)) CROSS JOIN fh.entries ON id = wanted AND feed = (", ")",
		},
		several: " FROM fh.entries WHERE feed IN (SELECT value FROM json_each(?2)) AND format <> '' AND ?1 <> ''", // of new feeds, so all are meant
		hits:    "SELECT rowid FROM fh.search WHERE fh.search MATCH ?",
		found:   "key IN (SELECT rowid FROM fh.search WHERE fh.search MATCH ?)",
		among:   "+key IN (SELECT rowid FROM fh.search WHERE fh.search MATCH ?)", // gathers all results once
		steps:   256,
		newest:  " INDEXED BY feedhistory_entries_by_time",
		byKey:   " NOT INDEXED",
		words:   "?",
		mark:    upsertOf(own.Replace(markColumns)),
		put:     upsertOf(own.Replace(putColumns)),
	},
	PostgreSQL: {
		directory: "postgresql",
		prefix:    "feedhistory.",
		own:       "SELECT relname FROM pg_catalog.pg_class WHERE relnamespace = to_regnamespace('feedhistory')",
		earlier: "SELECT t.name || '.' || attname FROM unnest(ARRAY['schema_versions', 'feeds', 'entries', 'documents']) AS t (name) " +
			"JOIN pg_catalog.pg_attribute ON attrelid = to_regclass(t.name) WHERE attnum > 0",
		claim: "SELECT pg_advisory_xact_lock(7378697629483820646)", // everybody else who migrates waits
		in:    " = ANY (?)",
		known: [2]string{" FROM fh.entries_known(?::text[], (", "))"},
		several: " FROM (SELECT owner, array_agg(id) AS ids FROM unnest(?::text[], ?::bigint[]) AS given (id, owner) GROUP BY owner) AS given " +
			"CROSS JOIN LATERAL fh.entries_known(ids, owner)",
		locked:  " FOR UPDATE",
		hits:    "SELECT rowid FROM fh.search WHERE words @@ ?::tsquery",
		found:   "key = ANY (ARRAY(SELECT rowid FROM fh.search WHERE words @@ ?::tsquery))",
		among:   "coalesce((SELECT words @@ ?::tsquery FROM fh.search WHERE rowid = fh.entries.key), false)",
		steps:   16, // each looks up a row; for many more, PostgreSQL would spend a second on compiling the plan
		words:   "array_to_tsvector(string_to_array(?, ' '))",
		mark:    upsertOf(markColumns),
		put:     upsertOf(putColumns),
		dollars: true,
	},
}

// of returns the FROM clause for entries whose IDs are in a list, the first
// parameter, and whose feed is the result of a query.
func (d *dialect) of(feed string) string { return d.known[0] + feed + d.known[1] }

// every returns a condition true for all rows. PostgreSQL uses a partial index with
// this condition only for queries with it; SQLite needs none.
func (d *dialect) every(condition string) string {
	if !d.dollars {
		return ""
	}
	return " AND " + condition
}

// text returns the database's form of a statement: with the names of our tables,
// and with numbers for parameters if the database needs them. None of our statements
// has a question mark elsewhere.
func (d *dialect) text(query string) string {
	query = strings.ReplaceAll(query, "fh.", d.prefix)
	if !d.dollars {
		return query
	}
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(query, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("$" + strconv.Itoa(n))
		query = after
	}
}

// list returns a list as a parameter.
func list[T string | int64](d *dialect, values []T) any {
	if d.dollars {
		return values
	}
	data, _ := json.Marshal(values) // cannot fail for strings and numbers
	return string(data)
}

// A syntax has the operators of searches in a database's index.
type syntax struct{ quote, begins, or, and, not string }

var (
	matchSyntax = syntax{`"`, "*", " OR ", " AND ", " NOT "} // of FTS5
	querySyntax = syntax{"'", ":*", " | ", " & ", " & !"}    // of PostgreSQL's tsquery
)

// expression returns a query in the syntax of the index, which knows no phrases: those wanted
// are their words, and those to leave out are missing.
func (d *dialect) expression(q words.Query) string {
	x := matchSyntax
	if d.dollars {
		x = querySyntax
	}
	var groups []string
	for _, group := range q {
		var wanted, unwanted []string
		for _, t := range group {
			switch {
			case t.Phrase == nil && t.Not:
				unwanted = append(unwanted, x.word(t.Forms, t.Begins))
			case t.Phrase == nil:
				wanted = append(wanted, x.word(t.Forms, t.Begins))
			case !t.Not:
				for i, word := range t.Phrase {
					wanted = append(wanted, x.word([]string{word}, t.Begins && i == len(t.Phrase)-1))
				}
			}
		}
		text := strings.Join(wanted, x.and)
		if len(unwanted) > 0 {
			text = "(" + text + ")" + x.not + "(" + strings.Join(unwanted, x.or) + ")"
		}
		groups = append(groups, "("+text+")")
	}
	return strings.Join(groups, x.or)
}

// word returns the search for any form of a word. Words contain only letters, marks and digits.
func (x syntax) word(forms []string, begins bool) string {
	first := x.quote + forms[0] + x.quote
	if begins {
		first += x.begins
	}
	all := []string{first}
	for _, form := range forms[1:] {
		if !begins || !strings.HasPrefix(form, forms[0]) {
			all = append(all, x.quote+form+x.quote)
		}
	}
	return "(" + strings.Join(all, x.or) + ")"
}

// SQLiteDSN returns a data source name for modernc.org/sqlite to open a file as a Store
// requires: each commit is flushed, and other writers are waited for for half a minute.
// The file is created if it does not exist. Nothing is written to an existing file
// before Open has checked whose it is. A new database has pages of 16 KB, in which
// entries leave less space unused than in SQLite's usual 4 KB.
func SQLiteDSN(file string) string {
	return sqliteDSN(file, url.Values{
		"_txlock": {"immediate"},
		"_pragma": {
			"busy_timeout(30000)", "page_size(16384)", "synchronous(FULL)", "foreign_keys(ON)",
			"cache_size(-16000)", "journal_size_limit(67108864)",
		},
	})
}

// SQLiteReaderDSN returns a data source name for modernc.org/sqlite to open a file for
// OpenReader. If the file has a write-ahead log, as it has while others write to it or
// after a kill, SQLite needs the log's index in the same directory, or permission to
// create it there.
//
// Set immutable for a file without a log in a directory where no files can be
// created: SQLite then neither creates nor locks other files, nor looks for
// them. If somebody writes to the database meanwhile, results may be wrong.
func SQLiteReaderDSN(file string, immutable bool) string {
	values := url.Values{
		"mode":    {"ro"},
		"_pragma": {"busy_timeout(30000)", "query_only(ON)", "cache_size(-16000)"},
	}
	if immutable {
		values.Set("immutable", "1")
	}
	return sqliteDSN(file, values)
}

func sqliteDSN(file string, values url.Values) string {
	path := filepath.ToSlash(file)
	if filepath.IsAbs(file) && !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter is not a host
	}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: values.Encode()}
	return u.String()
}

// checkPragmas refuses connections that may lose commits or do not check foreign keys.
func checkPragmas(ctx context.Context, db *sql.DB) error {
	for _, p := range []struct{ name, want string }{
		{"journal_mode", "wal"}, {"synchronous", "2"}, {"foreign_keys", "1"},
	} {
		var got string
		if err := db.QueryRowContext(ctx, "PRAGMA "+p.name).Scan(&got); err != nil {
			return err
		}
		if got != p.want {
			return fmt.Errorf("the connection has %s = %s, but needs %s: see SQLiteDSN", p.name, got, p.want)
		}
	}
	return nil
}

// checkWritable refuses a server of PostgreSQL on which nothing can be stored: what is
// polled would be lost.
func checkWritable(ctx context.Context, db *sql.DB) error {
	var refuses bool
	err := db.QueryRowContext(ctx, "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' OR "+
		"NOT coalesce(has_table_privilege(to_regclass('feedhistory.feeds'), 'UPDATE'), true)").Scan(&refuses)
	if err == nil && refuses {
		err = ErrReadOnly
	}
	return err
}

var (
	// ErrForeign means another program has taken the names of our tables, or, from
	// OpenReader, a SQLite database belongs to another program and has no mirror. Nothing
	// was written to it.
	ErrForeign = errors.New("the database belongs to another program")
	// ErrNone means a database opened for reading contains no mirror.
	ErrNone = errors.New("there is no mirror in the database")
	// ErrOutdated means a database opened for reading has an earlier version of the
	// schema. Open brings it up to date.
	ErrOutdated = errors.New("the database has an earlier version of the schema")
	// ErrReadOnly means the store was opened by OpenReader, or that only OpenReader can open
	// it: the server of PostgreSQL is a replica, for instance, or its user may only read.
	ErrReadOnly = errors.New("the store is open for reading only")
)

// A queryer is a database or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// checkForeign returns ErrForeign for a SQLite database in which another program has
// tables, or which has its mark. Earlier versions of this package set a mark, too:
// "fhmr" in ASCII.
func checkForeign(ctx context.Context, q queryer) error {
	const ourMark = 0x66686d72
	var mark, version int64
	err := q.QueryRowContext(ctx, "PRAGMA application_id").Scan(&mark)
	if err == nil {
		err = q.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	}
	if err != nil || mark == ourMark {
		return err
	}
	tables, err := column(ctx, q, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
	if err != nil {
		return err
	}
	// An interrupted first opening has left the table of versions alone.
	tables = slices.DeleteFunc(tables, func(name string) bool { return len(tables) == 1 && name == "schema_versions" })
	if mark != 0 || version != 0 || len(tables) > 0 {
		return ErrForeign
	}
	return nil
}

func hasAll(list []string, wanted ...string) bool {
	return !slices.ContainsFunc(wanted, func(s string) bool { return !slices.Contains(list, s) })
}

// column returns the texts in the first column of a query's result.
func column(ctx context.Context, q queryer, query string, args ...any) ([]string, error) {
	return firstColumn[string](q.QueryContext(ctx, query, args...))
}

// logAhead makes SQLite keep a write-ahead log, which is a permanent setting of
// the database. It cannot begin while others read.
func (s *Store) logAhead(ctx context.Context) (err error) {
	for try := range time.Duration(10) {
		var mode string
		err = s.db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode)
		if err == nil && mode != "wal" {
			err = s.db.QueryRowContext(ctx, "PRAGMA journal_mode = wal").Scan(&mode)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep((try + 1) * 20 * time.Millisecond)
	}
	return err
}

// OpenReader returns a store for reading only. It writes nothing, and neither creates
// nor changes a table; writing methods return an error that matches ErrReadOnly. The
// error matches ErrNone or ErrOutdated if the database cannot be read as it is, and
// ErrForeign, too, if a SQLite database without a mirror belongs to another program.
// See SQLiteReaderDSN.
func OpenReader(ctx context.Context, db *sql.DB, d Dialect) (*Store, error) {
	s, err := newStore(db, d)
	if err != nil {
		return nil, err
	}
	s.reads = true
	if err := s.checkReader(ctx); err != nil {
		return nil, fmt.Errorf("sqlstore: %w", err)
	}
	return s, nil
}

func (s *Store) checkReader(ctx context.Context) error {
	current, err := s.version(ctx, s.db)
	if err == nil && current == 0 && s.one {
		none := errors.Join(ErrNone, checkForeign(ctx, s.db))
		// The tables may be ours, made by another process meanwhile.
		if current, err = s.version(ctx, s.db); err == nil && current == 0 {
			return none
		}
	}
	if err != nil {
		return err
	}
	newest, err := s.newestVersion()
	switch {
	case err != nil:
		return err
	case current == 0:
		return ErrNone
	case current < newest:
		return ErrOutdated
	}
	return nil
}

// A Hook changes tables of your own in the transaction of a commit, so they always
// agree with the mirror, after any crash. An error of the hook prevents the commit, and
// is returned by it. A mirror.Poller takes it for a failing Store: Drain ends for all feeds,
// and Run waits for a minute. So return errors of the database only.
//
// A hook is not told of entries committed before it was set: if the mirror has any, fill
// your tables from Store.Entries first.
//
// A hook gets each change once, however often a commit is tried again: earlier tries
// are rolled back. It must not use the Store, nor keep tx. If it panics, the commit is
// rolled back, and the panic passes on.
type Hook func(ctx context.Context, tx *sql.Tx, d *Delta) error

// A Delta is the difference one commit makes to a feed's live entries. Polls without
// news have a Delta, too.
//
// IDs are unique within one feed only. IDs and texts have any length, and may have U+0000,
// which PostgreSQL refuses.
type Delta struct {
	Feed *mirror.Feed // the feed's new state, with its new Commits; the last state if Removed

	// From is the URL of the feed before Store.Move, "" if it has not moved. Removed says the
	// feed is removed, with all of its entries. With either, the lists are empty: From and
	// Removed concern every entry of the feed.
	From    string
	Removed bool

	Added   []*mirror.Record // new live entries, deleted ones back again included
	Changed []*mirror.Record // live entries with other content than before
	Deleted []*mirror.Record // entries no longer live; they may lack their Content

	conn *sql.Conn
}

// Conn returns the connection of the transaction, for what the driver alone can do, by its
// Raw. Package pgxtx makes a pgx.Tx of it. A function given to Raw must not panic: Raw then
// waits forever for the transaction to end.
func (d *Delta) Conn() *sql.Conn { return d.conn }

// A liveCopy is the state of an entry before a commit.
type liveCopy struct {
	live   bool
	digest string
}

// before returns the entries of a change as they are stored, by ID.
func (t transaction) before(feed int64, c *mirror.Commit) (map[string]liveCopy, error) {
	found := make(map[string]liveCopy, len(c.Put)+len(c.Touch))
	for _, r := range slices.Concat(c.Put, c.Touch) {
		found[r.ID] = liveCopy{}
	}
	rows, err := t.query("SELECT coalesce(long_id, id), state, digest"+t.of("?"), t.keys(c.Put, c.Touch), feed)
	err = eachRow(rows, err, func() error {
		var id, state, digest string
		err := rows.Scan(textColumn{&id}, textColumn{&state}, textColumn{&digest})
		found[id] = liveCopy{live: mirror.State(state) == mirror.Live, digest: digest}
		return err
	})
	return found, err
}

// keys returns the keys of records' IDs, as a parameter.
func (t transaction) keys(lists ...[]*mirror.Record) any {
	var keys []string
	for _, r := range slices.Concat(lists...) {
		keys = append(keys, keyOf(r.ID))
	}
	return list(&t.dialect, keys)
}

// difference compares the entries of a change with those before it. The contents missing
// from the change, of entries back again, are read.
func (t transaction) difference(feed int64, c *mirror.Commit, before map[string]liveCopy) (*Delta, error) {
	d := &Delta{}
	var bare []*mirror.Record
	for i, r := range slices.Concat(c.Put, c.Touch) {
		was := before[r.ID]
		live := r.State == mirror.Live
		switch {
		case was.live && !live:
			d.Deleted = append(d.Deleted, r)
		case live && !was.live:
			d.Added = append(d.Added, r)
		case live && was.digest != r.Copy.Digest:
			d.Changed = append(d.Changed, r)
		default:
			continue
		}
		if live && i >= len(c.Put) {
			bare = append(bare, r)
		}
	}
	if len(bare) == 0 {
		return d, nil
	}
	contents, err := t.contents(feed, bare)
	if err != nil {
		return nil, err
	}
	for _, list := range [][]*mirror.Record{d.Added, d.Changed} {
		for i, r := range list {
			if content, ok := contents[r.ID]; ok {
				filled := *r
				filled.Content = content
				list[i] = &filled
			}
		}
	}
	return d, nil
}

// contents returns the stored contents of records, by ID.
func (t transaction) contents(feed int64, records []*mirror.Record) (map[string]mirror.Content, error) {
	rows, err := t.query("SELECT coalesce(long_id, id), "+contentColumns+t.of("?"), t.keys(records), feed)
	found := map[string]mirror.Content{}
	err = eachRow(rows, err, func() error {
		var id string
		var content mirror.Content
		err := rows.Scan(append([]any{textColumn{&id}}, contentTargets(&content)...)...)
		found[id] = content
		return err
	})
	return found, err
}

// tell calls the hook, if there is one.
func (t transaction) tell(f *mirror.Feed, version int64, d *Delta) error {
	if t.Hook == nil {
		return nil
	}
	state := *f
	state.Commits = version
	d.Feed, d.conn = &state, t.conn
	return t.Hook(t.ctx, t.tx, d)
}

// The directory of a dialect has a file for each version of the schema; the file beside
// it, with the dialect's name, has the whole schema of the newest version.
//
//go:embed migrations
var migrations embed.FS

// migrate makes the schema, or brings it up to date. It takes no lock if there is
// nothing to do. If several processes migrate at once, one does it, and the others find
// it done.
func (s *Store) migrate(ctx context.Context) (err error) {
	for try := range time.Duration(5) {
		if err = s.migrateOnce(ctx); err == nil || !s.one || ctx.Err() != nil || errors.Is(err, ErrForeign) {
			return err
		}
		time.Sleep((try + 1) * 20 * time.Millisecond)
	}
	return fmt.Errorf("the schema cannot be brought up to date: %w", err)
}

func (s *Store) migrateOnce(ctx context.Context) error {
	newest, err := s.newestVersion()
	if err != nil {
		return err
	}
	current, err := s.version(ctx, s.db)
	if err != nil || current >= newest {
		return err
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if s.claim != "" {
		if _, err := tx.ExecContext(ctx, s.claim); err != nil {
			return err
		}
	}
	if current, err = s.version(ctx, tx); err != nil || current >= newest { // another process was faster
		return err
	}
	scripts, err := s.scripts(current)
	if err != nil {
		return err
	}
	scripts = append(scripts, s.text("DELETE FROM fh.schema"), s.text(fmt.Sprintf("INSERT INTO fh.schema (version) VALUES (%d)", newest)))
	for _, script := range scripts {
		if _, err := tx.ExecContext(ctx, script); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// A migration is a file leading to a version of the schema.
type migration struct {
	version int64
	file    string
}

// steps returns the migrations, in order.
func (d *dialect) versions() (list []migration, err error) {
	files, err := migrations.ReadDir("migrations/" + d.directory)
	for _, f := range files {
		m := migration{file: "migrations/" + d.directory + "/" + f.Name()}
		if _, err := fmt.Sscanf(strings.TrimLeft(f.Name(), "0"), "%d_", &m.version); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, err
}

// newestVersion returns the newest version of the schema this program knows.
func (d *dialect) newestVersion() (int64, error) {
	list, err := d.versions()
	if err != nil {
		return 0, err
	}
	return list[len(list)-1].version, nil
}

// scripts returns the statements from a version to the newest: from nothing, the whole
// schema.
func (d *dialect) scripts(from int64) (list []string, err error) {
	files := []string{"migrations/" + d.directory + ".sql"}
	if from > 0 {
		steps, err := d.versions()
		if err != nil {
			return nil, err
		}
		files = nil
		for _, m := range steps {
			if m.version > from {
				files = append(files, m.file)
			}
		}
	}
	for _, file := range files {
		text, err := fs.ReadFile(migrations, file)
		if err != nil {
			return nil, err
		}
		list = append(list, string(text))
	}
	return list, nil
}

// version returns the version of the schema in a database; zero if there is none. It
// writes nothing. It is an error if a newer program has written to the database, or,
// matching ErrForeign, if tables of another program have our names.
func (s *Store) version(ctx context.Context, q queryer) (version int64, err error) {
	own, err := column(ctx, q, s.own)
	if err != nil {
		return 0, err
	}
	query := s.text("SELECT coalesce(max(version), 0) FROM fh.schema")
	if !hasAll(own, "schema") {
		for _, name := range []string{"feeds", "polls", "entries", "versions", "documents", "names", "search", "unindexed"} {
			if hasAll(own, name) {
				return 0, fmt.Errorf("%w: %s%s", ErrForeign, s.prefix, name)
			}
		}
		earlier, err := column(ctx, q, s.earlier)
		if err != nil || !hasAll(earlier, "schema_versions.version_id", "schema_versions.is_applied",
			"feeds.long_url", "feeds.state", "entries.tomb_place", "documents.rank_place") {
			return 0, err
		}
		query = "SELECT coalesce(max(version_id), 0) FROM schema_versions WHERE is_applied"
	}
	newest, err := s.newestVersion()
	if err == nil {
		err = q.QueryRowContext(ctx, query).Scan(&version)
	}
	if err == nil && version > newest {
		err = fmt.Errorf("the database has version %d of the schema, and this program knows %d", version, newest)
	}
	return version, err
}
