package web

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// A readingApp is a small client of the API.
type readingApp struct {
	*world
	root, auth string
}

// answer returns the server's answer.
func (a *readingApp) answer(method, path string, form url.Values) (int, string) {
	a.t.Helper()
	r := httptestRequest(a.t.Context(), method, a.root+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "https://app.example")
	if a.auth != "" {
		r.Header.Set("Authorization", "GoogleLogin auth="+a.auth)
	}
	status, body, header := answer(a.t, a.Server, r)
	if status == http.StatusOK {
		require.Contains(a.t, header.Get("Cache-Control"), "private")
	}
	return status, body
}

// login makes a login for the app, and logs it in.
func (w *world) login(root, name string) *readingApp {
	_, page, _ := w.do(http.MethodPost, "/readers", url.Values{"name": {name}})
	require.Contains(w.t, page, w.url+"api/greader.php")
	_, password, ok := strings.Cut(page, `<dt>Password</dt><dd><code class="break">`)
	require.True(w.t, ok, page)
	password, _, _ = strings.Cut(password, "<")
	a := &readingApp{world: w, root: root}
	for _, wrong := range []url.Values{{}, {"Email": {name}}, {"Email": {name}, "Passwd": {"open sesame"}}, {"Email": {"x"}, "Passwd": {password}}} {
		status, _ := a.answer(http.MethodPost, "/accounts/ClientLogin", wrong)
		require.Equal(w.t, http.StatusUnauthorized, status)
	}
	status, text := a.answer(http.MethodPost, "/accounts/ClientLogin", url.Values{"Email": {name}, "Passwd": {password}, "service": {"reader"}})
	require.Equal(w.t, http.StatusOK, status, text)
	for _, line := range strings.Fields(text) {
		if auth, ok := strings.CutPrefix(line, "Auth="); ok {
			a.auth = auth
		}
	}
	return a
}

func get[T any](a *readingApp, path string, pairs ...string) (value T) {
	a.t.Helper()
	status, body := a.answer(http.MethodGet, "/reader/api/0/"+path+queryOf(pairs...), nil)
	require.Equal(a.t, http.StatusOK, status, body)
	require.NoError(a.t, json.Unmarshal([]byte(body), &value), body)
	return value
}

func (a *readingApp) post(path string, form url.Values) {
	a.t.Helper()
	status, body := a.answer(http.MethodGet, "/reader/api/0/token", nil)
	require.Equal(a.t, http.StatusOK, status)
	require.Len(a.t, body, 57)
	form.Set("T", body)
	status, body = a.answer(http.MethodPost, "/reader/api/0/"+path, form)
	require.Equal(a.t, http.StatusOK, status, body)
	require.Equal(a.t, "OK", body)
}

type appItem struct {
	ID, GUID, Title, Author string
	Published               int64
	Categories              []string
	Canonical               []struct{ Href string }
	Enclosure               []struct{ Href, Type string }
	Summary                 struct{ Content string }
	Origin                  struct{ StreamID, Title string }
}

type appPart struct {
	Items        []appItem
	ItemRefs     []struct{ ID string }
	Continuation string
}

// whole returns the items or the numbers of a stream, by continuation.
func (a *readingApp) whole(path string, pairs ...string) (all appPart) {
	a.t.Helper()
	for next := ""; ; {
		part := get[appPart](a, path, append(slices.Clone(pairs), "c", next)...)
		all.Items, all.ItemRefs = append(all.Items, part.Items...), append(all.ItemRefs, part.ItemRefs...)
		if next = part.Continuation; next == "" {
			return all
		}
		require.Positive(a.t, len(part.Items)+len(part.ItemRefs), path)
	}
}

// thousand adds a feed of a thousand entries, of which some share a time.
func (w *world) thousand(url string) (ids []string) {
	require.NoError(w.t, w.published.Reserve(w.t.Context(), url))
	feed := mirror.NewFeed(url)
	feed.Named, feed.Folders = "A thousand", [][]string{{"Sea", "Old & new"}}
	require.NoError(w.t, w.Store.Commit(w.t.Context(), &mirror.Commit{Feed: feed}))
	var kept []mirror.KeptEntry
	for n := range 1000 {
		ids = append(ids, fmt.Sprintf("urn:%04d", n))
		kept = append(kept, mirror.KeptEntry{Draft: compose.Draft{
			ID: ids[n], Title: feedhistory.Text{Body: fmt.Sprint("Entry ", n)}, Updated: time.Unix(1e9+int64(n/3)*86400, 0),
			Content: feedhistory.Text{Type: "html", Body: `<p>Text <img src="a.png"><script>x</script></p>`, Base: "http://a.example/"},
		}})
	}
	_, err := (&mirror.Recall{Mirror: &mirror.Mirror{Store: w.Store}, Name: "x"}).Entries(w.t.Context(), url, "", kept)
	require.NoError(w.t, err)
	return ids
}

// An app reads the whole history of a feed in both orders, each entry once, and its marks are
// those of the pages.
func TestApps(t *testing.T) {
	for _, root := range []string{"", "/api/greader.php"} {
		t.Run(root, func(t *testing.T) {
			w := newWorld(t, func(s *Server) {
				if root != "" {
					db := openSQLite(t, filepath.Join(t.TempDir(), "m.db"))
					s.Store, s.Mirror.Store = db, db
				}
				s.Token, s.Readers = "open sesame", t.TempDir()+"/readers"
			})
			w.write(2003, 2006)
			_, _, _ = w.do(http.MethodPost, "/token", url.Values{"token": {"open sesame"}, "next": {"/"}})
			w.add("/blog/feed.atom")
			pod := "feed/" + strings.TrimPrefix(w.add("/pod.rss"), "/feeds/")
			feed := "http://a.example/feed"
			ids := w.thousand(feed)
			a := w.login(root, "My phone/é")
			testApp(t, w, a, feed, "feed/"+republish.Name(feed), pod, ids)
		})
	}
}

func testApp(t *testing.T, w *world, a *readingApp, feed, id, pod string, ids []string) {
	subscriptions := get[struct{ Subscriptions []map[string]any }](a, "subscription/list", "output", "json").Subscriptions
	require.Len(t, subscriptions, 3)
	require.Contains(t, subscriptions, map[string]any{
		"id": id, "title": "A thousand", "url": feed, "htmlUrl": "",
		"categories": []any{map[string]any{"id": "user/-/label/Sea/Old & new", "label": "Sea/Old & new"}},
	})
	label := "user/-/label/Sea/Old & new"
	require.Equal(t, "My phone/é", get[map[string]string](a, "user-info")["userName"])
	require.Contains(t, get[struct{ Tags []map[string]string }](a, "tag/list", "output", "json").Tags, map[string]string{"id": label, "type": "folder"})

	forward := a.whole("stream/contents/"+url.PathEscape(id), "r", "o", "n", "170").Items
	require.Len(t, forward, 1000)
	var guids []string
	for _, item := range forward {
		guids = append(guids, item.GUID)
	}
	require.Equal(t, ids, guids)
	backward := a.whole("stream/contents", "s", id, "n", "333").Items
	slices.Reverse(backward)
	require.Equal(t, forward, backward)
	first := forward[0]
	require.Equal(t, "Entry 0", first.Title)
	require.Equal(t, int64(1e9), first.Published)
	require.Equal(t, `<p>Text <img src="http://a.example/a.png" alt="" title=""/></p>`, first.Summary.Content)
	require.Equal(t, id, first.Origin.StreamID)
	require.Equal(t, w.url+"feeds/"+republish.Name(feed)+"/entry?id=urn%3A0000", first.Canonical[0].Href)
	episode := a.whole("stream/contents/" + url.PathEscape(pod)).Items[0]
	require.Equal(t, "audio/mpeg", episode.Enclosure[0].Type)

	all := a.whole("stream/items/ids", "s", "user/-/state/com.google/reading-list", "n", "400").ItemRefs
	require.Greater(t, len(all), 1000)
	require.Len(t, a.whole("stream/items/ids", "s", label, "n", "10000").ItemRefs, 1000)
	require.Len(t, get[appPart](a, "stream/items/ids", "s", id, "n", "99999999999999999999").ItemRefs, 1000)
	require.Len(t, get[appPart](a, "stream/contents", "n", "-1").Items, usualItems)

	// marks, from the app to the pages and back
	counts := func() map[string]int64 {
		found := map[string]int64{}
		for _, c := range get[struct {
			UnreadCounts []struct {
				ID     string
				Count  int64
				Newest string `json:"newestItemTimestampUsec"`
			}
		}](a, "unread-count", "output", "json").UnreadCounts {
			found[c.ID] = c.Count
			require.Greater(t, len(c.Newest), 15)
		}
		return found
	}
	refs := a.whole("stream/items/ids", "s", id, "r", "o", "n", "1000").ItemRefs
	hex := func(i int) string { return strings.TrimPrefix(forward[i].ID, itemPrefix) }
	require.Equal(t, fmt.Sprintf("%d", must(numberOf(hex(3)))), refs[3].ID)
	a.post("edit-tag", url.Values{"i": {forward[0].ID, refs[1].ID, hex(2)}, "a": {readState, "user/-/state/com.google/tracking-kept-unread"}, "ac": {"edit"}})
	a.post("edit-tag", url.Values{"i": {refs[2].ID}, "a": {starState}, "r": {readState}})
	marks := w.marked(feed)
	require.False(t, marks[ids[0]].Read.IsZero())
	require.False(t, marks[ids[1]].Read.IsZero())
	require.True(t, marks[ids[2]].Read.IsZero())
	require.False(t, marks[ids[2]].Starred.IsZero())
	require.Equal(t, int64(998), counts()[id])
	require.Equal(t, int64(998), counts()[label])
	require.Equal(t, int64(len(all)-2), counts()[readingList])
	unread := a.whole("stream/items/ids", "s", readingList, "xt", readState, "n", "1000").ItemRefs
	require.Len(t, unread, len(all)-2)
	read := a.whole("stream/items/ids", "s", readingList, "it", readState).ItemRefs
	require.Len(t, read, 2)
	status, _, _ := w.do(http.MethodPost, "/feeds/"+republish.Name(feed)+"/marks", url.Values{"id": {ids[7]}, "star": {"on"}, "read": {"on"}})
	require.Equal(t, http.StatusNoContent, status)
	starred := a.whole("stream/contents/user/-/state/com.google/starred", "n", "1").Items
	require.Len(t, starred, 2)
	require.Equal(t, []string{ids[7], ids[2]}, []string{starred[0].GUID, starred[1].GUID})
	require.Contains(t, starred[0].Categories, readState)
	require.NotContains(t, starred[1].Categories, readState)

	// after a restart, or when it has forgotten them, the server knows the numbers
	restarted := &readingApp{root: a.root, auth: a.auth, world: &world{t: t, Server: &Server{Store: w.Store, Base: w.url, Token: w.Token, Readers: w.Readers}}}
	for _, n := range []int{500, 501} {
		restarted.post("edit-tag", url.Values{"i": {forward[n].ID, "77", "tag:google.com,2005:reader/item/0000000000000007"}, "a": {starState}})
		require.False(t, w.marked(feed)[ids[n]].Starred.IsZero())
	}
	contents := func(i ...string) []appItem {
		status, body := restarted.answer(http.MethodPost, "/reader/api/0/stream/items/contents", url.Values{"i": i})
		require.Equal(t, http.StatusOK, status, body)
		var part appPart
		require.NoError(t, json.Unmarshal([]byte(body), &part))
		return part.Items
	}
	items := contents(refs[500].ID, hex(600), forward[700].ID, "123")
	require.Len(t, items, 3)
	for _, item := range items {
		require.Contains(t, item.Summary.Content, "Text", item.Title)
	}
	require.Empty(t, contents())

	// times are those at which the server got the entries
	future := fmt.Sprint(time.Now().Add(time.Hour).Unix())
	require.Empty(t, a.whole("stream/items/ids", "s", id, "ot", future).ItemRefs)
	require.Len(t, a.whole("stream/items/ids", "s", id, "nt", future, "n", "1000").ItemRefs, 1000)
	require.Empty(t, a.whole("stream/items/ids", "s", id, "nt", "1").ItemRefs)
	a.post("mark-all-as-read", url.Values{"s": {id}, "ts": {"1000000"}})
	require.Equal(t, int64(997), counts()[id])
	a.post("mark-all-as-read", url.Values{"s": {label}, "ts": {fmt.Sprint(time.Now().Add(time.Hour).UnixNano())}})
	require.Equal(t, int64(0), counts()[id])
	require.Positive(t, counts()[readingList])
	a.post("mark-all-as-read", url.Values{"s": {readingList}})
	require.Zero(t, counts()[readingList])
	require.Empty(t, a.whole("stream/items/ids", "s", readingList, "xt", readState).ItemRefs)

	refuses(t, w, a, id, forward[0].ID)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// refuses checks the limits of an app, and that wrong requests cost little.
func refuses(t *testing.T, w *world, a *readingApp, feed, item string) {
	for path, form := range map[string]url.Values{
		"subscription/edit": {"ac": {"unsubscribe"}, "s": {feed}}, "subscription/quickadd": {"quickadd": {"http://b.example/"}},
		"subscription/import": {}, "rename-tag": {"s": {"user/-/label/Sea"}, "dest": {"user/-/label/Land"}}, "disable-tag": {"s": {"user/-/label/Sea"}},
		"edit-tag": {"i": {item}, "a": {"user/-/label/New"}},
	} {
		status, body := a.answer(http.MethodPost, "/reader/api/0/"+path, form)
		require.Equal(t, http.StatusForbidden, status, path)
		require.Contains(t, body, "An app may only read, and mark entries as read or starred.")
	}
	feeds := len(feedtest.All(t, w.Store.Feeds(t.Context(), mirror.FeedQuery{})))
	require.Equal(t, 3, feeds)
	many := make([]string, 100_000)
	for i := range many {
		many[i] = "1"
	}
	for path, want := range map[string]int{
		"stream/items/ids?s=" + feed + "&c=%00": 400, "stream/items/ids?s=" + feed + "&c=" + strings.Repeat("x", 10_000): 400,
		"stream/contents/feed/0000": 404, "stream/contents/user/-/label/Sea": 404, "stream/contents/user/-/state/com.google/broadcast": 404,
		"stream/contents/feed/..%2F..%2Fetc": 404, "preference/list": 403, "stream/items/contents?i=x": 400, "stream/items/contents?i=-": 400, "stream/items/contents?i=": 400,
		"stream/items/contents?i=99999999999999999999": 400, "stream/items/contents?i=-5": 200, "stream/items/contents?a=%zz": 400,
	} {
		status, body := a.answer(http.MethodGet, "/reader/api/0/"+path, nil)
		require.Equal(t, want, status, "%s: %s", path, body)
	}
	for path, form := range map[string]url.Values{
		"edit-tag": {"i": many, "a": {readState}}, "stream/items/contents": {"i": many}, "mark-all-as-read": {"s": {strings.Repeat("x", 2<<20)}},
	} {
		status, _ := a.answer(http.MethodPost, "/reader/api/0/"+path, form)
		require.Equal(t, http.StatusBadRequest, status, path)
	}
	status, _ := a.answer(http.MethodPost, "/reader/api/0/mark-all-as-read", url.Values{"s": {feed}, "ts": {"yesterday"}})
	require.Equal(t, http.StatusBadRequest, status)

	// neither a cookie nor Basic authentication, which a browser sends by itself, is a login here
	status, _, _ = w.do(http.MethodPost, "/reader/api/0/edit-tag", url.Values{"i": {item}, "r": {readState}})
	require.Equal(t, http.StatusUnauthorized, status)
	name, password, _ := strings.Cut(a.auth, "/")
	name, err := url.PathUnescape(name)
	require.NoError(t, err)
	for path, want := range map[string]int{"/reader/api/0/token": 401, "/feeds/" + strings.TrimPrefix(feed, "feed/") + "/remove": 403, "/readers": 403, "/feeds": 403} {
		r := httptestRequest(t.Context(), http.MethodPost, path, nil)
		r.SetBasicAuth(name, password)
		status, _, _ := answer(t, w.Server, r)
		require.Equal(t, want, status, path)
	}
	other := w.login(a.root, "Another")
	status, _, _ = w.do(http.MethodPost, "/readers/revoke", url.Values{"name": {name}})
	require.Equal(t, http.StatusSeeOther, status)
	status, body := a.answer(http.MethodGet, "/reader/api/0/subscription/list", nil)
	require.Equal(t, http.StatusUnauthorized, status)
	require.Contains(t, body, "The app must log in")
	require.NotEmpty(t, get[map[string]any](other, "subscription/list"))
}

// Newsboat reads a whole history, its marks come here, and ours go there.
func TestNewsboatApp(t *testing.T) {
	feedtest.Program(t, "FEEDHISTORY_NEWSBOAT", "newsboat")
	w := newWorld(t, func(s *Server) { s.Token, s.Private = "open sesame", true })
	_, _, _ = w.do(http.MethodPost, "/token", url.Values{"token": {"open sesame"}, "next": {"/"}})
	feed := "http://a.example/feed"
	ids := w.thousand(feed)
	a := w.login("", "newsboat at home")
	_, password, _ := strings.Cut(a.auth, "/")
	store, now := w.Store.(mirror.Marker), time.Now()
	require.NoError(t, store.Mark(t.Context(), feed, ids[:10], func(m *mirror.Marks) { m.Read = now }))

	dir := t.TempDir()
	config, cache := filepath.Join(dir, "config"), filepath.Join(dir, "cache.db")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
urls-source "feedhq"
feedhq-url "%s"
feedhq-login "newsboat at home"
feedhq-password "%s"
feedhq-min-items 2000
feedhq-flag-star "s"
feedhq-show-special-feeds no
`, strings.TrimSuffix(w.url, "/"), password), 0o600))
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "newsboat", append([]string{"-C", config, "-c", cache, "-u", filepath.Join(dir, "urls")}, args...)...)
		cmd.Env = append(os.Environ(), "TERM=xterm", "HOME="+dir, "no_proxy=*", "LC_ALL=C.UTF-8")
		return cmd
	}
	items := func(condition string) (n int) {
		out, err := command("-x", "reload").CombinedOutput()
		require.NoError(t, err, "%s", out)
		db, err := sql.Open("sqlite", cache)
		require.NoError(t, err)
		defer db.Close()
		require.NoError(t, db.QueryRow("SELECT count(DISTINCT guid) FROM rss_item WHERE "+condition).Scan(&n))
		return n
	}
	require.Equal(t, 1000, items("true"))
	require.Equal(t, 990, items("unread = 1"))
	require.Equal(t, 1, items("unread = 0 AND title = 'Entry 7' AND pubDate = 1000172800 AND content LIKE '%http://a.example/a.png%'"))

	cmd := command()
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	require.NoError(t, err)
	var mu sync.Mutex
	var screen strings.Builder
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for text := make([]byte, 4096); ; {
			n, err := terminal.Read(text)
			if err != nil {
				return
			}
			mu.Lock()
			screen.Write(text[:n])
			mu.Unlock()
		}
	}()
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = terminal.Close()
		<-ended
	}()
	press := func(keys, shown string) {
		t.Helper()
		_, err := terminal.WriteString(keys)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return strings.Contains(screen.String(), shown)
		}, patience, 10*time.Millisecond, shown)
	}
	press("", "A thousand")
	press("\r", "Entry 999")
	marked := func(name string, want int) {
		t.Helper()
		require.Eventually(t, func() bool {
			return len(feedtest.All(t, store.Marks(t.Context(), mirror.MarksQuery{Feed: feed, With: name}))) == want
		}, patience, 10*time.Millisecond, name)
	}
	press("N", "") // and on to the next one
	marked("read", 11)
	press("\x05", "Flags:")
	press("s\r", "")
	marked("starred", 1)
	press("A", "")
	marked("read", 1000)
}
