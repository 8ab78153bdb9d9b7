package suite

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory/internal/website"
)

// The words of reports.
const (
	Must, MustNot, Should, ShouldNot, May         = must, mustNot, should, shouldNot, may
	LevelEntries, LevelVerdict                    = levelEntries, levelVerdict
	LevelRequests, LevelState                     = levelRequests, levelState
	BasisRFC, BasisHTTP, BasisSecurity, BasisGoal = basisRFC, basisHTTP, basisSecurity, basisGoal
)

// Version is the version of the suite.
const Version = version

// RunError is a run without a result.
type RunError = runError

// Request is a request to a case's website.
type Request = request

// Levels are all levels in order.
var Levels = levels

// Parse reads a case from the text of its file.
func Parse(name, text string) (*Case, error) { return parse(name, text) }

// ReadResult reads the output of a reader.
func ReadResult(r io.Reader) (*Result, error) { return readResult(r) }

// Begin serves the case's website.
func (c *Case) Begin() (*session, error) { return c.begin() }

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

// Website returns the case as plain data.
func (c *Case) Website() (*siteData, error) {
	plain, _, err := plainWebsite(c.Source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	named := *c
	named.Requirements = slices.Clone(c.Requirements)
	names := strings.NewReplacer("{{host}}", plainSite, "{{other}}", "http://"+plainOther)
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

func newAnswer(p plainState) siteAnswer {
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
		s.Gzip = base64.StdEncoding.EncodeToString(gzipped(p.Body))
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

// NewManifest returns the manifest of some cases.
func NewManifest(cases []*Case) (*manifest, error) {
	_, missing, err := plainWebsite("")
	m := &manifest{
		Suite: suite, Version: version, Site: plainSite, Other: plainOther, Count: plainCount, Missing: newAnswer(missing),
	}
	for _, c := range cases {
		m.Cases = append(m.Cases, caseSummary{c.Name, c.Why, c.Level, c.Flags})
	}
	return m, err
}

// Placeholders in plain resources, for values only a server knows.
const (
	plainSite  = "site.invalid"  // the host and port of the website
	plainOther = "other.invalid" // those of its other origin
	plainCount = "__count__"     // how often the resource has been requested, from 1
)

// A plainResource is a resource without templates: its states in their order, of which
// the last one begun is sent.
type plainResource struct {
	Name   string // path and query, or path alone
	States []plainState
}

// A plainState is an answer without templates.
type plainState struct {
	From     int         // number of the first request, or of the first poll, to get it
	Polls    bool        // From is a poll
	Status   int         // zero: the connection closes without an answer
	Header   [][2]string // with Content-Type first
	Body     string      // as it is sent
	Length   int         // the Content-Length
	Cut      bool        // there is no Content-Length; the connection closes after the body
	Validate bool        // there is an ETag, the SHA-256 of the body; a request with it gets a 304
}

// plainWebsite returns the resources of a website without templates, and the answer to
// every other request.
func plainWebsite(text string) ([]plainResource, plainState, error) {
	s, err := website.New(strings.ReplaceAll(text, "{{count}}", plainCount))
	if err != nil {
		return nil, plainState{}, err
	}
	s.URL, s.Other = "http://"+plainSite, "http://"+plainOther
	var resources []plainResource
	for name, states := range s.Resources() {
		r := plainResource{Name: name}
		for _, state := range states {
			plain := plainStateOf(s, name, state)
			if plain.isCoded() && strings.Contains(state.Body, "{{") && strings.Contains(s.Expand(state.Body), ".invalid") {
				return nil, plainState{}, fmt.Errorf("%s: a body that is sent as gzip names its website", name)
			}
			r.States = append(r.States, plain)
		}
		resources = append(resources, r)
	}
	slices.SortFunc(resources, func(a, b plainResource) int { return cmp.Compare(a.Name, b.Name) })
	return resources, plainStateOf(s, "", website.Missing), nil
}

// isCoded reports whether the body is gzip.
func (p *plainState) isCoded() bool {
	return slices.Contains(p.Header, [2]string{"Content-Encoding", "gzip"})
}

func plainStateOf(s *website.Site, name string, r website.State) plainState {
	name, _, _ = strings.Cut(name, "?")
	p, coded := plainState{From: r.From, Polls: r.Polls, Status: 200}, false
	kind := website.ContentType(path.Clean("/" + name))
	for _, f := range r.Header {
		switch value := s.Expand(f[1]); f[0] {
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
	p.Body = s.Expand(r.Body)
	p.Body, _, p.Cut = strings.Cut(p.Body, "{{cut}}")
	before, after, _ := strings.Cut(p.Body, "{{abort}}")
	p.Body, p.Length = before, len(before)+len(after)
	if coded {
		p.Body = string(gzipped(p.Body))
		p.Header, p.Length = append(p.Header, [2]string{"Content-Encoding", "gzip"}), len(p.Body)
	}
	return p
}

func gzipped(body string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, body)
	_ = z.Close()
	return b.Bytes()
}
