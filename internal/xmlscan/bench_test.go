package xmlscan

import (
	"fmt"
	"html"
	"strings"
	"testing"
)

// entryHTML is about 4 KB of HTML like that of entries.
func entryHTML(i int) string {
	var b strings.Builder
	for p := range 12 {
		fmt.Fprintf(&b, `<p class="p%d">Entry %d has <a href="https://example.org/%d?a=1&amp;b=2">a link</a>, `, p, i, p)
		b.WriteString("some “typographic” text — and then a good deal of plain prose that goes on for a while, ")
		b.WriteString("as people write it, with <em>emphasis</em> here and there & a bare ampersand too.</p>\n")
	}
	return b.String()
}

func atomFeed(entries int) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0" xml:lang="en">
  <title>A feed</title><id>urn:x:feed</id><updated>2024-01-02T03:04:05Z</updated><fh:archive/>
  <link rel="self" href="https://example.org/feed"/><link rel="prev-archive" href="https://example.org/archive/7"/>
`)
	for i := range entries {
		fmt.Fprintf(&b, `  <entry>
    <title type="text">Entry number %d</title>
    <link rel="alternate" type="text/html" href="https://example.org/entry/%d"/>
    <id>urn:x:entry:%d</id>
    <published>2024-01-02T03:04:05Z</published><updated>2024-01-02T03:04:05Z</updated>
    <author><name>Somebody</name><uri>https://example.org/</uri></author>
    <category term="a" label="A"/><category term="b"/>
    <content type="html">%s</content>
  </entry>
`, i, i, i, html.EscapeString(entryHTML(i)))
	}
	b.WriteString("</feed>\n")
	return b.String()
}

func rssFeed(entries int) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:atom="http://www.w3.org/2005/Atom">
<channel><title>A feed</title><link>https://example.org/</link><atom:link rel="self" href="https://example.org/rss"/>
`)
	for i := range entries {
		fmt.Fprintf(&b, `<item><title>Entry number %d</title><link>https://example.org/entry/%d</link>
<guid isPermaLink="false">urn:x:entry:%d</guid><pubDate>Tue, 02 Jan 2024 03:04:05 GMT</pubDate><dc:creator>Somebody</dc:creator>
<description>In short &amp; plain</description><content:encoded><![CDATA[%s]]></content:encoded></item>
`, i, i, i, entryHTML(i))
	}
	b.WriteString("</channel></rss>\n")
	return b.String()
}

func BenchmarkScan(b *testing.B) {
	for _, bb := range []struct{ name, doc string }{
		{"atom", atomFeed(50)},
		{"rss", rssFeed(50)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.doc)))
			b.ReportAllocs()
			for b.Loop() {
				s := New(bb.doc, Limits{})
				for s.Next() != Stop {
				}
				if s.Err() != nil || s.Lenient() > 0 {
					b.Fatal(s.Err(), s.Lenient())
				}
			}
		})
	}
}

func BenchmarkStandalone(b *testing.B) {
	doc := atomFeed(1)
	entry := doc[strings.Index(doc, "<entry>") : strings.Index(doc, "</entry>")+len("</entry>")]
	b.SetBytes(int64(len(entry)))
	b.ReportAllocs()
	for b.Loop() {
		Standalone(entry, nil, ` xmlns="http://www.w3.org/2005/Atom"`)
	}
}

func BenchmarkDecode(b *testing.B) {
	doc := atomFeed(50)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Decode(doc, "application/atom+xml; charset=utf-8"); err != nil {
			b.Fatal(err)
		}
	}
}
