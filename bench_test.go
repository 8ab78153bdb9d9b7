package feedhistory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mmcdole/gofeed"
	"github.com/stretchr/testify/require"
)

// generated returns a feed of n entries with content of about size bytes.
func generated(format Format, n, size int) string {
	paragraph := "&lt;p&gt;All work and no play makes Jack a &lt;a href=\"http://example.org/dull\"&gt;dull&lt;/a&gt; boy, &amp;amp; so on &amp;mdash; thus it goes.&lt;/p&gt;\n"
	body := strings.Repeat(paragraph, max(1, size/len(paragraph)))
	var b strings.Builder
	if format == Atom {
		b.WriteString(`<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0">
<title>Example</title><id>urn:feed</id><updated>2003-12-13T18:30:02Z</updated><fh:archive/>
<link rel="prev-archive" href="http://example.org/2003/10/index.atom"/><link rel="self" href="http://example.org/2003/11/index.atom"/>
`)
		for i := range n {
			fmt.Fprintf(&b, `<entry>
<title>Entry number %d</title><link href="http://example.org/2003/12/13/atom%d"/>
<id>urn:uuid:1225c695-cfb8-4ebb-aaaa-%012d</id><updated>2003-12-13T18:30:02Z</updated><published>2003-12-13T18:30:02Z</published>
<author><name>John Doe</name></author><category term="news"/>
<content type="html">%s</content>
</entry>
`, i, i, i, body)
		}
		b.WriteString("</feed>\n")
		return b.String()
	}
	b.WriteString(`<?xml version="1.0"?>
<rss version="2.0" xmlns:fh="http://purl.org/syndication/history/1.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel>
<title>Example</title><link>http://example.org/</link><description>Example</description><lastBuildDate>Fri, 30 May 2003 11:06:42 GMT</lastBuildDate><fh:archive/>
<atom:link rel="prev-archive" href="http://example.org/2003/04/index.rss"/>
`)
	for i := range n {
		fmt.Fprintf(&b, `<item>
<title>Entry number %d</title><link>http://example.org/2003/12/13/rss%d</link><guid isPermaLink="false">urn:uuid:1225c695-cfb8-4ebb-aaaa-%012d</guid>
<pubDate>Tue, 03 Jun 2003 09:39:21 GMT</pubDate><dc:creator>John Doe</dc:creator><category>news</category>
<description>%s</description>
</item>
`, i, i, i, body)
	}
	b.WriteString("</channel></rss>\n")
	return b.String()
}

// benchmarkDocuments runs a benchmark for each of the documents that the
// figures of BENCHMARKS.md speak of.
func benchmarkDocuments(b *testing.B, run func(b *testing.B, text string)) {
	for _, format := range []Format{Atom, RSS} {
		for _, size := range []struct {
			name       string
			n, content int
		}{{"large", 50, 4 << 10}, {"small", 15, 512}} {
			text := generated(format, size.n, size.content)
			b.Run(fmt.Sprintf("%s-%s", format, size.name), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				run(b, text)
			})
		}
	}
}

func BenchmarkParse(b *testing.B) {
	benchmarkDocuments(b, func(b *testing.B, text string) {
		for b.Loop() {
			_, err := Parse(strings.NewReader(text), "http://example.org/feed")
			require.NoError(b, err)
		}
	})
}

func BenchmarkParseDecode(b *testing.B) {
	benchmarkDocuments(b, func(b *testing.B, text string) {
		for b.Loop() {
			doc, err := Parse(strings.NewReader(text), "http://example.org/feed")
			require.NoError(b, err)
			for _, e := range doc.Entries {
				_, err := e.Decode()
				require.NoError(b, err)
			}
		}
	})
}

func BenchmarkGofeed(b *testing.B) {
	benchmarkDocuments(b, func(b *testing.B, text string) {
		for b.Loop() {
			_, err := gofeed.NewParser().ParseString(text)
			require.NoError(b, err)
		}
	})
}
