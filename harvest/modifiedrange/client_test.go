package modifiedrange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

const editedFeed = `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:app="http://www.w3.org/2007/app">
<entry><id>urn:1</id><updated>2001-01-01T00:00:00Z</updated><app:edited>2026-02-02T00:00:00.5Z</app:edited></entry>
<entry><id>urn:2</id><updated>2020-01-01T00:00:00Z</updated>%s</entry></feed>`

// answers serves documents one after another.
func answers(status int, bodies ...string) (http.Handler, *feedtest.List[string]) {
	var asked feedtest.List[string]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(r.Header.Get(fieldModifiedRange))
		body := bodies[min(n, len(bodies))-1]
		w.Header().Set("Date", "Sun, 01 Mar 2026 12:00:00 GMT")
		if n < len(bodies) {
			w.WriteHeader(status)
		}
		_, _ = io.WriteString(w, body)
	}), &asked
}

// app:edited takes precedence over atom:updated (modified-range#6).
func TestStampEdited(t *testing.T) {
	first := fmt.Sprintf(editedFeed, `<edited xmlns="http://purl.org/atom/app#"> 2026-02-01T00:00:00Z </edited>`)
	handler, asked := answers(299, first, `<feed xmlns="http://www.w3.org/2005/Atom"/>`)
	c := (&wire{handler: handler}).client()
	c.Dialect = ModifiedRange
	h, err := feedhistory.Merge(c.Harvest(t.Context(), Mark{}).Documents())
	require.NoError(t, err)
	assert.Empty(t, h.Gaps)
	assert.Len(t, h.Entries, 2)
	// The smallest unit of the stamps is a millisecond (modified-range#5).
	assert.Equal(t, []string{"/", "/2026-02-01T00:00:00.001Z"}, asked.All())
}

// The stamp is of the same kind throughout a harvest.
func TestStampChanges(t *testing.T) {
	first := fmt.Sprintf(editedFeed, `<app:edited>2026-02-01T00:00:00Z</app:edited>`)
	handler, _ := answers(206, first, strings.ReplaceAll(fmt.Sprintf(editedFeed, ""), "urn:", "urn:x"))
	c := (&wire{handler: handler}).client()
	sync := c.Harvest(t.Context(), Mark{})
	h, err := feedhistory.Merge(sync.Documents())
	require.NoError(t, err)
	require.Len(t, h.Gaps, 1)
	stamp := feedtest.ErrorAs[*StampError](t, h.Gaps[0])
	assert.Equal(t, "urn:x2", stamp.ID)
	assert.Contains(t, stamp.Error(), "modified-range#6")
	_, whole := sync.Mark()
	assert.False(t, whole)
}

// A part without items says nothing about the rest.
func TestEmptyPart(t *testing.T) {
	handler, _ := answers(206, `<feed xmlns="http://www.w3.org/2005/Atom"/>`, "")
	h, err := feedhistory.Merge((&wire{handler: handler}).client().Harvest(t.Context(), Mark{}).Documents())
	require.NoError(t, err)
	require.Len(t, h.Gaps, 1)
	loss := feedtest.ErrorAs[*PossibleLossError](t, h.Gaps[0])
	assert.Contains(t, loss.Error(), "modified-range#4")
}

// Duties: modified-range#12.
func TestLimits(t *testing.T) {
	for limit, limits := range map[string]Budget{
		"requests": {Requests: 2}, "items": {Items: 3}, "bytes": {Bytes: 500},
	} {
		c := (&wire{handler: groups(1, 1, 1, 1, 1, 1).handler(2)}).client()
		c.Budget = limits
		h, err := feedhistory.Merge(c.Harvest(t.Context(), Mark{}).Documents())
		require.NoError(t, err)
		require.Len(t, h.Gaps, 1)
		assert.Equal(t, feedhistory.ReasonBudget, h.Gaps[0].Reason)
		exceeded := feedtest.ErrorAs[*BudgetError](t, h.Gaps[0])
		assert.Equal(t, limit, exceeded.Limit)
	}
}

// If the first request fails, that is an error; if a later one fails, a gap.
// The state stays.
func TestLostResponses(t *testing.T) {
	w := &wire{handler: groups(1, 1, 1, 1, 1).handler(2)}
	requests, lost := 0, 1
	w.lose = func() bool { requests++; return requests == lost }
	from := Mark{Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	sync := w.client().Harvest(t.Context(), from)
	h, err := feedhistory.Merge(sync.Documents())
	require.ErrorIs(t, err, errLost)
	assert.Nil(t, h)

	requests, lost = 0, 2
	h, err = feedhistory.Merge(sync.Documents()) // starts again
	require.NoError(t, err)
	require.Len(t, h.Gaps, 1)
	require.ErrorIs(t, h.Gaps[0], errLost)
	assert.Equal(t, []string{"urn:0:0", "urn:1:0"}, ids(h))
	next, whole := sync.Mark()
	assert.False(t, whole)
	assert.Equal(t, from.Since, next.Since)
	assert.NotZero(t, next.Rest)

	continued := w.client().Harvest(t.Context(), next)
	h, err = feedhistory.Merge(continued.Documents())
	require.NoError(t, err)
	assert.Equal(t, []string{"urn:0:0", "urn:1:0", "urn:2:0", "urn:3:0", "urn:4:0"}, ids(h)) // the first two within the overlaps
	after, whole := continued.Mark()
	assert.True(t, whole)
	assert.Zero(t, after.Rest)
	assert.True(t, after.Since.After(from.Since))

	lost = 0
	h, err = feedhistory.Merge(sync.Documents())
	require.NoError(t, err)
	assert.Len(t, h.Entries, 5)
	next, whole = sync.Mark()
	assert.True(t, whole)
	assert.Equal(t, time.Date(2026, 3, 1, 11, 59, 0, 0, time.UTC), next.Since)
}

// The readable part of a document that breaks off is kept.
func TestDamagedLater(t *testing.T) {
	handler, _ := answers(206, `<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:1</id><updated>2026-01-02T00:00:00Z</updated></entry></feed>`,
		`<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:2</id><updated>2026-01-01T00:00:00Z</updated></entry>`)
	h, err := feedhistory.Merge((&wire{handler: handler}).client().Harvest(t.Context(), Mark{}).Documents())
	require.NoError(t, err)
	require.Len(t, h.Gaps, 1)
	assert.Equal(t, feedhistory.ReasonTruncated, h.Gaps[0].Reason)
	assert.Equal(t, []string{"urn:1", "urn:2"}, ids(h))
}

// The caller may stop early, and the context ends the sequence.
func TestLeaving(t *testing.T) {
	w := &wire{handler: groups(1, 1, 1, 1, 1).handler(1)}
	sync := w.client().Harvest(t.Context(), Mark{})
	for range sync.Documents() {
		break
	}
	assert.Equal(t, 1, sync.Requests())
	_, whole := sync.Mark()
	assert.False(t, whole)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	documents := 0
	for doc, err := range w.client().Harvest(ctx, Mark{}).Documents() {
		if last = err; doc != nil {
			documents++
		}
		cancel()
	}
	assert.Equal(t, 1, documents)
	assert.True(t, errors.Is(last, context.Canceled), "%v", last)
}
