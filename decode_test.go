package feedhistory

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mmcdole/gofeed"
	"github.com/stretchr/testify/require"
)

// On entries that do not provoke gofeed's errors, Decode gives what gofeed
// makes of the whole document.
func TestDecodeAgreesWithGofeed(t *testing.T) {
	for _, file := range glob(t, "testdata/decode/*") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			theirs, err := gofeed.NewParser().ParseString(string(text))
			require.NoError(t, err)
			doc, err := Parse(strings.NewReader(string(text)), "http://example.org/feed")
			require.NoError(t, err)
			require.Empty(t, doc.Notes)
			require.Len(t, doc.Entries, len(theirs.Items))
			for i, e := range doc.Entries {
				item, err := e.Decode()
				require.NoError(t, err)
				want := theirs.Items[i]
				if !e.WeakID {
					want.GUID = e.ID // gofeed has none in RSS 1.0
				}
				require.Equal(t, want, item, "entry %d", i)
			}
		})
	}
}

// parseAtom reads the only entry of an Atom feed with the given attributes.
func atomEntry(t testing.TB, attrs, entry string) *Entry {
	t.Helper()
	doc, err := Parse(strings.NewReader(`<feed xmlns="http://www.w3.org/2005/Atom" `+attrs+`>`+entry+`</feed>`),
		"http://example.org/feeds/index.atom")
	require.NoError(t, err)
	require.Len(t, doc.Entries, 1)
	return doc.Entries[0]
}

func TestTextConstructs(t *testing.T) {
	const base = "http://example.org/feeds/index.atom"
	for _, tc := range []struct {
		name, content string
		want          Text
	}{
		{"no type", `<content> a &amp; b </content>`, Text{Type: "text", Body: "a & b", Base: base}},
		{"text", `<content type="text">a &lt; b</content>`, Text{Type: "text", Body: "a < b", Base: base}},
		{"html", `<content type="html">&lt;p>a &amp;amp; b</content>`, Text{Type: "html", Body: "<p>a &amp; b", Base: base}},
		{"html in CDATA", `<content type="html"><![CDATA[<p>a &amp; b]]></content>`, Text{Type: "html", Body: "<p>a &amp; b", Base: base}},
		{"xhtml", `<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>a &amp; <br/>b</p><p/></div></content>`,
			Text{Type: "xhtml", Body: `<p>a &amp; <br>b</p><p></p>`, Base: base}},
		{"xhtml with a prefix", `<content type="xhtml"><h:div xmlns:h="http://www.w3.org/1999/xhtml"><h:p class="x">a</h:p></h:div></content>`,
			Text{Type: "xhtml", Body: `<p class="x">a</p>`, Base: base}},
		{"xhtml with text around elements", `<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">a<!-- c --><i>b</i><div>c</div>d</div></content>`,
			Text{Type: "xhtml", Body: `a<i>b</i><div>c</div>d`, Base: base}},
		{"xhtml without its div", `<content type="xhtml"><p xmlns="http://www.w3.org/1999/xhtml">a</p><p>b</p></content>`,
			Text{Type: "xhtml", Body: `<p>a</p><p>b</p>`, Base: base}},
		{"xml:base on the content", `<content type="html" xml:base="/posts/1.html">x</content>`,
			Text{Type: "html", Body: "x", Base: "http://example.org/posts/1.html"}},
		{"xml:base on the div", `<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml" xml:base="/posts/"><img src="1.png"/></div></content>`,
			Text{Type: "xhtml", Body: `<img src="1.png">`, Base: "http://example.org/posts/"}},
		{"xml:base further in", `<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p xml:base="/posts/"><img src="1.png"/></p></div></content>`,
			Text{Type: "xhtml", Body: `<p><img src="http://example.org/posts/1.png"></p>`, Base: base}},
		{"language", `<content xml:lang="de">x</content>`, Text{Type: "text", Body: "x", Base: base, Lang: "de"}},
		{"elsewhere", `<content type="video/mp4" src="1.mp4"/>`, Text{Type: "video/mp4", Src: "http://example.org/feeds/1.mp4", Base: base}},
		{"base64", `<content type="image/png">aGVs
			bG8=</content>`, Text{Type: "image/png", Body: "hello", Base: base}},
		{"XML", `<content type="application/mathml+xml"><m xmlns="urn:m">1<n/></m></content>`,
			Text{Type: "application/mathml+xml", Body: `<m xmlns="urn:m">1<n/></m>`, Base: base}},
		{"none", ``, Text{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, atomEntry(t, "", "<entry><id>1</id>"+tc.content+"</entry>").Content())
		})
	}
}

func TestAtom03Modes(t *testing.T) {
	for content, want := range map[string]Text{
		`>&lt;b>x`: {Type: "text", Body: "<b>x"},
		` type="text/html" mode="escaped">&lt;b>x`:                    {Type: "html", Body: "<b>x"},
		` type="application/xhtml+xml"><b>x</b>`:                      {Type: "xhtml", Body: "<b>x</b>"},
		` type="text/html" mode="xml"><b>x</b>`:                       {Type: "xhtml", Body: "<b>x</b>"},
		` type="application/xhtml+xml" mode="escaped">&lt;b>x&lt;/b>`: {Type: "html", Body: "<b>x</b>"},
		` type="text/plain" mode="base64">aGVsbG8=`:                   {Type: "text", Body: "hello"},
	} {
		doc, err := Parse(strings.NewReader(`<feed version="0.3" xmlns="http://purl.org/atom/ns#"><entry><id>1</id>
			<content`+content+`</content></entry></feed>`), "")
		require.NoError(t, err)
		require.Equal(t, want, doc.Entries[0].Content(), content)
	}
}

// Relative references resolve as RFC 3986 says: gofeed takes the last segment
// of a base path for a directory.
func TestDecodeResolvesReferences(t *testing.T) {
	e := atomEntry(t, `xml:base="http://example.org/posts/index.html"`, `<entry><id>1</id>
		<link href="1.html"/><link rel="enclosure" href="1.mp3"/>
		<content type="html">&lt;a href="2.html">two&lt;/a> &lt;img src=/3.png> &lt;b>&amp;amp; untouched&lt;/b></content></entry>`)
	item, err := e.Decode()
	require.NoError(t, err)
	require.Equal(t, "http://example.org/posts/1.html", item.Link)
	require.Equal(t, "http://example.org/posts/1.mp3", item.Enclosures[0].URL)
	require.Equal(t, `<a href="http://example.org/posts/2.html">two</a> <img src="http://example.org/3.png"> <b>&amp; untouched</b>`, item.Content)
}

func TestDecodeKeepsIDs(t *testing.T) {
	for _, id := range []string{"HTTP://Example.org/a", "http://example.org/a#", "http://example.org/%7Ea", "tag:x,2003:é"} {
		item, err := atomEntry(t, "", "<entry><id>"+id+"</id></entry>").Decode()
		require.NoError(t, err)
		require.Equal(t, id, item.GUID)
	}
}

// A namespace's prefix may mean two things in one entry.
func TestDecodePrefixBoundTwice(t *testing.T) {
	item, err := atomEntry(t, `xmlns:x="urn:one"`, `<entry><id>1</id><x:a>1</x:a><x:a xmlns:x="urn:two">2</x:a></entry>`).Decode()
	require.NoError(t, err)
	require.Equal(t, "1", item.Extensions["x"]["a"][0].Value)
	require.Equal(t, "2", item.Extensions["x-"]["a"][0].Value)
}

func TestEntryXML(t *testing.T) {
	const outer = `xmlns:dc="http://purl.org/dc/elements/1.1/" xml:lang="en" xml:base="/posts/"`
	for name, tc := range map[string][2]string{
		"what is in scope": {
			`<entry><id>1</id><dc:date>2003</dc:date></entry>`,
			`<entry xmlns="http://www.w3.org/2005/Atom" xmlns:dc="http://purl.org/dc/elements/1.1/" xml:base="http://example.org/posts/" xml:lang="en"><id>1</id><dc:date>2003</dc:date></entry>`},
		"its own goes first": {
			`<entry xmlns:dc="urn:dc" xml:lang="de" xml:base="1/"><id>1</id><!-- kept --><dc:x/></entry>`,
			`<entry xmlns="http://www.w3.org/2005/Atom" xml:base="http://example.org/posts/1/" xmlns:dc="urn:dc" xml:lang="de"><id>1</id><!-- kept --><dc:x/></entry>`},
		"what is broken is mended": {
			`<entry><id>1</id><title>a & b &nbsp;</title></entry>`,
			`<entry xmlns="http://www.w3.org/2005/Atom" xml:base="http://example.org/posts/" xml:lang="en"><id>1</id><title>a &amp; b ` + "\u00a0" + `</title></entry>`},
	} {
		t.Run(name, func(t *testing.T) {
			e := atomEntry(t, outer, tc[0])
			require.Equal(t, tc[1], string(e.XML()))
			d := xml.NewDecoder(strings.NewReader(string(e.XML())))
			for {
				if _, err := d.Token(); err != nil {
					require.Equal(t, io.EOF, err)
					break
				}
			}
		})
	}
}
