package mirror_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A gap of one Ledger can be added to another.
func TestAddedGaps(t *testing.T) {
	gaps := []*feedhistory.Gap{
		{URL: "urn:1", From: "urn:1", Reason: feedhistory.ReasonLimit, Err: errors.New("two entries"), Found: time.Unix(1, 0)},
		{URL: "urn:2", From: "urn:3", Reason: feedhistory.ReasonStatus, Err: errors.New("404"), Found: time.Unix(2, 0)},
	}
	var l, other mirror.Ledger
	for _, g := range gaps {
		l.Add(g)
	}
	for _, g := range l.Gaps() {
		other.Add(g)
	}
	require.Equal(t, gaps, other.Gaps())
	l.Add(nil)
	require.Len(t, l.Debts(), 2)
}

// Each debt has a receipt. A document written off is no longer a debt, but still listed.
func TestWithdrawn(t *testing.T) {
	site := feedtest.Serve(t, string(feedtest.ReadFile(t, "testdata/leftovers-of-an-old-chain.txtar")))
	synctest.Test(t, func(t *testing.T) {
		store := mirror.NewMemory()
		m := &mirror.Mirror{Store: store, Client: &feedhistory.Client{NoGuess: true, AllowPrivate: true, Transport: feedtest.Direct{Handler: site}, Tries: 1}}
		poll := func() mirror.Ledger {
			_, err := m.Update(t.Context(), site.URL+"/feed.atom")
			require.NoError(t, err)
			time.Sleep(time.Hour)
			f, err := store.Feed(t.Context(), site.URL+"/feed.atom")
			require.NoError(t, err)
			return f.Ledger
		}
		l := poll()
		require.Len(t, l.Debts(), 1)
		require.Equal(t, "this document can be read, or the full chain no longer refers to it", l.Debts()[0].Receipt)
		require.Empty(t, l.Withdrawn())
		site.Next()
		require.Len(t, poll().Debts(), 1)
		site.Next()
		at := time.Now()
		l = poll()
		require.Empty(t, l.Debts())
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
