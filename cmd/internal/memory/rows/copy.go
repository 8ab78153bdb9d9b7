package rows

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// A Copy is a private copy of a database. Close removes it.
type Copy struct {
	*sql.DB
	Damage error // the first fault that SQLite finds in the database; nil if it is sound

	name string
	dir  string // "" if the file has no name any more
}

// Open copies a database to the directory for temporary files, and opens the copy. The
// database itself is never locked, so its program can write meanwhile.
func Open(ctx context.Context, file string) (*Copy, error) {
	source, err := filepath.EvalSymlinks(file) // the journal is next to the file itself
	if err != nil {
		return nil, err
	}
	c := &Copy{name: file}
	if c.dir, err = os.MkdirTemp("", "feedhistory-import-"); err != nil {
		return nil, fmt.Errorf("%s cannot be copied to the directory for temporary files, which TMPDIR sets: %w", file, err)
	}
	s := &snapshot{source: source, copy: filepath.Join(c.dir, "copy.db")}
	if err = s.take(ctx); err == nil {
		err = c.open(ctx, s.copy)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if c.Damage != nil {
		c.Damage = fmt.Errorf("%s is damaged, so rows may be missing: %w", file, c.Damage)
	}
	return c, nil
}

// open opens a finished copy. Where the system lets open files lose their names, a kill
// leaves nothing behind from then on.
func (c *Copy) open(ctx context.Context, file string) (err error) {
	if c.Damage, err = repair(ctx, file); err != nil {
		return err
	}
	if c.DB, err = openUnlocked(file); err != nil {
		return err
	}
	if err := c.DB.PingContext(ctx); err != nil {
		return err
	}
	if os.RemoveAll(c.dir) == nil {
		c.dir = ""
	}
	return nil
}

// repair merges the journal of a copy, and returns the first fault of the database.
func repair(ctx context.Context, file string) (fault, err error) {
	db, err := sql.Open("sqlite", sqlstore.SQLiteDSN(file))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	for _, query := range []string{"PRAGMA journal_mode = delete", "PRAGMA quick_check(1)"} {
		var answer string
		err := db.QueryRowContext(ctx, query).Scan(&answer)
		failed, ok := errors.AsType[*sqlite.Error](err)
		switch {
		case ok && failed.Code()&0xff == sqlite3.SQLITE_CORRUPT:
			return err, nil
		case err != nil:
			return nil, err
		case answer != "ok" && answer != "delete":
			return errors.New(strings.Join(strings.Fields(strings.TrimPrefix(answer, "*** in database main ***")), " ")), nil
		}
	}
	return nil, nil
}

// openUnlocked opens a file for reading, without locks and without its journal.
func openUnlocked(file string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", sqlstore.SQLiteReaderDSN(file, true))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// Close ends the copy.
func (c *Copy) Close() (err error) {
	if c.DB != nil {
		err = c.DB.Close()
	}
	if c.dir != "" {
		err = errors.Join(err, os.RemoveAll(c.dir))
	}
	return err
}

// Has reports whether a file is a database with all of these columns in a table. It reads
// the file itself, and a copy only if a writer may have interfered.
func Has(ctx context.Context, file, table string, columns ...string) bool {
	db, err := openUnlocked(file)
	if err != nil {
		return false
	}
	found, err := has(ctx, db, table, columns)
	if _ = db.Close(); found || err == nil && !hasLog(file) {
		return found
	}
	c, err := Open(ctx, file)
	if err != nil {
		return false
	}
	defer c.Close()
	found, err = has(ctx, c.DB, table, columns)
	return found && err == nil
}

func has(ctx context.Context, db *sql.DB, table string, columns []string) (bool, error) {
	names, err := Columns(ctx, db, table)
	for _, column := range columns {
		if !slices.Contains(names, column) {
			return false, err
		}
	}
	return err == nil, err
}

// hasLog reports whether a database has changes in a journal or write-ahead log.
func hasLog(file string) bool {
	return slices.ContainsFunc(parts[1:], func(part string) bool {
		info, err := os.Stat(file + part)
		return err == nil && info.Size() > 0
	})
}
