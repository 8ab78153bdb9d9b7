package compose_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/feedhistory/feedhistory/internal/feedxml"

	"github.com/stretchr/testify/require"

	. "github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

const coverageHead = `<m:mirror xmlns:m="` + feedxml.Coverage + `" of="http://example.org/feed" kind="archived" verdict="partial">` +
	`<m:gap reason="status" href="http://example.org/2003.atom"/><m:gap reason="eaten by the dog"/></m:mirror>`

// A document's Coverage is written again as it was read, in either format; and by a
// subscription document, not by archives.
func TestCoverageIsHandedOn(t *testing.T) {
	doc, err := Parse(strings.NewReader(`<feed xmlns="http://www.w3.org/2005/Atom"><title>A</title>`+coverageHead+`</feed>`), "http://example.net/feed")
	require.NoError(t, err)
	require.Equal(t, VerdictPartial, doc.Coverage.Verdict)
	for _, write := range []func(io.Writer, *Document) error{compose.WriteAtom, compose.WriteRSS} {
		text := written(t, write, doc)
		require.Contains(t, text, coverageHead)
		require.Equal(t, 1, strings.Count(text, "<m:mirror"), "once")
		require.Contains(t, written(t, write, compose.Subscription(doc, nil, "http://example.com/", "")), coverageHead)
		require.NotContains(t, written(t, write, compose.Archive(doc, nil, compose.URLs{Self: "http://example.com/1"})), "m:mirror")
	}
}

// A history that is written as one document declares what is missing, whether that was
// found here or declared by the publisher.
func TestHistoryCoverage(t *testing.T) {
	doc, err := Parse(strings.NewReader(`<feed xmlns="http://www.w3.org/2005/Atom"><title>A</title>`+coverageHead+`</feed>`), "http://example.net/feed")
	require.NoError(t, err)
	own := &Gap{URL: "http://example.net/1", Reason: ReasonStatus, Err: errors.New("404")}
	h, err := Merge(feedtest.Values(&Reading{Document: doc, Gaps: []*Gap{own}}))
	require.NoError(t, err)
	require.Len(t, h.Gaps, 3)

	again, err := Parse(strings.NewReader(written(t, compose.WriteAtom, compose.History(h))), "http://example.com/")
	require.NoError(t, err)
	require.Equal(t, VerdictPartial, again.Coverage.Verdict)
	require.Equal(t, "http://example.net/feed", again.Coverage.Of)
	require.Len(t, again.Declared(), 3)
	require.ErrorContains(t, again.Declared()[1], "eaten by the dog")

	doc.Coverage = nil
	h, err = Merge(Readings(doc))
	require.NoError(t, err)
	require.Nil(t, compose.History(h).Coverage, "a window needs no words of ours")
}

// What a PseudoEntry says (5005#23).
func TestPseudoEntry(t *testing.T) {
	site := feedtest.Serve(t, `
-- /feed.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><link rel="prev-archive" href="/a&amp;b.atom"/></feed>
`)
	client := &Client{AllowPrivate: true, Tries: 1}
	h, err := client.Fetch(t.Context(), site.URL+"/feed.atom")
	require.NoError(t, err)
	require.Len(t, h.Gaps, 1)
	gap := h.Gaps[0]
	e := compose.PseudoEntry(gap)
	require.Contains(t, e.Summary().Plain(), site.URL+"/a&b.atom")
	require.Contains(t, e.Summary().Plain(), "404")
	require.NotEmpty(t, e.Title().Plain())
	require.NotEmpty(t, e.ID)
	require.True(t, gap.Found.Equal(e.Updated))
	require.Equal(t, e, compose.PseudoEntry(gap), "the same at every call")
}

// What XML cannot express is written in a form that it can, and read again as the same.
func TestWrittenMedia(t *testing.T) {
	const png = "\x89PNG\r\n\x1a\n\x00\xff"
	for name, entry := range map[string]string{
		"1.0": `<feed xmlns="` + feedxml.Atom + `"><entry><id>1</id><content type="image/png">iVBORw0KGgoA/w==</content></entry></feed>`,
		"0.3": `<feed xmlns="` + feedxml.Atom03 + `"><entry><id>1</id><content type="image/png" mode="base64">iVBORw0KGgoA/w==</content></entry></feed>`,
	} {
		for _, write := range []func(io.Writer, *Document) error{compose.WriteAtom, compose.WriteRSS} {
			doc, err := parse(entry, "http://example.org/")
			require.NoError(t, err)
			require.Equal(t, Text{Type: "image/png", Body: png, Base: "http://example.org/"}, doc.Entries[0].Content())
			derive(t, doc)
			var b bytes.Buffer
			require.NoError(t, write(&b, doc))
			again, err := Parse(&b, "http://example.org/")
			require.NoError(t, err)
			require.Equal(t, doc.Entries[0].Content(), again.Entries[0].Content(), name)
		}
	}
}

func TestWrittenSource(t *testing.T) {
	doc, err := parse(`<feed xmlns="`+feedxml.Atom+`"><entry><id>1</id><content type="video/mp4" src="a.mp4"/></entry></feed>`, "http://example.org/")
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, compose.WriteRSS(&b, doc))
	wellFormed(t, b.Bytes())
	again, err := Parse(&b, "")
	require.NoError(t, err)
	require.Equal(t, Text{Type: "video/mp4", Src: "http://example.org/a.mp4"}, again.Entries[0].Content())
}

// Bytes of a Link field that are not UTF-8 are written as they would be requested.
func TestLinkFieldOfRawBytes(t *testing.T) {
	p := Parser{Header: http.Header{"Link": {"<http://example.org/caf\xe9>; rel=prev-archive; title=\"\xff\"; type=\"\xfe\""}}}
	doc, err := p.Parse(strings.NewReader(`<feed xmlns="`+feedxml.Atom+`"/>`), "http://example.org/feed")
	require.NoError(t, err)
	require.Equal(t, "http://example.org/caf%E9", doc.Links[0].Href)
	derive(t, doc)
}

// A digest that serves as an ID covers what the entry says: it survives writing and
// reading, with any surroundings.
func TestDigestOfWhatIsSaid(t *testing.T) {
	id := ""
	for _, text := range []string{
		`<rss xmlns:x="urn:x" xml:base="http://h/" xml:lang="en"><channel><item><title>a &amp; b</title><x:y z="1">c</x:y></item></channel></rss>`,
		`<rss xmlns:q="urn:x"><channel><item><title><![CDATA[a & b]]></title><q:y z='1' >c</q:y></item></channel></rss>`,
		`<rss><channel><item><title>a & b</title><y xmlns="urn:x" z="1">c</y></item></channel></rss>`,
	} {
		doc, err := parse(text, "http://h/feed")
		require.NoError(t, err)
		if id == "" {
			id = doc.Entries[0].ID
		}
		require.Equal(t, id, doc.Entries[0].ID)
		for _, write := range []func(io.Writer, *Document) error{compose.WriteRSS, compose.WriteAtom} {
			var b bytes.Buffer
			require.NoError(t, write(&b, doc))
			again, err := Parse(&b, "http://elsewhere/")
			require.NoError(t, err)
			require.Equal(t, id, again.Entries[0].ID, "%s", b.String())
		}
		stored, err := ReadEntry(FormatRSS, string(doc.Entries[0].XML()), "")
		require.NoError(t, err)
		require.Equal(t, id, stored.ID)
	}
	one, err := parse(`<rss><channel><item><title>a</title></item><item><title>b</title></item></channel></rss>`, "")
	require.NoError(t, err)
	require.NotEqual(t, one.Entries[0].ID, one.Entries[1].ID)
}
