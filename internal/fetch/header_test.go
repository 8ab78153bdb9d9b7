package fetch

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Further fields are sent to the first origin, and to no other; those for a part of a document
// are sent to where the document is.
func TestHeaderStaysAtItsOrigin(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := &site{pages: map[string]string{
			"a/": to(302, "/b"), "a/b": to(302, "http://c/"), "c/": ok("x"),
		}}
		s.put(w)
		resp, err := w.client().Do(t.Context(), Request{URL: "http://a/", Header: http.Header{"modified-range": {"/"}, "Range": {"bytes=1-"}, "if-range": {`"a"`}}})
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		seen := s.seen.All()
		require.Len(t, seen, 3)
		for i, want := range []string{"/", "/", ""} {
			assert.Equal(t, want, seen[i].Header.Get("Modified-Range"), "hop %d", i)
			assert.Equal(t, "bytes=1-", seen[i].Header.Get("Range"), "hop %d", i)
			assert.Equal(t, `"a"`, seen[i].Header.Get("If-Range"), "hop %d", i)
		}
	})
}

// Fields that this package or the connection sets cannot be added.
func TestHeaderRefused(t *testing.T) {
	for name, header := range map[string]http.Header{
		"ours":       {"user-agent": {"x"}},
		"connection": {"Connection": {"close"}},
		"name":       {"a b": {"x"}},
		"value":      {"X": {"a\r\nb: c"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				s := &site{pages: map[string]string{"a/": ok("x")}}
				s.put(w)
				_, err := w.client().Do(t.Context(), Request{URL: "http://a/", Header: header})
				assert.Equal(t, "refused header", describe(err))
				assert.Empty(t, s.seen.All())
			})
		})
	}
}

// A 206 or 226 is a success only for requests that ask for a part.
func TestPartial(t *testing.T) {
	for _, code := range []int{206, 226} {
		bubble(t, func(t *testing.T, w *world) {
			s := &site{pages: map[string]string{"a/": status(code)}}
			s.put(w)
			_, err := w.client().Do(t.Context(), Request{URL: "http://a/"})
			assert.Equal(t, fmt.Sprint("status ", code), describe(err))
			assert.Len(t, s.seen.All(), 1)
			resp, err := w.client().Do(t.Context(), Request{URL: "http://a/", Raw: true})
			require.NoError(t, err)
			assert.Equal(t, code, resp.Status)
			require.NoError(t, resp.Body.Close())
		})
	}
}

// A delta nobody asked for is refused, and the document requested without validators, once.
func TestDelta(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := &site{pages: map[string]string{"a/": status(226)}}
		s.put(w)
		_, err := w.client().Do(t.Context(), Request{URL: "http://a/", ETag: `"1"`, LastModified: "x"})
		assert.Equal(t, "status 226", describe(err))
		seen := s.seen.All()
		require.Len(t, seen, 2)
		assert.Equal(t, `"1"`, seen[0].Header.Get("If-None-Match"))
		assert.Empty(t, seen[1].Header.Get("If-None-Match")+seen[1].Header.Get("If-Modified-Since"))
	})
}

// A Last-Modified is a validator only if it is before the answer's Date (RFC 9110 §8.8.2).
func TestLastModified(t *testing.T) {
	const noon, before, after = "Fri, 01 Jun 2018 12:00:00 GMT", "Fri, 01 Jun 2018 11:59:59 GMT", "Fri, 01 Nov 2041 08:00:00 GMT"
	for _, test := range []struct{ modified, date, want string }{
		{before, noon, before}, {noon, noon, ""}, {after, noon, ""}, {after, "", ""}, {noon, "", noon}, {"yesterday", noon, "yesterday"}, {"", noon, ""},
	} {
		h := http.Header{"Last-Modified": {test.modified}, "Date": {test.date}}
		require.Equal(t, test.want, lastModified(h, time.Now()), test)
	}
}
