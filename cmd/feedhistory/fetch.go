package main

import (
	"bufio"
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/logins"
	"github.com/feedhistory/feedhistory/cmd/internal/network"
	"github.com/feedhistory/feedhistory/cmd/internal/recovery"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// A fetchCommand is the verb fetch.
type fetchCommand struct {
	URLs   []string        `arg:"" sep:"none" name:"URL" help:"Addresses of feeds, or of pages that name them."`
	Since  argument.Moment `placeholder:"TIME" help:"Print only entries from this time on: 2003-12-13, 2003-12-13T18:30:02Z, or how long ago, such as 7d or 48h."`
	Limit  int             `placeholder:"N" help:"Print only the latest N entries of each feed (default: 0, for all)."`
	Format string          `default:"" enum:",jsonl,json,atom,rss,csv" placeholder:"FORMAT" help:"jsonl: one entry a line (the default, but for a terminal, which shows a table); json: one object a line for each feed, with the verdict; atom, rss: one feed; csv: a table."`

	terminal.JSONFlag `set:"record=each entry"`

	Raw    bool   `help:"With jsonl: also print each entry as it was published, and lines about the feed, for import."`
	Output string `short:"o" placeholder:"FILE" help:"Write to a file instead of standard output. The file appears only when it is complete."`

	recovery.Budget
	recovery.Backfill
	network.Flags
	logins.Login
}

// Help returns the text of --help before the flags.
func (c *fetchCommand) Help() string {
	return "Each entry is printed once. jsonl streams; --raw, --limit and the other formats print at the end. " +
		"On standard error it reports the verdict and each gap. " +
		"If something is missing, or the first document is damaged, the exit status is 3.\n\n" +
		"On a terminal, it prints a table with the date, the title and the link of each entry, unless you ask for a format.\n\n" +
		"With --since and --limit, fetch still reads the whole history, because a feed's documents need not be in order of time: " +
		"after an import, the newest document may have the oldest posts. --max-documents limits its reading. " +
		"Entries you did not ask for are not gaps, but without them the verdict is window at best. " +
		"--since keeps entries without a time."
}

// Validate refuses a budget of zero, a negative limit, and flags unsuitable for the
// format.
func (c *fetchCommand) Validate() error {
	switch {
	case c.JSON && c.Format != "" && c.Format != "jsonl":
		return errors.New("--json and --format " + c.Format + " exclude each other")
	case c.Limit < 0:
		return errors.New("--limit: a number cannot be negative")
	case len(c.URLs) > 1 && (c.Format == "atom" || c.Format == "rss" || c.Format == "csv"):
		return errors.New("--format " + c.Format + ": give one URL, because it is one feed")
	case c.Raw && c.Format != "" && c.Format != "jsonl":
		return errors.New("--raw is for jsonl")
	}
	return errors.Join(c.Check(), c.Backfill.Validate())
}

// Run fetches the feeds one after the other, prints their entries and reports on
// them.
func (c *fetchCommand) Run(w *command.World) error {
	for _, url := range c.URLs {
		if err := argument.CheckURL(url); err != nil {
			return err
		}
	}
	client, err := w.Authorized(schema.Each(c.URLs, argument.WebAddress)...)
	if err != nil {
		return err
	}
	client.Budget = c.Limits()
	out, err := w.Output(c.Output)
	if err != nil {
		return err
	}
	defer out.Discard()
	if c.Format == "" {
		c.Format = "jsonl"
		if c.Output == "" && !c.JSON && !c.Raw && terminal.IsTerminal(w.Stdout) {
			c.Format = tableFormat
		}
	}
	status := exit.OK
	for _, url := range c.URLs {
		f := &feedFetch{fetchCommand: c, World: w, client: client, out: bufio.NewWriterSize(out, 64<<10)}
		became, err := f.feed(url)
		if err != nil && (len(c.URLs) == 1 || exit.IsOutputError(err)) {
			return err
		}
		if err != nil {
			w.Say(err.Error())
			became = exit.Failed
		}
		if status = exit.Worse(status, became); w.Ctx.Err() != nil {
			break
		}
	}
	if c.Raw && status != exit.Failed && w.Ctx.Err() == nil {
		if err := (&mirror.Export{}).End(out); err != nil {
			return &exit.OutputError{Err: err}
		}
	}
	if isCut := w.Ctx.Err() != nil; out.Name != "" && (isCut || status == exit.Failed) {
		if isCut {
			status = exit.Interrupted
		}
		w.Say("--output: " + out.Name + " was not written, because not everything was read")
	} else if err := out.Commit(); err != nil {
		return err
	}
	if status != exit.OK {
		return exit.StatusError(status)
	}
	return nil
}

// tableFormat is the format for people, on a terminal.
const tableFormat = "table"

// A feedFetch is the fetch of one feed.
type feedFetch struct {
	*fetchCommand
	*command.World
	client *feedhistory.Client
	out    *bufio.Writer
	of     string // the feed's address, as the entries give it; "" before the first document

	merger  feedhistory.Merger
	printed map[string]*feedhistory.Entry // by ID; nil if nothing is printed before the end
	gone    map[string]time.Time          // the times of the deletions so far, by ID
	twice   int                           // entries printed before a newer copy, or a deletion
	verdict feedhistory.Verdict           // on the whole feed
	limited bool                          // the feed has entries the flags do not ask for
}

// feed fetches a feed and prints it. It returns the exit status, or an error of the first
// document or of the output.
func (f *feedFetch) feed(url string) (status int, err error) {
	var result *backfill.Recovery
	url, err = f.Resolve(f.client, argument.WebAddress(url), func(address string) error {
		result, err = f.history(address)
		return err
	})
	switch {
	case exit.IsOutputError(err):
		return 0, err
	case result == nil:
		return 0, explain.Failure(url, err)
	}
	if err = cmp.Or(f.print(result), f.out.Flush()); err != nil {
		return 0, &exit.OutputError{Err: err}
	}
	reportHistory(f.World, result.History, result.Verdict(), f.meaning(result))
	if f.twice > 0 {
		f.Tell(terminal.Count(f.twice, "entry was", "entries were") + " printed before a newer copy, or a deletion, arrived: the last line with an id counts")
	}
	return exit.Of(result.Verdict()), nil
}

// history reads the documents of a feed and merges them. After an interrupt, or if the
// first document is damaged, the history has a gap. If there is no history, history
// returns the error of the first document or of the output.
func (f *feedFetch) history(url string) (*backfill.Recovery, error) {
	f.merger, f.of, f.gone = feedhistory.Merger{}, "", map[string]time.Time{}
	if (f.Format == "jsonl" || f.Format == tableFormat) && !f.Raw && f.Limit == 0 { // with a limit, the latest entries are known only at the end
		f.printed = map[string]*feedhistory.Entry{}
	}
	walk := f.Walk(f.Ctx, f.client, url)
	p := &command.Progress{}
	if f.printed == nil || f.fetchCommand.Output != "" || !terminal.IsTerminal(f.Stdout) { // otherwise the entries show the progress
		p = f.NewProgress()
	}
	defer p.End()
	for doc, err := range p.Watch(walk.Documents) {
		more := f.merger.Add(doc, err)
		if printErr := f.take(doc, err); printErr != nil {
			return nil, &exit.OutputError{Err: printErr}
		}
		if !more {
			break
		}
	}
	h, err := f.merger.History()
	if h == nil || err != nil && h.Documents == 0 && len(h.Entries)+len(h.Deleted) == 0 {
		return nil, err
	}
	result := walk.Result(h) // err is among its gaps
	f.verdict = result.Verdict()
	f.restrict(h)
	result.Proven = result.Proven && !f.limited
	return result, nil
}

// print prints the entries not printed yet.
func (f *feedFetch) print(r *backfill.Recovery) error {
	switch {
	case f.printed != nil:
		return f.printRest(r.History)
	case f.Raw:
		return printRaw(f.out, r, f.isPrivate(schema.FeedOf(r.History)))
	}
	if f.Format == tableFormat {
		for _, e := range r.History.Entries {
			if err := f.printEntry(e); err != nil {
				return err
			}
		}
		return nil
	}
	return printHistory(f.out, r, f.Format, f.isPrivate(schema.FeedOf(r.History)))
}

// isPrivate reports whether there are credentials for the origin of a feed, or its address
// seems to have a secret.
func (f *feedFetch) isPrivate(feed string) bool {
	return mirror.NewFeed(feed).Private || slices.ContainsFunc(f.client.Policy.Credentials, func(c feedhistory.Credential) bool {
		return feedhistory.SameOrigin(c.Origin, feed)
	})
}
