package web

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	devtools "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/republish"
	"github.com/stretchr/testify/assert"
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
			b.shoot("progress", 1440)
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
	b.shoot("feed", widths...)
	b.do(chromedp.Focus(chromedp.CSS(".timeline a[href='#gap-1']"))) // a phone has folded the timeline
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
	b.loads(`document.querySelector(".content img")?.naturalWidth === 1200`)
	b.shoot("entry", widths...)

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
	b.open(w.url)
	require.True(t, evaluate[bool](b, `[...document.querySelectorAll("tbody th")].every((title) => title.offsetWidth === title.parentElement.offsetWidth)`), "titles have all the width")
	b.do(chromedp.EmulateViewport(1080, 760))

	b.open(w.url + "feeds/" + republish.Name(w.feedURL("/blog/feed.atom")) + "/subscribe?start=2026-12-01&every=2d#replay")
	require.Contains(t, b.text("#replay ~ .note"), "1 entry every 2 days")
	b.shoot("replay", 1440)

	for _, path := range []string{"/news.rss", "/tides.atom", "/pod.rss", "/100%25", "/page.html"} {
		w.add(path)
	}
	b.open(w.url)
	require.Contains(t, b.text(".shelf"), "From the past")
	b.shoot("feeds", widths...)
	b.open(w.url + "overview")
	b.shoot("overview", 1440)
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
	require.Zero(t, evaluate[int](b, `document.querySelectorAll("main form:not(.strip), main img:not([src^='/pictures/']), main svg:not(.strip svg), main iframe, main style, main [style], .content [id]:not([id^=t-]), .content [class]").length`))
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

// Pictures come from the server itself, which tells their host nothing about the reader, and
// nothing moves when they come.
func TestBrowserPictures(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	w.write(2003, 2004)
	b.open(w.url + strings.TrimPrefix(w.add("/blog/feed.atom"), "/"))
	b.click(".entries .title")
	for range 2 { // of unknown size, and of known
		b.loads(`document.querySelector(".content img")?.naturalWidth === 1200`)
		require.Less(t, read(b, chromedp.Evaluate[float64](shifts, chromedp.EvalAwaitPromise)), still, "the page jumps: %s", read(b, chromedp.Evaluate[string](jumping, chromedp.EvalAwaitPromise)))
		require.True(t, evaluate[bool](b, `performance.getEntriesByType("resource").every((e) => new URL(e.name).origin === location.origin)`))
		b.do(chromedp.Reload())
	}
	require.Equal(t, "1200 600", evaluate[string](b, `((e) => e.getAttribute("width") + " " + e.getAttribute("height"))(document.querySelector(".content img"))`))
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
	b.shows("With “storm petrels”")
	b.click(".actions button")
	require.NotContains(t, b.source(), "Something went wrong")

	// From entry to entry by links, and to another month by a button.
	b.open(w.url + "feeds/" + republish.Name(w.feedURL("/blog/feed.atom")) + "?order=oldest")
	b.click(".entries .title")
	b.click("a[rel=next]")
	b.click("a[rel=next]")
	b.shows("Entry 3 of ")
	b.click("a[rel=prev]")
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#month").value = 0`))
	b.click(".strip button")
	b.shows("Entry 1 of ")
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
	b.loads(`!document.querySelector("dialog")`) // its close event comes later
	press("/")
	require.Equal(t, "q", evaluate[string](b, `document.activeElement.id`))
	press("j")
	require.True(t, strings.HasSuffix(evaluate[string](b, `document.activeElement.value`), "j"), "keys type in a field")
	b.open(w.url + blog)
	press("n")
	b.loads(`location.search.includes("before=")`)
	b.click(".entries .title")
	newer := evaluate[string](b, `new URL(document.querySelector("a[rel=next]").href).searchParams.get("id")`)
	press("n")
	b.loads(`document.querySelector("article[data-id]")?.dataset.id === "` + newer + `"`)
	older := evaluate[string](b, `new URL(document.querySelector("a[rel=prev]").href).searchParams.get("id")`)
	press("p")
	b.loads(`document.querySelector("article[data-id]")?.dataset.id === "` + older + `"`)
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

const axePackage = "axe-core@4.14.1"

// axe returns the script of axe-core, "" if there is none. The script is in
// node_modules (npm install --no-save axe-core) or, with
// FEEDHISTORY_AXE=required, is installed for the test.
func axe(t testing.TB) string {
	dir := "."
	file := filepath.Join("node_modules", "axe-core", "axe.min.js")
	if _, err := os.Stat(file); err != nil {
		if os.Getenv("FEEDHISTORY_AXE") != "required" {
			t.Log("axe-core is not installed; with FEEDHISTORY_AXE=required it is, by npm")
			return ""
		}
		dir = t.TempDir()
		said, err := exec.CommandContext(t.Context(), "npm", "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", dir, axePackage).CombinedOutput()
		require.NoError(t, err, string(said))
	}
	script, err := os.ReadFile(filepath.Join(dir, file))
	require.NoError(t, err)
	return string(script)
}

// findings runs axe-core and lists its findings. The server's own pages may not
// have inline scripts; a debugger may run them.
const findings = `axe.run(document, {resultTypes: ["violations"], runOnly: %s}).then(r => r.violations.map(v =>
	v.id + ": " + v.help + "\n  " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + " " + n.failureSummary).join("\n  ")).join("\n"))`

// widths are those of a phone, a tablet and a desktop.
var widths = []int64{360, 768, 1440}

// resize sets the width of the window.
func (b *tab) resize(width int64) { b.do(chromedp.EmulateViewport(width, 900)) }

// A sight is a page to look at.
type sight struct{ name, path string }

// sights makes a world with everything that can be seen, and returns its pages.
func (w *world) sights() []sight {
	w.write(2003, 2016)
	w.lose("feed/3-")
	all := []sight{{"empty", ""}, {"nothing", "nothing"}}
	add := func(path string) string { return strings.TrimPrefix(w.add(path), "/") }
	blog, news, tides, odd, failed := add("/blog/feed.atom"), add("/news.rss"), add("/tides.atom"), add("/odd.atom"), add("/page.html")
	w.poll(w.feedURL("/tides.atom"))
	w.poll(w.feedURL("/news.rss"))
	return append(all[1:],
		sight{"feeds", ""}, sight{"entries", "entries"}, sight{"feed", blog}, sight{"plain", news}, sight{"complete", tides}, sight{"odd", odd}, sight{"failed", failed},
		sight{"found", blog + "?q=storm&month=2012-01&span=12"}, sight{"notfound", blog + "?q=zebra"}, sight{"wrong", blog + "?q=%2B"},
		sight{"deleted", tides + "?deleted=1"}, sight{"remove", blog + "/remove"}, sight{"entry", news + "/entry?id=harbour-3"},
		sight{"gone", tides + "/entry?id=urn:tides:1"}, sight{"table", odd + "/entry?id=urn:odd:table"}, sight{"rtl", odd + "/entry?id=urn:odd:rtl"},
		sight{"wide", odd + "/entry?id=urn:odd:wide"}, sight{"token", "token"}, sight{"subscribe", blog + "/subscribe?start=2026-12-01&every=2d&days=mon&days=thu&zone=Europe/Berlin&per=2&time=07:30"},
		sight{"nonsense", blog + "/subscribe?size=99&start=2026-12-01&every=1s"}, sight{"choose", add("/blog.html")}, sight{"oldest", blog + "?order=oldest"}, sight{"day", blog + "/day?day=01-09"},
		sight{"month", blog + "?month=2012-03&span=1"},
		sight{"episode", add("/pod.rss") + "/entry?id=pod-1"}, sight{"overview", "overview"}, sight{"sorted", "?show=window&sort=entries"},
		sight{"marked", blog + "/entry?q=storm&id=" + url.QueryEscape("tag:lighthouse.example,2012:3/1")},
	)
}

// Every page is valid HTML, as the checker of the W3C sees it, if that is installed here
// (npm install --no-save vnu-jar, and Java).
func TestValid(t *testing.T) {
	jar := filepath.Join("node_modules", "vnu-jar", "build", "dist", "vnu.jar")
	java, err := exec.LookPath("java")
	if _, missing := os.Stat(jar); err != nil || missing != nil {
		t.Skip("Java and vnu-jar are not installed")
	}
	w := newWorld(t, nil)
	dir, args := t.TempDir(), []string{"-jar", jar}
	for _, place := range w.sights() {
		_, body, _ := w.get("/" + place.path)
		file := filepath.Join(dir, place.name+".html")
		require.NoError(t, os.WriteFile(file, []byte(body), 0o644))
		args = append(args, file)
	}
	said, err := exec.CommandContext(t.Context(), java, args...).CombinedOutput()
	require.NoError(t, err, string(said))
	require.Empty(t, string(said))
}

// byLook are the rules of axe-core whose findings depend on the theme or the
// width. The other rules are about the markup, which is always the same.
const byLook = `["color-contrast", "link-in-text-block", "target-size", "scrollable-region-focusable"]`

// Every page is looked at in both themes, on a phone, a tablet and a desktop:
// axe-core finds nothing, texts are neither faint nor small, and nothing is
// wider than the window. All rules of axe-core are tested when a page is shown
// for the first time, and those about its look in each width and in each theme;
// with FEEDHISTORY_LONG=1, all of them always.
func TestBrowserLook(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	w := newWorld(t, nil)
	b.look(w, "", w.sights(), widths)
}

// Whoever has not shown the token sees one link more, and the owner a button more: the pages
// are sound for both, and from 320 px on the navigation is one line, of which nothing is cut.
func TestBrowserToken(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	widths := append([]int64{320}, widths...)
	w := newWorld(t, func(s *Server) { s.Token = "open sesame" })
	w.token = "open sesame"
	w.write(2003, 2005)
	blog := strings.TrimPrefix(w.add("/blog/feed.atom"), "/")
	places := []sight{{"feeds", ""}, {"entries", "entries"}, {"overview", "overview"}, {"feed", blog}, {"subscribe", blog + "/subscribe"}, {"token", "token"}, {"nothing", "nothing"}}
	private := newWorld(t, func(s *Server) { s.Token, s.Private = "open sesame", true })
	for name, state := range map[string]struct {
		*world
		places []sight
		login  bool
	}{
		"guest": {world: w, places: places}, "refused": {world: private, places: []sight{{"refused", ""}}},
		"owner":         {world: w, places: []sight{{"feeds", ""}, {"subscribe", blog + "/subscribe"}, {"readers", "readers"}}, login: true},
		"private-owner": {world: private, places: []sight{{"empty", ""}, {"readers", "readers"}}, login: true},
	} {
		b := b.another()
		if state.login {
			b.open(state.url + "token")
			b.do(chromedp.SendKeys(chromedp.CSS("#token"), "open sesame"))
			b.click("main button.main")
		}
		b.look(state.world, name+"-", state.places, widths)
		for _, width := range widths {
			b.resize(width)
			require.Equal(t, 1., evaluate[float64](b, `new Set([...document.querySelectorAll(".top nav a")].map((a) => a.getBoundingClientRect().top)).size`), "%s-%d", name, width)
			require.Less(t, evaluate[float64](b, `Math.max(...[...document.querySelectorAll(".top nav a")].map((a) => a.getBoundingClientRect().height))`), 40., "%s-%d", name, width)
		}
		if state.login {
			b.click(".out button")
		}
	}
}

// look looks at pages in both themes and some widths. Pictures of them have names with a prefix.
func (b *tab) look(w *world, prefix string, places []sight, widths []int64) {
	t, script := b.t, axe(b.t)
	for i, place := range places {
		if *only != "" && place.name != *only {
			continue
		}
		b.scheme("light")
		b.resize(widths[i%len(widths)])
		b.open(w.url + place.path)
		if script != "" {
			b.do(chromedp.Evaluate[chromedp.Void](script))
			b.requireNothingFound("all rules: "+place.name, "undefined")
		}
		for _, width := range widths {
			b.resize(width)
			for _, scheme := range []string{"light", "dark"} {
				b.scheme(scheme)
				what := fmt.Sprintf("%s%s-%d-%s", prefix, place.name, width, scheme)
				require.LessOrEqual(t, evaluate[int64](b, "document.documentElement.scrollWidth"), width, what)
				require.Empty(t, evaluate[string](b, contrasts), what)
				require.Empty(t, evaluate[string](b, small), "%s: text that is too small", what)
				b.view(what)
				switch {
				case script != "" && feedtest.LongRun():
					b.requireNothingFound(what, "undefined")
				case script != "" && (scheme == "light" || width == widths[i%len(widths)]): // colours are the same in each width
					b.requireNothingFound(what, byLook)
				}
			}
		}
	}
}

// throttle slows the network of a tab down: each answer begins after so many milliseconds, and
// all bring so many bytes a second. Nothing is cached.
func (b *tab) throttle(latency, bytes float64) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
	require.NoError(b.t, err)
	_, err = chromedp.Call(b.ctx, cdp.Command[map[string]any, network.EmulateNetworkConditionsByRuleResult]{Method: network.CommandEmulateNetworkConditionsByRule}, map[string]any{
		"offline":                  false, // which versions before 150 demand here
		"matchedNetworkConditions": []*network.Conditions{{Latency: latency, DownloadThroughput: bytes, UploadThroughput: bytes}},
	})
	require.NoError(b.t, err)
}

// sent is the number of bytes of a page without its pictures.
const sent = `performance.getEntries().filter((e) => e.transferSize && e.initiatorType != "img" && !e.name.endsWith(".svg")).reduce((sum, e) => sum + e.transferSize, 0)`

// jumping lists the parts that have jumped, from where to where.
const jumping = `new Promise((done) => { const all = [], at = (r) => [r.x, r.y, r.width, r.height].join(" ");
	new PerformanceObserver((list) => list.getEntries().forEach((e) => all.push(...e.sources.map((s) => at(s.previousRect) + " → " + at(s.currentRect) + " " + (s.node?.outerHTML ?? s.node?.data ?? "part of a control").slice(0, 80))))).observe({ type: "layout-shift", buffered: true });
	setTimeout(() => done(all.join("; ")), 100); })`

// awaited lists the other files that the largest part of a page (LCP) waited for: those that
// block what is shown, and its own if it is a picture.
const awaited = `new Promise((done) => new PerformanceObserver((list) => done([
	...performance.getEntriesByType("resource").filter((e) => e.renderBlockingStatus == "blocking").map((e) => e.name),
	list.getEntries().at(-1).url].join(" ").trim())).observe({ type: "largest-contentful-paint", buffered: true }))`

// still is the shift from which on a page counts as jumping: below it, tools say 0.000.
const still = .0005

// shifts is how far the parts of a page have jumped since it was opened (CLS).
const shifts = `new Promise((done) => { let sum = 0;
	new PerformanceObserver((list) => list.getEntries().forEach((e) => { if (!e.hadRecentInput) sum += e.value; })).observe({ type: "layout-shift", buffered: true });
	setTimeout(() => done(sum), 100); })`

// On a slow network, no page jumps, and none needs more than 40 kB.
func TestBrowserLoads(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	w := newWorld(t, nil)
	places := w.sights()
	b.throttle(150, 200_000)
	for i, place := range places {
		for j, width := range []int64{360, 1440} {
			if (i+j)%2 == 1 && !feedtest.LongRun() {
				continue
			}
			b.resize(width)
			b.open(w.url + place.path)
			what := fmt.Sprintf("%s-%d", place.name, width)
			assert.Less(t, read(b, chromedp.Evaluate[float64](shifts, chromedp.EvalAwaitPromise)), still, "%s jumps: %s", what, read(b, chromedp.Evaluate[string](jumping, chromedp.EvalAwaitPromise)))
			assert.LessOrEqual(t, evaluate[int](b, sent), 40_000, what)
		}
	}
}

// Nothing jumps while a page comes piece by piece: each tag and text of its beginning 20 ms after the one before.
func TestBrowserPieces(t *testing.T) {
	feedtest.Required(t, "FEEDHISTORY_BROWSER")
	t.Parallel()
	w := newWorld(t, nil)
	to, err := url.Parse(w.url)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Header.Del("Accept-Encoding") }, FlushInterval: -1}
	proxy.ModifyResponse = func(answer *http.Response) error {
		if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
			answer.Body = &pieces{ReadCloser: answer.Body, left: 300}
		}
		return nil
	}
	slow := feedtest.Server(t, proxy)
	names := []string{"feeds-360", "entries-360", "feed-360", "plain-360", "entry-1440", "subscribe-360", "subscribe-1440", "choose-360", "month-360", "overview-360", "sorted-1440"}
	places := w.sights()
	for some := range slices.Chunk(names, 3) {
		t.Run(some[0], func(t *testing.T) {
			t.Parallel() // each waits most of the time
			b := newTab(t)
			for _, what := range some {
				name, width, _ := strings.Cut(what, "-")
				at := slices.IndexFunc(places, func(place sight) bool { return place.name == name })
				require.GreaterOrEqual(t, at, 0, what)
				b.resize(map[string]int64{"360": 360, "1440": 1440}[width])
				b.open(slow.URL + "/" + places[at].path)
				assert.Less(t, read(b, chromedp.Evaluate[float64](shifts, chromedp.EvalAwaitPromise)), still, "%s jumps: %s", what, read(b, chromedp.Evaluate[string](jumping, chromedp.EvalAwaitPromise)))
			}
		})
	}
}

// pieces is a page whose first tags and texts come one by one.
type pieces struct {
	io.ReadCloser
	text []byte
	left int
}

func (p *pieces) Read(out []byte) (int, error) {
	if p.text == nil {
		text, err := io.ReadAll(p.ReadCloser)
		if err != nil {
			return 0, err
		}
		p.text = text
	}
	if len(p.text) == 0 {
		return 0, io.EOF
	}
	n := len(p.text)
	if p.left > 0 {
		if at := bytes.IndexAny(p.text[1:], "<>"); at >= 0 {
			n = at + 1
			if p.text[at+1] == '>' {
				n++
			}
		}
		p.left--
		time.Sleep(20 * time.Millisecond)
	}
	n = copy(out, p.text[:n])
	p.text = p.text[n:]
	return n, nil
}

// The largest part of a page waits for one request only: on a phone with slow 3G, as
// Chromium's tools define it, each takes two seconds.
func TestBrowserSlow(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	w := newWorld(t, nil)
	w.write(2003, 2016)
	blog := strings.TrimPrefix(w.add("/blog/feed.atom"), "/")
	b.resize(360)
	for _, path := range []string{"", "entries", blog, blog + "?q=storm", blog + "/entry?id=" + url.QueryEscape(w.blogIDs()[7])} {
		b.open(w.url + path)
		assert.Empty(t, read(b, chromedp.Evaluate[string](awaited, chromedp.EvalAwaitPromise)), path)
	}
}

// With letters twice as large, as readers can set them, nothing is wider than the window
// and nothing is cut off.
func TestBrowserLargeLetters(t *testing.T) {
	t.Parallel()
	b := newTab(t, chromedp.Flag("blink-settings", "defaultFontSize=32"))
	w := newWorld(t, nil)
	for _, place := range w.sights() {
		for _, width := range widths {
			b.resize(width)
			b.open(w.url + place.path)
			require.Equal(t, "32px", evaluate[string](b, `getComputedStyle(document.documentElement).fontSize`))
			what := fmt.Sprintf("%s-%d", place.name, width)
			assert.LessOrEqual(t, evaluate[int64](b, "document.documentElement.scrollWidth"), width, "%s: %s", what, evaluate[string](b, overhanging))
			assert.Empty(t, evaluate[string](b, cutOff), what)
			b.view("large-" + what)
		}
	}
}

// overhanging lists the elements that are wider than the window.
const overhanging = `[...document.querySelectorAll("main *, header *, footer *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1)
	.slice(0, 5).map(e => e.outerHTML.slice(0, 80)).join("; ")`

// cutOff lists texts of which a part is hidden.
const cutOff = `[...document.querySelectorAll("button, a, p, h1, h2, td, th, label")].filter(e => e.checkVisibility() &&
	["hidden", "clip"].includes(getComputedStyle(e).overflowX) && e.scrollWidth > e.clientWidth + 1 && !e.closest(".hidden, .skip"))
	.map(e => e.textContent.slice(0, 30)).join("; ")`

// small lists texts that are too small to be read.
const small = `[...document.querySelectorAll("body *")].filter(e => e.checkVisibility() && [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim()))
	.map(e => [parseFloat(getComputedStyle(e).fontSize) * (e.ownerSVGElement?.viewBox.baseVal?.width ? e.ownerSVGElement.getBoundingClientRect().width / 960 : 1), e.textContent.slice(0, 30)])
	.filter(([size]) => size < 11.9).join("; ")`

// requireNothingFound runs some of axe-core's rules on the page.
func (b *tab) requireNothingFound(what, rules string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	found, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf(findings, rules), chromedp.EvalAwaitPromise))
	require.NoError(b.t, err, what)
	require.Empty(b.t, found, what)
}

// An essay has its footnotes, formulas and pictures, and the page of an episode its player.
func TestBrowserTexts(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	essays, pod := strings.TrimPrefix(w.add("/essays.atom"), "/"), strings.TrimPrefix(w.add("/pod.rss"), "/")
	check := func(width int64) {
		t.Helper()
		require.Less(t, read(b, chromedp.Evaluate[float64](shifts, chromedp.EvalAwaitPromise)), still, "the page jumps: %s", read(b, chromedp.Evaluate[string](jumping, chromedp.EvalAwaitPromise)))
		require.LessOrEqual(t, evaluate[int64](b, "document.documentElement.scrollWidth"), width)
		require.LessOrEqual(t, evaluate[int](b, sent), 40_000)
	}
	b.resize(1440)
	b.open(w.url + essays + "/entry?id=urn:essays:1")
	check(1440)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".content sup a").click()`))
	require.True(t, evaluate[bool](b, `location.pathname.endsWith("/entry") && document.querySelector(":target").textContent.startsWith("If they are small")`))
	require.Greater(t, evaluate[float64](b, `document.querySelector("math mfrac").getBoundingClientRect().height`), 20.)
	b.resize(360)
	b.open(w.url + essays + "/entry?id=urn:essays:2")
	b.loads(`document.querySelectorAll(".content img").length === 1 && document.querySelector(".content img").naturalWidth === 600`)
	check(360)
	b.resize(1440)
	b.open(w.url + pod + "/entry?id=pod-1")
	require.Less(t, evaluate[float64](b, `document.querySelector("audio").getBoundingClientRect().top`), 500., "the player is above the notes")
	check(1440)
}

// A chapter begins in the player, and times are in the zone of the reader.
func TestBrowserEpisode(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	page := w.url + strings.TrimPrefix(w.add("/pod.rss"), "/") + "/entry?id=pod-1"
	b.open(page)
	require.Contains(t, b.text(".byline"), "4 January 2020, 10:00 UTC")
	require.Contains(t, b.text(".bottom"), "All times are in UTC.")
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("audio").play = function () { this.dataset.played = "yes"; return Promise.resolve(); }; document.querySelector("[data-seek='90.5']").click()`))
	require.Equal(t, "90.5 yes", evaluate[string](b, `(({ currentTime, dataset }) => currentTime + " " + dataset.played)(document.querySelector("audio"))`))
	require.True(t, strings.HasSuffix(evaluate[string](b, "location.href"), "id=pod-1"), "the page stays")
	_, err := chromedp.Call(b.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Europe/Berlin"})
	require.NoError(t, err)
	b.open(page)
	require.Contains(t, b.text(".byline"), "4 January 2020, 11:00 CET")
	require.Contains(t, b.text(".bottom"), "Times are in your zone, Europe/Berlin, and days in UTC.")
}

// On a phone, the first entry of a feed is within the first screen, and the timeline unfolds with
// all of its years.
func TestBrowserPhone(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	w.write(1996, 2026)
	w.lose("feed/9-")
	b.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
	for _, feed := range []string{"/news.rss", "/blog/feed.atom"} {
		b.open(w.url + strings.TrimPrefix(w.add(feed), "/"))
		require.LessOrEqual(t, evaluate[float64](b, `document.querySelector(".entries li").getBoundingClientRect().bottom`), 740., feed)
		require.Zero(t, evaluate[int](b, `document.querySelector(".timeline").getClientRects().length`), feed)
	}
	b.do(chromedp.Click(chromedp.CSS("label[for=fold]")))
	require.Equal(t, 1, evaluate[int](b, `document.querySelector(".timeline").getClientRects().length`))
	require.Greater(t, evaluate[int](b, `document.querySelectorAll(".years a").length`), 20)
	require.Zero(t, evaluate[int](b, `[...document.querySelectorAll(".years a, .scale")].filter((a) => a.getBoundingClientRect().right > innerWidth || a.getBoundingClientRect().left < 0).length`))
	require.LessOrEqual(t, evaluate[int](b, "document.documentElement.scrollWidth"), 360)
	require.Zero(t, evaluate[int](b, `((svg) => [...svg.querySelectorAll("text")].filter((text) => text.getBoundingClientRect().right > svg.getBoundingClientRect().right).length)(document.querySelector(".timeline svg"))`), "years are whole")
}

// Text that is written right to left is set so, and the page around it is not.
func TestBrowserRightToLeft(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	page := strings.TrimPrefix(w.add("/odd.atom"), "/")
	b.open(w.url + page + "/entry?id=urn:odd:rtl")
	require.Equal(t, "rtl", evaluate[string](b, `getComputedStyle(document.querySelector("h1")).direction`))
	require.Equal(t, "rtl", evaluate[string](b, `getComputedStyle(document.querySelector(".content")).direction`))
	require.Equal(t, "ltr", evaluate[string](b, `getComputedStyle(document.querySelector(".byline")).direction`))
	require.Equal(t, "he he", evaluate[string](b, `document.querySelector("h1").lang + " " + document.querySelector(".content").lang`))
	b.open(w.url + page)
	require.Contains(t, b.source(), `<bdi lang="he">שלום`)
}

// If the reader has set their own colours, drawings use them, too. A printed
// page has nothing to press.
func TestBrowserMedia(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	w.write(2003, 2006)
	page := w.url + strings.TrimPrefix(w.add("/blog/feed.atom"), "/")
	emulate := func(media emulation.SetEmulatedMediaParams) {
		_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media)
		require.NoError(t, err)
	}
	emulate(emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "forced-colors", Value: "active"}}})
	for path, drawn := range map[string][]string{page: {".timeline .bar", ".timeline .here"}, w.url + "overview": {".timeline .bar", ".share rect"}} {
		b.open(path)
		for _, selector := range drawn {
			require.True(t, evaluate[bool](b, `getComputedStyle(document.querySelector("`+selector+`")).fill == getComputedStyle(document.body).color`), selector)
		}
	}
	b.open(page)
	b.click(".entries .title")
	emulate(emulation.SetEmulatedMediaParams{Media: "print"})
	require.Zero(t, evaluate[int](b, `[...document.querySelectorAll("button, .button, input, select, nav, .skip")].filter(e => e.checkVisibility()).length`))
}

// The number of keys needed to reach the search does not grow with the history.
func TestBrowserTabStops(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	w.write(1996, 2026)
	b.open(w.url + strings.TrimPrefix(w.add("/blog/feed.atom"), "/"))
	require.Greater(t, evaluate[int](b, `document.querySelectorAll(".timeline a").length`), 200)
	stops := 0
	for ; evaluate[string](b, "document.activeElement.id") != "q"; stops++ {
		require.Less(t, stops, 25)
		b.do(chromedp.KeyEvent(kb.Tab))
	}
	b.do(chromedp.Focus(chromedp.CSS(".timeline .skip")))
	require.True(t, evaluate[bool](b, `document.querySelector(".timeline .skip").getBoundingClientRect().left > 0`))
}

// With a finger, the first tap describes a part, and the second one goes there.
func TestBrowserTouch(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	w.write(2003, 2016)
	b.do(chromedp.EmulateViewport(360, 800, chromedp.EmulateMobile))
	_, err := chromedp.Call(b.ctx, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true})
	require.NoError(t, err)
	b.open(w.url + strings.TrimPrefix(w.add("/blog/feed.atom"), "/"))
	b.tap("label[for=fold]")
	b.tap(".timeline svg a:nth-child(9)")
	require.Eventually(t, func() bool { return strings.Contains(b.text("[data-says]"), "Tap again to go there.") }, patience, 20*time.Millisecond)
	require.Regexp(t, `^\w+ \d{4}: \d+ entr`, b.text("[data-says]"))
	require.Empty(t, evaluate[string](b, "location.search"))
	b.tap(".timeline svg a:nth-child(9)")
	require.Eventually(t, func() bool { return strings.HasPrefix(evaluate[string](b, "location.search"), "?month=") }, patience, 20*time.Millisecond)
}

var (
	screenshots = flag.Bool("screenshots", false, "write those of the README")
	only        = flag.String("only", "", "the page to look at; nothing: all of them")
	views       = flag.String("views", "", "a directory: write pictures of all pages, in all widths and themes")
)

// A tab is a page of a browser.
type tab struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	troubles []string // exceptions and dialogs
}

// newTab starts Chromium with FEEDHISTORY_BROWSER=required; otherwise the test is skipped.
func newTab(t testing.TB, flags ...chromedp.ExecAllocatorOption) *tab {
	path := feedtest.Program(t, "FEEDHISTORY_BROWSER", "chromium", "chromium-browser", "google-chrome")
	ctx, stop := chromedp.NewExecAllocator(t.Context(), slices.Concat(chromedp.DefaultExecAllocatorOptions[:], []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1080, 860),
		chromedp.WSURLReadTimeout(patience),
	}, flags)...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	b := &tab{t: t, ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.troubles = append(b.troubles, "exception: "+e.ExceptionDetails.Text)
		case *devtools.EventJavascriptDialogOpening:
			b.troubles = append(b.troubles, "dialog: "+e.Message)
		}
	}))
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		require.Empty(t, b.troubles)
	})
	_, err := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	require.NoError(t, err)
	return b
}

// another opens another tab of the same browser.
func (b *tab) another() *tab {
	ctx, stop := chromedp.NewContext(b.ctx)
	b.t.Cleanup(stop)
	require.NoError(b.t, chromedp.Do(ctx))
	return &tab{t: b.t, ctx: ctx}
}

// do performs actions.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, actions...))
}

// open opens a page.
func (b *tab) open(url string) {
	b.t.Helper()
	b.do(chromedp.Navigate(url))
}

// loads waits until a page that comes by itself is complete, with its scripts. It is the
// one for which the expression isIt is true.
func (b *tab) loads(isIt string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { // in one expression, because the page may change between two
		return evaluate[bool](b, `document.readyState == "complete" && (`+isIt+")")
	}, patience, 50*time.Millisecond)
}

// click clicks on something that leads to another page, and waits for the page.
func (b *tab) click(selector string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	_, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(selector)))
	require.NoError(b.t, err)
}

// shows waits until the page has a text.
func (b *tab) shows(text string) {
	b.t.Helper()
	b.loads("document.documentElement.outerHTML.includes(`" + text + "`)")
}

// text returns the visible text of what a selector finds.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return evaluate[string](b, `document.querySelector(`+"`"+selector+"`"+`)?.innerText ?? ""`)
}

// evaluate returns the value of an expression.
func evaluate[T any](b *tab, expression string) T {
	b.t.Helper()
	return read(b, chromedp.Evaluate[T](expression))
}

// source returns the page's markup as it is without scripts.
func (b *tab) source() string {
	b.t.Helper()
	return read(b, chromedp.OuterHTML(chromedp.CSS("html")))
}

// read reads something from the page. What goes away while it is read, because the page
// is loaded again, is read once more from the new one.
func read[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for {
		v, err := chromedp.Run(ctx, action)
		if gone, ok := errors.AsType[*cdproto.Error](err); ok && gone.Code == serverError && ctx.Err() == nil {
			continue
		}
		require.NoError(b.t, err)
		return v
	}
}

// serverError is the code of the protocol's errors that are not about the request
// (JSON-RPC 2.0 §5.1).
const serverError = -32000

// script switches JavaScript off or on.
func (b *tab) script(on bool) {
	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
	require.NoError(b.t, err)
}

// scheme makes the page light or dark.
func (b *tab) scheme(name string) {
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	})
	require.NoError(b.t, err)
}

// tap touches the middle of what a selector finds.
func (b *tab) tap(selector string) {
	b.t.Helper()
	at := evaluate[[]float64](b, `(e => { e.scrollIntoView({block: "center", inline: "center"}); const r = e.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; })(document.querySelector(`+"`"+selector+"`"+`))`)
	for _, kind := range []input.DispatchTouchEventType{input.DispatchTouchEventTypeTouchStart, input.DispatchTouchEventTypeTouchEnd} {
		var points []*input.TouchPoint
		if kind == input.DispatchTouchEventTypeTouchStart {
			points = []*input.TouchPoint{{X: at[0], Y: at[1]}}
		}
		_, err := chromedp.Call(b.ctx, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: points})
		require.NoError(b.t, err)
	}
}

// view writes a picture of the whole page into the directory of -views.
func (b *tab) view(name string) {
	if *views == "" {
		return
	}
	image, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(*views, name+".png"), image, 0o644))
}

// shoot writes pictures of the page in these widths, light and dark, if they are wanted.
func (b *tab) shoot(name string, widths ...int64) {
	b.t.Helper()
	if !*screenshots {
		return
	}
	for _, width := range widths {
		b.do(chromedp.EmulateViewport(width, map[int64]int64{360: 760, 768: 1024, 1440: 900}[width]))
		for _, scheme := range []string{"light", "dark"} {
			b.scheme(scheme)
			b.do(chromedp.Sleep(300 * time.Millisecond))
			image, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			require.NoError(b.t, err)
			require.NoError(b.t, os.WriteFile(filepath.Join("screenshots", fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), image, 0o644))
		}
	}
	b.do(chromedp.EmulateViewport(1080, 760))
}
