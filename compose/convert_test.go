package compose_test

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/togofeed"
)

const podcast = `<rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:podcast="https://podcastindex.org/namespace/1.0" xmlns:media="http://search.yahoo.com/mrss/" xmlns:unused="urn:u">
<channel><title>Show</title><itunes:author>Host</itunes:author><podcast:guid>g</podcast:guid><copyright>c</copyright>
<item xml:base="http://h/"><guid>1</guid><title>One</title><itunes:duration>1:00</itunes:duration>
<podcast:transcript url="t.vtt" type="text/vtt"/><media:group><media:title>M</media:title></media:group>
<y xmlns="urn:y"><z/></y><dc:creator xmlns:dc="http://purl.org/dc/elements/1.1/">A</dc:creator><category></category></item>
</channel></rss>`

// Extensions survive conversion to another format and back.
func TestExtensionsInAnotherFormat(t *testing.T) {
	doc, err := parse(podcast, "http://h/feed")
	require.NoError(t, err)
	var atom bytes.Buffer
	require.NoError(t, compose.WriteAtom(&atom, doc))
	wellFormed(t, atom.Bytes())
	for _, want := range []string{
		"<itunes:author", "<podcast:guid", "<itunes:duration>1:00<", `<podcast:transcript url="t.vtt"`, "<media:title>M<",
		`<y xmlns="urn:y"><z/></y>`, `xml:base="http://h/"`, "<name>A</name>",
	} {
		require.Contains(t, atom.String(), want)
	}
	for _, unwanted := range []string{"unused", "<category", "dc:creator", "<name></name>"} {
		require.NotContains(t, atom.String(), unwanted)
	}
	there, err := Parse(bytes.NewReader(atom.Bytes()), "http://h/feed.atom")
	require.NoError(t, err)
	require.Equal(t, FormatAtom, there.Format)
	item, err := togofeed.Item(there.Entries[0])
	require.NoError(t, err)
	require.Equal(t, "http://h/t.vtt", item.Extensions["podcast"]["transcript"][0].Attrs["url"])

	var rss bytes.Buffer
	require.NoError(t, compose.WriteRSS(&rss, there))
	wellFormed(t, rss.Bytes())
	back, err := Parse(&rss, "http://h/feed")
	require.NoError(t, err)
	item, err = togofeed.Item(back.Entries[0])
	require.NoError(t, err)
	require.Equal(t, "1:00", item.ITunesExt.Duration)
}

// A prefix that we also use, and a default namespace, keep their meaning.
func TestExtensionsUnderOurPrefixes(t *testing.T) {
	doc, err := parse(`<a:feed xmlns:a="`+feedxml.Atom+`" xmlns="urn:x" xmlns:atom="urn:z" xmlns:own="urn:own"><a:entry><a:id>1</a:id><a:link rel="via" href="http://h/"/><y/><atom:w own:a="1"/></a:entry></a:feed>`, "")
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, compose.WriteRSS(&b, doc))
	wellFormed(t, b.Bytes())
	require.Contains(t, b.String(), `<item xmlns:own="urn:own">`)
	require.Contains(t, b.String(), `<y xmlns="urn:x"/>`)
	require.Contains(t, b.String(), ` xmlns:atom="urn:z" own:a="1"/>`)
	back, err := Parse(&b, "")
	require.NoError(t, err)
	_, ok := back.Entries[0].Links.Rel("via")
	require.True(t, ok, "the link is still Atom's")
}

func TestWrittenAsItShouldBe(t *testing.T) {
	doc, err := parse(`<rss><channel><item><guid isPermaLink="false">1</guid><link>http://h/a b"c</link><author></author><description>d</description></item></channel></rss>`, "")
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, compose.WriteAtom(&b, doc))
	require.Contains(t, b.String(), `href="http://h/a%20b%22c"`)
	require.NotContains(t, b.String(), "<name></name>")
	require.Contains(t, b.String(), "<name>unknown</name>")

	doc, err = parse(`<feed xmlns="`+feedxml.Atom+`"><entry><id>1</id><content type="html">&lt;p>c</content></entry></feed>`, "")
	require.NoError(t, err)
	b.Reset()
	require.NoError(t, compose.WriteRSS(&b, doc))
	require.Contains(t, b.String(), "<description>&lt;p&gt;c</description>")
}

// The values of a feed survive a way through another format.
func TestThroughAnotherFormat(t *testing.T) {
	through := func(t *testing.T, text string, write func(io.Writer, *Document) error) (*Document, string) {
		doc, err := parse(text, "http://h/feed")
		require.NoError(t, err)
		var there, back bytes.Buffer
		require.NoError(t, write(&there, doc))
		wellFormed(t, there.Bytes())
		doc, err = parse(there.String(), "http://h/feed")
		require.NoError(t, err)
		require.NoError(t, compose.WriteAtom(&back, doc))
		wellFormed(t, back.Bytes())
		doc, err = parse(back.String(), "http://h/feed")
		require.NoError(t, err)
		return doc, back.String()
	}
	others := `<%s>zzcopy</%[1]s><generator url="http://g/">zzgen</generator><contributor><name>zzwho</name></contributor>`
	entry := `<entry><id>urn:1</id><title>T</title><contributor><name>zzwhom</name></contributor></entry></feed>`
	for name, text := range map[string]string{
		"Atom 0.3":               `<feed version="0.3" xmlns="` + feedxml.Atom03 + `">` + fmt.Sprintf(others, "copyright") + entry,
		"Atom with no namespace": `<feed>` + fmt.Sprintf(others, "rights") + entry,
	} {
		t.Run(name, func(t *testing.T) {
			_, back := through(t, text, compose.WriteRSS)
			for _, want := range []string{">zzcopy</rights>", ">zzgen</generator>", "<name>zzwho</name>", "<name>zzwhom</name>"} {
				require.Contains(t, back, want)
			}
		})
	}
	for _, title := range []string{"say <code>what</code>?", "Use <div> in HTML", "AT&amp;T", "AT&T", "a < b", "&lt;b&gt;", `"quotes" & 'others'`} {
		t.Run(title, func(t *testing.T) {
			escaped := html.EscapeString(title)
			doc, _ := through(t, `<feed xmlns="`+feedxml.Atom+`"><title>`+escaped+`</title><entry><id>urn:1</id><title>`+escaped+`</title></entry></feed>`, compose.WriteRSS)
			require.Equal(t, title, doc.Title)
			require.Equal(t, title, doc.Entries[0].Title().Plain())
		})
	}
	t.Run("the page of an episode without a link", func(t *testing.T) {
		doc, _ := through(t, `<rss version="2.0"><channel><title>F</title><item><title>T</title><guid>http://h/1</guid><enclosure url="http://h/1.mp3" length="1" type="audio/mpeg"/></item></channel></rss>`, compose.WriteRSS)
		page, _ := doc.Entries[0].Links.Rel("alternate")
		require.Equal(t, "http://h/1", page.Href)
	})
	t.Run("the source of an item with a relative address", func(t *testing.T) {
		doc, _ := through(t, `<rss version="2.0"><channel><title>F</title><item><guid>http://h/1</guid><source url="list.xml">S</source></item></channel></rss>`, compose.WriteAtom)
		var b bytes.Buffer
		require.NoError(t, compose.WriteRSS(&b, doc))
		require.Contains(t, b.String(), `<source url="http://h/list.xml">S</source>`)
	})
}

// An entry without an author has its own document's (RFC 4287 §4.2.1), wherever it is moved.
func TestWhoseWords(t *testing.T) {
	feed := func(author, entry string) *Document {
		doc, err := parse(`<feed xmlns="`+feedxml.Atom+`"><id>f</id>`+entry+`<author><name>`+author+`</name></author></feed>`, "http://h/"+author[:3])
		require.NoError(t, err)
		return doc
	}
	head, archive := feed("New", `<entry><id>2</id></entry>`), feed("Old", `<entry><id>1</id></entry><entry><id>0</id><author><name>Own</name></author></entry>`)
	h, err := Merge(Readings(head, archive))
	require.NoError(t, err)
	for _, write := range []func(io.Writer, *Document) error{compose.WriteAtom, compose.WriteRSS} {
		var b bytes.Buffer
		require.NoError(t, write(&b, compose.History(h)))
		wellFormed(t, b.Bytes())
		again, err := Parse(&b, "")
		require.NoError(t, err)
		for i, want := range []string{"New", "Old", "Own"} {
			item, err := togofeed.Item(again.Entries[i])
			require.NoError(t, err)
			require.Len(t, item.Authors, 1)
			require.Equal(t, want, item.Authors[0].Name)
		}
	}
	signed := archive.Entries[0].Signed()
	require.NotContains(t, string(archive.Entries[0].XML()), "<author", "an entry as published")
	stored, err := ReadEntry(FormatAtom, string(signed.XML()), "")
	require.NoError(t, err)
	require.Same(t, stored, stored.Signed(), "nothing is added twice")
	require.Contains(t, string(stored.XML()), "<name>Old</name>")
	require.Same(t, archive.Entries[1], archive.Entries[1].Signed())
	anonymous := feed(strings.Repeat("x", 5000), `<entry><id>1</id></entry>`).Entries[0]
	require.Same(t, anonymous, anonymous.Signed(), "a name that long")
}

// What only lenient readers can read is written so that all can.
func TestMisspeltIsWrittenRight(t *testing.T) {
	doc, err := parse(`<RSS xmlns:i="https://www.itunes.com/dtds/podcast-1.0.dtd/"><Channel><Item><GUID isPermalink="false">1</GUID><Title>T</Title><pubdate>Sat, 13 Dec 2003 18:30:02 GMT</pubdate></Item><item><guid>2</guid><i:duration>9</i:duration></item></Channel></RSS>`, "")
	require.NoError(t, err)
	require.Len(t, doc.Entries, 2)
	var b bytes.Buffer
	require.NoError(t, compose.WriteRSS(&b, doc))
	require.Contains(t, b.String(), `<guid isPermaLink="false">1</guid>`)
	require.Contains(t, b.String(), "<pubDate>Sat, 13 Dec 2003 18:30:02 +0000</pubDate>")
	again, err := Parser{Strict: true}.Parse(&b, "")
	require.NoError(t, err)
	require.Equal(t, "T", again.Entries[0].Title().Body)
	item, err := togofeed.Item(doc.Entries[1])
	require.NoError(t, err)
	require.Equal(t, "9", item.ITunesExt.Duration)
}
