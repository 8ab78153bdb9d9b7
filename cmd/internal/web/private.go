package web

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// How a server protects reading, if Private is set, and private feeds in any case.

// isOpen reports whether a request is for what everybody may read on any server:
// the form for the token, and the files that its page loads.
func isOpen(r *http.Request) bool {
	return r.URL.Path == "/token" || strings.HasPrefix(r.URL.Path, "/static/")
}

// refuse asks for the token: it sends feed readers a challenge for a password (RFC
// 7617), and people a form. It does not reveal whether the requested page exists.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Add("WWW-Authenticate", "Bearer")
	if slices.Contains([]string{".atom", ".rss", ".opml"}, path.Ext(r.URL.Path)) {
		h.Add("WWW-Authenticate", `Basic realm="Feed history", charset="UTF-8"`)
	}
	next := "/"
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		next = ownPath(r.URL.RequestURI())
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

// isPrivate reports whether the feed with a name is private.
func (s *Server) isPrivate(name string) (bool, error) {
	feed, err := s.all.feed(context.Background(), name)
	if errors.Is(err, mirror.ErrNotFound) {
		return false, nil
	}
	return err == nil && feed.Private, err
}

// A divided is an Output that keeps the directories of private feeds apart.
type divided struct {
	publish.Output                // of the other feeds
	private        publish.Output // nil means that private feeds are not published
	isPrivate      func(name string) (bool, error)
}

// parts returns the parts that the server has.
func (d *divided) parts() []publish.Output {
	if d.private == nil {
		return []publish.Output{d.Output}
	}
	return []publish.Output{d.Output, d.private}
}

// of returns the part that a file belongs to.
func (d *divided) of(op, file string) (publish.Output, error) {
	name, _, _ := strings.Cut(file, "/")
	private, err := d.isPrivate(name)
	switch {
	case err != nil:
		return nil, err
	case !private:
		return d.Output, nil
	case d.private == nil:
		return nil, &fs.PathError{Op: op, Path: file, Err: fs.ErrNotExist}
	}
	return d.private, nil
}

// Open implements fs.FS.
func (d *divided) Open(name string) (fs.File, error) {
	out, err := d.of("open", name)
	if err != nil {
		return nil, err
	}
	return out.Open(name)
}

// Put implements publish.Output.
func (d *divided) Put(name string, data []byte) error {
	out, err := d.of("put", name)
	if err != nil {
		return err
	}
	return out.Put(name, data)
}

// Remove implements publish.Output.
func (d *divided) Remove(name string) error {
	out, err := d.of("remove", name)
	if err != nil {
		return err
	}
	return out.Remove(name)
}

// Lock implements publish.Output.
func (d *divided) Lock() (unlock func() error, err error) {
	first, err := d.Output.Lock()
	if err != nil || d.private == nil {
		return first, err
	}
	second, err := d.private.Lock()
	if err != nil {
		return nil, errors.Join(err, first())
	}
	return func() error { return errors.Join(second(), first()) }, nil
}
