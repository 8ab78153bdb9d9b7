package mirror_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// Each debt has a receipt. A document written off is no longer a debt, but still listed.
func TestWithdrawn(t *testing.T) {
	site := feedtest.Serve(t, string(feedtest.ReadFile(t, "testdata/leftovers-of-an-old-chain.txtar")))
	synctest.Test(t, func(t *testing.T) {
		store := mirror.NewMemory()
		m := &mirror.Mirror{Store: store, Client: &feedhistory.Client{NoGuess: true, Transport: feedtest.Direct{Handler: site}, Tries: 1}}
		poll := func() mirror.Ledger {
			_, err := m.Update(t.Context(), site.URL+"/feed.atom")
			require.NoError(t, err)
			time.Sleep(time.Hour)
			f, err := store.Feed(t.Context(), site.URL+"/feed.atom")
			require.NoError(t, err)
			return f.Ledger
		}
		l := poll()
		require.Len(t, l.Missing(), 1)
		require.Equal(t, "the document has been read to its end, or the whole chain has, and neither names nor needs it", l.Missing()[0].Receipt())
		require.Empty(t, l.Withdrawn())
		site.Next()
		require.Len(t, poll().Missing(), 1)
		site.Next()
		at := time.Now()
		l = poll()
		require.Empty(t, l.Missing())
		require.Len(t, l.Withdrawn(), 1)
		require.Equal(t, site.URL+"/1.atom", l.Withdrawn()[0].URL)
		require.Equal(t, at, l.Withdrawn()[0].Found)
		text, err := l.MarshalJSON()
		require.NoError(t, err)
		var again mirror.Ledger
		require.NoError(t, again.UnmarshalJSON(text))
		require.Equal(t, site.URL+"/1.atom", again.Withdrawn()[0].URL)
	})
}
