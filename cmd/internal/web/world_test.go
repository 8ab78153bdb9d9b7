package web

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/republish"
)

// A world is a website with feeds, and a history server that mirrors them.
type world struct {
	*Server
	t      testing.TB
	site   *httptest.Server             // of the publishers
	gate   gate                         // what keeps its answers back
	extra  atomic.Pointer[http.Handler] // of /large.atom; nil for none
	token  string                       // shown with each request; "" for none
	blog   *publish.Publisher
	files  *publish.MemoryOutput // of the blog
	url    string                // of the history server, with a final slash
	client *http.Client
}

// patience is how long a test waits, on however busy a machine, for what does not come.
const patience = 5 * time.Minute

// A gate keeps answers back until a test lets them through.
type gate struct {
	mu    sync.Mutex
	open  chan struct{} // closed when nothing is kept back any more; nil if nothing was
	turns chan struct{} // each value lets an answer through
}

// hold keeps all answers back from now on.
func (g *gate) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open, g.turns = make(chan struct{}), make(chan struct{}, 10_000)
}

// let lets the next answer through.
func (g *gate) let() { g.turns <- struct{}{} }

// free lets all answers through.
func (g *gate) free() { close(g.open) }

// pass waits until an answer may pass, or nobody waits for it.
func (g *gate) pass(ctx context.Context) {
	g.mu.Lock()
	open, turns := g.open, g.turns
	g.mu.Unlock()
	if open == nil {
		return
	}
	select {
	case <-open:
	case <-turns:
	case <-ctx.Done():
	}
}

// newWorld starts both. The server polls until the test ends.
func newWorld(t testing.TB, edit func(*Server)) *world {
	w := &world{t: t, files: &publish.MemoryOutput{}}
	pages := feedtest.ServeFile(t, "testdata/site.txtar")
	mux := http.NewServeMux()
	mux.Handle("/blog/", http.StripPrefix("/blog", &publish.Handler{FS: w.files, MaxAge: time.Nanosecond}))
	mux.Handle("/", pages)
	mux.HandleFunc("/chart.png", func(rw http.ResponseWriter, _ *http.Request) { servePicture(rw, 1200, 600) })
	mux.HandleFunc("/wave.png", func(rw http.ResponseWriter, _ *http.Request) { servePicture(rw, 600, 400) })
	mux.HandleFunc("/large.atom", func(rw http.ResponseWriter, r *http.Request) { (*w.extra.Load()).ServeHTTP(rw, r) })
	w.site = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.gate.pass(r.Context())
		mux.ServeHTTP(rw, r)
	}))
	t.Cleanup(w.site.Close)
	w.blog = &publish.Publisher{
		Output: w.files, Base: w.site.URL + "/blog", Split: compose.Split{Size: 12}, Recent: 5,
		Head: &feedhistory.Document{
			ID: "tag:lighthouse.example,2003:log", Title: "The Lighthouse Log", Subtitle: "Weather, ships and birds",
			Authors: []feedhistory.Person{{Name: "Ada Keeper"}},
			Links:   feedhistory.Links{{Rel: "alternate", Href: "https://lighthouse.example/"}},
		},
	}

	server := httptest.NewUnstartedServer(nil)
	w.url = "http://" + server.Listener.Addr().String() + "/"
	client := &feedhistory.Client{AllowPrivate: true, Tries: 1, Timeout: patience, Transport: w.network()}
	store := mirror.NewMemory()
	w.Server = &Server{Store: store, Mirror: &mirror.Mirror{Store: store, Client: client}, Base: w.url, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if edit != nil {
		edit(w.Server)
	}
	w.once.Do(w.setUp)
	w.polls.Pause = time.Millisecond // between polls of the site
	ctx, cancel := context.WithCancel(t.Context())
	server.Config.Handler = w.Server
	server.Start()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	w.client = &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		server.CloseClientConnections()
		server.Close()
		client.CloseIdle()
		w.client.CloseIdleConnections()
	})
	return w
}

// network is where lighthouse.example is the site, and no host but those of this machine is reached.
func (w *world) network() *http.Transport {
	network := http.DefaultTransport.(*http.Transport).Clone()
	network.Proxy = nil
	network.DialContext = func(ctx context.Context, name, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		switch ip := net.ParseIP(host); {
		case err != nil:
			return nil, err
		case address == "lighthouse.example:80":
			address = w.site.Listener.Addr().String()
		case ip == nil || !ip.IsLoopback():
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		return new(net.Dialer).DialContext(ctx, name, address)
	}
	w.t.Cleanup(network.CloseIdleConnections)
	return network
}

// servePicture serves a picture of the sea.
func servePicture(w http.ResponseWriter, width, height int) {
	p := image.NewNRGBA(image.Rect(0, 0, width, height))
	for x := range width {
		for y := range height {
			down := float64(y) / float64(height)
			c := color.NRGBA{uint8(236 - 60*down), uint8(240 - 30*down), uint8(238 + 10*down), 255} // the sky
			for n := range 4 {
				crest := .45 + .13*float64(n) + .03*math.Sin(float64(x)*(9+float64(n)*2)/float64(width)+float64(n)*1.7)
				if down > crest {
					c = color.NRGBA{uint8(70 - 14*n), uint8(138 - 18*n), uint8(152 - 14*n), 255}
				}
			}
			p.SetNRGBA(x, y, c)
		}
	}
	w.Header().Set("Content-Type", "image/png")
	_ = png.Encode(w, p)
}

// write publishes entries of the blog, some each month, over a range of years.
func (w *world) write(from, to int) {
	var entries []*feedhistory.Entry
	for year := from; year < to; year++ {
		for month := range 12 {
			for n := range (year*year*31 + month*month*17 + year*month*7) % 9 % 5 {
				entries = append(entries, blogEntry(w.t, year, month+1, n+1, ""))
			}
		}
	}
	require.NoError(w.t, w.blog.Append(context.Background(), entries...))
}

var subjects = []string{"Fog over the north channel", "A barque in distress", "Storm petrels", "The lamp is cleaned", "Ice on the rail",
	"A quiet night", "Signals from the mainland", "The tender comes late", "Northern lights", "Soundings"}

func blogEntry(t testing.TB, year, month, n int, note string) *feedhistory.Entry {
	return blogEntryAt(t, year, month, n, note, time.Date(year, time.Month(month), 3+n*6, 7, 30, 0, 0, time.UTC))
}

func blogEntryAt(t testing.TB, year, month, n int, note string, at time.Time) *feedhistory.Entry {
	subject := subjects[(year+month*3+n)%len(subjects)]
	e, err := compose.Draft{
		ID: fmt.Sprintf("tag:lighthouse.example,%d:%d/%d", year, month, n), Updated: at, Published: at,
		Title: feedhistory.Text{Body: subject + note}, Authors: []feedhistory.Person{{Name: "Ada Keeper"}},
		Links: feedhistory.Links{{Rel: "alternate", Href: fmt.Sprintf("https://lighthouse.example/%d/%02d/%d", year, month, n)}},
		Content: feedhistory.Text{Type: "html", Base: "http://lighthouse.example/", Body: fmt.Sprintf(
			`<p>%s, seen from the gallery at half past seven on day %d. Wind from the <a href="/wind">north-west</a>, force %d.</p>`+
				`<p><img src="chart.png" alt="The day’s chart"></p><blockquote>Nothing is so calm as the sea that was not.</blockquote>`,
			subject, at.YearDay(), n+2)},
	}.Entry()
	require.NoError(t, err)
	return e
}

// feedURL returns the URL of a feed of the site.
func (w *world) feedURL(path string) string { return w.site.URL + path }

// nameOf returns the name of a feed of the site.
func (w *world) nameOf(path string) string { return republish.Name(w.feedURL(path)) }

// get requests a page of the server.
func (w *world) get(path string) (status int, body string, header http.Header) {
	return w.do(http.MethodGet, path, nil)
}

func (w *world) do(method, path string, form url.Values) (status int, body string, header http.Header) {
	r, err := http.NewRequestWithContext(w.t.Context(), method, strings.TrimSuffix(w.url, "/")+path, strings.NewReader(form.Encode()))
	require.NoError(w.t, err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Referer", w.url+"feeds/abc")
	}
	if w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	resp, err := w.client.Do(r)
	require.NoError(w.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	return resp.StatusCode, string(data), resp.Header
}

// add adds a feed of the site through the form, waits until it was polled, and
// returns the path of its page.
func (w *world) add(path string) string {
	status, body, header := w.do(http.MethodPost, "/feeds", url.Values{"url": {w.feedURL(path)}, "all-the-same": {"1"}})
	require.Equal(w.t, http.StatusSeeOther, status, body)
	w.settle(w.feedURL(path), 0)
	return header.Get("Location")
}

// settle waits until a feed has been polled again.
func (w *world) settle(feed string, polls int64) *mirror.Feed {
	var f *mirror.Feed
	require.Eventually(w.t, func() bool {
		var err error
		f, err = w.Store.Feed(w.t.Context(), feed)
		waits, runs := w.polls.Status(feed)
		return err == nil && f.Polls > polls && !waits && !runs
	}, patience, 5*time.Millisecond)
	return f
}

// poll polls a feed through the form.
func (w *world) poll(feed string) *mirror.Feed {
	f, err := w.Store.Feed(w.t.Context(), feed)
	require.NoError(w.t, err)
	status, body, _ := w.do(http.MethodPost, "/feeds/"+republish.Name(feed)+"/poll", url.Values{})
	require.Equal(w.t, http.StatusSeeOther, status, body)
	return w.settle(feed, f.Polls)
}

// lose removes an archive of the blog, given the beginning of its name, as
// publishers do.
func (w *world) lose(name string) {
	for _, file := range w.files.Names() {
		if strings.HasPrefix(file, name) {
			require.NoError(w.t, w.files.Remove(context.Background(), file))
			return
		}
	}
	w.t.Fatal("there is no such archive: " + name)
}

// blogIDs returns the IDs of the blog's entries, the oldest first.
func (w *world) blogIDs() (ids []string) {
	for r, err := range w.Store.Entries(w.t.Context(), mirror.Query{Feed: w.feedURL("/blog/feed.atom"), Reverse: true}) {
		require.NoError(w.t, err)
		ids = append(ids, r.ID)
	}
	return ids
}
