package publish

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

var million = flag.Int("million", 50_000, "how many entries BenchmarkSplit splits in one go")

// manyEntries returns n entries of about half a kilobyte, quickly.
func manyEntries(t testing.TB, from, n int) (all []*feedhistory.Entry) {
	for to := from + n; from < to; {
		var b strings.Builder
		b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom">`)
		for end := min(from+10_000, to); from < end; from++ {
			fmt.Fprintf(&b, `<entry><id>tag:example.org,2003:%d</id><title>Entry %[1]d</title><updated>%[2]s</updated>`+
				`<link href="https://example.org/%[1]d"/><content type="html">%[3]s</content></entry>`,
				from, day.Add(time.Duration(from)*time.Minute).Format(time.RFC3339), strings.Repeat("&lt;p>Some text.&lt;/p> ", 13))
		}
		b.WriteString(`</feed>`)
		doc, err := feedhistory.Parse(strings.NewReader(b.String()), "")
		require.NoError(t, err)
		all = append(all, doc.Entries...)
	}
	return all
}

// BenchmarkAppend publishes one more entry: the 101st and the 100,001st, in
// memory and in a directory. An archive is closed every 100 times.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{100, feedtest.Scaled(100_000, 1000)} {
		log := manyEntries(b, 0, n)
		for _, where := range []string{"memory", "dir"} {
			b.Run(fmt.Sprintf("%s/%d", where, n+1), func(b *testing.B) {
				out := newMemory()
				p := &Publisher{Output: out, Base: base}
				if where == "dir" {
					p.Output = counting{Dir{Path: b.TempDir()}, out}
				}
				require.NoError(b, p.Append(b.Context(), log...))
				out.written, out.names = 0, map[string]string{}
				b.ReportAllocs()
				next := n
				more := manyEntries(b, n, 1000)
				for b.Loop() {
					if len(more) == 0 {
						b.StopTimer()
						more = manyEntries(b, next, 1000)
						b.StartTimer()
					}
					if err := p.Append(b.Context(), more[0]); err != nil {
						b.Fatal(err)
					}
					more, next = more[1:], next+1
				}
				b.ReportMetric(float64(out.written)/float64(b.N), "written-B/op")
			})
		}
	}
}

// counting counts the bytes that are written to a directory.
type counting struct {
	Dir
	m *memory
}

func (c counting) Put(ctx context.Context, name string, data []byte) error {
	c.m.written += int64(len(data))
	return c.Dir.Put(ctx, name, data)
}

// BenchmarkSplit publishes a long log in one go, into 10,000 archives at most.
func BenchmarkSplit(b *testing.B) {
	log := manyEntries(b, 0, feedtest.Scaled(*million, 1000))
	for _, where := range []string{"nowhere", "dir"} {
		b.Run(where, func(b *testing.B) {
			var peak uint64
			for b.Loop() {
				var out Output = nowhere{newMemory()}
				if where == "dir" {
					out = Dir{Path: b.TempDir()}
				}
				p := &Publisher{Output: out, Base: base}
				peak = max(peak, peakOf(func() { require.NoError(b, p.Append(b.Context(), log...)) }))
			}
			b.ReportMetric(float64(len(log)*b.N)/b.Elapsed().Seconds(), "entries/s")
			b.ReportMetric(float64(peak)/(1<<20), "peak-MB")
		})
	}
}

// nowhere keeps only the subscription document.
type nowhere struct{ *memory }

func (n nowhere) Put(ctx context.Context, name string, data []byte) error {
	if archiveName.MatchString(name) {
		return nil
	}
	return n.memory.Put(ctx, name, data)
}

// peakOf returns the maximum of additional heap bytes while f runs.
func peakOf(f func()) (peak uint64) {
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	done := make(chan struct{})
	var sampler sync.WaitGroup
	sampler.Go(func() {
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
				runtime.ReadMemStats(&now)
				peak = max(peak, now.HeapAlloc-min(now.HeapAlloc, before.HeapAlloc))
			}
		}
	})
	f()
	close(done)
	sampler.Wait()
	return peak
}
