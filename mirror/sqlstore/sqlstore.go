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
package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/feedhistory/feedhistory/mirror"
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

var (
	_ mirror.Store    = (*Store)(nil)
	_ mirror.Calendar = (*Store)(nil)
)

// Open returns the store in a database, and brings its schema up to date. The database
// may have other tables: ours begin with feedhistory_ in SQLite, and are in the schema
// feedhistory in PostgreSQL. Open refuses a database in which these names are taken,
// with an error that matches ErrForeign; a database written to by a newer version of
// this package; and connections to SQLite that could break the store's promises. The
// caller owns the database, and closes it. The error may be the context's.
func Open(ctx context.Context, db *sql.DB, d Dialect) (*Store, error) {
	s, err := newStore(db, d)
	if err != nil {
		return nil, err
	}
	if _, err = s.version(ctx, db); err == nil && s.one { // before anything is written
		err = cmp.Or(s.logAhead(ctx), checkPragmas(ctx, db))
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

// query runs a query, prepared once.
func (s *Store) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
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
	tx   *sql.Tx
	ctx  context.Context
	new  *[]string
	sums *summer
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
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	var queries []string
	if err := do(transaction{s, tx, ctx, &queries, &summer{}}); err != nil {
		return errors.Join(err, rollback(tx))
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	for _, query := range queries {
		if _, err := s.prepare(ctx, query); err != nil {
			break // it is done already
		}
	}
	return nil
}

func rollback(tx *sql.Tx) error {
	if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}

func (t transaction) statement(query string) (*sql.Stmt, error) {
	if st := t.Store.statement(query); st != nil {
		return t.tx.StmtContext(t.ctx, st), nil
	}
	*t.new = append(*t.new, query)
	return t.tx.PrepareContext(t.ctx, t.text(query))
}

func (t transaction) exec(query string, args ...any) error {
	st, err := t.statement(query)
	if err != nil {
		return err
	}
	_, err = st.ExecContext(t.ctx, args...)
	return err
}

func (t transaction) query(query string, args ...any) (*sql.Rows, error) {
	st, err := t.statement(query)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(t.ctx, args...)
}

// numbers runs a query for a list of numbers.
func (t transaction) numbers(query string, args ...any) (list []int64, err error) {
	rows, err := t.query(query, args...)
	if err != nil {
		return nil, err
	}
	return scanNumbers(rows)
}

// numbers runs a query for a list of numbers.
func (s *Store) numbers(ctx context.Context, query string, args ...any) ([]int64, error) {
	rows, err := s.query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return scanNumbers(rows)
}

func scanNumbers(rows *sql.Rows) (list []int64, err error) {
	defer rows.Close()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, rows.Err()
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
