package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
)

// Times are microseconds since 1970.
const schema = `
CREATE TABLE IF NOT EXISTS entries (
	feed TEXT, id TEXT,
	updated  INTEGER, -- the entry, or its deletion
	deleted  BOOLEAN,
	document INTEGER, -- when the document was updated that this copy comes from
	title    TEXT,
	PRIMARY KEY (feed, id)
);
CREATE TABLE IF NOT EXISTS documents (
	feed TEXT, url TEXT,
	state TEXT, -- newest; processed; loop: processed, but its link leads back; or still to read: pending (an archive), page
	known TEXT, -- of the newest: its feedhistory.Known, as JSON
	PRIMARY KEY (feed, url)
);`

// update reads what is new in a feed, and stores it. The returned history has
// no entries; it says how much of the feed is stored, and what is missing. A
// feed that has not changed costs one request, which the server answers with
// 304.
func update(ctx context.Context, db *sql.DB, client *feedhistory.Client, feed string) (*feedhistory.History, error) {
	u := &updating{ctx: ctx, db: db, feed: feed, verdict: feedhistory.Merger{Streaming: true}}
	options, err := u.options()
	if err != nil {
		return nil, err
	}
	for doc, err := range client.Walk(ctx, feed, options) {
		u.verdict.Add(doc, err)
		gap, isGap := errors.AsType[*feedhistory.Gap](err)
		if isGap {
			doc = gap.Document // what could be read of a damaged document
		}
		if unchanged, ok := errors.AsType[*feedhistory.Unchanged](err); ok {
			u.begin(unchanged.Response, unchanged.Known.Kind)
		}
		if doc != nil {
			u.begin(doc.Response, doc.Kind())
			whole := err == nil && len(doc.Missing(u.kind)) == 0 && !doc.Known().Lost
			if err := u.store(doc, whole); err != nil {
				return nil, err
			}
		}
		if isGap && gap.Reason == feedhistory.ReasonLoop { // later walks do not reach the loop again
			if err := u.setState(db, gap.From, "loop", nil); err != nil {
				return nil, err
			}
		}
	}
	history, err := u.verdict.History()
	if _, ok := errors.AsType[*feedhistory.Unchanged](err); ok {
		return cmp.Or(history, &feedhistory.History{Kind: u.kind}), nil // nothing is new, and nothing is missing
	}
	return history, err
}

// updating is one update of a feed.
type updating struct {
	ctx     context.Context
	db      *sql.DB
	feed    string
	verdict feedhistory.Merger

	newest string           // the URL of the feed's newest document, which keeps changing
	kind   feedhistory.Kind // of the feed
	cut    bool             // an earlier walk was cut short within the pages of a paged feed
	stale  bool             // the last document had nothing new, so nothing older is new
}

// begin records the first document of a walk, which is the newest.
func (u *updating) begin(r feedhistory.Response, kind feedhistory.Kind) {
	if u.newest == "" {
		u.newest, u.kind = r.Requested, kind
	}
}

// options tells a walk what earlier ones have stored.
func (u *updating) options() (*feedhistory.WalkOptions, error) {
	rows, err := u.db.QueryContext(u.ctx, "SELECT url, state, known FROM documents WHERE feed = ? ORDER BY rowid", u.feed)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	processed, newest := map[string]bool{}, map[string]feedhistory.Known{}
	options := &feedhistory.WalkOptions{
		Processed: func(url string) bool { return processed[url] },
		Known:     func(url string) feedhistory.Known { return newest[url] },
		Last:      func(*feedhistory.Document) bool { return u.stale },
	}
	for rows.Next() {
		var url, state string
		var text []byte
		if err := rows.Scan(&url, &state, &text); err != nil {
			return nil, err
		}
		switch state {
		case "newest":
			var known feedhistory.Known
			if err := json.Unmarshal(text, &known); err != nil {
				return nil, err
			}
			newest[url] = known
		case "processed":
			processed[url] = true
		case "loop":
			processed[url] = true
			u.verdict.Add(nil, &feedhistory.Gap{URL: url, Reason: feedhistory.ReasonLoop, Err: errors.New("an earlier walk has found a loop")})
		case "pending":
			options.Pending = append(options.Pending, url)
		case "page":
			options.PendingPages, u.cut = append(options.PendingPages, url), true
		}
	}
	return options, rows.Err()
}

// store stores a document in one transaction: its entries; what it links to, as
// still to be read; and, if it is whole, that it was read. With two
// transactions, a kill between them could cut off older documents for good.
func (u *updating) store(doc *feedhistory.Document, whole bool) error {
	tx, err := u.db.BeginTx(u.ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if whole && doc.Kind() == feedhistory.Complete { // entries that it lacks are no longer part of the feed
		if _, err := tx.ExecContext(u.ctx, "DELETE FROM entries WHERE feed = ?", u.feed); err != nil {
			return err
		}
	}
	if err := u.storeEntries(tx, doc); err != nil {
		return err
	}
	if err := u.storeOlder(tx, doc); err != nil {
		return err
	}
	if whole {
		if err := u.storeRead(tx, doc); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// storeEntries stores the entries of a document. Of two copies, the one with
// the later time counts (5005#20), or else the one from the later document
// (5005#21).
func (u *updating) storeEntries(tx *sql.Tx, doc *feedhistory.Document) error {
	document := cmp.Or(micro(doc.Updated), micro(doc.LastModified))
	if document == 0 && doc.Response.Requested == u.newest {
		document = micro(doc.Response.Received)
	}
	u.stale = !u.cut && len(doc.Entries)+len(doc.Deleted) > 0
	put := func(id string, updated time.Time, deleted bool, title string) error {
		at, stored := cmp.Or(micro(updated), document), false
		err := tx.QueryRowContext(u.ctx, "SELECT EXISTS (SELECT 1 FROM entries WHERE feed = ? AND id = ? AND updated >= ?)",
			u.feed, id, at).Scan(&stored)
		if err != nil {
			return err
		}
		u.stale = u.stale && stored
		_, err = tx.ExecContext(u.ctx, `INSERT INTO entries (feed, id, updated, deleted, document, title) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (feed, id) DO UPDATE
			SET updated = excluded.updated, deleted = excluded.deleted, document = excluded.document, title = excluded.title
			WHERE (excluded.updated, excluded.deleted, excluded.document) > (entries.updated, entries.deleted, entries.document)`,
			u.feed, id, at, deleted, document, title)
		return err
	}
	for _, t := range doc.Deleted {
		if err := put(t.Ref, t.When, true, ""); err != nil {
			return err
		}
	}
	for _, e := range doc.Entries {
		if err := put(e.ID, e.Updated, false, e.Title().Plain()); err != nil {
			return err
		}
	}
	return nil
}

// storeOlder stores that the next older document is still to be read, unless it
// was read. Pages are read until one has nothing new.
func (u *updating) storeOlder(tx *sql.Tx, doc *feedhistory.Document) error {
	older, ok := doc.Older()
	state := "pending"
	if u.kind == feedhistory.Paged {
		state, ok = "page", ok && !u.stale
	}
	if !ok {
		return nil
	}
	url, _, _ := strings.Cut(older.Href, "#")
	_, err := tx.ExecContext(u.ctx, "INSERT INTO documents (feed, url, state) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", u.feed, url, state)
	return err
}

// storeRead stores that a document was read. An archive does not change, and is
// processed (5005#19). The newest document is known, so that the next request
// is conditional. Pages are found again through the newest one.
func (u *updating) storeRead(tx *sql.Tx, doc *feedhistory.Document) error {
	url := doc.Response.Requested
	switch {
	case url == u.newest && doc.Coverage != nil:
		return nil // it is read in full each time, because it says how much is missing
	case url == u.newest:
		known := doc.Known()
		known.Older = "" // that is stored separately
		text, err := json.Marshal(known)
		return errors.Join(err, u.setState(tx, url, "newest", text))
	case u.kind == feedhistory.Paged:
		_, err := tx.ExecContext(u.ctx, "DELETE FROM documents WHERE feed = ? AND url = ?", u.feed, url)
		return err
	}
	err := u.setState(tx, doc.URL, "processed", nil) // the same, except after redirects
	return errors.Join(err, u.setState(tx, url, "processed", nil))
}

// setState sets the state of a document, in a transaction or by itself.
func (u *updating) setState(db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, url, state string, known []byte) error {
	_, err := db.ExecContext(u.ctx, `INSERT INTO documents (feed, url, state, known) VALUES (?, ?, ?, ?)
		ON CONFLICT (feed, url) DO UPDATE SET state = excluded.state, known = excluded.known`, u.feed, url, state, known)
	return err
}

// micro returns a time in microseconds; 0 for none.
func micro(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}
