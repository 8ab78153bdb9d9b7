package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
)

const cookieName = "feedhistory"

// mayChange reports whether a request may change something: it shows the token, or
// the server has none and is not Private.
func (s *Server) mayChange(r *http.Request) bool {
	return s.Token == "" && !s.Private || s.hasToken(r)
}

// hasToken reports whether a request shows the token: as a cookie or, from a
// program, as a bearer token (RFC 6750) or as the password of any user (RFC 7617),
// which is what feed readers can do.
func (s *Server) hasToken(r *http.Request) bool {
	if s.Token == "" {
		return false
	}
	if _, password, ok := r.BasicAuth(); ok {
		return same(s.proof(password), s.proof(s.Token))
	}
	scheme, bearer, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") { // RFC 9110 §11.1
		return same(s.proof(strings.TrimSpace(bearer)), s.proof(s.Token))
	}
	cookie, err := r.Cookie(cookieName)
	return err == nil && same(cookie.Value, s.proof(s.Token))
}

// proof returns what a cookie contains instead of the token.
func (s *Server) proof(token string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("cookie of " + s.base()))
	return hex.EncodeToString(mac.Sum(nil))
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// change runs a page only if the request may change anything.
func (s *Server) change(h page) page {
	return func(w http.ResponseWriter, r *http.Request) error {
		if s.mayChange(r) {
			return h(w, r)
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		return s.render(w, r, http.StatusUnauthorized, "token", "Token needed", tokenView{Next: backTo(r), Private: s.Private})
	}
}

type tokenView struct {
	Next    string // the page to return to
	Wrong   bool
	Private bool // reading needs the token, too
}

// askToken shows the form for the token.
func (s *Server) askToken(w http.ResponseWriter, r *http.Request) error {
	return s.render(w, r, http.StatusOK, "token", "Token", tokenView{Next: ownPath(r.URL.Query().Get("next")), Private: s.Private})
}

// takeToken reads the token from that form.
func (s *Server) takeToken(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	next, token := ownPath(r.FormValue("next")), r.FormValue("token")
	if s.Token == "" || !same(s.proof(token), s.proof(s.Token)) {
		return s.render(w, r, http.StatusForbidden, "token", "Token", tokenView{Next: next, Wrong: true, Private: s.Private})
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: s.proof(token), Path: "/", MaxAge: 90 * 24 * 60 * 60,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: strings.HasPrefix(s.base(), "https:"),
	})
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}

// backTo returns the page of this server that a request came from.
func backTo(r *http.Request) string {
	from, err := url.Parse(r.Referer())
	if err != nil || from.Host != r.Host {
		return "/"
	}
	return ownPath(from.RequestURI())
}

// ownPath returns a path of this server, or the first page for any other
// address.
func ownPath(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(path, "//") ||
		strings.Contains(path, "\\") {
		return "/"
	}
	return path
}
