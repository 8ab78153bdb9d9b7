package compose_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
	"github.com/feedhistory/feedhistory/togofeed"
)

// seed adds all bundled documents to a fuzz target.
func seed(f *testing.F) {
	feedtest.Seed(f, "../testdata/rfc5005/*", "../testdata/parse/*", "../testdata/decode/*")
}

// A document that is written is read again as the same, and its entries have gofeed's form.
func FuzzWritten(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := Parse(strings.NewReader(text), "http://example.org/feed")
		if doc == nil {
			return
		}
		for _, e := range doc.Entries {
			if _, err := togofeed.Item(e); err != nil {
				parse := feedtest.ErrorAs[*ParseError](t, err)
				require.Equal(t, ReasonLimit, parse.Reason, "%v", err)
			}
		}
		if err == nil {
			checkWritten(t, doc)
		}
	})
}

// checkWritten writes a document in its own format, and reads it again.
func checkWritten(t *testing.T, doc *Document) {
	write := map[Format]func(io.Writer, *Document) error{FormatAtom: compose.WriteAtom, FormatRSS: compose.WriteRSS, FormatJSONFeed: compose.WriteAtom}[doc.Format]
	var b bytes.Buffer
	if err := write(&b, doc); err != nil {
		parse := feedtest.ErrorAs[*ParseError](t, err)
		require.Equal(t, ReasonLimit, parse.Reason, "%v", err)
	}
	again, err := Parse(bytes.NewReader(b.Bytes()), doc.URL)
	if parse := (*ParseError)(nil); errors.As(err, &parse) && parse.Reason == ReasonLimit {
		return // what is added to make entries standalone went over it
	}
	require.NoError(t, err, "%q", b.String())
	require.Equal(t, doc.Complete, again.Complete)
	require.Equal(t, doc.Archive, again.Archive)
	require.Len(t, again.Entries, len(doc.Entries), "%q", b.String())
	for i, e := range doc.Entries {
		if !e.WeakID && e.ID == xmlText(e.ID) {
			require.Equal(t, e.ID, again.Entries[i].ID, "%q", b.String())
		}
	}
}

// xmlText returns the characters of a string from JSON that XML can contain.
func xmlText(s string) string {
	var b strings.Builder
	xmlscan.WriteText(&b, s)
	return strings.TrimSpace(strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">", "&#13;", "\r").Replace(b.String()))
}

// parse reads a document.
func parse(text, base string) (*Document, error) { return Parse(strings.NewReader(text), base) }

func wellFormed(t require.TestingT, text []byte) { feedtest.WellFormed(t, text, xmlscan.WellFormed) }
