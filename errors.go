package feedhistory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/fetch"
)

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

// Error names the URL and the status.
func (e *StatusError) Error() string { return failure(e.URL, "status ", e.detail()) }

func (e *StatusError) detail() string {
	s := strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status)))
	if !e.At.IsZero() {
		s += "; the host asks to be left alone until " + e.At.UTC().Format(time.RFC3339)
	}
	if e.Remembered {
		s += " (from an earlier answer)"
	}
	return s
}

// NewStatusError returns the error a Client returns for such a response, with its
// Retry-After, for programs that make their own requests. For nil, its Status is zero.
func NewStatusError(resp *http.Response) *StatusError {
	if resp == nil {
		return &StatusError{}
	}
	e := &StatusError{Status: resp.StatusCode}
	if resp.Request != nil && resp.Request.URL != nil {
		e.URL = resp.Request.URL.Redacted()
	}
	now := time.Now()
	if wait, ok := fetch.RetryAfter(resp.Header, now); ok {
		e.RetryAfter, e.At = wait, now.Add(wait)
	}
	return e
}

// IsStatus reports whether err is a StatusError with one of the statuses.
func IsStatus(err error, statuses ...int) bool {
	e, ok := errors.AsType[*StatusError](err)
	return ok && slices.Contains(statuses, e.Status)
}

// A RefusedError reports a request forbidden by a rule of safety. It was not made.
// Trying again does not help.
type RefusedError struct {
	URL  string // the refused URL, without userinfo
	Rule string // one of the Rule constants
	Err  error  // details; may be nil
}

// Error names the URL and why it was refused.
func (e *RefusedError) Error() string {
	s := failure(e.URL, "refused: ", e.detail())
	if e.Rule == RuleAddress && e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// detail leaves out which address was refused: either the URL has it, or only the resolver
// should know.
func (e *RefusedError) detail() string {
	s := cmp.Or(refusals[e.Rule], e.Rule)
	if e.Rule != RuleAddress && e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// The rules a RefusedError may name.
const (
	RuleURL       = fetch.RuleURL       // not an absolute URL with a host
	RuleLength    = fetch.RuleLength    // the URL is longer than Limits.URL
	RuleScheme    = fetch.RuleScheme    // neither http nor https
	RuleUserinfo  = fetch.RuleUserinfo  // a user or password in the URL
	RuleMethod    = fetch.RuleMethod    // neither GET nor HEAD
	RuleHeader    = fetch.RuleHeader    // a header field a caller may not set, or an invalid value
	RuleDowngrade = fetch.RuleDowngrade // a redirect from https to http
	RuleLocation  = fetch.RuleLocation  // a redirect without a target
	RuleLoop      = fetch.RuleLoop      // a redirect to a URL requested before it
	RuleRedirects = fetch.RuleRedirects // more than five redirects
	RuleAddress   = fetch.RuleAddress   // a loopback, private or special-purpose address
	RuleOrigin    = "origin"            // another origin than the feed's, with Policy.SameOrigin
)

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

// A LimitError reports an answer, or a document, larger than Limits allow.
type LimitError struct {
	URL   string // the URL of the answer; "" in a ParseError, which has the URL
	Limit string // "bytes", "ratio", "headers", "wire" or "window"
	Max   int64  // the limit
}

// Error names the URL and the limit.
func (e *LimitError) Error() string { return failure(e.URL, "", e.detail()) }

func (e *LimitError) detail() string {
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

// A TimeoutError reports a step of a request longer than Timeouts allow.
type TimeoutError struct {
	URL  string
	Step string        // "connect", "tls", "headers", "body" or "idle"
	Max  time.Duration // the time allowed
}

// Error names the URL and the step that took too long.
func (e *TimeoutError) Error() string { return failure(e.URL, "timeout: ", e.detail()) }

func (e *TimeoutError) detail() string { return fmt.Sprintf("%s took longer than %v", e.Step, e.Max) }

// Timeout returns true, as [net.Error] asks.
func (e *TimeoutError) Timeout() bool { return true }

// Temporary returns true, as [net.Error] asks.
func (e *TimeoutError) Temporary() bool { return true }

// A TruncatedError reports a body cut off before its end.
type TruncatedError struct {
	URL string
	Err error // io.ErrUnexpectedEOF, a reset, a malformed chunk…
}

// Error names the URL of the incomplete body.
func (e *TruncatedError) Error() string { return failure(e.URL, "", e.detail()) }

func (e *TruncatedError) detail() string { return fmt.Sprintf("the body was cut short: %v", e.Err) }

// Unwrap returns Err.
func (e *TruncatedError) Unwrap() error { return e.Err }

// An EncodingError reports a body whose Content-Encoding cannot be decoded.
type EncodingError struct {
	URL      string
	Encoding string // the Content-Encoding
	Err      error  // the corruption; nil if the encoding is unknown or combined with another
}

// Error names the URL and the encoding.
func (e *EncodingError) Error() string { return failure(e.URL, "", e.detail()) }

func (e *EncodingError) detail() string {
	if e.Err != nil {
		return fmt.Sprintf("corrupt %s: %v", e.Encoding, e.Err)
	}
	return fmt.Sprintf("unsupported content encoding %q", e.Encoding)
}

// Unwrap returns Err.
func (e *EncodingError) Unwrap() error { return e.Err }

// A NotFeedError reports a document other than a feed, such as a web page. Text without
// any markup is a damaged document instead: a *ParseError with ReasonMalformed.
type NotFeedError struct {
	URL  string // where it was found, after redirects
	Page bool   // whether it is a web page

	// Feeds are the feeds the page names: its links with rel="alternate" and the media
	// type of a feed, resolved, with "alternate" as their Rel. The best comes first: a
	// feed in several formats counts once, in Atom if possible, and feeds of comments come
	// last. Only the first 1 MiB of the page and 64 links count, and only links no longer
	// than Limits.URL. They have not been requested. See [Client.Discover].
	Feeds Links

	Err *ParseError // in detail; its Reason is ReasonNotFeed
}

// Error is the text of Err.
func (e *NotFeedError) Error() string {
	return cmp.Or(e.Err, &ParseError{URL: e.URL, Reason: ReasonNotFeed}).Error()
}

// Unwrap returns Err.
func (e *NotFeedError) Unwrap() error { return e.Err }

// Describe describes an error of this package in a few words, without the URL, for
// programs that show the URL separately. If an error has a method Detail() string, as
// those of the harvest packages have, Describe returns its result. For any other error
// it returns the error's text, and for nil "".
func Describe(err error) string {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[detailer](err); ok {
		return e.Detail()
	}
	if e, ok := errors.AsType[describer](err); ok {
		return e.detail()
	}
	return describeOther(err)
}

// A detailer is an error of another package that describes itself without its URL.
type detailer interface {
	error
	Detail() string
}

// A describer is one of this package.
type describer interface {
	error
	detail() string
}

// failure returns the text of an error of a request.
func failure(url, kind, detail string) string {
	if url == "" {
		return kind + detail
	}
	return fmt.Sprintf("fetch %q: %s%s", url, kind, detail)
}

func describeOther(err error) string {
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return "the host " + e.Name + " cannot be looked up: " + e.Err
	}
	switch {
	case errors.Is(err, context.Canceled):
		return "cancelled before it was read"
	case errors.Is(err, io.EOF):
		return "the server closed the connection without an answer"
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// public returns the error of this package for a request that has failed.
func public(f *fetch.Failure) error {
	switch f.Kind {
	case fetch.Refused:
		return &RefusedError{f.URL, f.Name, f.Err}
	case fetch.Status:
		return &StatusError{f.URL, f.Status, f.RetryAfter, f.At, f.Remembered, f.Gone}
	case fetch.Limit:
		return &LimitError{f.URL, f.Name, f.Max}
	case fetch.Timeout:
		return &TimeoutError{f.URL, f.Name, time.Duration(f.Max)}
	case fetch.Truncated:
		return &TruncatedError{f.URL, f.Err}
	}
	return &EncodingError{f.URL, f.Name, f.Err}
}

// A ParseError says why, and where, a document could not be read.
type ParseError struct {
	URL    string // the URL of the document; "" if unknown
	Reason Reason // ReasonMalformed, ReasonTruncated, ReasonLimit or ReasonNotFeed
	Clause string // the clause of the specification violated by the document, or calling for the limit
	Offset int    // in the document as decoded to UTF-8, in bytes
	Line   int    // counted from 1; 0 if there is no place
	Column int    // counted from 1, in characters
	Err    error  // in detail; in particular ErrWebPage, or a *LimitError if the document is longer than Limits.Bytes
}

// Error returns the place, the reason and the details.
func (e *ParseError) Error() string {
	place := e.URL
	if e.Line > 0 {
		place = strings.TrimPrefix(fmt.Sprintf("%s:%d:%d", place, e.Line, e.Column), ":")
	}
	if place != "" {
		place += ": "
	}
	return fmt.Sprintf("%s%s: %v (%s)", place, e.Reason, e.Err, e.Clause)
}

func (e *ParseError) detail() string {
	if e.Line > 0 {
		return fmt.Sprintf("line %d, column %d: %v", e.Line, e.Column, e.Err)
	}
	return e.Err.Error()
}

// Unwrap returns the error in detail.
func (e *ParseError) Unwrap() error { return e.Err }

// ErrWebPage is the Err of a ParseError whose document is a web page.
var ErrWebPage = errors.New("it is an HTML page")

const (
	clauseXML    = "RFC 4287 §2: a feed document is well-formed XML"
	clauseJSON   = "JSON Feed 1.1: a feed is a JSON object"
	clauseLimits = "RFC 5005 §6: clients should be mindful of resource limits"
	clauseFeed   = "RFC 5005 §1.2: a feed document"
)
