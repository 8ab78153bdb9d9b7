package fetch

import (
	"context"
	"sync"
	"time"
)

// A guard cancels a request when one of its steps takes too long. One timer serves all
// steps, because a request waits for one thing at a time. It keeps running when a step
// ends, and checks the current step when it fires: stopping and starting it around each
// read would cost more than the read.
type guard struct {
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	timer    *time.Timer
	fires    time.Time // when the timer fires; zero if it is not running
	deadline time.Time // the end of the step; zero between steps
	step     Failure
}

// arm starts the clock for a step.
func (g *guard) arm(now time.Time, step string, limit, left time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.step.Name, g.step.Max = step, int64(limit)
	g.deadline = now.Add(left)
	if g.fires.IsZero() || g.deadline.Before(g.fires) {
		g.start(left)
	}
}

// start makes the timer fire at the deadline.
func (g *guard) start(left time.Duration) {
	g.fires = g.deadline
	if g.timer == nil {
		g.timer = time.AfterFunc(left, g.expire)
		return
	}
	g.timer.Reset(left)
}

// disarm ends the step.
func (g *guard) disarm() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deadline = time.Time{}
}

// stop ends the last step.
func (g *guard) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deadline = time.Time{}
	if g.timer != nil {
		g.timer.Stop()
	}
}

// expire runs when the timer fires; the step may be over.
func (g *guard) expire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fires = time.Time{}
	if g.deadline.IsZero() {
		return
	}
	if left := time.Until(g.deadline); left > 0 {
		g.start(left)
		return
	}
	timeout := g.step
	g.cancel(&timeout)
}
