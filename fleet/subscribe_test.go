package fleet_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/fleet"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

func TestSubscribe(t *testing.T) {
	t.Parallel()
	db := open(t, newDatabase(t))
	var urls []string
	for i := range 10_000 {
		urls = append(urls, fmt.Sprintf("https://host-%d.example/feed-%d", i/10, i))
	}
	added, err := db.Subscribe(t.Context(), append(urls, urls[0]+"#part", " "+urls[1]))
	require.NoError(t, err)
	require.Equal(t, len(urls), added)
	added, err = db.Subscribe(t.Context(), append(urls[:10:10], "https://new.example/feed", "https://HOST-1.example/other"))
	require.NoError(t, err)
	require.Equal(t, 2, added)
	s := status(t, db)
	require.EqualValues(t, 10_002, s.Feeds)
	require.EqualValues(t, 1001, s.Hosts)
	require.EqualValues(t, 10_002, s.Due)
	require.EqualValues(t, 10_002, s.New)
	require.Equal(t, "host-1.example", s.ByHost[0].Host)
	require.EqualValues(t, 11, s.ByHost[0].Due)

	removed, err := db.Unsubscribe(t.Context(), []string{urls[0], urls[1], "https://unknown.example/"})
	require.NoError(t, err)
	require.Equal(t, 2, removed)
	require.EqualValues(t, 10_000, status(t, db).Feeds)
}

// An invalid address is refused, and nothing is done.
func TestSubscribeRefused(t *testing.T) {
	t.Parallel()
	db := open(t, newDatabase(t))
	for _, bad := range []string{
		"", "example.org/feed", "ftp://example.org/feed", "https:///feed", "http://[::1", "https://exa%zzmple.org/",
		"https://example.org/\xff", "https://example.org/" + strings.Repeat("x", 2000),
	} {
		for _, do := range []func() (int, error){
			func() (int, error) { return db.Subscribe(t.Context(), []string{"https://example.org/feed", bad}) },
			func() (int, error) { return db.Unsubscribe(t.Context(), []string{bad}) },
		} {
			_, err := do()
			refused := feedtest.ErrorAs[*fleet.URLError](t, err, bad)
			require.Equal(t, bad, refused.URL)
			require.Error(t, refused.Err)
		}
	}
	_, err := db.Subscribe(t.Context(), []string{"https://user:secret@example.org/feed"})
	feedtest.ErrorAs[*fleet.URLError](t, err, "a password")
	require.NotContains(t, err.Error(), "secret")
	removed, err := db.Unsubscribe(t.Context(), []string{"https://user:secret@example.org/feed"})
	require.NoError(t, err, "of an earlier version")
	require.Zero(t, removed)
	require.Zero(t, status(t, db).Feeds)

	_, err = db.Subscribe(t.Context(), []string{"https://example.org/100%/feed"}) // in the form that servers know
	require.NoError(t, err)
	require.EqualValues(t, 1, status(t, db).Feeds)
}

// A feed that is unsubscribed from is no longer in the store, even if its first
// poll was under way.
func TestUnsubscribe(t *testing.T) {
	t.Parallel()
	db := open(t, newDatabase(t))
	s := newSite(t)
	asked, answer := s.gate("/first")
	_, second := s.model("/second", 1)
	first := s.URL + "/first"
	subscribe(t, db, first, second)
	start(t, newWorker(t, db))
	<-asked
	removed, err := db.Unsubscribe(t.Context(), []string{first})
	require.NoError(t, err)
	require.Equal(t, 1, removed)
	close(answer)
	eventually(t, db, func(s *fleet.Status) bool { return s.New == 0 && s.Running == 0 })
	require.Eventually(t, func() bool { // when the poll is recorded
		_, err := db.Store.Feed(t.Context(), first)
		return errors.Is(err, mirror.ErrNotFound)
	}, patience, 10*time.Millisecond)
	_, err = db.Store.Feed(t.Context(), second)
	require.NoError(t, err)
	_, err = db.Unsubscribe(t.Context(), []string{second})
	require.NoError(t, err)
	_, err = db.Store.Feed(t.Context(), second)
	require.ErrorIs(t, err, mirror.ErrNotFound)
	require.Zero(t, status(t, db).Feeds)
}

// A host that was forgotten for any reason is found again.
func TestSweep(t *testing.T) {
	t.Parallel()
	db := open(t, newDatabase(t))
	s := newSite(t)
	_, url := s.model("/feed", 1)
	subscribe(t, db, url)
	sql(t, db, `UPDATE fleet_hosts SET due = NULL`)
	sql(t, db, `INSERT INTO fleet_hosts (host) VALUES ('empty.example')`)
	start(t, newWorker(t, db))
	eventually(t, db, func(s *fleet.Status) bool { return s.New == 0 && s.Hosts == 1 })
}

// A worker indexes what has been mirrored, so a search by a reader looks into no other entry.
func TestIndex(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t)
	db := open(t, dsn)
	s := newSite(t)
	m, url := s.model("/feed", 1)
	m.Step()
	subscribe(t, db, url)
	stop := start(t, newWorker(t, db))
	eventually(t, db, func(s *fleet.Status) bool { return s.New == 0 && s.Running == 0 })
	stop()
	start(t, newWorker(t, db)) // which begins with the index
	require.Eventually(t, func() bool {
		return holds(t, db, `SELECT WHERE NOT EXISTS (SELECT FROM feedhistory.unindexed) AND EXISTS (SELECT FROM feedhistory.search)`)
	},
		patience, 20*time.Millisecond)
}

// A new database has none of River's unused indexes. Tables of River's that
// existed before keep theirs.
func TestRiverIndexes(t *testing.T) {
	t.Parallel()
	for name, there := range map[string]bool{"new": false, "of another": true} {
		t.Run(name, func(t *testing.T) {
			dsn := newDatabase(t)
			db := open(t, dsn)
			if there {
				sql(t, db, `CREATE INDEX river_job_args_index ON river_job USING gin (args)`)
				db = open(t, dsn)
			}
			sql(t, db, fmt.Sprintf(`DO $$ BEGIN
				IF (to_regclass('river_job_args_index') IS NOT NULL) <> %v OR to_regclass('river_job_metadata_index') IS NOT NULL
				THEN RAISE 'other indexes are there'; END IF; END $$`, there))
		})
	}
}
