package web

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/republish"
	"github.com/stretchr/testify/require"
)

// Too many wrong tokens are refused, each counted once; whoever has logged in or shows the
// right one is not disturbed, and can log out.
func TestGuesses(t *testing.T) {
	now := time.Now()
	w := newWorld(t, func(s *Server) { s.Token, s.clock = "open sesame", func() time.Time { return now } })
	login := func(token string) (int, http.Header) {
		status, _, header := w.do(http.MethodPost, "/token", url.Values{"token": {token}})
		return status, header
	}
	status, header := login("open sesame")
	require.Equal(t, http.StatusSeeOther, status)
	require.NotEmpty(t, header.Get("Set-Cookie"))
	for range mostGuesses {
		status, _ = login("open barley")
		require.Equal(t, http.StatusForbidden, status)
	}
	status, _ = login("open barley")
	require.Equal(t, http.StatusTooManyRequests, status)
	status, _ = login("open sesame")
	require.Equal(t, http.StatusSeeOther, status)
	for bearer, want := range map[string]int{"open barley": http.StatusTooManyRequests, "open sesame": http.StatusUnprocessableEntity} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"feeds", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+bearer)
		resp, err := http.DefaultTransport.RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, resp.StatusCode, bearer)
	}
	require.Contains(t, w.page("/", http.StatusOK), "Log out", "the cookie still counts")

	status, _, header = w.do(http.MethodPost, "/token/forget", url.Values{})
	require.Equal(t, http.StatusSeeOther, status)
	require.Contains(t, header.Get("Set-Cookie"), "Max-Age=0")
	require.NotContains(t, w.page("/", http.StatusOK), "Log out")
	now = now.Add(guessTime)
	status, _ = login("open barley")
	require.Equal(t, http.StatusForbidden, status, "a minute later")
}

// A wrong token counts once, wherever it is shown, and none of them keeps anybody else out:
// not the owner, at the same address or behind the same proxy.
func TestGuessesOfOthers(t *testing.T) {
	now := time.Now()
	proxies := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48")}
	w := newWorld(t, func(s *Server) {
		s.Token, s.Private, s.Proxies, s.clock = "open sesame", true, proxies, func() time.Time { return now }
	})
	ask := func(forwarded, authorization string) int {
		r := httptestRequest(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr = "127.0.0.1:5000"
		if forwarded != "" {
			r.Header.Set("X-Forwarded-For", forwarded)
		}
		r.Header.Set("Authorization", authorization)
		status, _, _ := answer(t, w.Server, r)
		return status
	}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:open barley"))
	for _, wrong := range []string{"Bearer open barley", basic} {
		now = now.Add(guessTime)
		for range mostGuesses {
			require.Equal(t, http.StatusUnauthorized, ask("198.51.100.7", wrong))
		}
		require.Equal(t, http.StatusTooManyRequests, ask("198.51.100.7", wrong))
		require.Equal(t, http.StatusTooManyRequests, ask("192.0.2.1, 198.51.100.7, 127.0.0.2", wrong), "the visitor does not choose the address")
		require.Equal(t, http.StatusUnauthorized, ask("198.51.100.8", wrong))
		require.Equal(t, http.StatusUnauthorized, ask("", wrong))
		require.Equal(t, http.StatusOK, ask("198.51.100.7", "Bearer open sesame"))
	}
}

// A server below a path: pages, forms, redirects, cookies and documents stay there,
// whether a proxy leaves the path in requests or removes it.
func TestPath(t *testing.T) {
	w := newWorld(t, nil)
	w.write(2003, 2012)
	feed := strings.TrimPrefix(w.add("/blog/feed.atom"), "/")
	for _, root := range []string{"/feeds/", "/a/b/"} {
		s := &Server{Store: w.Store, Base: "https://h.example" + root, Token: "open sesame", Names: []string{"127.0.0.1"}}
		for _, prefix := range []string{root, "/"} {
			for _, page := range []string{"", "entries", "overview", feed, feed + "/subscribe", feed + "/day", feed + "/remove", "token", "?q=zzz"} {
				status, body, header := answer(t, s, httptestRequest(t.Context(), http.MethodGet, prefix+page, nil))
				require.Less(t, status, 400, "%s: %s", page, body)
				require.NotEmpty(t, header.Get("Etag"))
				for _, part := range []string{`href="`, `action="`, `src="`, `data-entry="`} {
					for _, link := range strings.Split(body, part)[1:] {
						link, _, _ = strings.Cut(link, `"`)
						if strings.HasPrefix(link, "/") {
							require.True(t, strings.HasPrefix(link, root), "%s in %s", link, page)
						}
					}
				}
			}
			_, style, _ := answer(t, s, httptestRequest(t.Context(), http.MethodGet, prefix+assets().path("style.css"), nil))
			require.Contains(t, style, "color-scheme")
			_, index, _ := answer(t, s, httptestRequest(t.Context(), http.MethodGet, prefix+feed+"/index.atom", nil))
			require.Contains(t, index, `rel="self" href="https://h.example`+root+feed+`/index.atom"`)
			_, opml, header := answer(t, s, httptestRequest(t.Context(), http.MethodGet, prefix+"feeds.opml?feed=complete", nil))
			require.Contains(t, opml, `xmlUrl="https://h.example`+root+feed+`/complete.atom"`)
			require.NotEmpty(t, header.Get("Etag"))
			for page, want := range map[string]string{feed + "/": feed, feed + "/random": feed + "/entry?id="} {
				_, _, header := answer(t, s, httptestRequest(t.Context(), http.MethodGet, prefix+page, nil))
				require.True(t, strings.HasPrefix(header.Get("Location"), root+want), header.Get("Location"))
			}
			r := httptestRequest(t.Context(), http.MethodPost, prefix+"token", strings.NewReader("token=open+sesame&next="+root+"entries"))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			_, _, header = answer(t, s, r)
			require.Equal(t, root+"entries", header.Get("Location"))
			require.Contains(t, header.Get("Set-Cookie"), "Path="+root+";")
		}
	}
}

// Whoever adds the address of a private feed to a public server gets the same
// answer as for any feed that needs a login.
func TestAddPrivate(t *testing.T) {
	w := newWorld(t, nil)
	feed := mirror.NewFeed(w.feedURL("/secret"))
	feed.Private = true
	require.NoError(t, w.Store.Commit(t.Context(), &mirror.Commit{Feed: feed}))
	for _, path := range []string{"/secret", "/locked"} {
		status, body, _ := w.do(http.MethodPost, "/feeds", url.Values{"url": {w.feedURL(path)}})
		require.Equal(t, http.StatusUnprocessableEntity, status, path)
		require.Contains(t, body, "This feed needs a login")
		w.page("/feeds/"+republish.Name(w.feedURL(path)), http.StatusNotFound)
	}
}

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
			for _, path := range []string{"/", page, page + "/index.atom", page + "/complete.atom", "/feeds.opml", "/nothing"} {
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
		r.Header.Set("X-Forwarded-For", "203.0.113.9")
		require.Equal(t, want, new(gatekeeper).visitorOf(r).String(), from)
	}
	g := gatekeeper{proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48")}}
	for forwarded, want := range map[string]string{
		"203.0.113.9": "203.0.113.9/32", "203.0.113.9:4711": "203.0.113.9/32", "[2001:db8:2::9]:1": "2001:db8:2::/64",
		"1.1.1.1, 203.0.113.9": "203.0.113.9/32", "203.0.113.9, 10.1.1.1,2001:db8:1::1": "203.0.113.9/32",
		"10.0.0.2": "10.0.0.2/32", "": "10.0.0.1/32", "unknown": "10.0.0.1/32", "203.0.113.9, unknown": "10.0.0.1/32", "203.0.113.9,": "10.0.0.1/32",
	} {
		r := httptestRequest(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr = "10.0.0.1:80"
		for value := range strings.SplitSeq(forwarded, ", ") { // as one field or several (RFC 9110 §5.3)
			r.Header.Add("X-Forwarded-For", value)
		}
		require.Equal(t, want, g.visitorOf(r).String(), forwarded)
	}
}

func TestParseProxy(t *testing.T) {
	for text, want := range map[string]string{"127.0.0.1": "127.0.0.1/32", "::ffff:10.0.0.1": "10.0.0.1/32", "2001:db8::1": "2001:db8::1/128", "10.0.0.0/8": "10.0.0.0/8"} {
		proxy, err := ParseProxy(text)
		require.NoError(t, err)
		require.Equal(t, want, proxy.String())
	}
	for _, wrong := range []string{"", "proxy.example", "10.0.0.0/99", "127.0.0.1:80"} {
		_, err := ParseProxy(wrong)
		require.Error(t, err, wrong)
	}
}

// A page that does not support a method says which ones it supports.
func TestMethods(t *testing.T) {
	w := newWorld(t, nil)
	page := w.add("/tides.atom")
	for path, allow := range map[string]string{
		"/": "GET, HEAD", page: "GET, HEAD", page + "/index.atom": "GET, HEAD", page + "/complete.atom": "GET, HEAD", page + "/remove": "GET, HEAD, POST",
		page + "/poll": "POST", "/feeds": "POST", "/token": "GET, HEAD, POST", "/" + assets().path("style.css"): "GET, HEAD",
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

var asks atomic.Int32

// ask returns what the server answers to a request that shows something.
func (w *world) ask(path string, show func(*http.Request)) (status int, body string, header http.Header) {
	r := httptestRequest(w.t.Context(), http.MethodGet, path, nil)
	asks.Add(1)
	r.RemoteAddr = fmt.Sprintf("10.0.%d.%d:1", asks.Load()/250%250, asks.Load()%250) // nobody guesses too often
	if show != nil {
		show(r)
	}
	return answer(w.t, w.Server, r)
}

// On a Private server nobody reads anything who does not show the token, and no
// shared cache keeps what the others read.
func TestPrivate(t *testing.T) {
	w := newWorld(t, func(s *Server) { s.Token, s.Private = "open sesame", true })
	w.write(2003, 2008)
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	basic := func(password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth("ann", password) }
	}
	status, _, header := w.do(http.MethodPost, "/token", url.Values{"token": {"open sesame"}, "next": {"/"}})
	require.Equal(t, http.StatusSeeOther, status)
	cookie := strings.Split(header.Get("Set-Cookie"), ";")[0]
	feed := w.add("/blog/feed.atom")
	_, index, _ := w.ask(feed+"/index.atom", basic("open sesame"))
	_, archive, ok := strings.Cut(index, `rel="prev-archive" href="`)
	require.True(t, ok, index)
	archive, _, _ = strings.Cut(archive, `"`)
	archive = "/" + strings.TrimPrefix(archive, w.url)
	_, page, _ := w.ask(feed, bearer("open sesame"))
	_, entry, ok := strings.Cut(page, `/entry?id=`)
	require.True(t, ok)
	entry, _, _ = strings.Cut(entry, `"`)

	for _, path := range []string{
		"/", "/entries", "/overview", "/feeds.opml", "/feeds.opml?mirrored", feed, feed + "/entry?id=" + entry, feed + "/random", feed + "/day",
		feed + "/remove", feed + "/index.atom", feed + "/index.rss", archive, feed + "/complete.atom",
		feed + "/slice.atom", feed + "/slice.rss", feed + "/subscribe", feed + "/replay.atom?start=2020-01-01&every=1d",
	} {
		for name, show := range map[string]func(*http.Request){
			"nothing": nil, "another bearer": bearer("open barley"), "no bearer": bearer(""), "another password": basic("open barley"),
			"no password": basic(""), "another cookie": func(r *http.Request) { r.Header.Set("Cookie", cookieName+"=00") },
			"a user": func(r *http.Request) { r.SetBasicAuth("open sesame", "") },
		} {
			status, body, header := w.ask(path, show)
			require.Equal(t, http.StatusUnauthorized, status, "%s with %s", path, name)
			require.Contains(t, body, "To read or change anything here, you need the token")
			require.NotContains(t, body, "Lighthouse Log", path)
			require.NotContains(t, body, "Wind from", path)
			require.NotContains(t, header.Get("Cache-Control"), "public")
			require.Equal(t, strings.Contains(path, ".atom") || strings.Contains(path, ".rss") || strings.Contains(path, ".opml"),
				strings.Contains(strings.Join(header["Www-Authenticate"], ","), "Basic realm="), path)
		}
		for _, show := range []func(*http.Request){
			bearer("open sesame"), basic("open sesame"), func(r *http.Request) { r.Header.Set("Cookie", cookie) },
		} {
			status, body, header := w.ask(path, show)
			require.NotEqual(t, http.StatusUnauthorized, status, path)
			require.Less(t, status, 400, "%s: %s", path, body)
			require.Contains(t, header.Get("Cache-Control"), "private", path)
			require.NotContains(t, header.Get("Cache-Control"), "public", path)
			require.Contains(t, strings.Join(header["Vary"], ","), "Authorization, Cookie", path)
		}
	}
	_, body, _ := w.ask(feed+"/subscribe", bearer("open sesame"))
	require.Contains(t, body, "Make its login")
	require.NotContains(t, body, "open sesame")
	require.NotContains(t, body, "feedly.com")
	status, _, header = w.ask("/"+assets().path("style.css"), nil)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, header.Get("Cache-Control"), "public")
	status, _, _ = w.ask("/token", nil)
	require.Equal(t, http.StatusOK, status)
	status, _, _ = w.ask(feed+"/nothing", nil)
	require.Equal(t, http.StatusUnauthorized, status, "whether there is such a page is not told")
}

// Servers that share the file of logins lose none: one made by another stays, and one that
// another has revoked does not come back.
func TestReaderLoginsTogether(t *testing.T) {
	file := filepath.Join(t.TempDir(), "readers")
	var all sync.WaitGroup
	for n := range 4 {
		w := newWorld(t, func(s *Server) { s.Token, s.Private, s.Readers = "open sesame", true, file })
		all.Go(func() {
			for i := range 10 {
				r := httptestRequest(t.Context(), http.MethodPost, "/readers", strings.NewReader(fmt.Sprintf("name=reader+%d+%d", n, i)))
				r.Header.Set("Authorization", "Bearer open sesame")
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				if status, body, _ := answer(t, w.Server, r); status != http.StatusOK {
					t.Error(status, body)
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, 40, strings.Count(string(feedtest.ReadFile(t, file)), `"name"`))
}

// Each feed reader has a login of its own, which reads and does nothing else, and ends when
// it is revoked, also at another server with the same file.
func TestReaderLogins(t *testing.T) {
	file := filepath.Join(t.TempDir(), "readers")
	w := newWorld(t, func(s *Server) { s.Token, s.Private, s.Readers = "open sesame", true, file })
	w.write(2003, 2005)
	_, _, _ = w.do(http.MethodPost, "/token", url.Values{"token": {"open sesame"}})
	feed := w.add("/blog/feed.atom")
	require.Contains(t, w.page(feed+"/subscribe", http.StatusOK), `name="feed" value="`+w.feedURL("/blog/feed.atom")+`"`)
	status, body, _ := w.do(http.MethodPost, "/readers", url.Values{"name": {"My phone"}, "feed": {w.feedURL("/blog/feed.atom")}})
	require.Equal(t, http.StatusOK, status, body)
	requireSound(t, body)
	unknown, _, _ := w.do(http.MethodPost, "/readers", url.Values{"name": {"Stranger"}, "feed": {"http://nowhere.example/feed"}})
	require.Equal(t, http.StatusNotFound, unknown)
	_, address, ok := strings.Cut(body, `href="http://My%20phone:`)
	require.True(t, ok, body)
	password, rest, _ := strings.Cut(address, "@")
	require.Equal(t, strings.TrimPrefix(w.url, "http://")+strings.TrimPrefix(feed, "/")+"/index.atom", rest[:strings.IndexByte(rest, '"')])
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(text), password)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077)

	from := func(s *Server, method, path, name, password string) int {
		r := httptestRequest(t.Context(), method, path, nil)
		r.SetBasicAuth(name, password)
		status, _, _ := answer(t, s, r)
		return status
	}
	other := &Server{Store: w.Store, Base: w.url, Token: "open sesame", Private: true, Readers: file}
	for _, s := range []*Server{w.Server, other} {
		for range mostGuesses + 1 { // using a login is no guess
			require.Equal(t, http.StatusOK, from(s, http.MethodGet, feed, "My phone", password))
		}
		for _, path := range []string{"/", feed + "/index.atom", feed + "/complete.atom", "/feeds.opml?mirrored"} {
			require.Equal(t, http.StatusOK, from(s, http.MethodGet, path, "My phone", password), path)
		}
		for _, path := range []string{"/feeds", feed + "/poll", feed + "/remove", "/readers", "/readers/revoke", "/token"} {
			require.NotContains(t, []int{http.StatusOK, http.StatusSeeOther}, from(s, http.MethodPost, path, "My phone", password), path)
		}
		require.Equal(t, http.StatusUnauthorized, from(s, http.MethodGet, "/readers", "My phone", password))
		require.Equal(t, http.StatusUnauthorized, from(s, http.MethodGet, "/", "Another", password))
		require.Equal(t, http.StatusUnauthorized, from(s, http.MethodGet, "/", "My phone", "guessed"))
	}
	require.Len(t, w.feeds(), 1)
	for _, name := range []string{"", "a:b", "My phone", strings.Repeat("x", mostName+1)} {
		status, _, _ := w.do(http.MethodPost, "/readers", url.Values{"name": {name}})
		require.Equal(t, http.StatusUnprocessableEntity, status, name)
	}
	require.Contains(t, w.page("/readers", http.StatusOK), "<bdi>My phone</bdi>")
	require.NotContains(t, w.page("/readers", http.StatusOK), password)
	status, _, _ = w.do(http.MethodPost, "/readers/revoke", url.Values{"name": {"My phone"}})
	require.Equal(t, http.StatusSeeOther, status)
	for _, s := range []*Server{w.Server, other} {
		require.Equal(t, http.StatusUnauthorized, from(s, http.MethodGet, feed, "My phone", password))
	}
	status, _, _ = w.do(http.MethodPost, "/readers/revoke", url.Values{"name": {"My phone"}})
	require.Equal(t, http.StatusNotFound, status)
}

// Shared caches keep no answer, not even one with directives of its own.
func TestPrivateAnswers(t *testing.T) {
	w := newWorld(t, func(s *Server) { s.Token, s.Private = "open sesame", true })
	_, _, _ = w.do(http.MethodPost, "/token", url.Values{"token": {"open sesame"}, "next": {"/"}})
	feed := w.add("/news.rss")
	for path, want := range map[string]string{feed + "/random": "private, no-store", feed: "private, no-cache", feed + "/index.atom": "private, max-age=60"} {
		_, _, header := w.get(path)
		require.Equal(t, want, header.Get("Cache-Control"), path)
	}
}

// A Private server without a token answers nobody.
func TestPrivateWithoutToken(t *testing.T) {
	w := newWorld(t, func(s *Server) { s.Private = true })
	for _, show := range []func(*http.Request){
		nil, func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }, func(r *http.Request) { r.SetBasicAuth("", "") },
		func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookieName, Value: w.Server.gate.proof("")}) },
	} {
		status, _, _ := w.ask("/", show)
		require.Equal(t, http.StatusUnauthorized, status)
		r := httptestRequest(t.Context(), http.MethodPost, "/feeds", nil)
		if show != nil {
			show(r)
		}
		rec := httptest.NewRecorder()
		w.ServeHTTP(rec, r)
		require.Equal(t, http.StatusUnauthorized, rec.Code)
	}
}

// hide makes a feed private, as a poll with credentials does.
func (w *world) hide(feed string) {
	f, err := w.Store.Feed(w.t.Context(), feed)
	require.NoError(w.t, err)
	f.Private, f.Next = true, time.Unix(0, 0)
	require.NoError(w.t, w.Store.Commit(w.t.Context(), &mirror.Commit{Feed: f}))
}

// filesOf returns the names of the documents in an Output.
func filesOf(t testing.TB, out fs.FS) (names []string) {
	require.NoError(t, fs.WalkDir(out, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	}))
	return names
}

// A server that everybody can read neither shows nor publishes nor polls private
// feeds, whatever was published of them before, and a Private one keeps what it
// publishes of them apart.
func TestPrivateFeeds(t *testing.T) {
	shared, apart := publish.Dir{Path: t.TempDir()}, publish.Dir{Path: t.TempDir()}
	w := newWorld(t, func(s *Server) {
		s.Token, s.Private, s.Output, s.PrivateOutput = "open sesame", true, shared, apart
	})
	w.write(2003, 2008)
	_, _, _ = w.do(http.MethodPost, "/token", url.Values{"token": {"open sesame"}, "next": {"/"}})
	tides, blog := w.add("/tides.atom"), w.add("/blog/feed.atom")
	archive := func(format string) string {
		status, index, _ := w.get(blog + "/index." + format)
		require.Equal(t, http.StatusOK, status)
		_, link, ok := strings.Cut(index, `rel="prev-archive" href="`)
		require.True(t, ok, index)
		link, _, _ = strings.Cut(link, `"`)
		return "/" + strings.TrimPrefix(link, w.url)
	}
	before := archive("rss") // while it is public
	w.hide(w.feedURL("/blog/feed.atom"))
	after := archive("atom")
	_, _, _ = w.get(tides + "/index.atom")
	for _, name := range filesOf(t, apart) {
		require.Contains(t, name, republish.Name(w.feedURL("/blog/feed.atom")))
	}
	require.NotEmpty(t, filesOf(t, apart))
	require.Contains(t, strings.Join(filesOf(t, apart), " "), path.Base(after))
	require.Contains(t, strings.Join(filesOf(t, shared), " "), path.Base(before))
	require.NotContains(t, strings.Join(filesOf(t, shared), " "), path.Base(after))

	open := &Server{Store: w.Store, Base: w.Base, Output: shared, PrivateOutput: apart, clock: w.clock}
	for _, page := range []string{"/", "/?show=whole", "/entries", "/entries?q=storm", "/overview", "/feeds.opml", "/feeds.opml?mirrored", tides} {
		status, body, _ := answer(t, open, httptestRequest(t.Context(), http.MethodGet, page, nil))
		require.Equal(t, http.StatusOK, status, page)
		require.NotContains(t, body, "Lighthouse Log", page)
		require.NotContains(t, body, "/blog/", page)
		require.NotContains(t, body, "barque", page)
	}
	for _, page := range []string{
		blog, blog + "/index.atom", blog + "/index.rss", before, after, blog + "/complete.atom", blog + "/slice.atom", blog + "/replay.atom?start=2020-01-01&every=1d",
		blog + "/subscribe", blog + "/random", blog + "/day", blog + "/remove", blog + "/entry?id=tag:lighthouse.example,2003:1/1",
	} {
		status, body, _ := answer(t, open, httptestRequest(t.Context(), http.MethodGet, page, nil))
		require.Equal(t, http.StatusNotFound, status, page)
		require.NotContains(t, body, "barque", page)
	}
	var polled []string
	_, err := open.polls.AddAll(t.Context(), func(f *mirror.Feed, _ bool) bool {
		polled = append(polled, f.URL)
		return true
	})
	require.NoError(t, err)
	require.Equal(t, []string{w.feedURL("/tides.atom")}, polled)

	status, _, _ := w.do(http.MethodPost, blog+"/remove", url.Values{})
	require.Equal(t, http.StatusSeeOther, status)
	require.Empty(t, filesOf(t, apart))
	require.NotContains(t, strings.Join(filesOf(t, shared), " "), strings.TrimPrefix(blog, "/feeds/"))
	require.NotEmpty(t, filesOf(t, shared))
}
