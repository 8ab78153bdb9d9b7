//go:build unix

package feedhistory

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mmcdole/gofeed"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// generated returns a feed of n entries with content of about size bytes. The entries have
// what real ones have: several authors and categories, relative links, images and
// extensions.
func generated(format Format, n, size int) string {
	const paragraph = `<p>All work and no play makes Jack a <a href="/dull?a=1&amp;b=2">dull</a> boy, <em>&amp;</em> so on &mdash; thus <a href="http://example.org/it">it</a> goes.<br/><img src="images/1.png" alt="Jack"></p>` + "\n"
	body := strings.Repeat(paragraph, max(1, size/len(paragraph)))
	var escaped strings.Builder
	xmlscan.WriteText(&escaped, body)
	var b strings.Builder
	switch format {
	case Atom:
		b.WriteString(`<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0" xmlns:thr="http://purl.org/syndication/thread/1.0" xml:base="http://example.org/blog/" xml:lang="en">
<title>Example</title><id>urn:feed</id><updated>2003-12-13T18:30:02Z</updated><fh:archive/>
<link rel="prev-archive" href="/2003/10/index.atom"/><link rel="self" href="/2003/11/index.atom"/><author><name>Editors</name></author>
`)
		for i := range n {
			fmt.Fprintf(&b, `<entry>
<title>Entry number %d &amp; more</title><link href="/2003/12/13/atom%d"/><link rel="replies" type="application/atom+xml" href="/2003/12/13/atom%d/comments"/>
<id>urn:uuid:1225c695-cfb8-4ebb-aaaa-%012d</id><updated>2003-12-13T18:30:02Z</updated><published>2003-12-13T18:30:02Z</published>
<author><name>John Doe</name><uri>/john</uri></author><author><name>Jane Doe</name><email>jane@example.org</email></author>
<category term="news"/><category term="work" label="Work &amp; play"/><thr:total>%d</thr:total>
<summary>All work and no play</summary>
<content type="html">%s</content>
</entry>
`, i, i, i, i, i, escaped.String())
		}
		b.WriteString("</feed>\n")
	case RSS:
		b.WriteString(`<?xml version="1.0"?>
<rss version="2.0" xmlns:fh="http://purl.org/syndication/history/1.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:slash="http://purl.org/rss/1.0/modules/slash/" xmlns:wfw="http://wellformedweb.org/CommentAPI/"><channel>
<title>Example</title><link>http://example.org/</link><description>Example</description><lastBuildDate>Fri, 30 May 2003 11:06:42 GMT</lastBuildDate><fh:archive/>
<atom:link rel="prev-archive" href="http://example.org/2003/04/index.rss"/>
`)
		for i := range n {
			fmt.Fprintf(&b, `<item>
<title>Entry number %d &amp; more</title><link>http://example.org/2003/12/13/rss%d</link><guid isPermaLink="false">urn:uuid:1225c695-cfb8-4ebb-aaaa-%012d</guid>
<comments>http://example.org/2003/12/13/rss%d#comments</comments>
<pubDate>Tue, 03 Jun 2003 09:39:21 GMT</pubDate><dc:creator><![CDATA[John Doe]]></dc:creator><category><![CDATA[news]]></category><category><![CDATA[work]]></category>
<description>All work and no play</description><content:encoded><![CDATA[%s]]></content:encoded>
<wfw:commentRss>http://example.org/2003/12/13/rss%d/feed</wfw:commentRss><slash:comments>%d</slash:comments>
</item>
`, i, i, i, i, body, i, i)
		}
		b.WriteString("</channel></rss>\n")
	default:
		b.WriteString(`{"version":"https://jsonfeed.org/version/1.1","title":"Example","home_page_url":"http://example.org/","items":[`)
		for i := range n {
			item, _ := json.Marshal(map[string]any{
				"id": fmt.Sprint(i), "url": fmt.Sprintf("http://example.org/2003/12/13/%d", i), "title": fmt.Sprintf("Entry number %d & more", i),
				"content_html": body, "summary": "All work and no play", "date_published": "2003-12-13T18:30:02Z", "date_modified": "2003-12-13T18:30:02Z",
				"authors": []map[string]string{{"name": "John Doe", "url": "http://example.org/john"}, {"name": "Jane Doe"}}, "tags": []string{"news", "work"},
			})
			b.WriteString(strings.Repeat(",", min(i, 1)) + "\n" + string(item))
		}
		b.WriteString("]}\n")
	}
	return b.String()
}

// readings are the ways of reading a document that BENCHMARKS.md compares.
var readings = []struct {
	name string
	read func(t require.TestingT, text string) (entries int)
}{
	{"gofeed", func(t require.TestingT, text string) int {
		feed, err := gofeed.NewParser().ParseString(text)
		if err != nil {
			return 0
		}
		return len(feed.Items)
	}},
	{"parse", func(t require.TestingT, text string) int { return len(benchParse(t, text).Entries) }},
	{"texts", func(t require.TestingT, text string) int {
		doc := benchParse(t, text)
		for _, e := range doc.Entries {
			_, _, _ = e.Title(), e.Summary(), e.Content()
		}
		return len(doc.Entries)
	}},
	{"decode", func(t require.TestingT, text string) int {
		doc := benchParse(t, text)
		for _, e := range doc.Entries {
			_, err := e.Decode()
			require.NoError(t, err)
		}
		return len(doc.Entries)
	}},
}

func benchParse(t require.TestingT, text string) *Document {
	doc, _ := Parse(strings.NewReader(text), "http://example.org/feed")
	require.NotNil(t, doc)
	return doc
}

// benchmarkCorpora are the documents behind the figures in BENCHMARKS.md.
func benchmarkCorpora(b *testing.B) map[string][]string {
	corpora := map[string][]string{}
	for _, format := range []Format{Atom, RSS, JSONFeed} {
		corpora[format.String()+"-large"] = []string{generated(format, 50, 4<<10)}
		corpora[format.String()+"-small"] = []string{generated(format, 15, 512)}
	}
	if dir := os.Getenv("DOCUMENTS"); dir != "" { // for parsers in other languages
		for name, texts := range corpora {
			require.NoError(b, os.WriteFile(filepath.Join(dir, name), []byte(texts[0]), 0o666))
		}
	}
	for _, dir := range strings.Fields(os.Getenv("FEEDS")) { // patterns of real feeds, by hand
		for _, file := range feedtest.Glob(b, dir) {
			data := feedtest.ReadFile(b, file)
			if feed, err := gofeed.NewParser().ParseString(string(data)); err == nil && len(feed.Items) > 0 {
				corpora["real"] = append(corpora["real"], string(data))
			}
		}
	}
	return corpora
}

// BenchmarkReading compares ways of reading, in turn, so that other load on the machine
// affects all of them: each metric is how many times faster than gofeed it is in processor
// time, or its allocations for an entry.
func BenchmarkReading(b *testing.B) {
	corpora := benchmarkCorpora(b)
	for _, name := range slices.Sorted(maps.Keys(corpora)) {
		b.Run(name, func(b *testing.B) {
			times, allocs, entries := map[string][]float64{}, map[string]float64{}, 0
			for b.Loop() {
				for _, reading := range readings {
					n, before := 0, mallocs()
					from, until := processorTime(), time.Now().Add(20*time.Millisecond)
					for time.Now().Before(until) || n == 0 {
						entries = 0
						for _, text := range corpora[name] {
							entries += reading.read(b, text)
						}
						n++
					}
					times[reading.name] = append(times[reading.name], float64(processorTime()-from)/float64(n))
					allocs[reading.name] = (mallocs() - before) / float64(n*entries)
				}
			}
			for _, reading := range readings {
				slices.Sort(times[reading.name])
				median := times[reading.name][len(times[reading.name])/2]
				if reading.name == "gofeed" {
					b.ReportMetric(median/1e6, "ms-gofeed")
				} else {
					b.ReportMetric(times["gofeed"][len(times["gofeed"])/2]/median, "x-"+reading.name)
				}
				b.ReportMetric(allocs[reading.name], "allocs-"+reading.name) // of an entry
			}
		})
	}
}

func mallocs() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.Mallocs)
}

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
