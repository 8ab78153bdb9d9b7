package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/httpserver"
	"github.com/feedhistory/feedhistory/cmd/internal/network"
	"github.com/feedhistory/feedhistory/cmd/internal/outputs"
	"github.com/feedhistory/feedhistory/publish"
)

// A serveCommand is the verb serve.
type serveCommand struct {
	Dir      string          `arg:"" optional:"" name:"DIR" help:"Directory written by publish (default: none, which runs the history server of the mirrored feeds)."`
	Listen   argument.Listen `placeholder:"ADDRESS" help:"Where to listen (default: 127.0.0.1:8080 for a directory, 127.0.0.1:8005 for the history server); port 0 means any free port."`
	Protocol string          `enum:",atom-pmh,datareplication,modified-range" default:"" placeholder:"PROTOCOL" help:"Give the feeds of the database out by a protocol, for harvest: atom-pmh, datareplication or modified-range."`
	MaxAge   time.Duration   `default:"5m" placeholder:"TIME" help:"With DIR: how long caches may keep documents subject to change (default: ${default})."`

	database.Location
	historyFlags

	network.Flags
}

// Help returns the text of --help before the flags.
func (c *serveCommand) Help() string {
	return "With DIR, serve serves the documents of a directory until it is interrupted. It sends their media types and ETags, compresses them, " +
		"and lets caches keep archives forever.\n\n" +
		"Without DIR, the history server shows the feeds of a database as pages, republishes each with its whole history, " +
		"and polls each when it is due. The database may be new: you can add feeds on the first page. " +
		"Every change requires the token if there is one; with --private, reading requires it, too.\n\n" +
		"With --protocol, serve gives out each feed of the database that is not private for harvest to read, and only reads the database: " +
		"run sync or harvest --db meanwhile to keep it current. With datareplication, the directory in --published keeps the pages."
}

// These limits for the steps of a request keep clients from holding connections open
// without using them.
const (
	headerTimeout = 10 * time.Second
	writeTimeout  = 10 * time.Minute
	idleTimeout   = 2 * time.Minute
)

// Run serves until the context ends.
func (c *serveCommand) Run(w *command.World) error {
	switch {
	case c.Protocol != "":
		return c.serveProtocol(w)
	case c.Dir == "":
		listener, err := httpserver.Listen(cmp.Or(c.Listen, usualHistory))
		if err != nil {
			return err
		}
		return c.serveHistory(w, listener)
	}
	if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
		return errors.New(c.Dir + ": there is no such directory")
	}
	listener, err := httpserver.Listen(cmp.Or(c.Listen, "127.0.0.1:8080"))
	if err != nil {
		return err
	}
	files := outputs.Root(c.Dir)
	log := slog.New(slog.NewTextHandler(w.Stderr, nil))
	site := "http://" + address(listener) + "/"
	w.Tell("serving " + c.Dir + " at " + site)
	for _, name := range subscriptions(files) {
		w.Tell("the feed: " + site + name)
		if elsewhere := archivesElsewhere(files, name, site); elsewhere != "" {
			w.Say("this is no preview: the archive links of " + name + " lead to " + elsewhere + "; for a preview, publish into another directory with --base " + site)
		}
	}
	return serveHTTP(w, listener, &publish.Handler{FS: files, MaxAge: c.MaxAge, Logger: log}, log)
}

// serveHTTP serves until the context ends.
func serveHTTP(w *command.World, listener net.Listener, handler http.Handler, log *slog.Logger) error {
	return httpserver.Serve(w.Ctx, &http.Server{
		Handler:           handler,
		BaseContext:       func(net.Listener) context.Context { return w.Ctx }, // the end of the context ends answers in progress
		ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}, listener, func() { w.Tell("ending") })
}

// address returns the host and port at which this machine can reach a listener.
func address(l net.Listener) string { return httpserver.Address(l) }

// mostLooked is the maximum number of files read by subscriptions.
const mostLooked = 200

// subscriptions returns the names of the subscription documents in a directory.
func subscriptions(files fs.FS) (names []string) {
	looked := 0
	_ = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		hidden := name != "." && strings.HasPrefix(d.Name(), ".")
		switch {
		case err != nil || hidden && d.IsDir():
			return fs.SkipDir
		case looked >= mostLooked:
			return fs.SkipAll
		case !hidden && d.Type().IsRegular() && isFeedName(name):
			looked++
			if isSubscription(files, name) {
				names = append(names, name)
			}
		}
		return nil
	})
	return names
}

func isFeedName(name string) bool {
	return slices.Contains([]string{".atom", ".rss", ".xml", ".json"}, path.Ext(name))
}

// archivesElsewhere returns the address to which the archive links of a feed lead, if it is
// not on the site; else "".
func archivesElsewhere(files fs.FS, name, site string) string {
	f, err := files.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	doc, err := feedhistory.Parse(f, site+name)
	if err != nil {
		return ""
	}
	older, ok := doc.Links.Rel(feedhistory.RelPrevArchive)
	if !ok || feedhistory.SameOrigin(older.Href, site) {
		return ""
	}
	return older.Href[:strings.LastIndexByte(older.Href, '/')+1]
}

func isSubscription(files fs.FS, name string) bool {
	f, err := files.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	doc, err := feedhistory.Parse(f, "")
	return err == nil && !doc.Archive
}
