package feedtest

import (
	"slices"
	"sync"
)

// A List collects values from several goroutines, such as a server's requests: a walk
// requests documents in advance, so handlers run at the same time. The zero value is empty.
type List[T any] struct {
	mu     sync.Mutex
	values []T
}

// Add appends a value, and returns how many there are now.
func (l *List[T]) Add(v T) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.values = append(l.values, v)
	return len(l.values)
}

// All returns the values in the order in which they came.
func (l *List[T]) All() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.values)
}

// Took returns the values since the last call.
func (l *List[T]) Took() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	values := l.values
	l.values = nil
	return values
}
