package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/cmd/internal/web"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// historyFlags are the flags of the history server.
type historyFlags struct {
	Base      string   `placeholder:"URL" help:"Public URL of the history server, with its path if a proxy serves it below one. Republished feeds contain it (default: the URL of --listen)."`
	Published string   `placeholder:"DIR" help:"Directory for republished feeds, which keeps their addresses stable (default: next to the database; for PostgreSQL, in your data directory)."`
	Name      []string `placeholder:"HOST" help:"Another host name of the history server (repeatable). The server refuses requests to names other than these, localhost, this machine's own name, the host of --base and, with a token, IP addresses."`
	Token     string   `env:"FEEDHISTORY_TOKEN" placeholder:"WORD" help:"Secret required for every change (default: without --private, none if only this machine can reach the server; otherwise a random one, which the server prints)."`
	Private   bool     `help:"Require the token for reading, too; feed readers send it as the password, with any user name. Only then does the server show, poll and republish feeds that need credentials."`
}

// Validate refuses a base other than the URL of a server, and flags of the history
// server with a directory.
func (c *serveCommand) Validate() error {
	u, err := url.Parse(c.Base)
	switch {
	case c.MaxAge < 0:
		return errors.New("--max-age: a time cannot be negative")
	case c.Dir != "" && (c.Base != "" || c.Published != "" || len(c.Name) > 0 || c.Private):
		return errors.New("--base, --name, --private and --published are for the history server: leave out DIR")
	case c.Protocol != "" && c.Dir != "":
		return errors.New("--protocol is for the feeds of a database: leave out DIR")
	case c.Protocol != "" && (c.Private || len(c.Name) > 0):
		return errors.New("--protocol shows the feeds to everybody: leave out --private and --name")
	case c.Base == "":
		return nil
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return errors.New("--base: give the URL of the server, such as https://feeds.example.org/ or https://example.org/feeds/")
	}
	return nil
}

// usualHistory is the usual address of the history server.
const usualHistory = "127.0.0.1:8005"

// serveHistory runs the history server on a database until the context ends.
func (c *serveCommand) serveHistory(w *command.World, listener net.Listener) error {
	defer listener.Close()
	store, err := c.Create(w)
	if err != nil {
		return err
	}
	defer store.Close()
	level := slog.LevelWarn
	if w.Verbose {
		level = slog.LevelInfo
	}
	log := slog.New(slog.NewTextHandler(w.Stderr, &slog.HandlerOptions{Level: level}))
	site := "http://" + address(listener) + "/"
	server := &web.Server{
		Store: store, Mirror: &mirror.Mirror{Store: mirror.Public(store), Client: w.Client(w.Stderr)}, Output: publish.Dir{Path: c.publishedDir()},
		Base: cmp.Or(c.Base, site), Token: c.Token, Names: c.Name, Logger: log,
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
	polls.Go(func() { _ = server.Run(ctx) }) // its only error is the end of the context
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
	server.Private, server.PrivateOutput = true, publish.Dir{Path: dir}
	server.Mirror.Store, server.Mirror.ClientFor = store, store.Keys.ClientFor(server.Mirror.Client)
	return nil
}

// tellAccess explains how to get access for reading and for changing feeds, and makes a
// token if the server requires one and has none.
func (c *serveCommand) tellAccess(w *command.World, server *web.Server, listener net.Listener) error {
	isLocal := web.IsLocal(listener.Addr().String())
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
