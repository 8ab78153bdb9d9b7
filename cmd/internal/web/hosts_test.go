package web

import (
	"bufio"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory/republish"

	"github.com/stretchr/testify/require"
)

// With a token or without, a website cannot read anything by making its name
// lead here.
func TestHosts(t *testing.T) {
	own, err := os.Hostname()
	require.NoError(t, err)
	for _, token := range []string{"", "open sesame"} {
		w := newWorld(t, func(s *Server) {
			s.Token, s.Names, s.Base = token, []string{"Mirror.example", "cellar.lan:8005"}, "https://feeds.example/"
		})
		_, err := w.Mirror.Update(t.Context(), w.feedURL("/tides.atom"))
		require.NoError(t, err)
		page := "/feeds/" + republish.Name(w.feedURL("/tides.atom"))
		for host, want := range map[string]bool{
			"evil.example": false, "evil.example:8005": false, "mirror.example.evil.example": false, "127.0.0.1.nip.io": false, "": false, ":80": false,
			"localhost": true, "LOCALHOST.:8005": true, "127.0.0.1:8005": true, "[::1]:1": true, "127.9.9.9": true,
			own: true, strings.ToUpper(own) + ":8005": true,
			"mirror.example": true, "MIRROR.example.:443": true, "cellar.lan": true, "feeds.example": true, "feeds.example:8443": true,
			"192.0.2.1:8005": token != "", "[2001:db8::1]": token != "", "[fe80::1%25eth0]:80": token != "",
		} {
			for _, path := range []string{"/", page, page + "/index.atom", page + "/complete.atom", "/feeds.opml", page + "/progress", "/nothing"} {
				r := httptestRequest(t.Context(), http.MethodGet, path, nil)
				r.Host = host
				status, body, _ := answer(t, w.Server, r)
				require.Equal(t, want, status != http.StatusMisdirectedRequest, "%q %s", host, path)
				require.Equal(t, want, !strings.Contains(body, "This server is not known by that name"), "%q %s", host, path)
			}
		}
	}
}

func TestVisitor(t *testing.T) {
	for from, want := range map[string]string{
		"192.0.2.1:5000": "192.0.2.1/32", "[::ffff:192.0.2.1]:5000": "192.0.2.1/32",
		"[2001:db8::1:2:3:4]:5": "2001:db8::/64", "[fe80::1%eth0]:5": "fe80::/64", "@": "invalid Prefix",
	} {
		r := httptestRequest(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr = from
		require.Equal(t, want, visitorOf(r).String(), from)
	}
}

// One visitor cannot take all streams, and all together cannot exceed the
// limit. A visitor without a stream can ask instead.
func TestStreams(t *testing.T) {
	w := newWorld(t, nil)
	w.gate.hold()
	status, _, header := w.do(http.MethodPost, "/feeds", map[string][]string{"url": {w.feedURL("/news.rss")}})
	require.Equal(t, http.StatusSeeOther, status)
	path := header.Get("Location") + "/progress"
	var open []*http.Response
	for range mostWatched {
		resp, err := w.client.Get(strings.TrimSuffix(w.url, "/") + path)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		_, err = bufio.NewReader(resp.Body).ReadString('\n')
		require.NoError(t, err)
		open = append(open, resp)
	}
	status, body, header := w.get(path)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "5", header.Get("Retry-After"))
	requireSound(t, body)
	require.Eventually(t, func() bool {
		_, runs := w.polls.Status(w.feedURL("/news.rss"))
		return runs
	}, patience, 10*time.Millisecond)
	status, body, header = w.get(path + "?now")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "application/json", header.Get("Content-Type"))
	require.JSONEq(t, `{"text":"Asking for the feed …","done":false}`, body)
	for _, resp := range open {
		require.NoError(t, resp.Body.Close())
	}
	w.gate.free()
	require.Eventually(t, func() bool {
		w.streams.mu.Lock()
		defer w.streams.mu.Unlock()
		return w.streams.all == 0 && len(w.streams.of) == 0
	}, patience, 10*time.Millisecond)
	w.settle(w.feedURL("/news.rss"), 0)

	var all watchers
	var leave func()
	for i := range mostStreams + 1 {
		r := httptestRequest(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 1).String()
		left, ok := all.enter(r)
		require.Equal(t, i < mostStreams, ok)
		if ok {
			leave = left
		}
	}
	leave()
	_, ok := all.enter(httptestRequest(t.Context(), http.MethodGet, "/", nil))
	require.True(t, ok)
}

// A page that does not support a method says which ones it supports.
func TestMethods(t *testing.T) {
	w := newWorld(t, nil)
	page := w.add("/tides.atom")
	for path, allow := range map[string]string{
		"/": "GET, HEAD", page: "GET, HEAD", page + "/index.atom": "GET, HEAD", page + "/complete.atom": "GET, HEAD", page + "/remove": "GET, HEAD, POST",
		page + "/poll": "POST", "/feeds": "POST", "/token": "GET, HEAD, POST", "/" + assets.path("style.css"): "GET, HEAD",
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, "PROPFIND"} {
			if strings.Contains(allow, method) {
				continue
			}
			status, body, header := w.do(method, path, nil)
			require.Equal(t, http.StatusMethodNotAllowed, status, "%s %s", method, path)
			require.Equal(t, allow, header.Get("Allow"), "%s %s", method, path)
			if method != http.MethodHead {
				requireSound(t, body)
			}
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		status, _, header := w.do(method, "/nothing", nil)
		require.Equal(t, http.StatusNotFound, status)
		require.Empty(t, header.Get("Allow"))
	}
}
