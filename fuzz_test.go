package feedhistory

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// seed adds all bundled documents to a fuzz target.
func seed(f *testing.F) {
	n := 0
	for _, dir := range []string{"rfc5005", "parse", "decode"} {
		files, err := filepath.Glob("testdata/" + dir + "/*")
		require.NoError(f, err)
		for _, file := range files {
			text := feedtest.ReadFile(f, file)
			f.Add(string(text))
			n++
		}
	}
	require.NotZero(f, n, "no seeds")
}

// Reading any document ends without a panic; every entry can be read outside the document;
// and what is written of it is read again as the same.
func FuzzParse(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text string) {
		const base = "http://example.org/feed"
		doc, err := Parse(strings.NewReader(text), base)
		if err != nil {
			parse := feedtest.ErrorAs[*ParseError](t, err)
			require.NotEmpty(t, parse.Error())
		}
		Parser{}.peek(text[:len(text)/2], base)
		checkMended(t, text, doc, err)
		if doc == nil {
			return
		}
		for _, e := range doc.Entries {
			checkEntry(t, e)
		}
		if err == nil {
			checkWritten(t, doc)
		}
	})
}

// checkMended compares a document with the result of reading it without mending: if it is
// not well-formed, mending never reads less; otherwise it reads the same.
func checkMended(t *testing.T, text string, doc *Document, err error) {
	if doc != nil && slices.Contains(codes(doc.Notes), "encoded-twice") {
		return // which a strict reader does not undo
	}
	strict, strictErr := Parser{Strict: true}.Parse(strings.NewReader(text), "http://example.org/feed")
	if strictErr == nil {
		require.NoError(t, err)
		require.Equal(t, strict, doc)
	} else if strict != nil {
		require.NotNil(t, doc)
		require.GreaterOrEqual(t, len(doc.Entries), len(strict.Entries))
	}
}

// checkEntry checks that an entry keeps the promises of its methods.
func checkEntry(t *testing.T, e *Entry) {
	require.NotEmpty(t, e.ID)
	if _, err := e.Decode(); err != nil {
		parse := feedtest.ErrorAs[*ParseError](t, err)
		require.Equal(t, ReasonLimit, parse.Reason, "%v", err)
	}
	text := e.XML()
	if text == nil {
		require.Equal(t, JSONFeed, e.Source.Format)
		return
	}
	requireWellFormed(t, text)
}

// checkWritten writes a document in its own format, and reads it again.
func checkWritten(t *testing.T, doc *Document) {
	write := map[Format]func(io.Writer, *Document) error{Atom: WriteAtom, RSS: WriteRSS, JSONFeed: WriteAtom}[doc.Format]
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
	return trim(strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">", "&#13;", "\r").Replace(b.String()))
}
