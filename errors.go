package feedhistory

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// A FetchError reports a request that failed, or was not made.
//
// [errors.Is] finds what callers ask for: &FetchError{Status: 403} for an answer with this
// status, [fs.ErrNotExist] for a 404 or 410, [os.ErrDeadlineExceeded] for a timeout,
// [context.Canceled], [ErrPrivateAddress] and [ErrUserinfo]. [errors.As] finds an
// *[http.MaxBytesError] for a document with more than MaxBytes.
type FetchError struct {
	URL string // the URL of the answer, or of the request, without userinfo

	// Reason is ReasonNetwork without an answer, or without one in time; ReasonStatus for an
	// answer other than a success; ReasonRefused for a request a rule of safety forbids, so
	// that it was not made, and ReasonLoop for redirects in a circle, or too many;
	// ReasonLimit for an answer larger than allowed, ReasonTruncated for a body cut off
	// before its end, and ReasonMalformed for one whose Content-Encoding cannot be decoded.
	Reason Reason

	Status  int       // the status of the answer, such as 404, or of the redirect refused; 0 if there was none
	RetryAt time.Time // when the host may be asked again (Retry-After, at most a day); zero if it does not say

	// Gone means the document has been withdrawn for good: the answer was a 410, and all
	// redirects before it were permanent.
	Gone bool

	Err error // in detail; nil for an answer with a Status
}

// ErrPrivateAddress is found in the FetchError of a refused address: a loopback, private or
// special-purpose one. See Client.AllowPrivate.
var ErrPrivateAddress = errors.New("a loopback, private or special-purpose address")

// ErrUserinfo is found in the FetchError of a URL with a user or password in it. Use a
// [Credential] instead.
var ErrUserinfo = errors.New("a user or password in the URL")

// Error names the URL, without any secret in it, and the failure.
func (e *FetchError) Error() string {
	s := e.detail()
	switch {
	case e.Reason == ReasonStatus:
		s = "status " + s
	case is[timeout](e.Err):
		s = "timeout: " + s
	case e.Reason == ReasonNetwork && e.Err != nil:
		s = e.Err.Error() // with the addresses
	case e.Reason == ReasonRefused || e.Reason == ReasonLoop:
		s = "refused: " + s
		if e.Err != nil && errors.Is(e, ErrPrivateAddress) {
			s = "refused: " + e.Err.Error()
		}
	}
	if e.URL == "" {
		return s
	}
	return fmt.Sprintf("fetch %q: %s", iri.Shown(e.URL), s)
}

// detail leaves out which address was refused: either the URL has it, or only the resolver
// should know.
func (e *FetchError) detail() string {
	switch {
	case e.Reason == ReasonStatus:
		s := strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status)))
		if !e.RetryAt.IsZero() {
			s += "; the host asks to be left alone until " + e.RetryAt.UTC().Format(time.RFC3339)
		}
		if e.Err != nil {
			s += fmt.Sprintf(" (%v)", e.Err)
		}
		return s
	case e.Err == nil:
		return e.Reason.word()
	case errors.Is(e.Err, ErrPrivateAddress):
		return ErrPrivateAddress.Error()
	case e.Reason == ReasonNetwork && !is[timeout](e.Err):
		if proxy, ok := e.Err.(*proxyError); ok {
			return proxy.detail()
		}
		return describeOther(e.Err)
	}
	if most, ok := errors.AsType[*http.MaxBytesError](e.Err); ok {
		return tooLarge(most.Limit).Error()
	}
	return e.Err.Error()
}

// Is reports whether target is fs.ErrNotExist, and the document does not exist, or target
// is a FetchError with the same Status and nothing else.
func (e *FetchError) Is(target error) bool {
	if status, ok := target.(*FetchError); ok {
		return e.Status != 0 && *status == FetchError{Status: e.Status}
	}
	return target == fs.ErrNotExist && e.Reason == ReasonStatus && (e.Status == http.StatusNotFound || e.Status == http.StatusGone)
}

// Unwrap returns Err.
func (e *FetchError) Unwrap() error { return e.Err }

// NewFetchError returns the error a Client returns for a response that is no success, with
// its Retry-After, for programs that make their own requests. For nil, its Status is zero.
func NewFetchError(resp *http.Response) *FetchError {
	e := &FetchError{Reason: ReasonStatus}
	if resp == nil {
		return e
	}
	if e.Status = resp.StatusCode; resp.Request != nil && resp.Request.URL != nil {
		e.URL = resp.Request.URL.Redacted()
	}
	now := time.Now()
	if wait, ok := fetch.RetryAfter(resp.Header, now); ok {
		e.RetryAt = now.Add(wait)
	}
	return e
}

// isStatus reports whether err is a FetchError with one of the statuses.
func isStatus(err error, statuses ...int) bool {
	e, ok := errors.AsType[*FetchError](err)
	return ok && e.Reason == ReasonStatus && slices.Contains(statuses, e.Status)
}

// errOrigin is in the FetchError of a document of another origin, with Client.OneOrigin.
var errOrigin = errors.New("its origin is not the feed's")

// errRemembered is in the FetchError for a request that was not made, because the host had
// asked for a longer wait than Client.MaxWait.
var errRemembered = errors.New("from an earlier answer")

// refusals are the rules in words.
var refusals = map[string]error{
	fetch.RuleURL:       errors.New("not an absolute URL with a host"),
	fetch.RuleLength:    errors.New("the URL is too long"),
	fetch.RuleScheme:    errors.New("unsupported scheme"),
	fetch.RuleUserinfo:  ErrUserinfo,
	fetch.RuleMethod:    errors.New("unsupported method"),
	fetch.RuleHeader:    errors.New("invalid header field"),
	fetch.RuleDowngrade: errors.New("it redirects from https to http"),
	fetch.RuleLocation:  errors.New("it redirects without saying where to"),
	fetch.RuleLoop:      errors.New("it redirects in a circle"),
	fetch.RuleRedirects: errors.New("it redirects too often"),
	fetch.RuleAddress:   ErrPrivateAddress,
}

// excesses say in words which limit is exceeded.
var excesses = map[string]string{
	"ratio":   "it decompresses to more than %d times its size",
	"headers": "the headers have more than %d bytes",
	"wire":    "more than %d bytes before decompression",
	"window":  "its compression needs a window of more than %d bytes",
}

// A timeout is the step of a request that took longer than allowed.
type timeout string

func (t timeout) Error() string { return string(t) }

func (t timeout) Unwrap() error { return os.ErrDeadlineExceeded }

// A tooLarge is the number of bytes a document may have.
type tooLarge int64

func (max tooLarge) Error() string { return fmt.Sprintf("more than %d bytes", int64(max)) }

func (max tooLarge) Unwrap() error { return &http.MaxBytesError{Limit: int64(max)} }

// A proxyError is the failure of a proxy.
type proxyError struct {
	host string
	err  error
}

func (e *proxyError) Error() string { return fmt.Sprintf("the proxy %s: %v", e.host, e.err) }

func (e *proxyError) detail() string { return "the proxy " + e.host + ": " + describeOther(e.err) }

func (e *proxyError) Unwrap() error { return e.err }

// Proxy returns the proxy's host: programs may tell its faults by this method.
func (e *proxyError) Proxy() string { return e.host }

// public returns the error of this package for a request that has failed.
func public(f *fetch.Failure) *FetchError {
	e := &FetchError{URL: f.URL, Reason: ReasonNetwork, Status: f.Status, RetryAt: f.At, Gone: f.Gone, Err: f.Err}
	switch f.Kind {
	case fetch.Refused:
		e.Reason = ReasonRefused
		if f.Name == fetch.RuleLoop || f.Name == fetch.RuleRedirects {
			e.Reason = ReasonLoop
		}
		if e.Err = refusals[f.Name]; f.Err != nil {
			e.Err = fmt.Errorf("%w: %w", e.Err, f.Err)
		}
	case fetch.Status:
		if e.Reason = ReasonStatus; f.Remembered {
			e.Err = errRemembered
		}
	case fetch.Limit:
		e.Reason, e.Err = ReasonLimit, tooLarge(f.Max)
		if text, ok := excesses[f.Name]; ok {
			e.Err = fmt.Errorf(text, f.Max)
		}
	case fetch.Proxy:
		cause := f.Err
		if inner, ok := errors.AsType[*fetch.Failure](f.Err); ok { // a timeout
			cause = public(inner).Err
		}
		if f.Err == nil {
			cause = fmt.Errorf("it answers %d %s", f.Status, http.StatusText(f.Status))
		}
		e.Status, e.Err = 0, &proxyError{f.Name, cause}
	case fetch.Timeout:
		e.Err = timeout(fmt.Sprintf("%s took longer than %v", f.Name, time.Duration(f.Max)))
	case fetch.Truncated:
		e.Reason, e.Err = ReasonTruncated, fmt.Errorf("the body was cut short: %w", f.Err)
	case fetch.Encoding:
		e.Reason = ReasonMalformed
		if e.Err = fmt.Errorf("unsupported content encoding %q", f.Name); f.Err != nil {
			e.Err = fmt.Errorf("corrupt %s: %w", f.Name, f.Err)
		}
	}
	return e
}

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

// describeOther replaces the texts of Go's packages for networks, which are for programmers
// and name addresses of this machine.
func describeOther(err error) string {
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		why := e.Err
		if e.IsTimeout || strings.Contains(why, ":") { // it names the name server
			why = "the name server does not answer"
		}
		return "the host " + e.Name + " cannot be looked up: " + why
	}
	if text := describeTLS(err); text != "" {
		return text
	}
	var timeout interface{ Timeout() bool }
	errno, isErrno := errors.AsType[syscall.Errno](err)
	op, isOp := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, context.Canceled):
		return "cancelled before it was read"
	case isErrno && isOp:
		return errno.Error()
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "there was no answer in time"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection before the end of its answer"
	case errors.Is(err, io.EOF):
		return "the server closed the connection without an answer"
	case isOp:
		return op.Err.Error()
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// describeTLS describes the fault of a server's TLS; "" for other errors.
func describeTLS(err error) string {
	if e, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		what := "its certificate comes from an authority that this computer does not know"
		if e.Cert != nil && e.Cert.Issuer.CommonName != "" {
			what += ": " + strings.Join(strings.Fields(e.Cert.Issuer.CommonName), " ")
		}
		return what
	}
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		what := "its certificate is for another host"
		if names := e.Certificate.DNSNames; len(names) > 0 {
			what += ": " + strings.Join(names[:min(len(names), 3)], ", ")
		}
		return what
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired {
		if e.Cert != nil && time.Now().Before(e.Cert.NotBefore) {
			return "its certificate is not valid yet"
		}
		return "its certificate has expired"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return "the server does not speak TLS there"
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its certificate cannot be verified: " + e.Err.Error()
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "remote error" { // an alert, whose type crypto/tls does not export
		return "the server refuses the TLS connection: " + e.Err.Error()
	}
	return ""
}

// A ParseError says why, and where, a document could not be read. A web page, or another
// document that is no feed, has ReasonNotFeed; text without any markup is a damaged document
// instead, with ReasonMalformed.
type ParseError struct {
	URL    string // the URL of the document; "" if unknown
	Reason Reason // ReasonMalformed, ReasonTruncated, ReasonLimit or ReasonNotFeed
	Clause string // the clause of the specification violated by the document, or calling for the limit
	Offset int    // in the document as decoded to UTF-8, in bytes
	Line   int    // counted from 1; 0 if there is no place
	Column int    // counted from 1, in characters
	Err    error  // in detail; in particular ErrWebPage, or an *http.MaxBytesError for more than MaxBytes

	// Feeds are the feeds a Client has found instead of one, with ReasonNotFeed: the links
	// of a web page with rel="alternate" and the media type of a feed, resolved. Their Rel
	// is "alternate", or "replies" if title and address suggest a feed of comments. The best
	// comes first: a feed in several formats counts once, in Atom if possible, and feeds of
	// comments come last. Only the first 1 MiB of the page and 64 links count, and only links
	// no longer than 8 KiB. They have not been requested. See [Client.Discover].
	Feeds Links

	// Formats are the same feeds in their other formats, by the Href in Feeds, the preferred
	// format first: a page may name a document gone since.
	Formats map[string]Links
}

// Error returns the place, the reason and the details.
func (e *ParseError) Error() string {
	place := iri.Shown(e.URL)
	if e.Line > 0 {
		place = strings.TrimPrefix(fmt.Sprintf("%s:%d:%d", place, e.Line, e.Column), ":")
	}
	text := fmt.Sprintf("%s: %s: %v (%s)", place, e.Reason.word(), cmp.Or(e.Err, errUnrecorded), e.Clause)
	return strings.TrimPrefix(strings.TrimSuffix(text, " ()"), ": ")
}

func (e *ParseError) detail() string {
	if e.Line > 0 {
		return fmt.Sprintf("line %d, column %d: %v", e.Line, e.Column, cmp.Or(e.Err, errUnrecorded))
	}
	return cmp.Or(e.Err, errUnrecorded).Error()
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

// ErrTooManyEntries is in the error of a document with more entries than MaxEntries.
var ErrTooManyEntries = errors.New("too many entries")

// tooManyEntries is the limit exceeded by a document.
type tooManyEntries int

func (most tooManyEntries) Error() string   { return fmt.Sprintf("more than %d entries", int(most)) }
func (tooManyEntries) Is(target error) bool { return target == ErrTooManyEntries }

// A Reason says why a document could not be retrieved or read; "" means the same as
// ReasonUnknown.
type Reason string

// The reasons of a Gap or a ParseError.
const (
	ReasonUnknown       Reason = unknown         // the reason was not recorded
	ReasonNetwork       Reason = "network"       // there was no answer: the connection failed, or timed out
	ReasonStatus        Reason = "status"        // the server answered with an error: 404, 403, 500 …
	ReasonRefused       Reason = "refused"       // a rule of safety forbids the request
	ReasonLimit         Reason = "limit"         // the document exceeds a limit, see Parser
	ReasonTruncated     Reason = "truncated"     // the document breaks off before its end
	ReasonMalformed     Reason = "malformed"     // the document is not well-formed
	ReasonNotFeed       Reason = "not-feed"      // the document is not a feed
	ReasonBudget        Reason = "budget"        // the Budget was spent before the document
	ReasonLoop          Reason = "loop"          // the link leads back to a document read before
	ReasonBarren        Reason = "barren"        // too many documents in a row brought nothing new
	ReasonDetached      Reason = "detached"      // the feed does not begin at the given document, which does not say where it does
	ReasonInterrupted   Reason = "interrupted"   // the context ended, or the reader left the walk, first
	ReasonMissedWindow  Reason = "missed-window" // between two polls, entries may have come and gone
	ReasonDeclared      Reason = "declared"      // the feed itself declares something missing, for a reason this package does not define
	ReasonContradiction Reason = "contradiction" // the marks of a document contradict each other, so its chain may lack something
	ReasonForeign       Reason = "foreign"       // the link leads to a document of another feed
)

func (r Reason) word() string { return string(cmp.Or(r, ReasonUnknown)) }

// Advice is the advice for a gap with this reason.
func (r Reason) Advice() string { return cmp.Or(advice[r], advice[ReasonUnknown]) }

var advice = map[Reason]string{
	ReasonUnknown:       "try again; the reason is unknown",
	ReasonNetwork:       "try again later",
	ReasonStatus:        "try again later; if the error persists, ask the publisher for the document",
	ReasonRefused:       "tell the publisher; if it is a private address that you trust, allow private addresses",
	ReasonLimit:         "raise the limit, if it can be set and you trust the publisher",
	ReasonTruncated:     "try again; if the error persists, tell the publisher that the document breaks off",
	ReasonMalformed:     "tell the publisher that the document is broken",
	ReasonNotFeed:       "tell the publisher that the link does not lead to a feed",
	ReasonBudget:        "raise the budget to read on",
	ReasonLoop:          "tell the publisher that the chain of documents loops; older entries cannot be reached",
	ReasonBarren:        "tell the publisher that the server repeats itself",
	ReasonDetached:      "give the address of the feed itself rather than of an archive or a later page",
	ReasonInterrupted:   "try again, with more time",
	ReasonMissedWindow:  "poll more often, before the feed drops its older entries",
	ReasonDeclared:      "ask the publisher, whose own document says so; the original feed may still have it",
	ReasonContradiction: "tell the publisher; all that the document's links lead to has been read, but there may be more",
	ReasonForeign:       "tell the publisher that the link leads to another feed",
}

// A Gap is a missing part of the history, with the reason. Walk yields it in a Reading;
// Merge collects it.
type Gap struct {
	URL    string // the document not retrieved, or not completely read
	From   string // the document linking to it; "" if none does; the same as URL if something within the document is missing
	Reason Reason
	Err    error     // the error in detail; never nil
	Found  time.Time // when the gap was found

	// Document is the readable part of a damaged document; nil if there is none. Its
	// entries belong to the history.
	Document *Document
}

// Error returns the reason, the URL without secrets, the document linking to it, if that is
// another one, and the details. An error of this URL is described without repeating it; see
// Describe.
func (g *Gap) Error() string {
	s := strings.TrimSuffix(g.Reason.word()+": "+iri.Shown(g.URL), ": ")
	if g.From != "" && g.From != g.URL {
		s += " (linked from " + iri.Shown(g.From) + ")"
	}
	if detail := g.detail(); detail != "" {
		s += ": " + detail
	}
	return s
}

// detail returns the text of Err without the gap's URL. It keeps any other URL, such as
// the target of a redirect.
func (g *Gap) detail() string {
	if g.Err == nil {
		return ""
	}
	if e, ok := g.Err.(*ParseError); ok && e.URL == g.URL {
		return strings.TrimSuffix(e.detail()+" ("+e.Clause+")", " ()")
	}
	s := g.Err.Error()
	for _, url := range []string{g.URL, iri.Shown(g.URL)} {
		if rest, ok := strings.CutPrefix(s, url+": "); ok && url != "" {
			return rest
		} else if url != "" && strings.Contains(s, strconv.Quote(url)) {
			return Describe(g.Err)
		}
	}
	return s
}

// Unwrap returns the error in detail, such as a *FetchError.
func (g *Gap) Unwrap() error { return g.Err }

// NewGap returns the gap for an error, with the reason Walk would give it:
// ReasonUnknown if err is nil.
func NewGap(url string, err error) *Gap {
	if err == nil {
		return &Gap{URL: url, Reason: ReasonUnknown, Err: errUnrecorded, Found: time.Now()}
	}
	return &Gap{URL: url, Reason: reasonOf(err), Err: err, Found: time.Now()}
}

var errUnrecorded = errors.New("the reason was not recorded")

// reasonOf classifies an error of reading a document.
func reasonOf(err error) Reason {
	if gap, ok := errors.AsType[*Gap](err); ok {
		return gap.Reason
	}
	if parse, ok := errors.AsType[*ParseError](err); ok {
		return parse.Reason
	}
	if e, ok := errors.AsType[*FetchError](err); ok {
		return e.Reason
	}
	return ReasonNetwork
}

// is reports whether an error of type E is in err's chain.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// A feed republishing another one declares in an element of its head section how much
// of the original it has:
//
//	<m:mirror xmlns:m="https://github.com/feedhistory/feedhistory/ns/mirror/1.0"
//	    of="https://example.org/feed.atom" kind="archived" verdict="partial">
//	  <m:gap reason="status" href="https://example.org/2003.atom"/>
//	</m:mirror>

// A Coverage is a republishing document's statement of how much of the feed it has,
// together with the documents it links to.
type Coverage struct {
	Of      string  // the republished feed's URL; "" if the document does not say
	Kind    Kind    // the republished feed's kind
	Verdict Verdict // how much of it there is; the verdict on a History beginning with this document is no better
	Gaps    []*Gap  // the first hundred gaps declared by the document

	// AsOf is when the Verdict was proved, for a feed whose documents cannot prove it
	// at each poll; zero for any other.
	AsOf time.Time
}

// A declaredGap is a publisher's own word for the reason of a gap.
type declaredGap string

func (e declaredGap) Error() string {
	if e == "" {
		return "the feed itself says that this is missing"
	}
	return "the feed itself says that this is missing: " + string(e)
}

// Word returns the reason as a Coverage has it: the publisher's own word, if there
// is one.
func (g *Gap) Word() string {
	if word, ok := errors.AsType[declaredGap](g.Err); ok && word != "" {
		return string(word)
	}
	return g.Reason.word()
}

// isSame reports whether two gaps are of the same document, for the same reason.
func (g *Gap) isSame(other *Gap) bool { return g.URL == other.URL && g.Word() == other.Word() }

// Declared returns the gaps declared by the document itself: those of its Coverage, and
// at least one if that is partial or unknown. Walk requests none of these documents.
func (d *Document) Declared() (gaps []*Gap) {
	if d.Coverage == nil {
		return nil
	}
	for _, g := range d.Coverage.Gaps {
		gap := *g
		gap.URL, gap.From = cmp.Or(gap.URL, d.URL), d.URL
		gaps = append(gaps, &gap)
	}
	if v := d.Coverage.Verdict; len(gaps) == 0 && (v == VerdictPartial || v == VerdictUnknown) {
		gaps = append(gaps, &Gap{URL: d.URL, From: d.URL, Reason: ReasonDeclared, Err: declaredGap("")})
	}
	for _, gap := range gaps {
		if gap.Found = d.documentTime(); gap.Found.IsZero() {
			gap.Found = d.Response.Received
		}
	}
	return gaps
}

// join returns the worse of two verdicts, with the gaps of both, each once.
func (c *Coverage) join(other *Coverage) *Coverage {
	if c == nil || other == nil {
		return cmp.Or(c, other)
	}
	joined := *c
	joined.Verdict, joined.Gaps = min(c.Verdict, other.Verdict), slices.Clone(c.Gaps)
	if joined.AsOf = c.AsOf; c.AsOf.IsZero() || !other.AsOf.IsZero() && other.AsOf.Before(c.AsOf) {
		joined.AsOf = other.AsOf
	}
	for _, g := range other.Gaps {
		if len(joined.Gaps) < feedxml.MaxDeclared && !slices.ContainsFunc(joined.Gaps, g.isSame) {
			joined.Gaps = append(joined.Gaps, g)
		}
	}
	return &joined
}

// A damage is a possible loss in a document read to its end.
type damage struct {
	err      *ParseError
	entries  bool // entries may be missing, not only a link
	from, to int  // the part of the text where they may have been; to its end, if nothing else is known
}

// around returns the IDs of the entries above the damaged part of a document, and of those below it,
// in its order.
func (d *Document) around() (above, below []string) {
	if d.damage == nil {
		return nil, nil
	}
	at := 0
	for _, e := range d.Entries {
		i := strings.Index(d.text[at:], e.raw)
		if i < 0 || e.raw == "" {
			return nil, nil // its fields were set, say
		}
		begin := at + i
		switch at = begin + len(e.raw); {
		case at <= d.damage.from:
			above = append(above, e.ID)
		case begin >= d.damage.to:
			below = append(below, e.ID)
		}
	}
	return above, below
}

// mendedDamage returns the possible losses despite mending; nil if nothing is missing.
func (d *Document) mendedDamage(feed Kind) *ParseError {
	if d.damage == nil {
		return nil
	}
	_, onward := d.Links.Rel(feed.Older())
	onward = onward || d.loses(feed.Older()) // which is another gap
	if !d.damage.entries && (onward || feed == KindComplete) {
		return nil
	}
	return d.damage.err
}

// Missing returns the gaps within a document read to its end, as part of a feed of the
// given kind: the entries left out because they exceed a limit of [Parser], and possible
// losses because it is not well-formed. Walk yields them after the document. These may be
// lost:
//
//   - entries, if there are some after the end of the root element;
//   - the link to an older document, if there is none, and something outside the
//     entries had to be mended: an element without an end tag, an end tag without an
//     element, a tag or value without an end, or one with something foreign in it. A
//     complete feed needs no such link. Attributes merely without quotes or a value,
//     end tags in another case, and a "<" without markup lose nothing.
func (d *Document) Missing(feed Kind) []*Gap {
	gaps := slices.Clip(d.gaps)
	if err := d.mendedDamage(feed); err != nil {
		gaps = append(gaps, &Gap{URL: d.URL, From: d.URL, Reason: ReasonMalformed, Err: err, Found: time.Now()})
	}
	return gaps
}
