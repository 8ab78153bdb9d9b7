package modifiedrange

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A Range is a half-open interval of modification times (modified-range#2). It includes
// the start, so nothing is lost, but not the end, so nothing comes twice. With a zero
// time, the range is open on that side.
type Range struct{ Start, End time.Time }

// String returns the range in the form of a Modified-Range header: "start/end".
func (r Range) String() string { return formatTime(r.Start) + "/" + formatTime(r.End) }

// Contains reports whether the range contains a time.
func (r Range) Contains(t time.Time) bool {
	return !t.Before(r.Start) && (r.End.IsZero() || t.Before(r.End))
}

// isEmpty reports whether the range contains no time.
func (r Range) isEmpty() bool { return !r.End.IsZero() && !r.Start.Before(r.End) }

// narrower reports whether the range ends before another.
func (r Range) narrower(than Range) bool {
	return !r.End.IsZero() && (than.End.IsZero() || r.End.Before(than.End))
}

// beyond reports whether a time is outside of the range by more than a margin, because
// servers may store fractions of a second, but not write them.
func (r Range) beyond(t time.Time, margin time.Duration) bool {
	return !r.Start.IsZero() && t.Before(r.Start.Add(-margin)) || r.above(t, margin)
}

func (r Range) above(t time.Time, margin time.Duration) bool {
	return !r.End.IsZero() && !t.Before(r.End.Add(margin))
}

var errRange = errors.New("a range is two RFC 3339 times with a slash between them, either of which may be left out")

// parseRange parses "start/end"; either side may be missing (modified-range#1).
func parseRange(s string) (r Range, err error) {
	start, end, ok := strings.Cut(s, "/")
	if !ok {
		return Range{}, fmt.Errorf("%q: %w", clip(s), errRange)
	}
	if r.Start, err = parseTime(start); err != nil {
		return Range{}, err
	}
	if r.End, err = parseTime(end); err != nil {
		return Range{}, err
	}
	return r, nil
}

// parseTime parses one side of a range; the zero time if it is missing.
func parseTime(s string) (time.Time, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, strings.ToUpper(s))
	if err != nil || len(s) > 64 {
		return time.Time{}, fmt.Errorf("%q: %w", clip(s), errRange)
	}
	return t.UTC(), nil
}

// formatTime returns a time with all its digits (modified-range#6).
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// clip shortens foreign text for a message.
func clip(s string) string { return xmlscan.Clip(s, 100) }
