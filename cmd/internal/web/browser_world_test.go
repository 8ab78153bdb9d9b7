package web

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	devtools "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

var (
	screenshots = flag.Bool("screenshots", false, "write those of the README")
	long        = flag.Bool("long", false, "try more of everything that is tried at random, and all rules of axe-core in all widths and themes")
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

// newTab starts Chromium, unless with -short. If there is none, the test is skipped, or
// fails with FEEDHISTORY_BROWSER=required.
func newTab(t testing.TB, flags ...chromedp.ExecAllocatorOption) *tab {
	feedtest.Long(t)
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" && os.Getenv("FEEDHISTORY_BROWSER") == "required" {
		t.Fatal("no Chromium was found")
	}
	if path == "" {
		t.Skip("no Chromium was found; with FEEDHISTORY_BROWSER=required that is a failure")
	}
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

// shoot writes screenshots of the page, if they are wanted.
func (b *tab) shoot(name string, schemes ...string) {
	b.t.Helper()
	for _, scheme := range schemes {
		if !*screenshots {
			return
		}
		b.scheme(scheme)
		b.do(chromedp.Sleep(300 * time.Millisecond))
		image, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		require.NoError(b.t, err)
		require.NoError(b.t, os.WriteFile(filepath.Join("screenshots", name+"-"+scheme+".png"), image, 0o644))
	}
}
