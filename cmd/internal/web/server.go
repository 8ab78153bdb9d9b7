package web

import (
	"cmp"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/republish"
)

// A Server shows the feeds of a Store, and publishes them again. Only Store
// must be set. Do not copy or change a Server after its first use.
type Server struct {
	Store mirror.Store // Store has the feeds to show.

	// Mirror polls feeds into the Store. Nil means a Mirror with default
	// settings, which leaves private feeds alone unless Private is set.
	Mirror *mirror.Mirror

	// Base is the server's own URL, which may have a path; requests may contain
	// that path or, behind a proxy, leave it out. The published documents
	// contain Base, and their URLs do not change; with a different Base, the
	// server publishes everything again. "" means http://127.0.0.1:8005/.
	Base string

	// Token is the secret a person or program must show to change anything. "" means
	// changes need none. Reading needs a token only if Private is set.
	Token string

	// Private makes reading need the Token, too. Feed readers send it as the
	// password, with any user name (HTTP Basic authentication). Without a
	// Token, a Private server answers nobody. If Private is not set, the server
	// neither shows nor publishes the feeds whose mirror.Feed.Private is set.
	Private bool

	// Names are additional host names of the server. It answers only requests
	// to one of them, to the host of Base, to this machine's own name, or to a
	// loopback address; with a Token, also requests to any IP address.
	Names []string

	// Output keeps the published documents; if it is lost, URLs change. Nil
	// means in memory, until the program ends.
	Output publish.Output

	// PrivateOutput keeps the documents of private feeds, so no other server of
	// the same Output has them. Nil means in memory.
	PrivateOutput publish.Output

	Logger *slog.Logger // Logger logs polls and errors; nil means no logging.

	size  int              // entries per archive; zero means 100
	clock func() time.Time // the clock for replays; nil means time.Now

	once      sync.Once
	mux       *http.ServeMux
	root      string // the path of Base, with a final slash
	templates *template.Template
	origin    *http.CrossOriginProtection
	gate      *gatekeeper
	adder     *adder
	store     mirror.Store // the visible feeds of Store
	polls     *mirror.Poller
	feeds     *directory
	published *republish.Handler
	prepared  *preparer
	streams   watchers
	drawings  drawings
	items     publish.Cache[itemKey, entryItem]
}

func (s *Server) setUp() {
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	s.store = s.Store
	if !s.Private {
		s.store = mirror.Public(s.Store)
	}
	m := s.Mirror
	if m == nil {
		m = &mirror.Mirror{Store: s.store}
	}
	s.root = "/"
	if u, err := url.Parse(s.base()); err == nil {
		s.root = u.Path
	}
	s.templates = newTemplates(s.root)
	s.origin = http.NewCrossOriginProtection()
	s.gate = &gatekeeper{token: s.Token, private: s.Private, base: s.base(), root: s.root, now: s.now}
	s.polls = s.newPoller(m)
	s.feeds = &directory{store: s.store, root: s.root}
	s.feeds.newest.Half, s.feeds.years.Half = keptSmall, keptSmall
	s.published = &republish.Handler{
		Store: s.Store, Base: s.base(), Output: s.Output, Private: s.Private, PrivateOutput: s.PrivateOutput,
		Busy: func(feed string) bool { _, runs := s.polls.Status(feed); return runs },
		Size: s.size, Time: s.now, Logger: s.Logger, Fail: s.fail,
	}
	s.feeds.published, s.prepared = s.published, newPreparer(s.published)
	s.drawings.store, s.drawings.templates = s.store, s.templates
	s.drawings.timelines.Half, s.drawings.documents.Half = mostTimelines, mostTimelines
	s.adder = &adder{store: s.store, feeds: s.feeds, polls: s.polls, log: s.Logger, replaced: s.drawings.documents.Drop}
	s.mux = http.NewServeMux()
	for pattern, h := range map[string]page{
		"GET /{$}":                  s.showFeeds,
		"GET /entries":              s.showRiver,
		"GET /overview":             s.showOverview,
		"GET /feeds/{id}":           s.showFeed,
		"GET /feeds/{id}/{$}":       s.showFeed,
		"GET /feeds/{id}/entry":     s.showEntry,
		"GET /feeds/{id}/random":    s.showRandom,
		"GET /feeds/{id}/read":      s.showRead,
		"GET /feeds/{id}/day":       s.showDay,
		"GET /feeds/{id}/progress":  s.watch,
		"GET /feeds/{id}/remove":    s.confirmRemoval,
		"GET /feeds/{id}/subscribe": s.showSubscribe,
		"GET /feeds.opml":           s.exportOPML,
		"GET /static/{name}":        s.serveStatic,
		"GET /token":                s.askToken,
		"POST /token":               s.takeToken,
		"POST /token/forget":        s.forgetToken,
		"POST /feeds":               s.change(s.addFeeds),
		"POST /feeds/{id}/poll":     s.change(s.pollNow),
		"POST /feeds/{id}/remove":   s.change(s.removeFeed),
		"POST /feeds/{id}/images":   s.chooseImages,
		"/":                         s.noPage,
	} {
		s.mux.Handle(pattern, s.answer(h))
	}
	for _, document := range []string{"index.atom", "index.rss", "index/{name}", "complete.atom", "slice.atom", "slice.rss", "replay.atom", "replay.rss"} {
		s.mux.Handle("GET /feeds/{id}/"+document, s.published)
	}
}

// base returns the Base with a final slash.
func (s *Server) base() string {
	return strings.TrimSuffix(cmp.Or(s.Base, republish.DefaultBase), "/") + "/"
}

// Pages may load only the server's own script, style and icon; links replace
// everything an entry would load.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func (s *Server) now() time.Time {
	if s.clock != nil {
		return s.clock()
	}
	return time.Now()
}

// policyWith returns the policy of an entry's page, if its visitor has asked to
// play files or to see images.
func policyWith(play, images bool) string {
	p := policy
	if play {
		p += "; media-src http: https:"
	}
	if images {
		p = strings.Replace(p, "img-src 'self'", "img-src 'self' http: https:", 1)
	}
	return p
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.once.Do(s.setUp)
	r = republish.Below(s.root, s.mux, r)
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	// Other sites get no referrer. The server's own pages do, because without a
	// referrer browsers hide the Origin of a form, which distinguishes it from
	// another site's form if there is no TLS.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	switch {
	case !s.isAddressed(r):
		s.fail(w, r, &problem{
			http.StatusMisdirectedRequest, "This server is not known by that name",
			"Use " + s.base() + ", or start the server with --name and the name that you use, or with --base.",
		})
	case s.origin.Check(r) != nil:
		s.fail(w, r, &problem{
			http.StatusForbidden, "Another site has sent this",
			"To protect you, nothing was done. If it was you, do it from this server's own pages.",
		})
	case !s.Private || isOpen(r):
		s.mux.ServeHTTP(w, r)
	case s.gate.tires(r):
		s.fail(w, r, errTooManyGuesses)
	case s.gate.hasToken(r):
		s.mux.ServeHTTP(&privateWriter{ResponseWriter: w}, r)
	default:
		s.refuse(w, r)
	}
}
