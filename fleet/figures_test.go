//go:build unix

package fleet_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/fleet"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror/sqlstore/pgtest"
)

var figures = flag.Bool("figures", false, "measure, and print the figures of the README")

// TestFigures measures the figures in README. It asserts nothing about times.
func TestFigures(t *testing.T) {
	if !*figures {
		t.Skip("a measurement: -figures")
	}
	server.Database(t) // skips without a server
	server.Durable(t)
	t.Run("subscriptions", measureSubscriptions)
	for _, workers := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("unchanged/%d workers", workers), func(t *testing.T) { measureUnchanged(t, workers, 100, 10_000, 1_000) })
	}
	t.Run("unchanged/a feed a host", func(t *testing.T) { measureUnchanged(t, 1, 100, 10_000, 10_000) })
	t.Run("unchanged/a feed a host, many at once", func(t *testing.T) { measureUnchanged(t, 1, 1000, 20_000, 20_000) })
	t.Run("due", measureDue)
	t.Run("entries", measureEntries)
}

func measureSubscriptions(t *testing.T) {
	db := open(t, server.Database(t))
	urls := feedURLs(100_000, 10_000)
	begun := time.Now()
	subscribe(t, db, urls...)
	took := time.Since(begun)
	t.Logf("100,000 feeds of 10,000 hosts in %v: %.0f a second", took, 1e5/took.Seconds())
	begun = time.Now()
	_, err := db.Subscribe(t.Context(), urls)
	require.NoError(t, err)
	t.Logf("once more, nothing new: %v", time.Since(begun))
	begun = time.Now()
	status(t, db)
	t.Logf("status: %v", time.Since(begun))
}

// feedURLs returns the addresses of feeds, an equal part of them on each host.
func feedURLs(feeds, hosts int) []string {
	urls := make([]string, feeds)
	for i := range urls {
		urls[i] = fmt.Sprintf("http://host-%d.example/feeds/%d/index.atom", i%hosts, i/hosts)
	}
	return urls
}

// A crowd is a set of hosts whose feeds never change after their first poll. It
// counts the requests, and those that come while another one to the same host
// is under way.
type crowd struct {
	requests atomic.Int64
}

const crowdFeed = `<rss version="2.0"><channel><title>A feed of the crowd</title>
<item><guid>urn:x:1</guid><title>The first</title><description>%s</description></item></channel></rss>`

func (c *crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.requests.Add(1)
	w.Header().Set("ETag", `"1"`)
	if r.Header.Get("If-None-Match") != "" {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	fmt.Fprintf(w, crowdFeed, prose(uint64(len(r.URL.String()))))
}

// startCrowd starts a server that is all the hosts: the workers use it as a
// proxy, over HTTP and loopback.
func startCrowd(t testing.TB) (c *crowd, proxy string) {
	c = &crowd{}
	s := feedtest.Server(t, c)
	return c, s.URL
}

// measured starts workers in separate processes. Stopping them returns what
// they used.
func measured(t testing.TB, config processConfig, workers int) (stop func()) {
	var all []*process
	for range workers {
		all = append(all, startProcess(t, config))
	}
	return func() {
		var took time.Duration
		for _, p := range all {
			p.stop(t)
			took += p.ProcessState.UserTime() + p.ProcessState.SystemTime()
		}
		t.Logf("CPU time of the workers: %v", took)
	}
}

// measureUnchanged measures how fast unchanged feeds are polled by workers that poll a
// number of hosts at once, and what a poll costs the database, by its own statistics.
func measureUnchanged(t *testing.T, workers, atOnce, feeds, hosts int) {
	own, err := pgtest.Start()
	require.NoError(t, err)
	t.Cleanup(func() { _ = own.Stop() })
	own.Durable(t)
	dsn := own.Database(t)
	postgres := newControl(t, open(t, dsn))
	sql(t, open(t, dsn), `ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'`)
	postgres.do(t, "restart", "-m", "fast")
	t.Cleanup(func() { postgres.do(t, "stop", "-m", "immediate") })
	db := open(t, dsn)
	sql(t, db, `CREATE EXTENSION pg_stat_statements`)
	c, proxy := startCrowd(t)
	config := processConfig{
		DSN: dsn, Every: time.Hour, Slice: time.Minute, Hosts: atOnce, Pause: -1, Proxy: proxy, Profile: os.Getenv("PROFILE"),
	}
	subscribe(t, db, feedURLs(feeds, hosts)...)
	for _, what := range []string{"first polls", "unchanged"} {
		if what == "unchanged" {
			sql(t, db, `UPDATE fleet_feeds SET due = now()`)
			sql(t, db, `UPDATE fleet_hosts SET due = now()`)
			sql(t, db, `VACUUM fleet_feeds, fleet_hosts, feedhistory.feeds, feedhistory.polls, river_job`)
		}
		time.Sleep(2 * time.Second) // until the statistics have arrived
		sql(t, db, `SELECT pg_stat_reset_shared('wal'), pg_stat_statements_reset()`)
		from := c.requests.Load()
		server, publisher := serverTime(t, postgres.data), ownTime(t)
		stop := measured(t, config, workers)
		awaitPolls(t, db, c, from, what, int64(feeds))
		t.Logf("CPU time of PostgreSQL: %v, and of the publishers: %v", serverTime(t, postgres.data)-server, ownTime(t)-publisher)
		stop()
		time.Sleep(2 * time.Second)
		costs, err := db.Costs(t.Context())
		require.NoError(t, err)
		n := float64(feeds)
		t.Logf("a poll: %.2f statements, %.3f ms of them, %.2f transactions, %.0f bytes of WAL (%.2f full pages), %.3f syncs", costs.Statements/n,
			costs.Milliseconds/n, costs.Commits/n, costs.WAL/n, costs.Pages/n, costs.Syncs/n)
		for _, line := range costs.Longest {
			t.Log(line)
		}
	}
}

// serverTime returns the CPU time of a server's processes that are alive.
func serverTime(t testing.TB, data string) (sum time.Duration) {
	main, _, _ := strings.Cut(string(feedtest.ReadFile(t, filepath.Join(data, "postmaster.pid"))), "\n")
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, file := range stats {
		stat, err := os.ReadFile(file) // the process may have ended
		_, after, ok := strings.Cut(string(stat), ") ")
		fields := strings.Fields(after)
		if err != nil || !ok || fields[1] != main {
			continue
		}
		for _, ticks := range fields[11:13] { // user and system, in hundredths of a second
			n, err := strconv.Atoi(ticks)
			require.NoError(t, err)
			sum += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return sum
}

// ownTime returns the CPU time of this process.
func ownTime(t testing.TB) time.Duration {
	var used syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// awaitPolls waits until no feed is due, and returns the rate of the polls,
// without the beginning and the end. From is the number of requests before.
func awaitPolls(t testing.TB, db *fleet.Database, c *crowd, from int64, what string, feeds int64) {
	wait := func(share int64) time.Time {
		for c.requests.Load()-from < feeds*share/100 { // querying the status would take half of the server's time
			time.Sleep(5 * time.Millisecond)
		}
		return time.Now()
	}
	begun, ended := wait(10), wait(90)
	wait(100)
	time.Sleep(7 * time.Second) // for what is written late
	s := status(t, db)
	require.Zero(t, s.Due+s.Running)
	t.Logf("%s: %.0f polls a second; %d failed", what, float64(feeds)*0.8/ended.Sub(begun).Seconds(), s.Failing)
}

// measureDue spreads the due times of feeds over a period, as they are after
// some hours, and measures how long the feeds wait.
func measureDue(t *testing.T) {
	const feeds, hosts = 50_000, 5_000
	const spread = 5 * time.Minute
	dsn := server.Database(t)
	db := open(t, dsn)
	_, proxy := startCrowd(t)
	config := processConfig{
		DSN: dsn, Every: time.Hour, Slice: time.Minute, Hosts: 1000, Proxy: proxy, Pause: time.Second,
		Metrics: filepath.Join(t.TempDir(), "metrics"),
	}
	subscribe(t, db, feedURLs(feeds, hosts)...)
	sql(t, db, fmt.Sprintf(`UPDATE fleet_feeds SET due = now() + random() * interval '%d seconds'`, int(spread.Seconds())))
	sql(t, db, `UPDATE fleet_hosts h SET due = (SELECT min(due) FROM fleet_feeds f WHERE f.host = h.host)`)
	stop := measured(t, config, 2)
	for status(t, db).New > 0 {
		time.Sleep(time.Second)
	}
	stop()
	found, err := filepath.Glob(config.Metrics + "*")
	require.NoError(t, err)
	for _, name := range found {
		text := feedtest.ReadFile(t, name)
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "feedhistory_late") || strings.HasPrefix(line, "feedhistory_poll_seconds_") && !strings.Contains(line, "bucket") {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
}

// vocabulary has 50,000 words of 3 to 12 letters.
var vocabulary = sync.OnceValue(func() []string {
	random := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 50_000)
	for i := range words {
		word := make([]byte, 3+random.IntN(10))
		for j := range word {
			word[j] = "etaoinshrdlucmfwypvbgkjqxz"[min(random.IntN(26), random.IntN(26))]
		}
		words[i] = string(word)
	}
	return words
})

// prose returns words, some of them far more often than others, as in language.
func prose(seed uint64) string {
	often := rand.NewZipf(rand.New(rand.NewPCG(seed, 0)), 1.1, 5, 49_999)
	var b strings.Builder
	for range 150 {
		b.WriteString(vocabulary()[often.Uint64()])
		b.WriteByte(' ')
	}
	return b.String()
}

// measureEntries fills the store and measures the cost.
func measureEntries(t *testing.T) {
	const feeds, archives, entries = 20, 20, 100
	db := open(t, server.Database(t))
	mux := http.NewServeMux()
	var bytes atomic.Int64
	mux.HandleFunc("/{feed}/{n}", func(w http.ResponseWriter, r *http.Request) {
		var n int
		fmt.Sscan(r.PathValue("n"), &n)
		var b strings.Builder
		fmt.Fprintf(&b, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:%s</id><title>t</title><updated>2024-01-01T00:00:00Z</updated>`, r.PathValue("feed"))
		if n > 0 {
			fmt.Fprintf(&b, `<link rel="prev-archive" href="%d"/>`, n-1)
		}
		head := b.Len()
		for i := range entries {
			at := time.Date(2010, 1, 1, n, i, 0, 0, time.UTC)
			fmt.Fprintf(&b, `<entry><id>tag:example.org,2010:%s/%d/%d</id><title>A title of some words, the %d.</title><updated>%s</updated>
				<link href="https://example.org/%d/%d"/><content type="html">&lt;p&gt;%s&lt;/p&gt;</content></entry>`,
				r.PathValue("feed"), n, i, i, at.Format(time.RFC3339), n, i, prose(uint64(n*entries+i)))
		}
		bytes.Add(int64(b.Len() - head))
		fmt.Fprint(w, b.String(), `</feed>`)
	})
	s := feedtest.Server(t, mux)
	var urls []string
	for i := range feeds {
		urls = append(urls, fmt.Sprintf("http://host-%d.example/feed/%d", i, archives-1))
	}
	subscribe(t, db, urls...)
	w := newWorker(t, db)
	w.Client = &feedhistory.Client{AllowPrivate: true, Transport: proxyTransport(s.URL)}
	begun := time.Now()
	start(t, w)
	eventually(t, db, func(s *fleet.Status) bool { return s.New == 0 && s.Due == 0 && s.Running == 0 })
	took := time.Since(begun)
	all := int64(feeds * archives * entries)
	t.Logf("%d entries of %d bytes in %v: %.0f a second", all, bytes.Load()/all, took, float64(all)/took.Seconds())
	sql(t, db, `VACUUM ANALYZE`)
	for _, table := range []string{"feedhistory.entries", "feedhistory.versions", "feedhistory.documents", "feedhistory.names", "feedhistory.search", "feedhistory.unindexed", "feedhistory.feeds", "feedhistory.polls", "fleet_feeds", "fleet_hosts", "river_job"} {
		heap, indexes, err := db.Size(t.Context(), table)
		require.NoError(t, err)
		if heap+indexes > 100_000 {
			t.Logf("%-10s %6d bytes an entry, and %6d in indexes", table, heap/all, indexes/all)
		}
	}
}
