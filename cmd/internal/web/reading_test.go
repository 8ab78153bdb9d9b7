package web

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

var readingID = regexp.MustCompile(`<article class="entry reading" data-item data-id="([^"]+)"`)

// readThrough follows a link of continuous reading to its end, and returns the pages.
func (w *world) readThrough(path, rel string) (pages [][]string) {
	at := strings.SplitN(path, "?", 2)[0]
	for link := regexp.MustCompile(`rel="` + rel + `" href="([^"]+)"`); path != ""; {
		body := w.page(path, http.StatusOK)
		var ids []string
		for _, m := range readingID.FindAllStringSubmatch(body, -1) {
			ids = append(ids, m[1])
		}
		pages = append(pages, ids)
		path = ""
		if m := link.FindStringSubmatch(body); m != nil {
			path = at + strings.ReplaceAll(m[1], "&amp;", "&")
		}
	}
	return pages
}

// Continuous reading goes in both orders and, in each, both ways.
func TestReadBothWays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(2003, 2006)
	page, ids := w.add("/blog/feed.atom"), w.blogIDs()
	newest := slices.Clone(ids)
	slices.Reverse(newest)
	for order, want := range map[string][]string{"": ids, "&order=newest": newest} {
		pages := w.readThrough(page+"/read?"+order, "next")
		require.Equal(t, want, slices.Concat(pages...), order)
		pages = w.readThrough(page+"/read?before="+url.QueryEscape(want[len(want)-1])+order, "prev")
		slices.Reverse(pages)
		require.Equal(t, want[:len(want)-1], slices.Concat(pages...), order)
		require.Contains(t, w.page(page+"/read?"+order, http.StatusOK), map[string]string{"": "This is the beginning.", "&order=newest": "These are the newest entries."}[order])
	}
	body := w.page(page+"/read?from="+url.QueryEscape(ids[20]), http.StatusOK)
	require.Contains(t, body, `data-place="Entry 21 of 69, `)
	require.Contains(t, body, `data-place="Entry 30 of 69, `)
	require.Contains(t, w.page(page+"/read?order=newest&from="+url.QueryEscape(ids[20]), http.StatusOK), `data-place="Entry 12 of 69, `)
}

// Continuous reading has the pictures and the sound of the entries when they are asked for,
// on each of its pages, and marks.
func TestReadComplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(2003, 2006)
	blog, pod := w.add("/blog/feed.atom"), w.add("/pod.rss")
	body := w.page(blog+"/read", http.StatusOK)
	require.Contains(t, body, "Always show images of this feed")
	require.NotContains(t, body, "<img")
	_, body, header := w.get(blog + "/read?images=1")
	require.Equal(t, entriesRead, strings.Count(body, `<img src="https://lighthouse.example/chart.png"`))
	require.Equal(t, policyWith(false, true), header.Get("Content-Security-Policy"))
	require.Regexp(t, `rel="next" href="\?from=[^"]*&amp;images=1"`, body)
	require.Equal(t, entriesRead, strings.Count(body, `name="read" value="on"`))

	body = w.page(pod+"/read", http.StatusOK)
	require.NotContains(t, body, "<audio")
	require.Contains(t, body, `href="?from=pod-1&amp;play=1">Play here`)
	_, body, header = w.get(pod + "/read?play=1")
	require.Contains(t, body, `<audio controls preload="none" src="https://pod.example/1.mp3">`)
	require.Contains(t, body, `src="https://pod.example/2.mp3">`)
	require.Equal(t, policyWith(true, false), header.Get("Content-Security-Policy"))
}

// The months of a strip lead to their first entry, or to the nearest one.
func TestMonth(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(2003, 2006)
	page, ids := w.add("/blog/feed.atom"), w.blogIDs()
	for query, want := range map[string]string{
		"month=0": "/entry?id=" + url.QueryEscape(ids[0]), "month=-4": "/entry?id=" + url.QueryEscape(ids[0]), "month=x": "/entry?id=" + url.QueryEscape(ids[0]),
		"month=100000000":    "/entry?id=" + url.QueryEscape(ids[len(ids)-1]),
		"month=0&to=forward": "/read?from=" + url.QueryEscape(ids[0]), "month=900&to=backward": "/read?from=" + url.QueryEscape(ids[len(ids)-1]) + "&order=newest",
	} {
		status, _, header := w.get(page + "/month?" + query)
		require.Equal(t, http.StatusSeeOther, status, query)
		require.Equal(t, page+want, header.Get("Location"), query)
	}
	status, _, header := w.get(page + "/month?month=12")
	require.Equal(t, http.StatusSeeOther, status)
	first := slices.IndexFunc(ids, func(id string) bool { return strings.Contains(id, ",2004:") })
	require.Equal(t, page+"/entry?id="+url.QueryEscape(ids[first]), header.Get("Location"))
}

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

// The first page invites to go on where somebody was, to this day in other years, to an old
// entry and to the new ones; strangers see nothing of the marks.
func TestWelcome(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 9, 12, 0, 0, 0, time.UTC)
	w := newWorld(t, func(s *Server) { s.Token, s.clock = "open sesame", func() time.Time { return now } })
	_, _, _ = w.do(http.MethodPost, "/token", url.Values{"token": {"open sesame"}})
	require.NotContains(t, w.page("/", http.StatusOK), "On this day")
	w.write(2003, 2007)
	blog, ids := w.add("/blog/feed.atom"), w.blogIDs()
	news := w.add("/news.rss")
	body := w.page("/", http.StatusOK)
	require.NotContains(t, body, "Continue where you were")
	_, today, _ := strings.Cut(body, "On this day")
	today, _, _ = strings.Cut(today, "</ul>")
	require.Contains(t, today, "9 Jan 2006 · <bdi>The Lighthouse Log</bdi>")
	require.Contains(t, today, "9 Jan 2003 · ")
	require.Equal(t, 1, strings.Count(strings.SplitN(body, "From the past", 2)[1][:500], "/entry?id="))
	require.Equal(t, body, w.page("/", http.StatusOK), "the old entry is the same all day")
	require.Contains(t, body, "The ferry is back")
	require.Contains(t, body, `>2003<span class="hidden"> to </span><span>2026</span>`)

	mark := func(page, id string, form url.Values) {
		form.Set("id", id)
		status, _, _ := w.do(http.MethodPost, page+"/marks", form)
		require.Equal(t, http.StatusNoContent, status)
		now = now.Add(time.Second)
	}
	mark(blog, ids[11], url.Values{"run": {"forward"}, "read": {"on"}, "star": {"on"}})
	mark(blog, ids[12], url.Values{"run": {"forward"}, "read": {"on"}})
	mark(news, "harbour-2", url.Values{"run": {"backward"}})
	body = w.page("/", http.StatusOK)
	_, places, _ := strings.Cut(body, "Continue where you were")
	places, _, _ = strings.Cut(places, "</ul>")
	require.Regexp(t, `(?s)read\?from=harbour-2&amp;order=newest.*2024 · 2 of 3 · newest first.*read\?from=`, places)
	require.Contains(t, places, `/read?from=`+strings.ToLower(url.QueryEscape(ids[12]))+`"`)
	require.Contains(t, places, "13 of 91")
	require.Equal(t, 2, strings.Count(body, `class="star-part"`), "in the strip of the place and in that of the feed")
	require.Contains(t, w.page(blog, http.StatusOK), ", 2 read, 1 starred</title>")
	require.Contains(t, w.page(blog+"/entry?id="+url.QueryEscape(ids[3]), http.StatusOK), `class="read-part"`)
	mark(blog, ids[11], url.Values{"star": {"off"}})
	require.NotContains(t, w.page(blog, http.StatusOK), "starred</title>", "a mark that is taken away is seen at once")
	require.Contains(t, body, `<summary>Add a feed</summary>`)

	for range mostBuilding { // pages that read entries
		w.building <- struct{}{}
	}
	require.NotContains(t, w.page("/", http.StatusOK), "Continue where you were", "the list of feeds does not wait")
	for range mostBuilding {
		<-w.building
	}
	w.client.Jar = nil
	for _, page := range []string{"/", blog, blog + "/read", blog + "/entry?id=" + url.QueryEscape(ids[3])} {
		body = w.page(page, http.StatusOK)
		for _, word := range []string{"Continue", "read-part", "star-part", "data-marks", "Add a feed", `name="read"`} {
			require.NotContains(t, body, word, page)
		}
	}
	require.Contains(t, w.page("/", http.StatusOK), "show the token")
}

// Continuous reading goes on by itself, keeps the place and the address, sets marks where one
// is, and its strip shows the place and leads to other months.
func TestBrowserReading(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	w.write(2003, 2008)
	page, ids := strings.TrimPrefix(w.add("/blog/feed.atom"), "/"), w.blogIDs()
	feed := w.feedURL("/blog/feed.atom")
	b.open(w.url + page + "/read")
	const articles = `document.querySelectorAll("article.reading").length`
	require.Eventually(t, func() bool { // a busy browser may lose the first scrolling
		return evaluate[int](b, `(document.querySelectorAll("article.reading")[9].scrollIntoView(), `+articles+`)`) >= 2*entriesRead
	}, patience, 20*time.Millisecond)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("article.reading")[14].scrollIntoView()`))
	require.Eventually(t, func() bool {
		return strings.Contains(b.text(".strip"), "Entry 15 of ") && strings.Contains(evaluate[string](b, "location.search"), url.QueryEscape(ids[14]))
	}, patience, 20*time.Millisecond)
	require.Eventually(t, func() bool {
		last := feedtest.All(t, w.Store.(mirror.Marker).Marks(t.Context(), mirror.MarksQuery{Feed: feed, With: "forward", Limit: 1}))
		return len(last) == 1 && last[0].ID == ids[14]
	}, patience, 20*time.Millisecond)
	b.do(chromedp.KeyEvent("s"))
	require.Eventually(t, func() bool { return !w.marked(feed)[ids[14]].Starred.IsZero() }, patience, 20*time.Millisecond, "of the entry that is being read")
	require.GreaterOrEqual(t, evaluate[int](b, articles), 2*entriesRead, "without leaving the page")

	b.do(chromedp.KeyEvent("g"))
	require.Equal(t, "month", evaluate[string](b, "document.activeElement.id"))
	b.do(chromedp.KeyEvent(kb.Home))
	require.Contains(t, b.text(".strip"), "Go to January 2003")
	b.do(chromedp.Evaluate[chromedp.Void](`{ const slide = document.activeElement; slide.value = 23; }`))
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	require.Contains(t, b.text(".strip"), "Go to January 2005")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.loads(`location.search.includes("from=") && document.querySelector("article.reading .byline").innerText.includes("January 2005")`)
	b.click("a[rel=prev]")
	require.Equal(t, entriesRead, evaluate[int](b, articles))
	b.script(false)
	b.open(w.url + page + "/read")
	b.click(".strip button")
	require.Equal(t, entriesRead, evaluate[int](b, articles))
}

// still is the shift from which on a page counts as jumping: below it, tools say 0.000.
const still = .0005

// shifts is how far the parts of a page have jumped since it was opened (CLS).
const shifts = `new Promise((done) => { let sum = 0;
	new PerformanceObserver((list) => list.getEntries().forEach((e) => { if (!e.hadRecentInput) sum += e.value; })).observe({ type: "layout-shift", buffered: true });
	setTimeout(() => done(sum), 100); })`

// A week of reading on two devices: a blog from its beginning, an essay with a footnote and
// mathematics, a picture, an episode. Each device goes on where the other one was, no page
// jumps or is wider than its window, and none needs more than 40 kB.
func TestBrowserWeek(t *testing.T) {
	w := newWorld(t, nil)
	w.write(2003, 2013)
	blog, essays, pod := w.add("/blog/feed.atom"), w.add("/essays.atom"), w.add("/pod.rss")
	ids, feed := w.blogIDs(), w.feedURL("/blog/feed.atom")
	desk, phone := newTab(t), newTab(t)
	desk.resize(1440)
	phone.resize(360)
	check := func(b *tab, width int64) {
		t.Helper()
		require.Less(t, read(b, chromedp.Evaluate[float64](shifts, chromedp.EvalAwaitPromise)), still, "the page jumps: %s", read(b, chromedp.Evaluate[string](jumping, chromedp.EvalAwaitPromise)))
		require.LessOrEqual(t, evaluate[int64](b, "document.documentElement.scrollWidth"), width)
		require.LessOrEqual(t, evaluate[int](b, sent), 40_000)
	}
	readTo := func(b *tab, n int) {
		t.Helper()
		article := `document.querySelector('article.reading[data-id="` + ids[n] + `"]')`
		require.Eventually(t, func() bool {
			return evaluate[bool](b, `(scrollTo(0, document.body.scrollHeight), !!`+article+`)`)
		}, patience, 50*time.Millisecond)
		require.Eventually(t, func() bool {
			b.do(chromedp.Evaluate[chromedp.Void](article + `.scrollIntoView()`))
			last := feedtest.All(t, w.Store.(mirror.Marker).Marks(t.Context(), mirror.MarksQuery{Feed: feed, With: "forward", Limit: 1}))
			return len(last) == 1 && last[0].ID == ids[n]
		}, patience, 50*time.Millisecond)
	}

	desk.open(w.url) // Monday
	check(desk, 1440)
	desk.click(`th a[href="` + blog + `"]`)
	check(desk, 1440)
	desk.click(`a[href="` + blog + `/read"]`)
	check(desk, 1440)
	readTo(desk, 11)

	phone.open(w.url) // Tuesday
	check(phone, 360)
	require.Contains(t, phone.text(".cards"), "12 of ")
	phone.click(".cards .to a")
	check(phone, 360)
	readTo(phone, 24)

	desk.open(w.url + strings.TrimPrefix(blog, "/")) // Wednesday
	require.Contains(t, desk.text(".place"), "entry 25 of ")
	desk.click(".place .button.main")
	require.Equal(t, ids[24], evaluate[string](desk, `document.querySelector("article.reading").dataset.id`))

	desk.open(w.url + strings.TrimPrefix(essays, "/") + "/read") // Thursday
	check(desk, 1440)
	desk.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".content sup a").click()`))
	require.True(t, evaluate[bool](desk, `location.pathname.endsWith("/read") && document.querySelector(":target").textContent.startsWith("If they are small")`))
	require.Greater(t, evaluate[float64](desk, `document.querySelector("math mfrac").getBoundingClientRect().height`), 20.)

	phone.open(w.url + strings.TrimPrefix(essays, "/") + "/read?images=1&from=urn:essays:2") // Friday
	phone.loads(`document.querySelectorAll(".content img").length === 1 && document.querySelector(".content img").naturalWidth === 600`)
	check(phone, 360)

	mark := url.Values{"id": {"pod-1"}, "position": {"22"}} // Saturday, on the phone
	status, _, _ := w.do(http.MethodPost, pod+"/marks", mark)
	require.Equal(t, http.StatusNoContent, status)
	desk.open(w.url + strings.TrimPrefix(pod, "/") + "/read?play=1") // Sunday
	require.Equal(t, "22", evaluate[string](desk, `document.querySelector("audio").dataset.position`))
	require.Less(t, evaluate[float64](desk, `document.querySelector("audio").getBoundingClientRect().top`), 500., "the player is above the notes")
	check(desk, 1440)
}
