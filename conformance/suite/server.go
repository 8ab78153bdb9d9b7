package suite

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory/internal/website"
)

// A Server serves cases, each at a different address, and controls all of them
// over HTTP:
//
//	GET  /                    the list of cases, as text
//	GET  /index.json          the index, with the url of each case
//	GET  /cases/NAME          one case: its index, url, poll and file
//	GET  /cases/NAME/requests the requests so far
//	POST /cases/NAME/judge    the findings on the present poll, for the JSON that
//	                          a reader printed, or for an empty body
//	POST /cases/NAME/poll     begin the next poll; 409 after the last
//	POST /cases/NAME/reset    start the case again
//
// Make one with [NewServer], and close it.
type Server struct {
	sessions []*session
	named    map[string]*session
	mux      *http.ServeMux
}

// A live is a case being served.
type live struct {
	*Case
	URL    string `json:"url"`
	Poll   int    `json:"poll"`             // the number of the present poll, from 1
	Source string `json:"source,omitempty"` // the case's file
}

// NewServer serves cases on the loopback interface until it is closed.
func NewServer(cases []*Case) (*Server, error) {
	s := &Server{named: map[string]*session{}, mux: http.NewServeMux()}
	for _, c := range cases {
		if c == nil {
			return nil, errors.Join(errors.New("conformance: NewServer: a Case is nil"), s.Close())
		}
		session, err := c.begin()
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.sessions = append(s.sessions, session)
		s.named[c.Name] = session
	}
	s.mux.HandleFunc("GET /{$}", s.list)
	s.mux.HandleFunc("GET /index.json", s.index)
	for pattern, handle := range map[string]func(http.ResponseWriter, *http.Request, *session){
		"GET /cases/{kind}/{name}":          show,
		"GET /cases/{kind}/{name}/requests": requests,
		"POST /cases/{kind}/{name}/judge":   judge,
		"POST /cases/{kind}/{name}/poll":    next,
		"POST /cases/{kind}/{name}/reset":   reset,
	} {
		s.mux.HandleFunc(pattern, s.of(handle))
	}
	return s, nil
}

// Close stops all websites.
func (s *Server) Close() error {
	var err error
	for _, session := range s.sessions {
		err = errors.Join(err, session.Close())
	}
	return err
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// of finds the case named by a request.
func (s *Server) of(handle func(http.ResponseWriter, *http.Request, *session)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		session, ok := s.named[r.PathValue("kind")+"/"+r.PathValue("name")]
		if !ok {
			http.Error(w, "no such case; see /index.json", http.StatusNotFound)
			return
		}
		handle(w, r, session)
	}
}

func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "RFC 5005 conformance %s: %d cases. Everything as JSON: /index.json\n\n", version, len(s.sessions))
	for _, session := range s.sessions {
		fmt.Fprintf(w, "%s\n  %s\n  %s\n", session.Case.Name, session.URL, session.Case.Why)
	}
}

func (s *Server) index(w http.ResponseWriter, _ *http.Request) {
	live := make([]live, len(s.sessions))
	for i, session := range s.sessions {
		live[i] = session.live()
	}
	answer(w, http.StatusOK, map[string]any{"suite": suite, "version": version, "cases": live})
}

func (s *session) live() live { return live{Case: s.Case, URL: s.URL, Poll: s.Poll()} }

func show(w http.ResponseWriter, _ *http.Request, s *session) {
	live := s.live()
	live.Source = s.Case.Source
	answer(w, http.StatusOK, live)
}

func requests(w http.ResponseWriter, _ *http.Request, s *session) {
	answer(w, http.StatusOK, s.Requests())
}

func judge(w http.ResponseWriter, r *http.Request, s *session) {
	result, err := readResult(http.MaxBytesReader(w, r.Body, mostPrinted))
	if err != nil && !errors.Is(err, errNothing) {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	findings := s.Judge(result)
	answer(w, http.StatusOK, map[string]any{
		"name": s.Case.Name, "poll": s.Poll(), "outcome": worst(findings), "findings": findings,
	})
}

func next(w http.ResponseWriter, _ *http.Request, s *session) {
	if !s.Next() {
		http.Error(w, "the case has no more polls", http.StatusConflict)
		return
	}
	answer(w, http.StatusOK, s.live())
}

func reset(w http.ResponseWriter, _ *http.Request, s *session) {
	s.Reset()
	answer(w, http.StatusOK, s.live())
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	_ = e.Encode(value)
}

// A manifest lists the cases of the folder data, which has them as plain data for
// programs in any language.
type manifest struct {
	Suite   string        `json:"suite"`
	Version string        `json:"version"`
	Site    string        `json:"site"`    // placeholder of the website's host and port
	Other   string        `json:"other"`   // placeholder of its other origin's host and port
	Count   string        `json:"count"`   // placeholder of the number of requests for a resource so far, from 1
	Missing siteAnswer    `json:"missing"` // the answer to every other request
	Cases   []caseSummary `json:"cases"`
}

// A caseSummary is a case in a manifest. The file NAME.json has all of it.
type caseSummary struct {
	Name  string   `json:"name"`
	Why   string   `json:"why"`
	Level string   `json:"level"`
	Flags []string `json:"flags"`
}

// A siteData is a case as plain data.
type siteData struct {
	*Case
	Resources []siteResource `json:"resources"`
}

// A siteResource is a resource of a website, with everything it answers in turn.
type siteResource struct {
	Path   string       `json:"path"`   // with its query; a request without such a resource gets the one of its path alone
	States []siteAnswer `json:"states"` // the last one begun is sent
}

// A siteAnswer is a resource's response. Of Body, Gzip and Raw at most one is set.
type siteAnswer struct {
	Request  int         `json:"request,omitempty"`        // the first request to get it, from 1
	Poll     int         `json:"poll,omitempty"`           // the first poll at which requests get it, from 1
	Status   int         `json:"status"`                   // 0: the connection closes without an answer
	Header   [][2]string `json:"header"`                   // in this order
	Body     string      `json:"body,omitempty"`           // text, in UTF-8
	Gzip     string      `json:"body_gzip,omitempty"`      // the gzip of the body, in base64, because the body is large
	Raw      string      `json:"body_base64,omitempty"`    // the body in base64
	Length   *int        `json:"content_length,omitempty"` // nil: the body's. Otherwise the connection closes after the body
	Cut      bool        `json:"cut,omitempty"`            // there is no Content-Length, and the connection closes after the body
	Validate bool        `json:"validate,omitempty"`       // there is an ETag, the quoted SHA-256 of the body in hexadecimal; If-None-Match with it gets 304
}

// mostPlain is the largest body, in bytes, to be written as text.
const mostPlain = 16 << 10

// siteData returns the case as plain data.
func (c *Case) siteData() (*siteData, error) {
	plain, _, err := website.Plain(c.Source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	named := *c
	named.Requirements = slices.Clone(c.Requirements)
	names := strings.NewReplacer("{{host}}", website.PlainSite, "{{other}}", "http://"+website.PlainOther)
	for i, r := range named.Requirements {
		named.Requirements[i].Of = names.Replace(r.Of)
	}
	w := &siteData{Case: &named}
	for _, p := range plain {
		r := siteResource{Path: p.Name}
		for _, state := range p.States {
			r.States = append(r.States, newAnswer(state))
		}
		w.Resources = append(w.Resources, r)
	}
	return w, nil
}

func newAnswer(p website.PlainState) siteAnswer {
	s := siteAnswer{Status: p.Status, Header: p.Header, Cut: p.Cut, Validate: p.Validate}
	if p.Polls {
		s.Poll = p.From
	} else {
		s.Request = p.From
	}
	if p.Length != len(p.Body) {
		s.Length = &p.Length
	}
	switch {
	case !utf8.ValidString(p.Body): // gzip is not
		s.Raw = base64.StdEncoding.EncodeToString([]byte(p.Body))
	case len(p.Body) > mostPlain:
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, p.Body)
		_ = z.Close()
		s.Gzip = base64.StdEncoding.EncodeToString(b.Bytes())
	default:
		s.Body = p.Body
	}
	return s
}

// WriteTo writes the manifest as JSON.
func (m *manifest) WriteTo(w io.Writer) (int64, error) { return writeJSON(w, m) }

// WriteTo writes the case as JSON.
func (s *siteData) WriteTo(w io.Writer) (int64, error) { return writeJSON(w, s) }

func writeJSON(w io.Writer, value any) (int64, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return 0, err
	}
	return b.WriteTo(w)
}

// newManifest returns the manifest of some cases.
func newManifest(cases []*Case) (*manifest, error) {
	_, missing, err := website.Plain("")
	m := &manifest{
		Suite: suite, Version: version, Site: website.PlainSite, Other: website.PlainOther, Count: website.PlainCount, Missing: newAnswer(missing),
	}
	for _, c := range cases {
		m.Cases = append(m.Cases, caseSummary{c.Name, c.Why, c.Level, c.Flags})
	}
	return m, err
}
