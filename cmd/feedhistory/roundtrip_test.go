package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

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
		require.Equal(t, linesOf(t, second, "feed"), linesOf(t, third, "feed"))

		was, is := linesOf(t, first, "feed"), linesOf(t, second, "feed")
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
		require.Equal(t, "'"+cell, schema.Inert(cell))
	}
	require.Equal(t, "a=1", schema.Inert("a=1"))
}
