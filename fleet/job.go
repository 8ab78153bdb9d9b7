package fleet

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/riverqueue/river"

	"github.com/feedhistory/feedhistory/mirror"
)

// A hostWorker runs the jobs of hosts.
type hostWorker struct {
	river.WorkerDefaults[hostJob]
	w *Worker
}

// NextRetry implements river.Worker: a job fails only if the database does.
func (*hostWorker) NextRetry(job *river.Job[hostJob]) time.Time {
	return time.Now().Add(time.Duration(job.Attempt) * time.Second)
}

// Work implements river.Worker. It polls the feeds of the host that are due,
// one after the other, until the slice is over. If feeds are due then, the host
// gets another job.
func (hw *hostWorker) Work(ctx context.Context, job *river.Job[hostJob]) error {
	w := hw.w
	v := &visit{w: w, hold: hold{host: job.Args.Host, token: rand.Int64()}, end: time.Now().Add(w.slice())}
	c := &claim{hold: v.hold}
	c.most, v.late = w.batch()
	if err := w.claims.ask(c); err != nil || !c.held {
		return err
	}
	w.metrics.hosts.Add(1)
	defer w.metrics.hosts.Add(-1)
	return v.work(ctx, c)
}

// A visit is the work of a job at its host.
type visit struct {
	w *Worker
	hold
	end    time.Time
	polled bool // a feed was polled, so there is a pause before the next
	late   time.Duration

	mu    sync.Mutex
	held  []*routine
	timer *time.Timer // time to write what is held; nil if nothing is
	err   error       // of writing
}

// work polls the claimed feeds, and claims more as long as there may be more.
func (v *visit) work(ctx context.Context, c *claim) (err error) {
	for err == nil && len(c.turns) > 0 {
		for _, t := range c.turns {
			if v.polled {
				v.w.rest(ctx)
			}
			if !v.w.goesOn(ctx, v.end) {
				return v.write(true)
			}
			if err = v.take(ctx, t); err != nil {
				break
			}
			v.polled = true
		}
		if err != nil || len(c.turns) < c.most {
			break // releasing the host takes care of what has become due meanwhile
		}
		if err = v.write(false); err == nil {
			c.again = true
			err = v.w.claims.ask(c)
		}
	}
	if failed := v.write(true); err == nil {
		err = failed
	}
	return err
}

// take polls a feed and records the ending, or holds it back to write it with
// others.
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

// write writes what is held, and releases the host if release is set.
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
	n := &write{hold: v.hold, polls: v.held, release: release, pause: v.w.pause()}
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
	e := ending{outcome: unchanged, feed: p.state, due: p.state.Next}
	err := d.Store.Commit(ctx, &mirror.Change{Feed: p.state})
	switch {
	case errors.Is(err, mirror.ErrConflict):
		w.metrics.overtaken()
		e = ending{outcome: conflict, due: time.Now().Add(afterConflict)}
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

// afterwards returns a context for what must be recorded even if the job must
// end.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
}
