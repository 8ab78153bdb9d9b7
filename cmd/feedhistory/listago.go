package main

import (
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// ago returns how long ago a time was, for a table.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return terminal.Span(now.Sub(t))
}
