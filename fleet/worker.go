// Package fleet keeps mirrors up to date on many machines. It runs package
// mirror in jobs of River (riverqueue.com) in a PostgreSQL database.
//
//	db, err := fleet.Open(ctx, "postgres://…")
//	db.Subscribe(ctx, urls)
//	w := &fleet.Worker{Database: db}
//	err = w.Run(ctx) // in as many processes, on as many machines, as wanted
//
// # One machine per host
//
// A worker holds the hosts with due feeds, for longer than any of its polls, and makes
// jobs of many hosts. Whoever runs the job visits each host: it polls the feeds one
// after the other, and writes nothing once another worker holds the host. The host of a
// feed is the host of the address it is requested from. There are two exceptions: if a
// host redirects to another one, or if archive documents are on a different host than
// the feed, these requests are made in the feed's own visit.
//
// # Group commits
//
// News of a feed are committed at once. A poll without news may wait up to five seconds
// for other polls, of its host and of others. Then all of them are written together,
// provided the feeds have had no other commit since they were polled, and the worker
// still holds their hosts. If a worker is killed before that, these feeds are polled
// again.
//
// # Failures
//
// A worker's commits stay, and another worker does the rest: the hosts it held are due again, and
// everything a poll has read is in the store (package mirror). A worker that was only suspended,
// and wakes up when another works on its feed, cannot commit: the store refuses a change to a
// state that has changed since (mirror.ErrConflict).
//
// A feed whose polls do not end properly, because they panic, end the process,
// take too long or cannot be stored, is tried less and less often. Then it
// becomes a dead letter, with the reason. The other feeds of its host are
// polled meanwhile.
//
// A function that takes a context may return the error of the context. Methods of nil pointers
// may panic, unless their comments say otherwise.
package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
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
	refuse  context.CancelCauseFunc

	visits   sync.WaitGroup
	visiting context.Context // of the visits; ends when Grace is over
	room     chan struct{}   // has an element for each host being polled, up to Hosts
	writing  chan struct{}   // has an element for each host whose last records are being written, up to Hosts
	freed    chan struct{}   // says a visit has ended

	claims combiner[*claim]
	writes combiner[*write]
	firsts combiner[*first]
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

// setUp makes the parts of the worker.
func (w *Worker) setUp() error {
	if err := w.check(); err != nil {
		return err
	}
	w.once.Do(func() {
		w.ending, w.metrics = make(chan struct{}), newMetrics(w.Database)
		w.waits = &hostWaits{database: w.Database, trouble: w.trouble}
		w.client = keepWaits(cmp.Or(w.Client, &feedhistory.Client{
			Budget: feedhistory.Budget{Documents: 1000}, PerHost: 1,
		}), w.waits)
		w.room, w.writing, w.freed = make(chan struct{}, w.hosts()), make(chan struct{}, w.hosts()), make(chan struct{}, 1)
		w.claims.do = w.claim
		w.writes.do = w.Database.write
		w.firsts.do = w.Database.commitNew
		workers := river.NewWorkers()
		river.AddWorker(workers, &visitWorker{w: w})
		river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, _ *river.Job[sweepJob]) error { return w.Database.sweep(ctx, w.lease()) }))
		river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, _ *river.Job[indexJob]) error { return w.Database.states.Index(ctx) }))
		logger := slog.New(slog.DiscardHandler)
		if w.Logger != nil {
			logger = slog.New(quietHandler{w.Logger.Handler()})
		}
		w.river, w.err = river.NewClient(riverpgxv5.New(w.Database.pool), &river.Config{
			Queues:                      map[string]river.QueueConfig{queue: {MaxWorkers: jobsAtOnce}},
			Workers:                     workers,
			PeriodicJobs:                []*river.PeriodicJob{periodic(time.Hour, sweepJob{}), periodic(30*time.Second, indexJob{})},
			FetchCooldown:               planOften,
			FetchPollInterval:           planSeldom,
			PollOnly:                    w.Database.shares, // who listens needs a connection for good
			JobTimeout:                  2 * w.slice(),     // a poll may begin at the end of its slice
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
// once. It returns an error, and polls nothing, if this machine's clock differs from the
// database's by more than 30 s; also if it does later.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.setUp(); err != nil {
		return err
	}
	if w.begun.Swap(true) {
		return errors.New("fleet: the worker has run already")
	}
	err := w.Database.measure(ctx)
	if err == nil {
		err = w.checkClock(ctx)
	}
	ctx, w.refuse = context.WithCancelCause(ctx)
	defer w.refuse(nil)
	visiting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	w.visiting = visiting
	if err == nil {
		err = w.river.Start(ctx)
	}
	if err != nil && ctx.Err() != nil { // it ended before the worker had begun
		return nil
	}
	if err != nil {
		return err
	}
	w.running.Store(true)
	defer w.running.Store(false)
	w.planning(ctx)
	close(w.ending)
	defer time.AfterFunc(w.grace(), cancel).Stop()
	<-w.river.Stopped()
	w.visits.Wait()
	_, err = w.Database.clock.skew()
	return err
}

// checkClock returns an error if the machine's clock is too far off, and logs a smaller
// difference when it has changed.
func (w *Worker) checkClock(ctx context.Context) error {
	ahead, err := w.Database.clock.skew()
	was := w.metrics.ahead.Swap(int64(ahead))
	if err == nil && w.Logger != nil && (ahead-time.Duration(was)).Abs() > noSkew {
		w.Logger.WarnContext(ctx, "this machine's clock differs from the database's", "ahead", ahead)
	}
	return err
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

// An indexJob runs Store.Index in one of the workers, so searches need not: a reader cannot, and
// without it would look into each of the entries that wait.
type indexJob struct{}

// Kind implements river.JobArgs.
func (indexJob) Kind() string { return "feedhistory_index" }

// periodic runs a job in one of the workers, at once and then at intervals.
func periodic(interval time.Duration, job river.JobArgs) *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(interval), func() (river.JobArgs, *river.InsertOpts) {
		return job, &river.InsertOpts{
			Queue: queue, MaxAttempts: 1,
			UniqueOpts: river.UniqueOpts{ByState: []rivertype.JobState{
				rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
				rivertype.JobStateRetryable, rivertype.JobStateScheduled,
			}},
		}
	}, &river.PeriodicJobOpts{RunOnStart: true})
}

// A visitWorker runs the jobs of hosts.
type visitWorker struct {
	river.WorkerDefaults[visitJob]
	w *Worker
}

// NextRetry implements river.Worker: a job fails only if the database does.
func (*visitWorker) NextRetry(job *river.Job[visitJob]) time.Time {
	return time.Now().Add(time.Duration(job.Attempt) * time.Second)
}

// Work implements river.Worker. It claims the due feeds of the hosts, and begins a visit
// of each host as soon as the worker has room. So a worker takes no more jobs from the
// others than it can carry out. It does not wait for the visits to end: a host whose
// visit is cut short is due again when its hold expires.
func (vw *visitWorker) Work(ctx context.Context, job *river.Job[visitJob]) error {
	w := vw.w
	var claims []*claim
	most, late := w.batch()
	for _, host := range job.Args.Hosts {
		claims = append(claims, &claim{
			hold: hold{host: host, token: job.Args.Token}, most: most, doubtful: slices.Contains(job.Args.Doubtful, host),
		})
	}
	if err := w.claim(ctx, claims); err != nil {
		return err
	}
	claimed := time.Now()
	for _, c := range claims {
		// A poll may take a slice, and may begin at the end of the visit.
		v := &visit{w: w, hold: c.hold, late: late, end: claimed.Add(min(w.slice(), c.left-2*w.slice()))}
		select {
		case w.room <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		w.visits.Go(func() { v.run(c) })
	}
	return nil
}

// claim is Database.claim, and ends Run if the machine's clock has been set wrong since.
func (w *Worker) claim(ctx context.Context, claims []*claim) error {
	if err := w.Database.claim(ctx, claims); err != nil {
		return err
	}
	err := w.checkClock(ctx)
	if err != nil {
		w.refuse(err)
	}
	return err
}

// A visit is the work at a host.
type visit struct {
	w *Worker
	hold
	end    time.Time
	polled bool // a feed was polled, so there is a pause before the next
	late   time.Duration

	mu    sync.Mutex
	held  []*routine
	timer *time.Timer // time to write the held records; nil if there are none
	err   error       // of writing
}

// run does the work. Once the feeds are polled, there is room for another host while the
// last records are being written.
func (v *visit) run(c *claim) {
	w := v.w
	w.metrics.hosts.Add(1)
	ctx, cancel := context.WithTimeout(w.visiting, 2*w.slice())
	defer cancel()
	leave := sync.OnceFunc(func() {
		w.metrics.hosts.Add(-1)
		<-w.room
		select {
		case w.freed <- struct{}{}:
		default:
		}
	})
	defer leave()
	err := caught(func() error {
		err := v.work(ctx, c)
		w.writing <- struct{}{}
		defer func() { <-w.writing }()
		leave()
		if failed := v.write(true); err == nil {
			err = failed
		}
		return err
	})
	if err != nil && w.visiting.Err() == nil {
		w.trouble(ctx, "the polls of "+v.host+" cannot be recorded", err)
	}
}

// work polls the claimed feeds, and claims more as long as there may be more. The last
// records are not yet written.
func (v *visit) work(ctx context.Context, c *claim) (err error) {
	for err == nil && len(c.turns) > 0 {
		for _, t := range c.turns {
			if v.polled {
				v.w.rest(ctx)
			}
			if !v.w.goesOn(ctx, v.end) || v.w.waits.left(v.host) > 0 {
				return nil
			}
			if err = v.take(ctx, t); err != nil {
				break
			}
			v.polled = true
		}
		if err != nil || len(c.turns) < c.most {
			break // releasing the host takes care of feeds due since
		}
		if err = v.write(false); err == nil {
			err = v.w.claims.ask(c)
		}
	}
	return err
}

// take polls a feed and records the result, or holds it back to write it with others.
func (v *visit) take(ctx context.Context, t *turn) error {
	w, d := v.w, v.w.Database
	if t.tries > 0 || t.doubtful {
		if begun, err := d.begin(ctx, t, w.lease()); err != nil || !begun {
			return err
		}
	}
	began, late := time.Now(), d.clock.now().Sub(t.due)
	e := w.poll(ctx, t)
	w.metrics.poll(e, began, late)
	if r := e.routine(t); r != nil {
		v.holdBack(r)
		return nil
	}
	after, cancel := afterwards(ctx)
	defer cancel()
	if e.outcome == broken && !t.noted {
		if begun, err := d.begin(after, t, w.lease()); err != nil || !begun {
			return err
		}
	}
	return d.end(after, t, e)
}

// holdBack makes the record of a poll wait for other polls.
func (v *visit) holdBack(r *routine) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.held = append(v.held, r)
	if v.timer == nil {
		v.timer = time.AfterFunc(v.late, func() {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.err = errors.Join(v.err, v.writeHeld(false))
		})
	}
}

// write writes the held records, and releases the host if release is set.
func (v *visit) write(release bool) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return errors.Join(v.err, v.writeHeld(release))
}

func (v *visit) writeHeld(release bool) error {
	if v.timer != nil {
		v.timer.Stop()
		v.timer = nil
	}
	n := &write{hold: v.hold, polls: v.held, release: release, pause: v.w.pause(), wait: v.w.waits.left(v.host)}
	v.held = nil
	if len(n.polls) == 0 && !release {
		return nil
	}
	err := v.w.writes.ask(n)
	if err != nil && len(n.polls) == 0 {
		return err
	}
	if err != nil { // one of them may be the cause
		for _, p := range n.polls {
			if err := v.writeAlone(p); err != nil {
				return err
			}
		}
		return v.writeHeld(release)
	}
	for _, p := range n.polls {
		if !p.stored && !p.committed {
			v.w.metrics.overtaken()
		}
		if !p.there && (n.held || p.committed) {
			ctx, cancel := afterwards(context.Background())
			err = errors.Join(err, v.w.Database.forgotten(ctx, p.turn))
			cancel()
		}
	}
	return err
}

// writeAlone records a poll by itself, after it could not be written with
// others.
func (v *visit) writeAlone(p *routine) error {
	w, d := v.w, v.w.Database
	ctx, cancel := afterwards(context.Background())
	defer cancel()
	e := pollResult{outcome: unchanged, feed: p.state, due: p.state.Next}
	var err error
	if !p.committed {
		err = d.Store.Commit(ctx, &mirror.Commit{Feed: p.state})
	}
	switch {
	case errors.Is(err, mirror.ErrConflict):
		w.metrics.overtaken()
		e = pollResult{outcome: conflict, due: d.clock.now().Add(afterConflict)}
	case err != nil:
		if begun, err := d.begin(ctx, p.turn, w.lease()); err != nil || !begun {
			return err
		}
		e = w.broken(ctx, p.turn, err, false)
	}
	return d.end(ctx, p.turn, e)
}

// goesOn reports whether another feed may be polled.
func (w *Worker) goesOn(ctx context.Context, end time.Time) bool {
	select {
	case <-w.ending:
		return false
	default:
		// One of the machine's two clocks stops while it sleeps.
		now := time.Now()
		return ctx.Err() == nil && now.Before(end) && now.Round(0).Before(end.Round(0))
	}
}

// rest waits for the pause between two polls.
func (w *Worker) rest(ctx context.Context) {
	if w.pause() == 0 {
		return
	}
	select {
	case <-time.After(w.pause()):
	case <-w.ending:
	case <-ctx.Done():
	}
}

// afterwards returns a context for records to be written even if the job must end.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
}

// An outcome is the result of a poll, as a label of the metrics.
type outcome string

const (
	changed     outcome = "changed"
	unchanged   outcome = "unchanged"
	failed      outcome = "failed"      // the subscription document could not be read
	gone        outcome = "gone"        // the publisher has withdrawn the feed
	sliced      outcome = "sliced"      // there is more to read
	interrupted outcome = "interrupted" // the worker is ending
	conflict    outcome = "conflict"    // something else was at work on the feed
	early       outcome = "early"       // the feed was not due, or its host asks to be left alone
	broken      outcome = "broken"      // the poll did not end properly
	buried      outcome = "buried"      // the feed is now a dead letter
)

var outcomes = []outcome{changed, unchanged, failed, gone, sliced, interrupted, conflict, early, broken, buried}

// A session is the store as one poll sees it.
type session struct {
	mirror.Store
	worker  *Worker
	turn    *turn
	again   bool         // an earlier poll may have ended without a record
	feed    *mirror.Feed // as it was read or last committed
	commits int

	// A routine change may be held, to be stored with others. Then before is the state as
	// it was read, and held the state to store.
	holds        bool
	before, held *mirror.Feed
}

// errEarly says the feed must not be polled yet.
var errEarly = errors.New("the feed is not due")

// Feed implements mirror.Store.
func (s *session) Feed(ctx context.Context, url string) (f *mirror.Feed, err error) {
	own := url == s.turn.url
	if f = s.turn.state; own && s.turn.sought {
		if s.turn.state, s.turn.sought = nil, false; f == nil {
			return nil, fmt.Errorf("%s: %w", url, mirror.ErrNotFound)
		}
	} else if f, err = s.Store.Feed(ctx, url); err != nil || !own {
		return f, err
	}
	before := *f
	s.feed, s.before = f, &before
	if s.again && !f.Gone && f.Alias == "" && !f.Due(s.worker.Database.clock.now()) {
		return nil, errEarly
	}
	return f, nil
}

// Commit implements mirror.Store.
func (s *session) Commit(ctx context.Context, c *mirror.Commit) error {
	if s.held != nil { // more has come
		err := s.Store.Commit(ctx, &mirror.Commit{Feed: s.held})
		if err != nil {
			return err
		}
		s.held = nil
	}
	if s.holds && s.commits == 0 && isRoutine(s.before, c) {
		held := *c.Feed
		s.feed, s.held = c.Feed, &held
		c.Feed.Commits++
		return nil
	}
	err := s.store(ctx, c)
	if err == nil {
		s.feed = c.Feed
		s.commits++
	}
	return err
}

// mostTogether is the maximum number of bytes of a first commit that is stored with others.
const mostTogether = 256 << 10

// store commits a change: the first one of a feed together with those of other feeds.
func (s *session) store(ctx context.Context, c *mirror.Commit) error {
	size := int64(0)
	for _, r := range c.Put {
		size += r.Content.Size
	}
	if c.Feed.Commits > 0 || size > mostTogether || s.Store != mirror.Store(s.worker.Database.states) {
		return s.Store.Commit(ctx, c)
	}
	f := &first{commit: c}
	if err := s.worker.firsts.ask(f); err != nil {
		return err
	}
	return f.err
}

// A first is the first commit of a feed.
type first struct {
	commit *mirror.Commit
	err    error // result: mirror.ErrConflict if the feed is there already
}

// commitNew stores the first commits of several feeds together.
func (d *Database) commitNew(ctx context.Context, firsts []*first) error {
	commits := make([]*mirror.Commit, len(firsts))
	for i, f := range firsts {
		commits[i] = f.commit
	}
	results, err := d.states.CommitNew(ctx, commits)
	for i, err := range results {
		firsts[i].err = err
	}
	return err
}

// isRoutine reports whether a change records only a poll, and when the feed is due
// next. Such a change may be lost, because another poll finds it out again with a
// conditional request. A host's Retry-After may not be lost.
func isRoutine(before *mirror.Feed, c *mirror.Commit) bool {
	f := c.Feed
	switch {
	case before == nil, f.Commits == 0, f.Commits != before.Commits, c.Number != 0,
		len(c.Put)+len(c.Touch)+len(c.Versions)+len(c.Documents) > 0, c.Forget,
		f.Unfinished, f.More, f.Gone, f.Alias != "", f.Lost != "", !f.Wait.IsZero(), f.Failures > 0, f.Error != "",
		len(f.Ledger.Gaps()) > 0:
		return false
	}
	was, is := *before, *f
	for _, f := range []*mirror.Feed{&was, &is} {
		f.Polls, f.Polled, f.Next = 0, time.Time{}, time.Time{}
	}
	return reflect.DeepEqual(was, is)
}

// A panicError is a panic of a poll.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// caught returns a panic as an error.
func caught(do func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value, debug.Stack()}
		}
	}()
	return do()
}

// afterConflict is the time until a feed is due again after something else was
// at work on it.
const afterConflict = time.Minute

// poll polls a feed.
func (w *Worker) poll(ctx context.Context, t *turn) pollResult {
	if t.tries > w.tries() {
		return pollResult{outcome: buried, dead: fmt.Sprintf("%d polls in a row have begun and not ended", w.tries())}
	}
	now := w.Database.clock.now
	s := &session{Store: w.Database.Store, worker: w, turn: t, again: t.tries > 1 || t.doubtful, holds: !t.noted}
	m := &mirror.Mirror{Store: s, Client: w.client, Every: w.Every, Versions: w.Versions, Recheck: cmp.Or(w.Recheck, -1), Now: now}
	limited, cancel := context.WithTimeout(context.WithValue(ctx, hostKey{}, t.host), w.slice())
	defer cancel()
	var changes *mirror.Report
	err := caught(func() (err error) {
		changes, err = m.Update(limited, t.url)
		return err
	})
	ended := now()
	e := pollResult{feed: s.feed, changes: changes}
	rest := ended // when the rest is due
	if s.feed != nil && s.feed.Waits(ended) {
		rest = s.feed.Wait
	}
	switch {
	case errors.Is(err, errEarly):
		e.outcome, e.due, e.err = early, s.feed.Next, s.feed.Error
	case errors.Is(err, mirror.ErrConflict):
		e.outcome, e.due, e.feed = conflict, ended.Add(afterConflict), nil
	case err != nil && ctx.Err() != nil:
		e.outcome, e.due = interrupted, rest
	case err == nil && changes.Failure != nil:
		e.outcome, e.due, e.err = failed, s.feed.Next, s.feed.Error
		if errors.Is(changes.Failure, mirror.ErrWaits) {
			e.outcome = early
		} else if s.feed.Gone {
			e.outcome = gone
		}
	case err == nil && s.feed.Documents > w.documents():
		return pollResult{outcome: buried, dead: fmt.Sprintf("more than %d archive documents", w.documents())}
	case err == nil && changes.More && changes.Documents > 0, err != nil && limited.Err() != nil && s.commits > 0:
		e.outcome, e.due = sliced, rest
	case err == nil:
		e.outcome, e.due = unchanged, changes.Feed.Next
		if changes.Added+changes.Changed+changes.Deleted > 0 {
			e.outcome = changed
		} else {
			e.held = s.held
		}
	default:
		return w.broken(ctx, t, err, limited.Err() != nil)
	}
	return e
}

// broken returns the result of a poll cut short.
func (w *Worker) broken(ctx context.Context, t *turn, err error, late bool) pollResult {
	what := feedhistory.Describe(err)
	if late {
		what = fmt.Sprintf("it has brought nothing in %v", w.slice())
	}
	if fault, ok := errors.AsType[*panicError](err); ok && w.Logger != nil {
		w.Logger.ErrorContext(ctx, "a poll has panicked", "feed", t.url, "panic", fault.value, "stack", string(fault.stack))
	}
	if max(t.tries, 1) >= w.tries() {
		return pollResult{outcome: buried, dead: what}
	}
	return pollResult{outcome: broken, err: what}
}

// A combiner carries out the simultaneous requests of several callers together:
// requests arriving while it carries out one group become the next group.
type combiner[T any] struct {
	do func(ctx context.Context, group []T) error

	mu      sync.Mutex
	waiting []*pendingRequest[T]
	working bool
}

// A pendingRequest is one caller's request.
type pendingRequest[T any] struct {
	what T
	done chan error
}

// together is the maximum size of a group.
const together = 100

// ask makes a request, and waits until it has been carried out.
func (c *combiner[T]) ask(what T) error {
	a := &pendingRequest[T]{what, make(chan error, 1)}
	c.mu.Lock()
	c.waiting = append(c.waiting, a)
	if !c.working {
		c.working = true
		go c.work()
	}
	c.mu.Unlock()
	return <-a.done
}

// work carries out the waiting requests, until none is left.
func (c *combiner[T]) work() {
	for {
		c.mu.Lock()
		group := c.waiting[:min(together, len(c.waiting))]
		c.waiting = c.waiting[len(group):]
		c.working = len(group) > 0
		c.mu.Unlock()
		if len(group) == 0 {
			return
		}
		c.answer(group)
	}
}

// patience is the maximum time for a group.
const patience = 10 * time.Second

func (c *combiner[T]) answer(group []*pendingRequest[T]) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	all := make([]T, len(group))
	for i, a := range group {
		all[i] = a.what
	}
	err := c.do(ctx, all)
	for i, a := range group {
		if err == nil || len(group) == 1 || ctx.Err() != nil {
			a.done <- err
		} else { // an error of one caller must not affect the others
			a.done <- c.do(ctx, all[i:i+1])
		}
	}
}

// A write is a record about a host: its polls without news, and its release.
type write struct {
	hold
	polls   []*routine
	release bool
	pause   time.Duration // how long the host must rest after it is released
	wait    time.Duration // how long it asks to be left alone; zero or less if it does not

	held bool // result: whether the host was still the worker's
}

// A routine is a poll whose record may wait for others. Of a poll without news, the state
// has not been stored yet; if it never is, or the record is lost, the feed is polled again.
type routine struct {
	*turn
	state     *mirror.Feed // with the Commits it was made from, unless it is committed
	committed bool         // whether the poll has committed the state, with news
	stored    bool         // result: whether the state is stored
	there     bool         // result: whether the feed is subscribed to
}

// routine returns the record of a poll that has ended well; nil if it cannot wait.
func (e *pollResult) routine(t *turn) *routine {
	switch f := e.feed; {
	case e.held != nil:
		return &routine{turn: t, state: e.held}
	case f == nil, t.noted, e.outcome != changed && e.outcome != unchanged, f.Gone, f.Alias != "", f.Failures > 0, e.err != "",
		!e.due.Equal(f.Next), hostOf(f) != t.host:
		return nil
	default:
		return &routine{turn: t, state: f, committed: true}
	}
}

// write carries out several writes together. It is not durable.
func (d *Database) write(ctx context.Context, writes []*write) error {
	return pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		held, err := lockHeld(ctx, tx, writes)
		if err != nil {
			return err
		}
		var polls, open []*routine
		var states []*mirror.Feed
		var released []string
		var pauses, waits []time.Duration
		for _, w := range writes {
			if w.held = slices.Contains(held, w.host); !w.held {
				continue
			}
			for _, p := range w.polls {
				p.stored, p.there = p.committed, false
				if polls = append(polls, p); !p.committed {
					open, states = append(open, p), append(states, p.state)
				}
			}
			if w.release {
				released, pauses, waits = append(released, w.host), append(pauses, w.pause), append(waits, w.wait)
			}
		}
		if len(open) > 0 {
			if err := store(ctx, tx, open, states); err != nil {
				return err
			}
		}
		if len(polls) > 0 {
			if err := d.note(ctx, tx, polls); err != nil {
				return err
			}
		}
		if len(released) > 0 {
			_, err = tx.Exec(ctx, releaseHosts, released, pauses, waits)
		}
		return err
	})
}

// lockHeld locks the hosts still held, and returns them. Their feeds are then read in their
// present state. All who lock several hosts do so in the same order.
func lockHeld(ctx context.Context, tx pgx.Tx, writes []*write) (held []string, err error) {
	var hosts []string
	var tokens []int64
	for _, w := range writes {
		hosts, tokens = append(hosts, w.host), append(tokens, w.token)
	}
	return column[string](tx.Query(ctx, lockHosts, hosts, tokens))
}

// column returns the values of a query with one column.
func column[T any](rows pgx.Rows, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[T])
}

// store stores the states of feeds, and marks the polls whose states were
// stored.
func store(ctx context.Context, tx pgx.Tx, polls []*routine, states []*mirror.Feed) error {
	query, args := sqlstore.UpdatePolls(states)
	places, err := column[int](tx.Query(ctx, query, args...))
	for _, place := range places {
		polls[place-1].stored = true
	}
	return err
}

// note records how polls ended. A feed changed by something else meanwhile is due again
// soon.
func (d *Database) note(ctx context.Context, tx pgx.Tx, polls []*routine) error {
	by := make(map[string]*routine, len(polls))
	urls, due, verdicts := make([]string, len(polls)), make([]time.Time, len(polls)), make([]string, len(polls))
	for i, p := range polls {
		by[p.url], urls[i], due[i], verdicts[i] = p, p.url, p.state.Next, p.state.Verdict.String()
		if !p.stored {
			due[i] = d.clock.now().Add(afterConflict)
		}
	}
	noted, err := column[string](tx.Query(ctx, noteFeeds, urls, due, verdicts))
	for _, url := range noted {
		by[url].there = true
	}
	return err
}

const (
	lockHosts = `
		SELECT h.host FROM unnest($1::text[], $2::bigint[]) AS a (host, token) JOIN fleet_hosts h ON h.host = a.host AND h.holder = a.token
		ORDER BY h.host FOR UPDATE OF h`
	// The hosts are locked, so nobody else changes several of these feeds.
	noteFeeds = `
		UPDATE fleet_feeds f SET polled = now(), tries = 0, due = a.due, verdict = a.verdict, failures = 0, error = '', gone = false
		FROM unnest($1::text[], $2::timestamptz[], $3::text[]) AS a (url, due, verdict) WHERE f.url = a.url
		RETURNING f.url`
	// A host is due when one of its feeds is, but not before the pause and the wait are over.
	releaseHosts = `
		UPDATE fleet_hosts h SET holder = NULL, until = NULL, wait = CASE WHEN a.wait > '0' THEN greatest(h.wait, now() + a.wait) ELSE h.wait END,
			due = (SELECT CASE WHEN min(f.due) IS NOT NULL THEN greatest(min(f.due), now() + a.pause, now() + a.wait, h.wait) END FROM fleet_feeds f WHERE f.host = a.host)
		FROM unnest($1::text[], $2::interval[], $3::interval[]) AS a (host, pause, wait) WHERE h.host = a.host`
)

// A quietHandler drops records logged after their context has ended, because errors
// are normal while a worker stops.
type quietHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (c quietHandler) Handle(ctx context.Context, r slog.Record) error {
	if ctx.Err() != nil {
		return nil
	}
	return c.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (c quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{c.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (c quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{c.Handler.WithGroup(name)}
}
