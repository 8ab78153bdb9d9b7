package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/feedhistory/feedhistory"
)

// A Worker polls the feeds of a Database, together with others. Only Database
// must be set. Do not copy or change a Worker after its first use.
type Worker struct {
	Database *Database

	// Client makes the requests. Its Budget.Documents is how much of a long
	// history is read before other feeds of the host get their turn. Nil means
	// a client with a budget of 1,000 documents, and one request to a host at a
	// time.
	Client *feedhistory.Client

	Every    time.Duration // Every is the minimum time between two polls of a feed; a feed may ask for more. Zero means an hour.
	Versions int           // Versions is the number of earlier versions to keep of each entry. Zero means 10, a negative number none.

	// Recheck is the time between two polls of a feed with a repeated request for a known
	// archive document, like Mirror.Recheck. Zero means never, as a negative number does.
	Recheck time.Duration
	Pause   time.Duration // Pause is the time between two polls of a host. Zero means a second, a negative value none.
	Hosts   int           // Hosts is the maximum number of hosts to poll at the same time. Zero means 100.

	// Slice is the maximum time of a poll, and the time after which a host's job makes
	// room for others. The hosts of a dead worker wait for three to four slices. Zero
	// means two minutes.
	Slice time.Duration

	// Grace is how long the polls under way may continue when the worker must
	// end. Zero means 10 seconds.
	Grace time.Duration

	// Tries is the number of consecutive polls of a feed that may fail to end properly
	// before the feed is a dead letter. Zero means 5.
	Tries int

	// Documents is the maximum number of archive documents of a feed; beyond it the feed
	// is a dead letter, because no publisher has so many. Zero means 100,000.
	Documents int64

	// Logger logs errors other than a feed's; nil means no logging.
	Logger *slog.Logger

	once    sync.Once
	client  *feedhistory.Client // Client, storing waits
	waits   *hostWaits
	metrics *metrics
	river   *river.Client[pgx.Tx]
	begun   atomic.Bool
	running atomic.Bool
	ending  chan struct{} // closed when no other feed may be polled
	err     error         // an error of setting up

	visits   sync.WaitGroup
	visiting context.Context // of the visits; ends when Grace is over
	room     chan struct{}   // has an element for each visit, up to Hosts
	freed    chan struct{}   // says a visit has ended

	claims combiner[*claim]
	writes combiner[*write]
	most   func() (feeds int, late time.Duration) // for tests; nil means the usual values
}

// The maximum number of feeds of a host to claim together, and the maximum time the
// records of their polls may wait for others.
const (
	mostFeeds = 100
	mostLate  = 5 * time.Second
)

// batch returns how many feeds of a host to claim together, and how long their records
// may wait: no more feeds than can be polled in this time.
func (w *Worker) batch() (feeds int, late time.Duration) {
	if w.most != nil {
		return w.most()
	}
	feeds, late = mostFeeds, min(mostLate, w.slice())
	if w.pause() > 0 {
		feeds = min(feeds, max(1, int(late/w.pause())))
	}
	return feeds, late
}

func (w *Worker) pause() time.Duration {
	return max(0, cmp.Or(w.Pause, time.Second))
}

func (w *Worker) hosts() int           { return cmp.Or(w.Hosts, 100) }
func (w *Worker) slice() time.Duration { return cmp.Or(w.Slice, 2*time.Minute) }
func (w *Worker) tries() int           { return cmp.Or(w.Tries, 5) }
func (w *Worker) documents() int64     { return cmp.Or(w.Documents, 100_000) }

// lease returns how long a host is held, and how long an unfinished job stays
// with its worker: longer than it may take.
func (w *Worker) lease() time.Duration { return 3 * w.slice() }

func (w *Worker) grace() time.Duration { return cmp.Or(w.Grace, 10*time.Second) }

// setUp makes the parts of the worker.
// check returns an error for settings a Worker cannot work with.
func (w *Worker) check() error {
	if w.Database == nil {
		return errors.New("fleet: Worker.Database must be set")
	}
	for name, n := range map[string]int64{
		"Every": int64(w.Every), "Hosts": int64(w.Hosts), "Slice": int64(w.Slice),
		"Grace": int64(w.Grace), "Tries": int64(w.Tries), "Documents": w.Documents,
	} {
		if n < 0 {
			return fmt.Errorf("fleet: Worker.%s is negative", name)
		}
	}
	return nil
}

func (w *Worker) setUp() error {
	if err := w.check(); err != nil {
		return err
	}
	w.once.Do(func() {
		w.ending, w.metrics = make(chan struct{}), newMetrics(w.Database)
		w.waits = &hostWaits{database: w.Database, trouble: w.trouble}
		w.client = keepWaits(cmp.Or(w.Client, &feedhistory.Client{
			Budget: feedhistory.Budget{Documents: 1000}, Policy: feedhistory.Policy{PerHost: 1},
		}), w.waits)
		w.room, w.freed = make(chan struct{}, w.hosts()), make(chan struct{}, 1)
		w.claims.do = w.Database.claim
		w.writes.do = w.Database.write
		workers := river.NewWorkers()
		river.AddWorker(workers, &visitWorker{w: w})
		river.AddWorker(workers, &sweepWorker{w: w})
		logger := slog.New(slog.DiscardHandler)
		if w.Logger != nil {
			logger = slog.New(quietHandler{w.Logger.Handler()})
		}
		w.river, w.err = river.NewClient(riverpgxv5.New(w.Database.pool), &river.Config{
			Queues:                      map[string]river.QueueConfig{queue: {MaxWorkers: jobsAtOnce}},
			Workers:                     workers,
			PeriodicJobs:                []*river.PeriodicJob{sweeping},
			FetchCooldown:               planOften,
			FetchPollInterval:           planSeldom,
			JobTimeout:                  2 * w.slice(), // a poll may begin at the end of its slice
			RescueStuckJobsAfter:        w.lease(),
			SoftStopTimeout:             w.grace(),
			CompletedJobRetentionPeriod: time.Minute,
			DiscardedJobRetentionPeriod: 24 * time.Hour,
			ReindexerIndexNames: slices.DeleteFunc(river.ReindexerIndexNamesDefault(), func(name string) bool {
				return slices.Contains(riverUnused, name)
			}),
			Logger: logger,
		})
	})
	return w.err
}

// Run polls due feeds until the context ends. Then it starts no more polls; those under
// way get Grace to end, and are otherwise handed back as they are. A Worker runs only
// once.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.setUp(); err != nil {
		return err
	}
	if w.begun.Swap(true) {
		return errors.New("fleet: the worker has run already")
	}
	visiting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	w.visiting = visiting
	if err := w.river.Start(ctx); err != nil {
		return err
	}
	w.running.Store(true)
	defer w.running.Store(false)
	w.planning(ctx)
	close(w.ending)
	defer time.AfterFunc(w.grace(), cancel).Stop()
	<-w.river.Stopped()
	w.visits.Wait()
	return nil
}

// The intervals at which a worker looks for due hosts: short when the backlog may
// exceed its capacity.
const (
	planOften  = 20 * time.Millisecond
	planSeldom = time.Second
)

// jobsAtOnce is the number of jobs whose visits a worker begins at the same time.
const jobsAtOnce = 8

// planning makes jobs for as many hosts as the worker has room for, until the context
// ends.
func (w *Worker) planning(ctx context.Context) {
	for wait := planOften; sleep(ctx, wait); {
		room := w.awaitRoom(ctx)
		made, err := w.plan(ctx, room)
		if err != nil && ctx.Err() == nil {
			w.trouble(ctx, "the hosts that are due cannot be read", err)
		}
		wait = planSeldom
		if made == room {
			wait = planOften
		}
	}
}

// awaitRoom waits until there is room for a quarter of Hosts, so jobs have many hosts,
// or for a moment if there is room at all.
func (w *Worker) awaitRoom(ctx context.Context) (room int) {
	for end := time.Now().Add(planOften); ; {
		room = w.hosts() - len(w.room)
		if ctx.Err() != nil || 4*room >= w.hosts() || room > 0 && time.Now().After(end) {
			return room
		}
		select {
		case <-w.freed:
		case <-time.After(planOften):
		case <-ctx.Done():
		}
	}
}

// sleep waits, and reports whether the context has not ended.
func sleep(ctx context.Context, wait time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait):
		return true
	}
}

// trouble logs an error other than a feed's.
func (w *Worker) trouble(ctx context.Context, what string, err error) {
	w.metrics.trouble.Inc()
	if w.Logger != nil {
		w.Logger.ErrorContext(ctx, what, "error", err)
	}
}

// A sweepJob runs Database.sweep in one of the workers.
type sweepJob struct{}

// Kind implements river.JobArgs.
func (sweepJob) Kind() string { return "feedhistory_sweep" }

var sweeping = river.NewPeriodicJob(river.PeriodicInterval(time.Hour), func() (river.JobArgs, *river.InsertOpts) {
	return sweepJob{}, &river.InsertOpts{
		Queue: queue, MaxAttempts: 1,
		UniqueOpts: river.UniqueOpts{ByState: []rivertype.JobState{
			rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
			rivertype.JobStateRetryable, rivertype.JobStateScheduled,
		}},
	}
}, &river.PeriodicJobOpts{RunOnStart: true})

type sweepWorker struct {
	river.WorkerDefaults[sweepJob]
	w *Worker
}

// Work implements river.Worker.
func (s *sweepWorker) Work(ctx context.Context, _ *river.Job[sweepJob]) error {
	return s.w.Database.sweep(ctx, s.w.lease())
}
