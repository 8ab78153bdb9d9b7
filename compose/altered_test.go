package compose_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
)

// toJSON returns an entry as JSON, and fromJSON reads it.
func toJSON(e *Entry) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(compose.NewEntryJSON(e))
	return bytes.TrimSpace(b.Bytes()), err
}

func fromJSON(data []byte) (*Entry, error) {
	var j compose.EntryJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return nil, err
	}
	return j.Entry()
}

func formatOf(e *Entry) Format {
	if e.Head == nil {
		return ""
	}
	return e.Head.Format
}

func has(e *Entry, rel string) bool {
	_, ok := e.Links.Rel(rel)
	return ok
}

func written(t *testing.T, write func(io.Writer, *Document) error, d *Document) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, write(&b, d))
	return b.String()
}

// alterable are entries of each format that a reader may change.
func alterable(t *testing.T) map[string]*Entry {
	t.Helper()
	found := map[string]*Entry{"literal": {ID: "urn:1"}}
	for name, text := range map[string]string{
		"atom": `<feed xmlns="http://www.w3.org/2005/Atom"><author><name>Ann</name></author><entry><id>urn:1</id><updated>2003-12-13T18:30:02Z</updated>
<title>One</title><link href="http://example.org/1"/><contributor><name>Bob</name></contributor><x xmlns="urn:x">kept</x></entry></feed>`,
		"rss":  `<rss version="2.0"><channel><item><guid isPermaLink="false">urn:1</guid><title>One</title><link>http://example.org/1</link></item></channel></rss>`,
		"weak": `<rss version="2.0"><channel><item><title>One</title><link>http://example.org/1</link></item></channel></rss>`,
		"json": `{"version":"https://jsonfeed.org/version/1.1","items":[{"id":"urn:1","title":"One","url":"http://example.org/1"}]}`,
	} {
		doc, err := Parse(strings.NewReader(text), "http://example.org/feed")
		require.NoError(t, err)
		require.Len(t, doc.Entries, 1)
		found[name] = doc.Entries[0]
	}
	read, err := fromJSON([]byte(`{"id":"urn:1","title":"One"}`))
	require.NoError(t, err)
	found["unmarshalled"] = read
	return found
}

// An entry whose fields were set is written as they say, by every writer.
func TestAlteredEntriesAreWrittenAsTheySay(t *testing.T) {
	at := time.Date(2020, 2, 2, 2, 2, 2, 0, time.UTC)
	for field, set := range map[string]func(e *Entry){
		"id":        func(e *Entry) { e.ID, e.WeakID = "urn:other", false },
		"updated":   func(e *Entry) { e.Updated = at },
		"published": func(e *Entry) { e.Published = at },
		"links":     func(e *Entry) { e.Links = Links{{Rel: "alternate", Href: "http://example.org/other"}} },
		"link": func(e *Entry) {
			e.Links = append(e.Links, Link{Rel: "enclosure", Href: "http://example.org/other", Type: "audio/mpeg", Length: "7"})
		},
	} {
		for name, e := range alterable(t) {
			title := e.Title()
			if set(e); e.WeakID {
				continue // its ID is in no document
			}
			written := map[string]*Entry{}
			read := func(writer string, doc *Document, err error) {
				require.NoError(t, err, writer)
				require.Len(t, doc.Entries, 1, writer)
				written[writer] = doc.Entries[0]
			}
			for writer, write := range map[string]func(io.Writer, *Document) error{"Write": compose.Write, "WriteAtom": compose.WriteAtom, "WriteRSS": compose.WriteRSS} {
				var b strings.Builder
				require.NoError(t, write(&b, &Document{Format: formatOf(e), Entries: []*Entry{e}}))
				doc, err := Parse(strings.NewReader(b.String()), "")
				read(writer, doc, err)
			}
			one, err := ReadEntry(FormatAtom, string(e.XML()), "")
			require.NoError(t, err)
			written["XML"] = one
			data, err := toJSON(e)
			require.NoError(t, err)
			written["JSON"], err = fromJSON(data)
			require.NoError(t, err)
			signed := e.Signed()
			written["Signed"], err = ReadEntry(FormatAtom, string(signed.XML()), "")
			require.NoError(t, err)
			require.Equal(t, e.Digest(), signed.Digest())
			require.Empty(t, e.JSON())
			for writer, w := range written {
				require.Equal(t, e.ID, w.ID, "%s %s %s", field, name, writer)
				require.True(t, e.Published.Equal(w.Published), "%s %s %s", field, name, writer)
				if n := len(e.Links); len(w.Links) > n && !has(e, "alternate") && has(e, "enclosure") {
					require.Equal(t, Links{{Rel: "alternate", Href: e.Links[0].Href}}, w.Links[n:], "an item with an enclosure only links to it")
					w.Links = w.Links[:n]
				}
				require.Equal(t, e.Links, w.Links, "%s %s %s", field, name, writer)
				require.Equal(t, title.Body, w.Title().Body, "%s %s %s", field, name, writer)
				if !e.Updated.IsZero() {
					require.True(t, e.Updated.Equal(w.Updated), "%s %s %s", field, name, writer)
				}
				if name == "atom" {
					require.Contains(t, string(w.XML()), "kept", writer)
				}
			}
		}
	}
}

// An Atom document has an update time for each entry (RFC 4287 §4.1.2), and one only.
func TestAtomEntriesHaveAnUpdateTime(t *testing.T) {
	for _, element := range []string{"", "<updated>yesterday</updated>", "<published>2003-12-13T18:30:02Z</published>"} {
		doc, err := Parse(strings.NewReader(`<feed xmlns="http://www.w3.org/2005/Atom"><updated>2001-01-01T00:00:00Z</updated><entry><id>urn:1</id>`+element+`<contributor><name>Bob</name></contributor></entry></feed>`), "")
		require.NoError(t, err)
		text := written(t, compose.WriteAtom, &Document{Entries: doc.Entries})
		_, entry, _ := strings.Cut(text, "<entry")
		require.Equal(t, 1, strings.Count(entry, "<updated"), text)
		require.Contains(t, entry, "Bob")
		again, err := Parse(strings.NewReader(text), "")
		require.NoError(t, err)
		require.True(t, again.Entries[0].Updated.Equal(cmp.Or(doc.Entries[0].Changed(), doc.Updated)))
	}
	for name, e := range alterable(t) {
		again, err := Parse(strings.NewReader(written(t, compose.WriteAtom, &Document{Entries: []*Entry{e}})), "")
		require.NoError(t, err)
		require.False(t, again.Entries[0].Updated.IsZero(), name)
	}
}

// Nil where a document, an entry or a sequence belongs is an error with a name.
func TestNil(t *testing.T) {
	var m Merger
	require.False(t, m.Add(nil, nil))
	h, err := m.History()
	require.ErrorContains(t, err, "Merger.Add: both the Reading and the error are nil")
	require.Nil(t, h)
	m = Merger{}
	require.False(t, m.Add(&Reading{Document: &Document{Entries: []*Entry{nil}}}, nil))
	_, err = m.History()
	require.ErrorContains(t, err, "an entry of the document is nil")
	_, err = Merge(nil)
	require.ErrorContains(t, err, "the sequence is nil")
	require.ErrorContains(t, compose.Write(nil, nil), "the io.Writer is nil")
	require.ErrorContains(t, compose.WriteRSS(io.Discard, &Document{Entries: []*Entry{nil}}), "an entry is nil")
	require.Equal(t, compose.EntryJSON{}, compose.NewEntryJSON(nil))
	require.Error(t, NewGap("", nil).Err)
	data, err := json.Marshal((*Entry)(nil))
	require.NoError(t, err)
	require.Equal(t, "null", string(data))
}

// No entry of a written document is newer than the document, though RSS knows seconds only.
func TestSecondsOfRSS(t *testing.T) {
	e := &Entry{ID: "urn:1", Updated: time.Date(2024, 2, 29, 12, 0, 0, 500_000_000, time.UTC)}
	var b strings.Builder
	require.NoError(t, compose.WriteRSS(&b, &Document{Entries: []*Entry{e}}))
	require.Contains(t, b.String(), "<lastBuildDate>Thu, 29 Feb 2024 12:00:01 GMT</lastBuildDate>")
	doc, err := Parse(strings.NewReader(b.String()), "https://example.org/feed")
	require.NoError(t, err)
	require.False(t, doc.Entries[0].Updated.After(doc.Updated))
	require.Zero(t, NewFetchError(nil).Status)
}
