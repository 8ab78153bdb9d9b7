package compose_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
)

// rich are documents whose every value is a token of its own.
var rich = map[string]string{
	"atom": `<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en"><id>urn:tok:feed</id><title>tokTitle</title><subtitle>tokSubtitle</subtitle>
<updated>2020-01-02T03:04:05Z</updated><author><name>tokFeedAuthor</name><uri>http://h/tokFeedURI</uri><email>tokfeed@h.example</email></author>
<contributor><name>tokFeedContributor</name></contributor><category term="tokFeedTerm" scheme="http://h/tokFeedScheme" label="tokFeedLabel"/>
<rights>tokFeedRights</rights><generator uri="http://h/tokGeneratorURI" version="tokVersion">tokGenerator</generator><logo>http://h/tokLogo</logo>
<link href="http://h/tokHome"/><link rel="self" href="http://h/tokSelf"/>
<podcast:liveItem xmlns:podcast="https://podcastindex.org/namespace/1.0"><podcast:a>tokLive</podcast:a></podcast:liveItem>
<entry><id>urn:tok:1</id><title>tokEntry &amp;amp; &lt;b></title><updated>2020-01-02T03:04:05.25Z</updated><published>2020-01-01T00:00:00Z</published>
<summary type="html">tokSummary</summary><content type="html">&lt;p>tokContent&lt;/p></content>
<author><name>tokAuthor</name><uri>http://h/tokURI</uri><email>tok@h.example</email></author><contributor><name>tokContributor</name></contributor>
<category term="tokTerm" scheme="http://h/tokScheme" label="tokLabel"/><rights>tokRights</rights>
<source><id>urn:tok:source</id><title>tokSource</title></source><link href="http://h/tokLink"/><link rel="via" href="http://h/tokVia" title="tokViaTitle" hreflang="de" type="text/html"/>
<link rel="enclosure" href="http://h/tokEnclosure" type="audio/mpeg" length="31"/>
<media:thumbnail xmlns:media="http://search.yahoo.com/mrss/" url="http://h/tokThumbnail"/><thr:in-reply-to xmlns:thr="http://purl.org/syndication/thread/1.0" ref="tokReply"/></entry></feed>`,
	"rss": `<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:slash="http://purl.org/rss/1.0/modules/slash/"><channel>
<title>tokTitle</title><link>http://h/tokHome</link><description>tokSubtitle</description><language>de</language><copyright>tokCopyright</copyright>
<managingEditor>tok@h.example (tokEditor)</managingEditor><webMaster>web@h.example (tokMaster)</webMaster><lastBuildDate>Thu, 02 Jan 2020 03:04:05 GMT</lastBuildDate>
<category domain="tokDomain">tokFeedCategory</category><generator>tokGenerator</generator><docs>http://h/tokDocs</docs><rating>tokRating</rating>
<image><url>http://h/tokImage</url><title>tokImageTitle</title><link>http://h/tokHome</link></image>
<textInput><title>tokInput</title><description>tokInputText</description><name>tokInputName</name><link>http://h/tokInputLink</link></textInput>
<item><guid isPermaLink="false">tok-1</guid><title>tokItem H&lt;sub>2&lt;/sub>O</title><link>http://h/tokLink</link><pubDate>Wed, 01 Jan 2020 00:00:00 +0000</pubDate>
<description>tokSummary</description><content:encoded>&lt;p>tokContent&lt;/p></content:encoded><dc:creator>tokFirst</dc:creator><dc:creator>tokSecond</dc:creator>
<category domain="http://h/tokScheme">tokCategory</category><comments>http://h/tokComments</comments><source url="http://h/tokSourceURL">tokSource</source>
<enclosure url="http://h/tokEnclosure" length="31" type="audio/mpeg"/><itunes:duration>tokDuration</itunes:duration><slash:comments>731</slash:comments></item></channel></rss>`,
	"json": `{"version":"https://jsonfeed.org/version/1.1","title":"tokTitle","description":"tokSubtitle","home_page_url":"http://h/tokHome","language":"fr",
"icon":"http://h/tokIcon","authors":[{"name":"tokFeedAuthor","url":"http://h/tokFeedURI"}],
"items":[{"id":"tok-1","url":"http://h/tokLink","title":"tokItem","summary":"tokSummary","content_html":"<p>tokContent</p>","image":"http://h/tokImage",
"banner_image":"http://h/tokBanner","language":"en","tags":["tokTag"],"date_published":"2020-01-01T00:00:00Z","date_modified":"2020-01-02T00:00:00Z",
"authors":[{"name":"tokAuthor","url":"http://h/tokURI"}],"attachments":[{"url":"http://h/tokEnclosure","mime_type":"audio/mpeg","size_in_bytes":31}]}]}`,
}

var writers = map[string]func(*bytes.Buffer, *feedhistory.Document) error{
	"atom": func(w *bytes.Buffer, d *feedhistory.Document) error { return compose.WriteAtom(w, d) },
	"rss":  func(w *bytes.Buffer, d *feedhistory.Document) error { return compose.WriteRSS(w, d) },
	"jsonl": func(w *bytes.Buffer, d *feedhistory.Document) error { // drafts, as publish makes them of lines
		copied := d.Head()
		for _, e := range d.Entries {
			j := compose.NewEntryJSON(e)
			made, err := j.Entry()
			if err != nil {
				return err
			}
			copied.Entries = append(copied.Entries, made)
		}
		return compose.WriteAtom(w, copied)
	},
}

// rewritten writes a document by a writer, and reads it again.
func rewritten(t *testing.T, name string, d *feedhistory.Document) (*feedhistory.Document, string) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, writers[name](&b, d))
	text := b.String()
	again, err := feedhistory.Parse(&b, "http://h/feed")
	require.NoError(t, err, text)
	require.Empty(t, again.Notes, text)
	return again, text
}

// facts are a document's fields, its entries as lines, and the names of the elements kept in
// its head section.
func facts(d *feedhistory.Document) []string {
	if slices.Equal(d.Authors, []feedhistory.Person{{Name: d.Title}}) { // whom Atom requires
		d.Authors = nil
	}
	all := []string{
		"title " + d.Title, "subtitle " + d.Subtitle, "language " + d.Language, "icon " + d.Icon, fmt.Sprint("authors ", d.Authors), fmt.Sprint("links ", d.Links),
	}
	for _, e := range d.Entries {
		j := compose.NewEntryJSON(e)
		if j.Updated == j.Published { // Atom requires updated
			j.Updated = ""
		}
		slices.SortFunc(j.Links, func(a, b feedhistory.Link) int { return strings.Compare(a.Href, b.Href) })
		all = append(all, "id "+j.ID, "updated "+j.Updated, "published "+j.Published, "title "+e.Title().Plain(), "summary "+e.Summary().Plain(),
			"content "+e.Content().Plain(), fmt.Sprint("authors ", j.Authors), fmt.Sprint("categories ", j.Categories), fmt.Sprint("links ", j.Links))
		names := []string{}
		for _, x := range j.Extensions {
			names = append(names, x.Name)
		}
		slices.Sort(names)
		all = append(all, fmt.Sprint("extensions ", names))
	}
	return all
}

// Any format to any other, by any way of two, and back: each token is still there, and the
// fields are equal.
func TestTokens(t *testing.T) {
	for name, text := range rich {
		original, err := parse(text, "http://h/feed")
		require.NoError(t, err)
		tokens := tokensOf(text)
		for first := range writers {
			for second := range writers {
				t.Run(name+"-"+first+"-"+second, func(t *testing.T) {
					there, one := rewritten(t, first, original)
					back, two := rewritten(t, second, there)
					for _, text := range []string{one, two} {
						for _, token := range tokens {
							require.Contains(t, text, token)
						}
					}
					require.Equal(t, facts(original), facts(there), one)
					require.Equal(t, facts(original), facts(back), two)
				})
			}
		}
	}
}

// tokensOf returns the words of a text that begin with tok.
func tokensOf(text string) (tokens []string) {
	for i := strings.Index(text, "tok"); i >= 0; i = strings.Index(text, "tok") {
		text = text[i:]
		end := strings.IndexFunc(text, func(c rune) bool {
			return c != '-' && c != ':' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z')
		})
		tokens = append(tokens, text[:end])
		text = text[end:]
	}
	return tokens
}
