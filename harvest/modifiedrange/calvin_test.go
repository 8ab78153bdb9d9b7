package modifiedrange

import (
	"flag"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

var update = flag.Bool("update", false, "write the transcripts again")

// TestCalvin is the proposal's own example, request by request: a server
// returns at most three items at a time, Calvin harvests with it, and Hobbes
// modifies "Go-carts" meanwhile, which comes with the next harvest. Only the ends of the ranges
// differ: each includes the oldest item known, so a server that cuts too much is noticed.
//
// Duties: modified-range#8.
func TestCalvin(t *testing.T) {
	s := &store{now: at(t, "2004-10-31T19:29:00Z")}
	for title, when := range map[string]string{
		"Planes":      "2004-10-30T08:00:00Z",
		"Trains":      "2004-10-22T17:30:00Z",
		"Automobiles": "2004-10-15T23:45:00Z",
		"Triremes":    "2004-10-14T10:00:00Z",
		"Canoes":      "2004-10-12T09:15:00Z",
		"Motorboats":  "2004-10-10T13:00:00Z",
		"Bicycles":    "2004-10-01T12:00:00Z",
		"Tricycles":   "2004-09-01T16:15:00Z", // the range includes its start
		"Go-carts":    "2004-08-20T11:00:00Z",
	} {
		s.put("/collections/categories/"+title, title, at(t, when))
	}
	requests := 0
	w := &wire{handler: s.handler(3)}
	w.before = func(*http.Request) {
		switch requests++; requests {
		case 2:
			s.put("/collections/categories/Go-carts", "Go-carts, faster", at(t, "2004-10-31T19:29:15Z"))
			s.now = at(t, "2004-10-31T19:29:30Z")
		case 3:
			s.now = at(t, "2004-10-31T19:30:00Z")
		}
	}
	sync := w.client().Harvest(t.Context(), Mark{Since: at(t, "2004-09-01T16:15:00Z")})
	h, err := feedhistory.Merge(sync.Documents())
	require.NoError(t, err)
	assert.Len(t, h.Entries, 8)
	assert.Empty(t, h.Gaps)
	assert.Equal(t, 4, sync.Requests())
	next, whole := sync.Mark()
	require.True(t, whole)
	assert.Equal(t, at(t, "2004-10-31T19:28:00Z"), next.Since)

	s.now = s.now.Add(24 * time.Hour)
	sync = w.client().Harvest(t.Context(), next)
	h, err = feedhistory.Merge(sync.Documents())
	require.NoError(t, err)
	require.Len(t, h.Entries, 1)
	assert.Equal(t, "Go-carts, faster", h.Entries[0].Title().Body)
	compare(t, "testdata/calvin.txt", w.log.String())
}

// compare compares a transcript with a file.
func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want := feedtest.ReadFile(t, file)
	assert.Equal(t, string(want), got)
}
