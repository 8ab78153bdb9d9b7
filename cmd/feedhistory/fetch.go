package main

import (
	"bufio"
	"errors"

	"github.com/feedhistory/feedhistory"
)

// The verb fetch.
type fetchCommand struct {
	URL          string `arg:"" name:"URL" help:"The feed's address."`
	MaxDocuments int    `default:"10000" placeholder:"N" help:"Documents to request at most (default: ${default})."`
	MaxBytes     size   `default:"1GiB" placeholder:"SIZE" help:"Bytes to read at most, such as 10MB (default: ${default})."`
	Format       string `default:"jsonl" enum:"jsonl,json,atom,rss" placeholder:"FORMAT" help:"jsonl: one entry a line (the default); json: one object with the verdict; atom, rss: one feed."`
}

// Help is what --help says beyond the flags.
func (c *fetchCommand) Help() string {
	return "The entries go to standard output, each once; a report with the verdict and each gap goes to standard error. " +
		"Where something is missing the exit status is 3."
}

// Validate refuses a budget that allows for nothing.
func (c *fetchCommand) Validate() error {
	switch {
	case c.MaxDocuments < 1:
		return errors.New("--max-documents: at least 1")
	case c.MaxBytes < 1:
		return errors.New("--max-bytes: at least 1")
	}
	return nil
}

// Run fetches the feed, prints its entries and reports on them.
func (c *fetchCommand) Run(w *world) error {
	if err := checkURL(c.URL); err != nil {
		return err
	}
	h, err := c.history(w)
	if err != nil {
		return err
	}
	if err := c.print(w, h); err != nil {
		return err
	}
	p := &page{w: w.stderr}
	p.report(h)
	if h.Verdict() == feedhistory.Partial {
		return statusError(exitPartial)
	}
	return nil
}

// history walks and merges. If it is interrupted, what there is has a gap.
func (c *fetchCommand) history(w *world) (*feedhistory.History, error) {
	client := w.client(w.stderr)
	client.Budget = feedhistory.Budget{Documents: c.MaxDocuments, Bytes: int64(c.MaxBytes)}
	p := w.newProgress()
	h, err := feedhistory.Merge(p.watch(client.Walk(w.ctx, c.URL, nil)))
	p.end()
	if h == nil {
		return nil, failure(c.URL, err)
	}
	return h, nil // what else ended the walk is among the gaps
}

// print writes the history in the format that was asked for.
func (c *fetchCommand) print(w *world, h *feedhistory.History) error {
	out := bufio.NewWriterSize(w.stdout, 64<<10)
	var err error
	switch c.Format {
	case "json":
		err = printJSON(out, historyJSON(h))
	case "atom":
		err = feedhistory.WriteAtom(out, h.Document())
	case "rss":
		err = feedhistory.WriteRSS(out, h.Document())
	default:
		for _, e := range h.Entries {
			if err = printLine(out, entryJSON(e)); err != nil {
				break
			}
		}
	}
	return errors.Join(err, out.Flush())
}
