package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// Repair replaces a damaged file by a new one with its sound rows. The damaged file is kept under
// its name with .damaged at the end, which must be free. Repair returns the URLs of the feeds with
// possible losses. No other process can use the file until it ends.
func (d *Location) Repair(w *command.World) (feeds []string, err error) {
	kept, part := d.DB+".damaged", d.DB+".part"
	if _, err := os.Lstat(kept); !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, errors.New(kept+": the file exists already; move it away first"))
	}
	db, err := own(w.Ctx, d.DB)
	if err != nil {
		return nil, d.Failure(err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	from, err := sqlstore.OpenReader(w.Ctx, db, sqlstore.SQLite)
	if err != nil {
		return nil, d.Failure(err)
	}
	if err := removeDatabase(part); err != nil { // of a killed repair
		return nil, err
	}
	new := &Location{DB: part}
	to, err := new.Create(w)
	if err != nil {
		return nil, err
	}
	if feeds, err = from.Repair(w.Ctx, to.Store); err == nil {
		err = copyPrinted(w.Ctx, db, to)
	}
	if err = errors.Join(err, to.Close()); err == nil {
		err = keep(d.DB, kept)
	}
	if err != nil {
		return nil, errors.Join(d.Failure(err), removeDatabase(part))
	}
	return feeds, os.Rename(part, d.DB)
}

// removeDatabase removes the files of a database, if there are any.
func removeDatabase(file string) (err error) {
	for _, name := range []string{file, file + "-wal", file + "-shm"} {
		if failed := os.Remove(name); !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// keep gives a file a second name, which no file has: by a link or, on a file system without
// links, by a copy.
func keep(file, name string) error {
	if os.Link(file, name) == nil {
		return nil
	}
	from, err := os.Open(file)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Sync(), to.Close()); err != nil {
		_ = os.Remove(name)
	}
	return err
}

// own opens a file of SQLite, and locks it against other processes. It merges the write-ahead
// log, because SQLite would take that for the new file's.
func own(ctx context.Context, file string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", sqlstore.SQLiteDSN(file))
	if err != nil {
		return nil, err
	}
	if err := lockAlone(ctx, db, file, 5*time.Second); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// lockAlone locks a file of SQLite against other processes, and merges its log. From then on
// the database has one connection.
func lockAlone(ctx context.Context, db *sql.DB, file string, wait time.Duration) error {
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	for _, statement := range []string{
		fmt.Sprintf("PRAGMA busy_timeout = %d", wait.Milliseconds()),
		"PRAGMA locking_mode = EXCLUSIVE", "PRAGMA journal_mode = DELETE", "BEGIN EXCLUSIVE", "COMMIT",
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	if hasLog(file) {
		return fmt.Errorf("%s: its write-ahead log cannot be merged", file)
	}
	return nil
}

// copyPrinted copies the records of the entries printed, as far as they can be read.
func copyPrinted(ctx context.Context, from *sql.DB, to *Store) error {
	if err := createPrinted(ctx, to.DB); err != nil {
		return err
	}
	rows, err := from.QueryContext(ctx, "SELECT name, feed, commits FROM feedhistory_printed")
	if err != nil { // it is made only by the first use
		return ctx.Err()
	}
	defer rows.Close()
	for rows.Next() {
		var name, feed string
		var commits int64
		if err := rows.Scan(&name, &feed, &commits); err != nil {
			return err
		}
		f, err := to.Feed(ctx, feed)
		if err != nil {
			continue // its state is lost
		}
		if _, err := to.DB.ExecContext(ctx, "INSERT INTO feedhistory_printed (name, feed, commits) VALUES ($1, $2, $3)", name, feed, min(commits, f.Commits)); err != nil {
			return err
		}
	}
	return ctx.Err()
}
