package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

var (
	// ErrForeign says that a SQLite database belongs to another program.
	// Nothing was written to it.
	ErrForeign = errors.New("the database belongs to another program")
	// ErrNone says that a database opened for reading contains no mirror.
	ErrNone = errors.New("there is no mirror in the database")
	// ErrOutdated says that a database opened for reading has an earlier
	// version of the schema. Open brings it up to date.
	ErrOutdated = errors.New("the database has an earlier version of the schema")
	// ErrReadOnly says that the store was opened by OpenReader.
	ErrReadOnly = errors.New("the store is open for reading only")
)

// applicationID marks a SQLite database as ours (PRAGMA application_id): "fhmr"
// in ASCII. The first release did not set it.
const applicationID = 0x66686d72

// An owner says to whom a SQLite database belongs.
type owner uint8

const (
	nobody   owner = iota // the database is empty
	ours                  // it has our mark
	unmarked              // it has our tables, but no mark
	another
)

// A queryer is a database or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// ownerOf returns the owner of a SQLite database. It writes nothing.
func ownerOf(ctx context.Context, q queryer) (owner, error) {
	var id, version int64
	err := q.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id)
	if err == nil {
		err = q.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	}
	if err != nil || id == applicationID {
		return ours, err
	}
	tables, err := column(ctx, q, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
	if err != nil {
		return another, err
	}
	columns, err := column(ctx, q, "SELECT m.name || '.' || p.name FROM sqlite_schema m, pragma_table_info(m.name) p "+
		"WHERE m.name IN ('schema_versions', 'feeds', 'entries', 'documents')")
	switch {
	case err != nil || id != 0 || version != 0:
		return another, err
	case len(tables) == 0:
		return nobody, nil
	case !hasAll(columns, "schema_versions.version_id", "schema_versions.is_applied"):
		return another, nil
	case len(tables) == 1, // the first opening was cut short
		hasAll(tables, "versions", "names", "search", "unindexed") &&
			hasAll(columns, "feeds.long_url", "feeds.verdict", "feeds.state", "entries.tomb_place", "documents.rank_place"):
		return unmarked, nil
	}
	return another, nil
}

func hasAll(list []string, wanted ...string) bool {
	return !slices.ContainsFunc(wanted, func(s string) bool { return !slices.Contains(list, s) })
}

// column returns the texts in the first column of a query's result.
func column(ctx context.Context, q queryer, query string) (list []string, err error) {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, rows.Err()
}

// claim marks a SQLite database that is empty, or ours without a mark. It
// refuses any other database before anything is written.
func (s *Store) claim(ctx context.Context) error {
	whose, err := ownerOf(ctx, s.db)
	if err != nil || whose == ours {
		return err
	}
	if whose == another {
		return ErrForeign
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	whose, err = ownerOf(ctx, tx) // others may be doing the same
	switch {
	case err == nil && whose == another:
		err = ErrForeign
	case err == nil && whose != ours:
		_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", applicationID))
	}
	if err != nil {
		return errors.Join(err, rollback(tx))
	}
	return tx.Commit()
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

// OpenReader returns a store for reading only. It writes nothing, and neither
// creates nor changes a table; methods that would write return an error that
// matches ErrReadOnly. The error matches ErrNone or ErrOutdated if the database
// cannot be read as it is, and ErrForeign in the same cases as for Open. See
// SQLiteReaderDSN.
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
	there := "SELECT count(*) FROM pg_catalog.pg_class WHERE oid = to_regclass('schema_versions')"
	if s.one {
		whose, err := ownerOf(ctx, s.db)
		if err == nil && whose == another {
			err = ErrForeign
		}
		if err != nil {
			return err
		}
		there = "SELECT count(*) FROM sqlite_schema WHERE name = 'schema_versions'"
	}
	var tables, current int64
	if err := s.db.QueryRowContext(ctx, there).Scan(&tables); err != nil {
		return err
	}
	if tables > 0 {
		err := s.db.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM schema_versions WHERE is_applied").Scan(&current)
		if err != nil {
			return err
		}
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
	return tooNew(current, newest)
}

// tooNew returns an error for a database that a newer program has written to.
func tooNew(current, newest int64) error {
	if current > newest {
		return fmt.Errorf("the database has version %d of the schema, and this program knows %d", current, newest)
	}
	return nil
}

// newestVersion returns the newest version of the schema that this program
// knows.
func (s *Store) newestVersion() (newest int64, err error) {
	files, err := migrations.ReadDir("migrations/" + s.migrations)
	for _, f := range files {
		var n int64
		if _, err := fmt.Sscanf(strings.TrimLeft(f.Name(), "0"), "%d_", &n); err != nil {
			return 0, err
		}
		newest = max(newest, n)
	}
	return newest, err
}
