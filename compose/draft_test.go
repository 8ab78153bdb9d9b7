package compose_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/togofeed"
)

// Entries with everything that a draft has, in each format.
var draftable = map[string]string{
	"atom": `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:thr="http://purl.org/syndication/thread/1.0" xml:base="https://example.org/a/">
<author><name>Feed</name></author>
<entry><id>urn:1</id><title type="html">&lt;b>One&lt;/b></title><updated>2003-12-13T18:30:02.25+01:00</updated><published>2003-12-01T00:00:00Z</published>
<author><name>Ann</name><uri>ann.html</uri><email>ann@example.org</email></author><author><name>Bob</name></author>
<contributor><name>Carl</name></contributor><rights>None</rights>
<category term="news" scheme="https://example.org/terms" label="News"/><category term="x"/><category term="x"/>
<link href="one.html"/><link rel="enclosure" href="one.mp3" type="audio/mpeg" length="12345"/>
<thr:in-reply-to ref="urn:0" href="zero.html"/><summary>Short</summary>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><a href="x.html">x</a> &amp; <br/></div></content></entry>
<entry><id>urn:2</id><title>Two</title><updated>2003-12-13T18:30:02Z</updated><content type="image/png">/wAB/g==</content></entry>
<entry><id>urn:3</id><title>Three</title><updated>2003-12-13T18:30:02Z</updated><content type="video/mp4" src="3.mp4"/><source><id>urn:elsewhere</id></source></entry>
</feed>`,
	"rss": `<rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:podcast="https://podcastindex.org/namespace/1.0"
 xmlns:m="http://search.yahoo.com/mrss/" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><title>Pod</title>
<item><guid isPermaLink="false">urn:1</guid><title>One</title><link>https://example.org/1</link><pubDate>Sat, 13 Dec 2003 18:30:02 +0100</pubDate>
<author>ann@example.org (Ann)</author><dc:creator>Ann</dc:creator><dc:creator>Bob</dc:creator><dc:subject>weather</dc:subject>
<category domain="https://example.org/terms">news</category><description>&lt;p>Short</description><content:encoded><![CDATA[<p>Long <img src="/i.png">]]></content:encoded>
<enclosure url="https://example.org/1.mp3" length="1000" type="audio/mpeg"/>
<itunes:duration>42:00</itunes:duration><itunes:episode>7</itunes:episode><itunes:image href="https://example.org/i.png"/><itunes:keywords>a,b</itunes:keywords>
<podcast:chapters url="https://example.org/c.json" type="application/json"/><podcast:person role="host">Jane &amp; Joe</podcast:person>
<m:group><m:content url="v.mp4" medium="video"><m:title type="plain">V</m:title></m:content></m:group></item>
</channel></rss>`,
	"json": `{"version":"https://jsonfeed.org/version/1.1","title":"J","items":[{"id":"1","url":"https://example.org/1","title":"One","summary":"Short",
"content_html":"<p>Long</p>","date_published":"2003-12-13T18:30:02Z","date_modified":"2003-12-14T18:30:02.5Z","tags":["a","b"],
"authors":[{"name":"Ann","url":"https://example.org/ann"}],"attachments":[{"url":"https://example.org/1.mp3","mime_type":"audio/mpeg","size_in_bytes":1000}]}]}`,
	"unprefixed": `<rss><channel><item xmlns:x="urn:x"><guid>urn:1</guid><x:a><b>in no namespace</b></x:a><y xmlns="urn:y">default</y></item></channel></rss>`,
	"mended":     `<rss><channel><item xmlns:x="urn:x"><guid>urn:1</guid><title>A & B</title><x:a b=c>&nbsp;</x:a></item></channel></rss>`,
}

// An entry that is made of an entry's draft has the same draft, even after it was
// published.
func TestDraftOfEntry(t *testing.T) {
	for name, feed := range draftable {
		t.Run(name, func(t *testing.T) {
			doc, err := Parse(strings.NewReader(feed), "https://example.org/feed")
			require.NoError(t, err)
			require.NotEmpty(t, doc.Entries)
			var drafts []compose.Draft
			var entries []*Entry
			for _, e := range doc.Entries {
				d := compose.DraftOf(e)
				if d.Updated.IsZero() {
					d.Updated = d.Published.AddDate(0, 0, 1)
				}
				again, err := d.Entry()
				require.NoError(t, err)
				require.Equal(t, d, utcDraft(compose.DraftOf(again), d))
				drafts, entries = append(drafts, d), append(entries, again)
			}
			var text strings.Builder
			w := compose.NewWriter(&text, FormatAtom, compose.Complete(&Document{Format: FormatAtom, ID: "urn:feed", Title: "Copy"}, entries, "https://copy.example/feed"))
			w.Verbatim = true // no author of the feed, and no summary for readers who cannot show the content
			require.NoError(t, w.Close())
			doc, err = Parse(strings.NewReader(text.String()), "https://copy.example/feed")
			require.NoError(t, err)
			require.Empty(t, doc.Notes)
			for i, e := range doc.Entries {
				require.Equal(t, drafts[i], utcDraft(compose.DraftOf(e), drafts[i]))
			}
		})
	}
}

// utcDraft replaces a draft's times by another's if they are the same instants.
func utcDraft(d, like compose.Draft) compose.Draft {
	if d.Updated.Equal(like.Updated) {
		d.Updated = like.Updated
	}
	if d.Published.Equal(like.Published) {
		d.Published = like.Published
	}
	return d
}

func TestDraftOfPodcast(t *testing.T) {
	doc, err := Parse(strings.NewReader(draftable["rss"]), "https://example.org/feed")
	require.NoError(t, err)
	d := compose.DraftOf(doc.Entries[0])
	require.Equal(t, []Person{{Name: "Ann", Email: "ann@example.org"}, {Name: "Bob"}}, d.Authors)
	require.Equal(t, []Category{{Term: "weather"}, {Term: "news", Scheme: "https://example.org/terms"}}, d.Categories)
	require.Equal(t, []string{
		`<itunes:duration xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd">42:00</itunes:duration>`,
		`<itunes:episode xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd">7</itunes:episode>`,
		`<itunes:image xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" href="https://example.org/i.png"/>`,
		`<itunes:keywords xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd">a,b</itunes:keywords>`,
		`<podcast:chapters xmlns:podcast="https://podcastindex.org/namespace/1.0" url="https://example.org/c.json" type="application/json"/>`,
		`<podcast:person xmlns:podcast="https://podcastindex.org/namespace/1.0" role="host">Jane &amp; Joe</podcast:person>`,
		`<m:group xmlns:m="http://search.yahoo.com/mrss/" xml:base="https://example.org/1"><m:content url="v.mp4" medium="video"><m:title type="plain">V</m:title></m:content></m:group>`,
	}, d.Extensions)
	require.Equal(t, "https://example.org/1", d.Content.Base, "the item's own page")
	require.Empty(t, d.Summary.Base)
}

// Text that is not a single element cannot get into a document as an extension.
func TestDraftExtensions(t *testing.T) {
	for _, x := range []string{"", "text", "<a>", "<a/><b/>", "<a/></entry><entry>", "<a/>text", "<!-- a -->", "<x:a/>", "<a>&nbsp;</a>"} {
		e, err := compose.Draft{ID: "urn:1", Updated: time.Unix(0, 0), Extensions: []string{x}}.Entry()
		require.Error(t, err, "%q: %v", x, e)
	}
}

// A declaration in the surroundings is not repeated for each of many extensions.
func TestDraftIsInProportion(t *testing.T) {
	space := "urn:" + strings.Repeat("x", 1<<16)
	doc, err := Parse(strings.NewReader(`<rss xmlns:x="`+space+`"><channel><item><guid>1</guid>`+strings.Repeat("<x:a/>", 1<<14)+`</item></channel></rss>`), "")
	require.NoError(t, err)
	n := 0
	for _, e := range doc.Entries {
		for _, x := range compose.DraftOf(e).Extensions {
			n += len(x)
		}
	}
	require.Less(t, n, 20*len(doc.Text()))
}

// An item of a JSON Feed has its feed's authors, unless it has some of its own, also
// outside its document.
func TestAuthorsOfJSONFeed(t *testing.T) {
	for item, want := range map[string][]Person{
		`{"id":"1","content_text":"x"}`:         {{Name: "Ann", URI: "https://example.org/ann"}, {Name: "Bob", Email: "bob@example.org"}},
		`{"id":"1","authors":[{"name":"Eve"}]}`: {{Name: "Eve"}},
		`{"id":"1","author":{"name":"Eve"}}`:    {{Name: "Eve"}},
		`{}`:                                    {{Name: "Ann", URI: "https://example.org/ann"}, {Name: "Bob", Email: "bob@example.org"}},
		`{"id":"1","x":{"authors":[{"name":"of another"}]}}`: {{Name: "Ann", URI: "https://example.org/ann"}, {Name: "Bob", Email: "bob@example.org"}},
	} {
		doc, err := Parse(strings.NewReader(`{"version":"https://jsonfeed.org/version/1.1","title":"J","items":[`+item+`],
			"authors":[{"name":"Ann","url":"https://example.org/ann"},{"name":"bob@example.org (Bob)"}]}`), "https://example.org/feed.json")
		require.NoError(t, err)
		e := doc.Entries[0]
		require.Equal(t, want, compose.DraftOf(e).Authors, item)
		decoded, err := togofeed.Item(e)
		require.NoError(t, err)
		require.Len(t, decoded.Authors, len(want), item)
		signed, err := ReadEntry(FormatJSONFeed, string(e.Signed().JSON()), "https://example.org/feed.json")
		require.NoError(t, err, item)
		require.Equal(t, want, compose.DraftOf(signed).Authors, item)
		require.Equal(t, e.Signed().Digest(), e.Signed().Signed().Digest(), item)
		again := compose.DraftOf(e)
		again.ID, again.Updated = "1", time.Unix(1, 0)
		converted, err := again.Entry()
		require.NoError(t, err)
		require.Contains(t, string(converted.XML()), "<name>"+want[0].Name+"</name>", item)
	}
	empty, err := Parse(strings.NewReader(`{"version":"https://jsonfeed.org/version/1.1","title":"J","items":[{"id":"1"}]}`), "")
	require.NoError(t, err)
	require.Empty(t, compose.DraftOf(empty.Entries[0]).Authors)
}

// An entry copied from another feed names it, in both formats, and its draft has it again.
func TestDraftSource(t *testing.T) {
	feed, err := parse(draftable["atom"], "https://example.org/feed.atom")
	require.NoError(t, err)
	feed.Entries[0].Head.Title = "Feed"
	d := compose.DraftOf(feed.Entries[0])
	require.Nil(t, d.Source)
	d.Source = feed.Entries[0].Head
	e, err := d.Entry()
	require.NoError(t, err)
	require.Contains(t, string(e.XML()), "<title>Feed</title>\n<author><name>Feed</name>")
	again := compose.DraftOf(e)
	require.NotNil(t, again.Source)
	require.Equal(t, d.Extensions, again.Extensions)
	require.Equal(t, []Person{{Name: "Feed"}}, again.Source.Authors)
	same, err := again.Entry()
	require.NoError(t, err)
	require.Equal(t, string(e.XML()), string(same.XML()))
	j := compose.NewEntryJSON(e)
	same, err = j.Entry()
	require.NoError(t, err)
	require.NotNil(t, same.Source())
	var rss strings.Builder
	require.NoError(t, compose.WriteRSS(&rss, &Document{Title: "Planet", Entries: []*Entry{e}}))
	require.Contains(t, rss.String(), `<source url="https://example.org/feed.atom">Feed</source>`)
}

// json.Marshal gives an entry the form of EntryJSON.
func TestEntryJSONIsTheFormOfEntries(t *testing.T) {
	for name, feed := range draftable {
		doc, err := parse(feed, "https://example.org/feed")
		require.NoError(t, err)
		for _, e := range doc.Entries {
			want, err := json.Marshal(compose.NewEntryJSON(e))
			require.NoError(t, err)
			got, err := json.Marshal(e)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got), name)
		}
	}
}
