// Package republish serves the feeds of a mirror again, each with its whole
// history, so any feed reader can have the entries a publisher no longer
// shows. An aggregator mounts a Handler beside its own pages:
//
//	h := &republish.Handler{Store: store, Base: "https://reader.example/history/"}
//	mux.Handle("/history/", h)
//
// # Addresses
//
// The documents of a feed are below Base, feeds/ and the feed's Name:
//
//	index.atom, index.rss      an archived feed (RFC 5005 §4), by package publish; a short one
//	                           known to be whole is marked complete (§2)
//	complete.atom              all entries in one document
//	slice.atom, slice.rss      the entries of a period: ?since=…&until=…
//	replay.atom, replay.rss    the entries again, at the reader's pace: ?start=…&every=…
//
// # Promises
//
// A Handler updates documents when somebody requests them. An archive keeps its URL and
// its content for good; later entries, new versions and deletions come after it.
// Entries are as published, with an atom:source naming their feed. The head says how
// much of the feed the mirror has: for people in its subtitle, for programs in a
// feedhistory.Coverage. An entry also reports each gap (5005#23). An entry the mirror
// cannot read is such a gap: no document without it claims to be complete.
//
// A function that takes a context may return the error of the context. Methods of nil pointers
// may panic, unless their comments say otherwise.
package republish

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/settings"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/serve"
)

// DefaultBase is the default of Handler.Base.
const DefaultBase = "http://127.0.0.1:8005/"

// A Handler serves the feeds of a Store again. Only Store must be set. Do not
// copy or change a Handler after its first use.
//
// The addresses below Base are fixed, because archives link to each other. For one feed at
// a path of your own, redirect from there to its index.atom; see the example of Name.
type Handler struct {
	// Store has the feeds. A store for reading only will do, such as that of
	// sqlstore.OpenReader: only Remove writes to it.
	Store mirror.Store

	// Base is the http or https URL below which the Handler's documents are. It may have a
	// path, but no query and no fragment; requests may contain that path or, behind
	// http.StripPrefix or a proxy, leave it out. The documents contain Base, and their URLs do
	// not change: with a different Base, the Handler publishes everything again. "" means
	// DefaultBase.
	Base string

	// Output keeps the published documents; if it is lost, URLs change. Nil
	// means in memory, until the program ends.
	Output publish.Output

	// Private makes the Handler serve the feeds whose mirror.Feed.Private is
	// set, too. Then let only authorised requests through.
	Private bool

	// PrivateOutput keeps the documents of private feeds, so no other
	// Handler of the same Output has them. Nil means in memory. It is not used
	// unless Private is set.
	PrivateOutput publish.Output

	// Busy reports whether a feed, given its URL, is being polled. Meanwhile
	// the Handler serves the last published documents. Nil means never.
	Busy func(feed string) bool

	Size   int              // Size is the number of entries of an archive; zero means 100.
	Time   func() time.Time // Time returns the present for replays; nil means time.Now.
	Logger *slog.Logger     // Logger logs failures; nil means no logging.

	// Fail answers a request with an error: an *Error, an error matching
	// mirror.ErrNotFound, or a failure of the Store or the Output, which is
	// logged already. Nil means plain text.
	Fail func(w http.ResponseWriter, r *http.Request, err error)

	once  sync.Once
	mux   *http.ServeMux
	path  string       // the path of Base, with a final slash
	store mirror.Store // the visible feeds
	names directory
	all   directory // the feeds of the Store, private ones included
	out   *sharedOutput
	parts []publish.Output            // of out
	files http.Handler                // serves out
	dirs  serve.Cache[string, string] // the names of directories, by the URLs of feeds
	locks sync.Map                    // of *sync.Mutex, one for each name
	slots chan struct{}               // taken by the answers being made
	jobs  sync.Map                    // of *job, the long tasks at work, by key

	sizes      serve.Cache[string, int64]        // of the documents made so far, by tag
	sizedFeeds serve.Cache[string, sizedEntries] // by tag
	losses     serve.Cache[string, loss]         // by the feed's URL
	orders     serve.Cache[string, frozenOrder]  // of replays
	places     serve.Cache[string, knownPlaces]  // by the feed's URL
}

// A job is a long task. Clients in need of the same one share it.
type job struct {
	done   chan struct{}
	result any
	err    error
}

// patience is how long a client waits for a job without being told when to come back.
const patience = 15 * time.Second

var errInTheMaking = &Error{http.StatusServiceUnavailable, "this document of a large feed is being made", "Try again in a moment."}

// share does some work once for all who need it under the same key. The work goes on even if
// all of them have gone: the next one finds it done, however long the history is. joined says
// that it had begun before. The error is errInTheMaking after the time to wait; zero means any.
func share[T any](ctx context.Context, h *Handler, wait time.Duration, key string, work func(context.Context) (T, error)) (result T, joined bool, err error) {
	there, joined := h.jobs.LoadOrStore(key, &job{done: make(chan struct{})})
	one := there.(*job)
	if !joined {
		go func() {
			defer close(one.done)
			defer func() {
				if p := recover(); p != nil {
					one.err = fmt.Errorf("%v\n%s", p, debug.Stack())
				}
				h.jobs.Delete(key)
			}()
			one.result, one.err = work(context.WithoutCancel(ctx))
		}()
	}
	var late <-chan time.Time
	if wait > 0 {
		late = time.After(wait)
	}
	select {
	case <-one.done:
		result, _ = one.result.(T)
		return result, joined, one.err
	case <-ctx.Done():
		return result, joined, ctx.Err()
	case <-late:
		return result, joined, errInTheMaking
	}
}

// An Error is a request the Handler refuses.
type Error struct {
	Status  int    // the status code of the answer
	Message string // the fault, in a few words
	Advice  string // the remedy, in a sentence
}

// Error returns Message.
func (e *Error) Error() string { return e.Message }

// ErrUnread says the mirror has not read the feed yet.
var ErrUnread = &Error{http.StatusServiceUnavailable, "this feed has not been read yet", "Try again when the mirror has polled it."}

// ready sets the Handler up at the first call. It returns an error for settings a Handler
// cannot work with.
func (h *Handler) ready() error {
	if h.Store == nil {
		return errors.New("republish: Handler.Store must be set")
	}
	size := settings.Check("republish", settings.Number{Name: "Handler.Size", Value: int64(h.Size)})
	if err := cmp.Or(size, settings.CheckBase("republish: Handler.Base", h.base())); err != nil {
		return err
	}
	h.once.Do(h.setUp)
	return nil
}

func (h *Handler) setUp() {
	if h.Logger == nil {
		h.Logger = slog.New(slog.DiscardHandler)
	}
	if h.Fail == nil {
		h.Fail = failPlainly
	}
	h.store = h.Store
	if !h.Private {
		h.store = mirror.Public(h.Store)
	}
	base, _ := url.Parse(h.base()) // ready has checked it
	h.path = base.Path
	h.names.store = h.store
	h.setUpOutputs()
	h.slots = make(chan struct{}, mostStreams)
	h.sizedFeeds.Half, h.orders.Half, h.places.Half = mostSized, mostOrders, mostOrders
	h.mux = http.NewServeMux()
	for pattern, serve := range map[string]func(http.ResponseWriter, *http.Request, request) error{
		"index.atom": h.serveIndex, "index.rss": h.serveIndex, "complete.atom": h.serveComplete,
		"slice.atom": h.serveSlice, "slice.rss": h.serveSlice, "replay.atom": h.serveReplay, "replay.rss": h.serveReplay,
	} {
		h.mux.Handle("GET /feeds/{id}/"+pattern, h.page(serve))
	}
	h.mux.Handle("GET /feeds/{id}/index/{name}", h.files)
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, &Error{http.StatusNotFound, "there is no such document", "Begin at the address of a feed."})
	})
}

// base returns Base with a final slash.
func (h *Handler) base() string { return strings.TrimSuffix(cmp.Or(h.Base, DefaultBase), "/") + "/" }

// feeds returns the URL of the directory of all feeds, with a final slash.
func (h *Handler) feeds() string { return h.base() + "feeds/" }

// archiveSize returns the number of entries of an archive.
func (h *Handler) archiveSize() int { return cmp.Or(h.Size, 100) }

func (h *Handler) isBusy(feed string) bool { return h.Busy != nil && h.Busy(feed) }

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.ready(); err != nil {
		if h.Logger != nil {
			h.Logger.ErrorContext(r.Context(), "a document cannot be served", "path", r.URL.Path, "error", err)
		}
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if !serve.Reads(w, r) {
		return
	}
	h.mux.ServeHTTP(w, serve.Below(h.path, h.mux, r))
}

// A request is a request for a document of a feed.
type request struct {
	feed   *mirror.Feed
	name   string // the name the feed is published under
	format feedhistory.Format
}

// page answers requests for a document. Serve returns an error if it has not
// answered yet.
func (h *Handler) page(serve func(http.ResponseWriter, *http.Request, request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, err := h.requested(r)
		if err == nil && r.PathValue("id") != asked.name {
			u := url.URL{Path: h.path + "feeds/" + asked.name + strings.TrimPrefix(r.URL.Path, "/feeds/"+r.PathValue("id")), RawQuery: r.URL.RawQuery}
			http.Redirect(w, r, u.String(), http.StatusPermanentRedirect)
			return
		}
		if err == nil {
			err = serve(w, r, asked)
		}
		if err != nil {
			h.fail(w, r, err)
		}
	})
}

func (h *Handler) requested(r *http.Request) (asked request, err error) {
	if asked.feed, err = h.names.feed(r.Context(), r.PathValue("id")); err != nil {
		return asked, err
	}
	if asked.name, err = h.Name(r.Context(), asked.feed.URL); err != nil {
		return asked, err
	}
	if asked.format = feedhistory.FormatAtom; strings.HasSuffix(r.URL.Path, ".rss") {
		asked.format = feedhistory.FormatRSS
	}
	if isUnread(asked.feed) {
		return asked, ErrUnread
	}
	return asked, nil
}

// isUnread reports whether the mirror has nothing of a feed yet. Of a document read only in
// part it has entries, but no head.
func isUnread(feed *mirror.Feed) bool { return feed.Head == "" && feed.Entries == 0 }

// fail answers with an error, unless the client has gone.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	_, refused := errors.AsType[*Error](err)
	switch {
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		return
	case !refused && !errors.Is(err, mirror.ErrNotFound):
		h.Logger.ErrorContext(r.Context(), "a document cannot be served", "path", r.URL.Path, "error", err)
	}
	h.Fail(w, r, err)
}

// failPlainly answers a request with an error as plain text.
func failPlainly(w http.ResponseWriter, _ *http.Request, err error) {
	refused, ok := errors.AsType[*Error](err)
	switch {
	case ok:
	case errors.Is(err, mirror.ErrNotFound):
		refused = &Error{http.StatusNotFound, "this feed is not in the mirror", "It may have been removed."}
	default:
		refused = &Error{http.StatusInternalServerError, "this document cannot be made", "Try again in a moment."}
	}
	serve.Refuse(w, refused.Status, refused.Message+": "+refused.Advice)
}

// tagOf returns the ETag of a document made from the present state of a feed.
// The version alone is not enough: a feed removed and added again begins
// with version one.
func tagOf(base string, feed *mirror.Feed, document string) string {
	return tagAt(base, feed.URL, document, feed.Commits, feed.Changed.UnixNano())
}

func tagAt(base, feed, document string, commits, changed int64) string {
	state := fmt.Sprint(commits, " ", changed)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s\n%s", feedhistory.Version, base, feed, document, state))
	return fmt.Sprintf("%x.%d.%d", sum[:10], commits, changed)
}

// stateOf returns the version of a feed, and its time, that the tag of a document names.
func stateOf(base, feed, document, tag string) (commits int64, changed time.Time, ok bool) {
	tag = strings.TrimSuffix(tag, "-gzip")
	var nanoseconds int64
	_, state, _ := strings.Cut(tag, ".")
	n, _ := fmt.Sscanf(state, "%d.%d", &commits, &nanoseconds)
	ok = n == 2 && tag == tagAt(base, feed, document, commits, nanoseconds)
	return commits, time.Unix(0, nanoseconds), ok
}

func mediaTypeOf(format feedhistory.Format) string {
	if format == feedhistory.FormatRSS {
		return "application/rss+xml; charset=utf-8"
	}
	return "application/atom+xml; charset=utf-8"
}

// Names once had too few digits: with 48 bits, two feeds could have the same
// name.
const (
	nameDigits = 32
	oldDigits  = 12
)

// Name returns the name of a feed in addresses: 128 bits of a digest of the
// feed's URL, so it never changes.
func Name(feed string) string {
	sum := sha256.Sum256([]byte(feed))
	return hex.EncodeToString(sum[:])[:nameDigits]
}

// oldName returns the name a feed once had.
func oldName(feed string) string { return Name(feed)[:oldDigits] }

// shared stands for the URL of a feed whose name several feeds have. It is not a
// valid URL.
const shared = "\x00"

// ErrNameTaken says another feed has one of the names of a feed.
var ErrNameTaken = &Error{
	http.StatusConflict, "another feed has this feed’s name",
	"The names of feeds are derived from their addresses, and these two happen to be the same. Add the feed by a different address.",
}

// A directory finds the feeds of a Store by their names.
type directory struct {
	store mirror.Store

	mu   sync.Mutex
	urls map[string]string // by name, as far as known
	read time.Time         // when all feeds were last read
}

// lookAgain is the minimum time between two reads of all feeds because of
// unknown names.
const lookAgain = time.Second

// feed returns the feed with a name. The error matches mirror.ErrNotFound if
// there is none, or more than one.
func (d *directory) feed(ctx context.Context, name string) (*mirror.Feed, error) {
	url, err := d.url(ctx, name)
	if err != nil {
		return nil, err
	}
	feed, err := d.store.Feed(ctx, url)
	if errors.Is(err, mirror.ErrNotFound) {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.urls, name)
	}
	return feed, err
}

// url returns the URL of the feed with a name.
func (d *directory) url(ctx context.Context, name string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.urls[name] == "" && time.Since(d.read) > lookAgain {
		if err := d.look(ctx); err != nil {
			return "", err
		}
	}
	url, ok := d.urls[name]
	if !ok || url == shared {
		return "", fmt.Errorf("feed %q: %w", name, mirror.ErrNotFound)
	}
	return url, nil
}

// expire makes the next unknown name read all feeds.
func (d *directory) expire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.read = time.Time{}
}

// look reads all feeds.
func (d *directory) look(ctx context.Context) error {
	d.read, d.urls = time.Now(), map[string]string{}
	for feed, err := range d.store.Feeds(ctx, mirror.FeedQuery{}) {
		if err != nil {
			d.read = time.Time{}
			return err
		}
		d.note(feed.URL)
	}
	return nil
}

// add records a feed that all feeds may have been read without.
func (d *directory) add(feed string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.urls != nil { // otherwise all feeds are still to be read
		d.note(feed)
	}
}

// note records both names of a feed.
func (d *directory) note(feed string) {
	for _, name := range []string{Name(feed), oldName(feed)} {
		if known, ok := d.urls[name]; ok && known != feed {
			d.urls[name] = shared
			continue
		}
		d.urls[name] = feed
	}
}

// owns reports whether no other feed has a name of a feed.
func (d *directory) owns(ctx context.Context, feed string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.read.IsZero() {
		if err := d.look(ctx); err != nil {
			return false, err
		}
	}
	for _, name := range []string{Name(feed), oldName(feed)} {
		if known, ok := d.urls[name]; ok && known != feed {
			return false, nil
		}
	}
	return true, nil
}

// Feed returns the feed with a name. The error matches mirror.ErrNotFound if
// there is none, or if several feeds share the name.
func (h *Handler) Feed(ctx context.Context, name string) (*mirror.Feed, error) {
	if err := h.ready(); err != nil {
		return nil, err
	}
	return h.names.feed(ctx, name)
}

// Reserve prepares for a feed about to join the Store. The error
// is ErrNameTaken if another feed has one of its names.
func (h *Handler) Reserve(ctx context.Context, feed string) error {
	if err := h.ready(); err != nil {
		return err
	}
	owns, err := h.names.owns(ctx, feed)
	if err != nil {
		return err
	}
	if !owns {
		return ErrNameTaken
	}
	h.names.add(feed)
	return nil
}

// Name returns the name under which a feed is published: its Name, or a shorter
// one under which something was published before names became longer, because
// the URLs of archives do not change (5005#10).
func (h *Handler) Name(ctx context.Context, feed string) (string, error) {
	if err := h.ready(); err != nil {
		return "", err
	}
	if name, ok := h.dirs.Get(feed); ok {
		return name, nil
	}
	owns, err := h.names.owns(ctx, feed)
	if err != nil {
		return "", err
	}
	h.all.add(feed)
	name := Name(feed)
	if old := oldName(feed); owns && (h.isPublished(old, feedhistory.FormatAtom) || h.isPublished(old, feedhistory.FormatRSS)) {
		name = old
	}
	h.dirs.Put(feed, name)
	return name, nil
}

// Remove removes a feed from the Store, and everything published of it.
func (h *Handler) Remove(ctx context.Context, feed string) error {
	name, err := h.Name(ctx, feed)
	if err != nil {
		return err
	}
	if err := h.store.Remove(ctx, feed); err != nil && !errors.Is(err, mirror.ErrNotFound) {
		return err
	}
	defer h.lock(name + "/" + indexName(feedhistory.FormatAtom))()
	defer h.lock(name + "/" + indexName(feedhistory.FormatRSS))()
	defer h.dirs.Drop(feed)
	for _, out := range h.parts {
		if _, err := removeAll(ctx, out, name); err != nil {
			return err
		}
	}
	return nil
}

// Forget removes the documents of feeds from an Output, whatever the Base of their
// Handler, and returns the feeds with documents. A Handler with such a feed publishes
// it again on request, with the entries the Store has by then. If somebody is
// publishing, the error matches publish.ErrLocked, and nothing is removed.
func Forget(ctx context.Context, out publish.Output, feeds ...string) (forgotten []string, err error) {
	if out == nil {
		return nil, errors.New("republish: Forget: the Output is nil")
	}
	unlock, err := out.Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	bases, err := fs.ReadDir(out, ".")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, base := range bases {
		if !base.IsDir() {
			continue // such as the lock
		}
		names, err := fs.ReadDir(out, base.Name())
		if err != nil {
			return forgotten, err
		}
		for _, name := range names {
			i := slices.IndexFunc(feeds, func(feed string) bool { return name.Name() == Name(feed) || name.Name() == oldName(feed) })
			if i < 0 {
				continue
			}
			n, err := removeAll(ctx, out, path.Join(base.Name(), name.Name()))
			if n > 0 && !slices.Contains(forgotten, feeds[i]) {
				forgotten = append(forgotten, feeds[i])
			}
			if err != nil {
				return forgotten, err
			}
		}
	}
	return forgotten, nil
}

// removeAll removes the files of a directory, and returns how many: first the
// subscription documents, so no link ever dangles.
func removeAll(ctx context.Context, out publish.Output, dir string) (n int, err error) {
	var first, files []string
	err = fs.WalkDir(out, dir, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
		case strings.HasPrefix(d.Name(), "index."):
			first = append(first, file)
		default:
			files = append(files, file)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	for _, file := range append(first, files...) {
		if err := out.Remove(ctx, file); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Prepare brings the published documents of a feed up to date, so that no reader has to
// wait for them: the archived feed in the formats somebody has asked for. The documents of a
// feed with at least the large number of entries take long to make, and Prepare makes
// index.atom and index.rss before anybody asks. While the feed is being polled, Prepare does
// nothing.
func (h *Handler) Prepare(ctx context.Context, url string, large int64) error {
	if err := h.ready(); err != nil {
		return err
	}
	feed, err := h.store.Feed(ctx, url)
	if err != nil || isUnread(feed) || h.isBusy(url) {
		return err
	}
	name, err := h.Name(ctx, url)
	if err != nil {
		return err
	}
	for _, format := range []feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS} {
		if feed.Entries >= large || h.isPublished(name, format) {
			err = errors.Join(err, h.update(ctx, feed, name, format, 0))
		}
	}
	return err
}
