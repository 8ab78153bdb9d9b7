package fetch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// header reads "Name: value" lines.
func header(lines ...string) http.Header {
	h := make(http.Header)
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

func TestRetryAfterForms(t *testing.T) {
	now := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"0":                              0,
		"120":                            2 * time.Minute,
		" 7 ":                            7 * time.Second,
		"86401":                          24 * time.Hour,
		"99999999999999999999":           24 * time.Hour,
		"Mon, 05 Jan 2026 10:01:00 GMT":  time.Minute,
		"Mon, 5 Jan 2026 10:01:00 GMT":   time.Minute,
		"Mon, 5 Jan 2026 10:01:00 UTC":   time.Minute,
		"Mon, 5 Jan 2026 11:01:00 +0100": time.Minute,
		"Monday, 05-Jan-26 10:01:00 GMT": time.Minute,
		"Mon Jan  5 10:01:00 2026":       time.Minute,
		"Mon, 05 Jan 2026 09:00:00 GMT":  0,
		"Mon, 05 Jan 2099 09:00:00 GMT":  24 * time.Hour,
		"":                               -1,
		"soon":                           -1,
		"-5":                             -1,
		"1.5":                            -1,
	} {
		got, ok := RetryAfter(header("Retry-After: "+value), now)
		if !ok {
			got = -1
		}
		assert.Equal(t, want, got, value)
	}
	// The clock of the host counts.
	got, _ := RetryAfter(header("Retry-After: Mon, 05 Jan 2026 10:01:00 GMT", "Date: Mon, 05 Jan 2026 10:00:30 GMT"), now)
	assert.Equal(t, 30*time.Second, got)
}

func TestFreshness(t *testing.T) {
	now := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	tests := []struct {
		headers []string
		want    time.Duration // until it is stale; -1: it does not say
	}{
		{nil, -1},
		{[]string{"Cache-Control: public"}, -1},
		{[]string{"Cache-Control: max-age=60"}, time.Minute},
		{[]string{`Cache-Control: Max-Age="60"`}, time.Minute},
		{[]string{"Cache-Control: private, max-age=60"}, time.Minute},
		{[]string{"Cache-Control: private", "Cache-Control: max-age=60"}, time.Minute},
		{[]string{`Cache-Control: private="a, max-age=1", max-age=60`}, time.Minute},
		{[]string{"Cache-Control: max-age = 60 , immutable"}, time.Minute},
		{[]string{"Cache-Control: max-age=60, s-maxage=600"}, time.Minute},
		{[]string{"Cache-Control: s-maxage=600"}, -1},
		{[]string{"Cache-Control: max-age=60, max-age=600"}, time.Minute},
		{[]string{"Cache-Control: max-age=-1"}, 0},
		{[]string{"Cache-Control: max-age=soon"}, 0},
		{[]string{"Cache-Control: max-age"}, 0},
		{[]string{"Cache-Control: max-age=99999999999999999999"}, (1<<31 - 1) * time.Second},
		{[]string{"Cache-Control: max-age=60", "Age: 20"}, 40 * time.Second},
		{[]string{"Cache-Control: max-age=60", "Age: 90"}, 0},
		{[]string{"Cache-Control: max-age=60, no-cache"}, 0},
		{[]string{"Cache-Control: no-store"}, 0},
		{[]string{"Cache-Control: max-age=60, No-Cache, immutable"}, 0},
		{[]string{"Cache-Control: max-age=60, immutable, No-Store"}, 0},
		{[]string{`Cache-Control: no-cache="Set-Cookie", max-age=60`}, time.Minute},
		{[]string{`Cache-Control: max-age="60`}, time.Minute},
		{[]string{"Cache-Control: ,,=,\"", "Expires: 0"}, 0},
		{[]string{"Expires: Mon, 05 Jan 2026 10:01:00 GMT"}, time.Minute},
		{[]string{"Expires: Mon, 5 Jan 2026 10:01:00 GMT", "Date: Mon, 5 Jan 2026 10:00:30 GMT"}, 30 * time.Second},
		{[]string{"Expires: Mon, 05 Jan 2026 10:01:00 GMT", "Cache-Control: max-age=5"}, 5 * time.Second},
		{[]string{"Expires: Mon, 05 Jan 2026 09:00:00 GMT"}, 0},
		{[]string{"Expires: -1"}, 0},
	}
	for _, test := range tests {
		want := now.Add(test.want)
		if test.want < 0 {
			want = time.Time{}
		}
		assert.Equal(t, want, FreshUntil(header(test.headers...), now), "%q", test.headers)
	}
}

// TestDirectives reads any list that is written by the rules.
func TestDirectives(t *testing.T) {
	now := time.Now()
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.IntRange(0, 1<<31-1).Draw(t, "seconds")
		text := rapid.StringMatching(`[a-z]+(="[a-z, =-]*"|=[a-z]+)?`)
		before := rapid.SliceOfN(text, 0, 3).Draw(t, "before")
		after := rapid.SliceOfN(text, 0, 3).Draw(t, "after")
		age := fmt.Sprint("MAX-age=", seconds)
		if rapid.Bool().Draw(t, "quoted") {
			age = fmt.Sprintf("max-age=%q", fmt.Sprint(seconds))
		}
		line := strings.Join(append(append(before, age), after...), rapid.SampledFrom([]string{",", ", ", " ,\t"}).Draw(t, "separator"))
		if until := FreshUntil(http.Header{"Cache-Control": {line}}, now); !until.Equal(now.Add(time.Duration(seconds) * time.Second)) {
			t.Fatalf("%v", until)
		}
	})
	rapid.Check(t, func(t *rapid.T) { // and anything else without harm
		until := FreshUntil(http.Header{"Cache-Control": {rapid.String().Draw(t, "line")}}, now)
		if !until.IsZero() && until.Before(now) {
			t.Fatal(until)
		}
	})
}

// TestRedact checks that no password is shown, whatever a URL looks like.
func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"http://me:secret@a/b@c": "http://a/b@c",
		"http://me@a":            "http://a",
		"http://a/b@c":           "http://a/b@c",
		"http://a?b@c":           "http://a?b@c",
		"http://x@y@a/":          "http://a/",
		"me:secret@a":            "a",
		"":                       "",
	} {
		assert.Equal(t, want, iri.Redact(in))
	}
	c := new(Client)
	rapid.Check(t, func(t *rapid.T) {
		host := rapid.SampledFrom([]string{"a", "a b", "[::1", "a:x", ""}).Draw(t, "host")
		user := rapid.StringMatching(`[a-z:%@ ]{0,5}`).Draw(t, "user")
		_, err := c.parse(nil, "http://"+user+"SECRET@"+host+"/path")
		if err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Fatal(err)
		}
	})
}

func TestAreSameOrigin(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"http://a/", "http://A:80/x", true},
		{"http://a/100%/", "http://a/", true},
		{"http://a?100%", "http://a/%zz#%", true},
		{"http://a/100%/", "https://a/100%/", false},
		{"http://a%zz/", "http://a%zz/", false},
		{"http://a/?u=//b/", "http://b/?u=//a/", false},
	} {
		assert.Equal(t, test.want, iri.AreSameOrigin(test.a, test.b), "%s %s", test.a, test.b)
	}
}

// TestByteLimit reads bodies of any size in steps of any size: everything up to the limit arrives, and
// an error comes exactly beyond it.
func TestByteLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		defer w.close()
		size := rapid.IntRange(1, 5000).Draw(t, "size")
		limit := rapid.IntRange(1, 5000).Draw(t, "limit")
		step := rapid.IntRange(1, 6000).Draw(t, "step")
		body := noise(size)
		w.serve("a", says(map[string]string{
			"chunked": chunked + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", size, body),
			"close":   head + "\r\n" + string(body),
			"gzip":    gzipped + gzipOf(body),
			"zstd":    zstded + zstdOf(body),
		}[rapid.SampledFrom([]string{"chunked", "close", "gzip", "zstd"}).Draw(t, "framing")]))
		c := w.client()
		c.Bytes = int64(limit)
		resp, err := c.Do(context.Background(), Request{URL: "http://a/"})
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		buf := make([]byte, step)
		for err == nil {
			var n int
			n, err = resp.Body.Read(buf)
			got = append(got, buf[:n]...)
		}
		if !bytes.Equal(got, body[:min(size, limit)]) {
			t.Fatalf("%d bytes of %d, or not the same", len(got), size)
		}
		if whole := err == io.EOF; whole != (size <= limit) || !whole && describe(err) != "limit bytes" {
			t.Fatal(err)
		}
	})
}

func TestHostName(t *testing.T) {
	for in, want := range map[string]string{
		"http://Example.ORG/":      "example.org",
		"https://example.org./":    "example.org",
		"https://example.org:443/": "example.org",
		"http://example.org:80/":   "example.org",
		"http://example.org:8080/": "example.org:8080",
		"http://[::1]:8080/":       "::1:8080",
	} {
		u, err := url.Parse(in)
		assert.NoError(t, err)
		assert.Equal(t, want, hostName(u))
	}
}
