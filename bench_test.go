//go:build unix

package feedhistory_test

import (
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

	. "github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/togofeed"
)

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
			_, err := togofeed.Item(e)
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
	for _, format := range []Format{FormatAtom, FormatRSS, FormatJSONFeed} {
		corpora[string(format)+"-large"] = []string{feedtest.Generated(string(format), 50, 4<<10)}
		corpora[string(format)+"-small"] = []string{feedtest.Generated(string(format), 15, 512)}
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
