package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"
)

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
	// ErrStructure means the structure of a SQLite file is damaged.
	ErrStructure = errors.New("the structure of the file is damaged")
	// ErrReadOnly means the store was opened by OpenReader.
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
func column(ctx context.Context, q queryer, query string, args ...any) (list []string, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
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
// See SQLiteReaderDSN. The error may be the context's.
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
	if err != nil {
		return err
	}
	newest, err := s.newestVersion()
	switch {
	case err != nil:
		return err
	case current == 0 && s.one:
		return errors.Join(ErrNone, checkForeign(ctx, s.db))
	case current == 0:
		return ErrNone
	case current < newest:
		return ErrOutdated
	}
	return nil
}
