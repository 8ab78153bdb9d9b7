package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A browser keeps how pages look, by words of a closed list, and for this server only.
func TestLook(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	choose := func(form url.Values) (cookie string) {
		t.Helper()
		status, _, header := w.do(http.MethodPost, "/look", form)
		require.Equal(t, http.StatusSeeOther, status)
		require.Equal(t, "/entries", header.Get("Location"))
		return header.Get("Set-Cookie")
	}
	require.Contains(t, choose(url.Values{"letters": {"sans"}, "size": {"huge"}, "theme": {"dark"}, "width": {""}, "next": {"/entries"}}), "look=sans.huge.dark; Path=/; Max-Age=")
	_, body, _ := w.get("/entries")
	require.Contains(t, body, `<html lang="en" class="sans huge dark">`)
	require.Equal(t, 4, strings.Count(body, " checked>"))
	require.Contains(t, body, `value="huge" checked>`)
	require.Contains(t, choose(url.Values{"letters": {`"><script>`}, "size": {"enormous"}, "next": {"/entries"}}), "look=; Path=/; Max-Age=0")
	require.Contains(t, w.page("/entries", http.StatusOK), `<html lang="en">`)
	r := httptestRequest(t.Context(), http.MethodGet, "/entries", nil)
	r.AddCookie(&http.Cookie{Name: "look", Value: "evil.wide.script"})
	_, body, _ = answer(t, w.Server, r)
	require.Contains(t, body, `<html lang="en" class="wide">`)
	status, _, header := w.do(http.MethodPost, "/look", url.Values{"next": {"https://evil.example/"}})
	require.Equal(t, http.StatusSeeOther, status)
	require.Equal(t, "/", header.Get("Location"))
}
