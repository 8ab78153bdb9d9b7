package feedhistory

import (
	"bytes"
	"encoding/xml"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mmcdole/gofeed"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/vocab"
)

// For entries that do not trigger gofeed's bugs, Decode returns what gofeed makes of the
// whole document.
func TestDecodeAgreesWithGofeed(t *testing.T) {
	for _, file := range feedtest.Glob(t, "testdata/decode/*") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text := feedtest.ReadFile(t, file)
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

// atomEntry reads the only entry of an Atom feed with the given attributes.
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

// Relative references resolve by RFC 3986; gofeed mistakes the last segment of a base path
// for a directory.
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

const podcast = `<rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:podcast="https://podcastindex.org/namespace/1.0" xmlns:media="http://search.yahoo.com/mrss/" xmlns:unused="urn:u">
<channel><title>Show</title><itunes:author>Host</itunes:author><podcast:guid>g</podcast:guid><copyright>c</copyright>
<item xml:base="http://h/"><guid>1</guid><title>One</title><itunes:duration>1:00</itunes:duration>
<podcast:transcript url="t.vtt" type="text/vtt"/><media:group><media:title>M</media:title></media:group>
<y xmlns="urn:y"><z/></y><dc:creator xmlns:dc="http://purl.org/dc/elements/1.1/">A</dc:creator><category></category></item>
</channel></rss>`

// Extensions survive conversion to another format and back.
func TestExtensionsInAnotherFormat(t *testing.T) {
	doc, err := Parser{}.parse(podcast, "http://h/feed")
	require.NoError(t, err)
	var atom bytes.Buffer
	require.NoError(t, WriteAtom(&atom, doc))
	requireWellFormed(t, atom.Bytes())
	for _, want := range []string{
		"<itunes:author", "<podcast:guid", "<itunes:duration>1:00<", `<podcast:transcript url="t.vtt"`, "<media:title>M<",
		`<y xmlns="urn:y"><z/></y>`, `xml:base="http://h/"`, "<name>A</name>",
	} {
		require.Contains(t, atom.String(), want)
	}
	for _, unwanted := range []string{"unused", "copyright", "<category", "dc:creator", "<name></name>"} {
		require.NotContains(t, atom.String(), unwanted)
	}
	there, err := Parse(bytes.NewReader(atom.Bytes()), "http://h/feed.atom")
	require.NoError(t, err)
	require.Equal(t, Atom, there.Format)
	item, err := there.Entries[0].Decode()
	require.NoError(t, err)
	require.Equal(t, "http://h/t.vtt", item.Extensions["podcast"]["transcript"][0].Attrs["url"])

	var rss bytes.Buffer
	require.NoError(t, WriteRSS(&rss, there))
	requireWellFormed(t, rss.Bytes())
	back, err := Parse(&rss, "http://h/feed")
	require.NoError(t, err)
	item, err = back.Entries[0].Decode()
	require.NoError(t, err)
	require.Equal(t, "1:00", item.ITunesExt.Duration)
}

// A prefix that we also use, and a default namespace, keep their meaning.
func TestExtensionsUnderOurPrefixes(t *testing.T) {
	doc, err := Parser{}.parse(`<a:feed xmlns:a="`+vocab.Atom+`" xmlns="urn:x" xmlns:atom="urn:z" xmlns:own="urn:own"><a:entry><a:id>1</a:id><a:link rel="via" href="http://h/"/><y/><atom:w own:a="1"/></a:entry></a:feed>`, "")
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, WriteRSS(&b, doc))
	requireWellFormed(t, b.Bytes())
	require.Contains(t, b.String(), `<item xmlns:own="urn:own">`)
	require.Contains(t, b.String(), `<y xmlns="urn:x"/>`)
	require.Contains(t, b.String(), ` xmlns:atom="urn:z" own:a="1"/>`)
	back, err := Parse(&b, "")
	require.NoError(t, err)
	_, ok := back.Entries[0].Links.Rel("via")
	require.True(t, ok, "the link is still Atom's")
}

func TestWrittenAsItShouldBe(t *testing.T) {
	doc, err := Parser{}.parse(`<rss><channel><item><guid isPermaLink="false">1</guid><link>http://h/a b"c</link><author></author><description>d</description></item></channel></rss>`, "")
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, WriteAtom(&b, doc))
	require.Contains(t, b.String(), `href="http://h/a%20b%22c"`)
	require.NotContains(t, b.String(), "<name></name>")
	require.Contains(t, b.String(), "<name>unknown</name>")

	doc, err = Parser{}.parse(`<feed xmlns="`+vocab.Atom+`"><entry><id>1</id><content type="html">&lt;p>c</content></entry></feed>`, "")
	require.NoError(t, err)
	b.Reset()
	require.NoError(t, WriteRSS(&b, doc))
	require.Contains(t, b.String(), "<description>&lt;p&gt;c</description>")
}

// An entry without an author has its own document's (RFC 4287 §4.2.1), wherever it is moved.
func TestWhoseWords(t *testing.T) {
	feed := func(author, entry string) *Document {
		doc, err := Parser{}.parse(`<feed xmlns="`+vocab.Atom+`"><id>f</id>`+entry+`<author><name>`+author+`</name></author></feed>`, "http://h/"+author[:3])
		require.NoError(t, err)
		return doc
	}
	head, archive := feed("New", `<entry><id>2</id></entry>`), feed("Old", `<entry><id>1</id></entry><entry><id>0</id><author><name>Own</name></author></entry>`)
	h, err := Merge(feedtest.Values(head, archive))
	require.NoError(t, err)
	for _, write := range []func(io.Writer, *Document) error{WriteAtom, WriteRSS} {
		var b bytes.Buffer
		require.NoError(t, write(&b, h.Document()))
		requireWellFormed(t, b.Bytes())
		again, err := Parse(&b, "")
		require.NoError(t, err)
		for i, want := range []string{"New", "Old", "Own"} {
			item, err := again.Entries[i].Decode()
			require.NoError(t, err)
			require.Len(t, item.Authors, 1)
			require.Equal(t, want, item.Authors[0].Name)
		}
	}
	signed := archive.Entries[0].Signed()
	require.NotContains(t, string(archive.Entries[0].XML()), "<author", "an entry as published")
	stored, err := ReadEntry(Atom, string(signed.XML()), "")
	require.NoError(t, err)
	require.Same(t, stored, stored.Signed(), "nothing is added twice")
	require.Contains(t, string(stored.XML()), "<name>Old</name>")
	require.Same(t, archive.Entries[1], archive.Entries[1].Signed())
	require.Empty(t, feed(strings.Repeat("x", 5000), `<entry><id>1</id></entry>`).Entries[0].authors(), "a name that long")
}

// What only lenient readers can read is written so that all can.
func TestMisspeltIsWrittenRight(t *testing.T) {
	doc, err := Parser{}.parse(`<RSS xmlns:i="https://www.itunes.com/dtds/podcast-1.0.dtd/"><Channel><Item><GUID isPermalink="false">1</GUID><Title>T</Title><pubdate>Sat, 13 Dec 2003 18:30:02 GMT</pubdate></Item><item><guid>2</guid><i:duration>9</i:duration></item></Channel></RSS>`, "")
	require.NoError(t, err)
	require.Len(t, doc.Entries, 2)
	var b bytes.Buffer
	require.NoError(t, WriteRSS(&b, doc))
	require.Contains(t, b.String(), `<guid isPermaLink="false">1</guid>`)
	require.Contains(t, b.String(), "<pubDate>Sat, 13 Dec 2003 18:30:02 +0000</pubDate>")
	again, err := Parser{Strict: true}.parse(b.String(), "")
	require.NoError(t, err)
	require.Equal(t, "T", again.Entries[0].Title().Body)
	item, err := doc.Entries[1].Decode()
	require.NoError(t, err)
	require.Equal(t, "9", item.ITunesExt.Duration)
}
