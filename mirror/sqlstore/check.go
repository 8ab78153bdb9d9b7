package sqlstore

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory/mirror/words"
)

// An Inspection is the result of Store.Check.
type Inspection struct {
	Feeds, Entries, Versions, Documents int64 // the numbers of rows

	Pending   int64    // archive documents still to be read, of all feeds
	Unindexed int64    // entries waiting to be indexed
	Unsealed  int64    // rows without checksums: an earlier version wrote them, and Heal adds these
	Damages   []Damage // up to 10,000
	More      int64    // the number of damages beyond those

	rows       map[string][][]any // the places of damaged rows, by table
	refetch    map[string]bool    // URLs of the feeds to read again
	index      bool               // the index is not in step with the entries
	structural bool               // SQLite itself finds the file damaged
}

// A Damage is something in a database not as it was stored.
type Damage struct {
	Table string // the table, without our prefix; "file" for the file as a whole
	Feed  string // the URL of the feed; "" if unknown
	ID    string // the ID of the entry or the URL of the document; "" for others
	What  string // the kind of damage
}

// String returns the place of the damage and its kind.
func (d Damage) String() string {
	text := d.Table
	for _, part := range []string{d.Feed, d.ID} {
		if part != "" {
			text += " " + part
		}
	}
	return text + ": " + d.What
}

const mostDamages = 10_000

func (i *Inspection) add(table, feed, id, what string) {
	if len(i.Damages) == mostDamages {
		i.More++
		return
	}
	i.Damages = append(i.Damages, Damage{table, feed, id, what})
}

// A checker checks a store.
type checker struct {
	*Inspection
	store   *Store
	sums    summer
	urls    map[any]string    // URLs by key
	counted map[any]int64     // live entries by the feed's key, as its row says
	live    map[any]int64     // live entries by the feed's key
	polled  map[any]bool      // feeds with a row in polls
	names   map[any]uint64    // a sum of each document's names, less those in the table
	words   map[any]uint64    // a sum of each entry's words, less those in the index
	seed    maphash.Seed      // of these sums
	set     words.Set         // of the entry at hand
	ids     map[any][2]string // the feed and the ID of entries and documents with words or names, by key
}

// Check reads the whole database and compares it with its checksums, the entries with
// the words in the index, and the tables with each other. SQLite checks the structure of
// its file. Check is not interrupted by damage. Others may use the database meanwhile;
// their changes during Check may appear as damage, so check again if there is any. It
// takes about as long as reading and indexing everything. The error may be the context's.
func (s *Store) Check(ctx context.Context) (*Inspection, error) {
	c := &checker{
		store: s, Inspection: &Inspection{rows: map[string][][]any{}, refetch: map[string]bool{}},
		urls: map[any]string{}, counted: map[any]int64{}, live: map[any]int64{}, polled: map[any]bool{},
		names: map[any]uint64{}, words: map[any]uint64{}, seed: maphash.MakeSeed(), ids: map[any][2]string{},
	}
	if s.one {
		c.structure(ctx)
	}
	for _, t := range checkedTables() {
		err := c.scan(ctx, t.query(), func(values []any) { c.row(&t, t.row(values, &c.sums)) })
		c.failed(ctx, t.name, err)
	}
	for key, url := range c.urls {
		if !c.polled[key] {
			c.damaged("polls", []any{key}, url, "", "the row is missing")
		}
		if c.counted[key] != c.live[key] {
			c.damaged("feeds", []any{key}, url, "", fmt.Sprintf("it says %d entries, and has %d", c.counted[key], c.live[key]))
		}
	}
	c.checkNames(ctx)
	c.checkIndex(ctx)
	return c.Inspection, failure(ctx, ctx.Err())
}

// damaged records a damaged row.
func (c *checker) damaged(table string, place []any, feed, id, what string) {
	c.add(table, feed, id, what)
	c.rows[table] = append(c.rows[table], slices.Clone(place))
	if feed != "" {
		c.refetch[feed] = true
	}
}

// failed records a table with an unreadable rest.
func (c *checker) failed(ctx context.Context, table string, err error) {
	if err != nil && ctx.Err() == nil {
		c.structural = true
		c.add(table, "", "", "it cannot be read to its end: "+err.Error())
	}
}

// structure lets SQLite check its file.
func (c *checker) structure(ctx context.Context) {
	for _, pragma := range []string{"PRAGMA integrity_check", "PRAGMA foreign_key_check"} {
		err := c.scan(ctx, pragma, func(values []any) {
			if said := strings.TrimSpace(fmt.Sprintln(values...)); said != "ok" {
				c.structural = true
				c.add("file", "", "", strings.ReplaceAll(said, "\n", "; "))
			}
		})
		c.failed(ctx, "file", err)
	}
	fault, err := c.store.schemaFault(ctx)
	if fault != "" {
		c.structural = true
		c.add("file", "", "", fault)
	}
	c.failed(ctx, "file", err)
}

// scan calls a function for each row of a query.
func (c *checker) scan(ctx context.Context, query string, each func(values []any)) error {
	return scanRows(ctx, c.store.db, c.store.text(query), each)
}

func scanRows(ctx context.Context, q queryer, query string, each func(values []any)) error {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values, targets := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		each(values)
	}
	return rows.Err()
}
