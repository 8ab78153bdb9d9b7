package fleet

import (
	"context"
	"sync"
	"time"
)

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
