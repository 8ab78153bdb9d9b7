package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// advice says what to do about a gap, with the flag that does it.
func advice(g *feedhistory.Gap) string {
	s := g.Reason.Advice()
	switch {
	case errors.Is(g.Err, mirror.ErrQuota):
		s += " (sync --quota, --quota-entries)"
	case g.Reason == feedhistory.ReasonInterrupted && strings.HasPrefix(g.From, "source:"):
		return "run the same command again: it goes on there"
	case g.Reason == feedhistory.ReasonBudget:
		s += " (--max-documents, --max-bytes)"
	case isPrivate(g.Err):
		s += " (--allow-private)"
	}
	return s
}

func isPrivate(err error) bool {
	e, ok := errors.AsType[*feedhistory.RefusedError](err)
	return ok && e.Rule == feedhistory.RuleAddress
}

// failure says why the document that an argument names cannot be read, in one
// line with what to do.
func failure(arg string, err error) error {
	name := withoutUser(arg)
	if arg == "-" {
		name = "standard input"
	}
	what, todo := feedhistory.Describe(err), remedy(err)
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
	return errors.New(name + ": " + what)
}

// withoutUser takes a user and password out of a URL, so that they are not
// shown.
func withoutUser(arg string) string {
	if u, err := url.Parse(arg); err == nil && u.User != nil {
		u.User = nil
		return u.String()
	}
	return arg
}

// remedy says what to do about an error of the first document; "" if the error
// itself says it.
func remedy(err error) string {
	if isPrivate(err) {
		return "use --allow-private if you mean it"
	}
	if e, ok := errors.AsType[*feedhistory.ParseError](err); ok {
		return parseRemedy(e)
	}
	if e, ok := errors.AsType[*feedhistory.RefusedError](err); ok {
		switch e.Rule {
		case feedhistory.RuleUserinfo:
			return "take it out of the URL"
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

func networkRemedy(err error) string {
	var timeout interface{ Timeout() bool }
	switch dns, ok := errors.AsType[*net.DNSError](err); {
	case ok && dns.IsNotFound:
		return "check the address"
	case ok, errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF):
		return "try again later"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "check the address, or try again later"
	}
	return ""
}

func parseRemedy(e *feedhistory.ParseError) string {
	switch {
	case e.Reason != feedhistory.ReasonNotFeed:
		return ""
	case strings.Contains(e.Err.Error(), "HTML"):
		return "look there for a link to the feed, and give its address"
	}
	return "check the address"
}

func statusRemedy(e *feedhistory.StatusError) string {
	switch {
	case e.Gone:
		return "the publisher has withdrawn the feed for good"
	case e.Status == http.StatusNotFound:
		return "check the address"
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		return "the server does not let you read it"
	case e.Status == http.StatusTooManyRequests, e.Status >= 500:
		return "try again later"
	}
	return ""
}
