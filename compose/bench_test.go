package compose_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	. "github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
)

// soundDoc returns a document of valid entries, each with a content of about size bytes.
func soundDoc(format string, entries, size int) string {
	var b strings.Builder
	html := strings.Repeat(`&lt;p>Some sound text &amp;amp; a &lt;a href="http://example.org/x">link&lt;/a>.&lt;/p>`+"\n", size/85)
	if format == "atom" {
		b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>f</title><updated>2024-01-01T00:00:00Z</updated><author><name>A</name></author>`)
		for i := range entries {
			fmt.Fprintf(&b, `<entry><id>urn:%d</id><title>Title</title><link href="http://example.org/%d"/><updated>2024-01-01T00:00:00Z</updated><published>2024-01-01T00:00:00Z</published><category term="c"/><summary>A short one</summary><content type="html">%s</content></entry>`, i, i, html)
		}
		b.WriteString(`</feed>`)
	} else {
		b.WriteString(`<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>f</title><link>http://example.org/</link><description>d</description>`)
		for i := range entries {
			fmt.Fprintf(&b, `<item><title>Title</title><link>http://example.org/%d</link><guid>http://example.org/%d</guid><pubDate>Mon, 01 Jan 2024 00:00:00 +0000</pubDate><dc:creator>Ann</dc:creator><category>c</category><description>A short one</description><content:encoded>%s</content:encoded></item>`, i, i, html)
		}
		b.WriteString(`</channel></rss>`)
	}
	return b.String()
}

// BenchmarkWriting writes 50 valid entries in their own format, and in the other.
func BenchmarkWriting(b *testing.B) {
	for _, size := range []int{500, 10000} {
		for _, from := range []string{"atom", "rss"} {
			d, err := Parse(strings.NewReader(soundDoc(from, 50, size)), "http://example.org/feed")
			if err != nil || len(d.Entries) != 50 {
				b.Fatal(err)
			}
			for _, to := range []Format{FormatAtom, FormatRSS} {
				b.Run(fmt.Sprintf("%s-%v/%d", from, to, size), func(b *testing.B) {
					b.ReportAllocs()
					for range b.N {
						_ = compose.NewWriter(io.Discard, to, d).Close()
					}
				})
			}
		}
	}
}
