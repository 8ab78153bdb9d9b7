package fleet

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// A Status is an overview of the feeds in a Database.
type Status struct {
	Feeds   int64 `json:"feeds"`   // the number of feeds subscribed to
	Hosts   int64 `json:"hosts"`   // the number of hosts they are requested from
	Running int64 `json:"running"` // the number of hosts being polled
	Due     int64 `json:"due"`     // the number of feeds due now
	Late    int64 `json:"late"`    // the number of feeds due for longer than StatusQuery.Late
	New     int64 `json:"new"`     // the number of feeds not polled yet
	Failing int64 `json:"failing"` // the number of feeds whose last poll brought no subscription document, or did not end properly
	Gone    int64 `json:"gone"`    // the number of feeds withdrawn by their publishers (410), or merged into another mirrored feed
	Dead    int64 `json:"dead"`    // the number of dead letters

	Verdicts map[string]int64 `json:"verdicts"` // the numbers of feeds read, by the verdict on their mirror

	ByHost  []HostStatus  `json:"by_host,omitempty"`      // up to StatusQuery.Hosts
	Letters []DeadLetter  `json:"dead_letters,omitempty"` // up to StatusQuery.Letters
	Errors  []FailingFeed `json:"errors,omitempty"`       // up to StatusQuery.Errors
}

// A HostStatus is an overview of the feeds of a host; its fields mean the same
// as those of Status.
type HostStatus struct {
	Host    string    `json:"host"`
	Running bool      `json:"running"`
	Feeds   int64     `json:"feeds"`
	Due     int64     `json:"due"`
	Late    int64     `json:"late"`
	Failing int64     `json:"failing"`
	Dead    int64     `json:"dead"`
	Next    time.Time `json:"next,omitzero"` // when the next feed is due, or was; zero if none will be
}

// A DeadLetter is a feed no longer polled, because its polls do not end properly.
// Subscribe to it again to have it polled again.
type DeadLetter struct {
	URL    string    `json:"url"`
	Reason string    `json:"reason"` // why its polls do not end properly
	Died   time.Time `json:"died"`   // when it became a dead letter
}

// A FailingFeed is a feed whose last poll has failed.
type FailingFeed struct {
	URL      string    `json:"url"`
	Error    string    `json:"error"`    // why the poll has failed
	Failures int       `json:"failures"` // number of failures in a row
	Next     time.Time `json:"next"`     // when the next try is due
}

// A StatusQuery selects the parts of a Status in addition to the numbers. The maxima are
// zero for none. A negative number is an error.
type StatusQuery struct {
	Late    time.Duration // how long a feed may be due before it counts as late; zero means five minutes
	Hosts   int           // maximum number of hosts: those with the most late feeds, then the most due, then the most feeds
	Letters int           // maximum number of dead letters, latest first
	Errors  int           // maximum number of failing feeds, the longest failing first
}

// Status returns an overview of the feeds. It reads a row of each feed.
func (d *Database) Status(ctx context.Context, q StatusQuery) (*Status, error) {
	switch {
	case q.Late < 0:
		return nil, errors.New("fleet: StatusQuery.Late is negative")
	case min(q.Hosts, q.Letters, q.Errors) < 0:
		return nil, errors.New("fleet: StatusQuery.Hosts, Letters or Errors is negative")
	}
	q.Late = cmp.Or(q.Late, 5*time.Minute)
	s := &Status{Verdicts: map[string]int64{}}
	err := pgx.BeginTxFunc(ctx, d.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, statusNumbers, q.Late).Scan(
			&s.Feeds, &s.Hosts, &s.Running, &s.Due, &s.Late, &s.New, &s.Failing, &s.Gone, &s.Dead)
		if err != nil {
			return err
		}
		verdicts, err := tx.Query(ctx, `SELECT verdict, count(*) FROM fleet_feeds WHERE verdict <> '' GROUP BY verdict`)
		if err != nil {
			return err
		}
		var verdict string
		var feeds int64
		_, err = pgx.ForEachRow(verdicts, []any{&verdict, &feeds}, func() error {
			s.Verdicts[verdict] = feeds
			return nil
		})
		if err != nil {
			return err
		}
		if s.ByHost, err = list[HostStatus](ctx, tx, statusHosts, q.Hosts, q.Late); err != nil {
			return err
		}
		if s.Letters, err = list[DeadLetter](ctx, tx, statusLetters, q.Letters); err != nil {
			return err
		}
		s.Errors, err = list[FailingFeed](ctx, tx, statusErrors, q.Errors)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

const (
	// A feed is not due while its host waits.
	statusNumbers = `
		WITH waiting AS (
			SELECT count(*) FILTER (WHERE h.wait > now()) AS due,
				count(*) FILTER (WHERE f.due <= now() - $1::interval) AS late
			FROM fleet_hosts h JOIN fleet_feeds f USING (host)
			WHERE h.wait > now() - $1::interval AND f.due <= now()
		)
		SELECT count(*), (SELECT count(*) FROM fleet_hosts h WHERE due IS NOT NULL OR EXISTS (SELECT FROM fleet_feeds f WHERE f.host = h.host)),
			(SELECT count(*) FROM fleet_hosts WHERE until > now()),
			count(*) FILTER (WHERE due <= now()) - (SELECT due FROM waiting),
			count(*) FILTER (WHERE due <= now() - $1::interval) - (SELECT late FROM waiting),
			count(*) FILTER (WHERE polled IS NULL), count(*) FILTER (WHERE error <> '' AND due IS NOT NULL),
			count(*) FILTER (WHERE gone), count(died)
		FROM fleet_feeds`
	statusHosts = `
		SELECT host, h.until > now() IS TRUE AS running, count(*) AS feeds,
			count(*) FILTER (WHERE f.due <= now() AND (h.wait <= now()) IS NOT FALSE) AS due,
			count(*) FILTER (WHERE f.due <= now() - $2::interval AND (h.wait <= now() - $2::interval) IS NOT FALSE) AS late,
			count(*) FILTER (WHERE error <> '' AND f.due IS NOT NULL) AS failing, count(died) AS dead,
			coalesce(CASE WHEN min(f.due) < h.wait THEN h.wait ELSE min(f.due) END, '0001-01-01T00:00:00Z') AS next
		FROM fleet_feeds f LEFT JOIN fleet_hosts h USING (host)
		GROUP BY host, h.until, h.wait ORDER BY late DESC, due DESC, feeds DESC, host LIMIT $1`
	statusLetters = `
		SELECT url, dead AS reason, died FROM fleet_feeds WHERE died IS NOT NULL ORDER BY died DESC, url LIMIT $1`
	statusErrors = `
		SELECT url, error, failures, due AS next FROM fleet_feeds
		WHERE error <> '' AND due IS NOT NULL ORDER BY failures DESC, url LIMIT $1`
)

// list returns the rows of a query, at most limit of them, which is the query's
// first parameter.
func list[T any](ctx context.Context, tx pgx.Tx, query string, limit int, args ...any) ([]T, error) {
	if limit <= 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, query, append([]any{limit}, args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[T])
}

// The metrics of a worker.
type metrics struct {
	registry *prometheus.Registry

	hosts     atomic.Int64 // hosts being polled
	ahead     atomic.Int64 // how far the machine's clock is ahead of the database's: a time.Duration
	polls     *prometheus.CounterVec
	entries   *prometheus.CounterVec
	documents prometheus.Counter
	seconds   prometheus.Histogram
	late      prometheus.Histogram
	trouble   prometheus.Counter
}

func newMetrics(d *Database) *metrics {
	const namespace = "feedhistory"
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: namespace, Name: name, Help: help}
	}
	histogram := func(name, help string, least float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(least, 4, 9),
		})
	}
	m := &metrics{
		registry:  prometheus.NewRegistry(),
		polls:     prometheus.NewCounterVec(prometheus.CounterOpts(opts("polls_total", "Polls of feeds, by what became of them.")), []string{"outcome"}),
		entries:   prometheus.NewCounterVec(prometheus.CounterOpts(opts("entries_total", "Entries that were added, changed or deleted.")), []string{"change"}),
		documents: prometheus.NewCounter(prometheus.CounterOpts(opts("documents_total", "Documents that were read to their end."))),
		seconds:   histogram("poll_seconds", "How long polls take.", 0.001),
		late:      histogram("late_seconds", "How long feeds had been due when their poll began.", 0.25),
		trouble:   prometheus.NewCounter(prometheus.CounterOpts(opts("errors_total", "Errors that are not a feed's, such as those of the database."))),
	}
	for _, o := range outcomes {
		m.polls.WithLabelValues(string(o))
	}
	m.registry.MustRegister(m.polls, m.entries, m.documents, m.seconds, m.late, m.trouble,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts(opts("hosts_running", "Hosts that this worker polls now.")),
			func() float64 { return float64(m.hosts.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts(opts("clock_ahead_seconds", "How far this machine's clock is ahead of the database's, at the last claim.")),
			func() float64 { return time.Duration(m.ahead.Load()).Seconds() }),
		&backlogCollector{
			database: d,
			behind:   prometheus.NewDesc(namespace+"_behind_seconds", "Longest time any host has been overdue, in seconds.", nil, nil),
			dead:     prometheus.NewDesc(namespace+"_dead_letters", "Feeds in the database that are polled no more.", nil, nil),
		},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// poll counts a poll.
func (m *metrics) poll(e pollResult, began time.Time, late time.Duration) {
	m.polls.WithLabelValues(string(e.outcome)).Inc()
	m.seconds.Observe(time.Since(began).Seconds())
	m.late.Observe(max(0, late.Seconds()))
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
