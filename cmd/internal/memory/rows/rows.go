// Package rows reads a reader's SQLite database while the reader may be using it.
package rows

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/feedhistory/feedhistory/cmd/internal/memory"
)

// atOnce is the number of rows in a query.
const atOnce = 100

// longest is the number of bytes that are read of a text.
const longest = 16 << 20

// Columns returns the names of a table's columns; none if there is no such table.
func Columns(ctx context.Context, db *sql.DB, table string) (names []string, err error) {
	found, err := db.QueryContext(ctx, "SELECT name FROM pragma_table_info(?)", table)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var name string
		if err := found.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, found.Err()
}

// A Row has the values of a row as text, by column.
type Row map[string]string

// Int returns a number; 0 if the column has none.
func (r Row) Int(column string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(r[column]), 10, 64)
	return n
}

// Feeds yields the feeds of a table, each row by the given function, and reports whether
// to go on. A fault of the database and a row that cannot be read are yielded as damage.
func Feeds(ctx context.Context, c *Copy, table, key string, columns []string, yield func(memory.Found, error) bool, feed func(Row) (url, title string)) bool {
	if c.Damage != nil && !yield(memory.Found{Damage: c.Damage}, nil) {
		return false
	}
	for row, err := range Read(ctx, c, table, key, 0, columns...) {
		if row == nil {
			yield(memory.Found{}, err)
			return false
		}
		var found memory.Found
		if err != nil {
			found.Damage = fmt.Errorf("%s, row %s: %w", table, row[key], err)
		} else {
			found.Feed, found.Title = feed(row)
		}
		if !yield(found, nil) {
			return false
		}
	}
	return true
}

// Read yields the rows of a table that follow a key, in its order. Columns that the table
// lacks are left out. A row that cannot be read comes with its key and an error, and the
// others follow; an error without a row ends the sequence.
func Read(ctx context.Context, c *Copy, table, key string, after int64, wanted ...string) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		have, err := Columns(ctx, c.DB, table)
		if err == nil && len(have) == 0 {
			err = fmt.Errorf("%s: there is no table %s in it", c.name, table)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		parts := []string{key}
		for _, column := range wanted {
			if slices.Contains(have, column) {
				parts = append(parts, column)
			}
		}
		t := &reader{ctx: ctx, db: c.DB, columns: parts, query: selection(table, key, parts)}
		keys := fmt.Sprintf("FROM %s WHERE %s > ? ORDER BY %s LIMIT %d", table, key, key, atOnce)
		t.sizes = "SELECT " + key + ", coalesce(length(" + strings.Join(parts[1:], "), 0) + coalesce(length(") + "), 0) " + keys
		t.keys = "SELECT " + key + ", 0 " + keys
		t.first = fmt.Sprintf("SELECT %s FROM %s WHERE %s > ? ORDER BY %s LIMIT 1", key, table, key, key)
		for {
			last, more := t.page(after, yield)
			if !more {
				return
			}
			after = last
		}
	}
}

func selection(table, key string, columns []string) string {
	parts := []string{key}
	for _, column := range columns[1:] {
		parts = append(parts, fmt.Sprintf("substr(CAST(%s AS TEXT), 1, %d)", column, longest))
	}
	return fmt.Sprintf("SELECT %s FROM %s WHERE %s > ? AND %s <= ? ORDER BY %s", strings.Join(parts, ", "), table, key, key, key)
}

// A reader reads a table in pages.
type reader struct {
	ctx         context.Context
	db          *sql.DB
	columns     []string
	query       string
	sizes, keys string
	first       string
}

// page yields a page, and returns its last key and whether there may be more.
func (t *reader) page(after int64, yield func(Row, error) bool) (last int64, more bool) {
	keys, err := t.keysAfter(t.sizes, after)
	if err != nil && t.ctx.Err() == nil { // a damaged row has no size
		if keys, err = t.keysAfter(t.keys, after); len(keys) > 0 {
			keys, err = keys[:1], nil
		}
	}
	if err != nil {
		return t.lost(after, err, yield)
	}
	if len(keys) == 0 {
		return 0, false
	}
	last = keys[len(keys)-1]
	list, err := t.between(after, last)
	for _, row := range list {
		if !yield(row, nil) {
			return 0, false
		}
	}
	if err == nil {
		return last, true
	}
	for _, key := range keys[len(list):] { // each for itself
		single, err := t.between(key-1, key)
		if t.ctx.Err() != nil {
			yield(nil, t.ctx.Err())
			return 0, false
		}
		row := t.row(key)
		if err == nil && len(single) == 1 {
			row = single[0]
		}
		if !yield(row, err) {
			return 0, false
		}
	}
	return last, true
}

// lost yields the damage of the rows after a key, and returns the key before the first
// readable one, if there is any.
func (t *reader) lost(after int64, err error, yield func(Row, error) bool) (last int64, more bool) {
	if failed, ok := errors.AsType[*sqlite.Error](err); !ok || failed.Code()&0xff != sqlite3.SQLITE_CORRUPT {
		yield(nil, err)
		return 0, false
	}
	bad, good, step := after, after, int64(1) // the rows after good can be read
	for ; t.isLost(good); step *= 2 {
		if bad, good = good, good+step; t.ctx.Err() != nil || good < bad || step < 0 {
			yield(t.row(after+1), fmt.Errorf("this row and those after it are lost: %w", err))
			return 0, false
		}
	}
	for bad+1 < good {
		if middle := bad + (good-bad)/2; t.isLost(middle) {
			bad = middle
		} else {
			good = middle
		}
	}
	return good, yield(t.row(after+1), fmt.Errorf("this row and those up to %d are lost: %w", good, err))
}

// isLost reports whether the first row after a key cannot be read.
func (t *reader) isLost(after int64) bool {
	var key int64
	err := t.db.QueryRowContext(t.ctx, t.first, after).Scan(&key)
	return err != nil && !errors.Is(err, sql.ErrNoRows)
}

// row returns a row that cannot be read.
func (t *reader) row(key int64) Row { return Row{t.columns[0]: strconv.FormatInt(key, 10)} }

// bytesAtOnce is the size of a page, unless it has only one row.
const bytesAtOnce = 4 << 20

// keysAfter returns the keys of the next page.
func (t *reader) keysAfter(query string, after int64) (keys []int64, err error) {
	found, err := t.db.QueryContext(t.ctx, query, after)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for total := int64(0); found.Next(); {
		var key, size int64
		if err := found.Scan(&key, &size); err != nil {
			return nil, err
		}
		if total += size; total > bytesAtOnce && len(keys) > 0 {
			return keys, nil
		}
		keys = append(keys, key)
	}
	return keys, found.Err()
}

func (t *reader) between(after, last int64) (list []Row, err error) {
	found, err := t.db.QueryContext(t.ctx, t.query, after, last)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		values, targets := make([]sql.NullString, len(t.columns)), make([]any, len(t.columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := found.Scan(targets...); err != nil {
			return list, err
		}
		row := Row{}
		for i, column := range t.columns {
			row[column] = strings.ToValidUTF8(values[i].String, "\uFFFD")
		}
		list = append(list, row)
	}
	return list, found.Err()
}
