package readers

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

func TestMain(m *testing.M) {
	if file := os.Getenv("FEEDHISTORY_TEST_WRITER"); file != "" {
		if err := writeRows(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	feedtest.Main(m)
}

const writes = 400

// writeRows is the model of a program that gives up a write when it meets a lock. Each of its
// transactions adds a row to both tables.
func writeRows(file string) error {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(0)&_pragma=synchronous(OFF)")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for n := range writes {
		time.Sleep(2 * time.Millisecond)
		_, err := db.Exec(fmt.Sprintf("BEGIN; INSERT INTO a VALUES (%d, '%0300d'); INSERT INTO b VALUES (%d, '%0300d'); COMMIT", n, n, n, n))
		if err != nil {
			return fmt.Errorf("write %d: %w", n, err)
		}
	}
	return nil
}

func newDatabase(t *testing.T, statements string) (file string, db *sql.DB) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "cache.db")
	db, err := sql.Open("sqlite", "file:"+file)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	_, err = db.Exec(statements)
	require.NoError(t, err)
	return file, db
}

func count(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRow(query).Scan(&n))
	return n
}

const tables = "CREATE TABLE a (id INTEGER PRIMARY KEY, t TEXT); CREATE TABLE b (id INTEGER PRIMARY KEY, t TEXT);"

// A program without patience writes while copies are made: none of its writes fails, and each
// copy is a state between two of them.
func TestWriterIsNotDisturbed(t *testing.T) {
	file, db := newDatabase(t, tables)
	require.NoError(t, db.Close()) // a lock of this process would end with each copy
	self, err := os.Executable()
	require.NoError(t, err)
	writer := exec.CommandContext(t.Context(), self)
	writer.Env = append(os.Environ(), "FEEDHISTORY_TEST_WRITER="+file)
	var said bytes.Buffer
	writer.Stdout, writer.Stderr = &said, &said
	ended := make(chan error, 1)
	require.NoError(t, writer.Start())
	go func() { ended <- writer.Wait() }()
	ctx, cancel := context.WithCancel(t.Context())
	var failed error
	go func() { failed = <-ended; cancel() }()
	for {
		require.True(t, hasColumns(t.Context(), file, "a", "id", "t"))
		c, err := openCopy(ctx, file)
		if err != nil { // the writer has ended, or it wrote all the time
			require.True(t, errors.Is(err, context.Canceled) || errors.Is(err, errBusy), err)
		} else {
			require.NoError(t, c.Damage)
			n := count(t, c.DB, "SELECT count(*) FROM a")
			require.Equal(t, n, count(t, c.DB, "SELECT count(*) FROM b"))
			require.Equal(t, n, count(t, c.DB, "SELECT coalesce(max(id), -1) + 1 FROM a"))
			require.NoError(t, c.Close())
		}
		if ctx.Err() != nil {
			break
		}
	}
	require.NoError(t, failed, "%s", &said)
	c, err := openCopy(t.Context(), file)
	require.NoError(t, err)
	require.Equal(t, writes, count(t, c.DB, "SELECT count(*) FROM b"))
	require.NoError(t, c.Close())
}

// A block already copied and one not yet copied change in the middle of a pass.
func TestTornCopyIsNoticed(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source.db")
	fill := func(at int64, b byte) {
		f, err := os.OpenFile(source, os.O_RDWR|os.O_CREATE, 0o600)
		require.NoError(t, err)
		_, err = f.WriteAt(bytes.Repeat([]byte{b}, blockSize), at*blockSize)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	for _, test := range []struct {
		name   string
		looked func(part string, n int)
	}{
		{"once", func(_ string, n int) {
			if n == 1 {
				fill(0, 'x')
				fill(2, 'x')
			}
		}},
		{"as long as before, and longer", func(_ string, n int) {
			if n < 12 {
				fill(int64(n%5), byte(n))
			}
		}},
		{"a journal comes and goes", func(part string, n int) {
			switch {
			case n == 2:
				require.NoError(t, os.WriteFile(source+"-journal", []byte("journal"), 0o600))
			case part == "-journal":
				require.NoError(t, os.Remove(source+"-journal"))
				fill(1, 'y')
			}
		}},
		{"there and back, twice", func(_ string, n int) {
			switch n {
			case 2, 6: // block 2 is the next
				fill(2, 'x')
			case 3, 7:
				fill(2, 'a')
			}
		}},
		{"on a file system with coarse times", func(_ string, n int) {
			if n < 6 {
				fill(int64(n+1)%3, byte(n))
			}
			require.NoError(t, os.Chtimes(source, time.Time{}, time.Unix(1700000000, 0)))
		}},
		{"another file in its place", func(_ string, n int) {
			if n == 5 {
				require.NoError(t, os.Rename(source, source+"-old"))
				fill(0, 'z')
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_ = os.Remove(source)
				for block := range int64(3) {
					fill(block, 'a')
				}
				s := &snapshot{source: source, copy: filepath.Join(t.TempDir(), "copy.db")}
				n := 0
				s.looked = func(part string) { n++; test.looked(part, n) }
				require.NoError(t, s.take(t.Context()))
				want, err := os.ReadFile(source)
				require.NoError(t, err)
				got, err := os.ReadFile(s.copy)
				require.NoError(t, err)
				require.True(t, bytes.Equal(want, got))
				require.NoFileExists(t, s.copy+"-journal")
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := &snapshot{source: source, copy: filepath.Join(t.TempDir(), "copy.db")}
		n := 0
		s.looked = func(string) { n++; fill(0, byte(n)) }
		require.ErrorIs(t, s.take(t.Context()), errBusy)
	})
}

// A copy made in the middle of a transaction is the state before it.
func TestJournalIsRolledBack(t *testing.T) {
	file, db := newDatabase(t, tables+`
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
		INSERT INTO a SELECT i, 'before' || hex(zeroblob(200)) FROM n`)
	_, err := db.Exec("PRAGMA cache_size = 10; BEGIN; UPDATE a SET t = 'during' || t")
	require.NoError(t, err)
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(raw), "duringbefore", "the transaction has written to the file already")
	journal, err := os.Stat(file + "-journal")
	require.NoError(t, err)
	require.NotZero(t, journal.Size())
	c, err := openCopy(t.Context(), file)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.Damage)
	require.Equal(t, 2000, count(t, c.DB, "SELECT count(*) FROM a WHERE t LIKE 'before%'"))
	_, err = db.Exec("COMMIT")
	require.NoError(t, err)
	require.Equal(t, 2000, count(t, db, "SELECT count(*) FROM a WHERE t LIKE 'during%'"), "and the writer goes on")
}

// The copy has the changes of a write-ahead log.
func TestLogIsRead(t *testing.T) {
	file, _ := newDatabase(t, "PRAGMA journal_mode = wal;"+tables+"INSERT INTO a VALUES (1, 'x')")
	require.True(t, hasColumns(t.Context(), file, "a", "id", "t"))
	require.False(t, hasColumns(t.Context(), file, "a", "id", "u"))
	c, err := openCopy(t.Context(), file)
	require.NoError(t, err)
	defer c.Close()
	require.Equal(t, 1, count(t, c.DB, "SELECT count(*) FROM a"))
}

// The copy is gone at the end, after an interrupt, and if there is no room for it.
func TestCopyIsRemoved(t *testing.T) {
	file, _ := newDatabase(t, tables+"INSERT INTO a VALUES (1, 'x')")
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	left := func() int {
		list, err := os.ReadDir(dir)
		require.NoError(t, err)
		return len(list)
	}
	c, err := openCopy(t.Context(), file)
	require.NoError(t, err)
	if runtime.GOOS == "linux" {
		require.Zero(t, left(), "a kill from here leaves nothing")
	}
	require.Equal(t, 1, count(t, c.DB, "SELECT count(*) FROM a"))
	require.NoError(t, c.Close())
	require.Zero(t, left())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = openCopy(ctx, file)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, left())

	s := &snapshot{source: file, copy: filepath.Join(dir, "x", "copy.db")}
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.EqualError(t, s.noRoom(&os.PathError{Op: "write", Path: s.copy, Err: syscall.ENOSPC}, info),
		dir+" has no room for a copy of "+file+" (1 MB): set TMPDIR to a directory that has")
	t.Setenv("TMPDIR", filepath.Join(dir, "missing"))
	t.Setenv("TMP", filepath.Join(dir, "missing"))
	_, err = openCopy(t.Context(), file)
	require.ErrorContains(t, err, file+" cannot be copied to the directory for temporary files, which TMPDIR sets: ")
}
