package sqlstore_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// texts are 5,000 texts of 790 bytes, with words as frequent as in a language.
var texts = sync.OnceValue(func() (texts []string) {
	w := newWriter()
	for range 5000 {
		var t strings.Builder
		for t.Len() < 790 {
			t.WriteString(w.vocabulary[w.often.Uint64()])
			t.WriteByte(' ')
		}
		texts = append(texts, t.String())
	}
	return texts
})

// An archive feed has a number of archives with 50 entries of 1 KB each.
func archiveFeed(archives int) http.Handler {
	texts := texts()
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
			b = append(append(b, `"/><content>`...), texts[(n*50+i)*7919%len(texts)]...)
			number(" ", n*i)
			b = append(b, "</content></entry>"...)
		}
		_, _ = w.Write(append(b, "</feed>"...))
	})
}

// BenchmarkFirstMirror reads 1,000 archives of 50 entries of 1 KB from
// loopback, commits them durably, and then indexes them. Then it inserts as
// many rows of the same size into a bare table of another database, 50 per
// commit: only the ratio matters. It samples the maximum of the heap in use.
func BenchmarkFirstMirror(b *testing.B) {
	archives := feedtest.Scaled(1000, 10)
	for _, name := range []string{"sqlite", "postgresql"} {
		b.Run(name, func(b *testing.B) {
			site := feedtest.Server(b, archiveFeed(archives))
			var bare, spent, indexing time.Duration
			var most atomic.Uint64
			var size int64
			var memory float64
			for range b.N {
				b.StopTimer()
				create := newSQLite
				if name == "postgresql" {
					create = newPostgreSQL
				}
				d := create(b)
				store := d.open(b)
				stop := sampleHeap(&most)
				b.StartTimer()
				begun := time.Now()
				changes, err := newMirror(b, store).Update(b.Context(), fmt.Sprintf("%s/%d", site.URL, archives))
				require.NoError(b, err)
				require.NoError(b, changes.Failure)
				spent += time.Since(begun)
				require.NoError(b, store.Index(b.Context()))
				indexing += time.Since(begun)
				stop()
				require.Equal(b, archives*50, changes.Added)
				if name == "sqlite" {
					pages := "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
					require.NoError(b, d.connect(b).QueryRow(pages).Scan(&size))
				}
				b.StopTimer()
				memory = peakRSS()
				bare += insertBare(b, create(b), archives)
				b.StartTimer()
			}
			entries := float64(b.N * archives * 50)
			b.ReportMetric(entries/bare.Seconds(), "bare-inserts/s")
			b.ReportMetric(entries/spent.Seconds(), "entries/s")
			b.ReportMetric(float64(bare)/float64(spent), "of-bare-inserts")
			b.ReportMetric(float64(size)/float64(archives*50), "file-bytes/entry")
			b.ReportMetric(entries/indexing.Seconds(), "entries/s-with-index")
			b.ReportMetric(float64(most.Load())/1e6, "peak-heap-MB")
			b.ReportMetric(memory/1e6, "peak-RSS-MB")
		})
	}
}

// insertBare inserts rows as large as entries into a table with a key and one
// index, 50 per commit, and returns how long that took.
func insertBare(b *testing.B, d database, commits int) time.Duration {
	b.Helper()
	db := d.connect(b)
	_, err := db.Exec("CREATE TABLE bare (feed BIGINT, id TEXT, data TEXT, PRIMARY KEY (feed, id))")
	require.NoError(b, err)
	query := "INSERT INTO bare VALUES " + strings.TrimSuffix(strings.Repeat("(?, ?, ?), ", 50), ", ")
	for n := 1; d.driver == "pgx" && n <= 150; n++ {
		query = strings.Replace(query, "?", fmt.Sprint("$", n), 1)
	}
	st, err := db.Prepare(query)
	require.NoError(b, err)
	defer st.Close()
	all, entry := texts(), strings.Repeat("x", 240)
	begun := time.Now()
	for n := range commits {
		var values []any
		for i := range 50 {
			values = append(values, 1, fmt.Sprintf("urn:%d:%d", n, i), entry+all[(n*50+i)*7919%len(all)])
		}
		_, err := st.Exec(values...)
		require.NoError(b, err)
	}
	return time.Since(begun)
}

// BenchmarkTenFeeds mirrors ten feeds of 10,000 entries each, one after the other,
// into a new database: the last should take as long as the first.
func BenchmarkTenFeeds(b *testing.B) {
	for name, create := range map[string]func(testing.TB) database{"sqlite": newSQLite, "postgresql": newPostgreSQL} {
		b.Run(name, func(b *testing.B) {
			archives := feedtest.Scaled(200, 4)
			site := feedtest.Server(b, archiveFeed(archives))
			for b.Loop() {
				m := newMirror(b, create(b).open(b))
				var took [10]time.Duration
				for n := range took {
					begun := time.Now()
					_, err := m.Update(b.Context(), fmt.Sprintf("%s/%d?%d", site.URL, archives, n))
					require.NoError(b, err)
					took[n] = time.Since(begun)
				}
				b.ReportMetric(float64(archives*50)/took[0].Seconds(), "first-entries/s")
				b.ReportMetric(float64(archives*50)/took[9].Seconds(), "tenth-entries/s")
				b.ReportMetric(took[0].Seconds()/took[9].Seconds(), "tenth-of-first")
			}
		})
	}
}

// sampleHeap records the maximum of the heap in use until it is stopped.
func sampleHeap(most *atomic.Uint64) (stop func()) {
	done := make(chan struct{})
	var sampler sync.WaitGroup
	sampler.Go(func() {
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
	})
	return func() { close(done); sampler.Wait() }
}

// peakRSS returns the maximum memory of this process, if Linux tells; it
// includes the server of the benchmark.
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
			site := feedtest.Server(b, archiveFeed(20))
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
				require.NoError(b, changes.Failure)
				require.Zero(b, changes.Documents)
			}
		})
	}
}

// A counter counts the statements of several connections.
type counter struct {
	mu         sync.Mutex
	statements []string
}

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statements = append(c.statements, q.SQL)
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A poll with nothing new takes one request and five statements: to read the
// feed, to see whether the archive that it links to is processed, and a
// transaction with one statement that records the poll.
func TestUnchangedPoll(t *testing.T) {
	config, err := pgx.ParseConfig(newPostgreSQL(t).dsn)
	require.NoError(t, err)
	count := &counter{}
	config.Tracer = count
	db := stdlib.OpenDB(*config)
	defer db.Close()
	store, err := sqlstore.Open(t.Context(), db, sqlstore.PostgreSQL)
	require.NoError(t, err)
	var requests atomic.Int64
	feed := archiveFeed(5)
	site := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		feed.ServeHTTP(w, r)
	}))
	m := newMirror(t, store)
	for range 2 { // the second time, all statements are prepared
		_, err = m.Update(t.Context(), site.URL+"/5")
		require.NoError(t, err)
	}
	count.statements = nil
	requests.Store(0)
	_, err = m.Update(t.Context(), site.URL+"/5")
	require.NoError(t, err)
	require.EqualValues(t, 1, requests.Load())
	require.LessOrEqual(t, len(count.statements), 6, "%q", count.statements)
}
