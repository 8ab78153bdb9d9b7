package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore/pgtest"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// The scripts about mirrored feeds also run on PostgreSQL.
func TestScriptsOnPostgreSQL(t *testing.T) {
	feedtest.Long(t)
	server, err := pgtest.Start()
	if !errors.Is(err, pgtest.ErrMissing) {
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, server.Stop()) })
	}
	server.Database(t) // skips without a server
	params := scripts(func() string { return server.Database(t) })
	for _, name := range []string{"sync", "syncevery", "synckill", "list", "entries", "export", "move"} {
		params.Files = append(params.Files, filepath.Join("testdata", "script", name+".txtar"))
	}
	testscript.Run(t, params)
}

// damagedStore makes a database with a whole feed of three entries, of which one is
// damaged, and returns the feed's URL.
func damagedStore(t *testing.T, db string) string {
	store, url := mirrored(t, manyEntries(t, feedhistory.Atom, 3))
	f, err := store.Feed(t.Context(), url)
	require.NoError(t, err)
	require.Equal(t, feedhistory.Whole, f.Verdict)
	change := &mirror.Commit{Feed: f}
	f.Commits, f.Next = 0, time.Now().Add(time.Hour)
	for r, err := range store.Entries(t.Context(), mirror.Query{Feed: url}) {
		require.NoError(t, err)
		if r.ID == "urn:2" {
			r.Content.Data = "<entry"
		}
		change.Put = append(change.Put, r)
	}
	to := created(t, db)
	require.NoError(t, to.Commit(t.Context(), change))
	require.NoError(t, to.Close())
	return url
}

// An entry that cannot be read is named; the others are shown, and nothing says that they
// are all.
func TestDamagedEntryIsNamed(t *testing.T) {
	db := filepath.Join(t.TempDir(), "feeds.db")
	url := damagedStore(t, db)
	for _, args := range [][]string{
		{"entries"}, {"entries", "--json"}, {"entries", "-l"}, {"export"}, {"export", "--format", "csv"}, {"export", "--format", "json", url},
		{"export", "--format", "atom", url}, {"export", "--format", "rss", url}, {"export", "--format", "greader"}, {"export", "--format", "nextcloud"},
	} {
		t.Run(strings.Join(args[:min(3, len(args))], " "), func(t *testing.T) {
			status, stdout, stderr := call(t.Context(), "", append(args, "--db", db)...)
			require.Equal(t, terminal.ExitPartial, status, stderr)
			require.Contains(t, said(stderr), "the entry urn:2 cannot be read, and is left out")
			require.Contains(t, stdout, "Entry")
			if !strings.Contains(strings.Join(args, " "), "atom") && !strings.Contains(strings.Join(args, " "), "rss") {
				return
			}
			doc, err := feedhistory.Parse(strings.NewReader(stdout), url)
			require.NoError(t, err)
			require.False(t, doc.Complete)
			require.Equal(t, feedhistory.Partial, doc.Coverage.Verdict)
			require.NotEmpty(t, doc.Declared())
		})
	}
	require.Contains(t, done(t, "", "export", "--raw", "--db", db), `"data":"<entry"`)
}

// What a mirror does not have as a whole is read back with the same verdict.
func TestExportCarriesTheVerdict(t *testing.T) {
	proved := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	for name, change := range map[string]func(f *mirror.Feed){
		"lossy":         func(f *mirror.Feed) { f.Verdict, f.Kind = feedhistory.Lossy, feedhistory.Paged },
		"window":        func(f *mirror.Feed) { f.Verdict, f.Kind = feedhistory.Window, feedhistory.Plain },
		"whole":         func(*mirror.Feed) {},
		"whole of then": func(f *mirror.Feed) { f.Kind, f.AsOf, f.Source, f.Proven = feedhistory.Plain, proved, "x", true },
	} {
		for _, format := range []string{"atom", "rss"} {
			t.Run(name+" "+format, func(t *testing.T) {
				db := filepath.Join(t.TempDir(), "feeds.db")
				store, url := mirrored(t, manyEntries(t, feedhistory.Atom, 3))
				f, err := store.Feed(t.Context(), url)
				require.NoError(t, err)
				change(f)
				want, at := f.Verdict, f.WholeAsOf()
				to := created(t, db)
				f.Commits = 0
				require.NoError(t, to.Commit(t.Context(), &mirror.Commit{Feed: f}))
				require.NoError(t, to.Close())
				doc, err := feedhistory.Parse(strings.NewReader(done(t, "", "export", "--db", db, "--format", format, url)), url)
				require.NoError(t, err)
				h, err := feedhistory.Merge(func(yield func(*feedhistory.Document, error) bool) { yield(doc, nil) })
				require.NoError(t, err)
				require.Equal(t, want, h.Verdict())
				if at.IsZero() {
					require.True(t, doc.Coverage == nil || doc.Coverage.AsOf.IsZero())
				} else {
					require.Equal(t, at, doc.Coverage.AsOf)
				}
			})
		}
	}
}

// created returns a new database.
func created(t *testing.T, db string) *database.Store {
	store, err := (&database.Location{DB: db}).Create(&command.World{Ctx: t.Context()})
	require.NoError(t, err)
	return store
}
