package main

import (
	"bufio"
	"errors"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
)

// The verb fetch.
type fetchCommand struct {
	URL          string `arg:"" name:"URL" help:"The feed's address."`
	MaxDocuments int    `default:"10000" placeholder:"N" help:"Documents to request at most (default: ${default})."`
	MaxBytes     size   `default:"1GiB" placeholder:"SIZE" help:"Bytes to read at most, such as 10MB (default: ${default})."`
	Format       string `default:"jsonl" enum:"jsonl,json,atom,rss,csv" placeholder:"FORMAT" help:"jsonl: one entry a line (the default); json: one object with the verdict; atom, rss: one feed; csv: a table."`
	Raw          bool   `help:"Of jsonl: also each entry as published, and what there is to say of the feed, as import reads them."`

	backfillFlags
}

// Help is what --help says beyond the flags.
func (c *fetchCommand) Help() string {
	return "The entries go to standard output, each once; a report with the verdict and each gap goes to standard error. " +
		"Where something is missing, or the first document is damaged, the exit status is 3."
}

// Validate refuses a budget that allows for nothing.
func (c *fetchCommand) Validate() error {
	switch {
	case c.MaxDocuments < 1:
		return errors.New("--max-documents: at least 1")
	case c.MaxBytes < 1:
		return errors.New("--max-bytes: at least 1")
	case c.Raw && c.Format != "jsonl":
		return errors.New("--raw is for jsonl")
	}
	return c.backfillFlags.Validate()
}

// Run fetches the feed, prints its entries and reports on them.
func (c *fetchCommand) Run(w *world) error {
	if err := checkURL(c.URL); err != nil {
		return err
	}
	r, err := c.history(w)
	if err != nil {
		return err
	}
	if err := c.print(w, r); err != nil {
		return err
	}
	p := &page{w: w.stderr}
	p.outcome(r.History, r.Verdict(), c.verdictText(r))
	if r.Verdict() == feedhistory.Partial {
		return statusError(exitPartial)
	}
	return nil
}

// history walks and merges. If it is interrupted, or the first document is
// damaged, what there is has a gap.
func (c *fetchCommand) history(w *world) (*backfill.Result, error) {
	client := w.client(w.stderr)
	client.Budget = feedhistory.Budget{Documents: c.MaxDocuments, Bytes: int64(c.MaxBytes)}
	walk := c.walk(w.ctx, client, c.URL)
	p := w.newProgress()
	h, err := feedhistory.Merge(p.watch(walk.documents))
	p.end()
	if h == nil || err != nil && h.Documents == 0 && len(h.Entries)+len(h.Deleted) == 0 {
		return nil, failure(c.URL, err)
	}
	return walk.result(h), nil // what ended the walk is among the gaps
}

// print writes the history in the format that was asked for.
func (c *fetchCommand) print(w *world, r *backfill.Result) error {
	out := bufio.NewWriterSize(w.stdout, 64<<10)
	return errors.Join(printHistory(out, r, c.Format, c.Raw), out.Flush())
}
