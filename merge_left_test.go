package feedhistory

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A reader that leaves a walk before its end does not have everything, wherever it leaves; one
// that has reached the end lacks nothing for that reason.
func TestMergeOfAWalkThatWasLeft(t *testing.T) {
	for _, file := range walks(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text := string(feedtest.ReadFile(t, file))
			all, items := leave(t, text, 0)
			require.False(t, all != nil && isUnread(all))
			for n := 1; n < min(items, 6); n++ {
				h, _ := leave(t, text, n)
				require.True(t, h == nil || h.Verdict() == Partial, "left after %d of %d: %v", n, items, h)
			}
		})
	}
}

// A plain feed has one document, and a chain ends where nothing older is linked to: a reader that
// leaves there has left nothing.
func TestMergeOfAWalkThatWasLeftAtItsEnd(t *testing.T) {
	const plain = "-- /feed.atom --\n<feed xmlns=\"http://www.w3.org/2005/Atom\"><entry><id>urn:1</id></entry></feed>\n"
	h, _ := leave(t, plain, 1)
	require.Equal(t, Window, h.Verdict())
	const archived = "-- /feed.atom --\n<feed xmlns=\"http://www.w3.org/2005/Atom\"><link rel=\"prev-archive\" href=\"/1.atom\"/></feed>\n" +
		"-- /1.atom --\n<feed xmlns=\"http://www.w3.org/2005/Atom\"><link rel=\"next-archive\" href=\"/feed.atom\"/></feed>\n"
	h, _ = leave(t, archived, 2)
	require.Equal(t, Whole, h.Verdict())
	h, _ = leave(t, archived, 1)
	require.True(t, isUnread(h))
}

// leave leaves a walk after n items; 0 means at its end. It also returns how many there were.
func leave(t *testing.T, site string, n int) (h *History, items int) {
	v := newVisit(t, feedtest.Serve(t, site), optionsOf(feedtest.Parse(site)))
	v.client.Policy.PerHost = 1
	defer v.client.CloseIdle()
	var m Merger
	for doc, err := range v.client.Walk(t.Context(), v.url, &v.options) {
		m.Add(doc, err)
		if items++; items == n {
			break
		}
	}
	h, _ = m.History()
	return h, items
}

func isUnread(h *History) bool {
	for _, g := range h.Gaps {
		if errors.Is(g, ErrUnread) {
			return true
		}
	}
	return false
}
