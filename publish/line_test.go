package publish

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
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

// A line is read as json.Unmarshal reads it, whether or not that does it.
func TestDecodeLine(t *testing.T) {
	full := &Line{
		Type: "entry", Feed: "https://example.org/feed", Private: true, Source: "newsboat",
		Deleted: LineDeletion{Deleted: true, When: time.Date(2003, 12, 14, 0, 0, 0, 0, time.UTC)},
		Raw:     &RawEntry{Format: feedhistory.FormatRSS, Data: "<item/>"},
		EntryJSON: compose.EntryJSON{
			ID: "urn:1", WeakID: true, Language: "de", Updated: "2003-12-13T18:30:02Z", Published: "2003-12-13",
			Title:      feedhistory.Text{Type: "html", Body: "A <b>\u2028& \"B\"", Base: "https://example.org/", Lang: "en"},
			Summary:    feedhistory.Text{Body: "Short"},
			Content:    feedhistory.Text{Type: "image/png", Src: "https://example.org/1.png"},
			Links:      feedhistory.Links{{Rel: "alternate", Href: "https://example.org/1", Type: "text/html", Title: "1", HrefLang: "en", Length: "7"}},
			Authors:    []feedhistory.Person{{Name: "Ann", URI: "https://ann.example/", Email: "ann@example.org"}, {Name: "Bob"}},
			Categories: []feedhistory.Category{{Term: "news"}},
			Extensions: []compose.Extension{{Name: "a:b", Space: "urn:a", Value: "1"}},
		},
	}
	text, err := json.Marshal(full)
	require.NoError(t, err)
	require.Equal(t, full, decodeLine(text), "each member has a place")

	same := func(t require.TestingT, line []byte) (decoded bool) {
		r := decodeLine(line)
		if r != nil {
			want := new(Line)
			require.NoError(t, json.Unmarshal(line, want), "%s", line)
			require.Equal(t, want, r, "%s", line)
		}
		return r != nil
	}
	for line, decoded := range map[string]bool{
		`{"id":"1","title":"\u00e4\ud83d\ude00\n","authors":["Ann",{"name":"Bob"}],"categories":["a"]}`: true,
		` { "id" : "1" , "content" : { "body" : "" } , "links" : [] , "deleted" : true } `:              true,
		`{}`:                   true,
		`{"id":"1","other":1}`: false, `{"ID":"1"}`: false, `{"\u0069d":"1"}`: false, `{"id":"1","id":"2"}`: false, `{"id":1}`: false, `{"id":null}`: false,
		`{"id":"1"}{}`: false, `{"id":"1"`: false, `["id"]`: false, `{"id":"\ud800"}`: false, "{\"id\":\"\xff\"}": false,
		`{"title":{"body":"a","Body":"b"}}`: false, `{"title":{"base64":"QQ=="}}`: false, `{"title":null}`: false, `{"title":{"type":7}}`: false,
		`{"links":{}}`: false, `{"links":null}`: false, `{"links":[7]}`: false, `{"links":[{"href":"a","Href":"b"}]}`: false, `{"authors":[null]}`: false,
		`{"authors":["Ann"`: false, `{"raw":7}`: false, ``: false, `null`: false,
	} {
		require.Equal(t, decoded, same(t, []byte(line)), "%s", line)
	}
	pieces := []string{`"`, `\`, `{`, `}`, `[`, `]`, `:`, `,`, `null`, `"id":"2",`, `"ID":"2",`, `"title":`, `{"body":"x"}`, `\ud800`, "\xff", " ", "7"}
	rapid.Check(t, func(t *rapid.T) {
		line := bytes.Clone(text)
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			from := rapid.IntRange(0, len(line)).Draw(t, "from")
			to := min(len(line), from+rapid.IntRange(0, 8).Draw(t, "bytes"))
			line = slices.Concat(line[:from], []byte(rapid.SampledFrom(pieces).Draw(t, "piece")), line[to:])
		}
		same(t, line)
	})
}
