package fetch

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Further fields are sent to the first origin, and to no other.
func TestHeaderStaysAtItsOrigin(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := &site{pages: map[string]string{
			"a/": to(302, "/b"), "a/b": to(302, "http://c/"), "c/": ok("x"),
		}}
		s.put(w)
		resp, err := w.client().Do(t.Context(), Request{URL: "http://a/", Header: http.Header{"modified-range": {"/"}}})
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		seen := s.seen.All()
		require.Len(t, seen, 3)
		for i, want := range []string{"/", "/", ""} {
			assert.Equal(t, want, seen[i].Header.Get("Modified-Range"), "hop %d", i)
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

// A 206 is a success only for requests that ask for a part.
func TestPartial(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := &site{pages: map[string]string{"a/": status(206)}}
		s.put(w)
		_, err := w.client().Do(t.Context(), Request{URL: "http://a/"})
		assert.Equal(t, "status 206", describe(err))
		resp, err := w.client().Do(t.Context(), Request{URL: "http://a/", Partial: true})
		require.NoError(t, err)
		assert.Equal(t, http.StatusPartialContent, resp.Status)
		require.NoError(t, resp.Body.Close())
	})
}
