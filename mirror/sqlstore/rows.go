package sqlstore

import (
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// The columns that entries and versions have in common.
const (
	copyColumns    = "at, rank_time, rank_place, digest"
	contentColumns = "format, title, link, updated, published, base, weak_id, data"
	recordColumns  = "state, archived, first, change, added, changed, tomb_when, tomb_time, tomb_place, absence, " + copyColumns
)

func copyValues(c mirror.Copy) []any {
	return []any{timeText(c.At), timeText(c.Rank.Time), c.Rank.Place, escaped(c.Digest)}
}

func copyTargets(c *mirror.Copy) []any {
	return []any{timeColumn{&c.At}, timeColumn{&c.Rank.Time}, &c.Rank.Place, textColumn{&c.Digest}}
}

func contentValues(c *mirror.Content) []any {
	format := ""
	if c.Format != 0 {
		format = c.Format.String()
	}
	return []any{
		format, escaped(c.Title), escaped(c.Link), timeText(c.Updated), timeText(c.Published),
		escaped(c.Base), c.WeakID, escaped(c.Data),
	}
}

func contentTargets(c *mirror.Content) []any {
	return []any{
		formatColumn{&c.Format}, textColumn{&c.Title}, textColumn{&c.Link}, timeColumn{&c.Updated}, timeColumn{&c.Published},
		textColumn{&c.Base}, &c.WeakID, textColumn{&c.Data},
	}
}

func recordValues(r *mirror.Record) []any {
	return append([]any{
		escaped(string(r.State)), r.Archived, r.First, r.Change, timeText(r.Added), timeText(r.Changed),
		timeText(r.Tombstone.When), timeText(r.Tombstone.Rank.Time), r.Tombstone.Rank.Place, r.Absence,
	}, copyValues(r.Copy)...)
}

func recordTargets(r *mirror.Record) []any {
	return append([]any{
		textColumn{(*string)(&r.State)}, &r.Archived, &r.First, &r.Change, timeColumn{&r.Added}, timeColumn{&r.Changed},
		timeColumn{&r.Tombstone.When}, timeColumn{&r.Tombstone.Rank.Time}, &r.Tombstone.Rank.Place, &r.Absence,
	}, copyTargets(&r.Copy)...)
}

// A formatColumn scans a format's name, "" for none.
type formatColumn struct{ *feedhistory.Format }

// Scan implements sql.Scanner.
func (c formatColumn) Scan(src any) error {
	text, _ := src.(string)
	if text == "" {
		*c.Format = 0
		return nil
	}
	return c.UnmarshalText([]byte(text))
}

// most is how many rows a statement inserts.
const most = 32

// insert inserts rows, each a list of values for the columns, and does with
// conflicts what it is told. Statements come in few sizes, as they are prepared.
func (t transaction) insert(table, columns, conflict string, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	return t.insertAs(table, columns, "(?"+strings.Repeat(", ?", len(rows[0])-1)+")", conflict, rows)
}

// insertAs is insert with a row as it is to be written.
func (t transaction) insertAs(table, columns, row, conflict string, rows [][]any) error {
	for size := most; len(rows) > 0; {
		if size > len(rows) {
			size /= 2
			continue
		}
		query := "INSERT INTO " + table + " (" + columns + ") VALUES " + row + strings.Repeat(", "+row, size-1) + conflict
		var values []any
		for _, row := range rows[:size] {
			values = append(values, row...)
		}
		if err := t.exec(query, values...); err != nil {
			return err
		}
		rows = rows[size:]
	}
	return nil
}

// replacing is what an insert does with a row that is there: it takes the new
// values of the columns.
func replacing(key, columns string) string {
	names := strings.Split(columns, ", ")
	for i, n := range names {
		names[i] = n + " = excluded." + n
	}
	return " ON CONFLICT (" + key + ") DO UPDATE SET " + strings.Join(names, ", ")
}
