package compose_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/togofeed"
)

// The law of amplification: everything derived from a document of n bytes takes at most
// so many times n bytes, plus so many for each entry.
const (
	outputPerByte, outputPerEntry = 80, 4 << 10
	outputOfHead                  = 64 * 8 << 10 * 4 // head links are always resolved: written twice, and escaped
	// Allocated by everything together, and mostly freed at once: each text is read
	// for itself, by Decode, by Feed and by two writers, and a builder that grows to
	// its length allocates about three times that.
	memoryPerByte, memoryPerEntry = 5 * 3 * outputPerByte * 5 / 4, 100 << 10
)

// derive derives everything that the package can from a document, and returns the total
// number of bytes.
func derive(t require.TestingT, doc *Document) (output int) {
	for _, e := range doc.Entries {
		output += len(e.XML())
		for _, text := range []Text{e.Title(), e.Summary(), e.Content()} {
			output += len(text.HTML()) + len(text.Plain())
		}
		for _, l := range e.Links {
			output += len(l.Href)
		}
		if item, _ := togofeed.Item(e); item != nil {
			for _, link := range item.Links {
				output += len(link)
			}
		}
	}
	feed := togofeed.Document(doc)
	feed.Items = nil
	data, err := json.Marshal(feed)
	require.NoError(t, err)
	output += len(data)
	for _, write := range []func(io.Writer, *Document) error{compose.WriteAtom, compose.WriteRSS} {
		var b bytes.Buffer
		if err := write(&b, doc); err != nil {
			require.True(t, isLimit(err), "%v", err)
		}
		output += b.Len()
		wellFormed(t, b.Bytes())
	}
	return output
}

// obeys checks that a document obeys the law.
func obeys(t require.TestingT, text, url string) (doc *Document, output int) {
	allocated := feedtest.Allocated(func() {
		if doc, _ = parse(text, url); doc != nil {
			output = derive(t, doc)
		}
	})
	if doc == nil {
		return nil, 0
	}
	n := len(doc.Entries)
	require.LessOrEqual(t, output, outputPerByte*len(text)+outputPerEntry*n+outputOfHead, "bytes out, of %d and %d entries", len(text), n)
	require.LessOrEqual(t, int(allocated), memoryPerByte*len(text)+memoryPerEntry*n+4*outputOfHead, "allocated, of %d and %d entries", len(text), n)
	return doc, output
}

func TestAmplification(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := feedtest.DrawBurden(t)
		obeys(t, d.String(), d.URL())
	})
}

// FuzzAmplification checks that any document obeys the law.
func FuzzAmplification(f *testing.F) {
	seed(f)
	f.Add((&feedtest.Burden{Format: "atom", Bindings: 5, URI: 300, Prefix: 1, Base: 500, Entries: 3, References: 3, Used: true, Content: "escaped"}).String())
	f.Add((&feedtest.Burden{Format: "rss", Bindings: 5, URI: 300, Prefix: 1, Base: 500, Entries: 3, Links: 20, Relations: 16, Content: "numeric"}).String())
	f.Add(`<feed xmlns="http://www.w3.org/2005/Atom"><entry><˜pdated/></entry></feed>`) // not a name of the second edition
	f.Fuzz(func(t *testing.T, text string) {
		obeys(t, text, "http://example.org/"+strings.Repeat("b", 300)+"/feed")
	})
}

// FuzzJSONFeed reads structured JSON Feeds, which a fuzzer that changes bytes does not
// find.
func FuzzJSONFeed(f *testing.F) { f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { checkJSONFeed(t) })) }

func TestJSONFeeds(t *testing.T) { rapid.Check(t, checkJSONFeed) }

// checkJSONFeed reads a JSON Feed with any number of members, which have any values.
func checkJSONFeed(t *rapid.T) {
	items := rapid.SliceOfN(rapid.Custom(drawItem), 0, 4).Draw(t, "items")
	feed := map[string]any{"version": "https://jsonfeed.org/version/1.1", "items": items}
	for _, name := range []string{"title", "home_page_url", "feed_url", "next_url", "description", "authors"} {
		if rapid.Bool().Draw(t, name) {
			feed[name] = drawJSON(t, name, 2)
		}
	}
	data, err := json.Marshal(feed)
	require.NoError(t, err)
	doc, _ := obeys(t, string(data), "http://example.org/feed")
	require.NotNil(t, doc, "%s", data)
	if len(doc.Missing(doc.Kind())) == 0 {
		require.Len(t, doc.Entries, len(items), "%s", data)
	}
	for _, e := range doc.Entries {
		require.NotEmpty(t, e.ID)
	}
}

// drawItem draws an item; nearly all of its members are of the right type.
func drawItem(t *rapid.T) map[string]any {
	item := map[string]any{}
	text := rapid.SampledFrom([]string{"", "a", "https://example.org/1", "2003-12-13T18:30:02Z", "<p>b <a href=x>", "\x00\u2028é"})
	for _, name := range []string{"id", "url", "external_url", "title", "summary", "content_html", "content_text", "image", "banner_image", "date_published", "date_modified", "language"} {
		if rapid.Bool().Draw(t, "has "+name) {
			item[name] = text.Draw(t, name)
		}
	}
	if n := rapid.SampledFrom([]int{0, 1, 65, 300, 5000}).Draw(t, "attachments"); n > 0 {
		item["attachments"] = slices.Repeat([]map[string]any{{"url": text.Draw(t, "attachment"), "mime_type": text.Draw(t, "type"), "size_in_bytes": 1e30}}, n)
	}
	for _, name := range []string{"tags", "author", "authors", "id", "attachments", "_extension"} {
		if rapid.IntRange(0, 4).Draw(t, "any "+name) == 0 {
			item[name] = drawJSON(t, name, 2)
		}
	}
	return item
}

// drawJSON draws any value.
func drawJSON(t *rapid.T, name string, depth int) any {
	switch rapid.IntRange(0, 4+min(depth, 1)*2).Draw(t, name+" is") {
	case 0:
		return nil
	case 1:
		return rapid.Float64Range(-1e30, 1e30).Draw(t, name)
	case 2:
		return rapid.Bool().Draw(t, name)
	case 3, 4:
		return rapid.String().Draw(t, name)
	case 5:
		return map[string]any{"name": drawJSON(t, name, depth-1), "url": drawJSON(t, name, depth-1)}
	}
	return []any{drawJSON(t, name, depth-1), drawJSON(t, name, depth-1)}
}

// The law of a written document: without inheritance, it has at most so many times the
// bytes of the one that was read, if that is well-formed: an ampersand in an attribute has five
// characters. Otherwise end tags come to that.
const (
	writtenPerByte = 5
	mendedPerByte  = 7
)

// Characters that need escapes make no document much longer, wherever they are.
func TestDenseTexts(t *testing.T) {
	const n = 12_000
	atom := func(element string) string {
		return `<feed xmlns="` + feedxml.Atom + `"><id>urn:f</id><title>f</title><updated>2024-01-01T00:00:00Z</updated><entry><id>urn:1</id><updated>2024-01-01T00:00:00Z</updated>` + element + `</entry></feed>`
	}
	rss := func(element string) string {
		return `<rss version="2.0"><channel><title>f</title><item><guid>urn:1</guid>` + element + `</item></channel></rss>`
	}
	item := func(member string) string {
		return `{"version":"https://jsonfeed.org/version/1.1","title":"f","items":[{"id":"urn:1",` + member + `}]}`
	}
	section := func(text string) string {
		return "<![CDATA[" + strings.ReplaceAll(text, "]]>", "]]]]><![CDATA[>") + "]]>"
	}
	quoted := func(text string) string {
		data, err := json.Marshal(text)
		require.NoError(t, err)
		return string(data)
	}
	for _, dense := range []string{"&", "&a", `"`, "'", "<", "<a", "x<a", ">", "]]>", "&]]>", "\r", "&\r", "&\r\r\r", "\n", "\x01"} {
		text := strings.Repeat(dense, n/len(dense))
		docs := []string{
			item(`"content_text":` + quoted(text)), item(`"content_html":` + quoted(text)), item(`"title":` + quoted(text)), item(`"tags":[` + quoted(text) + `]`),
			item(`"authors":[{"name":` + quoted(text) + `}]`), item(`"_other":` + quoted(text)), item(`"content_text":"x","content_html":` + quoted(text) + `,"summary":` + quoted(text)),
		}
		for _, written := range []string{section(text), strings.ReplaceAll(strings.ReplaceAll(text, "<", "&lt;"), "]]>", "]]&gt;"), strings.ReplaceAll(text, "&", "&amp;amp;")} {
			if strings.Contains(dense, "\r") {
				written = strings.ReplaceAll(strings.ReplaceAll(text, "&", "&amp;"), "\r", "&#13;")
			}
			docs = append(docs,
				atom("<title>"+written+"</title>"), atom("<content>"+written+"</content>"), atom(`<content type="html">`+written+"</content>"),
				atom(`<content type="xhtml"><div xmlns="`+feedxml.XHTML+`">`+written+"</div></content>"), atom(`<content type="text/plain">`+written+"</content>"),
				atom("<rights>"+written+"</rights>"), atom("<author><name>"+written+"</name></author>"), atom(`<summary>`+written+`</summary><content type="html">`+written+`</content>`),
				rss("<title>"+written+"</title>"), rss("<description>"+written+"</description>"), rss("<category>"+written+"</category>"), rss("<author>"+written+"</author>"),
				rss("<comments>"+written+"</comments>"), rss(`<x:y xmlns:x="urn:x">`+written+"</x:y>"), rss(`<content:encoded xmlns:content="`+feedxml.Content+`">`+written+"</content:encoded>"),
			)
		}
		value := strings.NewReplacer("<", "&lt;", "\r", "&#13;").Replace(text)
		quote := `"`
		if strings.Contains(text, `"`) {
			quote = "'"
		}
		docs = append(docs, atom("<category term="+quote+value+quote+"/>"), atom("<category term='1' label="+quote+value+quote+"/>"), rss("<category domain="+quote+value+quote+">1</category>"))
		for _, text := range docs {
			doc, err := parse(text, "http://example.org/feed")
			require.NoError(t, err, "%.300s", text)
			for name, write := range map[string]func(io.Writer, *Document) error{"Atom": compose.WriteAtom, "RSS": compose.WriteRSS} {
				var b bytes.Buffer
				require.NoError(t, write(&b, doc))
				wellFormed(t, b.Bytes())
				times := writtenPerByte
				if len(doc.Notes) > 0 {
					times = mendedPerByte
				}
				require.LessOrEqual(t, b.Len(), times*len(text)+(8<<10), "%s of %.300q", name, text)
			}
		}
	}
}

// Large documents that are not hostile are not refused.
func TestGenerousDocuments(t *testing.T) {
	base := "https://example.org/" + strings.Repeat("gallery/", 25) // 220 bytes
	var pictures []string
	for i := range 300 {
		pictures = append(pictures, fmt.Sprintf(`<img src="p%d.jpg">`, i))
	}
	html := strings.Join(pictures, "")
	for name, text := range map[string]string{
		"a gallery in HTML": `<feed xmlns="` + feedxml.Atom + `" xml:base="` + base + `"><entry><id>1</id><content type="html"><![CDATA[` + html + `]]></content></entry></feed>`,
		"a gallery of enclosures": `<rss xml:base="` + base + `"><channel><item><guid>1</guid>` +
			strings.Repeat(`<enclosure url="p.jpg" type="image/jpeg" length="1"/>`, 300) + `</item></channel></rss>`,
		"a gallery in JSON": `{"version":"https://jsonfeed.org/version/1.1","items":[{"id":"1","attachments":[` +
			strings.TrimSuffix(strings.Repeat(`{"url":"p.jpg","mime_type":"image/jpeg"},`, 300), ",") + `]}]}`,
		"unclosed tags":   `<rss><channel><item><guid>1</guid><description><![CDATA[` + strings.Repeat("<p><a href=/x>", 5000) + `]]></description></item></channel></rss>`,
		"many namespaces": `<rss` + namespaces(60) + `><channel><item><guid>1</guid><n1:a/><n2:a/></item></channel></rss>`,
		"nested bases":    `<feed xmlns="` + feedxml.Atom + `" xml:base="` + base + `"><entry xml:base="a/"><id>1</id><content type="xhtml" xml:base="b/"><div xmlns="http://www.w3.org/1999/xhtml">` + strings.Repeat(`<p><a href="c">d</a></p>`, 500) + `</div></content></entry></feed>`,
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := parse(text, base+"feed")
			require.NoError(t, err)
			require.Empty(t, doc.Missing(doc.Kind()))
			require.Len(t, doc.Entries, 1)
			derive(t, doc)
		})
	}
}

func namespaces(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ` xmlns:n%d="http://example.org/namespaces/of/some/length/%d"`, i, i)
	}
	return b.String()
}

// Whether an entry is read depends on itself and its surroundings, not on its place.
func TestEntryBeyondALimit(t *testing.T) {
	entry := func(id, more string) string { return "<entry><id>" + id + "</id>" + more + "</entry>" }
	long := entry(strings.Repeat("x", 5000), "")
	links := entry("links", strings.Repeat(`<link href="http://example.org/"/>`, 4097))
	greedy := entry("greedy", `<content type="html">`+strings.Repeat(`&lt;a href=x>`, 100)+`</content>`)
	for _, order := range [][]string{
		{long, entry("a", ""), links, greedy, entry("b", "")},
		{entry("a", ""), greedy, long, entry("b", ""), links},
	} {
		text := `<feed xmlns="` + feedxml.Atom + `" xml:base="http://example.org/` + strings.Repeat("b", 900) + `/">` + strings.Join(order, "") + "</feed>"
		doc, err := parse(text, "http://example.org/feed")
		require.NoError(t, err)
		require.Len(t, doc.Entries, 2)
		require.Equal(t, "b", doc.Entries[1].ID)
		require.Len(t, doc.Missing(doc.Kind()), 1)
		require.Equal(t, ReasonLimit, doc.Missing(doc.Kind())[0].Reason)
		require.ErrorContains(t, doc.Missing(doc.Kind())[0], "3 entries are left out")
		require.ErrorContains(t, doc.Missing(doc.Kind())[0], "RFC 5005 §6")

		h, err := Merge(Readings(doc))
		require.NoError(t, err)
		require.Equal(t, VerdictPartial, h.Verdict())
	}
}

// The number of allocations grows in proportion to the document.
func TestGrowth(t *testing.T) {
	for name, make := range map[string]func(n int) string{
		"bases in turn under nested ones": func(n int) string {
			return contentOf(`<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">`+strings.Repeat(`<p xml:base="a/">`, min(n, 200)),
				strings.Repeat(`<a xml:base="" href="x"/>`, n), strings.Repeat("</p>", min(n, 200))+"</div></content>")
		},
		"skipped entries": func(n int) string {
			return `<feed xmlns="` + feedxml.Atom + `" xml:base="http://example.org/` + strings.Repeat("b", 8000) + `/">` +
				strings.Repeat(`<entry><id>1</id>`+strings.Repeat(`<link href="x"/>`, 60)+`</entry>`, n) + `</feed>`
		},
		"entries with all bindings": func(n int) string {
			return `<feed xmlns="` + feedxml.Atom + `"` + namespaces(200) + `>` + strings.Repeat(`<entry><id>1</id><n1:a/></entry>`, n) + `</feed>`
		},
	} {
		t.Run(name, func(t *testing.T) {
			cost := func(n int) float64 {
				return testing.AllocsPerRun(2, func() {
					doc, err := parse(make(n), "http://example.org/feed")
					require.NoError(t, err)
					for _, e := range doc.Entries {
						_, _ = e.XML(), e.Content()
					}
				})
			}
			one, two, four := cost(1000), cost(2000), cost(4000)
			require.Less(t, two, 2.3*one+100)
			require.Less(t, four, 2.3*two+100)
		})
	}
}

// A head section is kept only up to a limit, because every document of a republished feed
// repeats it.
func TestHeadThatIsTooLong(t *testing.T) {
	long := strings.Repeat("x", (64 << 10))
	for name, text := range map[string]string{
		"atom": `<feed xmlns="` + feedxml.Atom + `"><title>` + long + `</title><subtitle>s` + long + `</subtitle><rights>` + long + `</rights><author><name>` + long + `</name></author><title>t</title></feed>`,
		"rss":  `<rss><channel><title>t</title><description>` + long + `</description><copyright>` + long + `</copyright></channel></rss>`,
		"json": `{"version":"https://jsonfeed.org/version/1.1","title":"` + long + `x","items":[]}`,
	} {
		doc, err := parse(text, "")
		require.NoError(t, err)
		require.NotEmpty(t, doc.Notes, name)
		require.Equal(t, "element-skipped", doc.Notes[0].Code)
		var b bytes.Buffer
		require.NoError(t, compose.WriteAtom(&b, doc))
		require.Less(t, b.Len(), 2*(64<<10)+1000, name)
	}
}

// Settings that make no sense have no effect, or mean the default.
func TestMisuse(t *testing.T) {
	d := compose.History(&History{})
	require.Empty(t, d.Entries)
	gap := NewGap("http://example.org/\xff", io.ErrUnexpectedEOF)
	for _, d := range []*Document{d, {}, {Entries: compose.PseudoEntries(&History{Gaps: []*Gap{gap}})}, compose.Complete(nil, nil, ""), compose.Page(nil, nil, compose.URLs{}), compose.Archive(nil, nil, compose.URLs{})} {
		derive(t, d)
	}
	require.Len(t, compose.Pages(nil, make([]*Entry, 3), -5, func(int) string { return "" }), 3)

	const n = math.MinInt
	_, err := Parser{MaxBytes: n}.Parse(strings.NewReader(`<feed xmlns="`+feedxml.Atom+`"><link href="http://example.org/"/><entry><id>1</id></entry></feed>`), "")
	require.ErrorContains(t, err, "is negative")

	require.Empty(t, (&Entry{}).Title())
	require.Nil(t, (&Entry{}).XML())
	_, err = togofeed.Item(&Entry{})
	require.NoError(t, err)
}

func isLimit(err error) bool {
	_, ok := errors.AsType[*ParseError](err)
	return ok
}

func contentOf(start, body, end string) string {
	return `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://example.org/"><entry><id>1</id>` + start + body + end + `</entry></feed>`
}
