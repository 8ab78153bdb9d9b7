package sqlstore

import (
	"database/sql"
	"strconv"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// The columns of entries in a record: its life in the feed, the copy that counts, and
// its content. Versions have the last two as well. Each group has its checksum, because
// each may be written without the others.
const (
	lifeColumns    = "state, archived, first, change, added, changed, tomb_when, tomb_time, tomb_place, absence"
	copyColumns    = "at, rank_time, rank_place, digest, source"
	contentColumns = "format, title, link, updated, published, base, weak_id, data, size"
	recordColumns  = lifeColumns + ", " + copyColumns
	markColumns    = recordColumns + ", checksum, copy_checksum"
	putColumns     = markColumns + ", " + contentColumns + ", content_checksum"
)

// An upsert inserts entries, or replaces some of their columns.
type upsert struct{ columns, row, conflict string }

func upsertOf(columns string) upsert {
	all := keyColumns + ", " + columns
	return upsert{columns: all, row: marks(all), conflict: replacing("feed, id", columns)}
}

// own replaces columns by those SQLite stores: a time equal to another one is stored as
// "=", and changed and at are computed.
var own = strings.NewReplacer(" changed,", " changed_own,", " at,", " at_own,")

// keyColumns tell an entry from others.
const keyColumns = "feed, id, long_id"

func appendKey(values []any, feed int64, n name) []any { return append(values, feed, n.key, n.long) }

func appendCopy(values []any, c mirror.Copy) []any {
	return append(values, timeText(c.At), timeText(c.Rank.Time), c.Rank.Seq, escaped(c.Digest), escaped(c.Source))
}

func copyTargets(c *mirror.Copy) []any {
	return []any{timeColumn{&c.At}, timeColumn{&c.Rank.Time}, &c.Rank.Seq, textColumn{&c.Digest}, textColumn{&c.Source}}
}

func appendContent(values []any, c *mirror.Content) []any {
	format := ""
	if c.Format != 0 {
		format = c.Format.String()
	}
	return append(values, format, escaped(c.Title), escaped(c.Link), timeText(c.Updated), timeText(c.Published),
		escaped(c.Base), c.WeakID, escaped(c.Data), c.Size)
}

func contentTargets(c *mirror.Content) []any {
	return []any{
		formatColumn{&c.Format}, textColumn{&c.Title}, textColumn{&c.Link}, timeColumn{&c.Updated}, timeColumn{&c.Published},
		textColumn{&c.Base}, &c.WeakID, textColumn{&c.Data}, &c.Size,
	}
}

func appendLife(values []any, r *mirror.Record) []any {
	return append(values, escaped(string(r.State)), r.Archived, r.FirstCommit, r.LastCommit, timeText(r.Added), timeText(r.Changed),
		timeText(r.Tombstone.When), timeText(r.Tombstone.Rank.Time), r.Tombstone.Rank.Seq, r.Absence)
}

func recordTargets(r *mirror.Record) []any {
	return append([]any{
		textColumn{(*string)(&r.State)}, &r.Archived, &r.FirstCommit, &r.LastCommit, timeColumn{&r.Added}, timeColumn{&r.Changed},
		timeColumn{&r.Tombstone.When}, timeColumn{&r.Tombstone.Rank.Time}, &r.Tombstone.Rank.Seq, &r.Absence,
	}, copyTargets(&r.Copy)...)
}

// The places of changed and added among lifeColumns.
const placeAdded, placeChanged = 4, 5

// appendRecord appends the values of markColumns, after the key's. Set whole if those
// of contentColumns are appended next: only then can a time be abbreviated as equal to
// the content's.
func (t transaction) appendRecord(values []any, r *mirror.Record, whole bool) []any {
	life := len(values)
	values = appendLife(values, r)
	copied := len(values)
	values = appendCopy(values, r.Copy)
	key := values[life-3 : life]
	values = append(values, t.sums.of(key, values[life:copied]), t.sums.ofCopy(key, values[copied:]))
	if t.one {
		if !r.Changed.IsZero() && values[life+placeChanged] == values[life+placeAdded] {
			values[life+placeChanged] = "="
		}
		if whole && !r.Copy.At.IsZero() && r.Copy.At.Equal(r.Content.Updated) {
			values[copied] = "="
		}
	}
	return values
}

// appendSummed appends the values of contentColumns and their checksum.
func (t transaction) appendSummed(values, key []any, c *mirror.Content) []any {
	begin := len(values)
	values = appendContent(values, c)
	return append(values, t.sums.of(key, values[begin:]))
}

// A formatColumn scans the name of a format, "" for none.
type formatColumn struct{ *feedhistory.Format }

// Scan implements sql.Scanner. An unknown name is a Format of its own, so one damaged
// entry does not hide the others.
func (c formatColumn) Scan(src any) error {
	text, _ := src.(string)
	if text == "" {
		*c.Format = 0
	} else if err := c.UnmarshalText([]byte(text)); err != nil {
		*c.Format = unknownFormat
	}
	return nil
}

const unknownFormat feedhistory.Format = 255

// most is the maximum number of rows a statement inserts in SQLite.
const most = 32

// insert inserts rows, whose values are given one after the other, with the
// given conflict clause. In SQLite, statements have only a few different sizes,
// because they are prepared. In PostgreSQL there is one statement, whose
// parameters are the columns.
func (t transaction) insert(table, columns, row, conflict string, values []any) error {
	width := strings.Count(row, "?")
	if t.dollars && len(values) > 0 {
		return t.insertColumns(table, columns, row, conflict, values)
	}
	for size := most; len(values) > 0; {
		if size*width > len(values) {
			size /= 2
			continue
		}
		query := "INSERT INTO " + table + " (" + columns + ") VALUES " + row + strings.Repeat(", "+row, size-1) + conflict
		if err := t.exec(query, values[:size*width]...); err != nil {
			return err
		}
		values = values[size*width:]
	}
	return nil
}

// insertColumns inserts any number of rows with one statement.
func (t transaction) insertColumns(table, columns, row, conflict string, values []any) error {
	width := strings.Count(row, "?")
	args, lists, names := make([]any, width), make([]string, width), make([]string, width)
	row = strings.TrimSuffix(strings.TrimPrefix(row, "("), ")")
	for i := range width {
		args[i], lists[i] = columnOf(values, i, width)
		names[i] = "c" + strconv.Itoa(i)
		row = strings.Replace(row, "?", names[i], 1)
	}
	return t.exec("INSERT INTO "+table+" ("+columns+") SELECT "+row+" FROM unnest("+strings.Join(lists, ", ")+
		") AS given ("+strings.Join(names, ", ")+")"+conflict, args...)
}

// columnOf returns a column of rows as a parameter, and the expression for it
// in a statement. All values have the type of the first one.
func columnOf(values []any, column, width int) (list any, parameter string) {
	switch values[column].(type) {
	case int64:
		return every[int64](values, column, width), "?::bigint[]"
	case bool:
		return every[bool](values, column, width), "?::boolean[]"
	case sql.NullString:
		texts := make([]*string, len(values)/width)
		for i, v := range every[sql.NullString](values, column, width) {
			if v.Valid {
				texts[i] = &v.String
			}
		}
		return texts, "?::text[]"
	}
	return every[string](values, column, width), "?::text[]"
}

func every[T any](values []any, column, width int) []T {
	list := make([]T, len(values)/width)
	for i := range list {
		list[i] = values[i*width+column].(T)
	}
	return list
}

// marks returns the parameters of a row for a list of columns.
func marks(columns string) string {
	return "(?" + strings.Repeat(", ?", strings.Count(columns, ",")) + ")"
}

// replacing returns a conflict clause for replacing the columns of an existing row.
func replacing(key, columns string) string {
	names := strings.Split(columns, ", ")
	for i, n := range names {
		names[i] = n + " = excluded." + n
	}
	return " ON CONFLICT (" + key + ") DO UPDATE SET " + strings.Join(names, ", ")
}
