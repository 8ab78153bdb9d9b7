package compose_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// What was read leniently is written right, and a document written here needs no repair.
func TestWrittenRight(t *testing.T) {
	const atom = `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>F</title><updated>2003-12-13T18:30:02Z</updated><author><name>A</name></author><entry>`
	const dated = `<id>urn:1</id><title>T</title><updated>2003-12-13T18:30:02Z</updated>`
	const linked = `<link href="http://a.example/1"/>`
	const rss = `<rss version="2.0"><channel><title>F</title><link>http://a.example/</link><description>D</description><item>`
	for _, test := range []struct{ document, want, not string }{
		{atom + dated + `<content type="html"><p>a</p></content>`, `<content type="html">&lt;p&gt;a&lt;/p&gt;</content>`, `<p>`},
		{atom + dated + linked + `<summary>a <b>c</b></summary>`, `<summary type="html">a &lt;b&gt;c&lt;/b&gt;</summary>`, `<b>`},
		{atom + dated + `<content type="xhtml">a <b xmlns="http://www.w3.org/1999/xhtml">c</b></content>`, `<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">a <b>c</b></div></content>`, ""},
		{atom + dated + `<content type="TEXT">a</content>`, `<content type="text">a</content>`, `TEXT`},
		{atom + dated + linked + `<published>soon</published>`, `<id>urn:1</id>`, `published`},
		{atom + `<id>urn:1</id><title>T</title><updated>13 Dec 2003 18:30:02 GMT</updated>` + linked, `<updated>2003-12-13T18:30:02Z</updated>`, ""},
		{atom + `<id>urn:1</id><title>T</title>` + linked, `<updated>2003-12-13T18:30:02Z</updated>`, `1970`},
		{atom + dated + `<summary>a</summary>`, `<content type="text">a</content>`, `summary`},
		{atom + dated + `<link rel="enclosure" href="http://a.example/1.mp3"/>`, `<link rel="alternate" href="http://a.example/1.mp3"/>`, ""},
		{atom + dated + linked + `<author><name>B</name><email>nobody</email></author>`, `<author><name>B</name>` + "\n" + `</author>`, `nobody`},
		{atom + dated + linked + `<category label="c"/>`, `<category term="c" label="c"/>`, ""},
		{atom + dated + `<link href="http://a.example/1"/><link href="http://a.example/2"/>`, `<link rel="related" href="http://a.example/2"/>`, ""},
		{rss + `<guid>urn:1</guid><title>T</title><description><p>a</p></description>`, `<description>&lt;p&gt;a&lt;/p&gt;</description>`, `<p>`},
		{rss + `<guid>urn:1</guid><title>T</title>`, `<guid isPermaLink="false">urn:1</guid>`, ""},
		{rss + `<guid>http://a.example/1</guid><title>T</title><pubDate>2003-12-13 18:30</pubDate>`, `<pubDate>Sat, 13 Dec 2003 18:30:00 +0000</pubDate>`, ""},
		{rss + `<guid>http://a.example/1</guid><title>T</title><pubDate>Mon, 13 Dec 2003 18:30:02 GMT</pubDate>`, `<pubDate>Sat, 13 Dec 2003 18:30:02 +0000</pubDate>`, `Mon`},
		{rss + `<guid>http://a.example/1</guid><title>T</title><author>Ann</author>`, `<dc:creator xmlns:dc="http://purl.org/dc/elements/1.1/">Ann</dc:creator>`, `<author>`},
		{rss + `<guid>http://a.example/1</guid><title>T</title><link>/ä</link>`, `<link>http://a.example/%C3%A4</link>`, ""},
		{rss + `<guid>http://a.example/1</guid><title>T</title><enclosure url="/1.mp3"/>`, `<enclosure url="http://a.example/1.mp3" length="0" type="application/octet-stream"/>`, ""},
	} {
		end := `</item></channel></rss>`
		if strings.HasPrefix(test.document, "<feed") {
			end = `</entry></feed>`
		}
		doc, err := Parse(strings.NewReader(test.document+end), "http://a.example/feed")
		require.NoError(t, err)
		var once, twice strings.Builder
		require.NoError(t, compose.Write(&once, doc))
		written := once.String()
		_, entries, _ := strings.Cut(written, "<"+end[2:6]) // the head section is not of interest
		require.Contains(t, entries, test.want, test.document)
		if test.not != "" {
			require.NotContains(t, entries, test.not, test.document)
		}
		_, body, _ := strings.Cut(written, "\n")
		require.NoError(t, xmlscan.WellFormed(body))
		again, err := Parse(strings.NewReader(written), "http://a.example/feed")
		require.NoError(t, err)
		require.Empty(t, again.Notes, written)
		for i, e := range again.Entries {
			require.Equal(t, doc.Entries[i].ID, e.ID)
		}
		require.NoError(t, compose.Write(&twice, again))
		require.Equal(t, written, twice.String(), "a repaired document needs no repair")
	}
}

// The title and a description of one medium belong together.
func TestTextsOfAMedium(t *testing.T) {
	const item = `<rss xmlns:m="http://search.yahoo.com/mrss/"><channel><item><guid>1</guid>%<m:content url="u"><m:title>M</m:title><m:description>of it</m:description></m:content></item></channel></rss>`
	for before, want := range map[string][3]string{
		"":                   {"M", "of it", ""},
		"<title>Own</title>": {"Own", "", ""},
		"<m:group><m:description>of all</m:description></m:group>": {"M", "of all", "of it"},
	} {
		doc, err := Parse(strings.NewReader(strings.Replace(item, "%", before, 1)), "")
		require.NoError(t, err)
		e := doc.Entries[0]
		require.Equal(t, want, [3]string{e.Title().Body, e.Summary().Body, e.Content().Body}, before)
	}
}

// An entry without a time has its document's: the feed's own, then the response's. RSS
// needs none.
func TestUndated(t *testing.T) {
	const text = `<rss><channel><title>F</title>%<item><guid>urn:1</guid><title>T</title></item></channel></rss>`
	const built, published = `<lastBuildDate>Sat, 13 Dec 2003 18:30:02 GMT</lastBuildDate>`, `<pubDate>Fri, 12 Dec 2003 18:30:02 GMT</pubDate>`
	response := http.Header{"Last-Modified": {"Thu, 11 Dec 2003 18:30:02 GMT"}}
	for _, test := range []struct {
		head   string
		header http.Header
		want   string
	}{
		{published + built, response, "2003-12-13"}, {published, response, "2003-12-12"}, {"", response, "2003-12-11"}, {"", nil, "1970-01-01"},
	} {
		doc, err := Parser{Header: test.header}.Parse(strings.NewReader(strings.Replace(text, "%", test.head, 1)), "http://a.example/feed")
		require.NoError(t, err)
		var atom, rss strings.Builder
		require.NoError(t, compose.WriteAtom(&atom, doc))
		require.Equal(t, 2, strings.Count(atom.String(), "<updated>"+test.want), atom.String())
		require.NoError(t, compose.WriteRSS(&rss, doc))
		require.NotContains(t, rss.String(), "1970")
		require.Equal(t, test.head+test.header.Get("Last-Modified") != "", strings.Contains(rss.String(), "<lastBuildDate>"))
	}
}
