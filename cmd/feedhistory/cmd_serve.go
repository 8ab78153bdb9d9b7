package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/cmd/internal/web"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/republish"
)

// A serveCommand is the verb serve.
type serveCommand struct {
	Dir    string          `arg:"" optional:"" name:"DIR" help:"Directory written by publish (default: none, which runs the history server of the mirrored feeds)."`
	Listen terminal.Listen `placeholder:"ADDRESS" help:"Where to listen (default: 127.0.0.1:8080 for a directory, 127.0.0.1:8005 for the history server); port 0 means any free port."`
	MaxAge time.Duration   `default:"5m" least:"0s" placeholder:"TIME" help:"With DIR: how long caches may keep documents subject to change (default: ${default})."`

	database.Location
	historyFlags

	command.NetworkFlags
}

// Help returns the text of --help before the flags.
func (c *serveCommand) Help() string {
	return "With DIR, serve serves the documents of a directory until it is interrupted. It sends their media types and ETags, compresses them, " +
		"and lets caches keep archives forever.\n\n" +
		"Without DIR, the history server shows the feeds of a database as pages, republishes each with its whole history, " +
		"and polls each when it is due. The database may be new: you can add feeds on the first page. " +
		"Every change requires the token if there is one; with --private, reading requires it, too."
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
	if c.Dir == "" {
		return c.serveHistory(w)
	}
	if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
		return errors.New(c.Dir + ": there is no such directory")
	}
	listener, err := terminal.ListenAt(cmp.Or(c.Listen, "127.0.0.1:8080"))
	if err != nil {
		return err
	}
	files := &command.Root{Name: c.Dir}
	log := slog.New(slog.NewTextHandler(w.Stderr, nil))
	site := "http://" + terminal.AddressOf(listener) + "/"
	w.Tell("serving " + c.Dir + " at " + site)
	for name, doc := range subscriptions(files, site) {
		w.Tell("the feed: " + site + name)
		if older, ok := doc.Links.Rel("prev-archive"); ok && !feedhistory.SameOrigin(older.Href, site) {
			elsewhere := older.Href[:strings.LastIndexByte(older.Href, '/')+1]
			w.Say("this is no preview: the archive links of " + name + " lead to " + elsewhere + "; for a preview, publish into another directory with --base " + site)
		}
	}
	return serveHTTP(w, listener, &publish.Handler{FS: files, MaxAge: c.MaxAge, Logger: log}, log)
}

// serveHTTP serves until the context ends.
func serveHTTP(w *command.World, listener net.Listener, handler http.Handler, log *slog.Logger) error {
	return terminal.Serve(w.Ctx, &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}, listener, func() { w.Tell("ending") })
}

// mostLooked is the maximum number of files read by subscriptions.
const mostLooked = 200

// subscriptions yields the subscription documents in a directory served at site, by their
// names.
func subscriptions(files fs.FS, site string) iter.Seq2[string, *feedhistory.Document] {
	return func(yield func(string, *feedhistory.Document) bool) {
		looked := 0
		_ = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
			hidden := name != "." && strings.HasPrefix(d.Name(), ".")
			switch {
			case err != nil || hidden && d.IsDir():
				return fs.SkipDir
			case looked >= mostLooked:
				return fs.SkipAll
			case hidden || !d.Type().IsRegular() || !slices.Contains([]string{".atom", ".rss", ".xml", ".json"}, path.Ext(name)):
				return nil
			}
			looked++
			text, err := fs.ReadFile(files, name)
			if err != nil {
				return nil
			}
			doc, err := feedhistory.Parse(bytes.NewReader(text), site+name)
			if err == nil && !doc.Archive && !yield(name, doc) {
				return fs.SkipAll
			}
			return nil
		})
	}
}

// historyFlags are the flags of the history server.
type historyFlags struct {
	Base         string   `placeholder:"URL" help:"Public URL of the history server, with its path if a proxy serves it below one. Republished feeds contain it (default: the URL of --listen)."`
	Published    string   `placeholder:"DIR" help:"Directory for republished feeds, which keeps their addresses stable (default: next to the database; for PostgreSQL, in your data directory)."`
	Name         []string `placeholder:"HOST" help:"Another host name of the history server (repeatable). The server refuses requests to names other than these, localhost, this machine's own name, the host of --base and, with a token, IP addresses."`
	TrustedProxy []string `placeholder:"ADDRESS" help:"Address or network of a proxy in front of the history server (repeatable). Its X-Forwarded-For tells visitors apart, so wrong tokens of one count for no other."`
	Token        string   `env:"FEEDHISTORY_TOKEN" placeholder:"WORD" help:"Secret required for every change (default: without --private, none if only this machine can reach the server, by --listen, --base and --trusted-proxy; otherwise a random one, which the server prints)."`
	NoPictures   bool     `help:"Show pictures in entries as links. Otherwise the history server fetches them for its visitors, so that their hosts do not learn who reads."`
	Private      bool     `help:"Require the token for reading, too; each feed reader gets a login of its own, which can only read, on the page for subscribing. Only then does the server show, poll and republish feeds that need credentials."`
}

// Validate refuses a base other than the URL of a server, and a proxy without an address.
func (c *serveCommand) Validate() error {
	for _, proxy := range c.TrustedProxy {
		if _, err := web.ParseProxy(proxy); err != nil {
			return errors.New("--trusted-proxy: " + proxy + ": give an IP address, such as 127.0.0.1, or a network, such as 10.0.0.0/8")
		}
	}
	u, err := url.Parse(c.Base)
	switch {
	case c.Base == "":
		return nil
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return errors.New("--base: give the URL of the server, such as https://feeds.example.org/ or https://example.org/feeds/")
	}
	return nil
}

// usualHistory is the usual address of the history server.
const usualHistory = "127.0.0.1:8005"

// serveHistory runs the history server on a database until the context ends. It looks at the
// database before it listens, and creates one only where it can listen.
func (c *serveCommand) serveHistory(w *command.World) error {
	isNew, err := c.isNew()
	if err != nil {
		return err
	}
	var store *database.Store
	var reads bool
	if !isNew {
		if store, reads, err = c.openStore(w); err != nil {
			return err
		}
		defer store.Close()
	}
	listener, err := terminal.ListenAt(cmp.Or(c.Listen, usualHistory))
	if err != nil {
		return err
	}
	defer listener.Close()
	if isNew {
		if store, err = c.Create(w); err != nil {
			return err
		}
		defer store.Close()
		w.Tell(c.Place() + " is a new database: add feeds on its first page, or end this and correct --db")
	}
	return c.serveStore(w, listener, store, reads)
}

// isNew reports whether the database does not exist yet. It refuses a file in a missing
// directory, unless it is the default: the name may be mistyped.
func (c *serveCommand) isNew() (bool, error) {
	if err := c.Locate(); err != nil || c.IsPostgres() {
		return false, err
	}
	if _, err := os.Stat(c.DB); !errors.Is(err, fs.ErrNotExist) {
		return false, nil // opening it reports any other error
	}
	dir := filepath.Dir(c.DB)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && c.DB != database.DefaultDB() {
		return false, errors.New("--db: " + c.DB + ": there is no directory " + dir + ": create it, or correct the name")
	}
	return true, nil
}

// openStore opens the existing database; reads says it can only be read.
func (c *serveCommand) openStore(w *command.World) (store *database.Store, reads bool, err error) {
	store, err = c.Create(w)
	if reads = errors.Is(err, sqlstore.ErrReadOnly); reads {
		w.Say(c.Place() + " can only be read, so its feeds are shown, and not polled")
		store, err = c.Read(w)
	}
	return store, reads, err
}

// serveStore runs the history server until the context ends.
func (c *serveCommand) serveStore(w *command.World, listener net.Listener, store *database.Store, reads bool) error {
	level := slog.LevelWarn
	if w.Verbose {
		level = slog.LevelInfo
	}
	log := slog.New(slog.NewTextHandler(w.Stderr, &slog.HandlerOptions{Level: level}))
	site := "http://" + terminal.AddressOf(listener) + "/"
	server := &web.Server{
		Store: store, Mirror: &mirror.Mirror{Store: mirror.Public(store), Client: w.Client(w.Stderr)}, Output: publish.Dir{Path: c.publishedDir()},
		Base: cmp.Or(c.Base, site), Token: c.Token, Names: c.Name, NoPictures: c.NoPictures, Logger: log, Hints: web.Hints{Listens: !web.IsLocal(listener.Addr().String())},
	}
	if c.DB != database.DefaultDB() {
		server.Hints.DB = "--db " + terminal.ShellWord(c.Place())
	}
	for _, text := range c.TrustedProxy {
		proxy, _ := web.ParseProxy(text) // Validate has checked it
		server.Proxies = append(server.Proxies, proxy)
	}
	if c.Private {
		if err := c.showPrivate(server, store); err != nil {
			return err
		}
	}
	w.Tell("the feeds of " + c.Place() + " at " + site)
	if err := c.tellAccess(w, server, listener); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(w.Ctx)
	var polls sync.WaitGroup
	if !reads {
		polls.Go(func() { _ = server.Run(ctx) }) // its only error is the end of the context
	}
	defer polls.Wait()
	defer cancel()
	return serveHTTP(w, listener, server, log)
}

// showPrivate makes a server poll private feeds, and show and republish them to people who
// have the token.
func (c *serveCommand) showPrivate(server *web.Server, store *database.Store) error {
	dir := privateDir(c.publishedDir())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	server.Private, server.PrivateOutput, server.Readers = true, publish.Dir{Path: dir}, c.publishedDir()+".readers"
	server.Keys, server.Adding = store.Keys, store.Adding
	server.Mirror.Store, server.Mirror.ClientFor = store, store.Keys.ClientFor(server.Mirror.Client)
	return nil
}

// shortToken is the number of characters below which a token can be guessed: the right one is
// heard however many wrong ones came before it.
const shortToken = 16

// tellAccess explains how to get access for reading and for changing feeds, and makes a
// token if the server requires one and has none.
func (c *serveCommand) tellAccess(w *command.World, server *web.Server, listener net.Listener) error {
	base, err := url.Parse(server.Base)
	if err != nil {
		return err
	}
	isLocal := web.IsLocal(listener.Addr().String()) && web.IsLocal(base.Host) && len(server.Proxies) == 0
	if c.Token != "" && len(c.Token) < shortToken {
		w.Say("--token is so short that it can be guessed; give at least " + strconv.Itoa(shortToken) + " characters, or leave it out, and the server makes one")
	}
	switch {
	case server.Token != "" || isLocal && !c.Private:
	case c.Private:
		server.Token = rand.Text()
		w.Say("the token for reading and changes is " + server.Token)
	default:
		server.Token = rand.Text()
		w.Say("other machines can reach this server and read; the token for changes is " + server.Token)
	}
	if c.Private {
		return nil
	}
	hidden := 0
	for f, err := range server.Store.Feeds(w.Ctx, mirror.FeedQuery{}) {
		if err != nil {
			return c.Failure(err)
		}
		if f.Private {
			hidden++
		}
	}
	if hidden > 0 {
		w.Tell(terminal.Count(hidden, "feed that needs credentials is", "feeds that need credentials are") +
			" not shown, because everybody who reaches the server can read; with --private, reading requires the token, and the server shows all feeds")
	}
	return nil
}

// privateDir returns the directory for republished private feeds.
func privateDir(published string) string { return published + ".private" }

// publishedDir returns the directory for republished feeds.
func (c *serveCommand) publishedDir() string {
	switch {
	case c.Published != "":
		return c.Published
	case !c.IsPostgres():
		return c.DB + ".published"
	}
	sum := sha256.Sum256([]byte(c.Place()))
	return filepath.Join(filepath.Dir(database.DefaultDB()), "published-"+hex.EncodeToString(sum[:4]))
}

// republishedFlag is the flag of the verbs that remove documents of history servers.
type republishedFlag struct {
	Published string `placeholder:"DIR" help:"Directory with the history server's republished feeds (default: next to the database; for PostgreSQL, in your data directory)."`
}

// removeRepublished removes the documents of feeds republished by history servers on
// this machine. It returns the feeds with such documents.
func (f *republishedFlag) removeRepublished(db database.Location, feeds ...string) (removed []string, err error) {
	dir := cmp.Or(f.Published, (&serveCommand{Location: db}).publishedDir())
	for _, dir := range []string{dir, privateDir(dir)} {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		some, err := command.WhileLocked(func() ([]string, error) {
			return republish.Forget(context.Background(), publish.Dir{Path: dir}, feeds...)
		}) // a server may be publishing
		if err != nil {
			return nil, err
		}
		removed = append(removed, some...)
	}
	slices.Sort(removed)
	return slices.Compact(removed), nil
}
