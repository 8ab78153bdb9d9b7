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
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/httpserver"
	"github.com/feedhistory/feedhistory/publish"
)

// A serveCommand is the verb serve.
type serveCommand struct {
	Dir    string        `arg:"" optional:"" name:"DIR" help:"A directory that publish made. Without one: the history server of the mirrored feeds."`
	Listen string        `placeholder:"ADDRESS" help:"Where to listen (default: 127.0.0.1:8080 for a directory, 127.0.0.1:8005 for the history server); port 0 means any free port."`
	MaxAge time.Duration `default:"5m" placeholder:"TIME" help:"How long caches may keep documents of a directory that still change (default: ${default})."`

	database
	historyFlags

	networkFlags
}

// Help returns the text of --help that precedes the flags.
func (c *serveCommand) Help() string {
	return "With DIR, this serves the documents of a directory until it is interrupted: with their media types, ETags, compression, " +
		"and archives that caches may keep forever.\n\n" +
		"Without DIR, the history server shows the feeds of a database as pages, republishes each with its whole history, " +
		"and polls them when they are due. The database may be new: you can add feeds on the first page. " +
		"The token guards what changes anything, and with --private reading, too."
}

// How long the steps of a request may take, so that nobody can hold a connection open
// without using it.
const (
	headerTimeout = 10 * time.Second
	writeTimeout  = 10 * time.Minute
	idleTimeout   = 2 * time.Minute
)

// Run serves until the context ends.
func (c *serveCommand) Run(w *world) error {
	if c.Dir == "" {
		return c.serveHistory(w)
	}
	if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
		return errors.New(c.Dir + ": there is no such directory")
	}
	listener, err := c.listen("127.0.0.1:8080")
	if err != nil {
		return err
	}
	files := rootFS(c.Dir)
	log := slog.New(slog.NewTextHandler(w.Stderr, nil))
	site := "http://" + address(listener) + "/"
	w.Tell("serving " + c.Dir + " at " + site)
	for _, name := range subscriptions(files) {
		w.Tell("the feed: " + site + name)
	}
	return w.serve(listener, &publish.Handler{FS: files, MaxAge: c.MaxAge, Logger: log}, log)
}

// listen listens where the flag says, or else at the usual place.
func (c *serveCommand) listen(usual string) (net.Listener, error) {
	return httpserver.Listen("--listen", cmp.Or(c.Listen, usual))
}

// serve serves until the context ends.
func (w *world) serve(listener net.Listener, handler http.Handler, log *slog.Logger) error {
	return httpserver.Serve(w.ctx, &http.Server{
		Handler:           handler,
		BaseContext:       func(net.Listener) context.Context { return w.ctx }, // it ends answers that would go on
		ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}, listener, func() { w.Tell("ending") })
}

// address is where a listener can be reached from here.
func address(l net.Listener) string { return httpserver.Address(l) }

// A rootFS is a directory that no name and no symbolic link leads out of. It is opened
// again for each file, because a site's build may replace it.
type rootFS string

// Open opens a file of the directory.
func (dir rootFS) Open(name string) (fs.File, error) {
	root, err := os.OpenRoot(string(dir))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Open(filepath.FromSlash(name))
}

// mostLooked is how many files are read to find the feeds.
const mostLooked = 200

// subscriptions returns the names of the feeds in a directory, without archives.
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

func isSubscription(files fs.FS, name string) bool {
	f, err := files.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	doc, err := feedhistory.Parse(f, "")
	return err == nil && !doc.Archive
}
