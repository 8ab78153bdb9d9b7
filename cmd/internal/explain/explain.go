// Package explain explains errors, gaps and verdicts to people, with advice.
package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/network"
	"github.com/feedhistory/feedhistory/mirror"
)

// Detail describes an error without the URL, which the message names elsewhere.
func Detail(err error) string {
	if e, ok := errors.AsType[*feedhistory.LimitError](err); ok && e.Limit == "bytes" {
		return "the document is larger than " + argument.SizeText(e.Max)
	}
	if what, _ := tlsProblem(err); what != "" {
		return what
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	if e := network.ProxyError(err); e != nil {
		return "the proxy cannot be reached: " + feedhistory.Describe(e.Err)
	}
	if what := connection(err); what != "" {
		return what
	}
	return feedhistory.Describe(InWords(err))
}

// Advice is the advice for a gap, with the flag to use.
func Advice(g *feedhistory.Gap) string {
	s := g.Reason.Advice()
	refused, isRefused := errors.AsType[*feedhistory.RefusedError](g.Err)
	status, isStatus := errors.AsType[*feedhistory.StatusError](g.Err)
	switch {
	case isRefused && refused.Rule != feedhistory.RuleAddress:
		return "tell the publisher"
	case isStatus && status.Status == http.StatusUnauthorized:
		return statusRemedy(status)
	case errors.Is(g.Err, mirror.ErrQuota):
		s += " (--quota, --quota-entries)"
	case g.Reason == feedhistory.ReasonInterrupted && strings.HasPrefix(g.From, "source:"):
		return "run the same command again: it continues there"
	case g.Reason == feedhistory.ReasonBudget:
		s += " (--max-documents, --max-bytes)"
	case isTooLarge(g.Err):
		s += " (--max-document-bytes)"
	case IsPrivate(g.Err):
		s += " (--allow-private)"
	}
	return s
}

// IsPrivate reports whether an error is the refusal of a private address.
func IsPrivate(err error) bool {
	e, ok := errors.AsType[*feedhistory.RefusedError](err)
	return ok && e.Rule == feedhistory.RuleAddress
}

// Failure explains in one line why the document named by an argument cannot be read,
// with advice.
func Failure(arg string, err error) error {
	if wrong, ok := errors.AsType[exit.UsageError](err); ok { // it names its flag
		return wrong
	}
	name := argument.WithoutUser(arg)
	if arg == "-" {
		name = "standard input"
	}
	what, todo := Detail(err), Remedy(err)
	parse, ok := errors.AsType[*feedhistory.ParseError](err)
	switch {
	case errors.Is(err, context.Canceled):
		what = "interrupted before it was read"
	case ok && parse.Reason == feedhistory.ReasonNotFeed:
		what = "not a feed: " + parse.Err.Error()
	case ok && parse.Line > 0:
		name, what = fmt.Sprintf("%s:%d:%d", name, parse.Line, parse.Column),
			parse.Reason.String()+": "+parse.Err.Error()
	case ok:
		what = parse.Reason.String() + ": " + what
	}
	if todo != "" {
		what += "; " + todo
	}
	said := errors.New(name + ": " + what)
	if errors.Is(err, context.Canceled) {
		return exit.InterruptedError{Err: said}
	}
	return said
}

// Remedy is the advice if the first document cannot be read; "" if there is nothing to
// add to the error.
func Remedy(err error) string {
	if IsPrivate(err) {
		return "use --allow-private if you mean it"
	}
	if e, ok := errors.AsType[*feedhistory.NotFeedError](err); ok && len(e.Feeds) > 0 {
		return "its feed is " + e.Feeds[0].Href + ": give that address"
	}
	if e, ok := errors.AsType[*feedhistory.ParseError](err); ok {
		return parseRemedy(e)
	}
	if e, ok := errors.AsType[*feedhistory.RefusedError](err); ok {
		switch e.Rule {
		case feedhistory.RuleUserinfo:
			return "take it out of the URL, and log in with --user"
		case feedhistory.RuleDowngrade, feedhistory.RuleLoop, feedhistory.RuleRedirects, feedhistory.RuleLocation:
			return "tell the publisher, or give the address where the feed is now"
		}
		return ""
	}
	if e, ok := errors.AsType[*feedhistory.StatusError](err); ok {
		return statusRemedy(e)
	}
	return networkRemedy(err)
}

const proxyLogin = "the proxy requires a user and a password, as in --proxy http://USER:PASSWORD@HOST:PORT"

func networkRemedy(err error) string {
	if network.ProxyError(err) != nil {
		return "check the address in --proxy, or in HTTPS_PROXY and HTTP_PROXY, or try again later"
	}
	if e, ok := errors.AsType[*network.ProxyRefusal](err); ok {
		if e.Status == http.StatusProxyAuthRequired {
			return proxyLogin
		}
		return "check the address and the proxy, or try again later"
	}
	if isTooLarge(err) {
		return TooLargeRemedy
	}
	if _, todo := tlsProblem(err); todo != "" {
		return todo
	}
	var timeout interface{ Timeout() bool }
	switch dns, ok := errors.AsType[*net.DNSError](err); {
	case ok && dns.IsNotFound:
		return "check the address"
	case ok, errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.As(err, new(*feedhistory.TimeoutError)), errors.As(err, new(*feedhistory.TruncatedError)):
		return "try again later"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "check the address, or try again later"
	}
	return ""
}

func parseRemedy(e *feedhistory.ParseError) string {
	switch {
	case isTooLarge(e):
		return TooLargeRemedy
	case e.Reason != feedhistory.ReasonNotFeed:
		return ""
	case errors.Is(e, feedhistory.ErrWebPage):
		return "the page names no feed: give the feed's own address"
	}
	return "check the address"
}

const TooLargeRemedy = "raise --max-document-bytes if you trust the publisher"

// isTooLarge reports whether an error means a document has more bytes than the limit.
func isTooLarge(err error) bool {
	e, ok := errors.AsType[*feedhistory.LimitError](err)
	return ok && e.Limit == "bytes"
}

func statusRemedy(e *feedhistory.StatusError) string {
	switch {
	case e.Gone:
		return "the publisher has withdrawn the feed for good"
	case e.Status == http.StatusNotFound:
		return "check the address"
	case e.Status == http.StatusUnauthorized:
		return "the server requires valid credentials: check --user, --token-env, --header or --netrc"
	case e.Status == http.StatusProxyAuthRequired:
		return proxyLogin
	case e.Status == http.StatusForbidden:
		return "the server refuses access"
	case e.Status == http.StatusTooManyRequests, e.Status >= 500:
		return "try again later"
	}
	return ""
}
