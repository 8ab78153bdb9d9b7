package togofeed_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mmcdole/gofeed"
	ext "github.com/mmcdole/gofeed/extensions"
	"github.com/stretchr/testify/require"

	. "github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/togofeed"
)

// For entries that do not trigger gofeed's bugs, Decode returns what gofeed makes of the
// whole document.
func TestDecodeAgreesWithGofeed(t *testing.T) {
	for _, file := range feedtest.Glob(t, "../testdata/decode/*") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text := feedtest.ReadFile(t, file)
			theirs, err := gofeed.NewParser().ParseString(string(text))
			require.NoError(t, err)
			doc, err := Parse(strings.NewReader(string(text)), "http://example.org/feed")
			require.NoError(t, err)
			require.Empty(t, doc.Notes)
			require.Len(t, doc.Entries, len(theirs.Items))
			for i, e := range doc.Entries {
				item, err := togofeed.Item(e)
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

// Relative references resolve by RFC 3986; gofeed mistakes the last segment of a base path
// for a directory.
func TestDecodeResolvesReferences(t *testing.T) {
	e := atomEntry(t, `xml:base="http://example.org/posts/index.html"`, `<entry><id>1</id>
		<link href="1.html"/><link rel="enclosure" href="1.mp3"/>
		<content type="html">&lt;a href="2.html">two&lt;/a> &lt;img src=/3.png> &lt;b>&amp;amp; untouched&lt;/b></content></entry>`)
	item, err := togofeed.Item(e)
	require.NoError(t, err)
	require.Equal(t, "http://example.org/posts/1.html", item.Link)
	require.Equal(t, "http://example.org/posts/1.mp3", item.Enclosures[0].URL)
	require.Equal(t, `<a href="http://example.org/posts/2.html">two</a> <img src="http://example.org/3.png"> <b>&amp; untouched</b>`, item.Content)
}

func TestDecodeKeepsIDs(t *testing.T) {
	for _, id := range []string{"HTTP://Example.org/a", "http://example.org/a#", "http://example.org/%7Ea", "tag:x,2003:é"} {
		item, err := togofeed.Item(atomEntry(t, "", "<entry><id>"+id+"</id></entry>"))
		require.NoError(t, err)
		require.Equal(t, id, item.GUID)
	}
}

// Dublin Core is what gofeed makes of the same elements.
func TestDecodeDublinCore(t *testing.T) {
	var b strings.Builder
	for _, name := range []string{
		"title", "creator", "author", "subject", "description", "publisher", "contributor", "date", "type", "format",
		"identifier", "source", "language", "relation", "coverage", "rights", "other",
	} {
		fmt.Fprintf(&b, "<dc:%s>1 %s</dc:%s><dc:%s>2</dc:%s>", name, name, name, name, name)
	}
	doc, err := Parse(strings.NewReader(`<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><item><guid>1</guid>`+b.String()+`</item></channel></rss>`), "")
	require.NoError(t, err)
	item, err := togofeed.Item(doc.Entries[0])
	require.NoError(t, err)
	require.Equal(t, []string{"1 rights", "2"}, item.DublinCoreExt.Rights)
	require.Equal(t, ext.NewDublinCoreExtension(item.Extensions["dc"]), item.DublinCoreExt)
}

// The image of an item is the first in its content, or else in its description.
func TestDecodeImageInText(t *testing.T) {
	for texts, want := range map[string]string{
		`<description>&lt;img src="/a"></description><content:encoded>&lt;b>&lt;img src="b"></content:encoded>`:  "http://example.org/feeds/b",
		`<description>&lt;img src="/a"></description><content:encoded>img</content:encoded>`:                     "http://example.org/a",
		`<description>&lt;img src="/a"></description><a:content type="html">&lt;img src="c"></a:content>`:        "c", // as in the extension
		`<description/><a:summary type="html">&lt;img src="d"></a:summary>`:                                      "d",
		`<content:encoded>&lt;img src="e"></content:encoded><content:encoded>&lt;img src="f"></content:encoded>`: "http://example.org/feeds/f",
	} {
		doc, err := Parse(strings.NewReader(`<rss version="2.0" xmlns:a="http://www.w3.org/2005/Atom" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><item><guid>1</guid>`+
			texts+`</item></channel></rss>`), "http://example.org/feeds/index.rss")
		require.NoError(t, err)
		item, err := togofeed.Item(doc.Entries[0])
		require.NoError(t, err)
		require.NotNil(t, item.Image, texts)
		require.Equal(t, want, item.Image.URL, texts)
	}
}

// A namespace's prefix may mean two things in one entry.
func TestDecodePrefixBoundTwice(t *testing.T) {
	item, err := togofeed.Item(atomEntry(t, `xmlns:x="urn:one"`, `<entry><id>1</id><x:a>1</x:a><x:a xmlns:x="urn:two">2</x:a></entry>`))
	require.NoError(t, err)
	require.Equal(t, "1", item.Extensions["x"]["a"][0].Value)
	require.Equal(t, "2", item.Extensions["x-"]["a"][0].Value)
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

// Decode reads the elements before the limit.
func TestDecodeLimit(t *testing.T) {
	for name, test := range map[string]struct {
		elements string
		at       string
		msg      string
	}{
		"elements":   {strings.Repeat("<category>a</category>", 5000) + "<title>B</title>", "<title>", "more than 5000 elements in one entry"},
		"namespaces": {namespaces(32+1) + "<title>B</title>", "<x32:", "more than 32 namespaces in one entry"},
	} {
		raw := "<item><title>A</title>" + test.elements + "</item>"
		e, err := ReadEntry(FormatRSS, raw, "")
		require.NoError(t, err, name)
		item, err := togofeed.Item(e)
		limit := feedtest.ErrorAs[*ParseError](t, err)
		require.Equal(t, ReasonLimit, limit.Reason, name)
		require.EqualError(t, limit.Err, test.msg, name)
		require.Equal(t, "A", item.Title, name)
		if name == "namespaces" {
			require.Equal(t, strings.Index(raw, test.at), limit.Offset, name)
		}
	}
}

func namespaces(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `<x%d:a xmlns:x%d="urn:%d"/>`, i, i, i)
	}
	return b.String()
}
