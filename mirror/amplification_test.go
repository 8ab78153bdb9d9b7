package mirror

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// What a mirror stores of a document, and what it publishes from that, is
// proportional to the document's size.
func TestAmplification(t *testing.T) {
	var kept, published float64 // the worst of documents of at least 10 kB
	defer func() {
		t.Logf("at most %.1f times as many bytes are stored, and %.1f times published", kept, published)
	}()
	rapid.Check(t, func(t *rapid.T) {
		b := feedtest.DrawBurden(t)
		text := b.String()
		doc, err := feedhistory.Parse(strings.NewReader(text), b.URL())
		if doc == nil {
			require.Error(t, err)
			return
		}
		stored := len(headOf(doc))
		again := &feedhistory.Document{Format: feedhistory.Atom}
		for _, e := range doc.Entries {
			c := contentOf(e)
			stored += len(e.ID) + len(c.Data) + len(c.Title) + len(c.Link) + len(c.Base)
			restored, err := c.entry(e.ID)
			require.NoError(t, err)
			again.Entries = append(again.Entries, restored)
		}
		n := len(doc.Entries)
		if len(text) >= 10_000 {
			kept = max(kept, float64(stored)/float64(len(text)))
		}
		require.LessOrEqual(t, stored, 20*len(text)+(4<<10)*n+(600<<10), "stored of %d bytes and %d entries", len(text), n)
		for _, write := range []func(*bytes.Buffer) error{
			func(w *bytes.Buffer) error { return compose.WriteAtom(w, again) },
			func(w *bytes.Buffer) error { return compose.WriteRSS(w, again) },
		} {
			var out bytes.Buffer
			_ = write(&out)
			if len(text) >= 10_000 {
				published = max(published, float64(out.Len())/float64(len(text)))
			}
			require.LessOrEqual(t, out.Len(), 40*len(text)+(4<<10)*n+(600<<10), "published of %d bytes and %d entries", len(text), n)
		}
	})
}
