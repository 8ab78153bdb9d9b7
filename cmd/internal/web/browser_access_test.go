package web

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const axePackage = "axe-core@4.14.1"

// axe returns the script of axe-core, "" if there is none. The script is in
// node_modules (npm install --no-save axe-core) or, with
// FEEDHISTORY_AXE=required, is installed for the test.
func axe(t *testing.T) string {
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
var widths = []int64{360, 768, 1280}

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
		sight{"reading", blog + "/read"}, sight{"month", blog + "?month=2012-03&span=1"},
		sight{"play", add("/pod.rss") + "/entry?id=pod-1&play"}, sight{"overview", "overview"}, sight{"sorted", "?show=window&sort=entries"},
		sight{"marked", blog + "/entry?q=storm&id=" + url.QueryEscape("tag:lighthouse.example,2012:3/1")},
	)
}

// byLook are the rules of axe-core whose findings depend on the theme or the
// width. The other rules are about the markup, which is always the same.
const byLook = `["color-contrast", "link-in-text-block", "target-size", "scrollable-region-focusable"]`

// Every page is looked at in both themes, on a phone, a tablet and a desktop:
// axe-core finds nothing, texts are neither faint nor small, and nothing is
// wider than the window. All rules of axe-core are tested when a page is shown
// for the first time, and always with -long.
func TestBrowserLook(t *testing.T) {
	t.Parallel()
	script := axe(t)
	b := newTab(t)
	w := newWorld(t, nil)
	for i, place := range w.sights() {
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
				what := fmt.Sprintf("%s-%d-%s", place.name, width, scheme)
				require.LessOrEqual(t, evaluate[int64](b, "document.documentElement.scrollWidth"), width, what)
				require.Empty(t, evaluate[string](b, contrasts), what)
				require.Empty(t, evaluate[string](b, small), "%s: text that is too small", what)
				b.view(what)
				switch {
				case script != "" && *long:
					b.requireNothingFound(what, "undefined")
				case script != "":
					b.requireNothingFound(what, byLook)
				}
			}
		}
	}
}

// With letters twice as large, as readers can set them, nothing is wider than the window
// and nothing is cut off.
func TestBrowserLargeLetters(t *testing.T) {
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
	b.tap(".timeline svg a:nth-child(9)")
	require.Eventually(t, func() bool { return strings.Contains(b.text("[data-says]"), "Tap again to go there.") }, patience, 20*time.Millisecond)
	require.Regexp(t, `^\w+ \d{4}: \d+ entr`, b.text("[data-says]"))
	require.Empty(t, evaluate[string](b, "location.search"))
	b.tap(".timeline svg a:nth-child(9)")
	require.Eventually(t, func() bool { return strings.HasPrefix(evaluate[string](b, "location.search"), "?month=") }, patience, 20*time.Millisecond)
}
