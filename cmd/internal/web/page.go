package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
	"github.com/feedhistory/feedhistory/publish/serve"
	"github.com/feedhistory/feedhistory/republish"
)

// A page answers a request. If it returns an error, it has not answered yet.
type page func(w http.ResponseWriter, r *http.Request) error

// A problem is an error a person can do something about.
type problem struct {
	Status int
	Title  string // the fault
	Advice string // the remedy
}

// Error returns the Title.
func (p *problem) Error() string { return p.Title }

// noPage answers that there is no such page, or that it does not support the method.
func (s *Server) noPage(w http.ResponseWriter, r *http.Request) error {
	if allowed := s.methods(r); len(allowed) > 0 && !slices.Contains(allowed, r.Method) {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return &problem{http.StatusMethodNotAllowed, "This page does not support that method", "It supports only " + strings.Join(allowed, ", ") + ". Begin at the list of feeds."}
	}
	return &problem{http.StatusNotFound, "There is no such page", "Begin at the list of feeds."}
}

// methods returns the methods a page supports.
func (s *Server) methods(r *http.Request) (allowed []string) {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		_, pattern := s.mux.Handler(&http.Request{Method: method, URL: r.URL, Host: r.Host})
		if pattern != "/" && pattern != "" {
			allowed = append(allowed, method)
		}
	}
	return allowed
}

// of answers a request for a feed.
func (s *Server) of(h func(w http.ResponseWriter, r *http.Request, feed *mirror.Feed) error) page {
	return func(w http.ResponseWriter, r *http.Request) error {
		feed, err := s.feedOf(r)
		if err != nil {
			return err
		}
		return h(w, r, feed)
	}
}

// The maximum sizes of a form, and of one with a list of feeds, in bytes.
const (
	mostForm   = 64 << 10
	mostUpload = 8 << 20
)

// answer makes a handler from a page, which reads so many bytes of a form at most.
func (s *Server) answer(h page, most int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, most)
		if err := h(w, r); err != nil {
			s.fail(w, r, err)
		}
	})
}

// fail answers with an error.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p, ok := errors.AsType[*problem](err)
	if refused, is := errors.AsType[*republish.Error](err); is {
		p, ok = &problem{refused.Status, capitalised(refused.Message), refused.Advice}, true
	}
	elsewhere, isMoved := errors.AsType[*movedError](err)
	switch {
	case isMoved:
		http.Redirect(w, r, elsewhere.path, elsewhere.status)
		return
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		return // the client has gone
	case errors.Is(err, mirror.ErrNotFound):
		p = &problem{http.StatusNotFound, "That is not in the mirror", "It may have been removed. Begin at the list of feeds."}
	case errors.Is(err, sqlstore.ErrReadOnly):
		p = &problem{http.StatusServiceUnavailable, "This database can only be read", "Its server is a replica, or may not be written to. Change the feeds on the server that polls them."}
	case !ok:
		s.Logger.ErrorContext(r.Context(), "a request failed", "path", r.URL.Path, "err", err)
		p = &problem{
			http.StatusInternalServerError, "Something went wrong here",
			"Try again in a moment. If the problem persists, see the server's log.",
		}
	}
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	if err := s.render(w, r, p.Status, "problem", p.Title, p); err != nil {
		s.Logger.ErrorContext(r.Context(), "a page cannot be written", "page", "problem", "err", err)
		http.Error(w, p.Title, p.Status)
	}
}

// The bounds for the memory of pages. Whoever makes one waits for its turn; whoever is slow to
// receive a large one, or does not read at all, takes no more than these bytes together, and
// for a limited time.
const (
	mostBuilding = 4                // pages with entries made at once
	turnTime     = 20 * time.Second // how long a request waits for its turn
	smallPage    = 64 << 10         // pages up to this size are always sent
	mostSending  = 64 << 20         // bytes of larger pages being sent at once
	sendTime     = time.Minute      // for sending a page, and
	slowest      = 16 << 10         // bytes a second beyond that
)

var errBusy = &problem{
	http.StatusServiceUnavailable, "Too many pages are being read at once", "Try again in a moment.",
}

// A turnWriter is for a page that holds a turn until it has been made.
type turnWriter struct {
	http.ResponseWriter
	made func()
}

// Unwrap is for http.ResponseController.
func (w *turnWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// bounded makes few of these pages at once, because each reads entries, which may be large.
func (s *Server) bounded(h page) page {
	return func(w http.ResponseWriter, r *http.Request) error {
		limit := time.NewTimer(turnTime)
		defer limit.Stop()
		select {
		case s.building <- struct{}{}:
		case <-r.Context().Done():
			return r.Context().Err()
		case <-limit.C:
			return errBusy
		}
		made := sync.OnceFunc(func() { <-s.building })
		defer made()
		return h(&turnWriter{w, made}, r)
	}
}

// send answers with a page, unless too much is being sent already.
func (s *Server) send(w http.ResponseWriter, r *http.Request, status int, text []byte) error {
	if size := int64(len(text)); size > smallPage {
		defer s.sending.Add(-size)
		if s.sending.Add(size) > cmp.Or(s.room, mostSending) {
			return errBusy
		}
	}
	body := serve.NewBody(text)
	if turn, ok := w.(*turnWriter); ok {
		turn.made()
	}
	connection := http.NewResponseController(w)
	_ = connection.SetWriteDeadline(time.Now().Add(sendTime + time.Duration(len(text)/slowest)*time.Second)) // tests without a connection have none
	body.Serve(w, r, status)
	_ = connection.Flush()
	_ = connection.SetWriteDeadline(time.Time{}) // of the next answer
	return nil
}

//go:embed templates/*.html
var templateFiles embed.FS

// newTemplates returns the templates of a server whose path is root.
func newTemplates(root string) *template.Template {
	return template.Must(templates().Clone()).Funcs(template.FuncMap{
		"asset": func(name string) string { return root + assets().path(name) },
		"root":  func() string { return root },
	})
}

// templates are parsed by the first server: no other verb waits for them.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"asset":     func(string) string { return "" }, // see newTemplates
		"root":      func() string { return "" },
		"redact":    feedhistory.Redact,
		"count":     count,
		"day":       day,
		"month":     func(t time.Time) string { return t.UTC().Format("January 2006") },
		"moment":    func(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") },
		"machine":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"near":      func(t time.Time) string { return near(t, time.Now()) },
		"plural":    plural,
		"newreader": func(feed string) readersPage { return readersPage{Feed: feed} },
		"tail":      tail,
		"verdict":   republish.Explain,
		"aside":     verdictAside,
	}).ParseFS(templateFiles, "templates/*.html"))
})

// A layout is the frame of every page.
type layout struct {
	Title string
	Page  string // the name of the template
	Path  string
	Token bool         // whether there is a token
	May   bool         // whether the visitor may change anything
	Out   bool         // whether the visitor can log out
	Style template.CSS // the style sheet in the page, of a visitor who does not have it yet; "" for a link
	Look  []string     // the classes of the page

	Pictures bool // whether pictures come through the server
	View     any
}

// Looks are the choices of how the page looks.
func (l layout) Looks() []lookChoice { return looks }

// Refresh reports whether the page must be loaded again soon if there is no script.
func (l layout) Refresh() bool {
	refresher, ok := l.View.(interface{ refresh() bool })
	return ok && refresher.refresh()
}

// Alternates returns the feeds of the page.
func (l layout) Alternates() []address {
	if offers, ok := l.View.(interface{ alternates() []address }); ok {
		return offers.alternates()
	}
	return nil
}

// render answers with a page, either all of it or nothing.
func (s *Server) render(w http.ResponseWriter, r *http.Request, status int, name, title string, view any) error {
	permit := permitOf(r)
	l := layout{
		Title: title, Page: name, Path: s.at(r.URL.RequestURI()), Token: s.Token != "", May: permit.role == owner, Out: permit.loggedIn, View: view, Look: lookOf(r), Pictures: s.pictures != nil,
	}
	if from := r.Header.Get("Sec-Fetch-Site"); from != "" && from != "same-origin" {
		l.Style = template.CSS(assets()["style.css"].text)
	}
	var body, whole bytes.Buffer
	if err := s.templates.ExecuteTemplate(&body, name+".html", l); err != nil {
		return err
	}
	err := s.templates.ExecuteTemplate(&whole, "layout.html", struct {
		layout
		Body template.HTML // written by a template
	}{l, template.HTML(body.String())})
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Add("Vary", "Cookie, Sec-Fetch-Site") // the cookie decides on the buttons, the site on the style
	return s.send(w, r, status, whole.Bytes())
}

// capitalised returns a message with a capital letter.
func capitalised(message string) string {
	if message == "" {
		return ""
	}
	return strings.ToUpper(message[:1]) + message[1:]
}

// count returns a number with separated thousands.
func count(n any) string {
	digits := fmt.Sprint(n)
	var b strings.Builder
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// plural returns a number with its noun.
func plural(n any, one, many string) string {
	if fmt.Sprint(n) == "1" {
		return "1 " + one
	}
	return count(n) + " " + many
}

// near says approximately how far away a time is.
func near(t, now time.Time) string {
	d := t.Sub(now)
	text := ""
	switch far := d.Abs(); {
	case far < time.Minute:
		return "now"
	case far < 90*time.Minute:
		text = plural(int(far.Round(time.Minute)/time.Minute), "minute", "minutes")
	case far < 48*time.Hour:
		text = plural(int(far.Round(time.Hour)/time.Hour), "hour", "hours")
	default:
		text = plural(int(far/(24*time.Hour)), "day", "days")
	}
	if d < 0 {
		return text + " ago"
	}
	return "in " + text
}

// tail shortens a URL to the part different from similar URLs.
func tail(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	text := strings.TrimPrefix(u.Path, "/")
	if u.RawQuery != "" {
		text += "?" + u.RawQuery
	}
	return cmp.Or(text, u.Host)
}

// verdictAside explains a verdict whose word is not clear by itself.
func verdictAside(v feedhistory.Verdict) string {
	switch v {
	case feedhistory.VerdictWindow:
		return "recent only"
	case feedhistory.VerdictLossy:
		return "may have holes"
	}
	return ""
}

//go:embed static
var staticFiles embed.FS

// An asset is a static file under a name with a digest of its content.
type asset struct {
	name, mediaType string
	text            []byte
	body            *serve.Body
}

// assets are the static files by their names in the directory.
var assets = sync.OnceValue(loadAssets)

type assetSet map[string]*asset

func loadAssets() assetSet {
	set := assetSet{}
	entries, err := staticFiles.ReadDir("static")
	for _, entry := range entries {
		var data []byte
		if data, err = staticFiles.ReadFile("static/" + entry.Name()); err != nil {
			break
		}
		sum := sha256.Sum256(data)
		extension := path.Ext(entry.Name())
		set[entry.Name()] = &asset{
			name:      strings.TrimSuffix(entry.Name(), extension) + "-" + hex.EncodeToString(sum[:6]) + extension,
			mediaType: mime.TypeByExtension(extension), text: data, body: serve.NewBody(data),
		}
	}
	if err != nil {
		panic(fmt.Sprintf("the embedded files: %v", err)) // the files are part of the program
	}
	return set
}

// path returns the path of a file below the server's.
func (set assetSet) path(name string) string { return "static/" + set[name].name }

// serveStatic answers with a static file, which never changes under its name.
func (s *Server) serveStatic(w http.ResponseWriter, r *http.Request) error {
	for _, a := range assets() {
		if a.name == r.PathValue("name") {
			w.Header().Set("Content-Type", a.mediaType)
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
			a.body.Serve(w, r, http.StatusOK)
			return nil
		}
	}
	return s.noPage(w, r)
}
