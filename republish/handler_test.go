package republish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/check"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { feedtest.Main(m) }

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
		Output: w.files, Base: w.site.URL + "/blog", Split: compose.Split{Size: 12}, Recent: 5,
		Head: &feedhistory.Document{
			ID: "tag:lighthouse.example,2003:log", Title: "The Lighthouse Log", Subtitle: "Weather, ships and birds",
			Authors: []feedhistory.Person{{Name: "Ada Keeper"}},
			Links:   feedhistory.Links{{Rel: "alternate", Href: "https://lighthouse.example/"}},
		},
	}
	server := httptest.NewUnstartedServer(nil)
	w.url = "http://" + server.Listener.Addr().String() + "/"
	store := mirror.NewMemory()
	client := reader()
	client.Tries = 1
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
	e, err := compose.Draft{
		ID: fmt.Sprintf("tag:lighthouse.example,%d:%d/%d", year, month, n), Updated: at, Published: at,
		Title: feedhistory.Text{Body: subject + note}, Authors: []feedhistory.Person{{Name: "Ada Keeper"}},
		Links: feedhistory.Links{{Rel: "alternate", Href: fmt.Sprintf("https://lighthouse.example/%d/%02d/%d", year, month, n)}},
		Content: feedhistory.Text{Type: "html", Base: "https://lighthouse.example/", Body: fmt.Sprintf(
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
	return &feedhistory.Client{AllowPrivate: true}
}

// words returns the words of an entry, as far as formats can express them.
func words(e *feedhistory.Entry) string {
	link, _ := e.Links.Rel("alternate")
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
	for finding, err := range chain.Check(w.t.Context(), reader(), strings.TrimSuffix(w.url, "/")+path) {
		require.NoError(w.t, err)
		if finding.Level != check.Note && (finding.Code != "not-absolute-iri" || !strings.Contains(finding.Message, "harbour-") && !strings.Contains(finding.Message, "pod-")) {
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
	for status == http.StatusServiceUnavailable && strings.Contains(body, "being made") { // the machine is busy
		status, body, _ = answer(h, getRequest(t.Context(), path))
	}
	require.Equal(t, http.StatusOK, status, body)
	return body
}

// direct returns a client whose requests go to a handler.
func direct(h http.Handler) *feedhistory.Client {
	return &feedhistory.Client{AllowPrivate: true, Transport: feedtest.Direct{Handler: h}, Tries: 1}
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

func TestRepublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(2003, 2020)
	page := w.add("/blog/feed.atom")
	feed := w.feedURL("/blog/feed.atom")
	w.requireSame(page, feed)
	before := archivesIn(w.t, w.Handler, feed)
	require.Greater(t, len(before), 4)

	// New entries, a new version and a deletion follow what was published.
	w.write(2020, 2026)
	require.NoError(t, w.blog.Append(t.Context(), blogEntryAt(t, 2004, 3, 1, ", corrected", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))))
	require.NoError(t, w.blog.Delete(t.Context(), "tag:lighthouse.example,2005:1/1", time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)))
	state := w.poll(feed)
	require.Equal(t, int64(1), state.Deleted)
	w.requireSame(page, feed)
	after := archivesIn(w.t, w.Handler, feed)
	require.Greater(t, len(after), len(before))
	for name, text := range before {
		require.Equal(t, text, after[name], name)
	}

	// Nothing is written if nothing has changed.
	w.poll(feed)
	_, index, _ := w.get(page + "/index.atom")
	w.poll(feed)
	_, again, _ := w.get(page + "/index.atom")
	require.Equal(t, index, again)

	// Another mirror gets everything, and names the source.
	second := mirror.NewMemory()
	m := &mirror.Mirror{Store: second, Client: reader()}
	changes, err := m.Update(t.Context(), strings.TrimSuffix(w.url, "/")+page+"/index.atom")
	require.NoError(t, err)
	require.NoError(t, changes.Failure)
	require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict)
	require.Equal(t, len(w.mirrored(feed)), changes.Added)
	for r, err := range second.Entries(t.Context(), mirror.Query{}) {
		require.NoError(t, err)
		require.Contains(t, r.Content.Data, "<id>tag:lighthouse.example,2003:log</id><title>The Lighthouse Log</title>")
		require.Contains(t, r.Content.Data, `<link rel="self" href="`+feed+`"/>`)
	}
}

// A server that is restarted over the same output continues where the last one
// ended; with a different base it begins again.
func TestRepublishedAfterRestart(t *testing.T) {
	t.Parallel()
	dir := publish.Dir{Path: t.TempDir()}
	w := newWorld(t, func(s *Handler) { s.Output = dir })
	w.write(2003, 2015)
	page := w.add("/blog/feed.atom")
	feed := w.feedURL("/blog/feed.atom")
	w.requireSame(page, feed)
	before := archivesIn(w.t, w.Handler, feed)

	_, index, _ := w.get(page + "/index.atom")
	other := &Handler{Store: w.Store, Base: w.Base, Output: dir}
	require.Equal(t, index, asked(t, other, page+"/index.atom"))
	other = &Handler{Store: w.Store, Base: "https://elsewhere.example", Output: dir}
	require.Contains(t, asked(t, other, page+"/index.atom"), `href="https://elsewhere.example`+page+`/index.atom"`)
	require.Equal(t, before, archivesIn(w.t, w.Handler, feed))

	// If the beginning was cut short, it begins again, with the same names.
	require.NoError(t, subOutput{w.out, Name(feed)}.Remove(t.Context(), ".index.atom.json"))
	w.requireSame(page, feed)
	require.Equal(t, before, archivesIn(w.t, w.Handler, feed))

	// What was published but not recorded is not published again.
	w.write(2015, 2016)
	w.poll(feed)
	noted, err := fs.ReadFile(w.out, Name(feed)+"/.index.atom.json")
	require.NoError(t, err)
	_, index, _ = w.get(page + "/index.atom")
	require.NoError(t, subOutput{w.out, Name(feed)}.Put(t.Context(), ".index.atom.json", noted))
	_, again, _ := w.get(page + "/index.atom")
	require.Equal(t, index, again)

	require.NoError(t, w.Remove(t.Context(), feed))
	status, _, _ := w.get(page + "/index.atom")
	require.Equal(t, http.StatusNotFound, status)
	left, _ := fs.Glob(w.out, Name(feed)+"/*/*")
	require.Empty(t, left)
}

// Versions that only the mirror knows to be newer, RSS without update times,
// and entries that a complete feed no longer has.
func TestRepublishedSilentChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, path := range []string{"/news.rss", "/tides.atom"} {
		page, feed := w.add(path), w.feedURL(path)
		w.requireSame(page, feed)
		was := w.mirrored(feed)
		w.poll(feed)
		require.NotEqual(t, was, w.mirrored(feed))
		w.requireSame(page, feed)
	}
	_, index, _ := w.get("/feeds/" + Name(w.feedURL("/tides.atom")) + "/index.atom")
	require.Contains(t, index, `<at:deleted-entry xmlns:at="http://purl.org/atompub/tombstones/1.0" ref="urn:tides:1"`)
	require.Contains(t, index, `kind="complete" verdict="whole"></m:mirror>`)
	_, index, _ = w.get("/feeds/" + Name(w.feedURL("/news.rss")) + "/index.atom")
	require.Contains(t, index, `kind="plain" verdict="window"></m:mirror>`)
	require.NotContains(t, index, "fh:complete", "nobody says that this is everything")
	require.Contains(t, index, "lists only its latest entries")
}

// An entry reports a gap as long as the gap exists.
func TestRepublishedGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(2003, 2016)
	saved := w.files.Clone()
	w.lose("feed/3-")
	page, feed := w.add("/blog/feed.atom"), w.feedURL("/blog/feed.atom")
	_, h := w.fetched(page + "/index.atom")
	require.Len(t, h.Entries, len(w.mirrored(feed))+1)
	state, err := w.Store.Feed(t.Context(), feed)
	require.NoError(t, err)
	gap := state.Ledger.Gaps()[0]
	_, index, _ := w.get(page + "/index.atom")
	require.Contains(t, index, `verdict="partial"><m:gap reason="status" href="`+gap.URL+`"/></m:mirror>`)
	require.Contains(t, index, compose.PseudoEntry(gap).ID)
	require.Equal(t, feedhistory.VerdictPartial, h.Verdict(), "who reads it learns that something is missing")
	require.Equal(t, gap.URL, h.Gaps[0].URL)
	require.Contains(t, index, "Something is known to be missing.")
	for _, document := range []string{"/index.atom", "/index.rss", "/complete.atom"} {
		w.checked(page + document)
	}

	archives := archivesIn(w.t, w.Handler, feed)
	for _, name := range saved.Names() {
		text, err := fs.ReadFile(saved, name)
		require.NoError(t, err)
		require.NoError(t, w.files.Put(t.Context(), name, text))
	}
	m := &mirror.Mirror{Store: w.Store, Client: reader(), Revalidate: true}
	changes, err := m.Update(t.Context(), feed)
	require.NoError(t, err)
	require.NoError(t, changes.Failure)
	require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict)
	w.requireSame(page, feed)
	_, index, _ = w.get(page + "/index.atom")
	require.Contains(t, index, `ref="`+compose.PseudoEntry(gap).ID+`"`)
	require.NotContains(t, index, "<m:gap")
	for name, text := range archives {
		require.Equal(t, text, archivesIn(w.t, w.Handler, feed)[name], "archives stay where they were")
	}
}

// Several feeds are published at the same time. While another process has the
// output, the existing documents are served.
func TestRepublishedTogether(t *testing.T) {
	t.Parallel()
	dir := publish.Dir{Path: t.TempDir()}
	w := newWorld(t, func(s *Handler) { s.Output = dir })
	w.write(2003, 2015)
	pages := []string{w.add("/blog/feed.atom"), w.add("/news.rss"), w.add("/tides.atom")}
	unlock, err := dir.Lock(t.Context())
	require.NoError(t, err)
	require.Contains(t, w.refused(pages[0]+"/index.atom", http.StatusServiceUnavailable), "another server is publishing")
	require.NoError(t, unlock())

	var all sync.WaitGroup
	for range 3 {
		for _, page := range pages {
			for _, document := range []string{"/index.atom", "/index.rss"} {
				all.Go(func() {
					status, body, _ := answer(w.Handler, getRequest(t.Context(), page+document))
					assert.Equal(t, http.StatusOK, status, body)
				})
			}
		}
	}
	all.Wait()
	unlock, err = dir.Lock(t.Context())
	require.NoError(t, err)
	w.poll(w.feedURL("/tides.atom"))
	status, _, _ := w.get(pages[2] + "/index.atom")
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, unlock())
	w.requireSame(pages[2], w.feedURL("/tides.atom"))
}

// An impatientStore cancels a context as soon as entries are read.
type impatientStore struct {
	mirror.Store
	cancel context.CancelFunc
}

func (s impatientStore) Entries(ctx context.Context, q mirror.Query) iter.Seq2[*mirror.Record, error] {
	s.cancel()
	return s.Store.Entries(ctx, q)
}

func TestRepublishedThoughNobodyWaits(t *testing.T) {
	w := newWorld(t, nil)
	page := w.add("/tides.atom")
	ctx, cancel := context.WithCancel(t.Context())
	s := &Handler{Store: impatientStore{w.Store, cancel}}
	_, _, _ = answer(s, getRequest(ctx, page+"/index.atom"))
	require.Error(t, ctx.Err())
	require.Eventually(t, func() bool { return s.isPublished(Name(w.feedURL("/tides.atom")), feedhistory.FormatAtom) }, 5*time.Minute, time.Millisecond)
}

// A slowStore needs some time for entries, and counts how often it is asked for them.
type slowStore struct {
	mirror.Store
	time  time.Duration
	count *atomic.Int32
}

func (s slowStore) Entries(ctx context.Context, q mirror.Query) iter.Seq2[*mirror.Record, error] {
	s.count.Add(1)
	time.Sleep(s.time)
	return s.Store.Entries(ctx, q)
}

// Who asks for a document that takes long to make is soon told to come back, and then gets it.
func TestLongInTheMaking(t *testing.T) {
	store, put := damagedStore(t, 0)
	put(0, soundEntry(0))
	for _, document := range []string{"index.atom", "index.rss", "replay.atom?start=2020-01-01&every=1d"} {
		synctest.Test(t, func(t *testing.T) {
			h := &Handler{Store: slowStore{store, 10 * time.Minute, new(atomic.Int32)}}
			path := "/feeds/" + Name(damagedURL) + "/" + document
			start := time.Now()
			status, _, header := answer(h, getRequest(t.Context(), path))
			require.Equal(t, http.StatusServiceUnavailable, status, document)
			require.NotEmpty(t, header.Get("Retry-After"))
			require.Less(t, time.Since(start), time.Minute)
			time.Sleep(2 * time.Hour)
			status, body, _ := answer(h, getRequest(t.Context(), path))
			require.Equal(t, http.StatusOK, status, document)
			if document == "index.atom" {
				require.Contains(t, body, "<entry")
			}
		})
	}
}

// A feed is made in both formats at the same time: who asks for one does not wait for the other.
func TestFormatsDoNotWait(t *testing.T) {
	store, put := damagedStore(t, 0)
	put(0, soundEntry(0))
	name := Name(damagedURL)
	took := func(formats ...feedhistory.Format) (took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			h := &Handler{Store: slowStore{store, 10 * time.Minute, new(atomic.Int32)}}
			start := time.Now()
			for _, format := range formats {
				status, _, _ := answer(h, getRequest(t.Context(), "/feeds/"+name+"/"+indexName(format)))
				require.Equal(t, http.StatusServiceUnavailable, status)
			}
			for !h.isPublished(name, formats[len(formats)-1]) {
				time.Sleep(time.Minute)
			}
			took = time.Since(start)
			time.Sleep(2 * time.Hour) // until the other one is there
		})
		return took
	}
	require.LessOrEqual(t, took(feedhistory.FormatAtom, feedhistory.FormatRSS), took(feedhistory.FormatRSS)+2*patience)
}

// Making the documents of a feed whose own document is long takes time in proportion: eight
// times as much for eight times as many entries, not 64.
func TestLongDocumentIsLinear(t *testing.T) {
	feedtest.Long(t)
	cost := func(n int) int64 {
		var text strings.Builder
		text.WriteString(`<rss version="2.0"><channel><title>F</title>`)
		for i := range n {
			fmt.Fprintf(&text, `<item><guid isPermaLink="false">urn:%d</guid><title>T</title><pubDate>%s</pubDate></item>`, i, time.Unix(int64(i)*3600, 0).UTC().Format(time.RFC1123))
		}
		text.WriteString("</channel></rss>")
		site := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text.String()) }))
		client := &feedhistory.Client{AllowPrivate: true}
		defer client.CloseIdle()
		m := &mirror.Mirror{Store: mirror.NewMemory(), Client: client}
		_, err := m.Update(t.Context(), site.URL)
		require.NoError(t, err)
		h := &Handler{Store: m.Store}
		return feedtest.Allocated(func() { require.NoError(t, h.Prepare(t.Context(), site.URL, 1)) })
	}
	n := 800
	if feedtest.LongRun() {
		n = 2500
	}
	require.Less(t, float64(cost(8*n))/float64(cost(n)), 12.0)
}

// A large feed is prepared in both formats, a small one in those somebody has asked for.
func TestPrepare(t *testing.T) {
	store, put := damagedStore(t, 0)
	put(0, soundEntry(0))
	out := &publish.MemoryOutput{}
	h := &Handler{Store: store, Output: out}
	published := func() (names []string) {
		for _, name := range out.Names() {
			if base := path.Base(name); base == "index.atom" || base == "index.rss" {
				names = append(names, base)
			}
		}
		return names
	}
	require.NoError(t, h.Prepare(t.Context(), damagedURL, 1)) // this Store counts no entries
	require.Empty(t, published())
	status, _, _ := answer(h, getRequest(t.Context(), "/feeds/"+Name(damagedURL)+"/index.rss"))
	require.Equal(t, http.StatusOK, status)
	put(1, soundEntry(1))
	require.NoError(t, h.Prepare(t.Context(), damagedURL, 1))
	require.Equal(t, []string{"index.rss"}, published())
	require.NoError(t, h.Prepare(t.Context(), damagedURL, 0))
	require.Equal(t, []string{"index.atom", "index.rss"}, published())
}

// What is forgotten is gone from the Output, at every Base and under both names, and is
// published again when somebody requests it. Other feeds stay.
func TestForget(t *testing.T) {
	out := publish.Dir{Path: t.TempDir()}
	w := newWorld(t, func(s *Handler) { s.Output = out })
	w.write(2003, 2008)
	blog, tides := w.feedURL("/blog/feed.atom"), w.feedURL("/tides.atom")
	for _, path := range []string{w.add("/blog/feed.atom"), w.add("/tides.atom")} {
		for _, s := range []*Handler{w.Handler, {Store: w.Store, Base: "https://elsewhere.example/", Output: out}} {
			for _, format := range []string{"atom", "rss"} {
				status, _, _ := answer(s, getRequest(t.Context(), path+"/index."+format))
				require.Equal(t, http.StatusOK, status)
			}
		}
	}
	require.NoError(t, out.Put(t.Context(), "00000000/"+oldName(blog)+"/index.atom", []byte("old")))
	of := func(feed string) (n int) {
		for _, name := range filesOf(t, out) {
			if strings.Contains(name, "/"+oldName(feed)) {
				n++
			}
		}
		return n
	}
	before := of(blog)
	require.Greater(t, before, 8)
	require.NotZero(t, of(tides))

	unlock, err := out.Lock(t.Context())
	require.NoError(t, err)
	_, err = Forget(t.Context(), out, blog)
	require.ErrorIs(t, err, publish.ErrLocked)
	require.NoError(t, unlock())
	require.Equal(t, before, of(blog))

	for _, want := range [][]string{{blog}, nil} {
		forgotten, err := Forget(t.Context(), out, blog, "https://example.org/unknown")
		require.NoError(t, err)
		require.Equal(t, want, forgotten)
		require.Zero(t, of(blog))
		require.NotZero(t, of(tides))
	}
	status, index, _ := w.get("/feeds/" + Name(blog) + "/index.atom")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, index, "prev-archive")
	require.NotZero(t, of(blog))
	forgotten, err := Forget(t.Context(), &publish.MemoryOutput{}, blog)
	require.NoError(t, err)
	require.Empty(t, forgotten)
	forgotten, err = Forget(t.Context(), publish.Dir{Path: filepath.Join(t.TempDir(), "none")}, blog)
	require.NoError(t, err)
	require.Empty(t, forgotten)
}

// two addresses whose digests begin with the same 48 bits
const (
	oneURL   = "https://c.example/8979788"
	otherURL = "https://c.example/32758410"
)

// readAt returns the ledger of a feed read at a URL.
func readAt(url string) (l mirror.Ledger) {
	if err := json.Unmarshal(fmt.Appendf(nil, `{"known":{"URL":%q}}`, url), &l); err != nil {
		panic(err)
	}
	return l
}

// withNames adds feeds to the store, as another program may.
func withNames(t *testing.T, store mirror.Store, urls ...string) {
	for _, url := range urls {
		feed := &mirror.Feed{
			URL: url, Title: "Feed " + path.Base(url), Kind: feedhistory.KindPlain, Ledger: readAt(url),
			Head: `<feed xmlns="http://www.w3.org/2005/Atom"><id>` + url + `</id><title>Feed</title><updated>2026-01-01T00:00:00Z</updated></feed>`,
		}
		require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: feed}))
	}
}

func TestNamesCollide(t *testing.T) {
	require.Equal(t, oldName(oneURL), oldName(otherURL))
	require.NotEqual(t, Name(oneURL), Name(otherURL))
	store := mirror.NewMemory()
	h := &Handler{Store: store, Base: "https://h.example/app/"}
	withNames(t, store, oneURL)
	status, _, header := answer(h, getRequest(t.Context(), "/feeds/"+oldName(oneURL)+"/complete.atom?q=a+b"))
	require.Equal(t, http.StatusPermanentRedirect, status)
	require.Equal(t, "/app/feeds/"+Name(oneURL)+"/complete.atom?q=a+b", header.Get("Location"))

	// Another feed is refused, because it would take the name of the first.
	require.ErrorIs(t, h.Reserve(t.Context(), otherURL), ErrNameTaken)
	require.NoError(t, h.Reserve(t.Context(), oneURL))

	// The same holds for a whole name.
	h.names.urls[Name(otherURL)] = "https://elsewhere.example/"
	delete(h.names.urls, oldName(otherURL))
	require.ErrorIs(t, h.Reserve(t.Context(), otherURL), ErrNameTaken)

	// Feeds that others have added have their own documents, and the old name is
	// nobody's.
	withNames(t, store, otherURL)
	h = &Handler{Store: store}
	for _, feed := range []string{oneURL, otherURL} {
		require.Contains(t, asked(t, h, "/feeds/"+Name(feed)+"/complete.atom"), "<id>"+feed+"</id>")
	}
	status, _, _ = answer(h, getRequest(t.Context(), "/feeds/"+oldName(oneURL)+"/complete.atom"))
	require.Equal(t, http.StatusNotFound, status)
}

// Documents published under an old name stay there, and continue there.
// Otherwise the old name redirects to the new one.
func TestOldNames(t *testing.T) {
	dir := publish.Dir{Path: t.TempDir()}
	w := newWorld(t, func(h *Handler) { h.Output = dir })
	w.write(2003, 2008)
	feed := w.feedURL("/blog/feed.atom")
	old := "/feeds/" + oldName(feed)
	page := w.add("/blog/feed.atom")
	require.Equal(t, "/feeds/"+Name(feed), page)
	_, err := w.Feed(t.Context(), "none")
	require.ErrorIs(t, err, mirror.ErrNotFound)
	w.dirs.Put(feed, oldName(feed)) // as earlier servers did
	before, _ := w.fetched(old + "/index.atom")
	require.Equal(t, w.mirrored(feed), before)
	archives, err := fs.Glob(w.out, oldName(feed)+"/index/*")
	require.NoError(t, err)
	require.NotEmpty(t, archives)

	h := &Handler{Store: w.Store, Base: w.Base, Output: dir}
	index := asked(t, h, old+"/index.atom")
	require.Contains(t, index, `rel="self" href="`+strings.TrimSuffix(w.url, "/")+old+`/index.atom"`)
	for _, name := range archives {
		asked(t, h, "/feeds/"+name)
	}
	for asked, want := range map[string]string{
		page + "/index.atom": old + "/index.atom", page + "/index.rss": old + "/index.rss", page + "/complete.atom": old + "/complete.atom",
	} {
		status, _, header := answer(h, getRequest(t.Context(), asked))
		require.Equal(t, http.StatusPermanentRedirect, status, asked)
		require.Equal(t, want, header.Get("Location"))
	}

	// If nothing was published, the old name leads to the new one.
	h = &Handler{Store: w.Store, Base: w.Base}
	status, _, header := answer(h, getRequest(t.Context(), old+"/index.rss"))
	require.Equal(t, http.StatusPermanentRedirect, status)
	require.Equal(t, page+"/index.rss", header.Get("Location"))
	require.Contains(t, asked(t, h, page+"/index.rss"), page+"/index/")

	// A feed that is removed and added again begins again.
	h = &Handler{Store: w.Store, Base: w.Base, Output: dir}
	require.NoError(t, h.Remove(t.Context(), feed))
	left, _ := fs.Glob(h.out, oldName(feed)+"/*/*")
	require.Empty(t, left)
}

// A Handler below a path answers requests with the path, and those from which a
// proxy has removed it; all its links contain the path.
func TestPath(t *testing.T) {
	w := newWorld(t, nil)
	w.write(2003, 2012)
	page, feed := w.add("/blog/feed.atom"), w.feedURL("/blog/feed.atom")
	for _, path := range []string{"/", "/feeds/", "/a/b/", "/ä b/"} {
		base := "https://h.example" + strings.ReplaceAll(strings.ReplaceAll(path, " ", "%20"), "ä", "%C3%A4")
		h := &Handler{Store: w.Store, Base: base}
		for _, prefix := range []string{strings.TrimSuffix(strings.TrimPrefix(base, "https://h.example"), "/"), ""} {
			index := asked(t, h, prefix+page+"/index.atom")
			doc, err := feedhistory.Parse(strings.NewReader(index), "")
			require.NoError(t, err)
			self, _ := doc.Links.Rel("self")
			require.Equal(t, base+strings.TrimPrefix(page, "/")+"/index.atom", self.Href)
			older, _ := doc.Links.Rel("prev-archive")
			require.True(t, strings.HasPrefix(older.Href, base))
			asked(t, h, prefix+"/"+strings.TrimPrefix(older.Href, base))
			for _, document := range []string{"/complete.atom", "/slice.rss", "/replay.atom?start=2020-01-01&every=1d"} {
				require.Contains(t, asked(t, h, prefix+page+document), `href="`+base)
			}
			status, _, header := answer(h, getRequest(t.Context(), prefix+"/feeds/"+oldName(feed)+"/complete.atom?a=b"))
			require.Equal(t, http.StatusPermanentRedirect, status)
			require.Equal(t, strings.TrimPrefix(base, "https://h.example")+strings.TrimPrefix(page, "/")+"/complete.atom?a=b", header.Get("Location"))
			status, body, _ := answer(h, getRequest(t.Context(), prefix+"/elsewhere"))
			require.Equal(t, http.StatusNotFound, status, body)
		}
	}
}

// The address of a private feed may be its secret. No document contains it.
func TestSecrets(t *testing.T) {
	const secret = "s3cret"
	feed := &mirror.Feed{
		URL: "https://ann:s3cret@pod.example/s3cret/feed?token=s3cret", Private: true, Kind: feedhistory.KindArchived, Verdict: feedhistory.VerdictPartial,
		Head: `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title></title><updated>2026-01-01T00:00:00Z</updated><link rel="self" href="https://pod.example/feed?token=s3cret"/></feed>`,
	}
	feed.Ledger = readAt(feed.URL)
	missing := feedhistory.NewGap("https://pod.example/archive?token=s3cret", fmt.Errorf("https://pod.example/archive?token=s3cret: %w", errors.New("gone")))
	feed.Ledger.Add(&feedhistory.Gap{URL: missing.URL, From: feed.URL, Reason: missing.Reason, Err: errors.New(missing.Err.Error()), Found: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
	store := mirror.NewMemory()
	at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: feed, Put: []*mirror.Record{{
		Feed: feed.URL, ID: "urn:1", State: mirror.Live, FirstCommit: 1, LastCommit: 1, Added: at, Changed: at, Copy: mirror.Copy{At: at},
		Content: mirror.Content{Format: feedhistory.FormatAtom, Updated: at, Data: `<entry xmlns="http://www.w3.org/2005/Atom"><id>urn:1</id><title>One</title><updated>2020-01-01T00:00:00Z</updated></entry>`},
	}}}))
	h := &Handler{Store: store, Private: true}
	for _, document := range []string{"index.atom", "index.rss", "complete.atom", "slice.atom", "slice.rss", "replay.atom?start=2020-01-01&every=1d", "replay.rss?start=2020-01-01&every=1d"} {
		text := asked(t, h, "/feeds/"+Name(feed.URL)+"/"+document)
		require.Contains(t, text, "One", document)
		require.NotContains(t, text, secret, document)
	}
	require.Equal(t, "pod.example", Title(feed))
	public := &Handler{Store: store}
	status, body, _ := answer(public, getRequest(t.Context(), "/feeds/"+Name(feed.URL)+"/index.atom"))
	require.Equal(t, 404, status)
	require.NotContains(t, body, secret)
}

// A hop is a mirror, the Handler of its feeds, and a mirror of what that serves.
type hop struct {
	t     *testing.T
	site  *feedtest.Site
	url   string // of the site's feed
	first mirror.Mirror
	h     *Handler
	next  mirror.Mirror
}

// liveIn returns the IDs of the entries that a store has of a feed.
func liveIn(t *testing.T, store mirror.Store, url string) map[string]bool {
	ids := map[string]bool{}
	for r, err := range store.Entries(t.Context(), mirror.Query{Feed: url}) {
		require.NoError(t, err)
		if !strings.HasPrefix(r.ID, "urn:sha256:") { // the entry that tells of a gap
			ids[r.ID] = true
		}
	}
	return ids
}

// poll polls the site, and then what is made of it. The second mirror has the entries of the
// first, is no surer of them, and names the same gaps.
func (h *hop) poll(budget int, revalidate bool) {
	t := h.t
	h.first.Client.Budget.Documents = budget
	h.first.Revalidate = revalidate
	first, err := h.first.Update(t.Context(), h.url)
	require.NoError(t, err)
	entries := liveIn(t, h.first.Store, h.url)
	if first.Failure != nil || len(entries) == 0 {
		return
	}
	base := "http://again.example/feeds/" + Name(h.url)
	second, err := h.next.Update(t.Context(), base+"/index.atom")
	require.NoError(t, err)
	require.NoError(t, second.Failure)
	require.Equal(t, entries, liveIn(t, h.next.Store, base+"/index.atom"))
	require.Equal(t, first.Feed.Verdict.String(), second.Feed.Verdict.String(), "%v and %v", first.Feed.Ledger.Gaps(), second.Feed.Ledger.Gaps())
	require.Equal(t, reasonsOf(first.Feed.Ledger.Gaps()), reasonsOf(second.Feed.Ledger.Gaps()))
	complete, err := direct(h.h).Fetch(t.Context(), base+"/complete.atom")
	require.NoError(t, err)
	require.Equal(t, first.Feed.Verdict.String(), complete.Verdict().String())
	require.Equal(t, reasonsOf(first.Feed.Ledger.Gaps()), reasonsOf(complete.Gaps))
}

// reasonsOf returns the reasons of gaps, in order.
func reasonsOf(gaps []*feedhistory.Gap) []string {
	reasons := map[string]bool{}
	for _, g := range gaps {
		reasons[string(g.Reason)] = true
	}
	return slices.Sorted(maps.Keys(reasons))
}

// Whatever a site does, what a mirror has of it is no more whole one hop away, from poll to
// poll.
func TestSecondHop(t *testing.T) {
	files := append(feedtest.Glob(t, "../mirror/testdata/*.txtar"), feedtest.Glob(t, "../testdata/walk/*.txtar")...)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text := string(feedtest.ReadFile(t, file))
			archive := feedtest.Parse(text)
			polls, ok := archive.File("polls")
			if !ok {
				polls = "first\nagain\n"
			}
			start := "/feed.atom"
			options, _ := archive.File("options")
			if _, given, ok := strings.Cut("\n"+options, "\nurl "); ok {
				start, _, _ = strings.Cut(given, "\n")
			}
			if strings.Contains(text, "{{count}}") {
				t.Skip("it has no end")
			}
			site := feedtest.Serve(t, text) // outside of the bubble, because no network request is made inside
			synctest.Test(t, func(t *testing.T) { testHops(t, site, start, polls) })
		})
	}
}

func testHops(t *testing.T, site *feedtest.Site, start, polls string) {
	time.Sleep(30 * 365 * 24 * time.Hour) // the entries are not of the future
	hop := newHop(t, site, site.URL+start)
	for words := range strings.Lines(polls) {
		budget := 0
		if _, n, ok := strings.Cut(words, "budget "); ok {
			budget = int(n[0] - '0')
		}
		hop.poll(budget, strings.Contains(words, "revalidate"))
		site.Next()
		time.Sleep(time.Hour)
	}
}

func newHop(t *testing.T, site *feedtest.Site, url string) *hop {
	client := func(h http.Handler) *feedhistory.Client {
		c := direct(h)
		c.NoGuess = true
		return c
	}
	store := mirror.NewMemory()
	h := &Handler{Store: store, Base: "http://again.example/", Size: 2}
	return &hop{
		t: t, site: site, url: url, h: h,
		first: mirror.Mirror{Store: store, Client: client(site)},
		next:  mirror.Mirror{Store: mirror.NewMemory(), Client: client(h)},
	}
}

// Whatever a publisher does, what is published again equals the mirror, and an
// archive stays an archive.
func TestRepublishedModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		model := feedtest.NewModel("/feed.atom", rapid.Uint64().Draw(t, "seed"))
		model.Fail(rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "faults"))
		store := mirror.NewMemory()
		m := &mirror.Mirror{Store: store, Client: direct(model), Versions: 2}
		s := &Handler{Store: store, Base: "http://127.0.0.1:8005/", Size: 3}
		const feed = "http://site.test/feed.atom"
		before := map[string]string{}
		for range rapid.IntRange(1, 4).Draw(t, "polls") {
			for range rapid.IntRange(0, 10).Draw(t, "steps") {
				model.Step()
			}
			_, _ = m.Update(t.Context(), feed)
			state, err := store.Feed(t.Context(), feed)
			if err != nil || state.Head == "" {
				continue
			}
			want := map[string]string{}
			for r, err := range store.Entries(t.Context(), mirror.Query{Feed: feed}) {
				require.NoError(t, err)
				e, err := r.Entry()
				require.NoError(t, err)
				want[r.ID] = words(e)
			}
			for _, gap := range state.Ledger.Gaps() {
				want[compose.PseudoEntry(gap).ID] = ""
			}
			for _, document := range []string{"/index.atom", "/index.rss"} {
				h, err := direct(s).Fetch(t.Context(), "http://127.0.0.1:8005/feeds/"+Name(feed)+document)
				require.NoError(t, err)
				got := map[string]string{}
				for _, e := range h.Entries {
					if got[e.ID] = words(e); e.Title().Plain() == "Entries may be missing" {
						got[e.ID] = "" // the entry keeps its first report
					}
				}
				require.Equal(t, want, got, document)
			}
			after := archivesIn(t, s, feed)
			for name, text := range before {
				require.Equal(t, text, after[name], "%s is still there", name)
			}
			before = after
		}
	})
}

// archivesIn returns the archives that a server has published of a feed,
// without next-archive.
func archivesIn(t require.TestingT, s *Handler, feed string) map[string]string {
	names, err := fs.Glob(s.out, Name(feed)+"/index/*")
	require.NoError(t, err)
	all := map[string]string{}
	for _, name := range names {
		data, err := fs.ReadFile(s.out, name)
		require.NoError(t, err)
		lines := slices.DeleteFunc(slices.Collect(strings.Lines(string(data))), func(line string) bool {
			return strings.Contains(line, `rel="next-archive"`)
		})
		all[path.Base(name)] = strings.Join(lines, "")
	}
	return all
}
