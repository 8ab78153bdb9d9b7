package suite

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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
