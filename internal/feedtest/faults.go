package feedtest

import (
	"errors"
	"fmt"
	"sync"
)

// Faults make operations of a store or an output fail.
type Faults struct {
	Fail func(op string) Failure // Fail returns the failure of an operation, if any; nil means all work.

	mu  sync.Mutex
	ops []string
}

// A Failure is the way one operation fails.
type Failure uint8

const (
	Works       Failure = iota
	FailsBefore         // it returns an error, and has no effect
	FailsAfter          // it returns an error, but has taken effect
	Crashes             // like FailsBefore, and so do all later operations
	Crashed             // like FailsAfter, and all later operations are FailsBefore
)

// ErrDisk is the error wrapped by Change.
var ErrDisk = errors.New("no space left on device")

// Change performs an operation, or makes it fail. Operations take turns.
func (f *Faults) Change(op string, do func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops = append(f.ops, op)
	how := Works
	if f.Fail != nil {
		how = f.Fail(op)
	}
	if how == Crashes || how == Crashed {
		f.Fail = func(string) Failure { return FailsBefore }
	}
	if how == Works || how == FailsAfter || how == Crashed {
		if err := do(); err != nil {
			return err
		}
	}
	if how != Works {
		return fmt.Errorf("%s: %w", op, ErrDisk)
	}
	return nil
}

// Operations returns the operations since its last call, in order.
func (f *Faults) Operations() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	ops := f.ops
	f.ops = nil
	return ops
}
