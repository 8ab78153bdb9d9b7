package conformance

import (
	"regexp"
	"sync"

	"github.com/feedhistory/feedhistory/internal/website"
)

// published finds the ids that a website's documents have: what stands in an id,
// a guid or a JSON feed's item.
var published = regexp.MustCompile(`(?s)<(?:\w+:)?id(?:\s[^>]*)?>(.*?)</|<(?:\w+:)?guid(?:\s[^>]*)?>(.*?)</|"id"\s*:\s*"?([^",}]*)`)

// A Session is a case that is being tried: its website, and the poll that is
// under way. Begin one with [Case.Begin], and close it.
type Session struct {
	Case *Case
	URL  string // the address that the reader is to be given

	site *website.Site
	ids  map[string]bool

	mu   sync.Mutex
	poll int // from 1
}

// Begin serves the case's website on the loopback interface until the session
// is closed.
func (c *Case) Begin() (*Session, error) {
	site, err := c.site()
	if err == nil {
		err = site.Listen()
	}
	if err != nil {
		return nil, err
	}
	return &Session{Case: c, URL: site.URL + c.Start, site: site, ids: idsOf(c, site), poll: 1}, nil
}

// Close ends the session's website.
func (s *Session) Close() error { return s.site.Close() }

// Reset begins the case from its beginning.
func (s *Session) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.site.Reset()
	s.poll = 1
}

// Poll returns the number of the poll that is under way, from 1.
func (s *Session) Poll() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.poll
}

// Next changes the website to what it is at the next poll. It reports false, and
// changes nothing, where the case has no more.
func (s *Session) Next() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.poll >= len(s.Case.Polls) {
		return false
	}
	s.poll = s.site.Poll()
	return true
}

// A Request is one that a case's website got.
type Request struct {
	Poll   int    `json:"poll"`
	Method string `json:"method"`
	URL    string `json:"url"` // a path, or {{other}} and a path for the other origin
	Status int    `json:"status"`
	ETag   string `json:"if_none_match,omitempty"`
	Since  string `json:"if_modified_since,omitempty"`
	Agent  string `json:"user_agent,omitempty"`
}

// Requests returns what was requested so far.
func (s *Session) Requests() []Request {
	requests := []Request{}
	for _, r := range s.site.Requests() {
		requests = append(requests, Request{
			Poll: r.Poll, Method: r.Method, URL: s.site.Path(r.URL), Status: r.Status,
			ETag: r.Header.Get("If-None-Match"), Since: r.Header.Get("If-Modified-Since"), Agent: r.Header.Get("User-Agent"),
		})
	}
	return requests
}

// Judge judges the poll that is under way: what the reader told of it, nil where
// it told nothing, and what was requested.
func (s *Session) Judge(result *Result) []Finding {
	poll := s.Poll()
	r := &round{result: result, path: s.site.Path, ids: s.ids}
	for _, request := range s.site.Requests() {
		if request.Poll == poll {
			r.requests = append(r.requests, request)
		}
	}
	if len(s.Case.Polls) == 0 {
		poll = 0
	}
	return s.Case.judge(poll, r)
}
