package fetch

import (
	"context"
	"sync"
	"time"
)

// A guard cancels a request when a step of it takes too long. One timer
// serves all steps, since a request waits for one thing at a time. It is left
// running when a step ends, and looks for the current step when it fires:
// to stop and start it around each read would cost more than the read.
type guard struct {
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	timer    *time.Timer
	fires    time.Time // when the timer does; zero: it does not run
	deadline time.Time // of the step; zero: nothing is awaited
	step     TimeoutError
}

// arm starts the clock for a step.
func (g *guard) arm(now time.Time, step string, limit, left time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.step.Step, g.step.Max = step, limit
	g.deadline = now.Add(left)
	if g.fires.IsZero() || g.deadline.Before(g.fires) {
		g.start(left)
	}
}

// start has the timer fire at the deadline.
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

// expire runs when the timer fires, perhaps for a step that is over.
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
