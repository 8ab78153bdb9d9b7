// Package website serves a text file as a website, with the faults of real websites.
//
// The file is a txtar archive. Each of its files whose name begins with a
// slash is a resource:
//
//	A page the server has lost.
//	-- /feed.atom --
//	<feed xmlns="http://www.w3.org/2005/Atom">
//	  <link rel="next" href="{{site}}/feed.atom?page=2"/>
//	</feed>
//	-- /feed.atom?page=2 --
//	Status: 404
//
// A request gets the resource with its path and query. If there is none, it gets the
// resource with its path alone, as from a server that ignores the query, or else a
// 404. The name "/feed.atom#2" means "/feed.atom" from its second request on,
// "/feed.atom@2" means it from the second poll on, however often it is requested.
//
// A resource may begin with header fields, up to an empty line. The following
// ones are not sent, but control the answer:
//
//	Status: 404      the status code; "none": the connection closes instead
//	X-Gzip: true     the body is sent as gzip
//	X-Validate: true the answer has an ETag, and is 304 if the request has it
//
// If the header has no Content-Type, the extension of the name decides; any
// other extension means Atom. In header fields and bodies, these texts are
// replaced:
//
//	{{site}}           the website's URL, without a final slash
//	{{host}}           its host and port
//	{{other}}          the URL of the same website at another origin
//	{{count}}          how often the resource has been requested, from 1
//	{{repeat 9 text}}  the text, nine times; %d is the number of the repetition
//	{{cut}}            the connection closes here, which looks like a normal
//	                   end, because there is no Content-Length
//	{{abort}}          the connection closes here, although the Content-Length
//	                   is the whole body's
package website

import (
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Site is a website made from a text file.
type Site struct {
	URL   string // without a final slash
	Other string // the same website at another origin
	Polls int    // the number of polls; zero means any number

	mu        sync.Mutex
	resources map[string][]State // by name, later states last
	counts    map[string]int     // number of requests, by name
	requests  []*Request
	poll      int
	servers   []*http.Server
}

// A Request is a request to the site.
type Request struct {
	Method string
	URL    string // absolute
	Header http.Header
	Poll   int
	Status int // the status of the answer; zero if there was none
}

// A State is one state of a resource of the site.
type State struct {
	From   int         // number of the first request to get it
	Polls  bool        // whether From is a poll instead
	Header [][2]string // with the fields that control the answer
	Body   string
}

var stateName = regexp.MustCompile(`^(/.*?)(?:([#@])(.*))?$`)

// New makes a website from the text of an archive.
func New(text string) (*Site, error) {
	s := &Site{resources: map[string][]State{}}
	s.Reset()
	for _, f := range Parse(text).Files {
		m := stateName.FindStringSubmatch(f.Name)
		if m == nil {
			continue
		}
		r := State{From: 1, Polls: m[2] == "@"}
		if m[2] != "" {
			n, err := strconv.Atoi(m[3])
			if err != nil {
				return nil, fmt.Errorf("%s: %s must be followed by a number", f.Name, m[2])
			}
			r.From = n
		}
		r.Header, r.Body = splitHeader(f.Data)
		s.resources[m[1]] = append(s.resources[m[1]], r)
	}
	return s, nil
}

// Listen serves the website at two free ports of the loopback interface until
// it is closed.
func (s *Site) Listen() error {
	var listeners [2]net.Listener
	for i, url := range []*string{&s.URL, &s.Other} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			if i > 0 {
				err = errors.Join(err, listeners[0].Close())
			}
			return err
		}
		listeners[i], *url = listener, "http://"+listener.Addr().String()
	}
	for _, listener := range listeners { // when both addresses are known, because documents contain them
		server := &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
		s.servers = append(s.servers, server)
		go func() { _ = server.Serve(listener) }()
	}
	return nil
}

// Close ends the serving begun by Listen.
func (s *Site) Close() error {
	var err error
	for _, server := range s.servers {
		err = errors.Join(err, server.Close())
	}
	s.servers = nil
	return err
}

// Poll returns the number of the present poll, from 1.
func (s *Site) Poll() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.poll
}

// Next begins the next poll. If the present one is the last, it returns false and changes
// nothing.
func (s *Site) Next() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	more := s.Polls == 0 || s.poll < s.Polls
	if more {
		s.poll++
	}
	return more
}

// Reset restores the state before any request.
func (s *Site) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts, s.requests, s.poll = map[string]int{}, nil, 1
}

var field = regexp.MustCompile(`^([A-Za-z][A-Za-z-]*): *(.*?)\r?\n?$`)

// splitHeader separates the header fields from the body of a resource.
func splitHeader(data string) (header [][2]string, body string) {
	body = data
	for line := range strings.Lines(data) {
		m := field.FindStringSubmatch(line)
		if m == nil {
			if len(header) > 0 && strings.TrimSpace(line) == "" {
				body = body[len(line):]
			}
			break
		}
		header = append(header, [2]string{m[1], m[2]})
		body = body[len(line):]
	}
	return header, body
}

// Requests returns the requests to the site so far, in order.
func (s *Site) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := make([]Request, len(s.requests))
	for i, r := range s.requests {
		requests[i] = *r
	}
	return requests
}

// Path shortens the site's own URLs to the names in the archive, with {{other}}
// in front if they are at the other origin.
func (s *Site) Path(url string) string {
	if rest, ok := strings.CutPrefix(url, s.URL); ok {
		return rest
	}
	if rest, ok := strings.CutPrefix(url, s.Other); ok {
		return "{{other}}" + rest
	}
	if host := strings.TrimPrefix(s.URL, "http://"); host != "" {
		return strings.Replace(url, "@"+host, "@{{host}}", 1)
	}
	return url
}

// Expand replaces the special texts, except {{cut}} and {{abort}}.
func (s *Site) Expand(text string) string { return s.expand(text, 0) }

var repeat = regexp.MustCompile(`(?s)\{\{repeat ([0-9]+) (.*?)\}\}`)

func (s *Site) expand(text string, count int) string {
	text = strings.NewReplacer(
		"{{site}}", s.URL, "{{host}}", strings.TrimPrefix(s.URL, "http://"), "{{other}}", s.Other, "{{count}}", strconv.Itoa(count),
	).Replace(text)
	return repeat.ReplaceAllStringFunc(text, func(match string) string {
		m := repeat.FindStringSubmatch(match)
		n, _ := strconv.Atoi(m[1])
		if !strings.Contains(m[2], "%d") {
			return strings.Repeat(m[2], n)
		}
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(m[2], "%d", strconv.Itoa(i+1)))
		}
		return b.String()
	})
}

// ServeHTTP answers a request.
func (s *Site) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r, count, answered := s.find(req)
	status := http.StatusOK
	zipped, validated := false, false
	w.Header().Set("Content-Type", ContentType(req.URL.Path))
	for _, f := range r.Header {
		name, value := f[0], s.expand(f[1], count)
		switch name {
		case "Status":
			if value == "none" {
				panic(http.ErrAbortHandler)
			}
			status, _ = strconv.Atoi(value)
		case "X-Gzip":
			zipped = true
		case "X-Validate":
			validated = true
		case "Content-Type":
			w.Header().Set(name, value)
		default:
			w.Header().Add(name, value)
		}
	}
	body := s.expand(r.Body, count)
	if validated {
		etag := fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(body)))
		w.Header().Set("ETag", etag)
		if req.Header.Get("If-None-Match") == etag {
			status, body = http.StatusNotModified, ""
		}
	}
	answered(status)
	before, _, cut := strings.Cut(body, "{{cut}}")
	if cut {
		w.Header().Set("Transfer-Encoding", "identity") // the body ends with the connection
		body = before
	}
	before, after, aborted := strings.Cut(body, "{{abort}}")
	if aborted {
		w.Header().Set("Content-Length", strconv.Itoa(len(before)+len(after)))
		body = before
	}
	if zipped {
		body = compress(body)
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
	if cut || aborted {
		_ = http.NewResponseController(w).Flush()
	}
	if aborted {
		panic(http.ErrAbortHandler)
	}
}

// Missing is the answer to requests for anything else.
var Missing = State{Header: [][2]string{{"Status", "404"}, {"Content-Type", "text/plain"}}, Body: "not found\n"}

// Resources returns the states of the resources by name.
func (s *Site) Resources() map[string][]State { return s.resources }

// find records a request, and returns its resource, how often this has been requested,
// and a function to report the status of the answer.
func (s *Site) find(req *http.Request) (r State, count int, answered func(status int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := &Request{Method: req.Method, URL: "http://" + req.Host + req.URL.RequestURI(), Header: req.Header.Clone(), Poll: s.poll}
	s.requests = append(s.requests, it)
	answered = func(status int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		it.Status = status
	}
	for _, name := range []string{req.URL.RequestURI(), req.URL.EscapedPath(), req.URL.Path} {
		states, ok := s.resources[name]
		if !ok {
			continue
		}
		s.counts[name]++
		r = Missing
		for _, state := range states {
			if state.Polls && s.poll >= state.From || !state.Polls && s.counts[name] >= state.From {
				r = state
			}
		}
		return r, s.counts[name], answered
	}
	return Missing, 0, answered
}

// ContentType returns the media type of a resource whose header has none.
func ContentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".json":
		return "application/feed+json"
	case ".rss":
		return "application/rss+xml"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	return "application/atom+xml"
}

func compress(body string) string {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, body)
	_ = z.Close()
	return b.String()
}

// An Archive is a text file with other files in it, in Go's txtar format: a comment,
// then files, each after a line "-- name --".
type Archive struct {
	Comment string
	Files   []File
}

// A File is a file in an Archive.
type File struct{ Name, Data string }

// Parse reads an archive. Every text is a valid one.
func Parse(text string) *Archive {
	a := new(Archive)
	data := &a.Comment
	for line := range strings.Lines(text) {
		name, begins := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "-- ")
		name, ends := strings.CutSuffix(name, " --")
		if !begins || !ends {
			*data += line
			continue
		}
		a.Files = append(a.Files, File{Name: strings.TrimSpace(name)})
		data = &a.Files[len(a.Files)-1].Data
	}
	return a
}

// File returns the contents of the file with the given name.
func (a *Archive) File(name string) (data string, ok bool) {
	for _, f := range a.Files {
		if f.Name == name {
			return f.Data, true
		}
	}
	return "", false
}

// Set sets the contents of the file with the given name, or adds the file.
func (a *Archive) Set(name, data string) {
	for i := range a.Files {
		if a.Files[i].Name == name {
			a.Files[i].Data = data
			return
		}
	}
	a.Files = append(a.Files, File{Name: name, Data: data})
}

// String returns the archive's text.
func (a *Archive) String() string {
	var b strings.Builder
	b.WriteString(a.Comment)
	for _, f := range a.Files {
		b.WriteString("-- " + f.Name + " --\n" + f.Data)
	}
	return b.String()
}
