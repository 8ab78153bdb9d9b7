package suite

import (
	"regexp"
	"slices"
	"sync"

	"github.com/feedhistory/feedhistory/internal/website"
)

// published finds the ids in a website's documents: the content of an id, a
// guid, or the id in an item of a JSON feed.
var published = regexp.MustCompile(`(?s)<(?:\w+:)?id(?:\s[^>]*)?>(.*?)</|<(?:\w+:)?guid(?:\s[^>]*)?>(.*?)</|"id"\s*:\s*"?([^",}]*)`)

// A session is a running case: its website, and the present poll. Begin one with
// Case.begin, and close it.
type session struct {
	Case *Case
	URL  string // the address to give to the reader

	site *website.Site
	ids  map[string]bool

	mu   sync.Mutex
	poll int // from 1
}

// begin serves the case's website on the loopback interface until the session
// is closed.
func (c *Case) begin() (*session, error) {
	site, err := c.site()
	if err == nil {
		err = site.Listen()
	}
	if err != nil {
		return nil, err
	}
	return &session{Case: c, URL: site.URL + c.Start, site: site, ids: idsOf(c, site), poll: 1}, nil
}

// Other returns the URL of the website's other origin, without a final slash.
func (s *session) Other() string { return s.site.Other }

// Close ends the session's website.
func (s *session) Close() error { return s.site.Close() }

// Reset starts the case again.
func (s *session) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.site.Reset()
	s.poll = 1
}

// Poll returns the number of the present poll, from 1.
func (s *session) Poll() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.poll
}

// Due reports whether the feed is due at the present poll. If it is not, the
// reader decides whether to request it.
func (s *session) Due() bool { return !slices.Contains(s.Case.IfDue, s.Poll()) }

// Next begins the next poll, with its website. If the case has no more polls,
// it returns false and changes nothing.
func (s *session) Next() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.poll >= len(s.Case.Polls) {
		return false
	}
	s.poll = s.site.Poll()
	return true
}

// A request is a request to a case's website.
type request struct {
	Poll   int    `json:"poll"` // the number of the poll, from 1
	Method string `json:"method"`
	URL    string `json:"url"`                         // the path; for the other origin {{other}} and the path
	Status int    `json:"status"`                      // the status of the answer; zero if there was none
	ETag   string `json:"if_none_match,omitempty"`     // If-None-Match; "" if it was not sent
	Since  string `json:"if_modified_since,omitempty"` // If-Modified-Since; "" if it was not sent
	Agent  string `json:"user_agent,omitempty"`        // User-Agent
}

// Requests returns the requests so far.
func (s *session) Requests() []request {
	requests := []request{}
	for _, r := range s.site.Requests() {
		requests = append(requests, request{
			Poll: r.Poll, Method: r.Method, URL: s.site.Path(r.URL), Status: r.Status,
			ETag: r.Header.Get("If-None-Match"), Since: r.Header.Get("If-Modified-Since"), Agent: r.Header.Get("User-Agent"),
		})
	}
	return requests
}

// Judge judges the present poll by the reader's report, nil if there is none, and by
// its requests.
func (s *session) Judge(result *Result) []Assessment {
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
