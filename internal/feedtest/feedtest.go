// Package feedtest serves a text file as a website, with the faults that real
// ones have.
//
// The file is a txtar archive. Each of its files whose name begins with a
// slash is a resource:
//
//	A page that the server has lost.
//	-- /feed.atom --
//	<feed xmlns="http://www.w3.org/2005/Atom">
//	  <link rel="next" href="{{site}}/feed.atom?page=2"/>
//	</feed>
//	-- /feed.atom?page=2 --
//	Status: 404
//
// A request gets the resource of its path and query; if there is none, that of
// its path alone, like a server that ignores the query; else a 404. The name
// "/feed.atom#2" stands for what "/feed.atom" has become at its second request
// and stays from there on.
//
// A resource may begin with header fields, up to an empty line. These are not
// sent, but say how to answer:
//
//	Status: 404      the status code; "none": the connection closes instead
//	X-Gzip: true     the body is sent as gzip
//
// The Content-Type is that of the name's extension if the header has none,
// else Atom's. In header fields and bodies these have a meaning:
//
//	{{site}}           the website's URL, without a slash at its end
//	{{other}}          the same website's URL at another origin
//	{{count}}          how often the resource has been requested, from 1
//	{{repeat 9 text}}  the text, nine times; a %d in it is which, from 1
//	{{cut}}            the connection closes here, which looks like a normal
//	                   end: there is no Content-Length
//	{{abort}}          the connection closes here, although the Content-Length
//	                   has announced all of the body
package feedtest

import (
	"compress/gzip"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A Site is a website made from a text file.
type Site struct {
	URL   string // without a slash at its end
	Other string // the same at another origin

	mu        sync.Mutex
	resources map[string][]resource // by name; the later states later
	counts    map[string]int        // requests, by name
	requests  []Request
}

// A Request is one that the site got.
type Request struct {
	Method string
	URL    string // absolute
	Header http.Header
}

// A resource is one state of a resource.
type resource struct {
	from   int // which request is the first to see it
	header [][2]string
	body   string
}

// ServeFile is Serve for the archive in the file with the given name.
func ServeFile(t testing.TB, name string) *Site {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return Serve(t, string(text))
}

// Serve starts a website on the loopback interface, from the text of an
// archive. It ends with the test.
func Serve(t testing.TB, text string) *Site {
	t.Helper()
	s := &Site{resources: map[string][]resource{}, counts: map[string]int{}}
	for _, f := range Parse(text).Files {
		if !strings.HasPrefix(f.Name, "/") {
			continue
		}
		name, state, changed := strings.Cut(f.Name, "#")
		r := resource{from: 1}
		if changed {
			n, err := strconv.Atoi(state)
			if err != nil {
				t.Fatalf("%s: the number of a request should follow #", f.Name)
			}
			r.from = n
		}
		r.header, r.body = splitHeader(f.Data)
		s.resources[name] = append(s.resources[name], r)
	}
	s.URL, s.Other = s.listen(t), s.listen(t)
	return s
}

func (s *Site) listen(t testing.TB) string {
	server := httptest.NewUnstartedServer(s)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

var field = regexp.MustCompile(`^([A-Za-z][A-Za-z-]*): *(.*?)\r?\n?$`)

// splitHeader takes the header fields off a resource.
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

// Requests returns the requests that the site has got, in order.
func (s *Site) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Path shortens the site's own URLs to what the archive calls them, with
// {{other}} before those of its other origin.
func (s *Site) Path(url string) string {
	if rest, ok := strings.CutPrefix(url, s.URL); ok {
		return rest
	}
	if rest, ok := strings.CutPrefix(url, s.Other); ok {
		return "{{other}}" + rest
	}
	return url
}

// Expand replaces what has a meaning in a text, other than {{cut}} and
// {{abort}}.
func (s *Site) Expand(text string) string { return s.expand(text, 0) }

var repeat = regexp.MustCompile(`(?s)\{\{repeat ([0-9]+) (.*?)\}\}`)

func (s *Site) expand(text string, count int) string {
	text = strings.NewReplacer(
		"{{site}}", s.URL, "{{other}}", s.Other, "{{count}}", strconv.Itoa(count),
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
	r, count := s.find(req)
	status := http.StatusOK
	zipped := false
	w.Header().Set("Content-Type", contentType(req.URL.Path))
	for _, f := range r.header {
		name, value := f[0], s.expand(f[1], count)
		switch name {
		case "Status":
			if value == "none" {
				panic(http.ErrAbortHandler)
			}
			status, _ = strconv.Atoi(value)
		case "X-Gzip":
			zipped = true
		case "Content-Type":
			w.Header().Set(name, value)
		default:
			w.Header().Add(name, value)
		}
	}
	body := s.expand(r.body, count)
	before, _, cut := strings.Cut(body, "{{cut}}")
	if cut {
		w.Header().Set("Transfer-Encoding", "identity") // ends with the connection
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

var missing = resource{header: [][2]string{{"Status", "404"}, {"Content-Type", "text/plain"}}, body: "not found\n"}

// find records a request, and returns the resource that it gets and how often
// that has been requested.
func (s *Site) find(req *http.Request) (r resource, count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Request{
		Method: req.Method, URL: "http://" + req.Host + req.URL.RequestURI(), Header: req.Header.Clone(),
	})
	for _, name := range []string{req.URL.RequestURI(), req.URL.EscapedPath(), req.URL.Path} {
		states, ok := s.resources[name]
		if !ok {
			continue
		}
		s.counts[name]++
		r = missing
		for _, state := range states {
			if s.counts[name] >= state.from {
				r = state
			}
		}
		return r, s.counts[name]
	}
	return missing, 0
}

func contentType(name string) string {
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
