package republish

import (
	"context"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/check"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

var long = flag.Bool("long", false, "run random tests four times as often")

// Random tests run a quarter as often as rapid's default, unless there is -long,
// -rapid.checks or RAPID_CHECKS.
func TestMain(m *testing.M) {
	flag.Parse()
	given := *long || os.Getenv("RAPID_CHECKS") != ""
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		_ = flag.Set("rapid.checks", "25") // the flag exists
	}
	feedtest.Main(m)
}

// A world is a website with feeds, a mirror of them, and a Handler.
type world struct {
	*Handler
	t      testing.TB
	site   *httptest.Server // of the publishers
	blog   *publish.Publisher
	files  *publish.MemoryOutput // of the blog
	mirror *mirror.Mirror
	url    string // of the handler, with a final slash
}

func newWorld(t testing.TB, edit func(*Handler)) *world {
	w := &world{t: t, files: &publish.MemoryOutput{}}
	mux := http.NewServeMux()
	mux.Handle("/blog/", http.StripPrefix("/blog", &publish.Handler{FS: w.files, MaxAge: time.Nanosecond}))
	mux.Handle("/", feedtest.ServeFile(t, "testdata/site.txtar"))
	w.site = httptest.NewServer(mux)
	t.Cleanup(w.site.Close)
	w.blog = &publish.Publisher{
		Output: w.files, Base: w.site.URL + "/blog", Split: feedhistory.Split{Size: 12}, Recent: 5,
		Head: &feedhistory.Document{
			ID: "tag:lighthouse.example,2003:log", Title: "The Lighthouse Log", Subtitle: "Weather, ships and birds",
			Authors: []feedhistory.Person{{Name: "Ada Keeper"}},
			Links:   feedhistory.Links{{Rel: "alternate", Href: "https://lighthouse.example/"}},
		},
	}
	server := httptest.NewUnstartedServer(nil)
	w.url = "http://" + server.Listener.Addr().String() + "/"
	store := &mirror.Memory{}
	client := reader()
	client.Retry = feedhistory.Retry{Tries: 1}
	w.mirror = &mirror.Mirror{Store: store, Client: client}
	w.Handler = &Handler{Store: store, Base: w.url, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if edit != nil {
		edit(w.Handler)
	}
	server.Config.Handler = w.Handler
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		client.CloseIdle()
	})
	return w
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

var subjects = []string{"Fog over the north channel", "A barque in distress", "Storm petrels", "The lamp is cleaned", "Ice on the rail"}

func blogEntry(t testing.TB, year, month, n int, note string) *feedhistory.Entry {
	return blogEntryAt(t, year, month, n, note, time.Date(year, time.Month(month), 3+n*6, 7, 30, 0, 0, time.UTC))
}

func blogEntryAt(t testing.TB, year, month, n int, note string, at time.Time) *feedhistory.Entry {
	subject := subjects[(year+month*3+n)%len(subjects)]
	e, err := feedhistory.Draft{
		ID: fmt.Sprintf("tag:lighthouse.example,%d:%d/%d", year, month, n), Updated: at, Published: at,
		Title: feedhistory.Text{Body: subject + note}, Authors: []feedhistory.Person{{Name: "Ada Keeper"}},
		Links: feedhistory.Links{{Rel: "alternate", Href: fmt.Sprintf("https://lighthouse.example/%d/%02d/%d", year, month, n)}},
		Content: feedhistory.Text{Type: feedhistory.TextHTML, Base: "https://lighthouse.example/", Body: fmt.Sprintf(
			`<p>%s, seen from the gallery at half past seven on day %d. Wind from the <a href="/wind">north-west</a>, force %d.</p>`,
			subject, at.YearDay(), n+2)},
	}.Entry()
	require.NoError(t, err)
	return e
}

// feedURL returns the URL of a feed of the site.
func (w *world) feedURL(path string) string { return w.site.URL + path }

// get requests a document.
func (w *world) get(path string) (status int, body string, header http.Header) {
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, strings.TrimSuffix(w.url, "/")+path, nil)
	require.NoError(w.t, err)
	resp, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(w.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	return resp.StatusCode, string(data), resp.Header
}

// refused requires that a request is refused, and returns the message.
func (w *world) refused(path string, status int) string {
	w.t.Helper()
	got, body, _ := w.get(path)
	require.Equal(w.t, status, got, body)
	return body
}

// add reads a feed of the site, and returns the path of its documents.
func (w *world) add(path string) string {
	require.NoError(w.t, w.Reserve(w.t.Context(), w.feedURL(path)))
	w.poll(w.feedURL(path))
	return "/feeds/" + Name(w.feedURL(path))
}

func (w *world) poll(feed string) *mirror.Feed {
	changes, err := w.mirror.Update(w.t.Context(), feed)
	require.NoError(w.t, err)
	require.NoError(w.t, changes.Failure)
	f, err := w.Store.Feed(w.t.Context(), feed)
	require.NoError(w.t, err)
	return f
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

// reader returns another instance of the library.
func reader() *feedhistory.Client {
	return &feedhistory.Client{Policy: feedhistory.Policy{AllowPrivate: true}}
}

// words returns the words of an entry, as far as formats can express them.
func words(e *feedhistory.Entry) string {
	link, _ := e.Links.Rel(feedhistory.RelAlternate)
	summary, content := e.Summary().Plain(), e.Content().Plain()
	if content == "" {
		summary, content = content, summary // an RSS item uses its description for the first of them
	}
	return e.Title().Plain() + " | " + link.Href + " | " + summary + " | " + content
}

// mirrored returns the entries the mirror has of a feed.
func (w *world) mirrored(feed string) map[string]string {
	all := map[string]string{}
	for r, err := range w.Store.Entries(w.t.Context(), mirror.Query{Feed: feed}) {
		require.NoError(w.t, err)
		e, err := r.Entry()
		require.NoError(w.t, err)
		all[r.ID] = words(e)
	}
	return all
}

// fetched returns the entries a reader gets.
func (w *world) fetched(path string) (map[string]string, *feedhistory.History) {
	h, err := reader().Fetch(w.t.Context(), strings.TrimSuffix(w.url, "/")+path)
	require.NoError(w.t, err)
	require.Len(w.t, h.Gaps, len(h.Head.Declared()), "nothing is missing but the declared gaps")
	all := map[string]string{}
	for _, e := range h.Entries {
		all[e.ID] = words(e)
	}
	return all, h
}

// checked requires that the checks find nothing in a chain, with one exception:
// an entry must keep its identity, even if its RSS guid is not a valid Atom id
// (RFC 4287 §4.2.6).
func (w *world) checked(path string) {
	w.t.Helper()
	var chain check.Chain
	for finding, err := range chain.Walk(w.t.Context(), reader(), strings.TrimSuffix(w.url, "/")+path) {
		require.NoError(w.t, err)
		if finding.Level > check.Note && (finding.Code != "not-absolute-iri" || !strings.Contains(finding.Message, "harbour-") && !strings.Contains(finding.Message, "pod-")) {
			w.t.Errorf("%s: %v", path, finding)
		}
	}
}

// requireSame checks all forms in which a feed is published again.
func (w *world) requireSame(page, feed string) {
	w.t.Helper()
	want := w.mirrored(feed)
	for _, document := range []string{"/index.atom", "/index.rss", "/complete.atom"} {
		got, _ := w.fetched(page + document)
		require.Equal(w.t, want, got, document)
		w.checked(page + document)
	}
}

func getRequest(ctx context.Context, path string) *http.Request {
	return httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:8005"+path, nil)
}

// answer returns the answer of a handler.
func answer(h http.Handler, r *http.Request) (status int, body string, header http.Header) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String(), w.Header()
}

// asked returns the document at a path.
func asked(t *testing.T, h *Handler, path string) string {
	status, body, _ := answer(h, getRequest(t.Context(), path))
	require.Equal(t, http.StatusOK, status, body)
	return body
}

// direct returns a client whose requests go to a handler.
func direct(h http.Handler) *feedhistory.Client {
	return &feedhistory.Client{Transport: feedtest.Direct{Handler: h}, Retry: feedhistory.Retry{Tries: 1}}
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
