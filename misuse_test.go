package feedhistory

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// What makes no sense has the default's, or no, effect.
func TestMisuse(t *testing.T) {
	d := (&History{}).Document()
	require.Empty(t, d.Entries)
	gap := NewGap("http://example.org/\xff", io.ErrUnexpectedEOF)
	for _, d := range []*Document{d, {}, (&History{Gaps: []*Gap{gap}}).Document(), NewComplete(nil, nil, ""), NewPage(nil, nil, Page{}), NewArchive(nil, nil, ArchiveAt{})} {
		derive(t, d)
	}
	require.Len(t, NewPages(nil, make([]*Entry, 3), -5, func(int) string { return "" }), 3)

	const n = math.MinInt
	none := Limits{Bytes: n, Ratio: n, Depth: n, Attributes: n, Namespaces: n, Elements: n, Entries: n, HeadLinks: n, ID: n, URL: n}
	got, want := none.withDefaults(), Limits{}.withDefaults()
	require.Equal(t, []int{want.Ratio, want.Entries, want.HeadLinks, want.ID, want.URL}, []int{got.Ratio, got.Entries, got.HeadLinks, got.ID, got.URL})
	doc, err := Parser{Limits: none}.parse(`<feed xmlns="`+nsAtom+`"><link href="http://example.org/"/><entry><id>1</id></entry></feed>`, "")
	require.NoError(t, err)
	require.Len(t, doc.Entries, 1)
	require.Len(t, doc.Links, 1)

	log := make([]*Entry, 250)
	closed, open := Split{Size: -5}.Cut(log, 1)
	require.Len(t, closed, 2)
	require.Len(t, open, 50)
	closed, open = Split{Period: 99}.Cut([]*Entry{{}, {}}, 1)
	require.Empty(t, closed)
	require.Len(t, open, 2)

	require.Empty(t, (&Entry{}).Title())
	require.Nil(t, (&Entry{}).XML())
	_, err = (&Entry{}).Decode()
	require.NoError(t, err)
}

// What a document has in no form that XML can take, is written in one that it
// can, and read again as the same.
func TestWrittenMedia(t *testing.T) {
	const png = "\x89PNG\r\n\x1a\n\x00\xff"
	for name, entry := range map[string]string{
		"1.0": `<feed xmlns="` + nsAtom + `"><entry><id>1</id><content type="image/png">iVBORw0KGgoA/w==</content></entry></feed>`,
		"0.3": `<feed xmlns="` + nsAtom03 + `"><entry><id>1</id><content type="image/png" mode="base64">iVBORw0KGgoA/w==</content></entry></feed>`,
	} {
		for _, write := range []func(io.Writer, *Document) error{WriteAtom, WriteRSS} {
			doc, err := Parser{}.parse(entry, "http://example.org/")
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
	doc, err := Parser{}.parse(`<feed xmlns="`+nsAtom+`"><entry><id>1</id><content type="video/mp4" src="a.mp4"/></entry></feed>`, "http://example.org/")
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, WriteRSS(&b, doc))
	requireWellFormed(t, b.Bytes())
	again, err := Parse(&b, "")
	require.NoError(t, err)
	require.Equal(t, Text{Type: "video/mp4", Src: "http://example.org/a.mp4"}, again.Entries[0].Content())
}

// Bytes of a Link field that are no UTF-8 are written as they would be requested.
func TestLinkFieldOfRawBytes(t *testing.T) {
	p := Parser{Header: http.Header{"Link": {"<http://example.org/caf\xe9>; rel=prev-archive; title=\"\xff\"; type=\"\xfe\""}}}
	doc, err := p.parse(`<feed xmlns="`+nsAtom+`"/>`, "http://example.org/feed")
	require.NoError(t, err)
	require.Equal(t, "http://example.org/caf%E9", doc.Links[0].Href)
	derive(t, doc)
}
