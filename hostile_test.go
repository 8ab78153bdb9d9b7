package feedhistory_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/togofeed"
)

// hostile are documents that have made other readers fail. Each is refused or read, and
// needs little memory, whatever is done with it.
var hostile = map[string]func() string{
	"2.5 million nested elements": func() string {
		return `<feed xmlns="http://www.w3.org/2005/Atom">` + strings.Repeat("<a>", 2_500_000)
	},
	"1.7 MB of namespace declarations, nested": func() string {
		var b strings.Builder
		b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>1</id>`)
		for i := 0; b.Len() < 1_700_000; i++ {
			fmt.Fprintf(&b, `<n%d:a xmlns:n%d="urn:%d">`, i, i, i)
		}
		return b.String()
	},
	"1.7 MB of namespace declarations, side by side": func() string {
		var b strings.Builder
		b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>1</id>`)
		for i := 0; b.Len() < 1_700_000; i++ {
			fmt.Fprintf(&b, `<n%d:a xmlns:n%d="urn:%d"/>`, i, i, i)
		}
		return b.String() + "</entry></feed>"
	},
	"1.7 MB of namespace declarations on one element": func() string {
		var b strings.Builder
		b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom"`)
		for i := 0; b.Len() < 1_700_000; i++ {
			fmt.Fprintf(&b, ` xmlns:n%d="urn:%d"`, i, i)
		}
		return b.String() + "/>"
	},
	"a billion laughs": func() string {
		var b strings.Builder
		b.WriteString("<!DOCTYPE feed [<!ENTITY l0 \"lol\">\n")
		for i := 1; i < 10; i++ {
			fmt.Fprintf(&b, "<!ENTITY l%d \"%s\">\n", i, strings.Repeat(fmt.Sprintf("&l%d;", i-1), 10))
		}
		return b.String() + `]><feed xmlns="http://www.w3.org/2005/Atom"><title>&l9;</title><entry><id>1</id><title>&l9;</title></entry></feed>`
	},
	"3 MB of an extension's text broken by comments": func() string {
		return `<rss><channel><item><guid>1</guid><x:y xmlns:x="urn:x">` + strings.Repeat("abc<!-- -->", 3<<20/11) + `</x:y></item></channel></rss>`
	},
	"3 MB of an extension's text broken by elements": func() string {
		return `<rss><channel><item><guid>1</guid><x:y xmlns:x="urn:x">` + strings.Repeat("abc<b/>", 3<<20/7) + `</x:y></item></channel></rss>`
	},
	"unclosed font in escaped html": func() string { return contentOf(`<content type="html">`, fonts("&lt;"), "</content>") },
	"unclosed font in CDATA html": func() string {
		return contentOf(`<content type="html"><![CDATA[`, fonts("<"), "]]></content>")
	},
	"unclosed font in xhtml, escaped": func() string {
		return contentOf(`<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">`, fonts("&lt;"), "</div></content>")
	},
	"unclosed font in xhtml, CDATA": func() string {
		return contentOf(`<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><![CDATA[`, fonts("<"), "]]></div></content>")
	},
	"unclosed font in rights": func() string { return contentOf(`<rights type="html">`, fonts("&lt;"), "</rights>") },
	"unclosed font in an author's name": func() string {
		return contentOf(`<author><name type="html">`, fonts("&lt;"), "</name></author>")
	},
	"unclosed font in a description": func() string {
		return `<rss><channel><item xml:base="http://example.org/a/"><guid>1</guid><description>` + fonts("&lt;") + `</description></item></channel></rss>`
	},
	"unclosed font in dc:description": func() string {
		return `<rss><channel><item><guid>1</guid><dc:description xmlns:dc="http://purl.org/dc/elements/1.1/">` + fonts("&lt;") + `</dc:description></item></channel></rss>`
	},
	"a million odd dates": func() string {
		return `<rss><channel>` + strings.Repeat(`<item><guid>1</guid><pubDate>Heute, 3. Juni im Jahre 2003 GMT</pubDate></item>`, 49_000) + `</channel></rss>`
	},
	"a million links": func() string {
		return `<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>1</id>` + strings.Repeat(`<link href="a"/>`, 900_000) + `</entry></feed>`
	},
	"a million links in the head": func() string {
		return `<feed xmlns="http://www.w3.org/2005/Atom">` + strings.Repeat(`<link href="a"/>`, 900_000) + `</feed>`
	},
	"a relation of a million names": func() string {
		return `<feed xmlns="http://www.w3.org/2005/Atom"><link href="a" rel="` + strings.Repeat("next ", 1_000_000) + `"/></feed>`
	},
	"a million ampersands": func() string {
		return contentOf("<content>", strings.Repeat("& ", 1_000_000), "</content>")
	},
	"60,000 entries": func() string {
		return `<feed xmlns="http://www.w3.org/2005/Atom">` + strings.Repeat(`<entry><id>1</id></entry>`, 60_000) + `</feed>`
	},
	"a long id": func() string { return contentOf("<id>", strings.Repeat("x", 1_000_000), "</id>") },
	"a long link": func() string {
		return contentOf(`<link href="http://example.org/`, strings.Repeat("../x", 1_000_000), `"/>`)
	},
	"nested xml:base": func() string {
		return `<feed xmlns="http://www.w3.org/2005/Atom">` + strings.Repeat(`<entry xml:base="`+strings.Repeat("a/", 2000)+`">`, 200) + `<link href="x"/>`
	},
	"a million end tags that match nothing": func() string {
		return `<rss><channel>` + strings.Repeat("<d>", 250) + strings.Repeat(`</b>`, 4_000_000)
	},
	"a million items without end tags": func() string {
		return `<rss><channel>` + strings.Repeat(`<item><guid>1`, 900_000) + `</channel></rss>`
	},
	"60,000 breaks": func() string {
		return `<rss><channel><item><guid>1</guid><description>` + strings.Repeat(`<br>`, 60_000) + `</description></item></channel></rss>`
	},
	"paragraphs without end tags, in 240 others": func() string {
		return `<rss><channel><item><guid>1</guid><description>` + unclosed(240) + strings.Repeat(`<p>`, 60_000) + `</description></item></channel></rss>`
	},
	"60,000 values without quotes": func() string {
		return `<rss><channel><item><guid>1</guid><description>` + strings.Repeat(`<b c=d e='f>`, 60_000) + `</description></item></channel></rss>`
	},
	"a million of <": func() string {
		return `<rss><channel><item><guid>1</guid><description>` + strings.Repeat(`<`, 1_000_000) + `</description></item></channel></rss>`
	},
	"200 KB of a namespace's name, and 1,000 entries": func() string {
		return `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:x="` + strings.Repeat("u", 200_000) + `"><x:a/>` +
			strings.Repeat(`<entry><id>1</id><x:a/></entry>`, 1000) + `</feed>`
	},
	"8 KB of xml:base, and 60,000 links": func() string {
		return `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://example.org/` + strings.Repeat("b", 8000) + `/">` +
			strings.Repeat(`<entry><id>1</id>`+strings.Repeat(`<link href="x"/>`, 60)+`</entry>`, 1000) + `</feed>`
	},
	"8 KB of xml:base, and 60,000 references in HTML": func() string {
		return `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://example.org/` + strings.Repeat("b", 8000) + `/">` +
			`<entry><id>1</id><content type="html">` + strings.Repeat(`&lt;a href=x>`, 60_000) + `</content></entry></feed>`
	},
	"8 KB of URL, and 60,000 attachments": func() string {
		return `{"version":"https://jsonfeed.org/version/1.1","items":[` +
			strings.Repeat(`{"id":"1","attachments":[`+strings.Repeat(`{"url":"a"},`, 60)+`{"url":"a"}]},`, 1000) + `{}]}`
	},
	"8 MB of URLs without an end": func() string {
		return contentOf(`<content type="html">&lt;a `, strings.Repeat("href=http://", 8<<20/12), "</content>")
	},
	"200 nested bases, and bases in turn": func() string {
		return contentOf(`<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">`+strings.Repeat(`<p xml:base="a/">`, 200),
			strings.Repeat(`<a xml:base="" href="x"/>`, 40_000), strings.Repeat("</p>", 200)+"</div></content>")
	},
	"JSON with 100,000 links in the head": func() string {
		return `{"version":"https://jsonfeed.org/version/1","items":[],` + strings.Repeat(`"next_url":"a",`, 100_000) + `"title":""}`
	},
	"JSON nested": func() string {
		return `{"version":"https://jsonfeed.org/version/1","items":` + strings.Repeat("[", 1_000_000)
	},
	"JSON with many items": func() string {
		return `{"version":"https://jsonfeed.org/version/1","items":[` + strings.Repeat(`{},`, 1_000_000) + `{}]}`
	},
}

// unclosed returns elements without end tags, each with another name.
func unclosed(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "<u%d>", i)
	}
	return b.String()
}

// fonts is the worst case of the adoption agency algorithm: HTML's rules clone every
// unclosed font into every paragraph.
func fonts(lt string) string {
	return strings.Repeat(lt+"font>", 400) + strings.Repeat(lt+"p>", 16_000)
}

func contentOf(start, body, end string) string {
	return `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://example.org/"><entry><id>1</id>` + start + body + end + `</entry></feed>`
}

// hostileURL is their URL.
var hostileURL = "http://example.org/" + strings.Repeat("u", 8000) + "/feed"

// uses are the things that a reader does with a document.
var uses = map[string]func(e *Entry){
	"title":   func(e *Entry) { _ = e.Title().Plain() },
	"summary": func(e *Entry) { _ = e.Summary().Plain() },
	"content": func(e *Entry) { _ = e.Content().Plain() },
	"xml":     func(e *Entry) { _ = e.XML() },
	"decode":  func(e *Entry) { _, _ = togofeed.Item(e) },
}

func TestHostileDocuments(t *testing.T) {
	for name, make := range hostile {
		t.Run(name, func(t *testing.T) {
			text := make()
			var doc *Document
			var err error
			used := feedtest.Allocated(func() { doc, err = parseText(text, hostileURL) })
			t.Logf("%d bytes read, %d allocated: %v", len(text), used, err)
			require.Less(t, used, int64(50<<20), "bytes allocated by Parse")
			if err != nil {
				parse := feedtest.ErrorAs[*ParseError](t, err)
				require.NotEmpty(t, parse.Clause)
			}
			if doc == nil {
				return
			}
			for _, e := range doc.Entries[:min(len(doc.Entries), 3)] {
				for name, use := range uses {
					require.Less(t, feedtest.Allocated(func() { use(e) }), int64(50<<20), "bytes allocated by %s", name)
				}
			}
		})
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, make := range hostile {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			text := make()
			b.ReportAllocs()
			for b.Loop() {
				doc, _ := parseText(text, hostileURL)
				if doc == nil {
					continue
				}
				for _, e := range doc.Entries[:min(len(doc.Entries), 3)] {
					for _, use := range uses {
						use(e)
					}
				}
			}
		})
	}
}
