package sqlstore_test

import (
	"context"
	"database/sql"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/examples/incremental"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// The example keeps a feed in SQLite, to which Processed speaks while the walk
// goes on: it has all entries in the end, wherever earlier walks were cut short,
// and asks for no archive twice.
func TestIncrementalExample(t *testing.T) {
	const archives = `
-- /3.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><link rel="prev-archive" href="/2.atom"/><entry><id>urn:3</id></entry></feed>
-- /2.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><link rel="prev-archive" href="/1.atom"/><entry><id>urn:2</id></entry></feed>
-- /1.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:1</id></entry></feed>
-- /feed.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><link rel="prev-archive" href="/3.atom"/><entry><id>urn:4</id></entry></feed>
`
	for cut := range 5 { // documents that are answered before the walk is cut short; 0: it is not
		site := feedtest.Serve(t, archives)
		db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "feeds.db"))
		require.NoError(t, err)
		defer db.Close()
		_, err = db.Exec(incremental.Schema)
		require.NoError(t, err)

		ctx, cancel := context.WithCancel(t.Context())
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if cut > 0 && len(site.Requests()) == cut {
				cancel()
			}
			site.ServeHTTP(w, r)
		})
		client := &feedhistory.Client{
			HTTP: &http.Client{Transport: feedtest.Direct{Handler: h}}, Policy: feedhistory.Policy{PerHost: 1},
			Retry: feedhistory.Retry{Tries: 1},
		}
		if cut > 0 && cut < 4 {
			_, err = incremental.Update(ctx, db, client, site.URL+"/feed.atom")
			require.ErrorIs(t, err, context.Canceled)
		}
		cancel()
		missing, err := incremental.Update(t.Context(), db, client, site.URL+"/feed.atom")
		require.NoError(t, err)
		require.Zero(t, missing)
		var entries int
		require.NoError(t, db.QueryRow("SELECT count(*) FROM entries").Scan(&entries))
		require.Equal(t, 4, entries, "cut short after %d", cut)

		before := len(site.Requests())
		missing, err = incremental.Update(t.Context(), db, client, site.URL+"/feed.atom")
		require.NoError(t, err)
		require.Zero(t, missing)
		require.Len(t, site.Requests(), before+1, "nothing but the subscription document")
	}
}
