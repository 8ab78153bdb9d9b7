package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/demo"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/httpserver"
	"github.com/feedhistory/feedhistory/cmd/internal/network"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// A demoCommand is the verb demo.
type demoCommand struct {
	Listen argument.Listen `default:"127.0.0.1:8005" placeholder:"ADDRESS" help:"Where the history server listens (default: ${default}); port 0 means any free port."`
}

// Help returns the text of --help before the flags.
func (c *demoCommand) Help() string {
	return "The demo needs no network. It serves a small website with an archived, a paged and a complete feed on this machine, " +
		"mirrors the three in a temporary database, and runs the history server on them until it is interrupted. Then it removes everything."
}

// Run serves the website and the history server until the context ends.
func (c *demoCommand) Run(w *command.World) error {
	listener, err := httpserver.Listen(c.Listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	dir, err := os.MkdirTemp("", "feedhistory-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	site, end, err := serveDemoSite(w.Ctx)
	if err != nil {
		return err
	}
	defer end()
	w.Flags = &network.Flags{AllowPrivate: true, MaxDocumentBytes: 1 << 20, Proxy: "none"} // the site is on this machine
	if err := w.Prepare(); err != nil {
		return err
	}
	w.Tell("a small website with three feeds is at " + site + "/")
	location := database.Location{DB: filepath.Join(dir, "feeds.db")}
	if err := mirrorDemo(w, &location, site); err != nil {
		return err
	}
	w.Tell("other commands can read the feeds, too: feedhistory fetch --allow-private " + site + demo.Archived)
	w.Tell("Ctrl-C ends the demo and removes its database")
	server := serveCommand{Location: location}
	return server.serveHistory(w, listener)
}

// serveDemoSite serves the website on a free port of the loopback interface until end is
// called.
func serveDemoSite(ctx context.Context) (site string, end func(), err error) {
	listener, err := httpserver.Listen("127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	site = "http://" + listener.Addr().String()
	handler, err := demo.New(ctx, site)
	if err != nil {
		listener.Close()
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	server := &http.Server{Handler: handler, BaseContext: func(net.Listener) context.Context { return ctx }, ReadHeaderTimeout: headerTimeout}
	var serving sync.WaitGroup
	serving.Go(func() { _ = httpserver.Serve(ctx, server, listener, func() {}) }) // only a closed listener ends it
	return site, func() { cancel(); serving.Wait() }, nil
}

// mirrorDemo mirrors the feeds of the website in a new database, and says how complete
// each is.
func mirrorDemo(w *command.World, location *database.Location, site string) error {
	store, err := location.Create(w)
	if err != nil {
		return err
	}
	defer store.Close()
	m := &mirror.Mirror{Store: store, Client: w.Client(w.Stderr)}
	for _, path := range demo.Feeds {
		changes, err := m.Update(w.Ctx, site+path)
		if err == nil {
			err = changes.Failure
		}
		if err != nil {
			return explain.Failure(site+path, err)
		}
		feed, err := store.Feed(w.Ctx, site+path)
		if err != nil {
			return location.Failure(err)
		}
		fmt.Fprintf(w.Stdout, "%s%s: %s feed · %s · %s · %s\n", site, path, feed.Kind,
			terminal.Count(changes.Documents, "document", "documents"), terminal.Count(changes.Added, "entry", "entries"), changes.Verdict)
	}
	return nil
}
