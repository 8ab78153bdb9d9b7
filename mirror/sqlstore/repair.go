package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// Repair copies everything sound in a damaged SQLite file into another store, which
// must be empty and in a SQLite file, too. Rows found damaged by Check, and those SQLite
// cannot read, are left out; the damaged file is only read. Repair returns the URLs of
// the feeds with possible losses. They are partial, and due: their next Update reads them from
// their beginning, and restores the entries that their publishers still have. Nobody may write
// to either store meanwhile.
//
// Damage of PostgreSQL is the server's to repair: Repair returns an error.
func (s *Store) Repair(ctx context.Context, to *Store) (feeds []string, err error) {
	if to == nil || !s.one || !to.one {
		return nil, errors.New("sqlstore: Repair: both stores must be in SQLite files")
	}
	err = to.transact(ctx, func(t transaction) error {
		r := &repair{
			transaction: t, checker: newChecker(s), from: s,
			copied: map[any]bool{}, suspect: map[any]bool{}, states: map[any]string{},
		}
		feeds, err = r.run()
		return err
	})
	return feeds, err
}

// A repair copies rows to the store of its transaction.
type repair struct {
	transaction
	checker *checker
	from    *Store
	copied  map[any]bool   // the keys of the feeds in the new store
	suspect map[any]bool   // the keys of the feeds with possible losses
	states  map[any]string // what is left of the states of feeds not copied
	lost    bool           // rows could not be read, and may be any feed's
}

func (r *repair) run() (feeds []string, err error) {
	for _, t := range checkedTables() {
		if err := r.table(&t); err != nil {
			return nil, err
		}
		if t.name == "feeds" {
			if err := r.feedsByName(); err != nil {
				return nil, err
			}
		}
	}
	if err := r.exec("INSERT INTO fh.unindexed SELECT key FROM fh.entries WHERE format <> ''"); err != nil {
		return nil, err
	}
	for key := range r.copied {
		c := r.checker
		if !r.lost && !r.suspect[key] && c.polled[key] && c.counted[key] == c.live[key] {
			continue
		}
		url, err := r.restart(key)
		if err != nil {
			return nil, err
		}
		feeds = append(feeds, url)
	}
	slices.Sort(feeds)
	return feeds, nil
}

// table copies the sound rows of a table.
func (r *repair) table(t *checkedTable) error {
	stored, err := column(r.ctx, r.tx, "SELECT name FROM pragma_table_info('feedhistory_"+t.name+"')") // without the generated ones
	if err != nil {
		return err
	}
	columns := strings.Join(stored, ", ")
	insert := "INSERT INTO fh." + t.name + " (" + columns + ") VALUES " + marks(columns)
	return r.rows("SELECT rowid, "+columns+", "+t.columns()+" FROM fh."+t.name, func(values []any) error {
		own, row := values[1:1+len(stored)], t.row(values[1+len(stored):], &r.checker.sums)
		sound := r.checker.row(t, row)
		feed := row.place[0] // but of two tables
		switch t.name {
		case "entries":
			feed = row.prefix[0]
		case "documents":
			feed = row.groups[0][0]
		}
		if !sound || t.name != "feeds" && !r.copied[feed] {
			r.suspect[feed] = true
			if t.name == "feeds" {
				r.states[feed], _ = row.groups[0][7].(string)
			}
			return nil
		}
		r.copied[feed] = true
		for i, g := range t.groups { // an earlier version may not have known them
			own[slices.Index(stored, g[1])] = row.sums[i]
		}
		if err := r.exec(insert, own...); err != nil || t.name != "documents" {
			return err
		}
		d := &mirror.DocumentRecord{}
		state, _ := row.groups[0][4].(string)
		if err := json.Unmarshal([]byte(state), d); err != nil {
			return err
		}
		return r.names(feed, row.place[0], d)
	})
}

// feedsByName adds the feeds whose rows are damaged: an index has their addresses, too.
func (r *repair) feedsByName() error {
	names := map[any]string{}
	err := scanRows(r.ctx, r.from.db, r.text("SELECT key, coalesce(long_url, url) FROM fh.feeds INDEXED BY feedhistory_feeds_by_url"), func(values []any) {
		names[values[0]] = textOf(values[1])
	})
	if r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	if err != nil { // then the rows have the only other copy
		maps.Copy(names, r.checker.urls)
	}
	for key, url := range names {
		if r.copied[key] || url == "" {
			continue
		}
		f, old := mirror.NewFeed(url), &mirror.Feed{}
		if state := r.states[key]; old.UnmarshalJSON([]byte(state)) == nil {
			f.Title, f.Head, f.Gone, f.Alias, f.Named, f.Folders = old.Title, old.Head, old.Gone, old.Alias, old.Named, old.Folders
			f.Private = old.Private || strings.Contains(state, `"private":true`)
		} else {
			f.Private = true // it may have been
		}
		state, err := stateText(f)
		if err != nil {
			return err
		}
		name := nameOf(url)
		if err := r.exec("INSERT INTO fh.feeds ("+newFeedColumns+", key) VALUES "+marks(newFeedColumns+", key"),
			append(r.sums.feedRow(f, state), name.key, name.long, key)...); err != nil {
			return err
		}
		r.copied[key], r.suspect[key], r.checker.urls[key] = true, true, url
	}
	return nil
}

// restart makes a feed partial, counts its entries again, and makes it due to be read from its
// beginning.
func (r *repair) restart(key any) (url string, err error) {
	f := &mirror.Feed{}
	var state string
	if err := r.tx.QueryRowContext(r.ctx, r.text("SELECT state FROM fh.feeds WHERE key = ?"), key).Scan(&state); err != nil {
		return "", err
	}
	if err := f.UnmarshalJSON([]byte(state)); err != nil {
		return "", err
	}
	var version, change int64
	if err := r.tx.QueryRowContext(r.ctx, r.text("SELECT coalesce(max(version), 0), coalesce(max(polls), 0) FROM fh.polls WHERE feed = ?"), key).Scan(&version, &f.Polls); err != nil {
		return "", err
	}
	err = r.tx.QueryRowContext(r.ctx, r.text(`SELECT coalesce(sum(CASE WHEN state = 'live' THEN 1 ELSE 0 END), 0),
		coalesce(sum(CASE WHEN state <> 'live' AND first > 0 THEN 1 ELSE 0 END), 0), coalesce(max(change), 0)
		FROM fh.entries WHERE feed = ?`), key).Scan(&f.Entries, &f.Deleted, &change)
	if err != nil {
		return "", err
	}
	f.Verdict, f.Documents = feedhistory.VerdictPartial, 0
	f.Ledger.Reset(true)
	if state, err = stateText(f); err != nil {
		return "", err
	}
	for _, statement := range []struct {
		text string
		args []any
	}{
		{"DELETE FROM fh.documents WHERE feed = ?", []any{key}},
		{"UPDATE fh.feeds SET (" + feedColumns + ", checksum) = (?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE key = ?", append(r.sums.feedRow(f, state), key)},
		{"DELETE FROM fh.polls WHERE feed = ?", []any{key}},
		{"INSERT INTO fh.polls (" + newPollColumns + ") VALUES " + marks(newPollColumns), append(r.sums.pollRow(f, max(version, change)+1), key)},
	} {
		if err := r.exec(statement.text, statement.args...); err != nil {
			return "", err
		}
	}
	return f.URL, nil
}

// rows calls a function for each readable row of a query. The query's first column is
// the rowid. Behind a damaged page, reading goes on at the next readable row.
func (r *repair) rows(query string, each func(values []any) error) error {
	query = r.text(query + " WHERE rowid >= ? ORDER BY rowid")
	for next := int64(0); ; {
		var failed error
		err := scanRows(r.ctx, r.from.db, query, func(values []any) {
			if failed == nil {
				next = values[0].(int64) + 1
				failed = each(values)
			}
		}, next)
		if failed != nil || err == nil || r.ctx.Err() != nil {
			return errors.Join(failed, r.ctx.Err())
		}
		r.lost = true
		readable := func(at int64) bool {
			return scanRows(r.ctx, r.from.db, query+" LIMIT 1", func([]any) {}, at) == nil
		}
		low, high := next, next+1 // the row at low cannot be read
		for step := int64(1); !readable(high); step *= 2 {
			if r.ctx.Err() != nil || high > math.MaxInt64/4 {
				return r.ctx.Err()
			}
			low, high = high, high+step
		}
		for low+1 < high {
			if middle := low + (high-low)/2; readable(middle) {
				high = middle
			} else {
				low = middle
			}
		}
		next = high
	}
}
