// Package web is the history server. It shows the feeds of a mirror as pages
// to read, and publishes each of them again with its whole history (package
// republish), for readers of entries the publisher no longer shows.
//
//	s := &web.Server{Store: store}
//	go s.Run(ctx) // polls feeds as they fall due
//	http.ListenAndServe("127.0.0.1:8005", s)
//
// # Safety
//
// The server treats everything from a feed as hostile: it sanitises markup, and the Content-Security-Policy allows no script, style
// or image except the server's own. Pictures of entries come through the server. The server answers only requests to its own names, so no other website can read its pages
// through a browser. A Token guards changes, and on a Private server reading, too; any other server leaves out the feeds in need of
// credentials. When the server fetches an address somebody has typed, the rules of the Mirror's Client apply.
package web

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/serve"
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

	// Private makes reading need the Token, too, or the login of a feed reader, which
	// can only read (HTTP Basic authentication). Without a Token, a Private server
	// answers nobody. If Private is not set, the server neither shows nor publishes
	// the feeds whose mirror.Feed.Private is set.
	Private bool

	// Readers is the file with the logins of feed readers, which may only read. "" means
	// they are kept in memory, until the program ends.
	Readers string

	// Keys keeps the logins of private feeds. With it, a Private server takes one with the address
	// of a feed to add; the Mirror's ClientFor must have them from it.
	Keys *command.Keyring

	// Adding is called before a login of a feed to add is kept, and its result when the feed is in
	// the Store: a process killed in between leaves a note. nil means there are no notes.
	Adding func(ctx context.Context, feeds []string) (added func() error, err error)

	// Names are additional host names of the server. It answers only requests
	// to one of them, to the host of Base, to this machine's own name, or to a
	// loopback address; with a Token, also requests to any IP address.
	Names []string

	// Proxies are the networks of the proxies in front of the server. Their X-Forwarded-For
	// tells visitors apart, so one's wrong tokens count for no other.
	Proxies []netip.Prefix

	// NoPictures shows the pictures in entries as links. Otherwise the server fetches them for
	// its visitors, so that their hosts do not learn who reads.
	NoPictures bool

	Hints Hints // Hints describe how the server was started, for the hints on pages.

	// Output keeps the published documents; if it is lost, URLs change. Nil
	// means in memory, until the program ends.
	Output publish.Output

	// PrivateOutput keeps the documents of private feeds, so no other server of
	// the same Output has them. Nil means in memory.
	PrivateOutput publish.Output

	Logger *slog.Logger // Logger logs polls and errors; nil means no logging.

	size  int              // entries per archive; zero means 100
	room  int64            // bytes of large pages being sent at once; zero means mostSending
	clock func() time.Time // the clock for replays; nil means time.Now
	again time.Duration    // how often it looks for large feeds polled by others; zero means five minutes

	once      sync.Once
	mux       *http.ServeMux
	root      string // the path of Base, with a final slash
	templates *template.Template
	origin    *http.CrossOriginProtection
	gate      *gatekeeper
	adder     *adder
	pictures  *pictureProxy // nil with NoPictures
	store     mirror.Store  // the visible feeds of Store
	polls     *mirror.Poller
	feeds     *directory
	published *republish.Handler
	polled    chan string   // feeds to publish in advance
	building  chan struct{} // a value for each page with entries that is being made
	sending   atomic.Int64  // the bytes of large pages that are being sent
	items     serve.Cache[itemKey, entryItem]
}

// Hints describe how a server was started, so that a page can name the right command. The zero
// value is a program of its own, whose database the command cannot name.
type Hints struct {
	DB      string // DB is the command's flag for the database; "" for none
	Listens bool   // Listens means other machines can reach the server, by some address
}

// Command returns a command on the server's database.
func (h Hints) Command(verb string) string {
	return strings.TrimSpace("feedhistory " + verb + " " + h.DB)
}

// reach says how readers on other machines can reach a server whose addresses lead to this one.
func (h Hints) reach() string {
	text := "Only readers on this machine can reach the address. For others, start the server "
	if h.Listens {
		return text + "with --base and the URL by which they reach it."
	}
	return text + "where they can reach it, with --listen and --base."
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
	if !s.NoPictures {
		s.pictures = newPictureProxy(m.Client, s.root, s.now)
	}
	s.origin = http.NewCrossOriginProtection()
	s.gate = &gatekeeper{token: s.Token, private: s.Private, base: s.base(), now: s.now, proxies: s.Proxies, readers: command.SecretFile[[]readerLogin]{Name: s.Readers}}
	s.polls = s.newPoller(m)
	s.feeds = &directory{store: s.store}
	s.feeds.newest.Half, s.feeds.years.Half = keptSmall, keptSmall
	s.feeds.timelines.Half, s.feeds.documents.Half = mostTimelines, mostTimelines
	s.published = &republish.Handler{
		Store: s.Store, Base: s.base(), Output: s.Output, Private: s.Private, PrivateOutput: s.PrivateOutput,
		Busy: func(feed string) bool { _, runs := s.polls.Status(feed); return runs },
		Size: s.size, Time: s.now, Logger: s.Logger, Fail: s.fail,
	}
	s.feeds.published, s.polled = s.published, make(chan string, mostPolled)
	s.adder = &adder{store: s.store, feeds: s.feeds, polls: s.polls, log: s.Logger, hints: s.Hints, shows: s.Private}
	if s.Private {
		s.adder.keys, s.adder.adding = s.Keys, s.Adding
	}
	s.building = make(chan struct{}, mostBuilding)
	s.route()
}

// route names the page of each address.
func (s *Server) route() {
	s.mux = http.NewServeMux()
	for pattern, h := range map[string]page{
		"GET /{$}":                  s.showFeeds,
		"GET /entries":              s.bounded(s.showRiver),
		"GET /overview":             s.showOverview,
		"GET /feeds/{id}":           s.bounded(s.of(s.showFeed)),
		"GET /feeds/{id}/{$}":       s.bounded(s.of(s.showFeed)),
		"GET /feeds/{id}/entry":     s.bounded(s.of(s.showEntry)),
		"GET /feeds/{id}/random":    s.bounded(s.of(s.showRandom)),
		"GET /feeds/{id}/month":     s.bounded(s.of(s.showMonth)),
		"GET /feeds/{id}/day":       s.bounded(s.of(s.showDay)),
		"GET /feeds/{id}/remove":    s.of(s.confirmRemoval),
		"GET /feeds/{id}/subscribe": s.of(s.showSubscribe),
		"GET /feeds.opml":           s.exportOPML,
		"GET /static/{name}":        s.serveStatic,
		"GET /pictures/{name}":      s.showPicture,
		"GET /token":                s.askToken,
		"POST /token":               s.takeToken,
		"GET /readers":              s.change(s.showReaders),
		"POST /readers":             s.change(s.addReader),
		"POST /readers/revoke":      s.change(s.revokeReader),
		"POST /token/forget":        s.forgetToken,
		"POST /feeds":               s.change(s.addFeeds),
		"POST /feeds/{id}/poll":     s.change(s.of(s.pollNow)),
		"POST /feeds/{id}/remove":   s.change(s.of(s.removeFeed)),
		"POST /look":                s.chooseLook,
		"/":                         s.noPage,
	} {
		most := int64(mostForm)
		if pattern == "POST /feeds" {
			most = mostUpload
		}
		s.mux.Handle(pattern, s.answer(h, most))
	}
	for _, document := range []string{"index.atom", "index.rss", "index/{name}", "complete.atom", "slice.atom", "slice.rss", "replay.atom", "replay.rss"} {
		s.mux.Handle("GET /feeds/{id}/"+document, s.published)
	}
}

// base returns the Base with a final slash.
func (s *Server) base() string {
	return strings.TrimSuffix(cmp.Or(s.Base, republish.DefaultBase), "/") + "/"
}

// policy lets pages load only the server's own script, style and icon, and the pictures it has
// fetched; links replace everything else an entry would load. The style may be in the page itself.
var policy = sync.OnceValue(func() string {
	sum := sha256.Sum256(assets()["style.css"].text)
	return "default-src 'none'; script-src 'self'; style-src 'self' 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; " +
		"img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
})

func (s *Server) now() time.Time {
	if s.clock != nil {
		return s.clock()
	}
	return time.Now()
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.once.Do(s.setUp)
	r = serve.Below(s.root, s.mux, r)
	h := w.Header()
	h.Set("Content-Security-Policy", policy())
	h.Set("X-Content-Type-Options", "nosniff")
	// Other sites get no referrer. The server's own pages do, because without a
	// referrer browsers hide the Origin of a form, which distinguishes it from
	// another site's form if there is no TLS.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	permit := s.gate.permit(r)
	r = r.WithContext(context.WithValue(r.Context(), permitKey{}, permit))
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
	case isOpen(r):
		s.mux.ServeHTTP(w, r)
	case permit.role == onlyReads && r.Method != http.MethodGet && r.Method != http.MethodHead:
		s.fail(w, r, errReadOnly)
	case !s.Private:
		s.mux.ServeHTTP(w, r)
	case permit.tired:
		s.fail(w, r, errTooManyGuesses)
	case permit.role != stranger:
		s.mux.ServeHTTP(&privateWriter{ResponseWriter: w}, r)
	default:
		s.refuse(w, r)
	}
}

// A movedError says a page is at another path of this server.
type movedError struct {
	path   string
	status int // of the redirect
}

// seeOther leads from a form to the page with its outcome.
func seeOther(path string) error { return &movedError{path, http.StatusSeeOther} }

// Error says where it is.
func (m *movedError) Error() string { return "moved to " + m.path }

// feedOf returns the feed whose page a request is for.
func (s *Server) feedOf(r *http.Request) (*mirror.Feed, error) {
	asked := r.PathValue("id")
	feed, err := s.published.Feed(r.Context(), asked)
	if err != nil {
		if other := s.feeds.successor(asked); other != "" && errors.Is(err, mirror.ErrNotFound) && r.Method != http.MethodPost {
			return nil, &movedError{s.at("/feeds/" + other + "?said=leads"), http.StatusTemporaryRedirect}
		}
		if why, ok := s.adder.refused.Get(asked); ok && errors.Is(err, mirror.ErrNotFound) {
			return nil, &problem{http.StatusNotFound, "This feed was not added", why}
		}
		return nil, err
	}
	name := republish.Name(feed.URL)
	if asked == name && !strings.HasSuffix(r.URL.Path, "/") {
		return feed, nil
	}
	u := *r.URL
	u.Path, u.RawPath = s.at("/feeds/"+name+strings.TrimSuffix(strings.TrimPrefix(u.Path, "/feeds/"+asked), "/")), ""
	return nil, &movedError{u.RequestURI(), http.StatusPermanentRedirect}
}

// Run polls the feeds somebody asks for, and the others as they fall due, until the
// context ends. It polls the feeds of one host one at a time. Without Run, nothing is
// fetched. It returns nil when all polls under way have ended.
func (s *Server) Run(ctx context.Context) error {
	s.once.Do(s.setUp)
	var preparing sync.WaitGroup
	if s.Output != nil { // in memory, they would fill it
		preparing.Go(func() { s.prepare(ctx) })
	}
	s.polls.Run(ctx)
	preparing.Wait()
	return nil
}

func (s *Server) newPoller(m *mirror.Mirror) *mirror.Poller {
	return &mirror.Poller{
		Mirror: m,
		Poll: func(ctx context.Context, before *mirror.Feed) (*mirror.Report, error) {
			changes, err := m.Update(ctx, before.URL)
			if err == nil && ctx.Err() == nil {
				s.adder.polled(ctx, before, changes.Failure)
			}
			return changes, err
		},
		Polled: func(f *mirror.Feed, c *mirror.Report, err error) {
			switch {
			case err != nil:
				s.Logger.Warn("a poll was cut short", "feed", f.URL, "err", err)
			case c.Failure != nil:
				s.Logger.Warn("a poll failed", "feed", f.URL, "err", c.Failure)
			default:
				s.Logger.Info("polled", "feed", f.URL, "verdict", c.Feed.Verdict, "documents", c.Documents,
					"added", c.Added, "changed", c.Changed, "deleted", c.Deleted)
			}
			if s.Output == nil || err != nil || c.Failure != nil {
				return
			}
			select {
			case s.polled <- f.URL:
			default: // its first request publishes it
			}
		},
		Trouble: func(err error) { s.Logger.Error("the store cannot be read or indexed", "err", err) },
	}
}

// largeFeed is the number of entries from which on a feed is published before anybody asks
// for it: with 50,000, the first request would take seconds.
const largeFeed = 2000

// mostPolled is the number of feeds that may wait for being published in advance.
const mostPolled = 10_000

// prepare publishes feeds after their polls until the context ends, beginning with the large
// ones of the store. It looks for these now and then, because another program may poll them.
func (s *Server) prepare(ctx context.Context) {
	publish := func(feed string) {
		err := s.published.Prepare(ctx, feed, largeFeed)
		if err != nil && ctx.Err() == nil && !errors.Is(err, mirror.ErrNotFound) {
			s.Logger.WarnContext(ctx, "a feed cannot be published in advance", "feed", feed, "err", err)
		}
	}
	for ctx.Err() == nil {
		began := time.Now()
		var large []string
		for feed, err := range s.store.Feeds(ctx, mirror.FeedQuery{}) {
			if err != nil {
				break // polling reports it
			}
			if feed.Entries >= largeFeed {
				large = append(large, feed.URL)
			}
		}
		looked := time.Since(began)
		for _, feed := range large {
			publish(feed)
		}
		// Others may poll feeds of the store, too, such as a fleet's workers. Looking for them
		// takes at most two per cent of the time.
		again := time.After(max(cmp.Or(s.again, 5*time.Minute), 50*looked))
		for waits := true; waits; {
			select {
			case <-ctx.Done():
				return
			case <-again:
				waits = false
			case feed := <-s.polled:
				publish(feed)
			}
		}
	}
}

// progressOf says how far a poll of a feed has come.
func progressOf(feed *mirror.Feed, waits bool) string {
	switch {
	case waits:
		return "Waiting for its turn …"
	case feed.Ledger.URL() == "":
		return "Asking for the feed …"
	}
	text := "Reading: " + plural(feed.Documents+1, "document", "documents") + ", " +
		plural(feed.Entries, "entry", "entries") + " so far"
	if n := feed.Ledger.Pending(); n > 0 {
		text += ", " + plural(n, "document", "documents") + " known to follow"
	}
	return text + "."
}
