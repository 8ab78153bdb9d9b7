package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// A windowFeed is a plain feed that shows its fifty latest entries of a kilobyte. It leaves little
// garbage: collecting it would count as the polls'.
type windowFeed struct {
	newest int
	at     time.Time // its own time

	entries [][]byte // the newest first
	tag     string
	text    []byte // as it is served
	spare   []byte // the text before
}

func newWindowFeed() *windowFeed {
	f := &windowFeed{newest: 950, at: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)}
	f.publish(50)
	return f
}

// publish publishes new entries, at a later time.
func (f *windowFeed) publish(entries int) {
	for range entries {
		f.newest++
		n := f.newest
		f.entries = slices.Insert(f.entries, 0, fmt.Appendf(nil, `<entry><title>Post %d</title><id>https://example.org/posts/%[1]d</id><updated>%s</updated><content>%s</content></entry>`,
			n, time.Date(2024, 1, 1, n, 0, 0, 0, time.UTC).Format(time.RFC3339), strings.Repeat(fmt.Sprintf("%x ", n*n), 1000/5)))
	}
	f.entries = f.entries[:50]
	f.at = f.at.Add(time.Minute)
	text := fmt.Appendf(f.spare[:0], `<feed xmlns="http://www.w3.org/2005/Atom"><title>A window</title><id>urn:example:window</id><updated>%s</updated>`,
		f.at.Format(time.RFC3339))
	for _, e := range f.entries {
		text = append(text, e...)
	}
	f.tag, f.spare, f.text = fmt.Sprintf(`"%d-%d"`, f.newest, f.at.Unix()), f.text, append(text, `</feed>`...)
}

func (f *windowFeed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if w.Header().Set("ETag", f.tag); r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(f.text)
}

// BenchmarkPoll polls a feed of fifty entries that answers 304, one that sends them with another time
// of its own alone, and one with one new entry; it also parses that document. Processor time is that of
// the client and the server, without the system's and PostgreSQL's.
func BenchmarkPoll(b *testing.B) {
	b.Run("parse", func(b *testing.B) {
		text := string(newWindowFeed().text)
		before := feedtest.ProcessorTime(b)
		for range b.N {
			_, err := feedhistory.Parse(strings.NewReader(text), "https://example.org/")
			require.NoError(b, err)
		}
		b.ReportMetric(float64((feedtest.ProcessorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
	})
	for _, name := range []string{"sqlite", "postgresql"} {
		for _, c := range []struct {
			name    string
			changes func(*windowFeed)
		}{
			{"304", func(*windowFeed) {}},
			{"time", func(f *windowFeed) { f.publish(0) }},
			{"entry", func(f *windowFeed) { f.publish(1) }},
		} {
			b.Run(name+"/"+c.name, func(b *testing.B) { benchmarkPoll(b, name, c.changes) })
		}
	}
}

func benchmarkPoll(b *testing.B, name string, changes func(*windowFeed)) {
	feed := newWindowFeed()
	site := feedtest.Server(b, feed)
	d := newSQLite(b)
	if name == "postgresql" {
		d = newPostgreSQL(b)
	}
	m := newMirror(b, d.open(b))
	for range 3 {
		_, err := m.Update(b.Context(), site.URL)
		require.NoError(b, err)
		changes(feed)
	}
	log := logOf(b, d)
	written, polled := log(), time.Duration(0)
	b.ResetTimer()
	for range b.N {
		before := feedtest.ProcessorTime(b)
		r, err := m.Update(b.Context(), site.URL)
		polled += feedtest.ProcessorTime(b) - before
		require.NoError(b, err)
		require.NoError(b, r.Failure)
		changes(feed)
	}
	b.StopTimer()
	b.ReportMetric(float64(polled.Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(log()-written)/float64(b.N), "log-bytes/op")
}

// logOf returns a function that returns the bytes written to the database's log. SQLite's is
// emptied first, and begins again after some 16 MB.
func logOf(b *testing.B, d database) func() int64 {
	db, err := sql.Open(d.driver, d.dsn)
	require.NoError(b, err)
	b.Cleanup(func() { db.Close() })
	if d.dialect == sqlstore.SQLite {
		_, err := db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
		require.NoError(b, err)
		return func() int64 {
			log, err := os.Stat(d.file + "-wal")
			require.NoError(b, err)
			return log.Size()
		}
	}
	_, err = db.Exec("CHECKPOINT")
	require.NoError(b, err)
	return func() (at int64) {
		require.NoError(b, db.QueryRow("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint").Scan(&at))
		return at
	}
}

// A tally counts the rows of entries that commits store, and those a poll asks for.
type tally struct {
	mirror.Store
	put, touched, asked int
}

func (s *tally) Commit(ctx context.Context, c *mirror.Commit) error {
	s.put, s.touched = s.put+len(c.Put), s.touched+len(c.Touch)
	return s.Store.Commit(ctx, c)
}

func (s *tally) Records(ctx context.Context, feed string, ids []string) (map[string]*mirror.Record, error) {
	s.asked += len(ids)
	return s.Store.Records(ctx, feed, ids)
}

// A poll to which the feed's own time alone is new stores no entry, and one that brings an
// entry stores it, and the one that has left with the rank it had. Neither reads the rows of the
// others, unless something else has changed the feed's entries.
func TestFewRows(t *testing.T) {
	feed := newWindowFeed()
	site := feedtest.Server(t, feed)
	store := &tally{Store: newSQLite(t).open(t)}
	m := newMirror(t, store)
	poll := func(put, touched, asked int) {
		t.Helper()
		store.put, store.touched, store.asked = 0, 0, 0
		_, err := m.Update(t.Context(), site.URL)
		require.NoError(t, err)
		require.Equal(t, []int{put, touched, asked}, []int{store.put, store.touched, store.asked})
	}
	poll(50, 0, 0)
	for range 3 {
		feed.publish(0)
		poll(0, 0, 0)
		poll(0, 0, 0) // 304
	}
	for range 3 {
		feed.publish(1)
		poll(1, 1, 2)
	}
	left, err := store.Records(t.Context(), site.URL, []string{"https://example.org/posts/951"})
	require.NoError(t, err)
	require.Equal(t, feed.at.Add(-3*time.Minute), left["https://example.org/posts/951"].Copy.Rank.Time.UTC())

	const id = "https://example.org/posts/990"
	state, err := store.Feed(t.Context(), site.URL)
	require.NoError(t, err)
	rows, err := store.Records(t.Context(), site.URL, []string{id})
	require.NoError(t, err)
	rows[id].State, rows[id].Absence = mirror.Absent, 1
	require.NoError(t, store.Store.Commit(t.Context(), &mirror.Commit{Feed: state, Touch: []*mirror.Record{rows[id]}}))
	feed.publish(0)
	poll(0, 1, 50)
	rows, err = store.Records(t.Context(), site.URL, []string{id})
	require.NoError(t, err)
	require.Equal(t, mirror.Live, rows[id].State)
	feed.publish(0)
	poll(0, 0, 1)
	feed.publish(0)
	poll(0, 0, 0)
}
