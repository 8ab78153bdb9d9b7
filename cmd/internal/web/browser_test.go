package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory/republish"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// slowly is the time between two documents of a walk that a browser watches. The walk of
// the blog takes longer than the tests wait for a page.
const slowly = 3 * time.Second

// walked is whether a page does not watch a walk.
const walked = `!document.querySelector("[data-progress-text]")?.innerText`

// A newcomer goes from the empty server to an entry.
func TestBrowser(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	w.write(2003, 2026)
	w.lose("feed/9-")
	b.open(w.url)
	require.Contains(t, b.text("main"), "No feeds yet.")
	b.shoot("empty", "light")

	// A feed is added, and its walk watched.
	w.gate.hold()
	b.do(chromedp.SendKeys(chromedp.CSS("#url"), w.feedURL("/blog/feed.atom")))
	b.click(".add button.main")
	seen := map[string]bool{}
	var let time.Time
	require.Eventually(t, func() bool {
		s := b.text("[data-progress-text]")
		fresh := !seen[s]
		if seen[s] = true; strings.HasPrefix(s, "Reading:") && len(seen) == 3 {
			b.shoot("progress", "light")
		}
		if fresh || time.Since(let) > slowly { // the walk does not end before a slow browser has shown it
			w.gate.let()
			let = time.Now()
		}
		return len(seen) > 3
	}, patience, 100*time.Millisecond, "the page tells how far the walk is")
	require.NotContains(t, seen, "", "the walk has not ended")
	w.gate.free()

	// The page reloads, with the timeline. Pointing at its parts, or moving
	// through them with the Tab key, describes them.
	b.loads(walked)
	require.Greater(t, evaluate[int](b, `document.querySelectorAll(".timeline rect.bar").length`), 50)
	require.Equal(t, 1, evaluate[int](b, `document.querySelectorAll(".timeline .block.gap").length`))
	const says = "[data-says]"
	require.Contains(t, b.text(says), "Shown below: ")
	b.do(chromedp.Focus(chromedp.CSS(".timeline a[href='#gap-1']")))
	require.Contains(t, b.text(says), "An archive document could not be retrieved: 404")
	b.shoot("feed", "light", "dark")
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	require.Contains(t, b.text(says), "Archive blog/feed/10-")
	b.do(chromedp.KeyEvent(kb.End))
	require.Contains(t, b.text(says), "Subscription document")
	b.do(chromedp.KeyEvent(kb.ArrowUp))
	require.Regexp(t, `^\w+ \d{4}: \d+ entr`, b.text(says))
	b.do(chromedp.KeyEvent(kb.Tab))
	require.False(t, evaluate[bool](b, `!!document.activeElement.closest(".timeline")`), "the timeline is one stop")
	b.click(".timeline a[href='#gap-1']")
	require.Equal(t, "#gap-1", evaluate[string](b, "location.hash"))
	require.Contains(t, b.text("#gap-1"), "What to do: try again later")

	// The search runs while one types, and the address follows.
	b.do(chromedp.SendKeys(chromedp.CSS("#q"), "storm petrels"))
	require.Eventually(t, func() bool { return strings.Contains(b.text("#results"), "With “storm petrels”") }, patience, 20*time.Millisecond)
	require.Equal(t, "?q=storm+petrels", evaluate[string](b, "location.search"))
	require.NotContains(t, b.text(".entries"), "Ice on the rail")
	b.click(".entries .title")
	require.Equal(t, "Storm petrels", b.text("h1"))
	require.Contains(t, b.text(".content"), "[Image: The day’s chart]")
	b.shoot("entry", "light", "dark")

	// A part of the timeline leads to its entries.
	b.click(".crumb a")
	b.click(".timeline a[href^='?month=2010-']")
	require.Contains(t, b.text(".asked"), "2010")

	// The whole fits a narrow screen.
	b.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	for _, path := range []string{"", "entries", "feeds/" + republish.Name(w.feedURL("/blog/feed.atom"))} {
		b.open(w.url + path)
		require.LessOrEqual(t, evaluate[int](b, "document.documentElement.scrollWidth"), 390, path)
	}
	b.shoot("narrow", "light", "dark")
	b.do(chromedp.EmulateViewport(1080, 760))

	b.open(w.url + "feeds/" + republish.Name(w.feedURL("/blog/feed.atom")) + "/subscribe?start=2026-12-01&every=2d#replay")
	require.Contains(t, b.text("#replay ~ .note"), "1 entry every 2 days")
	b.shoot("replay", "light", "dark")

	for _, path := range []string{"/news.rss", "/tides.atom", "/pod.rss", "/100%25", "/page.html"} {
		w.add(path)
	}
	b.open(w.url)
	b.shoot("feeds", "light", "dark")
	b.open(w.url + "overview")
	b.shoot("overview", "light", "dark")
	b.open(w.url)
	b.click("tbody tr:nth-child(2) a")
	b.click("a[href$='/remove']")
	require.Contains(t, b.text("h1"), "Remove Harbour news?")
	b.click("button.danger")
	require.Contains(t, b.text("[role=status]"), "The feed has been removed")
}

// contrasts lists texts that are too faint on their background.
const contrasts = `(() => {
	const channels = c => c.match(/[\d.]+/g).map(Number);
	const light = c => {
		const [r, g, b] = channels(c).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const ground = e => {
		for (; e; e = e.parentElement) {
			const c = getComputedStyle(e).backgroundColor;
			if (channels(c)[3] !== 0) return c;
		}
		return "rgb(255, 255, 255)";
	};
	const faint = [];
	for (const e of document.querySelectorAll("body *")) {
		if (![...e.childNodes].some(n => n.nodeType == 3 && n.data.trim()) || !e.checkVisibility()) continue;
		const style = getComputedStyle(e);
		const a = light(e.namespaceURI.endsWith("svg") ? style.fill : style.color), b = light(ground(e));
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) faint.push(e.tagName + " " + e.className + " " + e.textContent.trim().slice(0, 30) + " " + ratio.toFixed(2));
	}
	return faint.join("\n");
})()`

// A hostile feed runs nothing, sends nothing and styles nothing.
func TestBrowserHostile(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	page := strings.TrimPrefix(w.add("/hostile.atom"), "/")
	for _, path := range []string{"", "entries", page, page + "/entry?id=urn:hostile:2",
		page + "/entry?id=" + url.QueryEscape(`"><script>harmed=1</script>`), page + "/index.atom", page + "/index.rss", page + "/complete.atom"} {
		b.open(w.url + path)
		require.Equal(t, "undefined", evaluate[string](b, "typeof harmed"), path)
	}
	b.open(w.url + page + "/entry?id=" + url.QueryEscape(`"><script>harmed=1</script>`))
	require.Contains(t, b.text(".content"), "Read me.")
	b.do(chromedp.Evaluate[chromedp.Void](`for (const a of document.querySelectorAll(".content *")) a.dispatchEvent(new MouseEvent("mouseover", {bubbles: true}))`))
	require.Equal(t, "undefined", evaluate[string](b, "typeof harmed"))
	require.Equal(t, "block", evaluate[string](b, "getComputedStyle(document.body).display"))
	require.Zero(t, evaluate[int](b, `document.querySelectorAll("main form:not(.images), main img, main svg:not(.strip svg), main iframe, main style, main [style], .content [id], .content [class]").length`))
	require.Zero(t, evaluate[int](b, `[...document.links].filter(a => !/^https?:$/.test(a.protocol)).length`))

	// Nothing could run even if the sanitiser had overlooked something.
	require.Equal(t, "refused", evaluate[string](b, `(() => {
		const s = document.createElement("script"); s.textContent = "window.harmed = 1"; document.body.append(s);
		const i = document.createElement("div"); i.innerHTML = "<p onclick='window.harmed=1' style='color:red'>x</p>"; document.body.append(i);
		i.firstChild.click();
		return window.harmed || i.firstChild.style.color && getComputedStyle(i.firstChild).color == "rgb(255, 0, 0)" ? "harmed" : "refused";
	})()`))
}

// However many pages watch a walk, all of them progress, and the browser has
// connections left for others.
func TestBrowserManyTabs(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	w.write(2003, 2026)
	w.gate.hold()
	feed := w.feedURL("/blog/feed.atom")
	_, _, header := w.do(http.MethodPost, "/feeds", url.Values{"url": {feed}})
	page := strings.TrimPrefix(header.Get("Location"), "/")
	tabs := []*tab{b}
	for range 7 {
		tabs = append(tabs, b.another())
	}
	for _, b := range tabs {
		b.open(w.url + page)
	}
	first := map[*tab]string{}
	for _, b := range tabs {
		first[b] = b.text("[data-progress-text]")
	}
	var let time.Time
	require.Eventually(t, func() bool {
		if time.Since(let) > slowly {
			w.gate.let()
			let = time.Now()
		}
		for _, b := range tabs { // the timeline grows meanwhile
			if b.text("[data-progress-text]") == first[b] || !evaluate[bool](b, `!!document.querySelector(".timeline svg")`) {
				return false
			}
		}
		return true
	}, patience, 100*time.Millisecond, "every page goes on")
	for _, b := range tabs {
		require.Zero(t, evaluate[int](b, `document.querySelector("[data-results]") ? 0 : document.querySelectorAll(".here, .here-key").length`), "no entries are shown below it")
	}
	require.NotEmpty(t, b.text("[data-progress-text]"))
	w.gate.free()
	for _, b := range tabs { // every page is loaded again at the end
		b.loads(walked)
	}
}

// The browser remembers where somebody was in a feed, and no other browser
// does.
func TestBrowserPlace(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	w.write(2003, 2006)
	blog, news := strings.TrimPrefix(w.add("/blog/feed.atom"), "/"), strings.TrimPrefix(w.add("/news.rss"), "/")
	const resume = "[data-resume]:not([hidden])"
	b.open(w.url + blog)
	require.Empty(t, b.text(resume), "nobody was anywhere")
	b.open(w.url + blog + "?order=oldest")
	b.click(".entries .title")
	b.click("a[rel=next]")
	b.click("a[rel=next]")
	const id = `new URLSearchParams(location.search).get("id")`
	at, title := evaluate[string](b, id), b.text("h1")
	require.Contains(t, b.text(".strip"), "Entry 3 of ")
	b.open(w.url + news)
	require.Empty(t, b.text(resume), "it is the place in one feed")
	b.open(w.url + blog)
	require.Contains(t, b.text(resume), "Where you were: “"+title+"”")
	b.click(resume + " a")
	require.Equal(t, at, evaluate[string](b, id))
	require.Equal(t, title, b.text("h1"))
	other := newTab(t)
	other.open(w.url + blog)
	require.Empty(t, other.text(resume), "it is kept in one browser")
}

// Images of a feed are loaded when somebody wants them, and not afterwards.
func TestBrowserImages(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	w.write(2003, 2004)
	b.open(w.url + strings.TrimPrefix(w.add("/blog/feed.atom"), "/"))
	b.click(".entries .title")
	const images = `document.querySelectorAll(".content img").length`
	require.Zero(t, evaluate[int](b, images))
	b.click(".images button")
	require.Equal(t, 1, evaluate[int](b, images))
	b.click("a[rel=prev]")
	require.Equal(t, 1, evaluate[int](b, images), "of each entry")
	b.click(".images button")
	require.Zero(t, evaluate[int](b, images))
	require.Contains(t, evaluate[string](b, "location.search"), "?id=tag")
}

// The list of feeds follows the choices without a button.
func TestBrowserFeedList(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	w.write(2003, 2006)
	for _, path := range []string{"/blog/feed.atom", "/news.rss", "/tides.atom", "/pod.rss", "/odd.atom", "/hostile.atom"} {
		w.add(path)
	}
	b.open(w.url)
	const first = `document.querySelector("tbody th a").innerText`
	choose := func(name, value, want string) {
		b.do(chromedp.Evaluate[chromedp.Void](`(s => { s.value = "` + value + `"; s.dispatchEvent(new Event("change", {bubbles: true})); })(document.querySelector("select[name=` + name + `]"))`))
		require.Eventually(t, func() bool { return evaluate[string](b, "location.search") == want }, patience, 20*time.Millisecond, want)
	}
	choose("sort", "entries", "?sort=entries")
	require.Equal(t, "The Lighthouse Log", evaluate[string](b, first))
	choose("show", "whole", "?show=whole&sort=entries")
	require.Contains(t, b.text("#results"), "2 feeds")
	choose("sort", "", "?show=whole")
	choose("show", "", "")
	require.NotContains(t, b.text("#results"), "Show all feeds")
}

// Everything also works without JavaScript.
func TestBrowserWithoutScript(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	w.write(2003, 2010)
	w.gate.hold()
	b.open(w.url)
	b.script(false)
	b.open(w.url)
	b.do(chromedp.SendKeys(chromedp.CSS("#url"), w.feedURL("/blog/feed.atom")))
	b.click(".add button.main")
	const reloads = "This page reloads every two seconds"
	require.Contains(t, b.source(), reloads)
	w.gate.free()
	b.loads("!document.documentElement.outerHTML.includes(`" + reloads + "`)")
	require.Contains(t, b.source(), `class="timeline"`)
	b.do(chromedp.SendKeys(chromedp.CSS("#q"), "storm petrels"))
	b.click(".search button")
	require.Contains(t, b.source(), "With “storm petrels”")
	b.click(".actions button")
	require.NotContains(t, b.source(), "Something went wrong")
}

// Only reading on moves the place: not a random entry, a hit, or a day.
func TestBrowserPlaceStays(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	w.write(2003, 2008)
	blog := strings.TrimPrefix(w.add("/blog/feed.atom"), "/")
	const place = `(JSON.parse(localStorage.getItem(Object.keys(localStorage)[0])) ?? [])[0] ?? ""`
	b.open(w.url + blog + "?order=oldest")
	b.click(".entries .title")
	b.click("a[rel=next]")
	at := evaluate[string](b, place)
	require.Equal(t, evaluate[string](b, `document.querySelector("[data-read]").dataset.id`), at)
	for _, page := range []string{"/random", "/random", "/day?day=01-09", "?q=fog"} {
		b.open(w.url + blog + page)
		if !strings.HasPrefix(page, "/random") {
			b.click(".entries .title")
		}
		require.Equal(t, at, evaluate[string](b, place), page)
	}
	if evaluate[bool](b, `!document.querySelector("[data-here]").hidden`) {
		b.do(chromedp.Click(chromedp.CSS("[data-here] button")))
		require.NotEqual(t, at, evaluate[string](b, place))
	}

	// Continuous reading keeps the place while scrolling.
	b.open(w.url + blog + "/read")
	require.Equal(t, entriesRead, evaluate[int](b, `document.querySelectorAll("article.reading").length`))
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("article.reading")[4].scrollIntoView()`))
	fifth := evaluate[string](b, `document.querySelectorAll("article.reading")[4].dataset.id`)
	require.Eventually(t, func() bool { return evaluate[string](b, place) == fifth }, patience, 50*time.Millisecond)
	b.open(w.url + blog)
	require.Contains(t, evaluate[string](b, `document.querySelector("[data-resume] a").href`), url.QueryEscape(fifth))
}

// Keys move through lists, entries and pages, but not in a field.
func TestBrowserKeys(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	w.write(2003, 2008)
	blog := strings.TrimPrefix(w.add("/blog/feed.atom"), "/")
	b.open(w.url + blog)
	press := func(keys string) { b.do(chromedp.KeyEvent(keys)) }
	const told = `[...document.querySelectorAll("[data-item]")].findIndex((item) => item.classList.contains("told"))`
	press("j")
	press("j")
	press("j")
	press("k")
	require.Equal(t, 1, evaluate[int](b, told))
	press("?")
	require.Contains(t, b.text("dialog.keys"), "The next entry of the list")
	press(kb.Escape)
	require.Zero(t, evaluate[int](b, `document.querySelectorAll("dialog").length`))
	press("/")
	require.Equal(t, "q", evaluate[string](b, `document.activeElement.id`))
	press("j")
	require.True(t, strings.HasSuffix(evaluate[string](b, `document.activeElement.value`), "j"), "keys type in a field")
	b.open(w.url + blog)
	press("n")
	b.loads(`location.search.includes("before=")`)
	b.click(".entries .title")
	newer := evaluate[string](b, `document.querySelector("[data-read]").dataset.newer`)
	press("n")
	b.loads(`document.querySelector("[data-read]")?.dataset.id === "` + newer + `"`)
	older := evaluate[string](b, `document.querySelector("[data-read]").dataset.older`)
	press("p")
	b.loads(`document.querySelector("[data-read]")?.dataset.id === "` + older + `"`)
	original := evaluate[string](b, `{ const link = document.querySelector("[data-original]");
		link.addEventListener("click", (event) => { event.preventDefault(); window.followed = link.href }); link.href }`)
	press("o")
	require.Equal(t, original, evaluate[string](b, `window.followed`))
}

// For an address that is no feed, the error is shown next to the field, which keeps the
// address; the feed of a page is found.
func TestBrowserAdding(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	b.open(w.url)
	for typed, want := range map[string]string{
		w.feedURL("/nothing.atom"):       "There is nothing at this address: the answer was 404",
		"ftp://example.org/":             "Only addresses that begin with http",
		"http://user:secret@example.org": "An address with a password",
	} {
		b.do(chromedp.SetValue(chromedp.CSS("#url"), typed))
		b.click(".add button.main")
		require.Contains(t, b.text("#wrong"), want)
		require.Equal(t, typed, evaluate[string](b, `document.querySelector("#url").value`))
		require.Equal(t, "wrong", evaluate[string](b, `document.activeElement.getAttribute("aria-describedby")`))
	}
	require.Zero(t, evaluate[int](b, `document.querySelectorAll(".list").length`), "nothing was kept")
	b.do(chromedp.SetValue(chromedp.CSS("#url"), w.feedURL("/tides.atom")))
	b.click(".add button.main")
	b.loads(`document.querySelectorAll(".entries .title").length === 2`)
	require.Contains(t, b.text("h1"), "Tides")
}
