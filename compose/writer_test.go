package compose_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
)

// documentsToContinue have in their heads and entries what a later part of a document
// could lose or contradict.
var documentsToContinue = map[string]string{
	"a language": `<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de"><id>urn:f</id><title>T</title>%s</feed>`,
	"namespaces": `<a:feed xmlns:a="http://www.w3.org/2005/Atom" xmlns:x="urn:x"><a:id>urn:f</a:id><x:y z="x:q">1</x:y>` +
		`<late:y xmlns:late="urn:late" late:z="1"/>%s</a:feed>`,
	"a base":         `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://example.org/a/"><id>urn:f</id><link href="b"/><logo>l.png</logo>%s</feed>`,
	"history":        `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><id>urn:f</id><fh:complete/><updated>2003-12-13T18:30:02Z</updated>%s</feed>`,
	"RSS":            `<rss version="2.0" xmlns:c="http://purl.org/rss/1.0/modules/content/"><channel><title>T</title><language>fr</language><c:x>1</c:x>%s</channel></rss>`,
	"RSS, xml:lang":  `<rss version="2.0" xml:lang="fr" xml:base="http://example.org/"><channel><title>T</title><link>a</link>%s</channel></rss>`,
	"RSS 1.0":        `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><channel><title>T</title></channel>%s</rdf:RDF>`,
	"nothing at all": `<rss><channel>%s</channel></rss>`,
}

// entriesToContinue are entries for the documents above.
func entriesToContinue(document string, n int) string {
	var b strings.Builder
	for i := range n {
		switch {
		case strings.Contains(document, "<a:feed"):
			fmt.Fprintf(&b, `<a:entry><a:id>urn:%d</a:id><a:title>E</a:title><x:y>2</x:y></a:entry>`, i)
		case strings.Contains(document, "<feed"):
			fmt.Fprintf(&b, `<entry xmlns:own="urn:own" own:a="1"><id>urn:%d</id><title xml:lang="en">E</title><link href="%[1]d"/><updated>2003-12-13T18:30:02Z</updated></entry>`, i)
		default:
			fmt.Fprintf(&b, `<item><guid>urn:%d</guid><title>E &amp;amp; F</title><link>http://example.org/%[1]d</link></item>`, i)
		}
	}
	return b.String()
}

// A document that is written entry by entry is well-formed, has every entry, and is the
// one that is written at once.
func TestWriterContinues(t *testing.T) {
	for name, text := range documentsToContinue {
		for _, format := range []Format{FormatAtom, FormatRSS} {
			t.Run(fmt.Sprintf("%s as %v", name, format), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					n := rapid.IntRange(0, 5).Draw(t, "entries")
					doc, err := Parse(strings.NewReader(fmt.Sprintf(text, entriesToContinue(text, n))), "http://example.org/feed")
					require.NoError(t, err)
					require.Len(t, doc.Entries, n)

					head, rest := *doc, doc.Entries
					first := rapid.IntRange(0, n).Draw(t, "entries of the head")
					head.Entries, rest = rest[:first], rest[first:]
					head.Updated = latest(doc)
					doc.Updated = head.Updated
					var whole, parts bytes.Buffer
					require.NoError(t, compose.NewWriter(&whole, format, doc).Close())
					w := compose.NewWriter(&parts, format, &head)
					for len(rest) > 0 {
						batch := rapid.IntRange(1, len(rest)).Draw(t, "batch")
						require.NoError(t, w.Add(rest[:batch]...))
						rest = rest[batch:]
					}
					require.NoError(t, w.Close())
					require.NoError(t, w.Close(), "a second call does nothing")
					require.Equal(t, whole.String(), parts.String())
					require.NoError(t, strictXML(parts.String()))
					again, err := Parse(&parts, "http://example.org/feed")
					require.NoError(t, err)
					require.Empty(t, again.Notes)
					require.Len(t, again.Entries, n)
					require.Equal(t, doc.Complete, again.Complete)
					for i, e := range again.Entries {
						require.Equal(t, doc.Entries[i].ID, e.ID)
						require.Equal(t, doc.Entries[i].Title().Plain(), e.Title().Plain())
					}
				})
			})
		}
	}
}

// A head without a time gets that of its first entries.
func TestWriterDatesTheHead(t *testing.T) {
	log := dailyLog(t, 3)
	for _, doc := range []*Document{{ID: "urn:f"}, {ID: "urn:f", Entries: log}} {
		var b bytes.Buffer
		w := compose.NewWriter(&b, FormatAtom, doc)
		require.NoError(t, w.Add(log[1:]...))
		require.NoError(t, w.Close())
		again, err := Parse(&b, "")
		require.NoError(t, err)
		require.True(t, again.Updated.Equal(log[2].Updated), again.Updated)
	}
}

// A disk is full after some bytes.
type fullDisk struct{ room int }

var errFull = errors.New("the disk is full")

func (d *fullDisk) Write(p []byte) (int, error) {
	if len(p) > d.room {
		return 0, errFull
	}
	d.room -= len(p)
	return len(p), nil
}

func TestWriterErrors(t *testing.T) {
	log := dailyLog(t, 1)
	require.ErrorContains(t, compose.NewWriter(nil, FormatAtom, nil).Close(), "the io.Writer is nil")
	for _, format := range []Format{"", FormatJSONFeed} {
		var b bytes.Buffer
		w := compose.NewWriter(&b, format, nil)
		require.ErrorContains(t, w.Add(log...), "documents are written as Atom or RSS")
		require.ErrorContains(t, w.Close(), "documents are written as Atom or RSS")
		require.Zero(t, b.Len())
	}
	w := compose.NewWriter(new(bytes.Buffer), FormatAtom, nil)
	require.ErrorContains(t, w.Add(nil), "an entry is nil")
	require.ErrorContains(t, w.Close(), "an entry is nil", "an error is not forgotten")
	require.ErrorContains(t, w.Add(log...), "Add after Close")
	for room := range 300 {
		w := compose.NewWriter(&fullDisk{room}, FormatRSS, &Document{Title: "T"})
		_ = w.Add(log...)
		require.ErrorIs(t, w.Close(), errFull)
	}
}

func TestWriteInOwnFormat(t *testing.T) {
	for want, doc := range map[string]*Document{
		"<rss": {Format: FormatRSS}, "<feed": {Format: FormatAtom, ID: "urn:1"}, "<feed ": {Format: FormatJSONFeed}, "<feed x": {},
	} {
		var b bytes.Buffer
		require.NoError(t, compose.Write(&b, doc))
		require.Contains(t, b.String(), want)
		require.NoError(t, strictXML(b.String()))
	}
	var b bytes.Buffer
	require.NoError(t, compose.Write(&b, nil))
	require.NoError(t, strictXML(b.String()))
}

// latest returns when a document, or else its latest entry, changed.
func latest(doc *Document) (t time.Time) {
	if !doc.Updated.IsZero() {
		return doc.Updated
	}
	for _, e := range doc.Entries {
		if at := cmp.Or(e.Changed(), time.Unix(0, 0).UTC()); at.After(t) {
			t = at
		}
	}
	return t
}
