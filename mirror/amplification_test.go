package mirror_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// What a mirror stores of a document, and what it publishes from that, is
// proportional to the document's size.
func TestAmplification(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := feedtest.DrawBurden(t)
		text, store := b.String(), mirror.NewMemory()
		m := newMirror(store, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.String() != b.URL() {
				http.NotFound(w, r)
				return
			}
			_, _ = io.WriteString(w, text)
		}))
		m.Client.NoGuess = true
		report, err := m.Update(t.Context(), b.URL())
		require.NoError(t, err)
		if doc, err := feedhistory.Parse(strings.NewReader(text), b.URL()); doc == nil {
			require.Error(t, err)
			require.Error(t, report.Failure)
			return
		}
		feed, err := store.Feed(t.Context(), b.URL())
		require.NoError(t, err)
		n, stored := 0, len(feed.Head)
		again := &feedhistory.Document{Format: feedhistory.FormatAtom}
		for _, r := range feedtest.All(t, store.Entries(t.Context(), mirror.Query{Feed: b.URL()})) {
			e, err := r.Entry()
			require.NoError(t, err)
			again.Entries = append(again.Entries, e)
			for _, r := range append(feedtest.All(t, store.Versions(t.Context(), b.URL(), r.ID)), r) {
				n++
				stored += len(r.ID) + len(r.Content.Data) + len(r.Content.Title) + len(r.Content.Link) + len(r.Content.Base)
			}
		}
		require.LessOrEqual(t, stored, 20*len(text)+(4<<10)*n+(600<<10), "stored of %d bytes and %d entries", len(text), n)
		for _, write := range []func(io.Writer, *feedhistory.Document) error{compose.WriteAtom, compose.WriteRSS} {
			var out bytes.Buffer
			_ = write(&out, again)
			require.LessOrEqual(t, out.Len(), 40*len(text)+(4<<10)*n+(600<<10), "published of %d bytes and %d entries", len(text), n)
		}
	})
}
