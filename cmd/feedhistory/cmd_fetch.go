package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// A fetchCommand is the verb fetch.
type fetchCommand struct {
	URLs   []string        `arg:"" sep:"none" name:"URL" help:"Addresses of feeds, or of pages that name them."`
	Since  terminal.Moment `placeholder:"TIME" help:"Print only entries from this time on: 2003-12-13, 2003-12-13T18:30:02Z, or how long ago, such as 7d or 48h."`
	Limit  int             `placeholder:"N" help:"Print only the latest N entries of each feed (default: 0, for all)."`
	Format string          `default:"" enum:",jsonl,json,atom,rss,csv" placeholder:"FORMAT" help:"jsonl: one entry a line (the default, but for a terminal, which shows a table); json: one object a line for each feed, with the verdict; atom, rss: one feed; csv: a table."`

	terminal.JSONFlag `set:"record=each entry"`

	Raw    bool   `help:"With jsonl: also print each entry as it was published, and lines about the feed, for import."`
	Output string `short:"o" placeholder:"FILE" help:"Write to a file instead of standard output. The file appears only when it is complete."`

	command.Budget
	command.Backfill
	command.NetworkFlags
	command.Login
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
		if err := terminal.CheckURL(url); err != nil {
			return err
		}
	}
	client, err := w.Authorized(show.Each(c.URLs, terminal.WebAddress)...)
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
	status := terminal.ExitOK
	for _, url := range c.URLs {
		f := &feedFetch{fetchCommand: c, World: w, client: client, out: bufio.NewWriterSize(out, 64<<10)}
		became, err := f.feed(url)
		if err != nil && (len(c.URLs) == 1 || terminal.IsOutputError(err)) {
			return err
		}
		if err != nil {
			w.Say(err.Error())
			became = terminal.ExitFailed
		}
		if status = terminal.WorseExit(status, became); w.Ctx.Err() != nil {
			break
		}
	}
	if c.Raw && status != terminal.ExitFailed && w.Ctx.Err() == nil {
		if err := (&mirror.Export{}).End(out); err != nil {
			return &terminal.OutputError{Err: err}
		}
	}
	if isCut := w.Ctx.Err() != nil; out.Name != "" && (isCut || status == terminal.ExitFailed) {
		if isCut {
			status = terminal.ExitInterrupted
		}
		w.Say("--output: " + out.Name + " was not written, because not everything was read")
	} else if err := out.Commit(); err != nil {
		return err
	}
	if status != terminal.ExitOK {
		return terminal.StatusError(status)
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
	posts   map[string]bool               // the posts printed, by Entry.Post
	gone    map[string]time.Time          // the times of the deletions so far, by ID
	twice   int                           // entries printed before a newer copy, or a deletion
	verdict feedhistory.Verdict           // on the whole feed
	limited bool                          // the feed has entries the flags do not ask for
}

// feed fetches a feed and prints it. It returns the exit status, or an error of the first
// document or of the output.
func (f *feedFetch) feed(url string) (status int, err error) {
	var result *backfill.Recovery
	url, err = f.Resolve(f.client, terminal.WebAddress(url), func(address string) error {
		result, err = f.history(address)
		return err
	})
	switch {
	case terminal.IsOutputError(err):
		return 0, err
	case result == nil:
		return 0, deadHint(url, err)
	}
	if err = cmp.Or(f.print(result), f.out.Flush()); err != nil {
		return 0, &terminal.OutputError{Err: err}
	}
	reportHistory(f.World, result.History, result.Verdict(), f.meaning(result))
	if f.twice > 0 {
		f.Tell(terminal.Count(f.twice, "entry was", "entries were") + " printed before a newer copy, or a deletion, arrived: the last line with an id counts")
	}
	if h := result.History; h.Kind == feedhistory.Plain && f.verdict == feedhistory.Window && !f.limited && f.Backfill.Methods(f.client) == nil {
		f.Tell("to look for earlier entries: feedhistory fetch --backfill " + terminal.WithoutUser(url) + "; to keep all later ones: feedhistory sync " + terminal.WithoutUser(url))
	}
	return terminal.ExitOf(result.Verdict()), nil
}

// deadHint returns the error of a feed that cannot be read. If its site, or the document, is
// gone, it says where there may be copies.
func deadHint(url string, err error) error {
	said := show.Failure(url, err)
	dns, _ := errors.AsType[*net.DNSError](err)
	if dns != nil && dns.IsNotFound || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; feedhistory entries %[2]s shows what is mirrored of it, https://web.archive.org/web/*/%[2]s may have copies", said, show.Address(url))
	}
	return said
}

// history reads the documents of a feed and merges them. After an interrupt, or if the
// first document is damaged, the history has a gap. If there is no history, history
// returns the error of the first document or of the output.
func (f *feedFetch) history(url string) (*backfill.Recovery, error) {
	f.merger, f.of, f.gone = feedhistory.Merger{}, "", map[string]time.Time{}
	if (f.Format == "jsonl" || f.Format == tableFormat) && !f.Raw && f.Limit == 0 { // with a limit, the latest entries are known only at the end
		f.printed, f.posts = map[string]*feedhistory.Entry{}, map[string]bool{}
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
			return nil, &terminal.OutputError{Err: printErr}
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
		return printRaw(f.out, r, f.isPrivate(show.FeedOf(r.History)))
	}
	if f.Format == tableFormat {
		for _, e := range r.History.Entries {
			if err := f.printEntry(e); err != nil {
				return err
			}
		}
		return nil
	}
	return printHistory(f.out, r, f.Format, f.isPrivate(show.FeedOf(r.History)))
}

// isPrivate reports whether there are credentials for the origin of a feed, or its address
// seems to have a secret.
func (f *feedFetch) isPrivate(feed string) bool {
	return mirror.NewFeed(feed).Private || slices.ContainsFunc(f.client.Credentials, func(c feedhistory.Credential) bool {
		return feedhistory.SameOrigin(c.Origin, feed)
	})
}

// This file prints entries as their documents arrive, and leaves out those the flags do
// not ask for.
//
// The newest documents arrive first, and a history begins with the newest entries: so
// fetch prints an entry when it first sees it. A feed whose older documents have newer
// copies breaks a rule (5005#16); fetch prints such a copy at the end, and so it does with
// the deletion of a printed entry.

// take prints the entries new in a document.
func (f *feedFetch) take(doc *feedhistory.Document, err error) error {
	if gap, ok := errors.AsType[*feedhistory.Gap](err); ok && doc == nil {
		doc = gap.Document
	}
	if doc == nil || f.printed == nil {
		return nil
	}
	if f.of == "" {
		f.of = show.AddressOf(doc)
	}
	for _, t := range doc.Deleted {
		if before, ok := f.gone[t.Ref]; !ok || t.When.After(before) {
			f.gone[t.Ref] = t.When
		}
	}
	for _, e := range doc.Entries {
		post := e.Post()
		if f.printed[e.ID] != nil || f.posts[post] || f.isGone(e) || !f.wants(e) {
			continue
		}
		f.posts[post] = post != ""
		if err := f.printEntry(e); err != nil {
			return err
		}
	}
	return f.out.Flush()
}

// isGone reports whether a tombstone already received may delete an entry. If it turns
// out not to delete the entry, printRest prints the entry.
func (f *feedFetch) isGone(e *feedhistory.Entry) bool {
	when, ok := f.gone[e.ID]
	return ok && (when.IsZero() || e.Updated.IsZero() || !when.Before(e.Updated))
}

// printEntry prints an entry as one line.
func (f *feedFetch) printEntry(e *feedhistory.Entry) error {
	if f.printed != nil {
		f.printed[e.ID] = e
	}
	if f.Format == tableFormat {
		link, _ := e.Links.Rel(feedhistory.RelAlternate)
		_, err := fmt.Fprintln(f.out, show.Line(&terminal.Page{Width: terminal.Width(f.Stdout)}, e, e.Time(), cmp.Or(link.Href, e.ID)))
		return err
	}
	record := publish.NewLine(e)
	record.Feed, record.Private = f.of, f.isPrivate(f.of)
	return terminal.WriteJSON(f.out, record)
}

// printRest prints the unprinted rest of the history: entries of which a newer copy
// arrived later, entries not deleted by a tombstone after all, and deletions of printed
// entries.
func (f *feedFetch) printRest(h *feedhistory.History) error {
	live := make(map[string]bool, len(h.Entries))
	for _, e := range h.Entries {
		live[e.ID] = true
		before := f.printed[e.ID]
		if before == e {
			continue
		}
		if before != nil {
			f.twice++
		}
		if err := f.printEntry(e); err != nil {
			return err
		}
	}
	for _, t := range h.Deleted {
		if f.printed[t.Ref] == nil || live[t.Ref] {
			continue
		}
		f.twice++
		if f.Format == tableFormat {
			continue
		}
		if err := terminal.WriteJSON(f.out, show.DeletionRecord(f.of, t)); err != nil {
			return err
		}
	}
	return nil
}

// wants reports whether an entry may be as recent as --since asks for: it was published or
// updated since, or has no time.
func (f *feedFetch) wants(e *feedhistory.Entry) bool {
	return f.Since.IsZero() || e.Time().IsZero() || !e.Time().Before(f.Since.Time) || !e.Changed().Before(f.Since.Time)
}

// latest returns the n entries with the latest times, in the given order. If an entry has
// no time, it returns the first n entries.
func latest(entries []*feedhistory.Entry, n int) []*feedhistory.Entry {
	if len(entries) <= n {
		return entries
	}
	if slices.ContainsFunc(entries, func(e *feedhistory.Entry) bool { return e.Time().IsZero() }) {
		return entries[:n]
	}
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b *feedhistory.Entry) int { return b.Time().Compare(a.Time()) })
	keep := map[*feedhistory.Entry]bool{}
	for _, e := range sorted[:n] {
		keep[e] = true
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e *feedhistory.Entry) bool { return !keep[e] })
}

// wanted returns the entries of a history within --since.
func (f *feedFetch) wanted(h *feedhistory.History) []*feedhistory.Entry {
	entries := make([]*feedhistory.Entry, 0, len(h.Entries))
	for _, e := range h.Entries {
		if f.wants(e) {
			entries = append(entries, e)
		}
	}
	return entries
}

// restrict removes from a history the entries the flags do not ask for. If there may be
// such entries, the history is a window at best: neither the history nor a feed made of it
// is complete.
func (f *feedFetch) restrict(h *feedhistory.History) {
	entries := f.wanted(h)
	if f.Limit > 0 {
		entries = latest(entries, f.Limit)
	}
	f.limited = len(entries) < len(h.Entries)
	h.Entries = entries
	if !f.limited || h.Head == nil {
		return
	}
	h.Head.Coverage = &feedhistory.Coverage{Of: h.Head.URL, Kind: h.Kind, Verdict: min(h.Verdict(), feedhistory.Window)}
}

// meaning explains the verdict, given the entries the flags ask for.
func (f *feedFetch) meaning(r *backfill.Recovery) string {
	if !f.limited {
		return f.VerdictText(r)
	}
	what := "the entries since " + f.Since.UTC().Format(time.RFC3339)
	switch {
	case f.Limit > 0 && !f.Since.IsZero():
		what = fmt.Sprintf("the latest %d of %s", f.Limit, what)
	case f.Limit > 0:
		what = "the latest " + terminal.Count(f.Limit, "entry", "entries")
	}
	text := "You asked only for " + what
	switch f.verdict {
	case feedhistory.Whole:
		return text + ", and they are all here."
	case feedhistory.Window:
		return text + "; the feed does not say whether there were others before its latest entries."
	case feedhistory.Lossy:
		return text + "; as pages shift while a feed grows, some of them may have slipped through."
	}
	return text + ", and some of them may be missing:"
}

// printHistory writes a history in one of the formats of --format. Lines of a private
// feed say so.
func printHistory(w io.Writer, r *backfill.Recovery, format string, private bool) error {
	switch format {
	case "json":
		return terminal.WriteJSON(w, command.NewRecoveredHistory(r))
	case "atom":
		doc := command.DocumentOf(r)
		if slices.ContainsFunc(doc.Entries, isUndated) || len(doc.Entries) == 0 && isUndated(&feedhistory.Entry{Source: doc}) {
			return errUndated
		}
		return compose.WriteAtom(w, doc)
	case "rss":
		return compose.WriteRSS(w, command.DocumentOf(r))
	case "csv":
		return show.PrintTable(w, recordsOf(r))
	}
	for record := range recordsOf(r) {
		record.Private = private
		if err := terminal.WriteJSON(w, record); err != nil {
			return err
		}
	}
	return nil
}

// errUndated is the error for a feed that Atom cannot express without inventing times.
var errUndated = errors.New("the feed cannot be written as Atom, which requires a time of each entry: neither the feed nor the server's response has one; " +
	"use --format rss or json, or mirror the feed with feedhistory sync, which keeps the time at which it first saw an entry")

// isUndated reports whether neither an entry nor its document has a time.
func isUndated(e *feedhistory.Entry) bool {
	s := e.Source
	return e.Changed().IsZero() && (s == nil || s.Updated.IsZero() && s.Published.IsZero() && s.LastModified.IsZero())
}

// recordsOf yields a history's entries.
func recordsOf(r *backfill.Recovery) iter.Seq2[*publish.Line, error] {
	return func(yield func(*publish.Line, error) bool) {
		feed := show.FeedOf(r.History)
		for _, e := range r.History.Entries {
			record := publish.NewLine(e)
			if record.Feed = feed; !yield(record, nil) {
				return
			}
		}
	}
}

// reportHistory summarizes a history: its size, the verdict with its meaning, and each gap.
func reportHistory(w *command.World, h *feedhistory.History, v feedhistory.Verdict, meaning string) {
	p := terminal.NewPage(w.Asides())
	what := fmt.Sprintf("%s feed · %s · %s", h.Kind, terminal.Count(h.Documents, "document", "documents"),
		terminal.Count(len(h.Entries), "entry", "entries"))
	if n := len(h.Deleted); n > 0 {
		what += fmt.Sprintf(" · %d deleted", n)
	}
	p.Para("", "", what)
	p.Para("", "", fmt.Sprintf("verdict: %s. %s", v, meaning))
	missing := terminal.NewPage(w.Stderr)
	for _, g := range h.Gaps {
		show.PrintGap(missing, g)
	}
}
