package suite

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
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

// NewManifest returns the manifest of some cases.
func NewManifest(cases []*Case) (*manifest, error) {
	_, missing, err := website.Plain("")
	m := &manifest{
		Suite: suite, Version: version, Site: website.PlainSite, Other: website.PlainOther, Count: website.PlainCount, Missing: newAnswer(missing),
	}
	for _, c := range cases {
		m.Cases = append(m.Cases, caseSummary{c.Name, c.Why, c.Level, c.Flags})
	}
	return m, err
}
