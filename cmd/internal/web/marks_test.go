package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// marked returns the marks of the feed with a page, by ID.
func (w *world) marked(feed string) map[string]*mirror.Marks {
	all := map[string]*mirror.Marks{}
	for _, m := range feedtest.All(w.t, w.Store.(mirror.Marker).Marks(w.t.Context(), mirror.MarksQuery{Feed: feed})) {
		all[m.ID] = m
	}
	return all
}

// blogID returns the ID of an entry of the blog.
func (w *world) blogIDs() (ids []string) {
	for r, err := range w.Store.Entries(w.t.Context(), mirror.Query{Feed: w.feedURL("/blog/feed.atom"), Reverse: true}) {
		require.NoError(w.t, err)
		ids = append(ids, r.ID)
	}
	return ids
}

// Forms set marks without a script, and pages show them.
func TestMarksByForms(t *testing.T) {
	now := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	w := newWorld(t, func(s *Server) { s.clock = func() time.Time { return now } })
	w.write(2003, 2006)
	page := w.add("/blog/feed.atom")
	feed, ids := w.feedURL("/blog/feed.atom"), w.blogIDs()
	entry := func(i int) string { return page + "/entry?" + url.Values{"id": {ids[i]}}.Encode() }
	set := func(i int, form url.Values) {
		t.Helper()
		form.Set("id", ids[i])
		form.Set("next", entry(i))
		status, body, header := w.do(http.MethodPost, page+"/marks", form)
		require.Equal(t, http.StatusSeeOther, status, body)
		require.Equal(t, entry(i), header.Get("Location"))
		now = now.Add(time.Minute)
	}
	require.NotContains(t, w.page(page, http.StatusOK), "you were at")
	require.Contains(t, w.page(entry(0), http.StatusOK), "Mark as read")
	set(0, url.Values{"read": {"on"}, "star": {"on"}, "run": {"forward"}, "position": {"90.7"}})
	first := w.marked(feed)[ids[0]]
	require.Equal(t, now.Add(-time.Minute), first.Read)
	require.Equal(t, first.Read, first.Starred)
	require.Equal(t, 90*time.Second, first.Position)
	require.Contains(t, w.page(entry(0), http.StatusOK), "Mark as unread")
	set(0, url.Values{"read": {"on"}, "star": {"off"}})
	require.Equal(t, first.Read, w.marked(feed)[ids[0]].Read, "when it was read does not change")
	require.Zero(t, w.marked(feed)[ids[0]].Starred)

	list := w.page(page+"?order=oldest", http.StatusOK)
	require.Equal(t, 1, strings.Count(list, `class="read"`))
	require.Contains(t, list, "Reading from the beginning, you were at")
	require.Contains(t, list, ", entry 1 of ")
	set(40, url.Values{"run": {"forward"}})
	list = w.page(page, http.StatusOK)
	require.Contains(t, list, ", entry 41 of ")
	require.Contains(t, list, "Back to entry 1, where you were before")
	set(0, url.Values{"run": {"forward"}}) // the way back
	require.Contains(t, w.page(page, http.StatusOK), ", entry 1 of ")
	set(60, url.Values{"run": {"backward"}})
	list = w.page(page, http.StatusOK)
	require.Contains(t, list, "Reading from the end, you were at")
	require.Contains(t, list, ", entry 61 of ")

	for _, form := range []url.Values{{"id": {"none"}, "read": {"on"}}, {}} {
		status, _, _ := w.do(http.MethodPost, page+"/marks", form)
		require.Equal(t, http.StatusNotFound, status)
	}
	set(1, url.Values{"run": {"sideways"}, "position": {"-3"}, "read": {"perhaps"}})
	require.NotContains(t, w.marked(feed), ids[1])
	require.Contains(t, w.page(page+"?q=fog", http.StatusOK), "?id=tag")
	require.NotContains(t, strings.Split(w.page(page+"?q=fog", http.StatusOK), `data-results`)[1], "run=", "a search is no run")
}

// Marks are the owner's, and the readers' whom the owner trusts; nobody else learns of them.
func TestMarksAreTheOwners(t *testing.T) {
	w := newWorld(t, func(s *Server) { s.Token = "open sesame" })
	w.write(2003, 2004)
	_, _, _ = w.do(http.MethodPost, "/token", url.Values{"token": {"open sesame"}})
	page := w.add("/blog/feed.atom")
	feed, ids := w.feedURL("/blog/feed.atom"), w.blogIDs()
	form := url.Values{"id": {ids[0]}, "read": {"on"}, "star": {"on"}, "run": {"forward"}}
	status, _, _ := w.do(http.MethodPost, page+"/marks", form)
	require.Equal(t, http.StatusNoContent, status)
	_, _, _ = w.do(http.MethodPost, "/token/forget", url.Values{})
	status, _, _ = w.do(http.MethodPost, page+"/marks", url.Values{"id": {ids[1]}, "read": {"on"}})
	require.Equal(t, http.StatusUnauthorized, status)
	require.Len(t, w.marked(feed), 1)
	for _, path := range []string{page + "?order=oldest", page + "/entry?" + url.Values{"id": {ids[0]}}.Encode(), page + "/read"} {
		body := w.page(path, http.StatusOK)
		for _, secret := range []string{"you were at", `class="read"`, "★", "Mark as", "data-marks"} {
			require.NotContains(t, body, secret, path)
		}
	}

	private := newWorld(t, func(s *Server) { s.Token, s.Private = "open sesame", true })
	private.write(2003, 2004)
	_, _, _ = private.do(http.MethodPost, "/token", url.Values{"token": {"open sesame"}})
	page = private.add("/blog/feed.atom")
	_, body, _ := private.do(http.MethodPost, "/readers", url.Values{"name": {"phone"}, "feed": {private.feedURL("/blog/feed.atom")}})
	_, password, ok := strings.Cut(body, `href="http://phone:`)
	require.True(t, ok)
	password, _, _ = strings.Cut(password, "@")
	for user, want := range map[string]int{"phone": http.StatusNoContent, "other": http.StatusUnauthorized} {
		r := httptestRequest(t.Context(), http.MethodPost, page+"/marks", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.SetBasicAuth(user, password)
		status, body, _ := answer(t, private.Server, r)
		require.Equal(t, want, status, "%s: %s", user, body)
	}
	require.Len(t, private.marked(private.feedURL("/blog/feed.atom")), 1)
}

// A store that keeps no marks is served without them.
func TestNoMarks(t *testing.T) {
	w := newWorld(t, nil)
	w.write(2003, 2004)
	page := w.add("/blog/feed.atom")
	bare := &Server{Store: struct{ mirror.Store }{w.Store}, Base: w.url}
	for path, want := range map[string]int{page: http.StatusOK, page + "/read": http.StatusOK, page + "/entry?" + url.Values{"id": {w.blogIDs()[0]}}.Encode(): http.StatusOK} {
		status, body, _ := answer(t, bare, httptestRequest(t.Context(), http.MethodGet, path, nil))
		require.Equal(t, want, status, path)
		require.NotContains(t, body, "Mark as")
	}
}

// A reader goes on at another device where the first one was, and an episode is not begun
// again.
func TestBrowserMarks(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	w.write(2003, 2008)
	page := strings.TrimPrefix(w.add("/blog/feed.atom"), "/")
	feed := w.feedURL("/blog/feed.atom")
	ids := w.blogIDs()
	place := func(want string) {
		t.Helper()
		require.Eventually(t, func() bool {
			last := feedtest.All(t, w.Store.(mirror.Marker).Marks(t.Context(), mirror.MarksQuery{Feed: feed, With: "forward", Limit: 1}))
			return len(last) == 1 && last[0].ID == want
		}, patience, 20*time.Millisecond, want)
	}
	const id = `new URLSearchParams(location.search).get("id")`
	b.open(w.url + page + "?order=oldest")
	require.Empty(t, b.text(".place"), "nobody was anywhere")
	b.click(".entries .title")
	place(ids[0])
	b.click("a[rel=next]")
	b.click("a[rel=next]")
	place(ids[2])
	require.Contains(t, b.text(".strip"), "Entry 3 of ")
	title := b.text("h1")
	for _, path := range []string{"/random", "/day?day=01-09", "?q=fog"} { // these are no reading on
		b.open(w.url + page + path)
		if path != "/random" {
			b.click(".entries .title")
		}
		require.Eventually(t, func() bool { return b.text("[data-marked] [name=read]") == "Mark as unread" }, patience, 20*time.Millisecond)
	}
	place(ids[2])
	other := newTab(t)
	other.open(w.url + page)
	require.Contains(t, other.text(".place"), "“"+title+"”, entry 3 of ")
	other.click(".place a")
	require.Equal(t, ids[2], evaluate[string](other, id))
	other.click("[data-marked] [name=read]")
	other.loads(`document.querySelector("[data-marked] [name=read]").textContent === "Mark as read"`)
	require.Zero(t, w.marked(feed)[ids[2]].Read, "the page that comes next does not mark it again")
	other.do(chromedp.KeyEvent("s"))
	other.loads(`document.querySelector("[data-marked] [name=star]").value === "off"`)

	// Continuous reading keeps the place while scrolling.
	b.open(w.url + page + "/read")
	require.Equal(t, entriesRead, evaluate[int](b, `document.querySelectorAll("article.reading").length`))
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("article.reading")[4].scrollIntoView()`))
	place(ids[4])
	b.open(w.url + page + "?order=oldest")
	require.Contains(t, b.text(".place"), "entry 5 of ")
	require.GreaterOrEqual(t, evaluate[int](b, `document.querySelectorAll(".entries .read").length`), 3)
	require.Equal(t, 1, evaluate[int](b, `document.querySelectorAll(".entries .star").length`))
}
