package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"

	"github.com/feedhistory/feedhistory/cmd/internal/collection"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/httpserver"
)

// A produceCommand is the verb produce, the counterpart of harvest.
type produceCommand struct{ collection.Production }

// Help returns the text of --help before the flags.
func (c *produceCommand) Help() string {
	return "produce reads lines of JSON, such as harvest prints, from standard input, and publishes them for harvest to read.\n\n" +
		`atom-pmh: {"id": "urn:1", "time": "2026-03-01T12:00:00Z", "title": "One", "representations": [{"url": "https://…", "type": "text/html"}]}, ` +
		`or {"kind": "deleted", "id": …, "time": …}. Give all records, or only those that have changed.` + "\n\n" +
		`datareplication: {"id": "1", "operation": "PUT", "type": "text/plain", "body": "…"}, with "base64" instead of "body" if the body is not text, ` +
		`and optionally "header": {"X-Key": "…"}. produce appends the entities; appending the same lines again does nothing.` + "\n\n" +
		"modified-range: entries as publish reads them. Give the whole collection."
}

// Validate refuses missing, useless and negative flags.
func (c *produceCommand) Validate() error {
	switch {
	case c.Out == "" && c.Listen == "":
		return errors.New("give --out, --listen or both")
	case c.Out != "" && c.Protocol == collection.ModifiedRange:
		return errors.New("--out: modified-range has no documents to put into a directory; --listen serves it")
	case c.Base == "" && c.Listen == "" && c.Protocol == collection.AtomPMH:
		return errors.New("--base is required without --listen")
	case c.Size < 0:
		return errors.New("--size: a number cannot be negative")
	case c.Settle < 0:
		return errors.New("--settle: a time cannot be negative")
	case c.PageSize < 1:
		return errors.New("--page-size: at least 1")
	case c.Snapshot && c.Protocol != collection.DataReplication:
		return fmt.Errorf("--snapshot: %s has no such flag", c.Protocol)
	case (c.Deletions != "entry" || c.Settle > 0) && c.Protocol != collection.AtomPMH:
		return fmt.Errorf("--deletions, --settle: %s has no such flags", c.Protocol)
	}
	if base, err := url.Parse(c.Base); c.Base != "" && (err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http") {
		return errors.New("--base: not the URL of a directory: " + c.Base)
	}
	return nil
}

// Run publishes the lines, and serves the result.
func (c *produceCommand) Run(w *command.World) (err error) {
	var listener net.Listener
	if c.Listen != "" {
		if listener, err = httpserver.Listen(c.Listen); err != nil {
			return err
		}
		defer listener.Close()
		if c.Base == "" {
			c.Base = "http://" + address(listener) + "/"
		}
	}
	if c.Out == "" && c.Protocol != collection.ModifiedRange {
		if c.Out, err = os.MkdirTemp("", "feedhistory"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(c.Out)) }()
	}
	log := slog.New(slog.NewTextHandler(w.Stderr, nil))
	handler, waiting, err := c.Produce(w, log)
	if err != nil {
		return err
	}
	if listener != nil {
		return serveHTTP(w, listener, handler, log)
	}
	return waiting
}
