package feedhistory_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/togofeed"
)

// parseText reads a document.
func parseText(text, base string) (*Document, error) { return Parse(strings.NewReader(text), base) }

// entryOf reads a document's only entry.
func entryOf(t *testing.T, text string) *Entry {
	doc, err := parseText(text, "http://h/feed")
	require.NoError(t, err, text)
	require.Len(t, doc.Entries, 1, text)
	return doc.Entries[0]
}

// Characters that XML forbids are removed from texts, wherever they are.
func TestControlCharactersAreLeftOut(t *testing.T) {
	for _, inner := range []string{"a\x01b", "<![CDATA[a\x01b]]>", "&lt;p>a\x01b&lt;/p>"} {
		e := entryOf(t, "<rss><channel><item><description>"+inner+"</description><guid>1</guid></item></channel></rss>")
		require.Equal(t, "ab", e.Summary().Plain(), inner)
		item, err := togofeed.Item(e)
		require.NoError(t, err)
		require.NotContains(t, item.Description, "\x01", inner)
	}
}

// If there are elements among the characters, the publisher did not escape the markup.
func TestMarkupThatNobodyEscaped(t *testing.T) {
	const markup = `<p>See <a href="/x">this</a>: <code>&lt;script&gt;</code><br/></p>`
	want := Text{Type: "html", Body: `<p>See <a href="/x">this</a>: <code>&lt;script&gt;</code><br></p>`, Base: "http://h/feed"}
	rss := func(inner string) string {
		return `<rss xmlns:content="` + feedxml.Content + `" xmlns:dc="` + feedxml.DC + `"><channel><item><guid>1</guid>` + inner + `</item></channel></rss>`
	}
	atom := func(inner string) string {
		return `<feed xmlns="` + feedxml.Atom + `"><entry><id>1</id>` + inner + `</entry></feed>`
	}
	for name, test := range map[string]struct {
		text string
		read func(*Entry) Text
	}{
		"rss description":  {rss("<description>" + markup + "</description>"), (*Entry).Summary},
		"rss title":        {rss("<title>" + markup + "</title>"), (*Entry).Title},
		"content:encoded":  {rss("<content:encoded>" + markup + "</content:encoded>"), (*Entry).Content},
		"dc:description":   {rss("<dc:description>" + markup + "</dc:description>"), (*Entry).Summary},
		"atom html":        {atom(`<content type="html">` + markup + "</content>"), (*Entry).Content},
		"atom text":        {atom("<summary>" + markup + "</summary>"), (*Entry).Summary},
		"atom title, html": {atom(`<title type="html">` + markup + "</title>"), (*Entry).Title},
	} {
		require.Equal(t, want, test.read(entryOf(t, test.text)), name)
	}
	bases := entryOf(t, rss(`<description xml:base="http://a/b/"><p xml:base="c/"><img src="d"/></p></description>`)).Summary()
	require.Equal(t, `<p><img src="http://a/b/c/d"></p>`, bases.HTML())
	item, err := togofeed.Item(entryOf(t, rss("<description>"+markup+"</description>")))
	require.NoError(t, err)
	require.Equal(t, `<p>See <a href="http://h/x">this</a>: <code>&lt;script&gt;</code><br></p>`, item.Description)
	escaped := entryOf(t, rss("<description>&lt;p>a &amp;lt; b</description>")).Summary()
	require.Equal(t, "<p>a &lt; b", escaped.Body, "what is escaped stays as it was")
	doc, err := parseText(`<rss><channel><title>A <b>c</b></title><description>d <i>e</i></description></channel></rss>`, "")
	require.NoError(t, err)
	require.Equal(t, "A c", doc.Title)
	require.Equal(t, "d e", doc.Subtitle)
}

// base64 is only for content of a media type (RFC 4287 §3.1.1, §4.1.3.3).
func TestTypes(t *testing.T) {
	for _, test := range []struct{ element, want, body string }{
		{`<title type="plain">abcd</title>`, "text", "abcd"},
		{`<title type="text/plain">abcd</title>`, "text", "abcd"},
		{`<title type="markdown">abcd</title>`, "text", "abcd"},
		{`<title type="image/png">abcd</title>`, "text", "abcd"},
		{`<title type="HTML">&lt;b></title>`, "html", "<b>"},
		{`<title type="text/html">&lt;b></title>`, "html", "<b>"},
		{`<content type="markdown">abcd</content>`, "text", "abcd"},
		{`<content type="text/markdown">abcd</content>`, "text/markdown", "abcd"},
		{`<content type="application/octet-stream">YWJj</content>`, "application/octet-stream", "abc"},
		{`<content type="application/json">{}</content>`, "application/json", "{}"},
		{`<content type="image/svg+xml"><svg xmlns="http://www.w3.org/2000/svg"/></content>`, "image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg"/>`},
		{`<title mode="base64">YWJj</title>`, "text", "abc"},
	} {
		e := entryOf(t, `<feed xmlns="`+feedxml.Atom+`"><entry><id>1</id>`+test.element+`</entry></feed>`)
		got := e.Title()
		if test.element[1] == 'c' {
			got = e.Content()
		}
		require.Equal(t, test.want, got.Type, test.element)
		require.Equal(t, test.body, got.Body, test.element)
	}
}

func TestPlain(t *testing.T) {
	require.Equal(t, "a\nb", Text{Type: "html", Body: "<p>a<p>b"}.Plain())
	require.Equal(t, "<p>", Text{Type: "text", Body: "<p>"}.Plain())
}

// An empty xml:lang ends the scope of another (XML 1.0 §2.12).
func TestLanguageThatEnds(t *testing.T) {
	e := entryOf(t, `<feed xmlns="`+feedxml.Atom+`" xml:lang="en"><entry><id>1</id><title xml:lang="">a</title><summary>b</summary></entry></feed>`)
	require.Empty(t, e.Title().Lang)
	require.Equal(t, "en", e.Summary().Lang)
	e = entryOf(t, `<feed xmlns="`+feedxml.Atom+`" xml:lang="en"><entry xml:lang=""><id>1</id><summary>b</summary></entry></feed>`)
	require.Empty(t, e.Summary().Lang)
	stored, err := ReadEntry(FormatAtom, string(e.XML()), "")
	require.NoError(t, err)
	require.Empty(t, stored.Summary().Lang)
}

// An enclosure without a URL is none, and does not lead to the feed itself.
func TestEnclosureWithoutURL(t *testing.T) {
	e := entryOf(t, `<rss><channel><item><guid>1</guid><enclosure url="" type="audio/mpeg"/><enclosure url=" a.mp3 "/></item></channel></rss>`)
	require.Len(t, e.Links, 1)
	item, err := togofeed.Item(e)
	require.NoError(t, err)
	require.Len(t, item.Enclosures, 1)
	require.Equal(t, "http://h/a.mp3", item.Enclosures[0].URL)
}

// Misspelt names are read as meant, and noted.
func TestNames(t *testing.T) {
	doc, err := parseText(`<RSS xmlns:dc="https://purl.org/dc/elements/1.1" xmlns:t="http://purl.org/dc/terms" xmlns:c="purl.org/rss/1.0/modules/content" xmlns:m="http://search.yahoo.com/mrss"><Channel>
		<dc:title>Feed</dc:title><TTL>60</TTL>
		<Item><GUID>1</GUID><m:title>Media</m:title><t:issued>2003-12-13</t:issued><c:encoded>x</c:encoded></Item></Channel></RSS>`, "")
	require.NoError(t, err)
	require.Equal(t, "Feed", doc.Title)
	require.NotZero(t, doc.Schedule.Every)
	e := doc.Entries[0]
	require.Equal(t, "1", e.ID)
	require.Equal(t, 2003, e.Published.Year())
	require.Equal(t, "Media", e.Title().Body)
	require.Equal(t, "x", e.Content().Body)
	codes := map[string]bool{}
	for _, n := range doc.Notes {
		codes[n.Code] = true
	}
	require.Equal(t, map[string]bool{"name-misspelt": true, "namespace-misspelt": true}, codes)

	doc, err = parseText(`<feed xmlns="https://www.w3.org/2005/Atom/"><entry><id>1</id><link>http://h/1</link></entry></feed>`, "")
	require.NoError(t, err)
	require.Equal(t, Links{{Rel: "alternate", Href: "http://h/1"}}, doc.Entries[0].Links)
	doc, err = parseText(`<feed xmlns="`+feedxml.Atom+`" xmlns:fh="http://purl.org/syndication/history/1.0/"><fh:complete/></feed>`, "")
	require.NoError(t, err)
	require.True(t, doc.Complete, "who writes this means no other namespace")
	require.Equal(t, "namespace-misspelt", doc.Notes[0].Code)
	doc, err = parseText(`<feed xmlns="`+feedxml.Atom+`" xmlns:fh="http://purl.org/syndication/history/2.0"><fh:complete/></feed>`, "")
	require.NoError(t, err)
	require.False(t, doc.Complete, "another version may mean something else")
}

// A misspelt name has one note, wherever it is and however often it is asked for.
func TestNamesNotedOnce(t *testing.T) {
	for text, want := range map[string]int{
		"<rss><channel><Title>a</Title><Link>http://h/</Link><PubDate>2003-12-13</PubDate><item><guid>1</guid></item></channel></rss>":    3,
		"<rss><Channel><item><GUID>1</GUID><Title>a</Title></item></Channel></rss>":                                                       3,
		`<feed xmlns="http://www.w3.org/2005/Atom"><Title>a</Title><Link href="/a"/><Entry><Id>1</Id><Title>b</Title></Entry></feed>`:     5,
		`<feed xmlns="http://www.w3.org/2005/atom"><title>a</title><entry><id>1</id></entry><entry><id>2</id></entry></feed>`:             1,
		`<rss xmlns:d="https://purl.org/dc/elements/1.1"><channel><d:title>a</d:title><item><d:date>2003</d:date></item></channel></rss>`: 1,
	} {
		doc, err := Parse(strings.NewReader(text), "")
		require.NoError(t, err, text)
		got := 0
		for _, n := range doc.Notes {
			if n.Code == "name-misspelt" || n.Code == "namespace-misspelt" {
				got++
			}
		}
		require.Equal(t, want, got, "%s: %v", text, doc.Notes)
	}
}

// A document is read in the memory of the ones before, and has nothing of them.
func TestDocumentAfterAnother(t *testing.T) {
	texts := []string{
		`<rss xmlns:d="https://purl.org/dc/elements/1.1"><channel><Title>a</Title><item><guid>1</guid><d:title>b</d:title></item></channel></rss>`,
		`<rss xmlns:d="urn:x"><channel><title>a</title><item><guid>1</guid><title>c</title><d:title>b</d:title></item></channel></rss>`,
		`<feed xmlns="http://www.w3.org/2005/atom"><title>a</title><entry xml:base="http://i/"><id>1</id><Title>d</Title><content src="e"/></entry></feed>`,
		`<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://j/" xml:lang="en"><title>a</title><entry><id>1</id><title>d</title><content src="e"/></entry></feed>`,
		"<rss><channel><title>a</title><item><guid>1</guid><title>f &bogus; \r\x01</title></item></channel></rss>",
		"<rss><channel><title>a</title><item><guid>1</guid><title>g</item></channel></rss>", // mended
	}
	said := func(text string) string {
		doc, err := parseText(text, "http://h/f")
		require.NoError(t, err, text)
		e := doc.Entries[0]
		return fmt.Sprintln(doc.Title, doc.Notes, e.ID, e.Title(), e.Content(), string(e.XML()))
	}
	alone := map[string]string{}
	for _, text := range texts {
		runtime.GC() // twice, and there is no memory used before
		runtime.GC()
		alone[text] = said(text)
	}
	rapid.Check(t, func(r *rapid.T) {
		for _, text := range rapid.SliceOfN(rapid.SampledFrom(texts), 1, 8).Draw(r, "texts") {
			require.Equal(r, alone[text], said(text))
		}
	})
}

// References in HTML are made absolute in all attributes that have them; one to a place in the
// same text stays.
func TestReferencesInHTML(t *testing.T) {
	for file, want := range map[string]string{
		"html-references.rss": `<picture><source srcset="http://example.net/dir/a.png 1x, http://example.net/b.png 2x"><img src="http://example.net/dir/a.png" srcset="https://cdn.example/a.png, http://example.net/dir/a,1.png 100w" data-src="http://example.net/dir/late.png"></picture>
<button formaction="http://example.net/dir/go">x</button><svg><image xlink:href="http://example.net/dir/c.svg"/></svg><a href="#fn:1">1</a><p id="fn:1"><img usemap="#m">`,
		"html-references-xhtml.atom": `<div><img srcset="http://example.net/b/c/a.png 1x, http://example.net/b.png 2x"><svg><image xlink:href="http://example.net/b/c/c.svg"></image></svg><a href="#fn">1</a></div><img srcset="http://example.net/b/d.png 2x">`,
	} {
		doc, err := Parse(bytes.NewReader(feedtest.ReadFile(t, "testdata/parse/"+file)), "http://example.net/dir/feed")
		require.NoError(t, err, file)
		item, err := togofeed.Item(doc.Entries[0])
		require.NoError(t, err, file)
		require.Equal(t, want, item.Content, file)
	}
}

// An entry for a video has its texts in media:group; an element of the format itself takes
// precedence.
func TestMediaTexts(t *testing.T) {
	const group = `<m:group><m:title>Title</m:title><title>no</title><m:description>1 < 2 & 3</m:description></m:group>`
	for inner, want := range map[string][2]string{
		group:                                  {"Title", "1 < 2 & 3"},
		`<m:description>alone</m:description>`: {"", "alone"},
		`<m:content><m:description>of a picture</m:description></m:content>`: {"", ""},
		group + `<title>own</title>`:                                         {"own", "1 < 2 & 3"},
	} {
		inner = strings.ReplaceAll(strings.ReplaceAll(inner, " < ", " &lt; "), " & ", " &amp; ")
		for _, text := range []string{
			`<feed xmlns="` + feedxml.Atom + `" xmlns:m="` + feedxml.Media + `"><entry><id>1</id>` + inner + `</entry></feed>`,
			`<rss xmlns:m="` + feedxml.Media + `"><channel><item><guid>1</guid>` + inner + `</item></channel></rss>`,
		} {
			e := entryOf(t, text)
			require.Equal(t, want[0], e.Title().Body, text)
			require.Equal(t, want[1], e.Summary().Body, text)
			require.Empty(t, e.Content())
			item, err := togofeed.Item(e)
			require.NoError(t, err)
			require.Equal(t, [2]string{want[0], e.Summary().Body}, [2]string{item.Title, item.Description})
			if want[1] != "" {
				require.Equal(t, "text", e.Summary().Type)
			}
		}
	}
	html := entryOf(t, `<rss xmlns:m="http://search.yahoo.com/mrss"><channel><item><guid>1</guid><m:description type="html">&lt;b></m:description></item></channel></rss>`)
	require.Equal(t, Text{Type: "html", Body: "<b>", Base: "http://h/feed"}, html.Summary())
	described := entryOf(t, `<rss xmlns:m="`+feedxml.Media+`"><channel><item><guid>1</guid>`+`<m:description>m</m:description><description>own</description></item></channel></rss>`)
	require.Equal(t, "own", described.Summary().Body)
}

// If an item has no other text, one in elements that are not RSS's is used.
func TestTextsThatRSSDoesNotHave(t *testing.T) {
	for inner, want := range map[string][2]string{
		`<summary>s</summary><content>c</content>`:                   {"s", "c"},
		`<summary>s</summary><description>d</description>`:           {"d", ""},
		`<content type="html">&lt;b></content>`:                      {"", "<b>"},
		`<body xmlns="http://www.w3.org/1999/xhtml"><p>1</p></body>`: {"", "<p>1</p>"},
		`<body>1</body>`: {"", "1"},
		`<fullitem>1</fullitem><content>2</content>`:                         {"", "2"},
		`<body>1</body><content:encoded>2</content:encoded>`:                 {"", "2"},
		`<x:body xmlns:x="u">1</x:body><x:content xmlns:x="u">1</x:content>`: {"", ""},
	} {
		e := entryOf(t, `<rss xmlns:content="`+feedxml.Content+`"><channel><item><guid>1</guid>`+inner+`</item></channel></rss>`)
		require.Equal(t, want, [2]string{e.Summary().Body, e.Content().Body}, inner)
		item, err := togofeed.Item(e)
		require.NoError(t, err)
		require.Equal(t, want, [2]string{item.Description, item.Content}, inner)
	}
}

// In RSS without xml:base, references resolve against the item's own page, wherever the item is read.
func TestBaseOfRSS(t *testing.T) {
	const text, url = `<description>&lt;img src="i.png"></description>`, "http://h/feeds/feed.xml"
	long := "http://h/" + strings.Repeat("x", 2000) + "/"
	for _, tt := range []struct{ name, head, item, want string }{
		{"its link", "", `<link>http://h/posts/1/</link>`, "http://h/posts/1/"},
		{"its permalink", "", `<guid>http://h/posts/1/</guid>`, "http://h/posts/1/"},
		{"on the site of a feed elsewhere", `<link>https://site/</link>`, `<link>https://site/1</link>`, "https://site/1"},
		{"a page the item is about", `<link>https://site/</link>`, `<link>https://other/1</link>`, url},
		{"no link", "", `<guid>1</guid>`, url},
		{"a relative link", "", `<link>/posts/1/</link>`, url},
		{"a relative enclosure", "", `<link>http://h/posts/1/</link><enclosure url="1.mp3"/>`, url},
		{"a long link", "", `<link>` + long + `</link>`, long},
		{"a long link, and many references", "", `<link>` + long + `</link><x>` + strings.Repeat("&lt;a href=x>", 2000) + `</x>`, url},
	} {
		doc, err := Parse(strings.NewReader("<rss><channel>"+tt.head+"<item>"+tt.item+text+"</item></channel></rss>"), url)
		require.NoError(t, err)
		e := doc.Entries[0]
		require.Equal(t, tt.want, e.Summary().Base, tt.name)
		item, err := togofeed.Item(e)
		require.NoError(t, err)
		require.Equal(t, `<img src="`+iri.Resolve(tt.want, "i.png")+`">`, item.Description, tt.name)
		again, err := ReadEntry(FormatRSS, string(e.XML()), "")
		require.NoError(t, err)
		require.Equal(t, e.Summary(), again.Summary(), tt.name)
		require.Equal(t, e.Links, again.Links, tt.name)
	}
	for _, based := range []string{
		`<rss xml:base="http://h/b/"><channel><item><link>http://h/1/</link>` + text + `</item></channel></rss>`,
		`<rss><channel xml:base="http://h/b/"><item><link>http://h/1/</link>` + text + `</item></channel></rss>`,
		`<rss><channel><item xml:base="/b/"><link>http://h/1/</link>` + text + `</item></channel></rss>`,
		`<feed xmlns="` + feedxml.Atom + `" xml:base="/b/"><entry><link href="http://h/1/"/><summary>x</summary></entry></feed>`,
	} {
		doc, err := Parse(strings.NewReader(based), url)
		require.NoError(t, err)
		require.Equal(t, "http://h/b/", doc.Entries[0].Summary().Base)
	}
}

// A text does not depend on the texts read before it, though one reading serves several of them.
func TestTextsInAnyOrder(t *testing.T) {
	const entry = `<entry><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">c</div></content><title>t</title><summary type="html">&lt;i&gt;s</summary></entry>`
	var entries []*Entry
	for _, doc := range []struct{ base, text string }{ // neighbours differ in one thing
		{"http://example.org/", `<rss xmlns:c="http://www.w3.org/2005/Atom"><channel><item><title>t</title><c:summary>&lt;</c:summary></item></channel></rss>`},
		{"http://example.org/", `<rss xmlns:c="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel><item><title>t</title><c:summary>&lt;</c:summary></item></channel></rss>`},
		{"http://example.org/", `<rss><channel><item><title>t &amp;amp; u</title><description>1 &amp;lt;</description></item><item><title>t &amp;amp; u</title><description>2 &amp;lt;</description></item></channel></rss>`},
		{"http://example.com/", `<rss><channel><item><title>t &amp;amp; u</title><description>1 &amp;lt;</description></item></channel></rss>`},
		{"http://example.com/", `<rss xml:lang="de"><channel><item><title>t &amp;amp; u</title><description>1 &amp;lt;</description></item></channel></rss>`},
		{"http://example.com/", `<rss xmlns:c="http://search.yahoo.com/mrss/"><channel><item><c:group><c:title>m</c:title><c:description>d</c:description></c:group></item></channel></rss>`},
		{"", `<feed xmlns="http://www.w3.org/2005/Atom">` + entry + `</feed>`},
	} {
		read, err := parseText(doc.text, doc.base)
		require.NoError(t, err)
		entries = append(entries, read.Entries...)
	}
	texts := []func(*Entry) Text{(*Entry).Title, (*Entry).Summary, (*Entry).Content}
	want := map[[2]int]Text{}
	other := entryOf(t, `<rss><channel><item><title>another</title></item></channel></rss>`)
	for i, e := range entries {
		for k, read := range texts {
			other.Title()
			want[[2]int{i, k}] = read(e)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		for range 50 {
			i, k := rapid.IntRange(0, len(entries)-1).Draw(t, "entry"), rapid.IntRange(0, 2).Draw(t, "text")
			require.Equal(t, want[[2]int{i, k}], texts[k](entries[i]), "entry %d, text %d", i, k)
			if rapid.IntRange(0, 9).Draw(t, "again") == 0 {
				_, err := togofeed.Item(entries[i])
				require.NoError(t, err)
			}
		}
	})
}
