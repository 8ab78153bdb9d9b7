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
)

// The verb produce: the other side of harvest.
type produceCommand struct {
	Protocol  string        `required:"" enum:"atom-pmh,datareplication,modified-range" placeholder:"PROTOCOL" help:"What harvesters ask by: atom-pmh, datareplication or modified-range."`
	Out       string        `placeholder:"DIR" help:"Directory of what is published; made if it is not there. Of modified-range there is none."`
	Listen    string        `placeholder:"ADDRESS" help:"Serve it at the address until it is interrupted; port 0 means any free port."`
	Base      string        `placeholder:"URL" help:"Where it is served (default: where it listens)."`
	Title     string        `help:"Of atom-pmh and modified-range: the feed's title."`
	Deletions string        `default:"entry" enum:"entry,absence" placeholder:"WAY" help:"Of atom-pmh: tell of deletions by an entry (the default), or by absence from one complete document."`
	Settle    time.Duration `placeholder:"TIME" help:"Of atom-pmh: how long a change may take to be seen after it was stamped."`
	Size      int           `placeholder:"N" help:"Entries of an archive, or items of an answer (default: 100)."`
	PageSize  size          `default:"1MB" placeholder:"SIZE" help:"Of datareplication: the size of a page (default: ${default})."`
	Snapshot  bool          `help:"Of datareplication: the lines are all resources that there are; publish a snapshot of them, where new harvesters begin."`
}

// Help is what --help says beyond the flags.
func (c *produceCommand) Help() string {
	return "Lines of JSON on standard input become what harvest reads; what harvest prints can be produced again.\n\n" +
		`atom-pmh: {"id": "urn:1", "time": "2026-03-01T12:00:00Z", "title": "One", "representations": [{"url": "https://…", "type": "text/html"}]}, ` +
		`or {"kind": "deleted", "id": …, "time": …}: all records, or those that changed.` + "\n\n" +
		`datareplication: {"id": "1", "operation": "PUT", "type": "text/plain", "body": "…"}, with "base64" for what is not text, ` +
		`and perhaps "header": {"X-Key": "…"}: what is to be appended. To append the same lines once more does nothing.` + "\n\n" +
		"modified-range: entries as publish reads them: the whole collection."
}

// Validate refuses what contradicts itself.
func (c *produceCommand) Validate() error {
	switch {
	case c.Out == "" && c.Listen == "":
		return errors.New("give --out, --listen or both")
	case c.Out != "" && c.Protocol == modifiedRange:
		return errors.New("--out: modified-range has no documents that could lie in a directory; --listen serves it")
	case c.Base == "" && c.Listen == "" && c.Protocol == atomPMH:
		return errors.New("--base is needed where nothing is served")
	case c.Size < 0 || c.PageSize < 1 || c.Settle < 0:
		return errors.New("--size, --page-size and --settle cannot be negative")
	case c.Snapshot && c.Protocol != dataReplication:
		return fmt.Errorf("--snapshot: %s does not know it", c.Protocol)
	case (c.Deletions != "entry" || c.Settle > 0) && c.Protocol != atomPMH:
		return fmt.Errorf("--deletions, --settle: %s does not know them", c.Protocol)
	}
	if base, err := url.Parse(c.Base); c.Base != "" && (err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http") {
		return errors.New("--base: not the URL of a directory: " + c.Base)
	}
	return nil
}

// Run publishes what comes, and serves it.
func (c *produceCommand) Run(w *world) (err error) {
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
	log := slog.New(slog.NewTextHandler(w.stderr, nil))
	handler, waiting, err := c.produce(w, log)
	if err != nil {
		return err
	}
	if listener != nil {
		return w.serve(listener, handler, log)
	}
	return waiting
}

// produce publishes what comes, and returns what serves it, and an error if not
// all has been published.
func (c *produceCommand) produce(w *world, log *slog.Logger) (http.Handler, error, error) {
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

// jsonLines reads a value from each line. An error, which says in which line it
// is, ends the sequence.
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
