package feedhistory

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory/internal/chain"
	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/markup"
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
// Client and its Clones are polite to a host together. The methods of a nil Client return
// an error, or nothing.
//
//	Fetch       a feed's whole history
//	Walk        the same, document by document
//	Get         one document
//	Poll        one document, if it has changed
//	Discover    the feeds of a web page
//	HTTPClient  anything else, by the same rules
//
// # Rules
//
// A Client makes http and https requests only, to public addresses unless AllowPrivate is
// set, and follows at most five redirects, none from https to http. A host gets PerHost
// requests at a time, Pace apart, and none while it asks for patience: Retry-After counts
// for all clones, and a longer one than MaxWait fails. Each request has the User-Agent, and
// the validators of the document's Known if the caller has given that, not those received
// in the same walk; none has a Referer, or a cookie but one a redirect of the same request has
// set, and a Credential goes to its origin only.
type Client struct {
	// Proxy returns the proxy for a request; nil means none, whatever the environment says:
	// set it to [http.ProxyFromEnvironment], or [http.ProxyURL]. A proxy may be at a private
	// address. It resolves names itself: of the addresses behind it, a Client refuses only
	// localhost and those in numbers, and the proxy must refuse the others.
	Proxy func(*http.Request) (*url.URL, error)

	// RootCAs are the certificate authorities to trust; nil means the system's.
	RootCAs *x509.CertPool

	// Transport makes the requests; nil means a safe transport of this package. Of an
	// [*http.Transport], the Client uses a clone refusing private addresses, unless
	// AllowPrivate is set. Any other must refuse them itself, so it is an error without
	// AllowPrivate; to add tracing or a cache, set Wrap instead. With a Transport, Proxy, RootCAs
	// and the timeouts of connecting have no effect, and the limits on headers and decompression
	// only as far as it leaves headers and bodies as received.
	Transport http.RoundTripper

	// Wrap returns a transport around the given one, for metrics, tracing or a cache;
	// nil means none. It is called once, before the first request. The transport it
	// gets refuses unsafe addresses, as long as the result passes requests on to it.
	Wrap func(http.RoundTripper) http.RoundTripper

	// Of the numbers in a Client, zero means the default. A negative number is an error
	// unless its field gives it a meaning.
	UserAgent string // UserAgent is the header's value; "" means feedhistory/VERSION (+URL).
	Budget    Budget // Budget bounds the cost of one walk.
	MaxBytes  int64  // MaxBytes is the maximum size of a document, see [Parser]; zero means 16 MiB.

	MaxEntries int // MaxEntries is the maximum number of entries of a document, see [Parser]; zero means 50,000.

	AllowPrivate bool         // AllowPrivate allows loopback, private and special-purpose addresses, or leaves them to Transport.
	OneOrigin    bool         // OneOrigin refuses documents from other origins than the first document's.
	NoGuess      bool         // NoGuess stops a walk from requesting documents before a link names them; see [Client.Walk].
	Credentials  []Credential // Credentials are the secrets to send, each to its origin only.

	PerHost int           // PerHost is the number of requests to one host at a time; zero means 4.
	Pace    time.Duration // Pace is the minimum time between requests to one host; zero means no pause.

	// Timeout is the time from the start of a request to the end of the headers; zero means
	// 20 s. A quarter of it is for name lookup and TCP, half of it for the TLS handshake,
	// three quarters for the next bytes of a body, and three times as much for a document's
	// whole body.
	Timeout time.Duration

	// Tries is the maximum number of requests for one document: they are repeated after a
	// network error before the headers, a 5xx but not 501, and a 429 with a time; zero means
	// 3. The first wait before another is a second, and each is twice the last.
	Tries int

	// MaxWait is the longest single wait. If a host's Retry-After asks for more, the
	// request fails at once, with a [FetchError] with the time. Zero means 30 s. Negative
	// means no wait: repeated requests follow at once, and any Retry-After fails.
	MaxWait time.Duration

	// Logger gets an event for each request and decision; nil means no logging.
	// docs/OPERATIONS.md lists the events with their keys.
	Logger *slog.Logger

	once    sync.Once
	fetcher fetch.Client
	invalid error         // the fault of the settings
	shared  *fetch.Shared // state shared with its clones; nil if there are none
}

// Fetch returns the whole history of the feed at url: it merges a Walk.
//
// The error is the first document's, or the context's. The history is nil if nothing was
// read before it, as after a 404; otherwise it has the entries read so far, and a gap.
// Anything else missing is in the History's Gaps.
func (c *Client) Fetch(ctx context.Context, url string) (*History, error) {
	return Merge(c.Walk(ctx, url))
}

// Fetch returns the whole history of the feed at url, read by a Client with the
// default settings. See Client.Fetch.
func Fetch(ctx context.Context, url string) (*History, error) {
	c := new(Client)
	defer c.CloseIdle()
	return c.Fetch(ctx, url)
}

// Get reads a single document. For a damaged one it returns the readable part, together
// with the error. The error is a *ParseError, or a *FetchError, which wraps the context's
// error if it has ended the request. Another error names an impossible setting of the
// Client.
func (c *Client) Get(ctx context.Context, url string) (*Document, error) {
	l := c.load(ctx, chain.Request{URL: url}, Known{}, nil)
	return l.doc, l.err
}

// Poll reads a document by a conditional request. Pass the Known of the last Reading, or the zero
// Known at first; the ETag and LastModified from another library are enough. The Reading is
// Unchanged, or has the Document and the Gaps within it. The errors are those of Get: with the
// error of a damaged document, the Reading has the readable part; with any other it is nil.
func (c *Client) Poll(ctx context.Context, url string, known Known) (*Reading, error) {
	l := c.load(ctx, chain.Request{URL: url}, known, nil)
	if l.err != nil && l.doc == nil {
		return nil, l.err
	}
	r := &Reading{URL: url, Document: l.doc, Unchanged: l.unchanged, Known: l.known, Response: l.response}
	if l.err == nil && l.doc != nil {
		r.Known, r.Gaps = l.doc.Known(), l.doc.Missing(l.doc.Kind())
	}
	return r, l.err
}

var errNoClient = errors.New("feedhistory: the Client is nil")

// Wait returns until when the host of a URL asks to be left alone (Retry-After), as far as
// c and its clones know from all answers so far; the zero time if it does not. Walk makes
// requests whose answers it does not need: this is how to learn of such an answer.
func (c *Client) Wait(url string) time.Time {
	if c == nil {
		return time.Time{}
	}
	return c.requester().Wait(url)
}

// CloseIdle closes the connections kept open for further requests. You may still use
// the Client afterwards.
func (c *Client) CloseIdle() {
	if c != nil {
		c.requester().CloseIdle()
	}
}

// Clone returns a Client with the settings of c, which you may change before its first
// use: for feeds that need a User-Agent, Credentials, a proxy or certificate authorities of
// their own. c and all its clones share their memory of hosts, and connections unless
// Transport differs. So they are polite together: the slowest of their Paces applies, and
// at each host the PerHost of the Client with the first request there.
func (c *Client) Clone() *Client {
	if c == nil {
		return nil
	}
	return &Client{
		Proxy: c.Proxy, RootCAs: c.RootCAs, Transport: c.Transport, Wrap: c.Wrap,
		UserAgent: c.UserAgent, Budget: c.Budget, MaxBytes: c.MaxBytes, MaxEntries: c.MaxEntries,
		AllowPrivate: c.AllowPrivate, OneOrigin: c.OneOrigin, NoGuess: c.NoGuess,
		Credentials: slices.Clip(c.Credentials), // appending to a clone's must not write into another's
		PerHost:     c.PerHost, Pace: c.Pace, Timeout: c.Timeout, Tries: c.Tries, MaxWait: c.MaxWait,
		Logger: c.Logger, shared: c.requester().Shared,
	}
}

// requester returns the fetcher, which it sets up at the first call.
func (c *Client) requester() *fetch.Client {
	c.once.Do(c.setUp)
	return &c.fetcher
}

func (c *Client) setUp() {
	if c.shared == nil {
		c.shared = new(fetch.Shared)
	}
	c.invalid = c.check()
	patience := min(cmp.Or(c.Timeout, 20*time.Second), math.MaxInt64/4)
	c.fetcher = fetch.Client{
		Proxy: c.Proxy, RootCAs: c.RootCAs, Transport: c.Transport, Wrap: c.Wrap, UserAgent: cmp.Or(c.UserAgent, userAgent), Pace: c.Pace, PerHost: c.PerHost,
		AllowPrivate: c.AllowPrivate, Bytes: c.MaxBytes,
		Connect: patience / 4, TLS: patience / 2, Headers: patience, Body: 3 * patience, Idle: patience / 4 * 3,
		Tries: c.Tries, MaxWait: c.MaxWait, Secrets: c.secrets, Public: func(f *fetch.Failure) error { return public(f) }, Logger: c.Logger, Shared: c.shared,
	}
}

// load requests and reads a document. If head is not nil, it is called with the head
// section as soon as it has arrived, before the rest of the document.
func (c *Client) load(ctx context.Context, r chain.Request, known Known, head func(*Document)) *fetchResult {
	resp, err := c.do(ctx, fetch.Request{
		URL: iri.ForRequest(r.URL), Accept: accept,
		ETag: known.ETag, LastModified: known.LastModified, Validated: known.URL,
		Once: r.Guess, Again: r.Again, IsDoubtful: r.IsDoubtful,
	})
	if err != nil {
		return &fetchResult{url: r.URL, err: err}
	}
	defer resp.Body.Close()
	return c.read(resp, r.URL, known, head)
}

// read reads the document from a response for url.
func (c *Client) read(resp *fetch.Response, url string, known Known, head func(*Document)) *fetchResult {
	l := &fetchResult{url: url}
	response := newResponse(resp)
	response.Requested = url
	if resp.Status == http.StatusNotModified {
		l.unchanged, l.known, l.response = true, known.validatedBy(response), response
		return l
	}
	base := resp.URL
	if base == iri.ForRequest(url) {
		base = iri.WithoutFragment(url) // as written
	}
	p := Parser{MaxBytes: c.MaxBytes, MaxEntries: c.MaxEntries, Header: resp.Header}
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
	var cut error
	l.text, response.digest, cut = resp.Text(known.Digest, peek)
	if cut == nil && response.digest == known.Digest {
		l.unchanged, l.known, l.response = true, known.validatedBy(response), response
		return l
	}
	if l.doc, l.err = p.decode(l.text, base); l.doc != nil {
		l.doc.Response, l.response = response, response
	} else {
		l.err = notFeed(l.err, l.text, base, resp.Header)
	}
	if cut != nil {
		l.err = cut // more precise than a truncation
	}
	return l
}

// HTTPClient returns a client for anything other than a feed, such as an episode or a list
// of posts, by the rules of c: it is polite to hosts together with c, refuses private
// addresses, follows redirects, tries again, and sends the Credentials. It takes GET and
// HEAD, and of the header all fields but those of the connection and User-Agent,
// Accept-Encoding, Authorization and Cookie, for which the Client has fields; only the origin
// of the URL gets them, apart from Range and If-Range. A body may have any length, and take any
// time as long as it goes on. Without a Range, a compressed body is decoded, and its ETag is
// that of the compressed one.
//
// A request without an answer is a *[FetchError], in the url.Error of package net/http; so is
// the error of a body that ends early.
// Answers are responses, whatever their status; see [NewFetchError]. Their Request has the
// URL after redirects.
func (c *Client) HTTPClient() *http.Client { return &http.Client{Transport: politeTransport{c}} }

// A politeTransport makes the requests of a Client's HTTPClient.
type politeTransport struct{ c *Client }

// RoundTrip implements http.RoundTripper.
func (t politeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	header := r.Header.Clone()
	for _, name := range []string{"Accept", "If-None-Match", "If-Modified-Since"} {
		header.Del(name)
	}
	resp, err := t.c.do(r.Context(), fetch.Request{
		URL: r.URL.String(), Method: r.Method, Accept: r.Header.Get("Accept"), Header: header, Raw: true,
		ETag: r.Header.Get("If-None-Match"), LastModified: r.Header.Get("If-Modified-Since"),
	})
	if err != nil {
		return nil, err
	}
	answer := *resp.HTTP
	if answer.Request, answer.Body = r.WithContext(r.Context()), resp.Body; resp.URL != r.URL.String() {
		if answer.Request.URL, err = iri.ParseLeniently(resp.URL); err != nil {
			resp.Body.Close()
			return nil, err
		}
	}
	if answer.Header.Get("Content-Encoding") != "" && r.Method != http.MethodHead {
		answer.Header, answer.ContentLength, answer.Uncompressed = answer.Header.Clone(), -1, true
		answer.Header.Del("Content-Encoding")
		answer.Header.Del("Content-Length")
	}
	return &answer, nil
}

// do makes a request. Its errors, and those of the body, are this package's.
func (c *Client) do(ctx context.Context, req fetch.Request) (*fetch.Response, error) {
	if c == nil {
		return nil, errNoClient
	}
	requester := c.requester()
	if c.invalid != nil {
		return nil, c.invalid
	}
	return requester.Do(ctx, req)
}

// notFeed adds to the error of a document other than a feed the feeds the document names, if
// it is a web page. It returns other errors unchanged.
func notFeed(err error, text, base string, header http.Header) error {
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
	if page {
		for _, l := range markup.FeedLinks(text, base, header.Get("Content-Type"), fetch.MaxURL) {
			rel := relAlternate
			if markup.IsOfComments(l.Title, l.Href) {
				rel = relReplies
			}
			parse.Feeds = append(parse.Feeds, feedOf(l, rel))
			for _, other := range l.Formats {
				if parse.Formats == nil {
					parse.Formats = map[string]Links{}
				}
				parse.Formats[l.Href] = append(parse.Formats[l.Href], feedOf(other, rel))
			}
		}
	}
	return parse
}

func feedOf(l markup.FeedLink, rel string) Link {
	return Link{Rel: rel, Href: l.Href, Type: l.Type, Title: l.Title, HrefLang: l.HrefLang}
}

// check returns an error for impossible settings: a forbidden negative number, or a Transport
// free to dial any address.
func (c *Client) check() error {
	if _, ok := c.Transport.(*http.Transport); c.Transport != nil && !ok && !c.AllowPrivate {
		return fmt.Errorf("feedhistory: Client.Transport, a %T, may request private addresses: set AllowPrivate if it must, or refuses them itself, or use Client.Wrap", c.Transport)
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"Pace", int64(c.Pace)}, {"PerHost", int64(c.PerHost)}, {"Timeout", int64(c.Timeout)}, {"Tries", int64(c.Tries)},
		{"Budget.Documents", int64(c.Budget.Documents)}, {"Budget.Bytes", c.Budget.Bytes}, {"Budget.Time", int64(c.Budget.Time)}, {"MaxBytes", c.MaxBytes}, {"MaxEntries", int64(c.MaxEntries)},
	} {
		if n.value < 0 {
			return fmt.Errorf("feedhistory: Client.%s is negative", n.name)
		}
	}
	return nil
}

// A Credential is a secret for one origin. A Client sends it there and nowhere
// else, whatever a redirect or a document asks for.
type Credential struct {
	// Origin is the scheme, host and port, such as "https://example.org:8443";
	// you may leave out the scheme's default port. A credential whose Origin is
	// empty or not a URL is never sent.
	Origin string

	// User and Password, unless both are "", are sent by Basic authentication (RFC
	// 7617). A user has no colon.
	User, Password string

	// Header has the fields servers ask for, such as "Authorization", "X-Api-Key" or
	// "Cookie". The fields a Client itself sets are refused.
	Header http.Header
}

// Format prints the origin for any verb, so printing a credential gives nothing away.
func (c Credential) Format(f fmt.State, _ rune) {
	if f != nil {
		io.WriteString(f, "credential for "+c.Origin)
	}
}

// MarshalText returns the text Format prints, for logs and JSON: a credential is not
// stored this way.
func (c Credential) MarshalText() ([]byte, error) { return fmt.Append(nil, c), nil }

// Check returns an error if a Client cannot send the credential: a field has an invalid
// name or value, or is one set by the connection. The error does not quote values.
func (c Credential) Check() error {
	switch {
	case c.User+c.Password != "" && Credential{Header: c.Header}.fields().Get("Authorization") != "":
		return errors.New("it has both Authorization and a User")
	case strings.Contains(c.User, ":"):
		return errors.New("the user has a colon")
	}
	return fetch.CheckSecrets(c.fields())
}

// secrets returns the fields of the Credential for a request to u; nil if there is none.
func (c *Client) secrets(u *url.URL) http.Header {
	for _, secret := range c.Credentials {
		if origin, err := url.Parse(secret.Origin); err == nil && iri.SameOrigin(origin, u) {
			return secret.fields()
		}
	}
	return nil
}

// fields returns the header fields of the credential.
func (c Credential) fields() http.Header {
	fields := make(http.Header, len(c.Header)+1)
	for name, values := range c.Header {
		fields[http.CanonicalHeaderKey(name)] = values
	}
	if c.User+c.Password != "" {
		fields.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(c.User+":"+c.Password)))
	}
	return fields
}

// Discover returns the feeds of the web page at address, the best first: those the page
// names, see [ParseError]. If it names none, Discover looks for one at well-known
// places, such as /feed or /atom.xml, in the page's directory and at the root of its
// host, with at most 14 requests, one after another, and returns the first it finds. If
// there is a feed at address itself, it returns only that.
//
// To find no feed is not an error; the errors are those of Get, among them the
// *ParseError for text without markup, which is no web page. Discover does not request
// the feeds a page names, which may be at any host, or missing.
func (c *Client) Discover(ctx context.Context, address string) (Links, error) {
	address = iri.WithoutFragment(address)
	doc, err := c.Get(ctx, address)
	if doc != nil {
		return Links{feedLink(address, doc)}, nil
	}
	other, ok := errors.AsType[*ParseError](err)
	switch {
	case !ok || other.Reason != ReasonNotFeed:
		return nil, err
	case len(other.Feeds) > 0 || !errors.Is(other, ErrWebPage):
		return other.Feeds, nil
	}
	return c.wellKnown(ctx, other.URL)
}

// wellKnownPlaces are the paths at which the software of websites serves feeds.
var wellKnownPlaces = []string{"feed", "feed.xml", "atom.xml", "index.xml", "rss.xml", "rss", "feed.json"}

// wellKnown looks for a feed at the well-known places of a page's site. It gives up
// after an error that the other places are likely to repeat.
func (c *Client) wellKnown(ctx context.Context, page string) (Links, error) {
	base, err := url.Parse(page)
	if err != nil {
		return nil, err
	}
	dirs := []string{base.ResolveReference(&url.URL{Path: "."}).String(), base.ResolveReference(&url.URL{Path: "/"}).String()}
	for _, dir := range slices.Compact(dirs) {
		for _, place := range wellKnownPlaces {
			doc, err := c.Get(ctx, dir+place)
			if doc != nil {
				return Links{feedLink(dir+place, doc)}, nil
			}
			e, ok := errors.AsType[*FetchError](err)
			if ok && (e.Reason == ReasonNetwork || e.Status == http.StatusTooManyRequests || e.Status >= 500) || !ok && !is[*ParseError](err) {
				return nil, err
			}
		}
	}
	return nil, nil
}

// feedLink returns the link to a feed as a page would have it.
func feedLink(address string, doc *Document) Link {
	return Link{Rel: relAlternate, Href: address, Type: mediaTypes[doc.Format], Title: markup.ClipTitle(doc.Title)}
}

var mediaTypes = map[Format]string{FormatAtom: "application/atom+xml", FormatRSS: "application/rss+xml", FormatJSONFeed: "application/feed+json"}

// A Response describes the HTTP response with a document. It is the zero value for a
// document not fetched.
type Response struct {
	Requested string      // the URL requested
	Permanent string      // the URL to request from now on, after permanent redirects (301, 308); "" means it has not changed
	Status    int         // 200, another 2xx, or 304
	Received  time.Time   // when the response arrived
	Fresh     time.Time   // until when the document is fresh, by Cache-Control or Expires; zero if they do not say
	Header    http.Header `json:"-"` // the fields as received, with secrets such as cookies

	// The validators to send back, and a digest of the body: it detects changes, but does not
	// withstand forgery.
	etag, lastModified, digest string
}

// A Known is the memory of a document read before. It makes the next request for the
// document conditional, and lets a walk continue beyond it if it has not changed.
type Known struct {
	URL                        string // the document's URL, after redirects
	ETag, LastModified, Digest string // as in its Response
	Kind                       Kind   // the kind of feed the document declares
	Older                      string // the URL of the next document back in time; "" if there is none
	Instead                    string `json:",omitempty"` // the URL to try if Older leads to no document; "" if there is no second link
	Formats                    bool   `json:",omitempty"` // whether Older and Instead declare different types
	Lost                       bool   `json:",omitempty"` // whether its link to an older document cannot be used
	Damaged                    bool   `json:",omitempty"` // whether a part of it may be missing; see Document.Missing
	ID                         string `json:",omitempty"` // the feed's id, of a subscription document
	Begins                     string `json:",omitempty"` // the URL of its link to the feed's beginning, if a walk found it not to lead elsewhere
}

// Known returns the memory of the document for the next request by Poll. If its marks contradict
// each other, it has no validators, so the next request looks again.
func (d *Document) Known() Known { return d.memory(d.Kind()) }

// memory returns the memory of the document for the next request, as part of a chain of the
// given kind.
func (d *Document) memory(feed Kind) Known {
	older, _ := d.Links.Rel(feed.Older())
	targets := d.Links.targets(feed.Older())
	k := Known{URL: d.URL, Kind: d.Kind(), Older: iri.Address(older.Href), Lost: d.loses(feed.Older()), Damaged: d.mendedDamage(feed) != nil}
	if len(targets) > 1 {
		k.Instead, k.Formats = targets[1], d.Links.areFormats(targets[0], targets[1])
	}
	if d.isSubscription() {
		k.ID = d.ID
	}
	if !d.contradicts(feed) {
		k.ETag, k.LastModified, k.Digest = d.Response.etag, d.Response.lastModified, d.Response.digest
	}
	return k
}

// validatedBy returns the memory of an unchanged document with the validators of its latest
// response: a 304 may bring new ones (RFC 9111 §4.3.4), and so does a site deployed again.
func (k Known) validatedBy(r Response) Known {
	if r.etag+r.lastModified != "" {
		k.ETag, k.LastModified = r.etag, r.lastModified
	}
	return k
}

func newResponse(resp *fetch.Response) Response {
	now := time.Now()
	return Response{
		Requested: resp.Requested, Permanent: resp.Permanent, Status: resp.Status,
		Received: now, Fresh: fetch.FreshUntil(resp.Header, now), Header: resp.Header,
		etag: resp.ETag, lastModified: resp.LastModified,
	}
}
