package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/command"
)

const cookieName = "feedhistory"

// A gatekeeper knows who may read and change.
type gatekeeper struct {
	token   string
	private bool // whether reading needs the token
	base    string
	now     func() time.Time
	readers command.SecretFile[[]readerLogin] // in memory without a name
	proxies []netip.Prefix                    // whose X-Forwarded-For tells visitors apart

	mu      sync.Mutex
	guesses map[netip.Prefix]guesses // of visitors who have shown a wrong token
}

// guesses are the wrong tokens of a visitor since a time.
type guesses struct {
	since time.Time
	n     int
}

// The wrong tokens a visitor may show, and the time they count for.
const (
	mostGuesses = 20
	guessTime   = time.Minute
	mostTired   = 10_000 // number of visitors to remember
)

var errTooManyGuesses = &problem{
	http.StatusTooManyRequests, "There were too many wrong tokens from your address",
	"Wait a minute, then try again.",
}

// A permit is the extent of a request's rights.
type permit struct {
	role     role
	loggedIn bool // its browser keeps a proof of the token
	tired    bool // it shows a wrong token, and its visitor has shown too many
}

// A role is who sends a request.
type role uint8

const (
	stranger  role = iota
	onlyReads      // a feed reader with its login, which may only read
	owner          // shows the token, or the server needs none: it may change everything
)

// permitKey is the key of a request's permit in its context.
type permitKey struct{}

// permitOf returns a request's permit, given by ServeHTTP.
func permitOf(r *http.Request) permit {
	p, _ := r.Context().Value(permitKey{}).(permit)
	return p
}

// permit judges a request, once: a wrong token counts once. The token is shown as a cookie
// or, by a program, as a bearer token (RFC 6750) or as the password of any user (RFC 7617).
func (g *gatekeeper) permit(r *http.Request) (p permit) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	_, password, basic := r.BasicAuth()
	right := false
	switch p.loggedIn = g.hasCookie(r); {
	case p.loggedIn:
		right = true
	case g.isReader(r):
		p.role = onlyReads
	case basic:
		right, p.tired = g.guess(r, password)
	case strings.EqualFold(scheme, "Bearer"): // RFC 9110 §11.1
		right, p.tired = g.guess(r, strings.TrimSpace(token))
	}
	if right || g.token == "" && !g.private && p.role == stranger {
		p.role = owner
	}
	return p
}

// guess compares a token with the right one, which is heard however many wrong ones came
// before. A wrong one counts; tired says the visitor has shown too many.
func (g *gatekeeper) guess(r *http.Request, token string) (right, tired bool) {
	if g.token == "" {
		return false, false
	}
	if same(g.proof(token), g.proof(g.token)) {
		return true, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.guesses == nil || len(g.guesses) >= mostTired {
		g.guesses = map[netip.Prefix]guesses{}
	}
	visitor := g.visitorOf(r)
	known := g.guesses[visitor]
	if now := g.now(); now.Sub(known.since) >= guessTime {
		known = guesses{since: now}
	}
	known.n++
	g.guesses[visitor] = known
	return false, known.n > mostGuesses
}

func (g *gatekeeper) hasCookie(r *http.Request) bool {
	cookie, err := r.Cookie(cookieName)
	return err == nil && g.token != "" && same(cookie.Value, g.proof(g.token))
}

// proof returns the value of a cookie, which does not reveal the token.
func (g *gatekeeper) proof(token string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("cookie of " + g.base))
	return hex.EncodeToString(mac.Sum(nil))
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// change runs a page only if the request may change anything.
func (s *Server) change(h page) page {
	return func(w http.ResponseWriter, r *http.Request) error {
		switch p := permitOf(r); {
		case p.role == owner:
			return h(w, r)
		case p.tired:
			return errTooManyGuesses
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		return s.render(w, r, http.StatusUnauthorized, "token", "Token needed", tokenView{Next: s.backTo(r), Private: s.Private})
	}
}

type tokenView struct {
	Next    string // the page to return to
	Wrong   bool
	Private bool // reading needs the token, too
}

// askToken shows the form for the token.
func (s *Server) askToken(w http.ResponseWriter, r *http.Request) error {
	return s.render(w, r, http.StatusOK, "token", "Token", tokenView{Next: s.ownPath(r.URL.Query().Get("next")), Private: s.Private})
}

// takeToken reads the token from the form.
func (s *Server) takeToken(w http.ResponseWriter, r *http.Request) error {
	next, token := s.ownPath(r.FormValue("next")), r.FormValue("token")
	switch right, tired := s.gate.guess(r, token); {
	case tired:
		return errTooManyGuesses
	case !right:
		return s.render(w, r, http.StatusForbidden, "token", "Token", tokenView{Next: next, Wrong: true, Private: s.Private})
	}
	s.keepToken(w, s.gate.proof(token))
	return seeOther(next)
}

// keepToken makes a browser keep a proof of the token.
func (s *Server) keepToken(w http.ResponseWriter, proof string) {
	s.keep(w, http.Cookie{Name: cookieName, Value: proof, Path: s.root, SameSite: http.SameSiteStrictMode}, 90)
}

// forgetToken makes the browser forget the token.
func (s *Server) forgetToken(w http.ResponseWriter, r *http.Request) error {
	s.keepToken(w, "")
	return seeOther(s.root)
}

// backTo returns the page of this server a request came from.
func (s *Server) backTo(r *http.Request) string {
	from, err := url.Parse(r.Referer())
	if err != nil || from.Host != r.Host {
		return s.root
	}
	return s.ownPath(from.RequestURI())
}

// ownPath returns a path of this server, or the first page for any other
// address.
func (s *Server) ownPath(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(u.Path, s.root) || strings.HasPrefix(path, "//") ||
		strings.Contains(path, "\\") {
		return s.root
	}
	return path
}

// at returns the path of a page, given its path below the server's.
func (s *Server) at(path string) string { return s.root + strings.TrimPrefix(path, "/") }

// isAddressed reports whether a request is meant for this server. If another website's
// name leads here, a browser lets the website read the answers (DNS rebinding), so such
// a name is refused. IP addresses belong to no website; but without a Token only
// loopback addresses are accepted, so only users of this machine may change anything.
func (s *Server) isAddressed(r *http.Request) bool {
	host := hostName(r.Host)
	if base, err := url.Parse(s.base()); err == nil && hostName(base.Host) == host {
		return true
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || s.Token != ""
	}
	return IsLocal(host) || slices.Contains(ownNames(), host) ||
		slices.ContainsFunc(s.Names, func(name string) bool { return host != "" && hostName(name) == host })
}

// hostName returns a host in lower case, without a port, brackets, a zone or a
// final dot.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host, _, _ = strings.Cut(strings.Trim(host, "[]"), "%")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// ownNames are the names of this machine: its host name with and without the
// domain, and in the local network (RFC 6762).
var ownNames = sync.OnceValue(func() []string {
	name, err := os.Hostname()
	if name = hostName(name); err != nil || name == "" {
		return nil
	}
	short, _, _ := strings.Cut(name, ".")
	return []string{name, short, short + ".local"}
})

// IsLocal reports whether a host, with or without a port, is this machine
// itself: localhost or a loopback address.
func IsLocal(host string) bool {
	name := hostName(host)
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && ip.IsLoopback()
}

// visitorOf returns where a request comes from: an address or, for IPv6, a
// network, because everybody has many IPv6 addresses. A trusted proxy says where: each one
// appends an address to X-Forwarded-For, so the last one of no such proxy is the visitor's.
func (g *gatekeeper) visitorOf(r *http.Request) netip.Prefix {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	ip := at.Addr().Unmap().WithZone("")
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(forwarded) {
		if !slices.ContainsFunc(g.proxies, func(proxy netip.Prefix) bool { return proxy.Contains(ip) }) {
			break
		}
		before, err := netip.ParseAddr(hostName(strings.TrimSpace(text)))
		if err != nil {
			break // the proxy is as far as it is known
		}
		ip = before.Unmap()
	}
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	prefix, _ := ip.Prefix(bits)
	return prefix
}

// ParseProxy returns the network of the address, or the network, of a proxy.
func ParseProxy(text string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()), nil
	}
	return netip.ParsePrefix(text)
}

// How a server protects reading, if Private is set, and private feeds in any case.

// isOpen reports whether everybody may ask for a page on any server: the form for the
// token, and the files of its page.
func isOpen(r *http.Request) bool {
	return r.URL.Path == "/token" || r.URL.Path == "/token/forget" || strings.HasPrefix(r.URL.Path, "/static/")
}

// refuse asks for the token: it sends feed readers a challenge for a password (RFC
// 7617), and people a form. It does not reveal whether the requested page exists.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Add("WWW-Authenticate", "Bearer")
	if slices.Contains([]string{".atom", ".rss", ".opml"}, path.Ext(r.URL.Path)) {
		h.Add("WWW-Authenticate", `Basic realm="Feed history", charset="UTF-8"`)
	}
	next := s.root
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		next = s.ownPath(s.at(r.URL.RequestURI()))
	}
	if err := s.render(w, r, http.StatusUnauthorized, "token", "Token needed", tokenView{Next: next, Private: true}); err != nil {
		s.fail(w, r, err)
	}
}

// A privateWriter keeps shared caches from storing an answer (RFC 9111 §5.2.2.7).
type privateWriter struct {
	http.ResponseWriter
	begun bool
}

// Unwrap is for http.ResponseController.
func (w *privateWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *privateWriter) WriteHeader(status int) {
	w.begin()
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *privateWriter) Write(data []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(data)
}

func (w *privateWriter) begin() {
	if w.begun {
		return
	}
	w.begun = true
	h := w.Header()
	others := strings.TrimPrefix(strings.TrimPrefix(h.Get("Cache-Control"), "public"), ", ")
	h.Set("Cache-Control", strings.TrimSuffix("private, "+others, ", "))
	h.Add("Vary", "Authorization, Cookie")
}

// keep makes a browser keep a cookie for so many days; without a value, forget it.
func (s *Server) keep(w http.ResponseWriter, cookie http.Cookie, days int) {
	if cookie.MaxAge = days * 24 * 60 * 60; cookie.Value == "" {
		cookie.MaxAge = -1
	}
	cookie.HttpOnly, cookie.Secure = true, strings.HasPrefix(s.base(), "https:")
	http.SetCookie(w, &cookie)
}

// keepChoice makes a browser keep a visitor's choice for the pages below a path.
func (s *Server) keepChoice(w http.ResponseWriter, name, value, path string) {
	s.keep(w, http.Cookie{Name: name, Value: value, Path: path, SameSite: http.SameSiteLaxMode}, 400)
}
