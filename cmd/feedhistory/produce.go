package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
)

// A produceCommand is the verb produce, the counterpart of harvest.
type produceCommand struct {
	Protocol  string        `required:"" enum:"atom-pmh,datareplication,modified-range" placeholder:"PROTOCOL" help:"The protocol: atom-pmh, datareplication or modified-range."`
	Out       string        `placeholder:"DIR" help:"Directory in which to publish; produce creates it if necessary. Not with modified-range."`
	Listen    string        `placeholder:"ADDRESS" help:"Serve the result at this address until interrupted; port 0 means any free port."`
	Base      string        `placeholder:"URL" help:"URL where the result is served (default: the URL of --listen)."`
	Title     string        `help:"With atom-pmh and modified-range: the feed's title."`
	Deletions string        `default:"entry" enum:"entry,absence" placeholder:"WAY" help:"With atom-pmh: announce deletions by an entry (the default), or by the absence of records from one complete document."`
	Settle    time.Duration `placeholder:"TIME" help:"With atom-pmh: how long after its stamp a change may become visible."`
	Size      int           `placeholder:"N" help:"Number of entries in an archive, or of items in an answer (default: 100)."`
	PageSize  argument.Size `default:"1MB" placeholder:"SIZE" help:"With datareplication: size of a page (default: ${default})."`
	Snapshot  bool          `help:"With datareplication: the lines are all resources; publish a snapshot of them, from which new harvesters begin."`
}

// Help returns the text of --help that precedes the flags.
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
	case c.Out != "" && c.Protocol == modifiedRange:
		return errors.New("--out: modified-range has no documents to put into a directory; --listen serves it")
	case c.Base == "" && c.Listen == "" && c.Protocol == atomPMH:
		return errors.New("--base is required without --listen")
	case c.Size < 0 || c.PageSize < 1 || c.Settle < 0:
		return errors.New("--size and --settle cannot be negative, and --page-size must be at least 1")
	case c.Snapshot && c.Protocol != dataReplication:
		return fmt.Errorf("--snapshot: %s has no such flag", c.Protocol)
	case (c.Deletions != "entry" || c.Settle > 0) && c.Protocol != atomPMH:
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
		if listener, err = (&serveCommand{Listen: c.Listen}).listen(""); err != nil {
			return err
		}
		defer listener.Close()
		if c.Base == "" {
			c.Base = "http://" + address(listener) + "/"
		}
	}
	if c.Out == "" && c.Protocol != modifiedRange {
		if c.Out, err = os.MkdirTemp("", "feedhistory"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(c.Out)) }()
	}
	log := slog.New(slog.NewTextHandler(w.Stderr, nil))
	handler, waiting, err := c.produce(w, log)
	if err != nil {
		return err
	}
	if listener != nil {
		return serveHTTP(w, listener, handler, log)
	}
	return waiting
}

// produce publishes the lines. It returns a handler that serves the result; an error with
// the exit status if something cannot be published yet; and any other error.
func (c *produceCommand) produce(w *command.World, log *slog.Logger) (http.Handler, error, error) {
	switch c.Protocol {
	case atomPMH:
		return c.producePMH(w, log)
	case dataReplication:
		handler, err := c.produceReplication(w, log)
		return handler, nil, err
	default:
		handler, err := c.produceRange(w, log)
		return handler, nil, err
	}
}

// jsonLines yields the JSON value of each line that is not empty. An error ends the
// sequence; if a line is wrong, the error names the line.
func jsonLines[T any](r io.Reader) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		in := bufio.NewReader(r)
		for n := 1; ; n++ {
			line, err := in.ReadBytes('\n')
			if text := bytes.TrimSpace(line); len(text) > 0 {
				var value T
				if bad := json.Unmarshal(text, &value); bad != nil {
					yield(value, fmt.Errorf("line %d: %w", n, bad))
					return
				}
				if !yield(value, nil) {
					return
				}
			}
			if err == io.EOF {
				return
			}
			if err != nil {
				var none T
				yield(none, err)
				return
			}
		}
	}
}
