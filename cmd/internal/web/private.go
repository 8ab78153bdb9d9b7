package web

import (
	"net/http"
	"path"
	"slices"
	"strings"
)

// How a server protects reading, if Private is set, and private feeds in any case.

// isOpen reports whether everybody may read a page on any server: the form for the
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
	kept := []string{"private"}
	for directive := range strings.SplitSeq(strings.Join(h.Values("Cache-Control"), ","), ",") {
		switch directive = strings.TrimSpace(directive); directive {
		case "", "public", "private":
		default:
			kept = append(kept, directive)
		}
	}
	h.Set("Cache-Control", strings.Join(kept, ", "))
	h.Add("Vary", "Authorization, Cookie")
}
