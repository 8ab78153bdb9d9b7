package sqlstore_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

var kills = flag.Int("kills", feedtest.Count(20), "how many times TestKill kills, on each database")

// childVariable tells a child process of the tests what to do, and with which
// database: commits to make, dialect, driver and data source name.
const childVariable = "SQLSTORE_TEST_CHILD"

const (
	sharedURL  = "https://example.org/shared"
	perCommit  = 50
	noEndOfIt  = 1 << 30
	fencedEach = 20
)

// start starts a child process that makes commits to the shared feed, against
// others, and reports each in a line.
func (d database) start(t *testing.T, commits int) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%d\n%s\n%s\n%s", childVariable, commits, d.dialect, d.driver, d.victim().dsn))
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	return command, bufio.NewScanner(out)
}

// victim is the database as a process opens it that is going to be killed.
func (d database) victim() database {
	if d.dialect == sqlstore.PostgreSQL {
		d.dsn += "&application_name=victim"
	}
	return d
}

// bury waits until PostgreSQL has noticed that a victim is dead: until then, a commit
// that it has sent may still take effect.
func (d database) bury(t *testing.T) {
	t.Helper()
	if d.dialect != sqlstore.PostgreSQL {
		return
	}
	db := d.connect(t)
	require.Eventually(t, func() bool {
		var alive int
		err := db.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'victim'").Scan(&alive)
		return err == nil && alive == 0
	}, patience, time.Millisecond)
}

// child does the work of a child process, and returns its exit code.
func child(work string) int {
	part := strings.SplitN(work, "\n", 4)
	commits, err := strconv.Atoi(part[0])
	if err == nil {
		err = commitMany(context.Background(), commits, database{dialect: sqlstore.Dialect(part[1]), driver: part[2], dsn: part[3]})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func commitMany(ctx context.Context, commits int, d database) error {
	db, err := sql.Open(d.driver, d.dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	s, err := sqlstore.Open(ctx, db, d.dialect)
	if err != nil {
		return err
	}
	for n := 0; n < commits; {
		f, err := s.Feed(ctx, sharedURL)
		if errors.Is(err, mirror.ErrNotFound) {
			f, err = &mirror.Feed{URL: sharedURL}, nil
		}
		if err != nil {
			return err
		}
		err = s.Commit(ctx, sharedChange(f))
		if err == nil {
			n++
			fmt.Println(f.Commits)
		} else if !errors.Is(err, mirror.ErrConflict) {
			return err
		}
	}
	return nil
}

// sharedChange returns the change that makes a version of the shared feed: new
// entries, the change of an old one, a document.
func sharedChange(f *mirror.Feed) *mirror.Commit {
	version := f.Commits + 1
	url := fmt.Sprint(sharedURL, version)
	c := &mirror.Commit{Feed: f, Keep: noEndOfIt, Documents: []*mirror.DocumentRecord{{URL: url, Names: []string{url}}}}
	put := func(id string) {
		r := &mirror.Record{ID: id, State: mirror.Live, LastCommit: version, Added: time.Unix(version, 0)}
		r.Copy = mirror.Copy{At: r.Added, Digest: fmt.Sprint(version)}
		r.Content.Format, r.Content.Title, r.Content.Data = "atom", "word"+fmt.Sprint(version), strings.Repeat("x", 500)
		c.Put = append(c.Put, r)
	}
	for n := range perCommit {
		put(fmt.Sprint(version, "-", n))
	}
	put("changing")
	f.Entries += perCommit
	return c
}

// isWhole checks that the shared feed has all of its versions, each of them
// whole.
func isWhole(t *testing.T, s *sqlstore.Store, atLeast int64) {
	t.Helper()
	f, err := s.Feed(t.Context(), sharedURL)
	if errors.Is(err, mirror.ErrNotFound) {
		require.Zero(t, atLeast)
		return
	}
	require.NoError(t, err)
	require.GreaterOrEqual(t, f.Commits, atLeast, "a commit that was said to be done is lost")
	require.Equal(t, f.Commits*perCommit, f.Entries)
	of := map[int64]int64{}
	for _, r := range feedtest.All(t, s.Entries(t.Context(), mirror.Query{Feed: sharedURL})) {
		of[r.LastCommit]++
	}
	require.Len(t, of, int(f.Commits))
	of[f.Commits]-- // "changing" has the last version
	for version, entries := range of {
		require.EqualValues(t, perCommit, entries, "version %d", version)
		d, err := s.Document(t.Context(), sharedURL, fmt.Sprint(sharedURL, version))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(sharedURL, version), d.URL)
	}
	versions := f.Commits
	for _, v := range feedtest.All(t, s.Versions(t.Context(), sharedURL, "changing")) {
		versions--
		require.Equal(t, fmt.Sprint(versions), v.Copy.Digest)
	}
	require.EqualValues(t, 1, versions)
	found := feedtest.All(t, s.Entries(t.Context(), mirror.Query{Search: fmt.Sprint("word", f.Commits)}))
	require.Len(t, found, perCommit+1, "what a search for the last version finds")
	for _, r := range found {
		require.Equal(t, f.Commits, r.LastCommit)
	}
}

// intact checks what the database itself can check.
func (d database) intact(t *testing.T) {
	t.Helper()
	if d.dialect != sqlstore.SQLite {
		return
	}
	db := d.connect(t)
	for _, pragma := range []string{"integrity_check", "foreign_key_check"} {
		rows, err := db.Query("PRAGMA " + pragma)
		require.NoError(t, err)
		for rows.Next() {
			var says string
			require.NoError(t, rows.Scan(&says))
			require.Equal(t, "ok", says)
		}
		require.NoError(t, rows.Close())
	}
	_, err := db.Exec("INSERT INTO feedhistory_search (feedhistory_search) VALUES ('integrity-check')")
	require.NoError(t, err)
}

// TestKill kills a process while it commits, again and again. What it reported
// as committed is there, all of it whole.
func TestKill(t *testing.T) {
	feedtest.Long(t)
	faultyDatabases(t, func(t *testing.T, create func(testing.TB) database) {
		d := create(t)
		random := feedtest.Random(0)
		var done int64
		for n := range *kills {
			command, lines := d.start(t, noEndOfIt)
			for range 1 + random.IntN(4) {
				require.True(t, lines.Scan(), "the child has ended")
				version, err := strconv.ParseInt(lines.Text(), 10, 64)
				require.NoError(t, err)
				done = version
			}
			time.Sleep(time.Duration(random.IntN(10_000)) * time.Microsecond)
			require.NoError(t, command.Process.Kill())
			for lines.Scan() {
				if version, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
					done = max(done, version)
				}
			}
			require.Error(t, command.Wait())
			d.bury(t)
			if n%10 == 9 || n == *kills-1 {
				isWhole(t, d.open(t), done)
				d.intact(t)
			}
		}
	})
}

// TestProcesses lets several processes commit to one feed at the same time.
func TestProcesses(t *testing.T) {
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		d := create(t)
		var children []*exec.Cmd
		var readers sync.WaitGroup
		defer readers.Wait()
		for range 3 {
			command, lines := d.start(t, fencedEach)
			children = append(children, command)
			readers.Go(func() {
				for lines.Scan() {
				}
			})
		}
		var s *sqlstore.Store
		for s = d.open(t); len(children) > 0; children = children[1:] {
			require.NoError(t, s.Index(t.Context()))
			require.NoError(t, children[0].Wait())
		}
		isWhole(t, s, 3*fencedEach)
		f, err := s.Feed(t.Context(), sharedURL)
		require.NoError(t, err)
		require.EqualValues(t, 3*fencedEach, f.Commits)
		d.intact(t)
	})
}

// TestFull fills the disk. The error says so, what was committed stays, and
// when there is room again everything continues.
func TestFull(t *testing.T) {
	d := newSQLite(t)
	d.open(t)
	small := d
	small.dsn += "&_pragma=max_page_count(200)"
	s := small.open(t)
	f := &mirror.Feed{URL: sharedURL}
	var full error
	for full == nil {
		require.Less(t, f.Commits, int64(1000))
		full = s.Commit(t.Context(), sharedChange(f))
	}
	require.ErrorContains(t, full, "full")
	require.NotErrorIs(t, full, mirror.ErrConflict)
	require.Greater(t, f.Commits, int64(5))
	got, err := s.Feed(t.Context(), sharedURL)
	require.NoError(t, err)
	require.Equal(t, f.Commits, got.Commits)
	d.intact(t)

	roomy := d.open(t)
	isWhole(t, roomy, f.Commits)
	require.NoError(t, roomy.Commit(t.Context(), sharedChange(got)))
	isWhole(t, roomy, f.Commits+1)
}
