package sqlstore_test

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// gallery returns a mirror of a website with an archived feed. Its oldest archive has the
// given entries; the entry e has an edition.
func gallery(s *sqlstore.Store, edition int, oldest ...string) *mirror.Mirror {
	mux := http.NewServeMux()
	page := func(path, links string, ids ...string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			var b strings.Builder
			for _, id := range ids {
				n := 0
				if id == "e" {
					n = edition
				}
				fmt.Fprintf(&b, `<entry><id>urn:%s</id><title>Title %s</title><updated>200%d-01-01T00:00:00Z</updated><summary>words of %s</summary></entry>`, id, id, n, id)
			}
			_, _ = io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:gallery</id>`+links+b.String()+`</feed>`)
		})
	}
	page("/feed", `<link rel="prev-archive" href="/2"/>`, "e", "f")
	page("/2", `<link rel="prev-archive" href="/1"/>`, "c", "d")
	page("/1", ``, oldest...)
	return &mirror.Mirror{Store: s, Client: &feedhistory.Client{AllowPrivate: true, Transport: feedtest.Direct{Handler: mux}}}
}

const galleryURL = "http://gallery.example/feed"

// fill mirrors the gallery, with two versions of an entry.
func fill(t *testing.T, s *sqlstore.Store) {
	for edition := 1; edition <= 3; edition++ {
		_, err := gallery(s, edition, "a", "b").Update(t.Context(), galleryURL)
		require.NoError(t, err)
	}
	require.NoError(t, s.Index(t.Context()))
}

func check(t *testing.T, s *sqlstore.Store) *sqlstore.Inspection {
	t.Helper()
	found, err := s.Check(t.Context())
	require.NoError(t, err)
	return found
}

// A tombstone of an entry that never came has no content, so its row lacks no checksum.
func TestCheckTombstone(t *testing.T) {
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		s := create(t).open(t)
		site := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:gallery</id>
				<deleted-entry xmlns="http://purl.org/atompub/tombstones/1.0" ref="urn:never" when="2003-12-13T00:00:00Z"/></feed>`)
		})
		m := &mirror.Mirror{Store: s, Client: &feedhistory.Client{AllowPrivate: true, Transport: feedtest.Direct{Handler: site}}}
		_, err := m.Update(t.Context(), galleryURL)
		require.NoError(t, err)
		records, err := s.Records(t.Context(), galleryURL, []string{"urn:never"})
		require.NoError(t, err)
		require.Equal(t, mirror.Unseen, records["urn:never"].State)
		found := check(t, s)
		require.Empty(t, found.Damages)
		require.Zero(t, found.Unsealed)
	})
}

// Check finds nothing in a database that is as it was stored, nor in one of an earlier
// version, whose rows have no checksums.
func TestCheckNothing(t *testing.T) {
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		d := create(t)
		s := d.open(t)
		fill(t, s)
		found := check(t, s)
		require.Empty(t, found.Damages)
		require.Zero(t, found.Unsealed)
		require.EqualValues(t, 1, found.Feeds)
		require.EqualValues(t, 2, found.Documents)
		require.EqualValues(t, 2, found.Versions)

		file := map[sqlstore.Dialect]string{sqlstore.SQLite: "1.sqlite.gz", sqlstore.PostgreSQL: "1.postgresql.sql.gz"}[d.dialect]
		found = check(t, restore(t, d.dialect, filepath.Join("testdata/released", file)).open(t))
		require.Empty(t, found.Damages)
		require.NotZero(t, found.Unsealed)
	})
}

// Whatever is damaged is found and named.
func TestCheckDamage(t *testing.T) {
	feedtest.Long(t)
	for name, test := range damages {
		t.Run(name, func(t *testing.T) {
			faultyDatabases(t, func(t *testing.T, create func(testing.TB) database) {
				d := create(t)
				s := d.open(t)
				fill(t, s)
				_, err := d.connect(t).Exec(d.sql(test.statement))
				require.NoError(t, err)
				require.Contains(t, fmt.Sprint(check(t, s).Damages), test.found)
			})
		})
	}
}

var damages = map[string]struct {
	statement string
	found     string
}{
	"text of an entry":   {"UPDATE fh.entries SET data = replace(data, 'words of a', 'worms of a') WHERE id = 'urn:a'", "entries " + galleryURL + " urn:a: it differs from its checksum"},
	"markup of an entry": {"UPDATE fh.entries SET data = replace(data, '</summary>', '</summarx>') WHERE id = 'urn:c'", "entries " + galleryURL + " urn:c: "},
	"state of an entry":  {"UPDATE fh.entries SET state = 'lite' WHERE id = 'urn:e'", "entries " + galleryURL + " urn:e: it differs"},
	"format":             {"UPDATE fh.entries SET format = 'atmo' WHERE id = 'urn:e'", "entries " + galleryURL + " urn:e: it differs"},
	"time":               {"UPDATE fh.entries SET published = '20x4-01-01T00:00:00.000000000Z' WHERE id = 'urn:d'", "entries " + galleryURL + " urn:d: it differs"},
	"state of the feed":  {"UPDATE fh.feeds SET state = replace(state, 'archived', 'archivet') WHERE url = '" + galleryURL + "'", "feeds " + galleryURL},
	"poll":               {"UPDATE fh.polls SET polls = 77 WHERE feed = (SELECT key FROM fh.feeds WHERE url = '" + galleryURL + "')", "polls " + galleryURL},
	"document":           {"UPDATE fh.documents SET rank_place = 77 WHERE url = 'http://gallery.example/2'", "documents " + galleryURL + " http://gallery.example/2"},
	"names":              {"DELETE FROM fh.names WHERE name = 'http://gallery.example/2'", "names: 1 documents have other names"},
	"index":              {"DELETE FROM fh.search WHERE rowid = (SELECT key FROM fh.entries WHERE id = 'urn:b')", "search: 1 entries have other words than the index"},
}

// A changed schema is found.
func TestCheckSchema(t *testing.T) {
	for _, change := range [][2]string{
		{"'ascii'", "'asciT'"}, {"contentless_delete = 1", "contentless_delete = 0"}, {"nullif(published, '')", "nullif(published, '2')"},
		{"ON DELETE CASCADE", "ON DELETE SET NULL"}, {"entries   INTEGER", "entries   INT"},
	} {
		t.Run(change[1], func(t *testing.T) {
			d := newSQLite(t)
			fill(t, d.open(t))
			db := d.connect(t)
			db.SetMaxOpenConns(1)
			quoted := strings.NewReplacer("'", "''")
			for _, statement := range []string{
				"PRAGMA writable_schema = ON",
				fmt.Sprintf("UPDATE sqlite_schema SET sql = replace(sql, '%s', '%s')", quoted.Replace(change[0]), quoted.Replace(change[1])),
			} {
				_, err := db.Exec(statement)
				require.NoError(t, err)
			}
			found := check(t, d.open(t))
			require.NotEmpty(t, found.Damages)
			require.Equal(t, "file", found.Damages[0].Table)
		})
	}
}
