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

// The verb serve.
type serveCommand struct {
	Dir    string        `arg:"" optional:"" name:"DIR" help:"The directory, as publish made it. Without one: the history server of the mirrored feeds."`
	Listen string        `placeholder:"ADDRESS" help:"Where to listen (default: 127.0.0.1:8080 for a directory, 127.0.0.1:8005 for the history server); port 0 means any free port."`
	MaxAge time.Duration `default:"5m" placeholder:"TIME" help:"How long caches may keep what still changes of a directory (default: ${default})."`

	database
	historyFlags

	networkFlags
}

// Help is what --help says beyond the flags.
func (c *serveCommand) Help() string {
	return "A directory's documents are served until it is interrupted: with their media types, ETags, compression, " +
		"and archives that caches may keep for good.\n\n" +
		"The history server shows the feeds of a database as pages, publishes each again with its whole history, " +
		"and polls them as they fall due. The database may be new: feeds are added on the first page. " +
		"The token guards what changes anything, and with --private reading, too."
}

// How long the steps of a request may take, so that nobody holds a connection
// open for nothing.
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
	log := slog.New(slog.NewTextHandler(w.stderr, nil))
	site := "http://" + address(listener) + "/"
	w.tell("serving " + c.Dir + " at " + site)
	for _, name := range subscriptions(files) {
		w.tell("the feed: " + site + name)
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
		BaseContext:       func(net.Listener) context.Context { return w.ctx }, // answers without end have one then
		ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}, listener, func() { w.tell("ending") })
}

// address is where a listener can be reached from here.
func address(l net.Listener) string { return httpserver.Address(l) }

// A rootFS is a directory that no name and no symbolic link leads out of. It is
// looked up for each file, as a site's build may put another in its place.
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

// mostLooked is how many files are looked at to find the feeds.
const mostLooked = 200

// subscriptions returns the names of the feeds in a directory, but for those
// that are archives of others.
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
