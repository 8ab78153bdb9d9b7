package sqlstore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// repaired repairs a store into a new one, which is sound.
func repaired(t *testing.T, s *sqlstore.Store) (to *sqlstore.Store, feeds []string) {
	t.Helper()
	to = newSQLite(t).open(t)
	feeds, err := s.Repair(t.Context(), to)
	require.NoError(t, err)
	found := check(t, to)
	require.Empty(t, found.Damages)
	require.Zero(t, found.Unsealed)
	return to, feeds
}

// What is sound is in the new store, nothing is claimed of a feed with losses, and whatever
// the feed still has is fetched again.
func TestRepair(t *testing.T) {
	for name, test := range damages {
		t.Run(name, func(t *testing.T) {
			d := newSQLite(t)
			s := d.open(t)
			fill(t, s)
			want := held(t, s, galleryURL)
			_, err := d.connect(t).Exec(d.sql(test.statement))
			require.NoError(t, err)
			before := check(t, s)
			require.NotEmpty(t, before.Damages)
			to, feeds := repaired(t, s)
			if name != "names" && name != "index" { // these are made of the rest
				require.Equal(t, []string{galleryURL}, feeds)
				f, err := to.Feed(t.Context(), galleryURL)
				require.NoError(t, err)
				require.Equal(t, feedhistory.VerdictPartial, f.Verdict)
				got := held(t, to, galleryURL)
				for id, title := range want {
					if _, ok := got[id]; ok {
						require.Equal(t, title, got[id])
					} else {
						require.Contains(t, fmt.Sprint(before.Damages), id)
					}
				}
				r, err := gallery(to, 3, "a", "b").Update(t.Context(), galleryURL)
				require.NoError(t, err)
				require.Equal(t, feedhistory.VerdictWhole, r.Feed.Verdict, "%v", r.Feed.Ledger.Gaps())
			} else {
				require.Empty(t, feeds)
			}
			require.Empty(t, check(t, to).Damages)
			require.Equal(t, want, held(t, to, galleryURL))
			require.Len(t, feedtest.All(t, to.Entries(t.Context(), mirror.Query{Search: "words of b"})), 1)
		})
	}
}

// An entry gone from the feed is left out, and the others stay.
func TestRepairGone(t *testing.T) {
	d := newSQLite(t)
	s := d.open(t)
	fill(t, s)
	_, err := d.connect(t).Exec(d.sql("UPDATE fh.entries SET title = 'Tilte' WHERE id IN ('urn:a', 'urn:b')"))
	require.NoError(t, err)
	to, feeds := repaired(t, s)
	require.Equal(t, []string{galleryURL}, feeds)
	_, err = gallery(to, 3, "b").Update(t.Context(), galleryURL)
	require.NoError(t, err)
	require.Empty(t, check(t, to).Damages)
	got := held(t, to, galleryURL)
	require.NotContains(t, got, "urn:a")
	require.Contains(t, got, "urn:b")
}

// A database of an earlier version, without checksums, loses nothing, and has them then.
func TestRepairEarlier(t *testing.T) {
	s := restore(t, sqlstore.SQLite, "testdata/released/1.sqlite.gz").open(t)
	want := everything(t, s)
	require.NotZero(t, check(t, s).Unsealed)
	to, feeds := repaired(t, s)
	require.Empty(t, feeds)
	require.Equal(t, want, everything(t, to))
}

// Rows on damaged pages are left out, and those beyond are not.
func TestRepairPages(t *testing.T) {
	file := filepath.Join(t.TempDir(), "feeds.db")
	d := inFile(file)
	db := d.connect(t)
	s, err := sqlstore.Open(t.Context(), db, d.dialect)
	require.NoError(t, err)
	many := make([]string, 400)
	for i := range many {
		many[i] = fmt.Sprint("many-", i)
	}
	_, err = gallery(s, 3, many...).Update(t.Context(), galleryURL)
	require.NoError(t, err)
	var page, size int64
	require.NoError(t, db.QueryRow("PRAGMA page_size").Scan(&size))
	require.NoError(t, db.QueryRow("SELECT pageno FROM dbstat WHERE name = 'feedhistory_entries' AND pagetype = 'leaf' ORDER BY path LIMIT 1 OFFSET 1").Scan(&page))
	want := held(t, s, galleryURL)
	_, err = db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	data := feedtest.ReadFile(t, file)
	for i := range size {
		data[(page-1)*size+i] = 0xa5
	}
	require.NoError(t, os.WriteFile(file, data, 0o600))

	s, err = sqlstore.Open(t.Context(), d.connect(t), d.dialect)
	require.NoError(t, err)
	to, feeds := repaired(t, s)
	require.Equal(t, []string{galleryURL}, feeds)
	left := held(t, to, galleryURL)
	require.Greater(t, len(left), len(want)/2)
	require.Less(t, len(left), len(want))
	for id, title := range left {
		require.Equal(t, want[id], title)
	}
	_, err = gallery(to, 3, many...).Update(t.Context(), galleryURL)
	require.NoError(t, err)
	require.Equal(t, want, held(t, to, galleryURL))
}

// A feed whose state cannot be read may have been private, and its entries stay.
func TestRepairPrivate(t *testing.T) {
	d := newSQLite(t)
	s := d.open(t)
	fill(t, s)
	want := held(t, s, galleryURL)
	_, err := d.connect(t).Exec(d.sql("UPDATE fh.feeds SET state = '{', url = 'http://elsewhere.example/'"))
	require.NoError(t, err)
	to, feeds := repaired(t, s)
	require.Len(t, feeds, 1)
	f, err := to.Feed(t.Context(), feeds[0])
	require.NoError(t, err)
	require.True(t, f.Private)
	require.Len(t, held(t, to, feeds[0]), len(want))
}

// A repair of what is not two files says so.
func TestRepairWrong(t *testing.T) {
	s := newSQLite(t).open(t)
	_, err := s.Repair(t.Context(), nil)
	require.ErrorContains(t, err, "sqlstore: Repair: ")
	fill(t, s)
	_, err = s.Repair(t.Context(), s)
	require.Error(t, err)
}
