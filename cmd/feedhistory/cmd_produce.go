package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/protocols"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// A produceCommand is the verb produce, the counterpart of harvest.
type produceCommand struct{ protocols.Production }

// Help returns the text of --help before the flags.
func (c *produceCommand) Help() string {
	return "produce reads lines of JSON, such as harvest prints, from standard input, and publishes them for harvest to read.\n\n" +
		`atom-pmh: {"id": "urn:1", "time": "2026-03-01T12:00:00Z", "title": "One", "representations": [{"url": "https://…", "type": "text/html"}]}, ` +
		`or {"kind": "deleted", "id": …, "time": …}. Give all records, or only those that have changed.` + "\n\n" +
		`datareplication: {"id": "1", "operation": "PUT", "type": "text/plain", "body": "…"}, with "base64" instead of "body" if the body is not text, ` +
		`and optionally "header": {"X-Key": "…"}. produce appends the entities; appending the same lines again does nothing.` + "\n\n" +
		"modified-range: entries as publish reads them, or the lines that harvest prints.\n\n" +
		"With --db, the first run may give lines in any order. A later run, even while another serves the database, gives all lines " +
		"or only those that have changed; a change must have a later time than what is published, because harvests look for no others."
}

// Validate refuses missing and useless flags, and those of another protocol.
func (c *produceCommand) Validate(call *kong.Context) error {
	switch {
	case c.Out == "" && c.Listen == "" && c.DB == "":
		return errors.New("give --out, --listen or both, or --db")
	case c.DB != "" && c.Protocol == protocols.DataReplication:
		return errors.New("--db: datareplication keeps its pages in a directory: --out")
	case c.DB != "" && (c.Out != "" || c.Deletions != "entry" || c.Settle > 0):
		return errors.New("--db excludes --out, --deletions and --settle")
	case c.Out != "" && c.Protocol == protocols.ModifiedRange:
		return errors.New("--out: modified-range has no documents to put into a directory; --listen serves it")
	case c.Base == "" && c.Listen == "" && c.Out != "" && c.Protocol == protocols.AtomPMH:
		return errors.New("--base is required without --listen")
	case c.Base != "" && !terminal.IsWeb(c.Base):
		return errors.New("--base: not the URL of a directory: " + c.Base)
	case !c.CleanUp.IsZero() && (c.Protocol != protocols.DataReplication || c.Out == ""):
		return errors.New("--clean-up is for datareplication with --out")
	case (c.Deletions != "entry" || c.Settle > 0) && c.Protocol != protocols.AtomPMH:
		return fmt.Errorf("--deletions, --settle: %s has no such flags", c.Protocol)
	}
	return terminal.CheckProtocol(call, c.Protocol)
}

// Run publishes the lines, and serves the result.
func (c *produceCommand) Run(w *command.World) (err error) {
	var listener net.Listener
	if c.Listen != "" {
		if listener, err = terminal.ListenAt(c.Listen); err != nil {
			return err
		}
		defer listener.Close()
		if c.Base == "" {
			c.Base = "http://" + terminal.AddressOf(listener) + "/"
		}
	}
	pools := c.Pools()
	if c.Out == "" && c.DB == "" {
		dir, err := os.MkdirTemp("", "feedhistory")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		if c.Out = dir; pools {
			c.DB = filepath.Join(dir, "collection.db")
		}
	}
	log := slog.New(slog.NewTextHandler(w.Stderr, nil))
	if pools {
		return c.runPool(w, listener, log)
	}
	handler, waiting, err := c.Produce(w, log)
	if err != nil {
		return err
	}
	if listener != nil {
		return serveHTTP(w, listener, handler, log)
	}
	return waiting
}

// runPool adds the lines to the collection's database, and serves it meanwhile and
// afterwards.
func (c *produceCommand) runPool(w *command.World, listener net.Listener, log *slog.Logger) (err error) {
	pool, err := c.OpenPool(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	if listener == nil {
		return pool.Load(w)
	}
	ctx, cancel := context.WithCancel(w.Ctx)
	defer cancel()
	serving := *w
	serving.Ctx = ctx
	served := make(chan error, 1)
	handler := pool.Handler(w, log)
	go func() { served <- serveHTTP(&serving, listener, handler, log) }()
	if err := pool.Load(w); err != nil && !errors.Is(err, terminal.StatusError(terminal.ExitPartial)) {
		cancel()
		<-served
		return err
	}
	return <-served
}
