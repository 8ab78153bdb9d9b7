package sqlstore_test

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

var keep = flag.Bool("keep", false, "make testdata/released from the first release's databases, for each version of the schema that is not there")

// TestKeep makes the databases of testdata/released: the first release wrote the content,
// and the migrations up to a version brought it up to date. Run it with -keep before a
// migration is released.
func TestKeep(t *testing.T) {
	if !*keep {
		t.Skip("only with -keep")
	}
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		dialect := create(t).dialect
		ending := map[sqlstore.Dialect]string{sqlstore.SQLite: ".sqlite.gz", sqlstore.PostgreSQL: ".postgresql.sql.gz"}[dialect]
		var scripts []string
		for _, file := range feedtest.Glob(t, filepath.Join("migrations", string(dialect), "*.sql")) {
			var version int
			_, err := fmt.Sscanf(strings.TrimLeft(filepath.Base(file), "0"), "%d_", &version)
			require.NoError(t, err)
			kept := filepath.Join("testdata/released", fmt.Sprint(version)+ending)
			if version > 1 {
				scripts = append(scripts, string(feedtest.ReadFile(t, file)), versioned(dialect, version))
			}
			if _, err := os.Stat(kept); err == nil {
				continue
			}
			d := restore(t, dialect, filepath.Join("testdata/released", "1"+ending))
			db := d.connect(t)
			for _, script := range scripts {
				_, err := db.Exec(script)
				require.NoError(t, err)
			}
			var zipped bytes.Buffer
			w, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
			_, err = w.Write(d.dump(t, db))
			require.NoError(t, err)
			require.NoError(t, w.Close())
			require.NoError(t, os.WriteFile(kept, zipped.Bytes(), 0o600))
		}
	})
}

// versioned returns the statements that record a version of the schema, and store times
// as that version's programs did.
func versioned(dialect sqlstore.Dialect, version int) string {
	switch {
	case version >= 7:
		return database{dialect: dialect}.sql(fmt.Sprintf("DELETE FROM fh.schema; INSERT INTO fh.schema VALUES (%d)", version))
	case dialect == sqlstore.SQLite && version == 4:
		return `INSERT INTO schema_versions (version_id, is_applied) VALUES (4, true);
			UPDATE entries SET changed_own = '=' WHERE changed_own = added;
			UPDATE entries SET at_own = '=' WHERE at_own = updated`
	}
	return fmt.Sprintf("INSERT INTO schema_versions (version_id, is_applied) VALUES (%d, true)", version)
}

// dump returns the whole database.
func (d database) dump(t *testing.T, db *sql.DB) []byte {
	if d.dialect == sqlstore.SQLite {
		file := filepath.Join(t.TempDir(), "dump.db")
		_, err := db.Exec("VACUUM INTO ?", file)
		require.NoError(t, err)
		return feedtest.ReadFile(t, file)
	}
	out, err := exec.Command("pg_dump", "--inserts", "--no-owner", "--dbname", d.dsn).Output()
	require.NoError(t, err)
	var lines []string
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, `\`) && !strings.HasPrefix(line, "--") { // commands of psql, and comments
			lines = append(lines, line)
		}
	}
	return []byte(strings.Join(lines, ""))
}

var migrated = flag.Int("rows", 2000, "how many entries TestMigrateMany brings up to date")

// TestMigrateMany brings a database of the last version whose entries a migration rewrites up
// to date, with many entries, and logs how long that takes.
func TestMigrateMany(t *testing.T) {
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		dialect := create(t).dialect
		file := map[sqlstore.Dialect]string{sqlstore.SQLite: "6.sqlite.gz", sqlstore.PostgreSQL: "5.postgresql.sql.gz"}[dialect]
		d := restore(t, dialect, filepath.Join("testdata/released", file))
		columns := "archived, first, change, added, changed, tomb_when, tomb_time, tomb_place, absence, at, rank_time, rank_place, digest, " +
			"format, title, link, updated, published, base, weak_id, data, size"
		own := columns
		numbers, text := "generate_series(1, $1) AS n", "repeat(md5(n::text), 32)"
		if dialect == sqlstore.SQLite {
			own = strings.NewReplacer(" changed,", " changed_own,", " at,", " at_own,").Replace(columns)
			numbers, text = "(WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < $1) SELECT n FROM c)", "hex(randomblob(512))"
		}
		values := strings.NewReplacer(" data,", " "+text+",", " published,", " '2003-01-01T00:00:00.000000000Z',").Replace(own)
		_, err := d.connect(t).Exec("INSERT INTO entries (feed, id, state, "+own+") SELECT feed, 'urn:many:' || n, state, "+values+
			" FROM (SELECT * FROM entries WHERE format <> '' LIMIT 1) AS one CROSS JOIN "+numbers, *migrated)
		require.NoError(t, err)
		begun := time.Now()
		s := d.open(t)
		t.Logf("%d entries in %v", *migrated, time.Since(begun).Round(time.Millisecond))
		n := 0
		for r, err := range s.Entries(t.Context(), mirror.Query{Limit: 100}) {
			require.NoError(t, err)
			require.NotEmpty(t, r.ID)
			n++
		}
		require.Equal(t, 100, n)
	})
}
