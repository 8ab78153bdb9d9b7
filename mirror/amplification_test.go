package mirror

import (
	"bytes"
	"io"
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
		require.LessOrEqual(t, stored, 20*len(text)+(4<<10)*n+(600<<10), "stored of %d bytes and %d entries", len(text), n)
		for _, write := range []func(io.Writer, *feedhistory.Document) error{compose.WriteAtom, compose.WriteRSS} {
			var out bytes.Buffer
			_ = write(&out, again)
			require.LessOrEqual(t, out.Len(), 40*len(text)+(4<<10)*n+(600<<10), "published of %d bytes and %d entries", len(text), n)
		}
	})
}
