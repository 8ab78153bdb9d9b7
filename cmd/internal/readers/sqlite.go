package readers

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// longest is the number of bytes that are read of a text.
const longest = 16 << 20

// columnsOf returns the names of a table's columns; none if there is no such table. A view, or
// a virtual table, is none, and a computed column neither: they can have more than the file.
func columnsOf(ctx context.Context, db *sql.DB, table string) ([]string, error) {
	var names sql.NullString
	err := db.QueryRowContext(ctx, `SELECT group_concat(name, char(10)) FROM pragma_table_info($1)
		WHERE EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 AND name = $1 COLLATE NOCASE)`, table).Scan(&names)
	return strings.FieldsFunc(names.String, func(r rune) bool { return r == '\n' }), err
}

// A row has the values of a row as text, by column.
type row map[string]string

// Int returns a number; 0 if the column has none.
func (r row) Int(column string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(r[column]), 10, 64)
	return n
}

// readRows yields the rows of a table that follow a key, in its order. Columns that the table
// lacks are left out. A row that cannot be read comes with its key and an error, and the
// others follow; an error without a row ends the sequence.
func readRows(ctx context.Context, c *databaseCopy, table, key string, after int64, wanted ...string) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		have, err := columnsOf(ctx, c.DB, table)
		if err == nil && len(have) == 0 {
			err = fmt.Errorf("%s: there is no table %s in it", c.name, table)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		t := &tableReader{ctx: ctx, db: c, columns: []string{key}}
		selected := key
		for _, column := range wanted {
			if slices.Contains(have, column) {
				t.columns = append(t.columns, column)
				selected += fmt.Sprintf(", substr(CAST(%s AS TEXT), 1, %d)", column, longest)
			}
		}
		following := fmt.Sprintf(" FROM %s WHERE %s > ? ORDER BY %s", table, key, key)
		t.rows, t.next = "SELECT "+selected+following, "SELECT "+key+following+" LIMIT 1"
		for more := true; more; {
			after, more = t.read(after, yield)
		}
	}
}

// A tableReader reads a table row by row. The first column is its key.
type tableReader struct {
	ctx        context.Context
	db         *databaseCopy
	columns    []string
	rows, next string // the queries for the rows, and for the first key, after a key
	restarts   int    // how often the rows were asked for again, because some are not in order
}

// mostRestarts bounds the time for a damaged table, which is sorted for each restart.
const mostRestarts = 50

// errDisorder means a row does not belong where a damaged table has it.
var errDisorder = errors.New("the rows are not in order")

// errRepeats means a damaged database has the same bytes in many rows.
var errRepeats = fmt.Errorf("its rows have more than %d times the bytes of the file", rowsRatio)

// The rows of a database may have a megabyte and so many times the bytes of its file: the text may
// be shorter there.
const (
	leastRows = 1 << 20
	rowsRatio = 2
)

// read yields the rows after a key, up to one that cannot be read. It returns the last key,
// and whether there may be more rows.
func (t *tableReader) read(after int64, yield func(row, error) bool) (last int64, more bool) {
	last, more, err := t.stream(after, yield)
	if err == nil || !more {
		return last, false
	}
	if err == errDisorder {
		t.restarts++
	}
	if t.ctx.Err() != nil || errors.Is(err, errRepeats) || t.restarts > mostRestarts {
		yield(nil, cmp.Or(t.ctx.Err(), err))
		return last, false
	}
	switch key, unknown := t.keyAfter(last); {
	case errors.Is(unknown, sql.ErrNoRows): // a fault after the last row
		return last, false
	case unknown != nil:
		return t.lost(last, unknown, yield)
	default:
		return key, yield(t.row(key), err)
	}
}

// stream yields the rows after a key until one cannot be read, and returns the last key. More
// is false if the caller wants no more of them. A row is yielded when the next one is known: a
// key that is larger than the next is damage, and the rows after it are good.
func (t *tableReader) stream(after int64, yield func(row, error) bool) (last int64, more bool, err error) {
	found, err := t.db.QueryContext(t.ctx, t.rows, after)
	if err != nil {
		return after, true, err
	}
	defer found.Close()
	values, targets := make([]sql.NullString, len(t.columns)), make([]any, len(t.columns))
	for i := range values {
		targets[i] = &values[i]
	}
	var held row // has the key next
	last, more = after, true
	next, strays := after, 0
	for found.Next() && (strays < atOnce || t.db.Damage == nil) { // more would be a damaged table that repeats itself
		if err := found.Scan(targets...); err != nil {
			return last, true, err
		}
		r := row{}
		for i, column := range t.columns {
			r[column] = strings.ToValidUTF8(values[i].String, "\uFFFD")
			t.db.room -= int64(len(values[i].String))
		}
		if t.db.room < 0 {
			return last, true, errRepeats
		}
		switch key := r.Int(t.columns[0]); {
		case key > next && held == nil:
			held, next = r, key
		case key > next:
			more = yield(held, nil)
			held, last, next = r, next, key
		case key > last && key < next:
			strays++
			more = yield(t.row(next), errDisorder)
			held, next = r, key
		default:
			strays++
			more = yield(t.row(key), errDisorder)
		}
		if !more {
			return last, false, nil
		}
	}
	if held != nil {
		last, more = next, yield(held, nil)
	}
	if err = found.Err(); err == nil && strays == atOnce && t.db.Damage != nil {
		err = errDisorder
	}
	return last, more, err
}

// keyAfter returns the key of the first row after a key.
func (t *tableReader) keyAfter(after int64) (key int64, err error) {
	err = t.db.QueryRowContext(t.ctx, t.next, after).Scan(&key)
	if err == nil && key <= after {
		err = errDisorder
	}
	return key, err
}

// lost yields the damage of the rows after a key, and returns the key before the first
// readable one, if there is any.
func (t *tableReader) lost(after int64, err error, yield func(row, error) bool) (last int64, more bool) {
	if failed, ok := errors.AsType[*sqlite.Error](err); (!ok || failed.Code()&0xff != sqlite3.SQLITE_CORRUPT) && err != errDisorder {
		yield(nil, err)
		return 0, false
	}
	isLost := func(key int64) bool {
		_, err := t.keyAfter(key)
		return err != nil && !errors.Is(err, sql.ErrNoRows)
	}
	span := 1 // the rows after one of so many keys can be read
	for ; isLost(after + int64(span)); span *= 2 {
		if t.ctx.Err() != nil || int64(2*span) > math.MaxInt64-after || 2*span < 0 {
			yield(t.row(after+1), fmt.Errorf("this row and those after it are lost: %w", err))
			return 0, false
		}
	}
	last = after + int64(sort.Search(span, func(n int) bool { return !isLost(after + int64(n)) }))
	return last, yield(t.row(after+1), fmt.Errorf("this row and those up to %d are lost: %w", last, err))
}

// row returns a row that cannot be read.
func (t *tableReader) row(key int64) row { return row{t.columns[0]: strconv.FormatInt(key, 10)} }

// A databaseCopy is a private copy of a database. Close removes it.
type databaseCopy struct {
	*sql.DB
	Damage error // the first fault that SQLite finds in the database; nil if it is sound

	name string
	dir  string // "" if the file has no name any more
	room int64  // how many bytes further rows may have
}

// openCopy copies a database to the directory for temporary files, and opens the copy. The
// database itself is never locked, so its program can write meanwhile.
func openCopy(ctx context.Context, file string) (*databaseCopy, error) {
	source, err := filepath.EvalSymlinks(file) // the journal is next to the file itself
	if err != nil {
		return nil, err
	}
	c := &databaseCopy{name: file}
	if c.dir, err = os.MkdirTemp("", "feedhistory-import-"); err != nil {
		return nil, fmt.Errorf("%s cannot be copied to the directory for temporary files, which TMPDIR sets: %w", file, err)
	}
	s := &snapshot{source: source, copy: filepath.Join(c.dir, "copy.db")}
	if err = s.take(ctx); err == nil {
		err = c.open(ctx, s.copy)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if c.Damage != nil {
		c.Damage = fmt.Errorf("%s is damaged, so rows may be missing: %w", file, c.Damage)
	}
	return c, nil
}

// open opens a finished copy. Where the system lets open files lose their names, a kill
// leaves nothing behind from then on.
func (c *databaseCopy) open(ctx context.Context, file string) (err error) {
	if c.Damage, err = repair(ctx, file); err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	c.room = leastRows + rowsRatio*info.Size()
	if c.DB, err = openUnlocked(file); err != nil {
		return err
	}
	if err := c.DB.PingContext(ctx); err != nil {
		return err
	}
	if os.RemoveAll(c.dir) == nil {
		c.dir = ""
	}
	return nil
}

// repair merges the journal of a copy, and returns the first fault of the database.
func repair(ctx context.Context, file string) (fault, err error) {
	db, err := sql.Open("sqlite", sqlstore.SQLiteDSN(file))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	for _, query := range []string{"PRAGMA journal_mode = delete", "PRAGMA quick_check(1)"} {
		var answer string
		err := db.QueryRowContext(ctx, query).Scan(&answer)
		failed, ok := errors.AsType[*sqlite.Error](err)
		switch {
		case ok && failed.Code()&0xff == sqlite3.SQLITE_CORRUPT:
			return err, nil
		case err != nil:
			return nil, err
		case answer != "ok" && answer != "delete":
			return errors.New(strings.Join(strings.Fields(strings.TrimPrefix(answer, "*** in database main ***")), " ")), nil
		}
	}
	return nil, nil
}

// openUnlocked opens a file for reading, without locks and without its journal.
func openUnlocked(file string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", sqlstore.SQLiteReaderDSN(file, true))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// Close ends the copy.
func (c *databaseCopy) Close() (err error) {
	if c.DB != nil {
		err = c.DB.Close()
	}
	if c.dir != "" {
		err = errors.Join(err, os.RemoveAll(c.dir))
	}
	return err
}

// hasColumns reports whether a file is a database with all of these columns in a table. It reads
// the file itself, and a copy only if a writer may have interfered.
func hasColumns(ctx context.Context, file, table string, columns ...string) bool {
	db, err := openUnlocked(file)
	if err != nil {
		return false
	}
	names, err := columnsOf(ctx, db, table)
	_ = db.Close()
	has := func() bool {
		return err == nil && !slices.ContainsFunc(columns, func(column string) bool { return !slices.Contains(names, column) })
	}
	if has() || err == nil && !hasLog(file) {
		return has()
	}
	c, err := openCopy(ctx, file)
	if err != nil {
		return false
	}
	defer c.Close()
	names, err = columnsOf(ctx, c.DB, table)
	return has()
}

// hasLog reports whether a database has changes in a journal or write-ahead log.
func hasLog(file string) bool {
	return slices.ContainsFunc(parts[1:], func(part string) bool {
		info, err := os.Stat(file + part)
		return err == nil && info.Size() > 0
	})
}

const (
	mostPasses = 60
	longPause  = 500 * time.Millisecond
	blockSize  = 1 << 20
)

// parts are the endings of a database's files: the rollback journal and the write-ahead
// log belong to its content. SQLite makes a new index of the log (-shm).
var parts = [...]string{"", "-journal", "-wal"}

var errBusy = errors.New("another program writes to it all the time, so no copy is whole; try again when it is idle")

// A snapshot copies a database without a lock, because newsboat loses a write that meets
// one.
//
// Each pass compares the database with the copy, and replaces the blocks that differ. A
// pass that finds none, while nothing is written, proves that the copy is the database as
// it was when that pass began. SQLite repairs it as it does after a crash.
type snapshot struct {
	source, copy string
	theirs, ours []byte
	looked       func(part string) // called after each block, in tests
}

// take makes the copy.
func (s *snapshot) take(ctx context.Context) error {
	s.theirs, s.ours = make([]byte, blockSize), make([]byte, blockSize)
	for pass := range mostPasses {
		if pass > 1 { // the first one only copies
			if err := pause(ctx, min(time.Duration(pass*pass)*time.Millisecond, longPause)); err != nil {
				return err
			}
		}
		before, err := s.state()
		if err != nil {
			return err
		}
		changed := false
		for i, info := range before {
			other, err := s.update(ctx, parts[i], info)
			if err != nil {
				return err
			}
			changed = changed || other
		}
		after, err := s.state()
		if err != nil {
			return err
		}
		if !changed && same(before, after) {
			return nil
		}
	}
	return fmt.Errorf("%s: %w", s.source, errBusy)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// state describes the files of the database; nil for those which do not exist.
func (s *snapshot) state() (state [len(parts)]os.FileInfo, err error) {
	for i, part := range parts {
		info, err := os.Stat(s.source + part)
		switch {
		case err == nil && !info.Mode().IsRegular():
			return state, fmt.Errorf("%s: not a file", s.source+part)
		case err == nil:
			state[i] = info
		case i == 0 || !errors.Is(err, fs.ErrNotExist):
			return state, err
		}
	}
	return state, nil
}

func same(before, after [len(parts)]os.FileInfo) bool {
	for i, a := range before {
		b := after[i]
		if (a == nil) != (b == nil) {
			return false
		}
		if a != nil && (!os.SameFile(a, b) || a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime())) {
			return false
		}
	}
	return true
}

// update makes the copy of a file equal to it, and reports whether they differed.
func (s *snapshot) update(ctx context.Context, part string, info os.FileInfo) (changed bool, err error) {
	var source *os.File
	if info != nil {
		source, err = os.Open(s.source + part)
		if err != nil && (part == "" || !errors.Is(err, fs.ErrNotExist)) {
			return false, err
		}
	}
	if source == nil {
		err := os.Remove(s.copy + part)
		if errors.Is(err, fs.ErrNotExist) {
			return info != nil, nil
		}
		return true, err
	}
	defer source.Close()
	target, err := os.OpenFile(s.copy+part, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, s.noRoom(err, info)
	}
	changed, err = s.blocks(ctx, part, source, target)
	return changed, s.noRoom(errors.Join(err, target.Close()), info)
}

func (s *snapshot) blocks(ctx context.Context, part string, source, target *os.File) (changed bool, err error) {
	for at := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n, ended := source.ReadAt(s.theirs, at)
		if ended != nil && ended != io.EOF {
			return false, ended
		}
		m, err := target.ReadAt(s.ours, at)
		if err != nil && err != io.EOF {
			return false, err
		}
		if !bytes.Equal(s.theirs[:n], s.ours[:m]) {
			changed = true
			if _, err := target.WriteAt(s.theirs[:n], at); err != nil {
				return false, err
			}
		}
		if s.looked != nil {
			s.looked(part)
		}
		if at += int64(n); ended == io.EOF {
			return changed, target.Truncate(at)
		}
	}
}

// noRoom adds advice to the error of a copy that does not fit.
func (s *snapshot) noRoom(err error, info os.FileInfo) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%s has no room for a copy of %s (%s): set TMPDIR to a directory that has",
			filepath.Dir(filepath.Dir(s.copy)), s.source, terminal.SizeText((info.Size()+999_999)/1e6*1e6))
	}
	return err
}
