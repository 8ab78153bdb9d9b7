package feedhistory

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEntryTimes(t *testing.T) {
	published, updated := time.Date(2003, 12, 13, 0, 0, 0, 0, time.UTC), time.Date(2020, 2, 3, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		e             Entry
		time, changed time.Time
	}{
		{Entry{Published: published, Updated: updated}, published, updated},
		{Entry{Published: published}, published, published},
		{Entry{Updated: updated}, updated, updated},
		{Entry{}, time.Time{}, time.Time{}},
	} {
		require.Equal(t, tc.time, tc.e.Time())
		require.Equal(t, tc.changed, tc.e.Changed())
	}
}

// Archives by period are cut by the time of change: an edit goes into a new archive.
func TestPeriodsGoByChange(t *testing.T) {
	edited := &Entry{ID: "urn:1", Published: time.Date(2003, 1, 1, 0, 0, 0, 0, time.UTC), Updated: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
	newest := &Entry{ID: "urn:2", Published: time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC)}
	closed, _ := Split{Period: Year}.Cut([]*Entry{edited, newest}, 1)
	require.Len(t, closed, 1)
	require.Equal(t, "2020", closed[0].Name)
}

func TestDocumentDigest(t *testing.T) {
	log := dailyLog(t, 3)
	want := (&Document{Entries: log}).Digest()
	require.Equal(t, want, (&Document{Entries: []*Entry{log[2], log[0], log[1], log[0]}, Title: "T"}).Digest(), "neither order nor head counts")
	require.NotEqual(t, want, (&Document{Entries: log[1:]}).Digest())
}
