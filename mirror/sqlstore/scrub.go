package sqlstore

import (
	"context"
	"errors"
	"fmt"
)

// scrubbing are the statements to make a database release removed bytes.
var scrubbing = map[bool][]string{
	true: { // SQLite
		"INSERT INTO fh.search (fh.search) VALUES ('optimize')", // the index keeps the words of removed entries until it is merged
		"VACUUM",
	},
	false: {"VACUUM (FULL) fh.entries, fh.versions, fh.search, fh.unindexed, fh.feeds, fh.polls, fh.documents, fh.names"},
}

// Scrub indexes all waiting entries, and rewrites the database without the bytes of
// removed and replaced rows: a SQLite file and its log, or PostgreSQL's tables. It
// takes as long as copying the database, and temporarily as much space; nobody else can
// write meanwhile. If it cannot empty the log of a SQLite file because another process
// reads it, Scrub returns an error.
//
// Scrub does not reach PostgreSQL's own write-ahead log, nor backups.
// The error may be the context's.
func (s *Store) Scrub(ctx context.Context) (err error) {
	if s.reads {
		return ErrReadOnly
	}
	if err := s.Index(ctx); err != nil {
		return err
	}
	defer func() { err = failure(ctx, err) }()
	if s.one {
		select {
		case s.write <- struct{}{}:
			defer func() { <-s.write }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for _, statement := range scrubbing[s.one] {
		if _, err := s.db.ExecContext(ctx, s.text(statement)); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	if !s.one {
		return nil
	}
	var busy, pages, done int
	if err := s.db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &done); err != nil {
		return err
	}
	if busy != 0 {
		return errors.New("the write-ahead log still contains removed data: another process is reading the database")
	}
	return nil
}
