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
	"github.com/feedhistory/feedhistory/internal/markup"
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
func (e *StatusError) Error() string { return (*fetch.StatusError)(e).Error() }

// IsStatus reports whether err is a StatusError with one of the statuses.
func IsStatus(err error, statuses ...int) bool {
	e, ok := errors.AsType[*StatusError](err)
	return ok && slices.Contains(statuses, e.Status)
}

// A RefusedError reports a request forbidden by a rule of safety. It was not made.
// Trying again does not help.
type RefusedError struct {
	URL string // the refused URL, without userinfo

	// Rule is a word for the rule:
	//
	//	url        not an absolute URL with a host
	//	length     the URL is longer than Limits.URL
	//	scheme     neither http nor https
	//	userinfo   a user or password in the URL
	//	method     neither GET nor HEAD
	//	header     a header field a caller may not set, or an invalid value
	//	downgrade  a redirect from https to http
	//	location   a redirect without a target
	//	loop       a redirect to a URL requested before it
	//	redirects  more than five redirects
	//	address    a loopback, private or special-purpose address
	//	origin     another origin than the feed's, with Policy.SameOrigin
	Rule string

	Err error // details; may be nil
}

// Error names the URL and why it was refused.
func (e *RefusedError) Error() string { return (*fetch.RefusedError)(e).Error() }

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// A LimitError reports an answer, or a document, larger than Limits allow.
type LimitError struct {
	URL   string // the URL of the answer; "" in a ParseError, which has the URL
	Limit string // "bytes", "ratio", "headers", "wire" or "window"
	Max   int64  // the limit
}

// Error names the URL and the limit.
func (e *LimitError) Error() string { return (*fetch.LimitError)(e).Error() }

// A TimeoutError reports a step of a request longer than Timeouts allow.
type TimeoutError struct {
	URL  string
	Step string        // "connect", "tls", "headers", "body" or "idle"
	Max  time.Duration // the time allowed
}

// Error names the URL and the step that took too long.
func (e *TimeoutError) Error() string { return (*fetch.TimeoutError)(e).Error() }

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
func (e *TruncatedError) Error() string { return (*fetch.TruncatedError)(e).Error() }

// Unwrap returns Err.
func (e *TruncatedError) Unwrap() error { return e.Err }

// An EncodingError reports a body whose Content-Encoding cannot be decoded.
type EncodingError struct {
	URL      string
	Encoding string // the Content-Encoding
	Err      error  // the corruption; nil if the encoding is unknown or combined with another
}

// Error names the URL and the encoding.
func (e *EncodingError) Error() string { return (*fetch.EncodingError)(e).Error() }

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
	if e, ok := errors.AsType[*ParseError](err); ok {
		if e.Line > 0 {
			return fmt.Sprintf("line %d, column %d: %v", e.Line, e.Column, e.Err)
		}
		return e.Err.Error()
	}
	if e, ok := errors.AsType[*StatusError](err); ok {
		return (*fetch.StatusError)(e).Detail()
	}
	if e, ok := errors.AsType[*RefusedError](err); ok {
		return (*fetch.RefusedError)(e).Detail()
	}
	if e, ok := errors.AsType[*LimitError](err); ok {
		return (*fetch.LimitError)(e).Detail()
	}
	if e, ok := errors.AsType[*TimeoutError](err); ok {
		return (*fetch.TimeoutError)(e).Detail()
	}
	if e, ok := errors.AsType[*TruncatedError](err); ok {
		return (*fetch.TruncatedError)(e).Detail()
	}
	if e, ok := errors.AsType[*EncodingError](err); ok {
		return (*fetch.EncodingError)(e).Detail()
	}
	return describeOther(err)
}

// A detailer is an error that describes itself without its URL.
type detailer interface {
	error
	Detail() string
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

// public turns an error of internal/fetch into one of this package.
func public(err error) error {
	switch e := err.(type) {
	case *fetch.StatusError:
		return (*StatusError)(e)
	case *fetch.RefusedError:
		return (*RefusedError)(e)
	case *fetch.LimitError:
		return (*LimitError)(e)
	case *fetch.TimeoutError:
		return (*TimeoutError)(e)
	case *fetch.TruncatedError:
		return (*TruncatedError)(e)
	case *fetch.EncodingError:
		return (*EncodingError)(e)
	}
	return err
}

// A publicBody is a body whose errors are of this package.
type publicBody struct{ io.ReadCloser }

func (b publicBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	return n, public(err)
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

// notFeed turns the error of a document other than a feed into a NotFeedError, with the
// feeds the document names if it is a web page. It returns other errors unchanged.
func (c *Client) notFeed(err error, text, base string, header http.Header) error {
	parse, ok := errors.AsType[*ParseError](err)
	if !ok {
		return err
	}
	kind := mediaType(header)
	page := errors.Is(parse, ErrWebPage) || (kind == "text/html" || kind == "application/xhtml+xml") && strings.Contains(text, "<")
	if page && (parse.Reason == ReasonMalformed || parse.Reason == ReasonNotFeed) {
		parse = &ParseError{URL: base, Reason: ReasonNotFeed, Clause: clauseFeed, Line: 1, Column: 1, Err: ErrWebPage}
	}
	if parse.Reason != ReasonNotFeed {
		return err
	}
	e := &NotFeedError{URL: base, Page: page, Err: parse}
	if page {
		for _, l := range markup.FeedLinks(text, base, header.Get("Content-Type"), c.Limits.withDefaults().URL) {
			e.Feeds = append(e.Feeds, Link{Rel: RelAlternate, Href: l.Href, Type: l.Type, Title: l.Title, HrefLang: l.HrefLang})
		}
	}
	return e
}
