package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
	"github.com/feedhistory/feedhistory/internal/iri"
	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// check parses the URL of a request, and refuses forbidden ones.
func (c *Client) check(req *Request) (*url.URL, error) {
	if req.Method != "" && req.Method != http.MethodGet && req.Method != http.MethodHead {
		return nil, refused(iri.Redact(req.URL), RuleMethod, nil)
	}
	return c.parse(nil, req.URL)
}

// parse resolves ref against base, which may be nil, and refuses forbidden URLs.
func (c *Client) parse(base *url.URL, ref string) (*url.URL, error) {
	if len(ref) > MaxURL {
		shown := iri.Redact(ref)
		return nil, refused(shown[:min(len(shown), MaxURL)], RuleLength, nil)
	}
	u, err := iri.ParseLeniently(ref)
	if err != nil {
		if detail, ok := errors.AsType[*url.Error](err); ok {
			err = detail.Err // detail has the URL, and so perhaps a password
		}
		return nil, refused(iri.Redact(ref), RuleURL, err)
	}
	if base != nil {
		u = base.ResolveReference(u)
	}
	if rule := c.forbidden(u); rule != "" {
		if rule == RuleScheme {
			err = fmt.Errorf("%q", u.Scheme)
		}
		return nil, refused(iri.Redact(u.String()), rule, err)
	}
	u.Fragment, u.RawFragment = "", "" // a fragment is never sent
	return u, nil
}

// forbidden returns the rule a URL breaks; "" if it breaks none.
func (c *Client) forbidden(u *url.URL) string {
	switch {
	case u.Scheme == "":
		return RuleURL
	case u.Scheme != "http" && u.Scheme != "https":
		return RuleScheme
	case u.User != nil:
		return RuleUserinfo
	case u.Opaque != "" || u.Hostname() == "" || !validPort(u.Port()):
		return RuleURL
	case len(u.Path)+len(u.RawQuery) > MaxURL: // a long base and a long reference
		return RuleLength
	}
	return ""
}

func validPort(port string) bool {
	if port == "" {
		return true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// A guard cancels a request when one of its steps takes too long. One timer serves all
// steps, because a request waits for one thing at a time. It keeps running when a step
// ends, and checks the current step when it fires: stopping and starting it around each
// read would cost more than the read.
type guard struct {
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	timer    *time.Timer
	fires    time.Time // when the timer fires; zero if it is not running
	deadline time.Time // the end of the step; zero between steps
	step     Failure
}

// arm starts the clock for a step.
func (g *guard) arm(now time.Time, step string, limit, left time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.step.Name, g.step.Max = step, int64(limit)
	g.deadline = now.Add(left)
	if g.fires.IsZero() || g.deadline.Before(g.fires) {
		g.start(left)
	}
}

// start makes the timer fire at the deadline.
func (g *guard) start(left time.Duration) {
	g.fires = g.deadline
	if g.timer == nil {
		g.timer = time.AfterFunc(left, g.expire)
		return
	}
	g.timer.Reset(left)
}

// disarm ends the step.
func (g *guard) disarm() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deadline = time.Time{}
}

// stop ends the last step.
func (g *guard) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deadline = time.Time{}
	if g.timer != nil {
		g.timer.Stop()
	}
}

// expire runs when the timer fires; the step may be over.
func (g *guard) expire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fires = time.Time{}
	if g.deadline.IsZero() {
		return
	}
	if left := time.Until(g.deadline); left > 0 {
		g.start(left)
		return
	}
	timeout := g.step
	g.cancel(&timeout)
}

// A proxyKey is the key of a request's proxy, a *url.URL, in its context, where the
// transport finds it, and the dialer: such a request dials nothing but its proxy.
type proxyKey struct{}

func proxyOf(ctx context.Context) *url.URL {
	proxy, _ := ctx.Value(proxyKey{}).(*url.URL)
	return proxy
}

// throughProxy returns the request with its proxy, if it has one. Behind a proxy, no dialer
// sees the address, so it is refused here if it is written as one.
func (c *Client) throughProxy(r *http.Request) (*http.Request, error) {
	choose := c.Proxy
	if own := c.guarded(); own != nil {
		choose = own.Proxy
	} else if c.Transport != nil {
		choose = nil
	}
	if choose == nil {
		return r, nil
	}
	proxy, err := choose(r)
	if err != nil {
		return nil, wrap(r.URL.String(), fmt.Errorf("choosing its proxy: %w", err))
	}
	if proxy == nil {
		return r, nil
	}
	host := r.URL.Hostname()
	if ascii, err := idna.Lookup.ToASCII(host); err == nil { // as net/http names it to the proxy
		host = ascii
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		host = "127.0.0.1"
	}
	if ip, ok := numericHost(host); ok && !c.AllowPrivate {
		network := "tcp4"
		if ip.Is6() {
			network = "tcp6"
		}
		if err := Guard()(network, net.JoinHostPort(host, "443"), nil); err != nil {
			return nil, refused(r.URL.String(), RuleAddress, err)
		}
	}
	return r.WithContext(context.WithValue(r.Context(), proxyKey{}, proxy)), nil
}

// numericHost returns the address a host is in any spelling that some resolver reads as
// one: those of inet_aton(3), as 127.1, 0x7f000001 and 0177.0.0.1, too. One with a number
// beyond its part of the address is taken for the last 32 bits of it, as some do.
func numericHost(host string) (ip netip.Addr, ok bool) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip, true
	}
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return ip, false
	}
	var sum uint32
	for i, part := range parts {
		n, ok := aton(part)
		if !ok {
			return ip, false
		}
		if i == len(parts)-1 {
			sum |= n
		} else {
			sum |= n << (8 * (3 - i))
		}
	}
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}), true
}

// aton reads a number in C's notation; one that is no octal in spite of its zero is decimal.
func aton(part string) (n uint32, ok bool) {
	digits, base := part, 10
	switch {
	case strings.HasPrefix(part, "0x"):
		digits, base = part[2:], 16
	case strings.HasPrefix(part, "0") && strings.Trim(part, "01234567") == "":
		base = 8
	}
	if digits == "" && base == 16 {
		return 0, true // as browsers read it
	}
	if base == 16 && strings.Trim(digits, "0123456789abcdef") != "" || base != 16 && (digits == "" || strings.Trim(digits, "0123456789") != "") {
		return 0, false
	}
	long, _ := new(big.Int).SetString(digits, base)
	return uint32(new(big.Int).And(long, big.NewInt(math.MaxUint32)).Uint64()), true
}

// newTransport makes the built-in transport. It does not decompress, because the ratio
// needs the sizes before and after.
func (c *Client) newTransport() *http.Transport {
	d := dialer{dial: c.dial, roots: c.RootCAs, connect: c.connect(), tls: c.tls()}
	if d.dial == nil {
		d.dial = c.dialAllowed
	}
	return &http.Transport{
		Proxy: chosenProxy,
		OnProxyConnectResponse: func(_ context.Context, proxy *url.URL, _ *http.Request, answer *http.Response) error {
			if answer.StatusCode == http.StatusOK {
				return nil
			}
			return &Failure{Kind: Proxy, Name: proxy.Host, Status: answer.StatusCode}
		},
		TLSClientConfig:        &tls.Config{RootCAs: c.RootCAs},
		TLSHandshakeTimeout:    c.tls(),
		DialContext:            d.plain,
		DialTLSContext:         d.secure,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    c.perHost(),
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
		// Without a ping, a silently dead connection would cost every request to its host a
		// timeout.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second},
	}
}

func chosenProxy(r *http.Request) (*url.URL, error) { return proxyOf(r.Context()), nil }

// dialAllowed dials a public address, or a proxy at any.
func (c *Client) dialAllowed(ctx context.Context, network, address string) (net.Conn, error) {
	if proxyOf(ctx) == nil {
		return c.netDialer().DialContext(ctx, network, address)
	}
	return (&net.Dialer{Resolver: c.resolver}).DialContext(ctx, network, address)
}

// A dialFunc is a dialer of an [http.Transport].
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// guard returns a clone of a caller's transport, refusing private addresses. Where it dials
// in its own way, the address is seen only afterwards, before anything is sent.
func (c *Client) guard(own *http.Transport) *http.Transport {
	t := own.Clone()
	t.Proxy = chosenProxy
	//lint:ignore SA1019 callers may still set them
	dial, dialTLS := t.Dial, t.DialTLS
	switch {
	case t.DialContext != nil:
		t.DialContext = checked(t.DialContext)
	case dial != nil:
		t.DialContext = checked(withoutContext(dial))
	default:
		t.DialContext = c.dialAllowed
	}
	switch {
	case t.DialTLSContext != nil:
		t.DialTLSContext = checked(t.DialTLSContext)
	case dialTLS != nil:
		t.DialTLSContext = checked(withoutContext(dialTLS))
	}
	//lint:ignore SA1019 the contexts have their places
	t.Dial, t.DialTLS = nil, nil
	return t
}

func withoutContext(dial func(network, address string) (net.Conn, error)) dialFunc {
	return func(_ context.Context, network, address string) (net.Conn, error) { return dial(network, address) }
}

// checked returns a dialer closing connections to private addresses, and those without an
// address.
func checked(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil || proxyOf(ctx) != nil {
			return conn, err
		}
		network, address = "tcp6", conn.RemoteAddr().String()
		if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().Unmap().Is4() {
			network, address = "tcp4", netip.AddrPortFrom(at.Addr().Unmap(), at.Port()).String()
		}
		if err := Guard()(network, address, nil); err != nil {
			conn.Close()
			return nil, err
		}
		return conn, nil
	}
}

// netDialer checks each address after its name has been resolved and immediately before
// it is dialled, so no second answer of a name server can come between.
func (c *Client) netDialer() *net.Dialer {
	d := &net.Dialer{Resolver: c.resolver, Control: c.control}
	if d.Control == nil && !c.AllowPrivate {
		d.Control = Guard()
	}
	return d
}

// Guard returns a [net.Dialer.Control] to refuse loopback, private and special-purpose
// addresses, and those of the metadata of clouds. It allows any port, because feeds are
// served from unusual ports as well.
func Guard() func(network, address string, conn syscall.RawConn) error {
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(clouds...)).Safe
}

// clouds are the public addresses at which machines of a cloud find their own
// configuration: those of Azure and Equinix Metal. Other clouds use link-local, shared or
// private addresses.
var clouds = []netip.Prefix{
	netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("192.80.8.124/32"),
}

func (c *Client) perHost() int { return max(cmp.Or(c.PerHost, 4), 1) }

// A dialer adds timeouts to connecting and to the handshake.
type dialer struct {
	dial         func(ctx context.Context, network, address string) (net.Conn, error)
	roots        *x509.CertPool // nil means the system's
	connect, tls time.Duration
}

func (d dialer) plain(ctx context.Context, network, address string) (net.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, d.connect)
	defer cancel()
	conn, err := d.dial(limited, network, address)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = &Failure{Kind: Timeout, Name: "connect", Max: int64(d.connect)}
	}
	return conn, err
}

func (d dialer) secure(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	plain, err := d.plain(ctx, network, address)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, d.tls)
	defer cancel()
	protocols := []string{"h2", "http/1.1"}
	if proxyOf(ctx) != nil { // which speaks HTTP/1.1
		protocols = protocols[1:]
	}
	conn := tls.Client(plain, &tls.Config{
		ServerName: host,
		RootCAs:    d.roots,
		NextProtos: protocols,
	})
	if err := conn.HandshakeContext(limited); err != nil {
		plain.Close()
		if limited.Err() != nil && ctx.Err() == nil {
			err = &Failure{Kind: Timeout, Name: "tls", Max: int64(d.tls)}
		}
		return nil, err
	}
	return conn, nil
}

// MaxRedirects is the maximum number of redirects to follow for one request.
const MaxRedirects = 5

// follow makes one try: the request, and those to which it is redirected.
func (c *Client) follow(ctx context.Context, first *url.URL, req *Request) (*Response, error) {
	var buf [MaxRedirects + 1]string
	visited := buf[:0]
	permanent, moved := "", true
	owner := req.owner(first)
	var cookies http.CookieJar // those set by a redirect live as long as this request
	for u := first; ; {
		location := u.String()
		visited = append(visited, location+sent(cookies, u))
		x, err := c.exchange(ctx, u, location, req, owner != nil && iri.SameOrigin(owner, u), iri.SameOrigin(first, u), cookies)
		if err != nil {
			return nil, err
		}
		status := x.resp.StatusCode
		if !redirects(status) || req.Once {
			return x.answer(req, permanent, moved)
		}
		cookies = keepCookies(cookies, u, x.resp)
		next, err := x.target(u, visited, cookies)
		x.discard()
		if err != nil {
			if f, ok := err.(*Failure); ok {
				f.Status = status
			}
			return nil, err
		}
		c.log(ctx, slog.LevelInfo, "redirect", location, slog.String("to", iri.Shown(next.String())), slog.Int("status", status))
		moved = moved && (status == http.StatusMovedPermanently || status == http.StatusPermanentRedirect)
		if u = next; moved {
			permanent = next.String()
		}
	}
}

// keepCookies returns the jar with the cookies of a redirect; nil while there are none.
func keepCookies(jar http.CookieJar, u *url.URL, resp *http.Response) http.CookieJar {
	set := resp.Cookies()
	if len(set) == 0 || len(set) > mostCookies {
		return jar
	}
	if jar == nil {
		jar, _ = cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List}) // never fails
	}
	jar.SetCookies(u, set)
	return jar
}

// sent returns the cookies a request for u has from a jar; "" if there are none.
func sent(jar http.CookieJar, u *url.URL) string {
	if jar == nil {
		return ""
	}
	var all strings.Builder
	for _, cookie := range jar.Cookies(u) {
		all.WriteString("\n" + cookie.Name + "=" + cookie.Value)
	}
	return all.String()
}

// mostCookies is the maximum number of cookies of one answer.
const mostCookies = 50

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// target returns the URL a redirect of u leads to, if it may be followed. With other cookies,
// the same URL may be answered otherwise, so coming back to it is no loop.
func (x *exchange) target(u *url.URL, visited []string, cookies http.CookieJar) (*url.URL, error) {
	location := x.resp.Header.Get("Location")
	if location == "" {
		return nil, refused(x.url, RuleLocation, nil)
	}
	next, err := x.client.parse(u, location)
	if err != nil {
		return nil, err
	}
	to := next.String()
	switch {
	case u.Scheme == "https" && next.Scheme == "http":
		return nil, refused(to, RuleDowngrade, errors.New("redirected from "+iri.Shown(x.url)))
	case slices.Contains(visited, to+sent(cookies, next)):
		return nil, refused(to, RuleLoop, nil)
	case len(visited) > MaxRedirects:
		return nil, refused(to, RuleRedirects, nil)
	}
	return next, nil
}

// answer returns the Response for a final answer, or its error. If settled, all redirects
// to it were permanent.
func (x *exchange) answer(req *Request, permanent string, settled bool) (*Response, error) {
	now, h := time.Now(), x.resp.Header
	resp := &Response{
		URL: x.url, Requested: req.URL, Permanent: permanent,
		Status: x.resp.StatusCode, Header: h,
		ETag: h.Get("Etag"), LastModified: lastModified(h, now),
		Body: http.NoBody, HTTP: x.resp,
	}
	switch {
	case resp.Status == http.StatusNotModified && x.conditional:
		resp.ETag, resp.LastModified = cmp.Or(resp.ETag, req.ETag), cmp.Or(resp.LastModified, req.LastModified) // a 304 need not repeat them
		x.end()
		return resp, nil
	case resp.Status < 200 || resp.Status > 299 || !req.Raw && (resp.Status == http.StatusPartialContent || resp.Status == http.StatusIMUsed):
		// A 206 or 226 is not the document if the request did not ask for a part.
		err := x.statusError(req, now, settled)
		if req.Raw && (req.left <= 0 || req.Once || !err.temporary() || err.RetryAfter > x.client.maxWait()) {
			break
		}
		x.discard()
		return nil, err
	}
	return resp, x.open(resp, req)
}

// lastModified returns the Last-Modified of an answer, if it can be a validator: "" for one
// that is not before the answer's Date. One in the future would be answered 304 until then,
// and within the same second the document may change again (RFC 9110 §8.8.2).
func lastModified(h http.Header, received time.Time) string {
	value := h.Get("Last-Modified")
	modified, ok := parseDate(value)
	if !ok {
		return value
	}
	made, dated := parseDate(h.Get("Date"))
	if !dated {
		made = received
	}
	if !modified.Before(made) {
		return ""
	}
	return value
}

// statusError returns the error for a status, and remembers when the host allows the
// next request, or that guesses may annoy it.
func (x *exchange) statusError(req *Request, now time.Time, settled bool) *Failure {
	status := x.resp.StatusCode
	err := &Failure{Kind: Status, URL: x.url, Status: status, Gone: status == http.StatusGone && settled}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		if wait, ok := RetryAfter(x.resp.Header, now); ok {
			err.RetryAfter, err.At = wait, now.Add(wait)
		}
	}
	isRefusal := status == http.StatusForbidden || status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
	switch {
	case isRefusal && req.isDoubtful():
		x.client.shared().hosts.leaveAlone(x.host, now, status)
	case !err.At.IsZero():
		x.client.shared().hosts.leaveAlone(x.host, err.At, status)
	}
	return err
}
