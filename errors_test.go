package feedhistory

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/vocab"
)

// Every error of a request is a type of this package, by whichever method it is returned.
func TestErrorTypes(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, strings.Repeat("x", 10_000)) })
	mux.HandleFunc("/cut", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "<feed>")
	})
	mux.HandleFunc("/encoded", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "compress")
		io.WriteString(w, "?")
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/circle", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/circle", http.StatusFound) })
	server := feedtest.Server(t, mux)

	for _, tc := range []struct {
		path string
		is   func(error) bool
		says string
	}{
		{"/missing", is[*StatusError], "404"},
		{"/large", is[*LimitError], "bytes"},
		{"/cut", is[*TruncatedError], "cut short"},
		{"/encoded", is[*EncodingError], `"compress"`},
		{"/slow", is[*TimeoutError], "headers"},
		{"/circle", is[*RefusedError], "redirects in a circle"},
	} {
		c := &Client{
			Policy: Policy{AllowPrivate: true}, Limits: Limits{Bytes: 1000}, Retry: Retry{Tries: 1},
		}
		if tc.path == "/slow" {
			c.Timeouts.Headers = 50 * time.Millisecond
		}
		_, err := c.Get(t.Context(), server.URL+tc.path)
		require.True(t, tc.is(err), "Get %s: %T: %v", tc.path, err, err)
		require.ErrorContains(t, err, tc.says)
		answer, err := c.Do(t.Context(), Request{URL: server.URL + tc.path})
		if err == nil {
			_, err = io.ReadAll(answer.Body)
			answer.Body.Close()
		}
		require.True(t, tc.is(err), "Do %s: %T: %v", tc.path, err, err)
		_, err = c.Fetch(t.Context(), server.URL+tc.path)
		require.True(t, tc.is(err), "Fetch %s: %T: %v", tc.path, err, err)
		c.CloseIdle()
	}
	_, err := new(Client).Get(t.Context(), "ftp://example.org/feed")
	require.EqualError(t, err, `fetch "ftp://example.org/feed": refused: unsupported scheme: "ftp"`)
	for _, address := range []string{"", "/feed", "example.org/feed"} {
		_, err = new(Client).Get(t.Context(), address)
		refused, ok := errors.AsType[*RefusedError](err)
		require.True(t, ok, "%T: %v", err, err)
		require.Equal(t, RuleURL, refused.Rule, address)
	}
	var timeout net.Error
	require.ErrorAs(t, error(&TimeoutError{}), &timeout)
	require.True(t, timeout.Timeout())
	require.Empty(t, Describe(nil))
}

// The error of a gap names the rule that the caller has set.
func TestSameOriginRule(t *testing.T) {
	elsewhere := feedtest.Serve(t, "-- /1.atom --\n<feed xmlns=\"http://www.w3.org/2005/Atom\"></feed>\n")
	for _, link := range []string{elsewhere.URL + "/1.atom", "/redirect"} {
		server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/redirect" {
				http.Redirect(w, r, elsewhere.URL+"/1.atom", http.StatusFound)
			}
			fmt.Fprintf(w, `<feed xmlns="http://www.w3.org/2005/Atom"><link rel="prev-archive" href="%s"/></feed>`, link)
		}))
		c := &Client{Policy: Policy{AllowPrivate: true, SameOrigin: true}}
		h, err := c.Fetch(t.Context(), server.URL)
		c.CloseIdle()
		require.NoError(t, err)
		require.Len(t, h.Gaps, 1)
		refused, ok := errors.AsType[*RefusedError](h.Gaps[0])
		require.True(t, ok, "%v", h.Gaps[0])
		require.Equal(t, RefusedError{URL: elsewhere.URL + "/1.atom", Rule: RuleOrigin}, *refused)
		require.ErrorContains(t, h.Gaps[0], "its origin is not the feed's")
	}
}

// What is appended to the credentials of one clone is not sent by another.
func TestCloneOwnsItsCredentials(t *testing.T) {
	c := Client{Policy: Policy{Credentials: make([]Credential, 0, 4)}}
	one, two := c.Clone(), c.Clone()
	one.Policy.Credentials = append(one.Policy.Credentials, Credential{Authorization: "one"})
	two.Policy.Credentials = append(two.Policy.Credentials, Credential{Authorization: "two"})
	require.Equal(t, "one", one.Policy.Credentials[0].Authorization)
}

// A clone has its own settings, but knows what hosts have asked of the original.
func TestClone(t *testing.T) {
	var agents feedtest.List[string]
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if agents.Add(r.UserAgent()+" "+r.Header.Get("Authorization")) > 2 {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"/>`)
	}))
	first := &Client{UserAgent: "first", Policy: Policy{AllowPrivate: true}, Retry: Retry{Tries: 1}}
	defer first.CloseIdle()
	second := first.Clone()
	second.UserAgent = "second"
	second.Policy.Credentials = []Credential{{Origin: server.URL, Authorization: "Bearer 2"}}
	for _, c := range []*Client{first, second} {
		_, err := c.Get(t.Context(), server.URL)
		require.NoError(t, err)
	}
	_, err := second.Get(t.Context(), server.URL)
	require.True(t, IsStatus(err, http.StatusServiceUnavailable), "%v", err)
	_, err = first.Clone().Get(t.Context(), server.URL)
	status, ok := errors.AsType[*StatusError](err)
	require.True(t, ok && status.Remembered, "%v", err)
	require.Equal(t, []string{"first ", "second Bearer 2", "second Bearer 2"}, agents.All())
}

// A caller's own Transport keeps the guard if it uses Dialer.
func TestDialer(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	transport := &http.Transport{DialContext: Dialer().DialContext, TLSClientConfig: &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}}
	c := &Client{Transport: transport, Retry: Retry{Tries: 1}}
	_, err := c.Get(t.Context(), server.URL)
	refused, ok := errors.AsType[*RefusedError](err)
	require.True(t, ok, "%T: %v", err, err)
	require.Equal(t, RuleAddress, refused.Rule)
}

// Settings that make no sense have no effect, or mean the default.
func TestMisuse(t *testing.T) {
	d := (&History{}).Document()
	require.Empty(t, d.Entries)
	gap := NewGap("http://example.org/\xff", io.ErrUnexpectedEOF)
	for _, d := range []*Document{d, {}, {Entries: (&History{Gaps: []*Gap{gap}}).PseudoEntries()}, NewComplete(nil, nil, ""), NewPage(nil, nil, DocumentLinks{}), NewArchive(nil, nil, DocumentLinks{})} {
		derive(t, d)
	}
	require.Len(t, NewPages(nil, make([]*Entry, 3), -5, func(int) string { return "" }), 3)

	const n = math.MinInt
	none := Limits{Bytes: n, Ratio: n, Depth: n, Attributes: n, Namespaces: n, Elements: n, Entries: n, HeadLinks: n, ID: n, URL: n}
	_, err := Parser{Limits: none}.Parse(strings.NewReader(`<feed xmlns="`+vocab.Atom+`"><link href="http://example.org/"/><entry><id>1</id></entry></feed>`), "")
	require.ErrorContains(t, err, "is negative")

	log := make([]*Entry, 250)
	closed, open := Split{Size: -5}.Cut(log, 1)
	require.Len(t, closed, 2)
	require.Len(t, open, 50)
	closed, open = Split{Period: 99}.Cut([]*Entry{{}, {}}, 1)
	require.Empty(t, closed)
	require.Len(t, open, 2)

	require.Empty(t, (&Entry{}).Title())
	require.Nil(t, (&Entry{}).XML())
	_, err = (&Entry{}).Decode()
	require.NoError(t, err)
}

// What XML cannot express is written in a form that it can, and read again as the same.
func TestWrittenMedia(t *testing.T) {
	const png = "\x89PNG\r\n\x1a\n\x00\xff"
	for name, entry := range map[string]string{
		"1.0": `<feed xmlns="` + vocab.Atom + `"><entry><id>1</id><content type="image/png">iVBORw0KGgoA/w==</content></entry></feed>`,
		"0.3": `<feed xmlns="` + vocab.Atom03 + `"><entry><id>1</id><content type="image/png" mode="base64">iVBORw0KGgoA/w==</content></entry></feed>`,
	} {
		for _, write := range []func(io.Writer, *Document) error{WriteAtom, WriteRSS} {
			doc, err := Parser{}.parse(entry, "http://example.org/")
			require.NoError(t, err)
			require.Equal(t, Text{Type: "image/png", Body: png, Base: "http://example.org/"}, doc.Entries[0].Content())
			derive(t, doc)
			var b bytes.Buffer
			require.NoError(t, write(&b, doc))
			again, err := Parse(&b, "http://example.org/")
			require.NoError(t, err)
			require.Equal(t, doc.Entries[0].Content(), again.Entries[0].Content(), name)
		}
	}
}

func TestWrittenSource(t *testing.T) {
	doc, err := Parser{}.parse(`<feed xmlns="`+vocab.Atom+`"><entry><id>1</id><content type="video/mp4" src="a.mp4"/></entry></feed>`, "http://example.org/")
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, WriteRSS(&b, doc))
	requireWellFormed(t, b.Bytes())
	again, err := Parse(&b, "")
	require.NoError(t, err)
	require.Equal(t, Text{Type: "video/mp4", Src: "http://example.org/a.mp4"}, again.Entries[0].Content())
}

// Bytes of a Link field that are not UTF-8 are written as they would be requested.
func TestLinkFieldOfRawBytes(t *testing.T) {
	p := Parser{Header: http.Header{"Link": {"<http://example.org/caf\xe9>; rel=prev-archive; title=\"\xff\"; type=\"\xfe\""}}}
	doc, err := p.parse(`<feed xmlns="`+vocab.Atom+`"/>`, "http://example.org/feed")
	require.NoError(t, err)
	require.Equal(t, "http://example.org/caf%E9", doc.Links[0].Href)
	derive(t, doc)
}
