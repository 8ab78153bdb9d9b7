package fetch

import (
	"fmt"
	"net/http"
	"time"
)

// A Failure is a request ended by a rule of this package, by the status of the answer, or
// by a fault of the body. Its text is for programmers; Client.Public has the one for users.
type Failure struct {
	Kind Kind
	URL  string // without userinfo
	Name string // the rule, limit, step or encoding the Kind speaks of
	Max  int64  // the limit, or the time of the step in nanoseconds

	// Status is the status of an answer. RetryAfter is how long the host asks clients to
	// wait, and At is when that time ends; both are zero if it does not ask.
	Status     int
	RetryAfter time.Duration
	At         time.Time
	Remembered bool // no request was made: Status is from an earlier answer of the host
	Gone       bool // a 410, and all redirects before it were permanent

	Err error // details; may be nil
}

// A Kind says which of a Failure's fields are set.
type Kind string

// The kinds of failures.
const (
	Refused   Kind = "refused"   // Name is a Rule
	Status    Kind = "status"    // Status, RetryAfter, At, Remembered and Gone
	Limit     Kind = "limit"     // Name is "bytes", "ratio", "headers", "wire" or "window", with Max
	Timeout   Kind = "timeout"   // Name is "connect", "tls", "headers", "body" or "idle", with Max
	Truncated Kind = "truncated" // Err is io.ErrUnexpectedEOF, a reset, a malformed chunk…
	Encoding  Kind = "encoding"  // Name is the Content-Encoding, and Err its corruption, if it is known
)

// The rules that refuse a request. Package feedhistory documents them.
const (
	RuleURL       = "url"
	RuleLength    = "length"
	RuleScheme    = "scheme"
	RuleUserinfo  = "userinfo"
	RuleMethod    = "method"
	RuleHeader    = "header"
	RuleDowngrade = "downgrade"
	RuleLocation  = "location"
	RuleLoop      = "loop"
	RuleRedirects = "redirects"
	RuleAddress   = "address"
)

func (f *Failure) Error() string {
	return fmt.Sprintf("%s: %s %s %d", f.URL, f.Kind, f.Name, f.Status)
}

func (f *Failure) Unwrap() error { return f.Err }

// refused returns the Failure of a request forbidden by a rule.
func refused(url, rule string, err error) *Failure {
	return &Failure{Kind: Refused, URL: url, Name: rule, Err: err}
}

// temporary is the rule for a Failure.
func (f *Failure) temporary() bool {
	switch {
	case f.Kind != Status:
		return f.Kind == Timeout
	case f.Status == http.StatusTooManyRequests:
		return !f.At.IsZero() && !f.Remembered
	case f.Status == http.StatusNotImplemented:
		return false
	default:
		return f.Status >= 500 && !f.Remembered
	}
}

// public returns the error for the caller and the log.
func (c *Client) public(err error) error {
	if f, ok := err.(*Failure); ok && c.Public != nil {
		return c.Public(f)
	}
	return err
}
