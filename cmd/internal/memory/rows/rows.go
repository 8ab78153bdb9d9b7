// Package rows reads a reader's SQLite database while the reader may be using it.
package rows

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	_ "modernc.org/sqlite" // the driver

	"github.com/feedhistory/feedhistory/cmd/internal/memory"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// atOnce is the number of rows in a query, so that no lock is held for long.
const atOnce = 100

// longest is the number of bytes that are read of a text.
const longest = 16 << 20

// Open opens a database for reading only.
func Open(file string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", sqlstore.SQLiteReaderDSN(file, false)+"&_pragma=busy_timeout(30000)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

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

// Has reports whether a file is a database with all of these columns in a table.
func Has(ctx context.Context, file, table string, columns ...string) bool {
	db, err := Open(file)
	if err != nil {
		return false
	}
	defer db.Close()
	names, err := Columns(ctx, db, table)
	for _, column := range columns {
		if !slices.Contains(names, column) {
			return false
		}
	}
	return err == nil && len(names) > 0
}

// A Row has the values of a row as text, by column.
type Row map[string]string

// Int returns a number; 0 if the column has none.
func (r Row) Int(column string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(r[column]), 10, 64)
	return n
}

// Feeds yields the feeds of a table, each row by the given function, and reports whether
// to go on. A row that cannot be read is yielded as damage.
func Feeds(ctx context.Context, db *sql.DB, table, key string, columns []string, yield func(memory.Found, error) bool, feed func(Row) (url, title string)) bool {
	for row, err := range Read(ctx, db, table, key, 0, columns...) {
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
func Read(ctx context.Context, db *sql.DB, table, key string, after int64, wanted ...string) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		have, err := Columns(ctx, db, table)
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
		t := &reader{ctx: ctx, db: db, columns: parts, query: selection(table, key, parts)}
		keys := fmt.Sprintf("FROM %s WHERE %s > ? ORDER BY %s LIMIT %d", table, key, key, atOnce)
		t.sizes = "SELECT " + key + ", coalesce(length(" + strings.Join(parts[1:], "), 0) + coalesce(length(") + "), 0) " + keys
		t.keys = "SELECT " + key + ", 0 " + keys
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
}

// page yields a page, and returns its last key and whether there may be more.
func (t *reader) page(after int64, yield func(Row, error) bool) (last int64, more bool) {
	keys, err := t.keysAfter(t.sizes, after)
	if err != nil && t.ctx.Err() == nil { // a damaged row has no size
		keys, err = t.keysAfter(t.keys, after)
		keys = keys[:min(len(keys), 1)]
	}
	if err != nil {
		yield(nil, err)
		return 0, false
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
		row := Row{t.columns[0]: strconv.FormatInt(key, 10)}
		if err == nil && len(single) == 1 {
			row = single[0]
		}
		if !yield(row, err) {
			return 0, false
		}
	}
	return last, true
}

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
