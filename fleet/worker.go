package fleet

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/feedhistory/feedhistory"
)

// A Worker polls the feeds of a Database, along with others. Only Database must
// be set. A Worker must not be copied or changed after its first use.
type Worker struct {
	Database *Database

	// Client makes the requests. Its Budget.Documents is how much of a long
	// history is read before other feeds of the host get their turn. Nil: one
	// with a budget of 1,000 documents, and one request to a host at a time.
	Client *feedhistory.Client

	Every    time.Duration // between two polls of a feed that does not ask for more. Zero: an hour
	Versions int           // of an entry that are kept. Zero: 10; negative: none
	Pause    time.Duration // between two polls at a host. Zero: a second; negative: none
	Hosts    int           // polled at the same time, at most. Zero: 100

	// Slice is the time that a poll may take, and after which a host's job makes
	// room for others. The hosts of a worker that is gone wait three to four of
	// them. Zero: two minutes.
	Slice time.Duration

	// Grace is how long the polls that are under way may go on when the worker
	// is to end. Zero: 10 seconds.
	Grace time.Duration

	// Tries is how often a poll of a feed may not come to its end, in a row,
	// until it is a dead letter. Zero: 5.
	Tries int

	// Documents is how many archive documents a feed may have until it is a dead
	// letter, as no publisher has so many. Zero: 100,000.
	Documents int64

	// Logger gets what goes wrong beyond the feeds themselves; nil: nothing.
	Logger *slog.Logger

	once    sync.Once
	client  *feedhistory.Client
	metrics *metrics
	river   *river.Client[pgx.Tx]
	begun   atomic.Bool
	running atomic.Bool
	ending  chan struct{} // closed when no further feed is to be polled
	err     error         // of the set-up

	claims combiner[*claim]
	writes combiner[*write]
	most   func() (feeds int, late time.Duration) // nil: as usual; for tests
}

// How many feeds of a host are claimed together, and for how long what is to be
// noted of their polls may wait for more.
const (
	mostFeeds = 100
	mostLate  = 5 * time.Second
)

// batch returns how many feeds of a host are to be claimed together, and how long
// notes may wait: no more feeds than can be polled in that time.
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

// timeout is how long a job may take: a poll may begin at the end of its slice.
func (w *Worker) timeout() time.Duration { return 2 * w.slice() }

// lease is how long a host is held, and a job without a sign of its end is the
// worker's own: longer than it may take.
func (w *Worker) lease() time.Duration { return 3 * w.slice() }

// setUp makes what the worker consists of.
func (w *Worker) setUp() error {
	w.once.Do(func() {
		w.client, w.ending, w.metrics = w.Client, make(chan struct{}), newMetrics(w.Database)
		if w.client == nil {
			w.client = &feedhistory.Client{
				Budget: feedhistory.Budget{Documents: 1000}, Policy: feedhistory.Policy{PerHost: 1},
			}
		}
		w.claims.do = func(ctx context.Context, all []*claim) error { return w.Database.claim(ctx, all, w.lease()) }
		w.writes.do = w.Database.write
		workers := river.NewWorkers()
		river.AddWorker(workers, &hostWorker{w: w})
		river.AddWorker(workers, &sweepWorker{w: w})
		logger := slog.New(slog.DiscardHandler)
		if w.Logger != nil {
			logger = slog.New(current{w.Logger.Handler()})
		}
		w.river, w.err = river.NewClient(riverpgxv5.New(w.Database.pool), &river.Config{
			Queues:                      map[string]river.QueueConfig{queue: {MaxWorkers: w.hosts()}},
			Workers:                     workers,
			PeriodicJobs:                []*river.PeriodicJob{sweeping},
			FetchCooldown:               planOften,
			JobTimeout:                  w.timeout(),
			RescueStuckJobsAfter:        w.lease(),
			SoftStopTimeout:             cmp.Or(w.Grace, 10*time.Second),
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

// Run polls whatever is due until the context ends. Then no further poll is
// begun; those that are under way have the Grace to end, and are handed back
// where they are if they do not. A Worker runs once.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.setUp(); err != nil {
		return err
	}
	if w.begun.Swap(true) {
		return errors.New("fleet: the worker has run already")
	}
	if err := w.river.Start(ctx); err != nil {
		return err
	}
	w.running.Store(true)
	defer w.running.Store(false)
	w.planning(ctx)
	close(w.ending)
	<-w.river.Stopped()
	return nil
}

// How often hosts are looked for that are due: with some left, as often as River
// looks for jobs. That bounds a worker whose hosts have one feed each to its Hosts
// in that time.
const (
	planOften  = 20 * time.Millisecond
	planSeldom = time.Second
)

// planning has jobs made for as many hosts as the worker has room for, until the
// context ends.
func (w *Worker) planning(ctx context.Context) {
	for {
		wait := planSeldom
		if room := w.hosts() - int(w.metrics.hosts.Load()); room > 0 {
			made, err := w.plan(ctx, room)
			if err != nil && ctx.Err() == nil {
				w.trouble(ctx, "hosts that are due cannot be looked for", err)
			}
			if made == room {
				wait = planOften
			}
		} else {
			wait = planOften
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// trouble tells of an error that is not a feed's.
func (w *Worker) trouble(ctx context.Context, what string, err error) {
	w.metrics.trouble.Inc()
	if w.Logger != nil {
		w.Logger.ErrorContext(ctx, what, "error", err)
	}
}

// A sweepJob is Database.sweep, by one of the workers.
type sweepJob struct{}

// Kind implements river.JobArgs.
func (sweepJob) Kind() string { return "feedhistory_sweep" }

var sweeping = river.NewPeriodicJob(river.PeriodicInterval(time.Hour), func() (river.JobArgs, *river.InsertOpts) {
	return sweepJob{}, &river.InsertOpts{
		Queue: queue, MaxAttempts: 1,
		UniqueOpts: river.UniqueOpts{ByState: hostJob{}.InsertOpts().UniqueOpts.ByState},
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
