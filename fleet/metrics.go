package fleet

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The metrics of a worker.
type metrics struct {
	registry *prometheus.Registry

	hosts     atomic.Int64 // hosts being polled
	polls     *prometheus.CounterVec
	entries   *prometheus.CounterVec
	documents prometheus.Counter
	seconds   prometheus.Histogram
	late      prometheus.Histogram
	trouble   prometheus.Counter
}

func newMetrics(d *Database) *metrics {
	const namespace = "feedhistory"
	m := &metrics{
		registry: prometheus.NewRegistry(),
		polls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "polls_total", Help: "Polls of feeds, by what became of them.",
		}, []string{"outcome"}),
		entries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "entries_total", Help: "Entries that were added, changed or deleted.",
		}, []string{"change"}),
		documents: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "documents_total", Help: "Documents that were read to their end.",
		}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: "poll_seconds", Help: "How long polls take.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}),
		late: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: "late_seconds", Help: "How long feeds had been due when their poll began.",
			Buckets: prometheus.ExponentialBuckets(0.25, 4, 9),
		}),
		trouble: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "errors_total", Help: "Errors that are not a feed's, such as those of the database.",
		}),
	}
	for _, o := range outcomes {
		m.polls.WithLabelValues(string(o))
	}
	m.registry.MustRegister(m.polls, m.entries, m.documents, m.seconds, m.late, m.trouble,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: namespace, Name: "hosts_running", Help: "Hosts that this worker polls now.",
		}, func() float64 { return float64(m.hosts.Load()) }),
		&backlogCollector{
			database: d,
			behind: prometheus.NewDesc(namespace+"_behind_seconds",
				"Longest time any host has been overdue, in seconds.", nil, nil),
			dead: prometheus.NewDesc(namespace+"_dead_letters", "Feeds in the database that are polled no more.", nil, nil),
		},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// poll counts a poll.
func (m *metrics) poll(t *turn, e pollResult, began time.Time) {
	m.polls.WithLabelValues(string(e.outcome)).Inc()
	m.seconds.Observe(time.Since(began).Seconds())
	m.late.Observe(max(0, began.Sub(t.due).Seconds()))
	if c := e.changes; c != nil {
		m.documents.Add(float64(c.Documents))
		m.entries.WithLabelValues("added").Add(float64(c.Added))
		m.entries.WithLabelValues("changed").Add(float64(c.Changed))
		m.entries.WithLabelValues("deleted").Add(float64(c.Deleted))
	}
}

// overtaken counts a poll recorded too late, because something else has the feed.
func (m *metrics) overtaken() { m.polls.WithLabelValues(string(conflict)).Inc() }

// A backlogCollector collects the metrics of the whole database. Both are looked up in
// an index, however many feeds there are.
type backlogCollector struct {
	database     *Database
	behind, dead *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (w *backlogCollector) Describe(descs chan<- *prometheus.Desc) {
	descs <- w.behind
	descs <- w.dead
}

// Collect implements prometheus.Collector.
func (w *backlogCollector) Collect(values chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	behind, dead, err := w.database.waiting(ctx)
	if err != nil {
		values <- prometheus.NewInvalidMetric(w.behind, err)
		return
	}
	values <- prometheus.MustNewConstMetric(w.behind, prometheus.GaugeValue, behind.Seconds())
	values <- prometheus.MustNewConstMetric(w.dead, prometheus.GaugeValue, float64(dead))
}

// waiting returns the longest time any host has been overdue, and the number of dead
// letters.
func (d *Database) waiting(ctx context.Context) (behind time.Duration, dead int64, err error) {
	err = d.pool.QueryRow(ctx, `
		SELECT greatest('0'::interval, now() - coalesce((SELECT min(due) FROM fleet_hosts), now())),
			(SELECT count(*) FROM fleet_feeds WHERE died IS NOT NULL)`).Scan(&behind, &dead)
	return behind, dead, err
}

// Handler returns a handler that answers at /healthz with 200 if the worker runs and
// the database answers, otherwise with 503; and at /metrics with the worker's metrics
// for Prometheus.
func (w *Worker) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", w.health)
	if w.setUp() == nil {
		mux.Handle("GET /metrics", promhttp.HandlerFor(w.metrics.registry,
			promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	}
	return mux
}

func (w *Worker) health(rw http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
	rw.Header().Set("Cache-Control", "no-store")
	what := "ok"
	switch {
	case !w.running.Load():
		what = "the worker is not running"
	case w.Database.ping(ctx) != nil:
		what = "the database does not answer"
	}
	if what != "ok" {
		rw.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = rw.Write([]byte(what + "\n"))
}
