package publish

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/stretchr/testify/require"
)

const podcast = `<rss version="2.0" xmlns:it="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:podcast="https://podcastindex.org/namespace/1.0"
 xmlns:media="http://search.yahoo.com/mrss/" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><title>Pod</title>
<item><guid isPermaLink="false">urn:1</guid><title>A &lt; B</title><pubDate>Sat, 13 Dec 2003 18:30:02 +0100</pubDate>
<author>ann@example.org (Ann)</author><category domain="https://example.org/terms">news</category>
<description>&lt;p>Short</description><content:encoded><![CDATA[<p>Long <img src="/i.png">]]></content:encoded>
<enclosure url="https://example.org/1.mp3" length="1000" type="audio/mpeg"/>
<it:duration>42:00</it:duration><it:image href="https://example.org/i.png"/>
<podcast:person role="host">Jane &amp; "Joe"</podcast:person>
<media:group><media:content url="https://example.org/v.mp4" medium="video"/></media:group></item></channel></rss>`

// An entry that is turned into a line and back gives the same line again.
func TestNewLine(t *testing.T) {
	const image = `<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:1</id><title/><updated>2003-12-13T18:30:02.25Z</updated>` +
		`<content type="image/png">/wAB/g==</content></entry></feed>`
	for _, feed := range []string{podcast, image} {
		doc, err := feedhistory.Parse(strings.NewReader(feed), "https://example.org/feed")
		require.NoError(t, err)
		line, err := json.Marshal(NewLine(doc.Entries[0]))
		require.NoError(t, err)
		for r, err := range Lines(bytes.NewReader(line), nil) {
			require.NoError(t, err)
			e, err := r.Entry()
			require.NoError(t, err)
			require.Equal(t, doc.Entries[0].Content().Body, e.Content().Body)
			again := NewLine(e)
			if r.Updated == "" {
				again.Updated = "" // Atom requires one
			}
			text, err := json.Marshal(again)
			require.NoError(t, err)
			require.Equal(t, string(line), string(text))
		}
	}
}

func TestNewLineOfPodcast(t *testing.T) {
	doc, err := feedhistory.Parse(strings.NewReader(podcast), "https://example.org/feed")
	require.NoError(t, err)
	const itunes = "http://www.itunes.com/dtds/podcast-1.0.dtd"
	r := NewLine(doc.Entries[0])
	require.Equal(t, "2003-12-13T17:30:02Z", r.Published)
	require.Equal(t, feedhistory.Text{Type: "html", Body: `<p>Long <img src="/i.png">`, Base: "https://example.org/feed"}, r.Content)
	require.Equal(t, []compose.Extension{
		{Name: "itunes:duration", Space: itunes, Value: "42:00"},
		{Name: "itunes:image", Space: itunes, Attrs: map[string]string{"href": "https://example.org/i.png"}},
		{Name: "podcast:person", Space: "https://podcastindex.org/namespace/1.0", Value: `Jane & "Joe"`, Attrs: map[string]string{"role": "host"}},
		{Name: "media:group", Space: "http://search.yahoo.com/mrss/", XML: `<media:group xmlns:media="http://search.yahoo.com/mrss/">` +
			`<media:content url="https://example.org/v.mp4" medium="video"/></media:group>`},
	}, r.Extensions)
}

func TestJSONExtensionErrors(t *testing.T) {
	for _, line := range []string{
		`{"id":"1","extensions":[{"name":"a:b"}]}`, `{"id":"1","extensions":[{"space":"urn:a"}]}`,
		`{"id":"1","extensions":[{"name":"a b","space":"urn:a"}]}`, `{"id":"1","extensions":[{"name":"a:b:c","space":"urn:a"}]}`,
		`{"id":"1","extensions":[{"name":"a:b","space":"urn:a","attrs":{"x y":""}}]}`,
		`{"id":"1","extensions":[{"name":"a:b","space":"urn:a","attrs":{"xmlns":"urn:b"}}]}`,
		`{"id":"1","extensions":[{"xml":"<a></b>"}]}`, `{"id":"1","extensions":[{"name":"xmlns:b","space":"urn:a"}]}`,
		`{"id":"1","extensions":[{"name":"1b","space":"urn:a"}]}`,
	} {
		for r, err := range Lines(strings.NewReader(line), nil) {
			require.NoError(t, err)
			e, err := r.Entry()
			require.Error(t, err, "%s: %v", line, e)
		}
	}
}

// A mirror's export has lines that are not about entries.
func TestLinesOfOtherTypes(t *testing.T) {
	n := 0
	for r, err := range Lines(strings.NewReader(`{"type":"feed","feed":"https://example.org/","id":7}
{"type":"gap","published":true}
{"type":"entry","id":"1"}
{"id":"2"}
{"type":"document","title":[]}
`), nil) {
		require.NoError(t, err)
		require.NotEmpty(t, r.ID)
		n++
	}
	require.Equal(t, 2, n)
}
