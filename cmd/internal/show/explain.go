package show

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// Detail describes an error without the URL, which the message names elsewhere.
func Detail(err error) string {
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return "the document is larger than " + terminal.SizeText(e.Limit)
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return feedhistory.Describe(InWords(err))
}

// Advice is the advice for a gap, with the flag to use.
func Advice(g *feedhistory.Gap) string {
	s := g.Reason.Advice()
	failed, ok := errors.AsType[*feedhistory.FetchError](g.Err)
	switch {
	case ok && (failed.Reason == feedhistory.ReasonRefused && !IsPrivate(failed) || failed.Reason == feedhistory.ReasonLoop):
		return "tell the publisher"
	case ok && failed.Status == http.StatusUnauthorized:
		return statusRemedy(failed)
	case errors.Is(g.Err, mirror.ErrQuota):
		s += " (--quota, --quota-entries)"
	case g.Reason == feedhistory.ReasonInterrupted && strings.HasPrefix(g.From, "source:"):
		return "run the same command again: it continues there"
	case g.Reason == feedhistory.ReasonBudget:
		s += " (--max-documents, --max-bytes, --max-time)"
	case isTooLarge(g.Err):
		s += " (--max-document-bytes)"
	case errors.Is(g.Err, feedhistory.ErrTooManyEntries):
		s += " (--max-entries)"
	case IsPrivate(g.Err):
		s += " (--allow-private)"
	}
	return s
}

// IsPrivate reports whether an error is the refusal of a private address.
func IsPrivate(err error) bool { return errors.Is(err, feedhistory.ErrPrivateAddress) }

// DocumentName names a document given by an argument for people.
func DocumentName(arg string) string {
	switch {
	case arg == "-":
		return "standard input"
	case terminal.IsURL(arg):
		return Address(arg)
	}
	return terminal.WithoutUser(arg)
}

// Failure explains in one line why the document named by an argument cannot be read,
// with advice.
func Failure(arg string, err error) error {
	if wrong, ok := errors.AsType[terminal.UsageError](err); ok { // it names its flag
		return wrong
	}
	name := DocumentName(arg)
	if to := target(arg, err); to != "" {
		name += ": it leads to " + Address(to)
	}
	what, todo := strings.TrimPrefix(Detail(err), arg+": "), Remedy(err)
	parse, ok := errors.AsType[*feedhistory.ParseError](err)
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w before it was read", name, terminal.ErrInterrupted)
	case ok && parse.Reason == feedhistory.ReasonNotFeed:
		what = "not a feed: " + parse.Err.Error()
	case ok && parse.Line > 0:
		name, what = fmt.Sprintf("%s:%d:%d", name, parse.Line, parse.Column),
			string(parse.Reason)+": "+parse.Err.Error()
	case ok:
		what = string(parse.Reason) + ": " + what
	}
	if isFile := ok && !terminal.IsURL(terminal.WebAddress(arg)); isFile && parse.Reason == feedhistory.ReasonNotFeed {
		todo = "" // it has no address, and nobody has looked for feeds that a page names
		if errors.Is(err, feedhistory.ErrWebPage) {
			todo = "give the feed's own file or address"
		}
	}
	if todo != "" {
		what += "; " + todo
	}
	return errors.New(name + ": " + what)
}

// target is the address of the document that an error is about, if a redirect or a page has
// led from the argument to another one; otherwise "".
func target(arg string, err error) string {
	var to string
	if e, ok := errors.AsType[*feedhistory.FetchError](err); ok {
		to = e.URL
	} else if e, ok := errors.AsType[*feedhistory.ParseError](err); ok {
		to = e.URL
	}
	from, wrong := feedhistory.ParseURL(terminal.WebAddress(arg))
	u, bad := feedhistory.ParseURL(to)
	if wrong != nil || bad != nil || from.Host == "" || u.Host == "" {
		return "" // a file, or no document
	}
	if feedhistory.SameOrigin(from.String(), u.String()) && cmp.Or(from.EscapedPath(), "/") == cmp.Or(u.EscapedPath(), "/") &&
		(from.RawQuery == u.RawQuery || Address(to) == arg) { // which may lack its secret
		return ""
	}
	return to
}

// Remedy is the advice if the first document cannot be read; "" if there is nothing to
// add to the error.
func Remedy(err error) string {
	if IsPrivate(err) {
		return "use --allow-private if you mean it"
	}
	if e, ok := errors.AsType[*feedhistory.ParseError](err); ok {
		return parseRemedy(e)
	}
	e, ok := errors.AsType[*feedhistory.FetchError](err)
	switch {
	case errors.Is(err, feedhistory.ErrUserinfo):
		return "take it out of the URL, and log in with --user"
	case ok && e.Reason == feedhistory.ReasonStatus:
		return statusRemedy(e)
	case ok && e.Status != 0:
		return "tell the publisher, or give the address where the feed is now"
	case ok && e.Reason == feedhistory.ReasonRefused:
		return ""
	case ok && e.Reason == feedhistory.ReasonTruncated:
		return "try again later"
	}
	return networkRemedy(err)
}

// A proxyError is the error of the library if the fault is a proxy's.
type proxyError interface {
	error
	Proxy() (host string)
}

func networkRemedy(err error) string {
	if _, ok := errors.AsType[proxyError](err); ok {
		return "check its address and login in --proxy http://USER:PASSWORD@HOST:PORT, or in HTTPS_PROXY and HTTP_PROXY, or try again later"
	}
	if isTooLarge(err) {
		return TooLargeRemedy
	}
	if todo := tlsRemedy(err); todo != "" {
		return todo
	}
	var timeout interface{ Timeout() bool }
	switch dns, ok := errors.AsType[*net.DNSError](err); {
	case ok && dns.IsNotFound:
		return "check the address"
	case ok, errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "try again later"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "check the address, or try again later"
	}
	return ""
}

func parseRemedy(e *feedhistory.ParseError) string {
	switch {
	case len(e.Feeds) > 0:
		if address := Address(e.Feeds[0].Href); address != e.Feeds[0].Href {
			return "its feed is " + address + ": give that address, which the page has whole"
		}
		return "its feed is " + e.Feeds[0].Href + ": give that address"
	case isTooLarge(e):
		return TooLargeRemedy
	case errors.Is(e, feedhistory.ErrTooManyEntries):
		return "raise --max-entries if you trust the publisher"
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
	_, ok := errors.AsType[*http.MaxBytesError](err)
	return ok
}

func statusRemedy(e *feedhistory.FetchError) string {
	switch {
	case e.Gone:
		return "the publisher has withdrawn the feed for good"
	case e.Status == http.StatusNotFound:
		return "check the address"
	case e.Status == http.StatusUnauthorized:
		return "the server requires valid credentials: check --user, --token-env, --header or --netrc"
	case e.Status == http.StatusForbidden:
		return "the server refuses access"
	case e.Status == http.StatusTooManyRequests, e.Status >= 500:
		return "try again later"
	}
	return ""
}

// tlsRemedy is the advice for a fault of a server's TLS; "" for other errors.
func tlsRemedy(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "if you trust the authority, give its certificate with --ca-file"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "check the address"
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired {
		if e.Cert != nil && time.Now().Before(e.Cert.NotBefore) {
			return "check this computer's clock"
		}
		return "tell the publisher, and check this computer's clock"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return "check the port, or try http://"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "tell the publisher"
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "remote error" {
		return "check the address; the server may require another version of TLS than this program supports"
	}
	return ""
}

// This file replaces texts of Go's standard library, which are for programmers.

// InWords returns an error whose text has no words of Go's packages for networks, JSON
// and XML. It wraps err.
func InWords(err error) error {
	text := err.Error()
	var failed, cause error // a request's, and why
	var address string
	if e, ok := errors.AsType[*url.Error](err); ok {
		failed, cause, address = e, e.Err, e.URL
	}
	if e, ok := errors.AsType[*feedhistory.FetchError](err); ok && e.Reason == feedhistory.ReasonNetwork && !errors.Is(err, os.ErrDeadlineExceeded) {
		failed, cause, address = e, e.Err, e.URL
	}
	if cause != nil && !errors.Is(err, context.Canceled) {
		what := Detail(cause)
		if todo := networkRemedy(cause); todo != "" {
			what += "; " + todo
		}
		text = strings.Replace(text, failed.Error(), feedhistory.Redact(address)+": "+what, 1)
	}
	op, isOp := errors.AsType[*net.OpError](err)
	if isOp && failed == nil {
		what := feedhistory.Describe(op)
		if todo := networkRemedy(op); todo != "" {
			what += "; " + todo
		}
		text = strings.Replace(text, op.Error(), what, 1)
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		text = strings.Replace(text, e.Error(), notJSON(e), 1)
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		text = strings.Replace(text, e.Error(), wrongJSON(e), 1)
	}
	if e, ok := errors.AsType[*xml.SyntaxError](err); ok {
		text = strings.Replace(text, e.Error(), notXML(e), 1)
	}
	if text == err.Error() {
		return err
	}
	return &WordedError{text, err}
}

// A WordedError is an error in other words.
type WordedError struct {
	Text string
	Err  error
}

// Error returns the words.
func (e *WordedError) Error() string { return e.Text }

// Unwrap returns the original error.
func (e *WordedError) Unwrap() error { return e.Err }

func notJSON(e *json.SyntaxError) string {
	if strings.HasPrefix(e.Error(), "unexpected end") {
		return "the JSON breaks off"
	}
	return fmt.Sprintf("this is not JSON from column %d on", max(e.Offset, 1))
}

func wrongJSON(e *json.UnmarshalTypeError) string {
	kind, _, _ := strings.Cut(e.Value, " ")
	if article := "aeiou"; strings.ContainsAny(kind[:min(1, len(kind))], article) {
		kind = "an " + kind
	} else {
		kind = "a " + kind
	}
	if e.Field == "" {
		return "it cannot be " + kind
	}
	return fmt.Sprintf("its member %s cannot be %s", strings.TrimPrefix(e.Field, "EntryJSON."), kind) // of a publish.Line
}

func notXML(e *xml.SyntaxError) string {
	if strings.HasPrefix(e.Msg, "unexpected EOF") {
		return fmt.Sprintf("line %d: the document breaks off", e.Line)
	}
	return fmt.Sprintf("line %d: the document is not well-formed XML: %s", e.Line, e.Msg)
}
