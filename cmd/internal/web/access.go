package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
)

const cookieName = "feedhistory"

// A gatekeeper knows who may read and change.
type gatekeeper struct {
	token   string
	private bool // whether reading needs the token
	base    string
	root    string // the path of the server, with a final slash
	now     func() time.Time

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

// tires reports whether a request shows a token and its visitor has guessed too
// often. A cookie cannot be guessed, so it does not count.
func (g *gatekeeper) tires(r *http.Request) bool {
	return r.Header.Get("Authorization") != "" && g.isTired(r)
}

func (g *gatekeeper) isTired(r *http.Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	known, ok := g.guesses[visitorOf(r)]
	return ok && known.n >= mostGuesses && g.now().Sub(known.since) < guessTime
}

// guess compares a token with the right one, and counts wrong ones.
func (g *gatekeeper) guess(r *http.Request, token string) bool {
	if g.token != "" && same(g.proof(token), g.proof(g.token)) {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.guesses == nil || len(g.guesses) >= mostTired {
		g.guesses = map[netip.Prefix]guesses{}
	}
	known := g.guesses[visitorOf(r)]
	if now := g.now(); now.Sub(known.since) >= guessTime {
		known = guesses{since: now}
	}
	known.n++
	g.guesses[visitorOf(r)] = known
	return false
}

// mayChange reports whether a request may change something: it shows the token, or
// the server has none and is not Private.
func (g *gatekeeper) mayChange(r *http.Request) bool {
	return g.token == "" && !g.private || g.hasToken(r)
}

// hasToken reports whether a request shows the token: as a cookie or, from a
// program, as a bearer token (RFC 6750) or as the password of any user (RFC 7617),
// which is the way of feed readers.
func (g *gatekeeper) hasToken(r *http.Request) bool {
	if g.token == "" {
		return false
	}
	if _, password, ok := r.BasicAuth(); ok {
		return g.guess(r, password)
	}
	scheme, bearer, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") { // RFC 9110 §11.1
		return g.guess(r, strings.TrimSpace(bearer))
	}
	return g.hasCookie(r)
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

// setCookie makes a browser keep a proof; "" makes it forget.
func (g *gatekeeper) setCookie(w http.ResponseWriter, proof string) {
	cookie := &http.Cookie{
		Name: cookieName, Value: proof, Path: g.root, MaxAge: 90 * 24 * 60 * 60,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: strings.HasPrefix(g.base, "https:"),
	}
	if proof == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, cookie)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// change runs a page only if the request may change anything.
func (s *Server) change(h page) page {
	return func(w http.ResponseWriter, r *http.Request) error {
		switch {
		case s.Token != "" && s.gate.tires(r):
			return errTooManyGuesses
		case s.gate.mayChange(r):
			return h(w, r)
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
	if s.gate.isTired(r) {
		return errTooManyGuesses
	}
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	next, token := s.ownPath(r.FormValue("next")), r.FormValue("token")
	if !s.gate.guess(r, token) {
		return s.render(w, r, http.StatusForbidden, "token", "Token", tokenView{Next: next, Wrong: true, Private: s.Private})
	}
	s.gate.setCookie(w, s.gate.proof(token))
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}

// forgetToken makes the browser forget the token.
func (s *Server) forgetToken(w http.ResponseWriter, r *http.Request) error {
	s.gate.setCookie(w, "")
	http.Redirect(w, r, s.root, http.StatusSeeOther)
	return nil
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
