package main

import (
	"bufio"
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// The verb fetch.
type fetchCommand struct {
	URLs         []string `arg:"" sep:"none" name:"URL" help:"Addresses of feeds, or of pages that name them."`
	Since        moment   `placeholder:"TIME" help:"Only entries of this time or later: 2003-12-13, 2003-12-13T18:30:02Z, or how long ago, such as 7d or 48h."`
	Limit        int      `placeholder:"N" help:"Print only the latest N entries of each feed (default: 0, for all)."`
	Format       string   `default:"jsonl" enum:"jsonl,json,atom,rss,csv" placeholder:"FORMAT" help:"jsonl: one entry a line (the default); json: one object a line for each feed, with the verdict; atom, rss: one feed; csv: a table."`
	JSON         bool     `name:"json" help:"Print JSON Lines (one object a line): each entry, which is the default."`
	Raw          bool     `help:"With jsonl: also each entry as published, and lines about the feed, as import reads them."`
	Output       string   `short:"o" placeholder:"FILE" help:"Write to a file instead of standard output; it appears only when everything has been read."`
	MaxDocuments int      `default:"10000" placeholder:"N" help:"Request at most N documents of a feed (default: ${default})."`
	MaxBytes     size     `default:"1GiB" placeholder:"SIZE" help:"Read at most this much of a feed, such as 10MB (default: ${default})."`

	backfillFlags
	networkFlags
	privateFlags
}

// Help is what --help says beyond the flags.
func (c *fetchCommand) Help() string {
	return "The entries go to standard output, each once, as their documents arrive; a report with the verdict and each gap goes to standard error. " +
		"If something is missing, or the first document is damaged, the exit status is 3.\n\n" +
		"With --since and --limit, reading ends as soon as there are enough entries, or a document has only earlier ones. " +
		"What was not asked for is no gap, but the verdict is then window at best. " +
		"--since keeps entries without a time."
}

// Validate refuses a budget that allows for nothing, and flags that do not fit the
// format.
func (c *fetchCommand) Validate() error {
	switch {
	case c.MaxDocuments < 1:
		return errors.New("--max-documents: at least 1")
	case c.MaxBytes < 1:
		return errors.New("--max-bytes: at least 1")
	case c.JSON && c.Format != "jsonl":
		return errors.New("--json and --format " + c.Format + " exclude each other")
	case c.Limit < 0:
		return errors.New("--limit: not a negative number")
	case len(c.URLs) > 1 && (c.Format == "atom" || c.Format == "rss" || c.Format == "csv"):
		return errors.New("--format " + c.Format + ": give one URL, because it is one feed")
	case c.Raw && c.Format != "jsonl":
		return errors.New("--raw is for jsonl")
	}
	return c.backfillFlags.Validate()
}

// Run fetches the feeds one after the other, prints their entries and reports on
// them.
func (c *fetchCommand) Run(w *world) error {
	for _, url := range c.URLs {
		if err := checkURL(url); err != nil {
			return err
		}
	}
	client, err := w.authorized(each(c.URLs, webAddress)...)
	if err != nil {
		return err
	}
	client.Budget = feedhistory.Budget{Documents: c.MaxDocuments, Bytes: int64(c.MaxBytes)}
	out, err := w.output(c.Output)
	if err != nil {
		return err
	}
	defer out.discard()
	status := exitOK
	for _, url := range c.URLs {
		f := &fetching{fetchCommand: c, world: w, client: client, out: bufio.NewWriterSize(out, 64<<10)}
		became, err := f.feed(url)
		if err != nil && (len(c.URLs) == 1 || isOutputError(err)) {
			return err
		}
		if err != nil {
			w.Say(err.Error())
			became = exitFailed
		}
		if status = worse(status, became); w.ctx.Err() != nil {
			break
		}
	}
	if isCut := w.ctx.Err() != nil; out.name != "" && (isCut || status == exitFailed) {
		if isCut {
			status = exitInterrupted
		}
		w.Say("--output: " + out.name + " was not written, because not everything was read")
	} else if err := out.commit(); err != nil {
		return err
	}
	if status != exitOK {
		return statusError(status)
	}
	return nil
}

// worse returns the exit status for two outcomes.
func worse(a, b int) int {
	for _, status := range []int{exitFailed, exitPartial, exitInterrupted} {
		if a == status || b == status {
			return status
		}
	}
	return exitOK
}

// A fetching is the fetch of one feed.
type fetching struct {
	*fetchCommand
	*world
	client *feedhistory.Client
	out    *bufio.Writer
	of     string // the feed's address in its entries; "" before the first document

	merger  feedhistory.Merger
	printed map[string]*feedhistory.Entry // by ID; nil if nothing is printed before the end
	gone    map[string]time.Time          // when entries were deleted, by the documents so far
	twice   int                           // entries that a newer copy, or a deletion, followed
	seen    map[string]bool               // entries that were asked for
	limited bool                          // there may be others, that were not asked for
}

// feed fetches a feed. The error is that of its first document or of the output.
func (f *fetching) feed(url string) (status int, err error) {
	var result *backfill.Result
	url, err = f.resolve(f.client, webAddress(url), func(address string) error {
		result, err = f.history(address)
		return err
	})
	switch {
	case isOutputError(err):
		return 0, err
	case result == nil:
		return 0, failure(url, err)
	}
	if err = cmp.Or(f.print(result), f.out.Flush()); err != nil {
		return 0, &outputError{err}
	}
	f.report(result.History, result.Verdict(), f.meaning(result))
	if f.twice > 0 {
		f.Tell(count(f.twice, "entry was", "entries were") + " printed before a newer copy, or a deletion, came: the last line of an id counts")
	}
	if result.Verdict() == feedhistory.Partial {
		return exitPartial, nil
	}
	return exitOK, nil
}

// history walks and merges. If it is interrupted, or the first document is damaged,
// the history has a gap. If there is no history, the error is that of the first
// document or of the output.
func (f *fetching) history(url string) (*backfill.Result, error) {
	f.merger, f.of, f.seen, f.gone = feedhistory.Merger{}, "", map[string]bool{}, map[string]time.Time{}
	if f.Format == "jsonl" && !f.Raw && f.Limit == 0 { // with a limit, which entries are the latest is known at the end
		f.printed = map[string]*feedhistory.Entry{}
	}
	walk := f.walk(f.ctx, f.client, url)
	p := &progress{}
	if f.printed == nil || !isTerminal(f.stdout) { // otherwise the entries show the progress
		p = f.newProgress()
	}
	defer p.end()
	for doc, err := range p.watch(walk.documents) {
		more := f.merger.Add(doc, err)
		if printErr := f.take(doc, err); printErr != nil {
			return nil, &outputError{printErr}
		}
		if !more || doc != nil && f.hasAll(doc) {
			break
		}
	}
	h, err := f.merger.History()
	if h == nil || err != nil && h.Documents == 0 && len(h.Entries)+len(h.Deleted) == 0 {
		return nil, err
	}
	result := walk.result(h) // err is among its gaps
	f.restrict(h)
	result.Proven = result.Proven && !f.limited
	return result, nil
}

// print writes what has not been written yet.
func (f *fetching) print(r *backfill.Result) error {
	switch {
	case f.printed != nil:
		return f.printRest(r.History)
	case f.Raw:
		return printRaw(f.out, r, f.isPrivate(r.History))
	}
	return printHistory(f.out, r, f.Format)
}

// isPrivate reports whether a feed was read with credentials.
func (f *fetching) isPrivate(h *feedhistory.History) bool {
	return h.Head != nil && slices.ContainsFunc(f.client.Policy.Credentials, func(c feedhistory.Credential) bool {
		return iri.AreSameOrigin(c.Origin, h.Head.URL)
	})
}

// An interruptedError ends the command with the status of an interrupt: there is
// nothing to show.
type interruptedError struct{ error }

// Unwrap returns the error that the interrupt came to.
func (e interruptedError) Unwrap() error { return e.error }

func isOutputError(err error) bool {
	_, ok := errors.AsType[*outputError](err)
	return ok
}
