package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/stretchr/testify/require"
)

// mirrored returns a store with a feed that is served once.
func mirrored(t *testing.T, feed string) (mirror.Store, string) {
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(feed))
	}))
	m := &mirror.Mirror{
		Store:  mirror.NewMemory(),
		Client: &feedhistory.Client{AllowPrivate: true},
	}
	defer m.Client.CloseIdle()
	_, err := m.Update(t.Context(), server.URL)
	require.NoError(t, err)
	return m.Store, server.URL
}

// A feed is exported as one document, in whatever language it is.
func TestExportFeedIsOneDocument(t *testing.T) {
	for _, n := range []int{0, 1, 500, 1007} {
		for _, format := range []feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS} {
			t.Run(fmt.Sprintf("%v of %d", format, n), func(t *testing.T) {
				store, url := mirrored(t, manyEntries(t, format, n))
				var out bytes.Buffer
				f, err := store.Feed(t.Context(), url)
				require.NoError(t, err)
				require.NoError(t, new(exportCommand).exportFeed(t.Context(), &out, &readableEntries{Store: store}, func(yield func(*mirror.Feed, error) bool) { yield(f, nil) }, format))
				doc, err := feedhistory.Parse(&out, url)
				require.NoError(t, err)
				require.Empty(t, doc.Notes)
				require.Equal(t, feedhistory.KindComplete, doc.Kind())
				require.Equal(t, "Many", doc.Title)
				require.Len(t, doc.Entries, n)
				for i, e := range doc.Entries {
					require.Equal(t, fmt.Sprintf("urn:%d", n-i), e.ID)
					require.Equal(t, fmt.Sprintf("Entry <%d>", n-i), e.Title().Body)
					require.Equal(t, "text", e.Summary().Plain()+e.Content().Plain(), "Atom has the only text of an entry without a link as content")
				}
			})
		}
	}
}

// manyEntries returns a complete feed, newest first.
func manyEntries(t *testing.T, format feedhistory.Format, n int) string {
	head := &feedhistory.Document{Title: "Many", ID: "urn:many"}
	var entries []*feedhistory.Entry
	for i := n; i > 0; i-- {
		e, err := compose.Draft{
			ID: fmt.Sprintf("urn:%d", i), Title: feedhistory.Text{Body: fmt.Sprintf("Entry <%d>", i)},
			Updated: time.Unix(int64(i)*3600, 0).UTC(), Published: time.Unix(int64(i)*3600, 0).UTC(), Summary: feedhistory.Text{Body: "text"},
		}.Entry()
		require.NoError(t, err)
		entries = append(entries, e)
	}
	doc := compose.Complete(head, entries, "https://example.org/feed")
	var b strings.Builder
	require.NoError(t, compose.NewWriter(&b, format, doc).Close())
	return strings.NewReplacer("<feed ", `<feed xml:lang="de" `, "<channel>", "<channel><language>de</language>").Replace(b.String())
}

// The lines of a feed can be published, whatever its text is.
func TestExportedTextCanBePublished(t *testing.T) {
	const xhtml = `<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">%s</div></content>`
	for _, content := range []string{
		"", "<content>plain &amp; simple</content>", `<content type="html">&lt;p>open &lt;br> &amp;amp; </content>`,
		fmt.Sprintf(xhtml, "<p>fine <b>text</b></p>"), fmt.Sprintf(xhtml, `a <br/> line <img src="x.png"/>`),
		fmt.Sprintf(xhtml, "a & b &nbsp; c"), `<content type="image/png">aGVsbG8=</content>`, `<content type="text/x" src="a.txt"/>`,
		`<content type="application/xml"><a xmlns="urn:a"/></content>`,
		`<content type="xhtml"><h:div xmlns:h="http://www.w3.org/1999/xhtml"><h:p>prefixed</h:p></h:div></content>`,
	} {
		t.Run(content, func(t *testing.T) {
			store, url := mirrored(t, `<feed xmlns="http://www.w3.org/2005/Atom"><title>Feed</title><id>urn:feed</id><entry><id>urn:1</id>`+
				`<title type="html">&lt;b>Title</title><updated>2003-12-13T18:30:02.5+01:00</updated>`+content+`</entry></feed>`)
			record := onlyRecord(t, store, url)
			exported, err := show.RecordOf(record)
			require.NoError(t, err)
			var line bytes.Buffer
			require.NoError(t, terminal.WriteJSON(&line, exported))
			was, err := record.Entry()
			require.NoError(t, err)
			n := 0
			for read, err := range publish.Lines(&line, nil) {
				require.NoError(t, err)
				is, err := read.Entry()
				require.NoError(t, err)
				require.Equal(t, was.ID, is.ID)
				require.True(t, was.Updated.Equal(is.Updated))
				require.Equal(t, was.Title().Plain(), is.Title().Plain())
				require.Equal(t, was.Content().Plain(), is.Content().Plain())
				require.Equal(t, was.Content().Src, is.Content().Src)
				n++
			}
			require.Equal(t, 1, n)
		})
	}
}

func onlyRecord(t *testing.T, store mirror.Store, feed string) *mirror.Record {
	records := feedtest.All(t, store.Entries(t.Context(), mirror.Query{Feed: feed}))
	require.Len(t, records, 1)
	return records[0]
}

// This feed has everything that an entry may have.
const richFeed = `<rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:podcast="https://podcastindex.org/namespace/1.0"
 xmlns:media="http://search.yahoo.com/mrss/" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:content="http://purl.org/rss/1.0/modules/content/"
 xmlns:atom="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><channel><title>Pod</title><fh:complete/>
<item><guid isPermaLink="false">urn:1</guid><title>One</title><link>https://example.org/1</link><pubDate>Sat, 13 Dec 2003 18:30:02 +0100</pubDate>
<atom:updated>2003-12-14T18:30:02.125+01:00</atom:updated>
<author>ann@example.org (Ann)</author><dc:creator>Bob</dc:creator><category domain="https://example.org/terms">news</category><category>x</category>
<description>&lt;p>Short</description><content:encoded><![CDATA[<p>Long <img src="/i.png">]]></content:encoded>
<enclosure url="https://example.org/1.mp3" length="1000" type="audio/mpeg"/>
<itunes:duration>42:00</itunes:duration><itunes:episode>7</itunes:episode><itunes:image href="https://example.org/i.png"/>
<podcast:chapters url="https://example.org/c.json" type="application/json"/><podcast:person role="host">Jane &amp; Joe</podcast:person>
<media:group><media:content url="v.mp4" medium="video"/></media:group></item>
<item><guid isPermaLink="false">urn:2</guid><title>=HYPERLINK("http://x/")</title><description>Two</description><dc:creator>Zoe</dc:creator></item>
</channel></rss>`

// linesOf are the lines that a program prints, as values, without some members.
func linesOf(t *testing.T, text string, without ...string) (lines []map[string]any) {
	for line := range strings.Lines(text) {
		var value map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &value), line)
		for _, name := range without {
			delete(value, name)
		}
		lines = append(lines, value)
	}
	return lines
}

func serveDirectory(t *testing.T) (dir, url string) {
	dir = t.TempDir()
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("If-Modified-Since") // whose seconds are too long
		http.FileServer(http.Dir(dir)).ServeHTTP(w, r)
	}))
	return dir, server.URL
}

func done(t *testing.T, stdin string, args ...string) (stdout string) {
	t.Helper()
	status, stdout, stderr := call(t.Context(), stdin, args...)
	require.Zero(t, status, "%q: %s", args, stderr)
	return stdout
}

// A feed that is fetched, published and fetched again says the same.
func TestFetchedIsPublished(t *testing.T) {
	dir, url := serveDirectory(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pod.rss"), []byte(richFeed), 0o600))
	first := done(t, "", "fetch", "--allow-private", url+"/pod.rss")
	for _, raw := range []string{"", "--raw"} {
		name := "copy" + raw
		input := done(t, "", strings.Fields("fetch --allow-private "+raw+" "+url+"/pod.rss")...)
		done(t, input, "publish", "--out", filepath.Join(dir, name), "--base", url+"/"+name+"/")
		second := done(t, "", "fetch", "--allow-private", url+"/"+name+"/feed.atom")
		done(t, second, "publish", "--out", filepath.Join(dir, "again"+raw), "--base", url+"/again"+raw+"/")
		third := done(t, "", "fetch", "--allow-private", url+"/again"+raw+"/feed.atom")
		require.Equal(t, linesOf(t, second, "feed", "head"), linesOf(t, third, "feed", "head"))

		was, is := linesOf(t, first, "feed", "head"), linesOf(t, second, "feed", "head")
		delete(is[0], "updated") // what the feed gives no time has that of its publication
		delete(was[1], "updated")
		require.Len(t, was, 2)
		was[1]["content"] = was[1]["summary"] // it has no link (RFC 4287 §4.1.2)
		delete(was[1], "summary")
		require.ElementsMatch(t, []string{"urn:1", "urn:2"}, []any{is[0]["id"], is[1]["id"]})
		require.ElementsMatch(t, was, is)
		require.Len(t, was[0]["extensions"], 6)
	}
}

// A spreadsheet takes nothing in a table for a formula.
func TestFetchTable(t *testing.T) {
	dir, url := serveDirectory(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pod.rss"), []byte(richFeed), 0o600))
	table := done(t, "", "fetch", "--allow-private", "--format", "csv", url+"/pod.rss")
	require.Equal(t, "feed,id,published,updated,title,link,authors,categories,enclosure,deleted,text\r\n"+
		url+"/pod.rss,urn:1,2003-12-13T17:30:02Z,2003-12-14T17:30:02.125Z,One,https://example.org/1,Ann; Bob,news; x,https://example.org/1.mp3,,Long\r\n"+
		url+`/pod.rss,urn:2,,,"'=HYPERLINK(""http://x/"")",,Zoe,,,,Two`+"\r\n", table)
	for _, cell := range []string{"=1", "+1", "-1", "@x", "\t=1", "\r=1", "＝1"} {
		require.Equal(t, "'"+cell, show.Inert(cell))
	}
	require.Equal(t, "a=1", show.Inert("a=1"))
}
