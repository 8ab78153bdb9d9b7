package feedhistory

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory/internal/fetch"
)

// Version is the library's version, which the User-Agent names.
const Version = "0.2.0"

const (
	userAgent = "feedhistory/" + Version + " (+https://github.com/feedhistory/feedhistory)"
	accept    = "application/atom+xml, application/rss+xml, application/feed+json, " +
		"application/xml;q=0.9, text/xml;q=0.9, application/json;q=0.8, */*;q=0.5"
)

// A Client reads feeds over HTTP. Its zero value is ready to use; do not copy or
// change it after its first use. Many goroutines may share one, and should: a
// Client and its Clones are polite to a host together.
type Client struct {
	// HTTP makes the requests; nil means a safe transport of this package. Only
	// its Transport and Timeout are used: redirects follow this package's rules,
	// and there are no cookies. The Transport then decides which addresses it
	// connects to, and through which proxy, so AllowPrivate has no effect. See
	// Dialer.
	HTTP *http.Client

	UserAgent string        // UserAgent is the header's value; "" means feedhistory/VERSION (+URL).
	Budget    Budget        // Budget is what one walk may cost.
	Limits    Limits        // Limits are what one document may cost.
	Policy    Policy        // Policy says which requests are made at all.
	Timeouts  Timeouts      // Timeouts are how long each step of a request may take.
	Retry     Retry         // Retry says when to try again.
	Pace      time.Duration // Pace is the least time between requests to one host; zero means no pause.

	// Logger gets an event for each request and decision; nil means no logging.
	Logger *slog.Logger

	once    sync.Once
	fetcher fetch.Client
	shared  *fetch.Shared // with the clones; nil: none
}

// A Policy says which requests a Client makes. The zero value refuses requests
// that are unsafe if you do not trust the feeds' publishers.
type Policy struct {
	AllowPrivate bool         // AllowPrivate allows loopback, private and special-purpose addresses.
	SameOrigin   bool         // SameOrigin refuses documents of other origins than the first one's.
	PerHost      int          // PerHost is the number of requests to one host at a time; zero means 4.
	Credentials  []Credential // Credentials are each sent to their origin, and nowhere else.
}

// Timeouts bound the steps of a request. A field that is zero or negative means
// its default.
type Timeouts struct {
	Connect time.Duration // Connect is for name lookup and TCP; zero means 5 s.
	TLS     time.Duration // TLS is for the handshake; zero means 10 s.
	Headers time.Duration // Headers is from the start, connecting included, to the end of the headers; zero means 20 s.
	Body    time.Duration // Body is for waiting for the bytes of the body, all reads together; zero means 60 s.
	Idle    time.Duration // Idle is for waiting for the next bytes of the body; zero means 15 s.
}

// Retry says how often, and how soon, a Client repeats a failed request: after a
// network error before the headers, a 5xx but not 501, and a 429 that says when.
type Retry struct {
	Tries int           // Tries is the number of requests in all; zero means 3.
	Base  time.Duration // Base is the first wait, which doubles with each try; zero means 1 s.

	// MaxWait is the longest single wait, even if a host's Retry-After asks for
	// more: then the request fails with a StatusError that has the time. Zero
	// means 30 s; negative means no wait.
	MaxWait time.Duration
}

// A Credential is a secret for one origin. A Client sends it there and nowhere
// else, whatever a redirect or a document asks for.
type Credential struct {
	// Origin is the scheme, host and port, such as "https://example.org:8443";
	// you may leave out the scheme's own port. A credential whose Origin is empty
	// or not a URL is never sent.
	Origin string

	// Authorization is the value of the header of that name, such as "Bearer …".
	Authorization string

	// Header are further fields that servers ask for, such as "X-Api-Key" or
	// "Cookie". Those that a Client sets itself are refused; see Ask.
	Header http.Header
}

// String returns the origin, so that printing a credential gives nothing away.
func (c Credential) String() string { return "credential for " + c.Origin }

// GoString is String.
func (c Credential) GoString() string { return c.String() }

// Fetch returns the whole history of the feed at url: it merges a Walk.
//
// The error is the first document's, or the context's. The history then has a gap,
// and what could be read of that document, or what came before the context ended;
// it is nil if there was nothing. Whatever else is missing is in the History's
// Gaps.
func (c *Client) Fetch(ctx context.Context, url string) (*History, error) {
	return Merge(c.Walk(ctx, url, nil))
}

// Get reads a single document. For a damaged one it returns what it could read,
// together with the error. The error is a *ParseError, a *NotFeedError, which
// wraps one, or the request's: *StatusError, *RefusedError, *LimitError, *TimeoutError, *TruncatedError,
// *EncodingError or *url.Error.
func (c *Client) Get(ctx context.Context, url string) (*Document, error) {
	return c.Poll(ctx, url, Known{})
}

// Poll is Get for a document that you have read before: it makes a conditional
// request, and returns an *Unchanged error if the document has not changed.
func (c *Client) Poll(ctx context.Context, url string, known Known) (*Document, error) {
	l := c.load(ctx, url, known, nil)
	return l.doc, l.err
}

// CloseIdle closes the connections that are kept open for further requests. You
// may go on using the Client.
func (c *Client) CloseIdle() { c.requester().CloseIdle() }

// Clone returns a Client with the settings of c, which you may change before its
// first use: for feeds that need a User-Agent or Credentials of their own. c and
// all its clones share connections and what they know of hosts, so that they are
// polite together: the slowest of their Paces applies, and at each host the
// Policy.PerHost of the Client that made the first request there.
func (c *Client) Clone() *Client {
	return &Client{
		HTTP: c.HTTP, UserAgent: c.UserAgent, Budget: c.Budget, Limits: c.Limits, Policy: c.Policy,
		Timeouts: c.Timeouts, Retry: c.Retry, Pace: c.Pace, Logger: c.Logger, shared: c.requester().Shared,
	}
}

// Dialer returns a dialer that refuses loopback, private and special-purpose
// addresses, as the Client's own transport does. Use it in the Transport of a
// Client.HTTP with a certificate authority or a proxy of its own. A proxy resolves
// names itself, so behind a proxy it is the proxy that must refuse.
func Dialer() *net.Dialer { return &net.Dialer{Control: fetch.Guard()} }

// requester returns the fetcher, which is set up at the first use.
func (c *Client) requester() *fetch.Client {
	c.once.Do(c.setUp)
	return &c.fetcher
}

func (c *Client) setUp() {
	if c.shared == nil {
		c.shared = new(fetch.Shared)
	}
	credentials := make([]fetch.Credential, len(c.Policy.Credentials))
	for i, one := range c.Policy.Credentials {
		credentials[i] = fetch.Credential(one)
	}
	c.fetcher = fetch.Client{
		HTTP: c.HTTP, UserAgent: c.UserAgent, Pace: c.Pace, PerHost: c.Policy.PerHost,
		AllowPrivate: c.Policy.AllowPrivate, Credentials: credentials, Shared: c.shared,
		Limits:   fetch.Limits{Bytes: c.Limits.Bytes, Ratio: c.Limits.Ratio, URL: c.Limits.URL},
		Timeouts: fetch.Timeouts(c.Timeouts), Retry: fetch.Retry(c.Retry), Logger: c.Logger,
	}
	if c.UserAgent == "" {
		c.fetcher.UserAgent = userAgent
	}
}

// A loaded document is the outcome of a request.
type loaded struct {
	url  string    // that was requested
	from string    // the document that linked to it
	doc  *Document // nil if nothing could be read; with an error, what could be
	err  error
	text string // the document's bytes
}

// unchanged returns the news that the document is what it was, if that is so.
func (l *loaded) unchanged() *Unchanged {
	u, _ := errors.AsType[*Unchanged](l.err)
	return u
}

// older returns where the next document back in time may be, of a feed of the
// given kind, in the order in which to try, and whether there is a link to it that
// cannot be used.
func (l *loaded) older(feed Kind) (urls []string, lost bool) {
	rel := feed.older()
	if u := l.unchanged(); u != nil && rel != "" {
		if u.Known.Older != "" {
			urls = []string{withoutFragment(u.Known.Older)}
		}
		return urls, u.Known.Lost
	}
	if l.doc == nil {
		return nil, false
	}
	return l.doc.Links.targets(rel), l.doc.loses(rel)
}

// kind is what the document says of its feed.
func (l *loaded) kind() Kind {
	if u := l.unchanged(); u != nil {
		return u.Known.Kind
	}
	return l.doc.Kind()
}

// finalURL is where the document was found, after redirects.
func (l *loaded) finalURL() string {
	if u := l.unchanged(); u != nil && u.Known.URL != "" {
		return u.Known.URL
	}
	if l.doc == nil {
		return l.url
	}
	return l.doc.URL
}

// load requests and reads a document. When its head section is there, before
// the rest is, head is called with it, unless it is nil.
func (c *Client) load(ctx context.Context, url string, known Known, head func(*Document)) *loaded {
	resp, err := c.do(ctx, fetch.Request{
		URL: requestURL(url), Accept: accept,
		ETag: known.ETag, LastModified: known.LastModified, Validated: known.URL,
	})
	if err != nil {
		return &loaded{url: url, err: err}
	}
	defer resp.Body.Close()
	return c.read(resp, url, known, head)
}

// read reads the document that url was requested for.
func (c *Client) read(resp *fetch.Response, url string, known Known, head func(*Document)) *loaded {
	l := &loaded{url: url}
	response := newResponse(resp)
	response.Requested = url
	if resp.Status == http.StatusNotModified {
		l.err = &Unchanged{known, response}
		return l
	}
	base := resp.URL
	if base == requestURL(url) {
		base = withoutFragment(url) // as it was written
	}
	p := Parser{Limits: c.Limits, Header: resp.Header}
	peek := func(prefix string) bool {
		d, whole := p.peek(prefix, base)
		if whole {
			head(d)
		}
		return !whole
	}
	if head == nil || known.Digest != "" {
		peek = nil
	}
	digest := newBodyDigest()
	var cut error
	l.text, cut = receive(io.TeeReader(resp.Body, digest), resp.Header.Get("Content-Length"), peek)
	if response.Digest = digest.String(); cut == nil && response.Digest == known.Digest {
		l.err = &Unchanged{known, response}
		return l
	}
	if l.doc, l.err = p.parse(l.text, base); l.doc != nil {
		l.doc.Response = response
	} else {
		l.err = c.notFeed(l.err, l.text, base, resp.Header)
	}
	if cut != nil {
		l.err = cut // says more than that the document is truncated
	}
	return l
}

// peekMost is how much of a document may come before its entries for its
// links to be acted upon early.
const peekMost = 1 << 20

// receive reads a body to its end. While it comes, peek is shown what is there
// already, until it wants no more; nil wants nothing.
func receive(body io.Reader, length string, peek func(prefix string) bool) (string, error) {
	var text strings.Builder
	if n, err := strconv.Atoi(length); err == nil && n > 0 {
		text.Grow(min(n, peekMost))
	}
	buf := make([]byte, 32<<10)
	for next := 1; ; {
		n, err := body.Read(buf)
		text.Write(buf[:n])
		switch {
		case errors.Is(err, io.EOF):
			return text.String(), nil
		case err != nil:
			return text.String(), err
		}
		if n := text.Len(); peek != nil && n >= next {
			if next = n + n/4; n > peekMost || !peek(text.String()) {
				peek = nil
			}
		}
	}
}

// A Budget bounds what one walk may cost (5005#28).
type Budget struct {
	Documents int   // Documents is the maximum number of documents to request; zero means 10,000.
	Bytes     int64 // Bytes is the maximum size of all documents together, decompressed; zero means 1 GiB.
	Barren    int   // Barren is the maximum number of documents in a row that bring nothing new; zero means 20.
	Empty     int   // Empty is the maximum number of archive documents in a row without any entry, which Barren does not count; zero means 1,000.

	// More, if not nil, is called when one of these is spent, with what the walk
	// has used so far. It may return a larger budget; otherwise the chain ends in
	// a gap.
	More func(used Budget) Budget
}

func (b Budget) withDefaults() Budget {
	if b.Documents == 0 {
		b.Documents = 10_000
	}
	if b.Bytes == 0 {
		b.Bytes = 1 << 30
	}
	if b.Barren == 0 {
		b.Barren = 20
	}
	if b.Empty == 0 {
		b.Empty = 1000
	}
	return b
}

// affordable reports whether the budget allows for one more document.
func (w *walk) affordable() bool {
	if w.spent(0) && w.budget.More != nil {
		more := w.budget.More
		w.budget = more(w.used).withDefaults()
		w.budget.More = more
	}
	return !w.spent(0)
}

// spent reports whether the budget is, once the given number of documents more
// will have been read.
func (w *walk) spent(documents int) bool {
	return w.used.Documents+documents >= w.budget.Documents || w.used.Bytes >= w.budget.Bytes || w.barren()
}

// barren reports whether too many documents in a row have brought nothing new.
func (w *walk) barren() bool {
	return w.used.Barren >= w.budget.Barren || w.used.Empty >= w.budget.Empty
}

// count counts a document that is part of the walk. An archive without any entry
// may be that of a day on which nothing happened; one whose entries are all known
// is what a server sends that does not see what it is asked for.
func (w *walk) count(l *loaded, fresh bool) {
	switch {
	case fresh:
		w.used.Barren, w.used.Empty = 0, 0
	case w.kind == Archived && l.err == nil && len(l.doc.Entries)+len(l.doc.Deleted) == 0:
		w.used.Empty++
	default:
		w.used.Barren++
	}
}
