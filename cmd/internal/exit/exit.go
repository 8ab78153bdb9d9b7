// Package exit has the exit statuses of the command, and the errors asking for one.
package exit

import (
	"errors"
	"fmt"

	"github.com/feedhistory/feedhistory"
)

// The exit statuses.
const (
	OK      = 0 // nothing is known to be missing
	Failed  = 1
	Usage   = 2
	Partial = 3 // something is missing, and the command has said so

	Interrupted = 130 // interrupted before there was anything to show
)

// Of returns the exit status for a verdict. An unknown one is no better than partial.
func Of(v feedhistory.Verdict) int {
	if v == feedhistory.Partial || v == feedhistory.Unknown {
		return Partial
	}
	return OK
}

// Worse returns the exit status for two outcomes.
func Worse(a, b int) int {
	for _, status := range []int{Failed, Partial, Interrupted} {
		if a == status || b == status {
			return status
		}
	}
	return OK
}

// A UsageError is a mistake on the command line.
type UsageError string

// Error returns the message.
func (e UsageError) Error() string { return string(e) }

// A StatusError ends the command with an exit status, after the command has said why.
type StatusError int

// Error returns the status as text.
func (e StatusError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// An InterruptedError ends the command with the exit status for an interrupt.
type InterruptedError struct {
	Err error // Err describes the interrupted action.
}

// Error returns the message of Err.
func (e InterruptedError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e InterruptedError) Unwrap() error { return e.Err }

// ErrInterrupted replaces the error of a context ended by an interrupt.
var ErrInterrupted = errors.New("interrupted")

// An OutputError is an error of writing to standard output.
type OutputError struct{ Err error }

// Error returns the message of Err.
func (e *OutputError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *OutputError) Unwrap() error { return e.Err }

// IsOutputError reports whether an error is one of writing to standard output.
func IsOutputError(err error) bool {
	_, ok := errors.AsType[*OutputError](err)
	return ok
}
