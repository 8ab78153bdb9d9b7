// Package incremental keeps feeds in an SQL database, walk after walk: it reads
// what is new, and goes on where an earlier walk was cut short, whatever that was
// cut short by. It is written for SQLite, to start from; package mirror does the
// same for any store, and much besides.
package incremental

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/feedhistory/feedhistory"
)

// Schema creates the tables. A document is processed, that is its entries are
// stored, or pending: a link to it has been seen.
const Schema = `
CREATE TABLE IF NOT EXISTS entries (
	feed TEXT, id TEXT, updated INTEGER, title TEXT, PRIMARY KEY (feed, id)
);
CREATE TABLE IF NOT EXISTS documents (
	feed TEXT, url TEXT, processed INTEGER, PRIMARY KEY (feed, url)
);`

// Update reads what is new of a feed, and returns how many documents are known to
// be missing: none, if the walk came to its end.
func Update(ctx context.Context, db *sql.DB, client *feedhistory.Client, feed string) (missing int, err error) {
	u := &update{ctx: ctx, db: db, feed: feed}
	pending, err := u.pending()
	if err != nil {
		return 0, err
	}
	for doc, err := range client.Walk(ctx, feed, &feedhistory.WalkOptions{Processed: u.processed, Pending: pending}) {
		var gap *feedhistory.Gap
		switch {
		case u.err != nil:
			return 0, u.err
		case errors.As(err, &gap):
			if err := u.missing(gap); err != nil {
				return 0, err
			}
		case err != nil:
			return 0, err // of the first document, or the context's
		default:
			if err := u.store(doc, true); err != nil {
				return 0, err
			}
		}
	}
	pending, err = u.pending()
	return len(pending) + u.gaps, errors.Join(err, u.err)
}

// An update is one walk.
type update struct {
	ctx   context.Context
	db    *sql.DB
	feed  string
	start string // where the subscription document was requested
	gaps  int    // that no pending document stands for
	err   error  // of processed
}

// processed reports whether an archive document was stored. The walk may ask while
// it is being stored: what the walk itself has read does not end it.
func (u *update) processed(url string) (processed bool) {
	err := u.db.QueryRowContext(u.ctx, "SELECT processed FROM documents WHERE feed = ? AND url = ?", u.feed, url).Scan(&processed)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		u.err = err
	}
	return processed
}

func (u *update) pending() (urls []string, err error) {
	rows, err := u.db.QueryContext(u.ctx, "SELECT url FROM documents WHERE feed = ? AND NOT processed ORDER BY rowid", u.feed)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var url string
		if err := rows.Scan(&url); err != nil {
			return nil, err
		}
		urls = append(urls, url)
	}
	return urls, rows.Err()
}

// store stores a document in one transaction: its entries; what it links to, as
// pending; and only then, if it is whole, itself as processed. If the two were not
// committed together, a crash between them would cut off what is older for good.
func (u *update) store(doc *feedhistory.Document, whole bool) error {
	if u.start == "" {
		u.start = doc.Response.Requested
	}
	newest := doc.Response.Requested == u.start // which changes, so it is never processed
	tx, err := u.db.BeginTx(u.ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, e := range doc.Entries {
		// Of two copies the one with the later time counts (5005#20), else the one
		// from the newer document (5005#21).
		_, err := tx.ExecContext(u.ctx, `INSERT INTO entries (feed, id, updated, title) VALUES (?, ?, ?, ?)
			ON CONFLICT (feed, id) DO UPDATE SET updated = excluded.updated, title = excluded.title
			WHERE excluded.updated > entries.updated OR excluded.updated = entries.updated AND ?`,
			u.feed, e.ID, timestamp(e.Updated), e.Title().Plain(), newest)
		if err != nil {
			return fmt.Errorf("entry %s: %w", e.ID, err)
		}
	}
	if older, ok := doc.Older(); ok && doc.Kind() == feedhistory.Archived {
		_, err := tx.ExecContext(u.ctx, "INSERT INTO documents (feed, url, processed) VALUES (?, ?, FALSE) ON CONFLICT DO NOTHING",
			u.feed, older.Href)
		if err != nil {
			return err
		}
	}
	if whole && !newest {
		for _, url := range []string{doc.Response.Requested, doc.URL} {
			_, err := tx.ExecContext(u.ctx, `INSERT INTO documents (feed, url, processed) VALUES (?, ?, TRUE)
				ON CONFLICT (feed, url) DO UPDATE SET processed = TRUE`, u.feed, url)
			if err != nil {
				return err
			}
		}
	}
	return tx.Commit()
}

// missing stores what could be read of a document that is damaged. It stays
// pending, as does one of which nothing could be read.
func (u *update) missing(gap *feedhistory.Gap) error {
	var pending bool
	err := u.db.QueryRowContext(u.ctx, "SELECT NOT processed FROM documents WHERE feed = ? AND url = ?", u.feed, gap.URL).Scan(&pending)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if !pending {
		u.gaps++
	}
	if gap.Document == nil {
		return nil
	}
	return u.store(gap.Document, false)
}

// timestamp is a time as a number; 0 for none.
func timestamp(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
