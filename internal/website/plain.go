package website

import (
	"cmp"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Placeholders in plain resources, for values only a server knows.
const (
	PlainSite  = "site.invalid"  // the host and port of the website
	PlainOther = "other.invalid" // those of its other origin
	PlainCount = "__count__"     // how often the resource has been requested, from 1
)

// A PlainResource is a resource without templates: its states in their order, of which
// the last one begun is sent.
type PlainResource struct {
	Name   string // path and query, or path alone
	States []PlainState
}

// A PlainState is an answer without templates.
type PlainState struct {
	From     int         // number of the first request, or of the first poll, to get it
	Polls    bool        // From is a poll
	Status   int         // zero: the connection closes without an answer
	Header   [][2]string // with Content-Type first
	Body     string      // as it is sent
	Length   int         // the Content-Length
	Cut      bool        // there is no Content-Length; the connection closes after the body
	Validate bool        // there is an ETag, the SHA-256 of the body; a request with it gets a 304
}

// Plain returns the resources of a website without templates, and the answer to
// every other request.
func Plain(text string) ([]PlainResource, PlainState, error) {
	s, err := New(strings.ReplaceAll(text, "{{count}}", PlainCount))
	if err != nil {
		return nil, PlainState{}, err
	}
	s.URL, s.Other = "http://"+PlainSite, "http://"+PlainOther
	var resources []PlainResource
	for name, states := range s.resources {
		r := PlainResource{Name: name}
		for _, state := range states {
			plain := s.plain(name, state)
			if plain.isCoded() && strings.Contains(state.body, "{{") && strings.Contains(s.expand(state.body, 0), ".invalid") {
				return nil, PlainState{}, fmt.Errorf("%s: a body that is sent as gzip names its website", name)
			}
			r.States = append(r.States, plain)
		}
		resources = append(resources, r)
	}
	slices.SortFunc(resources, func(a, b PlainResource) int { return cmp.Compare(a.Name, b.Name) })
	return resources, s.plain("", missing), nil
}

// isCoded reports whether the body is gzip.
func (p *PlainState) isCoded() bool {
	return slices.Contains(p.Header, [2]string{"Content-Encoding", "gzip"})
}

func (s *Site) plain(name string, r resource) PlainState {
	name, _, _ = strings.Cut(name, "?")
	p, coded := PlainState{From: r.from, Polls: r.polls, Status: 200}, false
	kind := contentType(path.Clean("/" + name))
	for _, f := range r.header {
		switch value := s.expand(f[1], 0); f[0] {
		case "Status":
			p.Status, _ = strconv.Atoi(value) // zero for "none"
		case "X-Gzip":
			coded = true
		case "X-Validate":
			p.Validate = true
		case "Content-Type":
			kind = value
		default:
			p.Header = append(p.Header, [2]string{f[0], value})
		}
	}
	p.Header = slices.Insert(p.Header, 0, [2]string{"Content-Type", kind})
	if p.Status == http.StatusNotModified { // net/http sends neither
		p.Header = p.Header[1:]
		return p
	}
	p.Body = s.expand(r.body, 0)
	p.Body, _, p.Cut = strings.Cut(p.Body, "{{cut}}")
	before, after, _ := strings.Cut(p.Body, "{{abort}}")
	p.Body, p.Length = before, len(before)+len(after)
	if coded {
		p.Body = compress(p.Body)
		p.Header, p.Length = append(p.Header, [2]string{"Content-Encoding", "gzip"}), len(p.Body)
	}
	return p
}
