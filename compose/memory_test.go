package compose_test

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/publish"
)

// The memory that writing an entry takes: so many times its length, plus a constant. See
// docs/FORMATS.md.
const memoryOfEntry, memoryOfWriter = 64, 1 << 20

// peakOf returns the most bytes of heap at a time while f runs, beyond those before.
func peakOf(f func()) (peak int) {
	defer debug.SetGCPercent(debug.SetGCPercent(5))                             // garbage does not count
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))) // so the garbage collector can run at the same time as f
	heap := func() int {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	runtime.GC()
	before, done, stopped := heap(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				peak = max(peak, heap()-before)
			}
		}
	}()
	f()
	close(done)
	<-stopped
	return peak
}

// lines writes the line of each entry, as fetch and export do.
func lines(w io.Writer, d *Document) error {
	for _, e := range d.Entries {
		if err := json.NewEncoder(w).Encode(publish.NewLine(e)); err != nil {
			return err
		}
	}
	return nil
}

// Writing takes memory in proportion to the entry, in any format and from any, and nothing for
// a sound entry of the format.
func TestMemoryOfEntries(t *testing.T) {
	n := 1 << 18
	if feedtest.LongRun() {
		n = 1 << 20
	}
	base := "http://example.org/" + strings.Repeat("gallery/", 14)
	repeat := func(text string) string { return strings.Repeat(text, n/len(text)) }
	atom := func(inner string) string {
		return `<feed xmlns="` + feedxml.Atom + `" xml:base="` + base + `" xmlns:m="urn:media"><id>urn:f</id><title>f</title><updated>2024-01-01T00:00:00Z</updated><entry>` +
			`<id>urn:1</id><title>1</title><updated>2024-01-01T00:00:00Z</updated>` + inner + `</entry></feed>`
	}
	rss := func(inner string) string {
		return `<rss version="2.0" xml:base="` + base + `" xmlns:m="urn:media"><channel><title>f</title><item><guid isPermaLink="false">urn:1</guid>` + inner + `</item></channel></rss>`
	}
	item := func(member string) string {
		return `{"version":"https://jsonfeed.org/version/1.1","title":"f","items":[{"id":"urn:1",` + member + `}]}`
	}
	for name, text := range map[string]string{
		"sound text.atom": atom(`<content type="html">` + repeat("&lt;p>words&lt;/p> ") + `</content>`), "sound quotes.atom": atom(`<content type="html">` + repeat(`"`) + `</content>`),
		"sound links.atom": atom(`<content type="html"><![CDATA[` + repeat("<a href=x>") + `]]></content>`), "sound references.atom": atom(`<content type="html">` + repeat("&amp;") + `</content>`),
		"sound xhtml.atom": atom(`<content type="xhtml"><div xmlns="` + feedxml.XHTML + `">` + repeat(`<a href="x"/>`) + `</div></content>`),
		"extensions.atom":  atom(`<content>x</content>` + repeat(`<m:x/>`)), "source.atom": atom("<source>" + repeat("<rights/>") + "</source>"),
		"bare.atom": atom(`<content type="html">` + repeat("& ") + `</content>`), "unclosed.atom": atom(`<content type="html">` + repeat("<p><b>x</p>") + `</content>`),
		"sound text.rss": rss(`<description>` + repeat("&lt;p>words&lt;/p> ") + `</description>`), "sound quotes.rss": rss(`<description>` + repeat(`"`) + `</description>`),
		"sound links.rss": rss(`<description><![CDATA[` + repeat("<a href=x>") + `]]></description>`), "sound references.rss": rss(`<description>` + repeat("&amp;") + `</description>`),
		"escaped links.rss": rss(`<description>` + repeat("&lt;a href=x>") + `</description>`), "naked.rss": rss(`<description>` + repeat("<p/>") + `</description>`),
		"extensions.rss": rss(repeat(`<m:x/>`)), "enclosures.rss": rss(repeat(`<enclosure url="x" length="1" type="a/b"/>`)),
		"links.json": item(`"content_html":"` + repeat("<a href=x>") + `"`), "quotes.json": item(`"content_text":"` + repeat(`\"`) + `"`),
		"brackets.json": item(`"content_text":"` + repeat("<") + `"`), "tags.json": item(`"tags":[` + repeat(`"a",`) + `"b"]`), "members.json": item(`"_x":[` + repeat("1,") + `1]`),
	} {
		doc, err := parse(text, base+"feed")
		require.NoError(t, err, name)
		for format, write := range map[string]func(io.Writer, *Document) error{"atom": compose.WriteAtom, "rss": compose.WriteRSS, "jsonl": lines} {
			peak, most := 0, memoryOfEntry*len(text)+memoryOfWriter
			for range 3 { // a peak may have garbage, if the collector is late
				peak = peakOf(func() { err = write(io.Discard, doc) })
				require.NoError(t, err, "%s as %s", name, format)
				if peak <= most {
					break
				}
			}
			require.LessOrEqual(t, peak, most, "%s as %s", name, format)
			if strings.HasPrefix(name, "sound") && strings.HasSuffix(name, format) {
				require.Less(t, int(feedtest.Allocated(func() { _ = write(io.Discard, doc) })), 64<<10, "%s is copied", name)
			}
		}
	}
}

// A document needs the memory of its largest entry, however many it has.
func TestMemoryOfDocuments(t *testing.T) {
	entry := func(i int) *Document {
		doc, err := parse(fmt.Sprintf(`<feed xmlns="`+feedxml.Atom+`"><id>urn:f</id><entry><id>urn:%d</id><content type="html">%s</content></entry></feed>`, i, strings.Repeat("&lt;p>words&lt;/p> ", 600)), "")
		require.NoError(t, err)
		return doc
	}
	for _, format := range []Format{FormatAtom, FormatRSS} {
		peak := peakOf(func() {
			w := compose.NewWriter(io.Discard, format, nil)
			for i := range 3000 { // 30 MB
				require.NoError(t, w.Add(entry(i).Entries...))
			}
			require.NoError(t, w.Close())
		})
		require.Less(t, peak, 8<<20, format)
	}
}
