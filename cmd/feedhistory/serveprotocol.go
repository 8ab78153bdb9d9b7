package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"

	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/collection"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/httpserver"
	"github.com/feedhistory/feedhistory/harvest/relay"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/republish"
)

// serveProtocol gives the feeds of a database out by a sibling protocol until the context
// ends. Private feeds are left out.
func (c *serveCommand) serveProtocol(w *command.World) error {
	store, err := c.Read(w)
	if err != nil {
		return err
	}
	defer store.Close()
	listener, err := httpserver.Listen(cmp.Or(c.Listen, usualHistory))
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(w.Stderr, nil))
	site := strings.TrimSuffix(cmp.Or(c.Base, "http://"+address(listener)), "/") + "/"
	feeds := &feedHandlers{store: mirror.Public(store), make: func(f relay.Upstream, name string) http.Handler {
		return c.protocolHandler(f, site+name+"/", log)
	}}
	w.Tell("the feeds of " + c.Place() + " by " + c.Protocol + ":")
	n := 0
	for f, err := range feeds.store.Feeds(w.Ctx, mirror.FeedQuery{}) {
		if err != nil {
			listener.Close()
			return c.Failure(err)
		}
		n++
		w.Tell(site + republish.Name(f.URL) + "/ is " + argument.WithoutUser(f.URL))
	}
	if n == 0 {
		w.Say("the database has no feed that may be shown to others yet")
	}
	return serveHTTP(w, listener, feeds, log)
}

// protocolHandler returns the handler of one feed, whose root is at base.
func (c *serveCommand) protocolHandler(f relay.Upstream, base string, log *slog.Logger) http.Handler {
	switch c.Protocol {
	case collection.AtomPMH:
		return f.AtomPMH(base)
	case collection.DataReplication:
		dir := filepath.Join(c.publishedDir(), collection.DataReplication, republish.Name(f.URL))
		return &relay.Journal{Upstream: f, Output: publish.Dir{Path: dir}, Base: base, Logger: log}
	default:
		h := f.ModifiedRange()
		h.Logger = log
		return h
	}
}

// feedHandlers serves the feeds of a store below their names, those added later too.
type feedHandlers struct {
	store mirror.Store
	make  func(f relay.Upstream, name string) http.Handler

	mu     sync.Mutex
	byName map[string]feedHandler
}

type feedHandler struct {
	url string
	http.Handler
}

// ServeHTTP implements http.Handler.
func (h *feedHandlers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	handler, err := h.handler(r.Context(), name)
	switch {
	case errors.Is(err, mirror.ErrNotFound):
		http.NotFound(w, r)
	case err != nil:
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
	default:
		http.StripPrefix("/"+name, handler).ServeHTTP(w, r)
	}
}

// handler returns the handler of the feed with a name, if the store shows it at present.
func (h *feedHandlers) handler(ctx context.Context, name string) (http.Handler, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known, ok := h.byName[name]; ok {
		_, err := h.store.Feed(ctx, known.url)
		return known, err
	}
	for f, err := range h.store.Feeds(ctx, mirror.FeedQuery{}) {
		if err != nil {
			return nil, err
		}
		if republish.Name(f.URL) != name {
			continue
		}
		if h.byName == nil {
			h.byName = map[string]feedHandler{}
		}
		h.byName[name] = feedHandler{f.URL, h.make(relay.Upstream{Store: h.store, URL: f.URL}, name)}
		return h.byName[name], nil
	}
	return nil, mirror.ErrNotFound
}
