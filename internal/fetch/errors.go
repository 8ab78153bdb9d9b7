package fetch

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"
)

func text(url, kind string, e interface{ Detail() string }) string {
	if url == "" {
		return kind + e.Detail()
	}
	return fmt.Sprintf("fetch %q: %s%s", url, kind, e.Detail())
}

// The rules a RefusedError may name.
const (
	RuleURL       = "url"       // not an absolute URL with a host
	RuleLength    = "length"    // the URL is longer than Limits.URL
	RuleScheme    = "scheme"    // neither http nor https
	RuleUserinfo  = "userinfo"  // a user or password in the URL
	RuleMethod    = "method"    // neither GET nor HEAD
	RuleHeader    = "header"    // a header field a caller may not set, or an invalid value
	RuleDowngrade = "downgrade" // a redirect from https to http
	RuleLocation  = "location"  // a redirect without a target
	RuleLoop      = "loop"      // a redirect to a URL requested before it
	RuleRedirects = "redirects" // more redirects than MaxRedirects
	RuleAddress   = "address"   // a loopback, private or special-purpose address
	RuleOrigin    = "origin"    // another origin than the feed's; callers check this
)

// A RefusedError reports a request this package's rules forbid. It was not made. Trying
// again does not help.
type RefusedError struct {
	URL  string // the refused URL, without userinfo
	Rule string // one of the Rule constants
	Err  error  // details; may be nil
}

func (e *RefusedError) Error() string {
	s := text(e.URL, "refused: ", e)
	if e.Rule == RuleAddress && e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Detail returns the error without the URL. It leaves out which address was refused: either
// the URL has it, or only the resolver should know.
func (e *RefusedError) Detail() string {
	s := cmp.Or(refusals[e.Rule], e.Rule)
	if e.Rule != RuleAddress && e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// refusals are the rules in words.
var refusals = map[string]string{
	RuleURL:       "not an absolute URL with a host",
	RuleLength:    "the URL is too long",
	RuleScheme:    "unsupported scheme",
	RuleUserinfo:  "a user or password in the URL",
	RuleMethod:    "unsupported method",
	RuleHeader:    "invalid header field",
	RuleDowngrade: "it redirects from https to http",
	RuleLocation:  "it redirects without saying where to",
	RuleLoop:      "it redirects in a circle",
	RuleRedirects: "it redirects too often",
	RuleAddress:   "a loopback, private or special-purpose address",
	RuleOrigin:    "its origin is not the feed's",
}

func (e *RefusedError) Unwrap() error { return e.Err }

// A StatusError reports an answer other than a success or a 304 to a conditional
// request.
type StatusError struct {
	URL    string // the URL of the answer
	Status int    // the status of the answer, such as 404

	// RetryAfter is how long the host asks clients to wait, at most a day, and At is when
	// that time ends; both are zero if it does not ask.
	RetryAfter time.Duration
	At         time.Time

	// Remembered means no request was made: Status is from an earlier answer of the host,
	// which asked for a wait longer than Retry.MaxWait.
	Remembered bool

	// Gone means the document has been withdrawn for good: the answer was a 410, and all
	// redirects before it were permanent.
	Gone bool
}

func (e *StatusError) Error() string { return text(e.URL, "status ", e) }

// Detail returns the error without the URL.
func (e *StatusError) Detail() string {
	s := strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status)))
	if !e.At.IsZero() {
		s += "; the host asks to be left alone until " + e.At.UTC().Format(time.RFC3339)
	}
	if e.Remembered {
		s += " (from an earlier answer)"
	}
	return s
}

// A LimitError reports an answer larger than Limits allow.
type LimitError struct {
	URL   string
	Limit string // "bytes", "ratio", "headers", "wire" or "window"
	Max   int64  // the limit
}

func (e *LimitError) Error() string { return text(e.URL, "", e) }

// Detail returns the error without the URL.
func (e *LimitError) Detail() string {
	return fmt.Sprintf(cmp.Or(excesses[e.Limit], "the limit on "+e.Limit+" (%d) is exceeded"), e.Max)
}

// excesses say in words which limit is exceeded.
var excesses = map[string]string{
	"bytes":   "more than %d bytes",
	"ratio":   "it decompresses to more than %d times its size",
	"headers": "the headers have more than %d bytes",
	"wire":    "more than %d bytes before decompression",
	"window":  "its compression needs a window of more than %d bytes",
}

// A TimeoutError reports a step longer than Timeouts allow.
type TimeoutError struct {
	URL  string
	Step string        // "connect", "tls", "headers", "body" or "idle"
	Max  time.Duration // the time allowed
}

func (e *TimeoutError) Error() string { return text(e.URL, "timeout: ", e) }

// Detail returns the error without the URL.
func (e *TimeoutError) Detail() string {
	return fmt.Sprintf("%s took longer than %v", e.Step, e.Max)
}

// Timeout returns true, as [net.Error] asks.
func (e *TimeoutError) Timeout() bool { return true }

// A TruncatedError reports a body cut off before its end.
type TruncatedError struct {
	URL string
	Err error // io.ErrUnexpectedEOF, a reset, a malformed chunk…
}

func (e *TruncatedError) Error() string { return text(e.URL, "", e) }

// Detail returns the error without the URL.
func (e *TruncatedError) Detail() string { return fmt.Sprintf("the body was cut short: %v", e.Err) }

func (e *TruncatedError) Unwrap() error { return e.Err }

// An EncodingError reports a body that cannot be decoded.
type EncodingError struct {
	URL      string
	Encoding string // the Content-Encoding
	Err      error  // the corruption; nil if the encoding is unknown or combined with another
}

func (e *EncodingError) Error() string { return text(e.URL, "", e) }

// Detail returns the error without the URL.
func (e *EncodingError) Detail() string {
	if e.Err != nil {
		return fmt.Sprintf("corrupt %s: %v", e.Encoding, e.Err)
	}
	return fmt.Sprintf("unsupported content encoding %q", e.Encoding)
}

func (e *EncodingError) Unwrap() error { return e.Err }
