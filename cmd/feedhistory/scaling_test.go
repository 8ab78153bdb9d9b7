//go:build unix

package main

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
)

// scaledVerbs read a document from a file or a URL, and write into a directory.
var scaledVerbs = map[string]func(t *testing.T, file, url, dir string){
	"Parse": func(t *testing.T, file, url, _ string) {
		f, err := os.Open(file)
		require.NoError(t, err)
		defer f.Close()
		_, _ = feedhistory.Parse(f, url)
	},
	"inspect": called(func(file, url, _ string) []string {
		return []string{"inspect", "--json", "--base", "https://example.org/feed", file}
	}),
	"fetch":       called(func(_, url, _ string) []string { return []string{"fetch", "--allow-private", "--format", "atom", url} }),
	"fetch --raw": called(func(_, url, _ string) []string { return []string{"fetch", "--allow-private", "--raw", url} }),
	"check":       called(func(_, url, _ string) []string { return []string{"check", "--allow-private", "--chain", url} }),
	"publish": called(func(_, url, dir string) []string {
		return []string{"publish", "--allow-private", "--from", url, "--format", "rss", "--out", filepath.Join(dir, "pub"), "--base", "https://example.org/"}
	}),
	"sync": called(func(_, url, dir string) []string {
		return []string{"sync", "--allow-private", "--db", filepath.Join(dir, "feeds.db"), url}
	}),
	"import of a document": called(func(file, _, dir string) []string {
		return []string{"import", "--db", filepath.Join(dir, "feeds.db"), "--from", "directory", file, "https://example.org/feed"}
	}),
	"import of a list": called(func(file, _, dir string) []string {
		return []string{"import", "--db", filepath.Join(dir, "feeds.db"), "--from", "opml", file}
	}),
	"import of lines": called(func(file, _, dir string) []string {
		return []string{"import", "--db", filepath.Join(dir, "feeds.db"), file}
	}),
	"publish of lines": called(func(file, _, dir string) []string {
		return []string{"publish", "--from", file, "--out", filepath.Join(dir, "pub"), "--base", "https://example.org/"}
	}),
}

// called is a verb, however it ends.
func called(args func(file, url, dir string) []string) func(t *testing.T, file, url, dir string) {
	return func(t *testing.T, file, url, dir string) { _, _, _ = call(t.Context(), "", args(file, url, dir)...) }
}

// scaledUnits are the units of a place that holds no markup of feeds.
var scaledUnits = map[string][]string{
	"json items":  {`{"id":"1"},`, `{"id":"1","url":"a"},`, `[`, `{"a":`, `{"id":"1","content_html":"<b>`, `{"id":"1","attachments":[{"url":"a"}]},`},
	"json item":   {`"a":1,`, `"id":"1",`, `"url":"a",`, `"tags":["a"],`, `"content_html":"<b>",`, `"title":"\\u0000",`},
	"list":        {`<outline text="a">`, `<outline text="a"/>`, `<outline text="a" xmlUrl="https://example.org/feed"/>`, `<outline xmlUrl="https://example.org/feed">`, `<b>`, `</outline>`, `&a`},
	"lines":       {"{}\n", "[", `{"a":`, "\n", `{"kind":"feed","url":"https://example.org/feed"}` + "\n", `{"id":"1","title":"A"}` + "\n"},
	"no document": {"<", "<a ", "&", "a", "<!DOCTYPE ", "<?xml ", "<html><link rel=alternate type=application/atom+xml href=a>", "\x00", "\xff"},
}

var scaledPlaces = map[string]string{
	"json items":  `{"version":"https://jsonfeed.org/version/1.1","title":"t","items":[%s{"id":"2"}]}`,
	"json item":   `{"version":"https://jsonfeed.org/version/1.1","title":"t","items":[{%s"id":"2"}]}`,
	"list":        `<opml version="2.0"><body>%s</body></opml>`,
	"lines":       "%s",
	"no document": "%s",
}

// A document eight times as long costs each verb at most ten times the processor time, for each
// unit repeated at each place. A quadratic verb would need 64 times as much.
func TestVerbsScale(t *testing.T) {
	feedtest.Long(t)
	var text atomic.Pointer[string]
	site := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, *text.Load()) }))
	type scaled struct{ verb, place, document, unit string }
	var all []scaled
	for _, verb := range slices.Sorted(maps.Keys(scaledVerbs)) {
		for _, place := range slices.Sorted(maps.Keys(feedtest.Places)) {
			for _, unit := range feedtest.Units {
				all = append(all, scaled{verb, place, feedtest.Places[place], unit})
			}
		}
		for _, place := range slices.Sorted(maps.Keys(scaledPlaces)) {
			for _, unit := range scaledUnits[place] {
				all = append(all, scaled{verb, place, scaledPlaces[place], unit})
			}
		}
	}
	random := rand.New(rand.NewPCG(5005, 0))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	dir, runs := t.TempDir(), 0
	most := len(all)
	if !feedtest.LongRun() {
		most = feedtest.Count(most) / 8 // each takes dozens of runs
	}
	for _, s := range all[:most] {
		cost := func(n int) time.Duration {
			runs++
			document, own := feedtest.Repeated(s.document, s.unit, n), filepath.Join(dir, fmt.Sprint(runs))
			require.NoError(t, os.Mkdir(own, 0o700))
			defer os.RemoveAll(own)
			file := filepath.Join(own, "feed.xml")
			require.NoError(t, os.WriteFile(file, []byte(document), 0o600))
			text.Store(&document)
			before := feedtest.ProcessorTime(t)
			scaledVerbs[s.verb](t, file, site.URL+"/"+fmt.Sprint(runs), own)
			return feedtest.ProcessorTime(t) - before
		}
		// The fixed cost of a verb is not counted. The clock's precision is the least.
		const least = 5 * time.Millisecond
		fixed := min(cost(1), cost(1), cost(1))
		counted := func(n int) time.Duration { return max(cost(n)-fixed, least) }
		ratio, n := 64.0, 250
		for try := 0; try < 8 && ratio > 10; try++ {
			once := counted(n)
			for ; once < 2*least && n*len(s.unit) < 100_000; once = counted(n) {
				n *= 2
			}
			ratio = min(ratio, float64(counted(8*n))/float64(once))
		}
		require.LessOrEqual(t, ratio, 10.0, "%s: %d times %q in %s: as many times as long for eight times as many", s.verb, n, s.unit, strings.ReplaceAll(s.place, "\n", " "))
	}
}
