package sqlstore_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// An archive feed has so many archives of 50 entries of 1 KB.
func archiveFeed(archives int) http.Handler {
	text := strings.Repeat("All work and no play makes Jack a dull boy. ", 18)
	start := time.Date(2004, 1, 1, 0, 0, 0, 0, time.UTC)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil || n > archives {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("ETag", fmt.Sprintf(`"%d"`, n))
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		b := append(make([]byte, 0, 64<<10), `<feed xmlns="http://www.w3.org/2005/Atom"><title>Jack</title>`...)
		if n > 1 {
			b = fmt.Appendf(b, `<link rel="prev-archive" href="/%d"/>`, n-1)
		}
		number := func(before string, n int) { b = strconv.AppendInt(append(b, before...), int64(n), 10) }
		for i := range 50 {
			number("<entry><id>urn:", n)
			number(":", i)
			number("</id><title>Page ", i)
			number(" of ", n)
			b = append(b, "</title><updated>"...)
			b = start.Add(time.Duration(n*50-i)*time.Hour).AppendFormat(b, time.RFC3339)
			number(`</updated><link href="http://example.org/`, n)
			number("/", i)
			b = append(append(b, `"/><content>`...), text...)
			number(" ", n*i)
			b = append(b, "</content></entry>"...)
		}
		_, _ = w.Write(append(b, "</feed>"...))
	})
}

// BenchmarkFirstMirror reads 1,000 archives of 50 entries of 1 KB from loopback,
// each of them one durable commit, and then has them indexed for search. Of the
// heap it samples the most in use.
func BenchmarkFirstMirror(b *testing.B) {
	const archives = 1000
	for _, name := range []string{"sqlite", "postgresql"} {
		b.Run(name, func(b *testing.B) {
			site := httptest.NewServer(archiveFeed(archives))
			defer site.Close()
			var spent, indexing time.Duration
			var most atomic.Uint64
			for range b.N {
				b.StopTimer()
				d := newSQLite(b)
				if name == "postgresql" {
					d = newPostgreSQL(b)
				}
				store := d.open(b)
				stop := sampleHeap(&most)
				b.StartTimer()
				begun := time.Now()
				changes, err := newMirror(b, store).Update(b.Context(), fmt.Sprintf("%s/%d", site.URL, archives))
				require.NoError(b, err)
				spent += time.Since(begun)
				require.NoError(b, store.Index(b.Context()))
				indexing += time.Since(begun)
				stop()
				require.Equal(b, archives*50, changes.Added)
			}
			entries := float64(b.N * archives * 50)
			b.ReportMetric(entries/spent.Seconds(), "entries/s")
			b.ReportMetric(entries/indexing.Seconds(), "entries/s-with-index")
			b.ReportMetric(float64(most.Load())/1e6, "peak-heap-MB")
			b.ReportMetric(peakRSS()/1e6, "peak-RSS-MB")
		})
	}
}

// sampleHeap notes the most bytes of heap in use until it is stopped.
func sampleHeap(most *atomic.Uint64) (stop func()) {
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most.Store(max(most.Load(), m.HeapInuse+m.StackInuse))
			}
		}
	}()
	return func() { close(done) }
}

// peakRSS is the most memory that this process has had, where Linux tells; the
// server of the benchmark is part of it.
func peakRSS() float64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kilobytes, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	n, _ := strconv.ParseFloat(kilobytes, 64)
	return n * 1024
}

// BenchmarkUnchangedPoll polls a feed that answers 304.
func BenchmarkUnchangedPoll(b *testing.B) {
	for _, name := range []string{"sqlite", "postgresql"} {
		b.Run(name, func(b *testing.B) {
			site := httptest.NewServer(archiveFeed(20))
			defer site.Close()
			d := newSQLite(b)
			if name == "postgresql" {
				d = newPostgreSQL(b)
			}
			m := newMirror(b, d.open(b))
			_, err := m.Update(b.Context(), site.URL+"/20")
			require.NoError(b, err)
			b.ResetTimer()
			for range b.N {
				changes, err := m.Update(b.Context(), site.URL+"/20")
				require.NoError(b, err)
				require.Zero(b, changes.Documents)
			}
		})
	}
}

// A counter counts statements.
type counter struct{ statements []string }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	c.statements = append(c.statements, q.SQL)
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A poll with nothing new is one request and five statements: to read the feed,
// to see whether the archive that it links to is processed, and a transaction of
// one that notes the poll.
func TestUnchangedPoll(t *testing.T) {
	config, err := pgx.ParseConfig(newPostgreSQL(t).dsn)
	require.NoError(t, err)
	count := &counter{}
	config.Tracer = count
	db := stdlib.OpenDB(*config)
	defer db.Close()
	store, err := sqlstore.Open(t.Context(), db, sqlstore.PostgreSQL)
	require.NoError(t, err)
	requests := 0
	feed := archiveFeed(5)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		feed.ServeHTTP(w, r)
	}))
	defer site.Close()
	m := newMirror(t, store)
	for range 2 { // at the second all statements are prepared
		_, err = m.Update(t.Context(), site.URL+"/5")
		require.NoError(t, err)
	}
	count.statements, requests = nil, 0
	_, err = m.Update(t.Context(), site.URL+"/5")
	require.NoError(t, err)
	require.Equal(t, 1, requests)
	require.LessOrEqual(t, len(count.statements), 5, "%q", count.statements)
}
