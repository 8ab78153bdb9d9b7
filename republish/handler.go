package republish

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/plain"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// DefaultBase is the default of Handler.Base.
const DefaultBase = "http://127.0.0.1:8005/"

// A Handler serves the feeds of a Store again. Only Store must be set. Do not
// copy or change a Handler after its first use.
//
// The addresses below Base are fixed, because archives link to each other. For one feed at
// a path of your own, redirect from there to its index.atom; see the example of Name.
type Handler struct {
	Store mirror.Store // Store has the feeds.

	// Base is the URL below which the Handler's documents are. It may have a
	// path; requests may contain that path or, behind http.StripPrefix or a
	// proxy, leave it out. The documents contain Base, and their URLs do not
	// change: with a different Base, the Handler publishes everything again. ""
	// means DefaultBase.
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

	once      sync.Once
	mux       *http.ServeMux
	path      string       // the path of Base, with a final slash
	store     mirror.Store // the visible feeds
	names     directory
	chains    *chains
	documents *documents
	replays   *replays
	slots     slots
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
	if err := plain.Check("republish", plain.Number{Name: "Handler.Size", Value: int64(h.Size)}); err != nil {
		return err
	}
	h.once.Do(h.setUp)
	return nil
}

func (h *Handler) setUp() {
	if h.Logger == nil {
		h.Logger = slog.New(slog.DiscardHandler)
	}
	h.store = h.Store
	if !h.Private {
		h.store = mirror.Public(h.Store)
	}
	if u, err := url.Parse(h.base()); err == nil {
		h.path = u.Path
	}
	h.names.store = h.store
	h.chains = newChains(h)
	h.slots = make(slots, mostStreams)
	h.documents = &documents{store: h.store, base: h.base(), logger: h.Logger, slots: h.slots}
	h.documents.plans.Half = mostPlans
	h.replays = &replays{store: h.store, out: h.chains.out, locks: &h.chains.locks, feeds: h.base() + "feeds/", size: cmp.Or(h.Size, 100), logger: h.Logger}
	h.replays.orders.Half, h.replays.places.Half = mostOrders, mostOrders
	h.mux = http.NewServeMux()
	for pattern, serve := range map[string]func(http.ResponseWriter, *http.Request, request) error{
		"index.atom": h.serveIndex, "index.rss": h.serveIndex, "complete.atom": h.serveComplete,
		"slice.atom": h.serveSlice, "slice.rss": h.serveSlice, "replay.atom": h.serveReplay, "replay.rss": h.serveReplay,
	} {
		h.mux.Handle("GET /feeds/{id}/"+pattern, h.page(serve))
	}
	h.mux.HandleFunc("GET /feeds/{id}/index/{name}", h.serveArchive)
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, &Error{http.StatusNotFound, "there is no such document", "Begin at the address of a feed."})
	})
}

// base returns Base with a final slash.
func (h *Handler) base() string { return strings.TrimSuffix(cmp.Or(h.Base, DefaultBase), "/") + "/" }

func (h *Handler) now() time.Time {
	if h.Time != nil {
		return h.Time()
	}
	return time.Now()
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.ready(); err != nil {
		if h.Logger != nil {
			h.Logger.ErrorContext(r.Context(), "a document cannot be served", "path", r.URL.Path, "err", err)
		}
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h.mux.ServeHTTP(w, Below(h.path, h.mux, r))
}

// Below returns the request without path, the part of a program's address below which it
// serves, if mux has a page for the rest; otherwise it returns the request itself. So a
// program's own pages are found whether or not a proxy has removed the path; a Handler's
// are anyway. The path ends in a slash.
func Below(path string, mux *http.ServeMux, r *http.Request) *http.Request {
	rest, ok := strings.CutPrefix(r.URL.Path, strings.TrimSuffix(path, "/"))
	if path == "/" || !ok || rest != "" && rest[0] != '/' {
		return r
	}
	inner := *r
	u := *r.URL
	u.Path, u.RawPath = cmp.Or(rest, "/"), ""
	if raw, ok := strings.CutPrefix(r.URL.RawPath, strings.TrimSuffix(path, "/")); ok {
		u.RawPath = raw
	}
	inner.URL = &u
	if _, pattern := mux.Handler(&inner); pattern == "/" || pattern == "" {
		return r
	}
	return &inner
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
	if asked.format = feedhistory.Atom; strings.HasSuffix(r.URL.Path, ".rss") {
		asked.format = feedhistory.RSS
	}
	if asked.feed.Head == "" {
		return asked, ErrUnread
	}
	return asked, nil
}

// fail answers with an error, unless the client has gone.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	_, refused := errors.AsType[*Error](err)
	switch {
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		return
	case !refused && !errors.Is(err, mirror.ErrNotFound):
		h.Logger.ErrorContext(r.Context(), "a document cannot be served", "path", r.URL.Path, "err", err)
	}
	if h.Fail != nil {
		h.Fail(w, r, err)
		return
	}
	failPlainly(w, r, err)
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
	if refused.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	w.Header().Set("Cache-Control", "no-cache")
	http.Error(w, refused.Message+": "+refused.Advice, refused.Status)
}

// tagOf returns the ETag of a document made from the present state of a feed.
// The version alone is not enough: a feed removed and added again begins
// with version one.
func tagOf(base string, feed *mirror.Feed, document string) string {
	state := fmt.Sprint(feed.Commits, " ", feed.Changed.UnixNano())
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s\n%s", feedhistory.Version, base, feed.URL, document, state))
	return hex.EncodeToString(sum[:10])
}

// documentPolicy is the policy for documents: a browser showing them must not
// run their markup.
const documentPolicy = "default-src 'none'; sandbox"

func mediaTypeOf(format feedhistory.Format) string {
	if format == feedhistory.RSS {
		return "application/rss+xml; charset=utf-8"
	}
	return "application/atom+xml; charset=utf-8"
}
