package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory/internal/iri"
	"golang.org/x/net/http/httpguts"
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
	Network   Kind = "network"   // Err is the transport's, the name server's or the context's
	Proxy     Kind = "proxy"     // Name is the proxy's host, and Status its answer, or Err why there is none
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
	return fmt.Sprintf("%s: %s %s %d %v", iri.Shown(f.URL), f.Kind, f.Name, f.Status, f.Err)
}

func (f *Failure) Unwrap() error { return f.Err }

// refused returns the Failure of a request forbidden by a rule.
func refused(url, rule string, err error) *Failure {
	return &Failure{Kind: Refused, URL: url, Name: rule, Err: err}
}

// temporary reports whether the same request may succeed another time: after a network
// error before the headers, a 5xx (but not 501), and a 429 with a time. Of a truncated
// body the caller already has a part.
func (f *Failure) temporary() bool {
	switch {
	case f.Kind == Proxy && f.Status != 0:
		return f.Status >= 500
	case f.Kind == Network || f.Kind == Proxy:
		return mayPass(f.Err)
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

// log logs an event about a URL, without its secrets. An unwanted event costs nothing.
func (c *Client) log(ctx context.Context, level slog.Level, event, url string, attrs ...slog.Attr) {
	if c.logs(ctx, level) {
		c.Logger.LogAttrs(ctx, level, event, append([]slog.Attr{slog.String("url", iri.Shown(url))}, attrs...)...)
	}
}

// logs reports whether events of a level are wanted.
func (c *Client) logs(ctx context.Context, level slog.Level) bool {
	return c.Logger != nil && c.Logger.Enabled(ctx, level)
}

func (c *Client) logBody(b *body) {
	if !c.logs(b.x.caller, slog.LevelDebug) {
		return
	}
	attrs := []slog.Attr{
		slog.Int64("bytes", b.n), slog.Int64("wire", b.wire.n), slog.Duration("duration", time.Since(b.x.started)),
	}
	if b.trailing {
		attrs = append(attrs, slog.Bool("trailing", true))
	}
	if b.err != io.EOF && b.err != http.ErrBodyReadAfterClose {
		attrs = append(attrs, slog.Any("error", b.err))
	}
	c.log(b.x.caller, slog.LevelDebug, "body", b.x.url, attrs...)
}

// logFailure logs why there is no Response.
func (c *Client) logFailure(ctx context.Context, url string, err error) {
	detail := slog.Any("error", c.public(err))
	if f, ok := errors.AsType[*Failure](err); ok && f.Kind == Refused {
		c.log(ctx, slog.LevelInfo, "refusal", url, slog.String("rule", f.Name), detail)
		return
	}
	c.log(ctx, slog.LevelInfo, "failure", url, detail)
}

// reserved are the fields a Request's Header must not have: those set by this package,
// and those of the connection.
var reserved = []string{
	"User-Agent", "Accept", "Accept-Encoding", "Authorization", "If-None-Match", "If-Modified-Since",
	"Host", "Cookie", "Referer", "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization",
	"Content-Length", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
}

// checkName returns an error if a field of this name cannot be added. Only a secret may be
// a credential of HTTP's own.
func checkName(name string, secret bool) error {
	secret = secret && (name == "Authorization" || name == "Cookie")
	if !httpguts.ValidHeaderFieldName(name) || !secret && slices.Contains(reserved, name) {
		return errors.New("a field of this name cannot be added")
	}
	return nil
}

// addHeader adds the further fields of a request, or those any origin may see: a part of a
// document is asked for where the document is.
func addHeader(r *http.Request, header http.Header, all bool) error {
	for name, values := range header {
		name := http.CanonicalHeaderKey(name)
		if !all && name != "Range" && name != "If-Range" {
			continue
		}
		if err := checkName(name, false); err != nil {
			return refused(r.URL.String(), RuleHeader, err)
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return refused(r.URL.String(), RuleHeader, nil)
			}
			r.Header.Add(name, value)
		}
	}
	return nil
}

// CheckSecrets returns an error if Client.Secrets must not return such fields: their names
// or values are invalid, or their names are among those set by the connection.
func CheckSecrets(fields http.Header) error {
	for name, values := range fields {
		if err := checkName(http.CanonicalHeaderKey(name), true); err != nil {
			return err
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return errors.New("the value has a control character")
			}
		}
	}
	return nil
}

// addSecrets adds fields, perhaps credentials, to a request to u.
func addSecrets(u *url.URL, to, fields http.Header) error {
	if err := CheckSecrets(fields); err != nil {
		return refused(u.String(), RuleHeader, err)
	}
	for name, values := range fields {
		to[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	return nil
}
