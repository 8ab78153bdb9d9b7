package feedhistory_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// seed adds all bundled documents to a fuzz target.
func seed(f *testing.F) {
	feedtest.Seed(f, "testdata/rfc5005/*", "testdata/parse/*", "testdata/decode/*")
}

// Reading any document ends without a panic, and every entry can be read outside the document.
func FuzzParse(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text string) {
		const base = "http://example.org/feed"
		doc, err := feedhistory.Parse(strings.NewReader(text), base)
		if err != nil {
			parse := feedtest.ErrorAs[*feedhistory.ParseError](t, err)
			require.NotEmpty(t, parse.Error())
		}
		feedhistory.Parser{}.Peek(text[:len(text)/2], base)
		checkMended(t, text, doc, err)
		if doc == nil {
			return
		}
		for _, e := range doc.Entries {
			checkEntry(t, e)
		}
	})
}

// checkMended compares a document with the result of reading it without mending: if it is
// not well-formed, mending never reads less; otherwise it reads the same.
func checkMended(t *testing.T, text string, doc *feedhistory.Document, err error) {
	if doc != nil && slices.Contains(codes(doc.Notes), "encoded-twice") {
		return // which a strict reader does not undo
	}
	strict, strictErr := feedhistory.Parser{Strict: true}.Parse(strings.NewReader(text), "http://example.org/feed")
	if strictErr == nil {
		require.NoError(t, err)
		require.Equal(t, strict, doc)
	} else if strict != nil {
		require.NotNil(t, doc)
		require.GreaterOrEqual(t, len(doc.Entries), len(strict.Entries))
	}
}

// checkEntry checks that an entry keeps the promises of its methods.
func checkEntry(t *testing.T, e *feedhistory.Entry) {
	require.NotEmpty(t, e.ID)
	text := e.XML()
	if text == nil {
		require.Equal(t, feedhistory.FormatJSONFeed, e.Head.Format)
		return
	}
	feedtest.WellFormed(t, text, xmlscan.WellFormed)
}
