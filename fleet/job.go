package fleet

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/riverqueue/river"

	"github.com/feedhistory/feedhistory/mirror"
)

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
	if err := w.Database.claim(ctx, claims); err != nil {
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

// run does the work, and makes room for another visit.
func (v *visit) run(c *claim) {
	w := v.w
	w.metrics.hosts.Add(1)
	ctx, cancel := context.WithTimeout(w.visiting, 2*w.slice())
	defer func() {
		if value := recover(); value != nil {
			w.trouble(context.Background(), "a visit of "+v.host+" has panicked", &panicError{value, debug.Stack()})
		}
		cancel()
		w.metrics.hosts.Add(-1)
		<-w.room
		select {
		case w.freed <- struct{}{}:
		default:
		}
	}()
	if err := v.work(ctx, c); err != nil && w.visiting.Err() == nil {
		w.trouble(ctx, "the polls of "+v.host+" cannot be recorded", err)
	}
}

// work polls the claimed feeds, and claims more as long as there may be more.
func (v *visit) work(ctx context.Context, c *claim) (err error) {
	for err == nil && len(c.turns) > 0 {
		for _, t := range c.turns {
			if v.polled {
				v.w.rest(ctx)
			}
			if !v.w.goesOn(ctx, v.end) || v.w.waits.left(v.host) > 0 {
				return v.write(true)
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
	if failed := v.write(true); err == nil {
		err = failed
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
	began := time.Now()
	e := w.poll(ctx, t)
	w.metrics.poll(t, e, began)
	if e.held != nil {
		v.holdBack(&routine{turn: t, state: e.held})
		return nil
	}
	after, cancel := afterwards(ctx)
	defer cancel()
	if e.outcome == broken && !t.noted {
		if begun, err := d.begin(after, t, w.lease()); err != nil || !begun {
			return err
		}
	}
	noted, err := d.end(after, t, e)
	if err != nil || noted {
		return err
	}
	return d.forgotten(after, t)
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
		if !p.stored {
			v.w.metrics.overtaken()
		}
		if n.held && !p.there {
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
	err := d.Store.Commit(ctx, &mirror.Commit{Feed: p.state})
	switch {
	case errors.Is(err, mirror.ErrConflict):
		w.metrics.overtaken()
		e = pollResult{outcome: conflict, due: time.Now().Add(afterConflict)}
	case err != nil:
		if begun, err := d.begin(ctx, p.turn, w.lease()); err != nil || !begun {
			return err
		}
		e = w.broken(ctx, p.turn, err, false)
	}
	noted, err := d.end(ctx, p.turn, e)
	if err != nil || noted {
		return err
	}
	return d.forgotten(ctx, p.turn)
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
