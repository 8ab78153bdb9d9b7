package check

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/feedhistory/feedhistory"
	"github.com/stretchr/testify/require"
)

// TestSample requests representations: of each fault there is one record (atom-pmh#15,
// atom-pmh#16, atom-pmh#34), and of sound records none is reported.
func TestSample(t *testing.T) {
	mux := http.NewServeMux()
	serve := func(path, kind, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write([]byte(strings.ReplaceAll(body, "{{URL}}", "http://"+r.Host)))
		})
	}
	const rdc = `<entry xmlns="http://www.w3.org/2005/Atom"><id>urn:x</id><title/><updated>2012-11-01T00:00:00Z</updated>%s</entry>`
	serve("/sound", "text/html; charset=utf-8", "<p>")
	serve("/rdc", "application/atom+xml", fmt.Sprintf(rdc, `<link rel="self" href="{{URL}}/rdc"/>`))
	serve("/silent", "application/atom+xml", fmt.Sprintf(rdc, ""))
	serve("/type", "text/plain", "")
	serve("/self", "application/atom+xml", fmt.Sprintf(rdc, `<link rel="self" href="{{URL}}/rdc"/>`))
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	server := httptest.NewServer(mux)
	defer server.Close()

	var b strings.Builder
	b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title/><updated>2012-11-02T00:00:00Z</updated>`)
	entry := func(id, day, path, kind string) {
		fmt.Fprintf(&b, `<entry><id>%s</id><title/><updated>2012-11-%sT00:00:00Z</updated><link href="%s%s" type="%s"/></entry>`, id, day, server.URL, path, kind)
	}
	for path, kind := range map[string]string{
		"/sound": "text/html", "/rdc": "application/atom+xml", "/silent": "application/atom+xml", "/type": "text/html",
		"/self": "application/atom+xml", "/missing": "text/html", "/broken": "text/html",
	} {
		entry("urn:"+path, "02", path, kind)
	}
	entry("urn:/sound", "01", "/historical", "text/html") // need not be there
	b.WriteString(`<entry><id>urn:deleted</id><title/><updated>2012-11-02T00:00:00Z</updated><content/></entry></feed>`)
	doc, err := feedhistory.Parse(strings.NewReader(b.String()), server.URL+"/feed.atom")
	require.NoError(t, err)

	client := &feedhistory.Client{Tries: 1, AllowPrivate: true}
	got := map[string]string{}
	s := new(Sample)
	s.Add(doc)
	for f, err := range s.Check(t.Context(), client) {
		require.NoError(t, err)
		testFinding(t, f, rule(f.Code))
		require.NotContains(t, got, f.Code)
		got[f.Code] = f.Message
	}
	for _, r := range Rules() {
		if r.Scope == Representations {
			require.Contains(t, got, r.Code)
		}
	}
	require.Len(t, got, 4)
	require.Contains(t, got["pmh-self-differs"], "/self")
	require.Contains(t, got["pmh-representation-missing"], "/missing")

	few := &Sample{Size: 2}
	few.Add(doc)
	require.Len(t, few.records, 2)
}

// An empty subscription document may have a complete archive (atom-pmh#20).
func TestEmptyBeforeComplete(t *testing.T) {
	head := `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><id>urn:f</id><title>F</title>
<author><name>A</name></author><updated>2012-11-02T00:00:00Z</updated>`
	for entry, want := range map[string][]string{
		"": {},
		`<entry><id>urn:b</id><title/><updated>2012-11-02T00:00:00Z</updated><link href="https://example.org/b" type="text/html"/></entry>`: {"pmh-complete-in-archive"},
	} {
		c := Chain{Profile: AtomPMH}
		found := c.Add(parsed(t, head+`<link rel="self" href="https://example.org/f"/><link rel="prev-archive" href="https://example.org/1"/>`+entry+`</feed>`, "https://example.org/f"))
		found = append(found, c.Add(parsed(t, head+`<fh:archive/><fh:complete/><link rel="self" href="https://example.org/1"/><link rel="current" href="https://example.org/f"/>
<entry><id>urn:a</id><title/><updated>2012-11-01T00:00:00Z</updated><link href="https://example.org/a" type="text/html"/></entry></feed>`, "https://example.org/1"))...)
		require.Equal(t, want, codes(append(found, c.Finish()...)))
	}
}

func parsed(t *testing.T, text, url string) *feedhistory.Document {
	p := feedhistory.Parser{Header: http.Header{"Content-Type": {"application/atom+xml"}, "Etag": {`"1"`}, "Cache-Control": {"no-cache"}}}
	doc, err := p.Parse(strings.NewReader(text), url)
	require.NoError(t, err)
	return doc
}
