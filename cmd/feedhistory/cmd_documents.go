package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/check"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/rivo/uniseg"
)

// An inspectCommand is the verb inspect.
type inspectCommand struct {
	Source string `arg:"" name:"URL|FILE|-" help:"The document: a URL, a file, or - for standard input."`
	Base   string `placeholder:"URL" help:"URL against which relative references in a file resolve."`

	terminal.JSONFlag `set:"record=the document"`

	command.NetworkFlags
	command.Login
}

// Help returns the text of --help before the flags.
func (c *inspectCommand) Help() string {
	return "If the document is damaged, inspect shows the part before the damage, reports the damage on standard error, and exits with status 1."
}

// Run shows the document.
func (c *inspectCommand) Run(w *command.World) error {
	if c.Base != "" {
		if u, err := url.Parse(c.Base); err != nil || !u.IsAbs() {
			return terminal.UsageError("--base: " + c.Base + " is not an absolute URL")
		}
	}
	doc, err := w.Document(c.Source, c.Base)
	if doc == nil {
		return show.Failure(c.Source, err)
	}
	if failed := c.show(w, doc); failed != nil || err == nil {
		return failed
	}
	w.Say(show.Failure(c.Source, err).Error())
	w.Say("the document is damaged; the output is the part before the damage")
	return terminal.StatusError(terminal.ExitFailed)
}

func (c *inspectCommand) show(w *command.World, doc *feedhistory.Document) error {
	if c.JSON {
		return terminal.WriteJSON(w.Stdout, show.NewDocument(doc, command.BackfillMethods(doc)))
	}
	p := terminal.NewPage(w.Stdout)
	url := cmp.Or(show.Address(doc.URL), "URL")
	show.PrintDocument(p, doc, command.OlderHint("fetch", url, doc, feedhistory.VerdictWindow, backfill.Probe{}, false))
	return p.Err
}

// A fetchCommand is the verb fetch.
type fetchCommand struct {
	URLs   []string        `arg:"" sep:"none" name:"URL" help:"Addresses of feeds, or of pages that name them, or accounts such as @ada@example.org."`
	Since  terminal.Moment `placeholder:"TIME" help:"Print only entries from this time on: 2003-12-13, 2003-12-13T18:30:02Z, or how long ago, such as 7d or 48h."`
	Limit  int             `least:"0" placeholder:"N" help:"Print only the latest N entries of each feed (default: 0, for all)."`
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

// Validate refuses flags unsuitable for the format.
func (c *fetchCommand) Validate() error {
	switch {
	case c.JSON && c.Format != "" && c.Format != "jsonl":
		return errors.New("--json and --format " + c.Format + " exclude each other")
	case len(c.URLs) > 1 && (c.Format == "atom" || c.Format == "rss" || c.Format == "csv"):
		return errors.New("--format " + c.Format + ": give one URL, because it is one feed")
	case c.Raw && c.Format != "" && c.Format != "jsonl":
		return errors.New("--raw is for jsonl")
	}
	return nil
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
		if err := mirror.ExportEnd(out); err != nil {
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
	first  *feedhistory.Document
	head   *show.Head // to be printed with the first entry; nil when that is done

	merger  feedhistory.Merger
	printed map[string]*feedhistory.Entry // by ID; nil if nothing is printed before the end
	posts   map[string]bool               // the posts printed, by Entry.Post
	deleted map[string]time.Time          // the times of the deletions so far, by ID
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
		return 0, f.deadHint(url, err)
	}
	if err = cmp.Or(f.print(result), f.out.Flush()); err != nil {
		return 0, &terminal.OutputError{Err: err}
	}
	reportHistory(f.World, result.History, result.Verdict(), f.meaning(result))
	if f.twice > 0 {
		f.Tell(terminal.Count(f.twice, "entry was", "entries were") + " printed before a newer copy, or a deletion, arrived: the last line with an id counts")
	}
	name := show.Address(url)
	if hint := command.OlderHint("fetch", name, f.first, f.verdict, result.Probe, f.isPrivate(url)); hint != "" && !f.limited && f.Ctx.Err() == nil {
		f.Tell(hint + "; to keep all later ones: feedhistory sync " + name)
	}
	return terminal.ExitOf(result.Verdict()), nil
}

// deadHint returns the error of a feed that cannot be read. If its site, or the document, is
// gone, it says where there are copies, or may be.
func (f *feedFetch) deadHint(url string, err error) error {
	said := show.Failure(url, err)
	dns, _ := errors.AsType[*net.DNSError](err)
	if (dns == nil || !dns.IsNotFound) && !errors.Is(err, fs.ErrNotExist) {
		return said
	}
	text := said.Error()
	if f.isMirrored(url) {
		text += "; feedhistory entries " + show.Address(url) + " shows what is mirrored of it"
	}
	if terminal.IsPublicHost(url) && !f.isPrivate(url) {
		text += "; https://web.archive.org/web/*/" + url + " may have copies"
	}
	return errors.New(text)
}

// isMirrored reports whether the usual database has entries of a feed.
func (f *feedFetch) isMirrored(url string) bool {
	location := &database.Location{DB: os.Getenv("FEEDHISTORY_DB")}
	store, err := location.Read(f.World)
	if err != nil {
		return false
	}
	defer store.Close()
	feed, err := store.Feed(f.Ctx, terminal.FeedName(url))
	return err == nil && feed.Entries > 0
}

// history reads the documents of a feed and merges them. After an interrupt, or if the
// first document is damaged, the history has a gap. If there is no history, history
// returns the error of the first document or of the output.
func (f *feedFetch) history(url string) (*backfill.Recovery, error) {
	f.merger, f.of, f.first, f.deleted = feedhistory.Merger{}, "", nil, map[string]time.Time{}
	if (f.Format == "jsonl" || f.Format == tableFormat) && !f.Raw && f.Limit == 0 { // with a limit, the latest entries are known only at the end
		f.printed, f.posts = map[string]*feedhistory.Entry{}, map[string]bool{}
	}
	walk := f.Walk(f.Ctx, f.client, url, f.Tell)
	p := &command.Progress{}
	if f.printed == nil || f.fetchCommand.Output != "" || !terminal.IsTerminal(f.Stdout) { // otherwise the entries show the progress
		p = f.NewProgress()
	}
	defer p.End()
	for r, err := range p.Watch(walk.Readings) {
		more := f.merger.Add(r, err)
		doc := r.Readable()
		f.first = cmp.Or(f.first, doc)
		if err := f.printNew(doc); err != nil {
			return nil, &terminal.OutputError{Err: err}
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

// Entries are printed as their documents arrive, without those the flags do not ask for.
// The newest documents arrive first, and a history begins with the newest entries: so
// fetch prints an entry when it first sees it. A feed whose older documents have newer
// copies breaks a rule (5005#16); fetch prints such a copy at the end, and so it does with
// the deletion of a printed entry.

// printNew prints the entries new in a document; nil has none.
func (f *feedFetch) printNew(doc *feedhistory.Document) error {
	if doc == nil || f.printed == nil {
		return nil
	}
	if f.of == "" {
		f.of, f.head = show.AddressOf(doc), show.NewHead(doc)
	}
	for _, t := range doc.Deleted {
		if before, ok := f.deleted[t.Ref]; !ok || t.When.After(before) {
			f.deleted[t.Ref] = t.When
		}
	}
	for _, e := range doc.Entries {
		post := e.Post()
		if f.printed[e.ID] != nil || f.posts[post] || f.isDeleted(e) || !f.wants(e) {
			continue
		}
		f.posts[post] = post != ""
		if err := f.printEntry(e); err != nil {
			return err
		}
	}
	return f.out.Flush()
}

// isDeleted reports whether a tombstone already received may delete an entry. If it turns
// out not to delete the entry, printRest prints the entry.
func (f *feedFetch) isDeleted(e *feedhistory.Entry) bool {
	when, ok := f.deleted[e.ID]
	return ok && (when.IsZero() || e.Updated.IsZero() || !when.Before(e.Updated))
}

// printEntry prints an entry as one line.
func (f *feedFetch) printEntry(e *feedhistory.Entry) error {
	if f.printed != nil {
		f.printed[e.ID] = e
	}
	if f.Format == tableFormat {
		link, _ := e.Links.Rel("alternate")
		_, err := fmt.Fprintln(f.out, show.Line(terminal.PageOn(f.Stdout, nil), e, e.Time(), cmp.Or(link.Href, e.ID)))
		return err
	}
	record := publish.NewLine(e)
	record.Feed, record.Private = f.of, f.isPrivate(f.of)
	head := f.head
	f.head = nil
	return terminal.WriteJSON(f.out, show.FirstLine{Line: record, Head: head})
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
	h.Head.Coverage = &feedhistory.Coverage{Of: h.Head.URL, Kind: h.Kind, Verdict: min(h.Verdict(), feedhistory.VerdictWindow)}
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
	case feedhistory.VerdictWhole:
		return text + ", and they are all here."
	case feedhistory.VerdictWindow:
		return text + "; the feed does not say whether there were others before its latest entries."
	case feedhistory.VerdictLossy:
		return text + "; as pages shift while a feed grows, some of them may have slipped through."
	}
	return text + ", and some of them may be missing:"
}

// printHistory writes a history in one of the formats of --format. Lines of a private
// feed say so.
func printHistory(w io.Writer, r *backfill.Recovery, format string, private bool) error {
	switch format {
	case "json":
		return terminal.WriteJSON(w, show.NewHistory(r))
	case "atom":
		doc := command.DocumentOf(r)
		if slices.ContainsFunc(doc.Entries, isUndated) || len(doc.Entries) == 0 && isUndated(&feedhistory.Entry{Head: doc}) {
			return errUndated
		}
		return compose.WriteAtom(w, doc)
	case "rss":
		return compose.WriteRSS(w, command.DocumentOf(r))
	case "csv":
		return show.PrintTable(w, recordsOf(r))
	}
	head := show.NewHead(r.History.Head)
	for record := range recordsOf(r) {
		record.Private = private
		if err := terminal.WriteJSON(w, show.FirstLine{Line: record, Head: head}); err != nil {
			return err
		}
		head = nil
	}
	return nil
}

// errUndated is the error for a feed that Atom cannot express without inventing times.
var errUndated = errors.New("the feed cannot be written as Atom, which requires a time of each entry: neither the feed nor the server's response has one; " +
	"use --format rss or json, or mirror the feed with feedhistory sync, which keeps the time at which it first saw an entry")

// isUndated reports whether neither an entry nor its document has a time.
func isUndated(e *feedhistory.Entry) bool {
	s := e.Head
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
	p.Para("", "", terminal.Counts(what, terminal.Part{N: len(h.Deleted), Says: "deleted"}))
	p.Para("verdict: "+p.Styled(v.String(), show.StyleOf(v))+". ", "", meaning)
	missing := terminal.NewPage(w.Stderr)
	for _, g := range h.Gaps {
		show.PrintGap(missing, g)
	}
}

// A checkCommand is the verb check.
type checkCommand struct {
	Sources         []string `arg:"" name:"URL|FILE|DIR|-" help:"The documents: URLs, files, or - for standard input. Of a directory, the whole chain of its feed, as it will be served."`
	Chain           bool     `help:"Check not only each document, but also the whole chain of documents from it."`
	Base            string   `placeholder:"URL" help:"URL where the first FILE will be served; with a slash at the end, the URL of its directory."`
	Profile         string   `default:"rfc5005" enum:"rfc5005,atom-pmh,datareplication,modified-range" placeholder:"NAME" help:"The rules: rfc5005 (the default), atom-pmh, or, with --chain, datareplication or modified-range."`
	Digests         string   `placeholder:"FILE" help:"With --chain: report the archives that have changed since the last run, and record them in a file for the next."`
	Save            string   `placeholder:"FILE" help:"With --chain: record the archives in a file, for --against."`
	Against         string   `placeholder:"FILE" help:"With --chain: report the archives that have changed since --save recorded them."`
	Representations bool     `help:"With --profile atom-pmh: also request a sample of 20 records' representations."`
	MaxDocuments    int      `default:"10000" least:"1" placeholder:"N" help:"With --chain: read at most N documents (default: ${default})."`

	findingsFormat
	command.NetworkFlags
	command.Login
}

// Help returns the text of --help before the flags.
func (c *checkCommand) Help() string {
	return "The exit status is 1 if check finds an error or cannot read a file, and 0 if it finds only warnings and notes. " +
		"With --chain and --base, check follows the chain of a FILE through the files of its directory, as they will be served, and makes no request."
}

// Validate refuses URLs that cannot be fetched, and incompatible flags.
func (c *checkCommand) Validate() error {
	c.chainOfDirectory()
	switch {
	case c.Base != "" && !terminal.IsWeb(c.Base):
		return errors.New("--base: " + c.Base + " is not an absolute URL")
	case (c.Digests != "" || c.Save != "" || c.Against != "") && !c.Chain:
		return errors.New("--digests, --save and --against are for --chain")
	case c.profile() > check.AtomPMH && (!c.Chain || !allURLs(c.Sources)):
		return errors.New("--profile: " + c.Profile + " is for --chain and URLs, as it is about HTTP header fields")
	case c.Representations && c.profile() != check.AtomPMH:
		return errors.New("--representations is for --profile atom-pmh")
	}
	files := 0
	for i, source := range c.Sources {
		source = terminal.SourceAddress(source)
		c.Sources[i] = source
		if terminal.IsURL(source) {
			if err := terminal.CheckURL(source); err != nil {
				return err
			}
			continue
		}
		if files++; c.Chain && c.Base == "" {
			return errors.New("--chain: a file needs --base, the URL where it will be served")
		}
		if source == "-" && c.Chain {
			return errors.New("--chain: standard input has no directory that could contain the chain")
		}
	}
	if files > 1 && c.Base != "" && !strings.HasSuffix(c.Base, "/") {
		return errors.New("--base: for several files, give the URL of their directory, with a slash at the end")
	}
	return nil
}

// chainOfDirectory makes a directory an argument for the chain of its feed, which says where it
// will be served, unless --base does.
func (c *checkCommand) chainOfDirectory() {
	if len(c.Sources) != 1 || !isDirectory(c.Sources[0]) {
		return
	}
	name := feedIn(c.Sources[0])
	f, err := os.Open(name)
	if err != nil {
		return
	}
	defer f.Close()
	doc, err := feedhistory.Parse(f, "")
	if err != nil {
		return
	}
	if self, _ := doc.Links.Rel("self"); terminal.IsWeb(self.Href) {
		c.Sources[0], c.Chain, c.Base = name, true, cmp.Or(c.Base, self.Href)
	}
}

func allURLs(sources []string) bool {
	return !slices.ContainsFunc(sources, func(source string) bool { return !terminal.IsURL(source) })
}

// Run checks the sources and prints the findings.
func (c *checkCommand) Run(w *command.World) error {
	run := &checkRun{checkCommand: c, World: w, ofPages: map[string]bool{}}
	if err := run.remembered(); err != nil {
		return err
	}
	for _, source := range c.Sources {
		if err := run.source(source); err != nil && run.documents == 0 {
			return show.Failure(source, err)
		} else if err != nil {
			return errors.Join(run.print(), show.Failure(source, err))
		}
	}
	run.acceptLone()
	if err := run.representations(); err != nil {
		return errors.Join(run.print(), err)
	}
	if err := run.print(); err != nil {
		return err
	}
	if file := cmp.Or(c.Digests, c.Save); file != "" {
		if err := run.digests.Write(file); err != nil {
			return err
		}
	}
	if run.failed || check.HasErrors(run.found) {
		return terminal.StatusError(terminal.ExitFailed)
	}
	return nil
}

// A checkRun is one run of the verb.
type checkRun struct {
	*checkCommand
	*command.World
	digests   *check.Digests
	found     []check.Finding
	documents int
	samples   []*check.Sample // for each source, with --representations
	failed    bool            // a file could not be read at all
	ofPages   map[string]bool // addresses of feeds named by web pages
	lone      []loneArchive   // archives that name no other
	preceding map[string]bool // addresses named as prev-archive by subscription documents
}

// remembered reads the digests recorded by an earlier run.
func (r *checkRun) remembered() (err error) {
	if err := errors.Join(terminal.CheckTarget("--digests", r.Digests), terminal.CheckTarget("--save", r.Save)); err != nil {
		return err
	}
	switch file := cmp.Or(r.Digests, r.Against); {
	case file != "":
		if r.Against != "" {
			if _, err := os.Stat(r.Against); err != nil {
				return terminal.UsageError("--against: " + r.Against + ": " + show.Detail(err))
			}
		}
		r.digests, err = check.ReadDigests(file)
	case r.Save != "":
		r.digests = new(check.Digests)
	}
	return err
}

func (c *checkCommand) profile() check.Profile {
	for _, p := range []check.Profile{check.AtomPMH, check.DataReplication, check.ModifiedRange} {
		if c.Profile == p.String() {
			return p
		}
	}
	return check.RFC5005
}

// source checks the document or the chain named by an argument. It returns an error
// only if the credentials are wrong or the context has ended.
func (r *checkRun) source(arg string) error {
	switch {
	case isDirectory(arg):
		r.failed = true
		r.Say(arg + " is a directory: check its feed, and all documents that it leads to, with --chain --base=URL " + feedIn(arg))
		return nil
	case r.Chain && terminal.IsURL(arg):
		client, err := r.Authorized(arg)
		if err != nil {
			return err
		}
		return r.chain(arg, client, func(url string) string { return url })
	case r.Chain && !r.exists(arg):
		return nil
	case r.Chain:
		files := &fileTransport{File: arg, URL: r.base(arg)}
		client := &feedhistory.Client{AllowPrivate: true, Transport: files}
		return r.chain(files.URL, client, files.Name)
	}
	doc, err := r.read(arg)
	if feed := r.feedAt(arg, err); feed != "" {
		arg = feed
		doc, err = r.read(arg)
	}
	if r.Ctx.Err() != nil {
		return r.Ctx.Err()
	}
	if _, damaged := errors.AsType[*feedhistory.ParseError](err); err != nil && doc == nil && !damaged && !terminal.IsURL(arg) {
		r.unreadable(arg, err)
		return nil
	}
	r.documents++
	if sample := r.sample(); sample != nil && doc != nil {
		sample.Add(doc)
	}
	r.relate(doc, arg)
	r.add(check.Document(doc, err, r.profile()), arg, err)
	return nil
}

func isDirectory(arg string) bool {
	info, err := os.Stat(arg)
	return err == nil && info.IsDir() && !terminal.IsURL(arg)
}

// feedIn returns the likely name of the feed in a directory.
func feedIn(dir string) string {
	for _, pattern := range []string{"feed.*", "index.atom", "index.xml", "atom.xml", "rss.xml", "*.atom", "*.rss", "*.xml"} {
		if names, err := filepath.Glob(filepath.Join(dir, pattern)); err == nil && len(names) > 0 {
			return names[0]
		}
	}
	return filepath.Join(dir, "FILE")
}

// A loneArchive is an archive document that names no other.
type loneArchive struct{ self, file string }

// relate records how a document belongs to the others.
func (r *checkRun) relate(doc *feedhistory.Document, arg string) {
	if doc == nil {
		return
	}
	prev, ok := doc.Links.Rel("prev-archive")
	switch self, _ := doc.Links.Rel("self"); {
	case doc.Archive && !ok:
		r.lone = append(r.lone, loneArchive{self.Href, arg})
	case ok && !doc.Archive:
		if r.preceding == nil {
			r.preceding = map[string]bool{}
		}
		r.preceding[prev.Href] = true
	}
}

// acceptLone removes the finding that an archive names no other, if the subscription
// document that precedes it was checked, too: a feed's first archive is alone.
func (r *checkRun) acceptLone() {
	for _, archive := range r.lone {
		if r.preceding[archive.self] {
			r.found = slices.DeleteFunc(r.found, func(f check.Finding) bool {
				return f.Code == "archive-without-links" && (f.URL == archive.file || f.URL == archive.self)
			})
		}
	}
}

// feedAt returns the address of the feed of the web page an argument names, given the
// error of reading the page; "" if there is none. It does not follow a page named by
// another page as its feed.
func (r *checkRun) feedAt(arg string, err error) string {
	if !terminal.IsURL(arg) || r.ofPages[arg] {
		return ""
	}
	client, wrong := r.Authorized(arg)
	if wrong != nil {
		return ""
	}
	defer client.CloseIdle()
	feeds := command.FeedsOf(r.Ctx, client, arg, err)
	if len(feeds) == 0 {
		return ""
	}
	r.TellFeeds(arg, feeds)
	r.ofPages[feeds[0].Href] = true
	return feeds[0].Href
}

// feedOfPage does the same as feedAt, given a finding on the first document of a chain.
func (r *checkRun) feedOfPage(feed string, f check.Finding, client *feedhistory.Client) string {
	if f.Code != "not-a-feed" || f.URL != feed || !slices.Contains(r.Sources, feed) { // a file is never requested
		return ""
	}
	_, err := client.Get(r.Ctx, feed)
	return r.feedAt(feed, err)
}

// unreadable reports an unreadable file. The check continues with the others.
func (r *checkRun) unreadable(file string, err error) {
	r.failed = true
	r.Say(show.Failure(file, err).Error())
}

func (r *checkRun) exists(file string) bool {
	f, err := r.Open(file)
	if err != nil {
		r.unreadable(file, err)
		return false
	}
	return f.Close() == nil
}

// add keeps the findings on a document, under the name given by the argument.
func (r *checkRun) add(found []check.Finding, arg string, err error) {
	for _, f := range found {
		if !terminal.IsURL(arg) {
			f.URL = arg
		} else if f.URL == "" {
			f.URL = terminal.WithoutUser(arg)
		}
		if todo := show.Remedy(err); terminal.IsURL(arg) && todo != "" && f.Level == check.Error && f.Line == 0 {
			f.Hint = todo
		}
		r.found = append(r.found, f)
	}
}

func (r *checkRun) read(arg string) (*feedhistory.Document, error) {
	if terminal.IsURL(arg) {
		return r.Document(arg, "")
	}
	return r.Document(arg, r.base(arg))
}

// base returns the URL where a file will be served. A base with a slash at its end is
// the URL of the first file's directory.
func (r *checkRun) base(arg string) string {
	if !strings.HasSuffix(r.Base, "/") || arg == "-" {
		return r.Base
	}
	first := arg
	for _, source := range r.Sources {
		if !terminal.IsURL(source) && source != "-" {
			first = source
			break
		}
	}
	rel, err := filepath.Rel(filepath.Dir(first), arg)
	base, baseErr := url.Parse(r.Base)
	if err != nil || baseErr != nil {
		return r.Base
	}
	return base.ResolveReference(&url.URL{Path: filepath.ToSlash(rel)}).String()
}

// chain checks a whole chain. Findings name each document by the result of name for its
// URL.
func (r *checkRun) chain(feed string, client *feedhistory.Client, name func(url string) string) error {
	defer client.CloseIdle()
	client.Budget.Documents = r.MaxDocuments
	c := check.Chain{Profile: r.profile(), Digests: r.digests, Sample: r.sample()}
	bar := r.NewBar(0, "reading the chain")
	bar.Update(func() string { return terminal.Count(r.World.Traffic().Answers(), "answer", "answers") })
	defer func() { bar.End() }()
	defer func() { r.documents += c.Documents() }() // even if an interrupt ends the walk
	for f, err := range c.Check(r.Ctx, client, feed) {
		switch {
		case r.Ctx.Err() != nil:
			return r.Ctx.Err()
		case err != nil:
			r.add(check.Document(nil, err, r.profile()), feed, err)
		default:
			if of := r.feedOfPage(feed, f, client); of != "" {
				bar.End()
				bar = nil
				return r.chain(of, client, name)
			}
			f.URL = name(f.URL)
			r.found = append(r.found, f)
		}
	}
	return nil
}

// sample returns a new sample for a source; nil without --representations.
func (r *checkRun) sample() *check.Sample {
	if !r.Representations {
		return nil
	}
	s := new(check.Sample)
	r.samples = append(r.samples, s)
	return s
}

// representations checks the samples. The credentials are for the feeds' origins.
func (r *checkRun) representations() error {
	if len(r.samples) == 0 {
		return nil
	}
	client, err := r.Authorized(slices.DeleteFunc(slices.Clone(r.Sources), func(s string) bool { return !terminal.IsURL(s) })...)
	if err != nil {
		return err
	}
	defer client.CloseIdle()
	for _, s := range r.samples {
		for f, err := range s.Check(r.Ctx, client) {
			if err != nil {
				return err
			}
			r.found = append(r.found, f)
		}
	}
	return nil
}

// print prints the findings.
func (r *checkRun) print() error {
	if r.IsForPrograms() {
		return r.Write(r.Stdout, r.found)
	}
	p := terminal.NewPage(r.Stdout)
	if r.documents > 0 || !r.failed {
		showFindings(p, r.found, r.documents)
	}
	if os.Getenv("GITHUB_ACTIONS") == "true" {
		annotate(p, r.found)
	}
	return p.Err
}

// annotate prints findings as workflow commands of GitHub Actions, which shows them at the lines
// of the files.
func annotate(p *terminal.Page, found []check.Finding) {
	value := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for _, f := range found {
		command := map[check.Level]string{check.Error: "error", check.Warning: "warning", check.Note: "notice"}[f.Level]
		text := "::" + command + " title=" + property.Replace(f.Code+" ("+f.Clause+")")
		if !terminal.IsURL(f.URL) && f.URL != "" && f.URL != "-" {
			text += ",file=" + property.Replace(filepath.ToSlash(f.URL))
		}
		if f.Line > 0 {
			text += fmt.Sprintf(",line=%d,col=%d", f.Line, f.Column)
		}
		p.Line(text + "::" + value.Replace(terminal.Clean(show.WithoutSecrets(f.Message+"; "+f.Hint))))
	}
}

// showFindings shows the findings on each document, with their lines, and a summary. It shows
// each hint on a kind of finding once, and a note on many documents with the first.
func showFindings(p *terminal.Page, found []check.Finding, documents int) {
	var urls []string
	byURL := map[string][]check.Finding{}
	levels := map[check.Level]int{}
	for _, f := range found {
		if _, ok := byURL[f.URL]; !ok {
			urls = append(urls, f.URL)
		}
		byURL[f.URL] = append(byURL[f.URL], f)
		levels[f.Level]++
	}
	repeated := map[string]int{}
	for _, f := range found {
		repeated[noteKey(f)]++
	}
	hinted := map[string]bool{}
	for _, url := range urls {
		byURL[url] = slices.DeleteFunc(byURL[url], func(f check.Finding) bool { return repeated[noteKey(f)] == 0 })
		if len(byURL[url]) == 0 {
			continue
		}
		p.Line(terminal.Clean(documentName(url)))
		for _, f := range byURL[url] {
			if key := noteKey(f); key != "" {
				if others := repeated[key] - 1; others > 0 {
					f.Message += "; the same in " + terminal.Count(others, "other document", "other documents")
				}
				repeated[key] = 0
			}
			showFinding(p, f, !hinted[f.Code+f.Hint])
			hinted[f.Code+f.Hint] = true
		}
		p.Line("")
	}
	sum := terminal.Count(documents, "document", "documents") + " checked: "
	if len(found) == 0 {
		p.Line(sum + "nothing to report")
		return
	}
	p.Para("", "", sum+strings.Join([]string{
		terminal.Count(levels[check.Error], "error", "errors"),
		terminal.Count(levels[check.Warning], "warning", "warnings"),
		terminal.Count(levels[check.Note], "note", "notes"),
	}, ", "))
}

// noteKey identifies equal notes on several documents; "" for a finding to show with each of them.
func noteKey(f check.Finding) string {
	if f.Level != check.Note || f.Quote != (check.Quote{}) {
		return ""
	}
	return f.Code + "\n" + f.Message
}

func documentName(url string) string {
	if url == "" {
		return "(a document without a URL)"
	}
	return show.DocumentName(url)
}

var levelStyles = map[check.Level]terminal.Style{check.Error: terminal.Bad, check.Warning: terminal.Doubtful}

// showFinding shows one finding.
func showFinding(p *terminal.Page, f check.Finding, hint bool) {
	const indent = "      "
	place := "  "
	if f.Line > 0 {
		place += fmt.Sprintf("%d:%d: ", f.Line, f.Column)
	}
	p.Para(place+p.Styled(string(f.Level), levelStyles[f.Level])+": ", indent, fmt.Sprintf("%s [%s, %s]", show.WithoutSecrets(f.Message), f.Code, f.Clause))
	showQuote(p, indent, quoteOf(f))
	if hint && f.Hint != "" {
		p.Para(indent, indent, "→ "+show.WithoutSecrets(f.Hint))
	}
}

// quoteOf returns a finding's quote without the secrets of addresses. A quote may begin
// within one.
func quoteOf(f check.Finding) check.Quote {
	q := check.Quote{Before: show.WithoutSecrets(f.Quote.Before), After: show.WithoutSecrets(f.Quote.After)}
	if end := strings.IndexAny(f.Quote.Before, "\"'<>?"); end >= 0 && show.Address(f.URL) != f.URL && strings.ContainsRune("\"'", rune(f.Quote.Before[end])) {
		q.Before = "…" + show.WithoutSecrets(f.Quote.Before[end:])
	}
	return q
}

// showQuote shows a line of a document, with a caret below the place of a finding.
func showQuote(p *terminal.Page, indent string, q check.Quote) {
	before, after := strings.TrimLeft(cleanLine(q.Before), " "), strings.TrimRight(cleanLine(q.After), " ")
	if before == "" && after == "" {
		return
	}
	width := p.Columns() - len(indent) - 2
	most := min(40, width/2) // columns before the place
	for uniseg.StringWidth(before) > most {
		runes := []rune(strings.TrimPrefix(before, "…"))
		before = "…" + string(runes[max(1, len(runes)/4):])
	}
	p.Line(indent + "| " + terminal.Cut(before+after, width))
	p.Line(indent + "| " + strings.Repeat(" ", uniseg.StringWidth(before)) + "^")
}

// cleanLine does the same as clean, but keeps each space, because the caret on the next
// findingLine marks a place in the text.
func cleanLine(s string) string {
	words := strings.Split(strings.ReplaceAll(s, "\t", " "), " ")
	return strings.Join(show.Each(words, terminal.Clean), " ")
}

// findingsFormat are the flags for findings in a form for programs.
type findingsFormat struct {
	JSON  bool `name:"json" xor:"format" help:"Print JSON Lines (one object a line): each finding."`
	SARIF bool `name:"sarif" xor:"format" help:"Print SARIF 2.1.0, for build systems."`
}

// IsForPrograms reports whether the flags ask for such a form.
func (f *findingsFormat) IsForPrograms() bool { return f.JSON || f.SARIF }

// Write writes findings in the form the flags ask for.
func (f *findingsFormat) Write(w io.Writer, found []check.Finding) error {
	var out bytes.Buffer
	if f.SARIF {
		if err := check.WriteSARIF(&out, found); err != nil {
			return err
		}
		_, err := w.Write(terminal.JSON(out.Bytes()))
		return err
	}
	for _, f := range found {
		if err := terminal.WriteJSON(&out, findingLine{f.Code, f.Clause, string(f.Level), f.Message, f.Where(), f.Hint}); err != nil {
			return err
		}
	}
	_, err := w.Write(out.Bytes())
	return err
}

// A findingLine is a finding in JSON Lines.
type findingLine struct {
	Code    string `json:"code"`
	Clause  string `json:"clause"`
	Level   string `json:"level"`
	Message string `json:"message"`
	Where   string `json:"where"`
	Hint    string `json:"hint"`
}

// A fileTransport answers requests with the files of a feed's directory, as a web server
// of that directory will. A link works only if its target is a file.
type fileTransport struct {
	File string // the feed's file
	URL  string // the URL where it will be served
}

// RoundTrip implements http.RoundTripper. It answers with the file at the URL, or with
// status 404.
func (t *fileTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp := &http.Response{
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: req,
		StatusCode: http.StatusNotFound,
	}
	name, ok := t.path(req.URL)
	if !ok {
		return resp, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return resp, nil
	}
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		_ = f.Close()
		return resp, nil
	}
	resp.StatusCode, resp.Body, resp.ContentLength = http.StatusOK, f, info.Size()
	resp.Header.Set("Last-Modified", info.ModTime().UTC().Format(http.TimeFormat)) // as a server would, so check does not miss them
	resp.Header.Set("Cache-Control", "no-cache")
	return resp, nil
}

// path returns the file to be served at a URL.
func (t *fileTransport) path(u *url.URL) (string, bool) {
	feed, err := url.Parse(t.URL)
	if err != nil || u.Scheme != feed.Scheme || !strings.EqualFold(u.Host, feed.Host) {
		return "", false
	}
	if u.Path == feed.Path {
		return t.File, true
	}
	dir := feed.Path[:strings.LastIndexByte(feed.Path, '/')+1]
	rel, err := filepath.Rel(filepath.FromSlash("/"+dir), filepath.FromSlash("/"+u.Path))
	if err != nil {
		return "", false
	}
	return filepath.Join(filepath.Dir(t.File), rel), true
}

// Name returns the name of the file at a URL, or the URL if there is no such file.
func (t *fileTransport) Name(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return link
	}
	name, ok := t.path(u)
	if _, err := os.Stat(name); !ok || err != nil {
		return link
	}
	return name
}
