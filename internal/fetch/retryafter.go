package fetch

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter is the longest wait a host may ask for: a mistake in one header must
// not lose a feed for a year.
const maxRetryAfter = 24 * time.Hour

// RetryAfter reads how long the host asks clients to wait (RFC 9110 §10.2.3).
func RetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0, false
	}
	if wait, ok := deltaSeconds(v); ok {
		return min(wait, maxRetryAfter), true
	}
	at, ok := parseDate(v)
	if !ok {
		return 0, false
	}
	// By the clock of the host, if it sends the time: it may differ from ours.
	if date, ok := parseDate(h.Get("Date")); ok {
		now = date
	}
	return min(max(at.Sub(now), 0), maxRetryAfter), true
}

// deltaSeconds reads a number of seconds. One too large to represent counts as very
// long (RFC 9111 §1.2.2).
func deltaSeconds(s string) (time.Duration, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		n = 1<<31 - 1
	}
	return time.Duration(n) * time.Second, true
}

// parseDate reads an HTTP date. It also accepts days of one digit, which many servers
// write and http.ParseTime refuses, and UTC instead of GMT.
func parseDate(s string) (time.Time, bool) {
	if s == "" {
		return time.Time{}, false
	}
	if t, err := http.ParseTime(s); err == nil {
		return t, true
	}
	for _, layout := range [...]string{
		"Mon, 2 Jan 2006 15:04:05 GMT",
		"Mon, 2 Jan 2006 15:04:05 UTC",
		"Mon, 2 Jan 2006 15:04:05 -0700",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
