package fleet

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/riverqueue/river"
)

// A hostWorker does the job of a host.
type hostWorker struct {
	river.WorkerDefaults[hostJob]
	w *Worker
}

// NextRetry implements river.Worker: a job fails only with the database.
func (*hostWorker) NextRetry(job *river.Job[hostJob]) time.Time {
	return time.Now().Add(time.Duration(job.Attempt) * time.Second)
}

// Work implements river.Worker. It polls the feeds of the host that are due, one
// after the other, until the slice is over. Whatever is due then, the host gets
// another job for.
func (hw *hostWorker) Work(ctx context.Context, job *river.Job[hostJob]) error {
	w, d := hw.w, hw.w.Database
	h := hold{host: job.Args.Host, token: rand.Int64()}
	held, err := d.hold(ctx, h, w.lease())
	if err != nil || !held {
		return err
	}
	w.metrics.hosts.Add(1)
	defer w.metrics.hosts.Add(-1)
	for end := time.Now().Add(w.slice()); err == nil && w.goesOn(ctx, end); {
		var t *turn
		if t, err = d.next(ctx, h, w.lease()); err != nil || t == nil {
			break
		}
		if err = w.take(ctx, t); err == nil {
			w.rest(ctx)
		}
	}
	after, cancel := afterwards(ctx)
	defer cancel()
	if failed := d.release(after, h, w.pause()); err == nil {
		err = failed
	}
	return err
}

// goesOn reports whether a further feed may be polled.
func (w *Worker) goesOn(ctx context.Context, end time.Time) bool {
	select {
	case <-w.ending:
		return false
	default:
		return ctx.Err() == nil && time.Now().Before(end)
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

// afterwards is a context for what is to be noted even if the job is to end.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
}

// take polls a feed and notes how that ended.
func (w *Worker) take(ctx context.Context, t *turn) error {
	began := time.Now()
	e := w.poll(ctx, t)
	w.metrics.poll(t, e, began)
	after, cancel := afterwards(ctx)
	defer cancel()
	noted, err := w.Database.end(after, t, e)
	if err != nil || noted {
		return err
	}
	return w.Database.forgotten(after, t)
}
