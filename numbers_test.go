package feedhistory

import (
	"errors"
	"io"
	"math"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// numbers are the integer fields of a Client's settings, by name.
func numbers(c *Client) map[string]reflect.Value {
	found := map[string]reflect.Value{}
	var visit func(name string, v reflect.Value)
	visit = func(name string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.IsExported() {
					visit(strings.TrimPrefix(name+"."+f.Name, "."), v.Field(i))
				}
			}
		case reflect.Int, reflect.Int64:
			found[name] = v
		}
	}
	visit("", reflect.ValueOf(c).Elem())
	return found
}

// Every number has one meaning: zero is the default, a negative one an error unless its field says
// otherwise, and the largest one overflows nowhere.
func TestNumbers(t *testing.T) {
	site := feedtest.Serve(t, threeDocuments)
	private := func() *Client { return &Client{Policy: Policy{AllowPrivate: true}, Retry: Retry{Tries: 1}} }
	names := numbers(private())
	require.Len(t, names, 24)
	for name, field := range names {
		t.Run(name, func(t *testing.T) {
			c := private()
			numbers(c)[name].SetInt(-1)
			h, err := c.Fetch(t.Context(), site.URL+"/feed.atom")
			if name == "Retry.MaxWait" { // says what it means
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "Client."+name+" is negative")
			require.Nil(t, h)

			if name == "Pace" {
				return // a second request would wait for centuries
			}
			c = private()
			largest := int64(math.MaxInt64)
			if field.Kind() == reflect.Int {
				largest = math.MaxInt
			}
			numbers(c)[name].SetInt(largest)
			h, err = c.Fetch(t.Context(), site.URL+"/feed.atom")
			require.NoError(t, err)
			require.Equal(t, Whole, h.Verdict(), "%v", h.Gaps)
			require.Equal(t, 3, h.Documents)
			c.CloseIdle()
		})
	}
}

// A Parser's limits have the same meaning as a Client's.
func TestParserNumbers(t *testing.T) {
	const text = `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><link href="http://example.org/"/><entry><id>1</id></entry></feed>`
	for _, n := range (Limits{}).numbers() {
		for value, want := range map[int64]string{0: "", -1: "Parser." + n.name + " is negative", math.MinInt64: "is negative", math.MaxInt64: ""} {
			var p Parser
			field := reflect.ValueOf(&p.Limits).Elem().FieldByName(strings.TrimPrefix(n.name, "Limits."))
			if field.Kind() == reflect.Int {
				value = max(min(value, math.MaxInt), math.MinInt)
			}
			field.SetInt(value)
			doc, err := p.Parse(io.MultiReader(strings.NewReader(text)), "")
			if want != "" {
				require.ErrorContains(t, err, want)
				continue
			}
			require.NoError(t, err, "%s = %d", n.name, value)
			require.Len(t, doc.Entries, 1)
			require.Len(t, doc.Links, 1)
		}
	}
	_, err := Parser{}.Parse(nil, "")
	require.ErrorContains(t, err, "the io.Reader is nil")
}

// A hook that says no, or gives a budget without numbers, does not make a budget larger than it says.
func TestBudgetMoreSaysNo(t *testing.T) {
	v := newVisit(t, feedtest.Serve(t, threeDocuments), "documents 1")
	v.client.Budget.More = func(Budget) (Budget, bool) { return Budget{}, false }
	v.walk(t.Context())
	require.Equal(t, 1, v.history.Documents)
	require.Equal(t, Partial, v.history.Verdict())
}

// A wrapper that passes requests on does not weaken the guard; another transport is on its own.
func TestWrap(t *testing.T) {
	site := feedtest.Serve(t, threeDocuments)
	var asked atomic.Int64
	made := 0
	c := &Client{Retry: Retry{Tries: 1}, Wrap: func(next http.RoundTripper) http.RoundTripper {
		made++
		return feedtest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			asked.Add(1)
			return next.RoundTrip(r)
		})
	}}
	_, err := c.Get(t.Context(), site.URL+"/feed.atom")
	refused, ok := errors.AsType[*RefusedError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, RuleAddress, refused.Rule)
	require.Empty(t, site.Requests())
	allowed := c.Clone()
	allowed.Policy.AllowPrivate = true
	h, err := allowed.Fetch(t.Context(), site.URL+"/feed.atom")
	require.NoError(t, err)
	require.Equal(t, Whole, h.Verdict())
	require.EqualValues(t, 4, asked.Load())
	require.Equal(t, 2, made, "once for each client")
	allowed.CloseIdle()

	own := &Client{Transport: feedtest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Cache-Control": {"max-age=60"}}, Body: io.NopCloser(strings.NewReader("<feed/>")), Request: r}, nil
	})}
	doc, err := own.Get(t.Context(), "http://127.0.0.1:1/")
	require.NoError(t, err)
	require.Equal(t, "max-age=60", doc.Header.Get("Cache-Control"))
	require.WithinDuration(t, doc.Response.Received.Add(time.Minute), doc.Response.Fresh, 0)
}

// A document already in hand is not requested again.
func TestWalkFirst(t *testing.T) {
	site := feedtest.Serve(t, threeDocuments)
	v := newVisit(t, site, "")
	doc, err := v.client.Get(t.Context(), v.url)
	require.NoError(t, err)
	v.options.First = doc
	v.walk(t.Context())
	require.NoError(t, v.err)
	require.Equal(t, Whole, v.history.Verdict())
	require.Equal(t, 3, v.history.Documents)
	require.Len(t, site.Requests(), 3)

	other := newVisit(t, feedtest.Serve(t, threeDocuments), "")
	other.walk(t.Context())
	require.Len(t, v.history.Entries, len(other.history.Entries))
}

// A user and a password are sent by Basic authentication, to their origin only.
func TestBasicAuthentication(t *testing.T) {
	var sent feedtest.List[string]
	c := &Client{
		Policy: Policy{Credentials: []Credential{{Origin: "http://a.example", User: "Aladdin", Password: "open sesame"}}},
		Transport: feedtest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			sent.Add(r.Header.Get("Authorization"))
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("<feed/>")), Request: r}, nil
		}),
	}
	for _, host := range []string{"a", "b"} {
		_, err := c.Get(t.Context(), "http://"+host+".example/")
		require.NoError(t, err)
	}
	require.Equal(t, []string{"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", ""}, sent.All())
	require.NoError(t, c.Policy.Credentials[0].Check())
	require.Error(t, Credential{User: "a:b"}.Check())
	require.Error(t, Credential{User: "a", Authorization: "Bearer b"}.Check())
}
