package web

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
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

// answer makes a handler from a page.
func (s *Server) answer(h page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
		status := http.StatusTemporaryRedirect
		if elsewhere.forGood {
			status = http.StatusPermanentRedirect
		}
		http.Redirect(w, r, elsewhere.path, status)
		return
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		return // the client has gone
	case errors.Is(err, mirror.ErrNotFound):
		p = &problem{http.StatusNotFound, "That is not in the mirror", "It may have been removed. Begin at the list of feeds."}
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

//go:embed templates/*.html
var templateFiles embed.FS

// newTemplates returns the templates of a server whose path is root.
func newTemplates(root string) *template.Template {
	return template.Must(templates.Clone()).Funcs(template.FuncMap{
		"asset": func(name string) string { return root + assets.path(name) },
		"root":  func() string { return root },
	})
}

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"asset":   func(string) string { return "" }, // see newTemplates
	"root":    func() string { return "" },
	"count":   count,
	"day":     day,
	"month":   func(t time.Time) string { return t.UTC().Format("January 2006") },
	"moment":  func(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") },
	"machine": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"near":    func(t time.Time) string { return near(t, time.Now()) },
	"plural":  plural,
	"tail":    tail,
	"verdict": verdictText,
	"aside":   verdictAside,
	"verdictnamed": func(name string) (string, error) {
		var v feedhistory.Verdict
		err := v.UnmarshalText([]byte(name))
		return verdictText(v), err
	},
}).ParseFS(templateFiles, "templates/*.html"))

// A layout is the frame of every page.
type layout struct {
	Title string
	Page  string // the name of the template
	Path  string
	Token bool // whether there is a token
	May   bool // whether the visitor may change anything
	Out   bool // whether the visitor can log out
	View  any
}

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
	l := layout{
		Title: title, Page: name, Path: s.at(r.URL.RequestURI()), Token: s.Token != "", May: s.gate.mayChange(r), Out: s.gate.hasCookie(r), View: view,
	}
	var body, all bytes.Buffer
	if err := s.templates.ExecuteTemplate(&body, name+".html", l); err != nil {
		return err
	}
	err := s.templates.ExecuteTemplate(&all, "layout.html", struct {
		layout
		Body template.HTML // written by a template
	}{l, template.HTML(body.String())})
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Add("Vary", "Cookie") // the cookie decides on the buttons
	republish.NewBody(all.Bytes()).Serve(w, r, status)
	return nil
}

// capitalised returns an error's message as the title of a page.
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
	case feedhistory.Window:
		return "recent only"
	case feedhistory.Lossy:
		return "may have holes"
	}
	return ""
}

// verdictText explains a verdict on a mirror.
func verdictText(v feedhistory.Verdict) string {
	switch v {
	case feedhistory.Whole:
		return "Every entry the feed says it has is here."
	case feedhistory.Window:
		return "The feed lists only its latest entries. These are the ones collected so far."
	case feedhistory.Lossy:
		return "All pages of the feed are here, but a paged feed cannot promise to have everything."
	}
	return "Something is known to be missing."
}
