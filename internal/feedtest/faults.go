package feedtest

import (
	"errors"
	"fmt"
	"sync"
)

// Faults are what happens to the operations of a store or an output.
type Faults struct {
	Fail func(op string) Failure // says how an operation goes; nil: it works

	mu  sync.Mutex
	ops []string
}

// A Failure is what happens to one operation.
type Failure uint8

const (
	Works       Failure = iota
	FailsBefore         // an error, and nothing is changed
	FailsAfter          // an error, but it has taken effect
	Crashes             // as FailsBefore, and all that follows does the same
	Crashed             // as FailsAfter, and all that follows fails before
)

// ErrDisk is what the errors of Change match.
var ErrDisk = errors.New("no space left on device")

// Change carries out an operation, or has it fail. Operations take turns.
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

// Operations returns the operations since the last call, in their order.
func (f *Faults) Operations() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	ops := f.ops
	f.ops = nil
	return ops
}
