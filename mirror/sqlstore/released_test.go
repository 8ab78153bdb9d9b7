package sqlstore_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// Migrations never change, because a database that has run one does not run it again. A
// change is a new migration; testdata/migrations.sha256 gets its checksum (sha256sum).
func TestMigrationsStay(t *testing.T) {
	sums := map[string]string{}
	for line := range strings.Lines(string(feedtest.ReadFile(t, "testdata/migrations.sha256"))) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		require.True(t, ok, line)
		sums[name] = sum
	}
	files := feedtest.Glob(t, "migrations/*/*.sql")
	require.Len(t, sums, len(files))
	for _, file := range files {
		sum := sha256.Sum256(feedtest.ReadFile(t, file))
		name := strings.TrimPrefix(filepath.ToSlash(file), "migrations/")
		require.Equal(t, sums[name], hex.EncodeToString(sum[:]), "%s must not change", name)
	}
}

// Each migration's version has a database in testdata/released.
func TestEachVersionKept(t *testing.T) {
	for dialect, ending := range map[string]string{"sqlite": ".sqlite.gz", "postgresql": ".postgresql.sql.gz"} {
		for _, file := range feedtest.Glob(t, filepath.Join("migrations", dialect, "*.sql")) {
			version, _, _ := strings.Cut(strings.TrimLeft(filepath.Base(file), "0"), "_")
			require.FileExists(t, filepath.Join("testdata/released", version+ending))
		}
	}
}

// A released fixture is the content of a database that a released program has
// written.
type released struct {
	Feeds     []*mirror.Feed
	Entries   map[string]map[string]string // of a feed, the title of each entry
	Versions  map[string]int               // of an entry
	Documents map[string][]string          // of a feed
}

// The databases of each released schema, in testdata/released by version, are
// brought up to date: their content is still there, and they then have the
// schema of a new database. In PostgreSQL, only a long run takes those between the first and
// the last.
func TestUpgrade(t *testing.T) {
	feedtest.Long(t)
	emptyDatabases(t, func(t *testing.T, create func(testing.TB) database) {
		fresh := create(t)
		fresh.open(t)
		pattern := map[sqlstore.Dialect]string{sqlstore.SQLite: "*.sqlite.gz", sqlstore.PostgreSQL: "*.postgresql.sql.gz"}
		files := feedtest.Glob(t, filepath.Join("testdata/released", pattern[fresh.dialect]))
		if fresh.dialect == sqlstore.PostgreSQL && !feedtest.LongRun() {
			files = []string{files[0], files[len(files)-1]}
		}
		for _, file := range files {
			version, _, _ := strings.Cut(filepath.Base(file), ".")
			t.Run(version, func(t *testing.T) {
				d := restore(t, fresh.dialect, file)
				testUpgraded(t, d, "testdata/released/"+string(d.dialect)+".json")
				require.Equal(t, schemaOf(t, fresh), schemaOf(t, d))
			})
		}
	})
}

// A title with U+0000, which PostgreSQL's JSON functions do not take, or with what
// looks like a member of the state, does not keep a database from being brought up to date.
func TestUpgradeNUL(t *testing.T) {
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		dialect := create(t).dialect
		file := map[sqlstore.Dialect]string{sqlstore.SQLite: "1.sqlite.gz", sqlstore.PostgreSQL: "1.postgresql.sql.gz"}[dialect]
		d := restore(t, dialect, filepath.Join("testdata/released", file))
		_, err := d.connect(t).Exec(`UPDATE feeds SET state = replace(state, '"title":"Plain"', '"title":"\u0000 \"polls\":77"')`)
		require.NoError(t, err)
		f, err := d.open(t).Feed(t.Context(), "http://plain.example/feed")
		require.NoError(t, err)
		require.Equal(t, "\x00 \"polls\":77", f.Title)
		require.EqualValues(t, 1, f.Polls)
		require.EqualValues(t, 1, f.Commits)
		require.False(t, f.Next.IsZero())
	})
}

// restore makes a database from a file.
func restore(t *testing.T, dialect sqlstore.Dialect, file string) (d database) {
	t.Helper()
	in, err := os.Open(file)
	require.NoError(t, err)
	defer in.Close()
	unzipped, err := gzip.NewReader(in)
	require.NoError(t, err)
	data, err := io.ReadAll(unzipped)
	require.NoError(t, err)
	if dialect == sqlstore.SQLite {
		copied := filepath.Join(t.TempDir(), "feeds.db")
		require.NoError(t, os.WriteFile(copied, data, 0o600))
		d = inFile(copied)
	} else {
		d = emptyPostgreSQL(t)
		_, err = d.connect(t).Exec(string(data))
		require.NoError(t, err)
	}
	_, err = sqlstore.OpenReader(t.Context(), d.forReading().connect(t), d.dialect)
	isOutdated(t, err)
	return d
}

// isOutdated checks a reader's error. The newest schema is not outdated.
func isOutdated(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		require.ErrorIs(t, err, sqlstore.ErrOutdated)
	}
}

func testUpgraded(t *testing.T, d database, file string) {
	var want released
	data := feedtest.ReadFile(t, file)
	require.NoError(t, json.Unmarshal(data, &want))
	s := d.open(t)
	feeds := feedtest.All(t, s.Feeds(t.Context(), mirror.FeedQuery{}))
	require.Len(t, feeds, len(want.Feeds))
	require.NotEmpty(t, feeds)
	for i, f := range feeds {
		got, err := json.Marshal(f)
		require.NoError(t, err)
		wanted, err := json.Marshal(want.Feeds[i])
		require.NoError(t, err)
		require.JSONEq(t, string(wanted), string(got))
		require.Equal(t, want.Entries[f.URL], held(t, s, f.URL))
		testCounts(t, s, f.URL)
		for id := range want.Entries[f.URL] {
			require.Len(t, feedtest.All(t, s.Versions(t.Context(), f.URL, id)), want.Versions[id])
		}
		var documents []string
		for _, d := range feedtest.All(t, s.Documents(t.Context(), f.URL)) {
			documents = append(documents, d.URL)
		}
		require.Equal(t, want.Documents[f.URL], documents)
	}
	require.Len(t, feedtest.All(t, s.Entries(t.Context(), mirror.Query{Search: "plain hello"})), 1)
	testGoesOn(t, s, want)
	d.intact(t)
}

// testGoesOn lets a mirror continue with what an earlier program has left: it
// edits an entry, adds one, and fetches the archive that was missing.
func testGoesOn(t *testing.T, s *sqlstore.Store, want released) {
	const url = "http://hole.example/feed"
	require.NotEmpty(t, want.Entries[url])
	mux := http.NewServeMux()
	mux.HandleFunc("/feed", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:hole</id><link rel="prev-archive" href="/1"/>`+
			`<entry><id>urn:hole:2</id><title>Two, edited</title><updated>2004-12-13T00:00:00Z</updated></entry></feed>`)
	})
	mux.HandleFunc("/1", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:hole</id>`+
			`<entry><id>urn:hole:1</id><title>One</title><updated>2002-12-13T00:00:00Z</updated></entry></feed>`)
	})
	m := &mirror.Mirror{Store: s, Client: &feedhistory.Client{AllowPrivate: true, Transport: feedtest.Direct{Handler: mux}}}
	changes, err := m.Update(t.Context(), url)
	require.NoError(t, err)
	require.NoError(t, changes.Failure)
	require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict)
	require.Equal(t, map[string]string{"urn:hole:1": "One", "urn:hole:2": "Two, edited"}, held(t, s, url))
	require.Len(t, feedtest.All(t, s.Versions(t.Context(), url, "urn:hole:2")), 1)
	require.Len(t, feedtest.All(t, s.Entries(t.Context(), mirror.Query{Search: "edited"})), 1)
}

// schemaOf lists the objects of our part of a database's schema.
func schemaOf(t *testing.T, d database) (list []string) {
	t.Helper()
	db, query, args := d.connect(t), sqlstore.SchemaQuery, []any(nil)
	if d.dialect == sqlstore.SQLite {
		var tables string
		require.NoError(t, db.QueryRow(`SELECT json_group_array(name) FROM sqlite_schema WHERE name LIKE 'feedhistory\_%' ESCAPE '\'`).Scan(&tables))
		args = []any{tables}
	} else {
		query = `SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default, collation_name, generation_expression)
			FROM information_schema.columns WHERE table_schema = 'feedhistory'
			UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'feedhistory'
			UNION ALL SELECT concat_ws(' ', conrelid::regclass, pg_get_constraintdef(oid)) FROM pg_constraint WHERE connamespace = 'feedhistory'::regnamespace
			UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'feedhistory'::regnamespace`
	}
	rows, err := db.Query(query, args...)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var s string
		require.NoError(t, rows.Scan(&s))
		list = append(list, s)
	}
	require.NoError(t, rows.Err())
	require.Greater(t, len(list), 50)
	slices.Sort(list)
	return list
}
