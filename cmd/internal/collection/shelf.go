package collection

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/feedhistory/feedhistory/harvest/atompmh"
)

// A diskShelf is an atompmh.Shelf on disk: a private database of SQLite. SQLite creates its
// file without a name, so it vanishes with the process, however that ends.
type diskShelf struct {
	ctx context.Context
	db  *sql.DB
	tx  *sql.Tx // one for all: nothing needs to last

	put, get, page, putBlock, block *sql.Stmt
}

// shelfPage is the number of entries to read at a time.
const shelfPage = 1000

const shelfSchema = `
CREATE TABLE held (key BLOB NOT NULL UNIQUE, sec INTEGER NOT NULL, nsec INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE block (number INTEGER PRIMARY KEY, data BLOB NOT NULL);`

// newDiskShelf returns an empty shelf. Close it after use.
func newDiskShelf(ctx context.Context) (*diskShelf, error) {
	db, err := sql.Open("sqlite", "") // without a name: on disk, and deleted by itself
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // each connection would have a database of its own
	s := &diskShelf{ctx: ctx, db: db}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(s.failure(err), s.Close())
	}
	return s, nil
}

func (s *diskShelf) prepare() error {
	_, err := s.db.ExecContext(s.ctx, "PRAGMA journal_mode=OFF; PRAGMA cache_size=-4000; PRAGMA temp_store=FILE;"+shelfSchema)
	if err != nil {
		return err
	}
	if s.tx, err = s.db.BeginTx(s.ctx, nil); err != nil {
		return err
	}
	for _, p := range []struct {
		statement **sql.Stmt
		query     string
	}{
		{&s.put, `INSERT INTO held (key, sec, nsec, data) VALUES (?, ?, ?, ?)
			ON CONFLICT (key) DO UPDATE SET sec = excluded.sec, nsec = excluded.nsec, data = excluded.data`},
		{&s.get, "SELECT sec, nsec, data FROM held WHERE key = ?"},
		{&s.page, "SELECT key, sec, nsec, data FROM held WHERE (sec, nsec, key) > (?, ?, ?) ORDER BY sec, nsec, key LIMIT ?"},
		{&s.putBlock, "INSERT OR REPLACE INTO block (number, data) VALUES (?, ?)"},
		{&s.block, "SELECT data FROM block WHERE number = ?"},
	} {
		if *p.statement, err = s.tx.PrepareContext(s.ctx, p.query); err != nil {
			return err
		}
	}
	return nil
}

// failure returns the error of an operation: the context's, if it has ended.
func (s *diskShelf) failure(err error) error {
	switch {
	case err == nil:
		return nil
	case s.ctx.Err() != nil:
		return s.ctx.Err()
	}
	return fmt.Errorf("a temporary file (in the directory TMPDIR names): %w", err)
}

// Close deletes the database.
func (s *diskShelf) Close() error {
	if s.tx != nil {
		_ = s.tx.Rollback() // there is no journal, and the whole database is deleted
	}
	return s.db.Close()
}

// Clear removes everything.
func (s *diskShelf) Clear() error {
	_, err := s.tx.ExecContext(s.ctx, "DROP INDEX IF EXISTS by_time; DELETE FROM held; DELETE FROM block")
	return s.failure(err)
}

// Put adds an entry.
func (s *diskShelf) Put(h atompmh.Held) error {
	_, err := s.put.ExecContext(s.ctx, []byte(h.Key), h.Time.Unix(), h.Time.Nanosecond(), h.Data)
	return s.failure(err)
}

// Get returns the entry with a key.
func (s *diskShelf) Get(key string) (atompmh.Held, bool, error) {
	h := atompmh.Held{Key: key}
	var sec, nsec int64
	err := s.get.QueryRowContext(s.ctx, []byte(key)).Scan(&sec, &nsec, &h.Data)
	if errors.Is(err, sql.ErrNoRows) {
		return atompmh.Held{}, false, nil
	}
	h.Time = time.Unix(sec, nsec).UTC()
	return h, err == nil, s.failure(err)
}

// All yields the entries in the order of time. The index is made only now: it costs less
// than one that grows.
func (s *diskShelf) All() iter.Seq2[atompmh.Held, error] {
	return func(yield func(atompmh.Held, error) bool) {
		if _, err := s.tx.ExecContext(s.ctx, "CREATE INDEX IF NOT EXISTS by_time ON held (sec, nsec, key)"); err != nil {
			yield(atompmh.Held{}, s.failure(err))
			return
		}
		last := atompmh.Held{Time: time.Unix(math.MinInt64, 0)}
		for {
			page, err := s.after(last)
			if err != nil {
				yield(atompmh.Held{}, s.failure(err))
				return
			}
			for _, h := range page {
				if !yield(h, nil) {
					return
				}
			}
			if len(page) < shelfPage {
				return
			}
			last = page[len(page)-1]
		}
	}
}

// after returns the next entries after one. They are all read before the first is used,
// because there is only one connection.
func (s *diskShelf) after(last atompmh.Held) (page []atompmh.Held, err error) {
	rows, err := s.page.QueryContext(s.ctx, last.Time.Unix(), last.Time.Nanosecond(), []byte(last.Key), shelfPage)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var h atompmh.Held
		var sec, nsec int64
		if err := rows.Scan(&h.Key, &sec, &nsec, &h.Data); err != nil {
			return nil, err
		}
		h.Time = time.Unix(sec, nsec).UTC()
		page = append(page, h)
	}
	return page, rows.Err()
}

// PutBlock adds a block of texts.
func (s *diskShelf) PutBlock(number int, data []byte) error {
	_, err := s.putBlock.ExecContext(s.ctx, number, data)
	return s.failure(err)
}

// Block returns a block of texts.
func (s *diskShelf) Block(number int) (data []byte, err error) {
	err = s.block.QueryRowContext(s.ctx, number).Scan(&data)
	return data, s.failure(err)
}
