// Package command has the environment of feedhistory's verbs: the context, the standard
// streams, and the flags common to several verbs: for requests, credentials, and the
// files, URLs and outputs named by arguments.
package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"
	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/backfill/sitemap"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/mirror"
)

// isInterrupt reports whether an interrupt caused an error.
func (w *World) isInterrupt(err error) bool {
	return w.Ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, terminal.ErrInterrupted))
}

// Globals are the flags common to all verbs.
type Globals struct {
	Quiet   bool             `short:"q" help:"On standard error, print only errors and gaps."`
	Version kong.VersionFlag `help:"Print the version."`
}

// Validate refuses values of any verb's flags that are too small.
func (g *Globals) Validate(call *kong.Context) error { return terminal.CheckLeast(call) }

// A World is the environment of a verb: the flags common to several verbs, the context,
// and the standard streams.
type World struct {
	*Globals
	*NetworkFlags // the verb's; zero if it makes no requests
	*Login        // the verb's; nil if it has none
	Ctx           context.Context
	Stdin         io.Reader
	Stdout        io.Writer
	SetBy         func(flag string) string // what has set a flag missing on the command line; nil or "" means nothing
	AllVerbs      bool                     // Parse needs the flags of all verbs, whatever the command line names
	terminal.Voice
}

// NewWorld returns the environment of a command's verb.
func NewWorld(ctx context.Context, name string, globals *Globals, stdin io.Reader, stdout, stderr io.Writer) *World {
	w := &World{
		Globals: globals, NetworkFlags: &NetworkFlags{}, Ctx: ctx, Stdout: &terminal.StdoutWriter{Writer: stdout},
		Voice: terminal.Voice{Command: name, Stderr: stderr, Silent: &globals.Quiet},
	}
	w.Stdin = &terminal.StdinReader{Ctx: ctx, In: stdin, Waits: func() { w.Tell("reading from the terminal; Ctrl-D ends it") }}
	return w
}

// Parse reads a command line. The error may be a StatusError, after --help or --version.
func (w *World) Parse(line any, args []string, options ...kong.Option) (*kong.Context, error) {
	args = terminal.AsFlags(args)
	if others := otherVerbs(line, args); others != nil && !w.AllVerbs {
		call, err := w.parse(line, args, append(slices.Clip(options), others))
		if _, wrong := errors.AsType[*kong.ParseError](err); !wrong {
			return call, err
		}
	}
	return w.parse(line, args, options) // a fault may be about another verb
}

// otherVerbs returns an option to leave out all verbs but the one at the beginning of a command line; nil if
// there is none, or a hidden one, which may be about all. Their flags take most of the time of a short run.
func otherVerbs(line any, args []string) kong.Option {
	if len(args) == 0 {
		return nil
	}
	var others []string
	of, found := reflect.TypeOf(line).Elem(), false
	for i := range of.NumField() {
		verb := of.Field(i)
		name := cmp.Or(verb.Tag.Get("name"), strings.ToLower(verb.Name))
		_, isVerb := verb.Tag.Lookup("cmd")
		_, isHidden := verb.Tag.Lookup("hidden")
		if isVerb && !isHidden && name == args[0] {
			found = true
		} else if isVerb {
			others = append(others, verb.Name)
		}
	}
	if !found {
		return nil
	}
	return kong.IgnoreFields(`^` + of.Name() + `\.(` + strings.Join(others, "|") + `)$`)
}

func (w *World) parse(line any, args []string, options []kong.Option) (*kong.Context, error) {
	ended := -1 // the status asked for by --help or --version
	parser := kong.Must(line, append(options,
		kong.Name(w.Command), kong.Vars{"version": terminal.Version(w.Command), "agent": "feedhistory/" + feedhistory.Version},
		kong.Writers(w.Stdout, w.Stderr), kong.Exit(func(status int) { ended = status }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: terminal.Columns}),
	)...)
	call, err := parser.Parse(terminal.BehindVerb(parser.Model.Node, args))
	if failed := w.Stdout.(*terminal.StdoutWriter).Failed.Load(); failed != nil { // the help, or the version, could not be printed
		return nil, *failed
	}
	if ended >= 0 {
		return nil, terminal.StatusError(ended)
	}
	return call, err
}

// Status reports an error, if there is one, and returns the exit status: after an interrupt,
// that for a part if the verb had printed anything.
func (w *World) Status(err error, call *kong.Context) int {
	var status terminal.StatusError
	var wrong terminal.UsageError
	var parse *kong.ParseError
	switch {
	case err == nil:
		return terminal.ExitOK
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &wrong), errors.As(err, &parse):
		return w.misused(err, call)
	}
	if choice, ok := errors.AsType[*terminal.ChoiceError](err); ok {
		w.Say(choice.Text)
		for _, one := range choice.Choices {
			fmt.Fprintln(w.Stderr, "  "+terminal.Clean(one))
		}
		return terminal.ExitUsage
	}
	if w.isInterrupt(err) && !errors.Is(err, terminal.ErrInterrupted) { // another package describes it in its own words
		err = terminal.ErrInterrupted
	}
	w.Say(show.InWords(err).Error())
	if !w.isInterrupt(err) {
		return terminal.ExitFailed
	}
	if out, ok := w.Stdout.(*terminal.StdoutWriter); ok && out.Written.Load() {
		return terminal.ExitPartial
	}
	return terminal.ExitInterrupted
}

// misused prints the fault of the command line, and where to read more, and returns the
// exit status.
func (w *World) misused(err error, call *kong.Context) int {
	verb := w.Command
	if parse, ok := errors.AsType[*kong.ParseError](err); ok && call == nil {
		call = parse.Context
	}
	w.Say(terminal.UsageText(err, w.SetBy))
	if call != nil && call.Selected() != nil {
		verb = call.Selected().FullPath()
	}
	w.Say("see " + verb + " --help")
	return terminal.ExitUsage
}

// NewBar returns a bar if standard error is a terminal and neither --verbose nor --quiet is
// given; else nil. A total of 0 is unknown.
func (w *World) NewBar(total int, text string) *terminal.Bar {
	if w.Verbose || w.Quiet || !terminal.IsTerminal(w.Stderr) || terminal.IsDumb() {
		return nil
	}
	bar := &terminal.Bar{Total: total, Waiting: w.Traffic().Waiting}
	bar.Start(w.Stderr, text)
	return bar
}

// Authorized returns a client for the addresses, with the credentials given by the
// flags.
func (w *World) Authorized(addresses ...string) (*feedhistory.Client, error) {
	client := w.Client(w.Stderr)
	if w.Login == nil {
		return client, nil
	}
	return w.Authorize(client, addresses)
}

// FromTerminal reports whether standard input is a terminal.
func (w *World) FromTerminal() bool {
	in, ok := w.Stdin.(*terminal.StdinReader)
	return ok && in.IsTerminal()
}

// Confirm asks a question on the terminal, and reports whether the answer is yes.
func (w *World) Confirm(question string) bool {
	if in, ok := w.Stdin.(*terminal.StdinReader); ok {
		in.Asked = true
	}
	fmt.Fprint(w.Stderr, question)
	answer, _ := bufio.NewReader(w.Stdin).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// A Progress counts the documents of a walk, and shows the count on a terminal.
type Progress struct {
	bar       *terminal.Bar
	documents int
	entries   int
}

// NewProgress returns a progress. It is shown if NewBar returns a bar.
func (w *World) NewProgress() *Progress {
	return &Progress{bar: w.NewBar(0, "looking for the feed")}
}

// Watch yields the Readings of a walk, and counts the documents.
func (p *Progress) Watch(readings iter.Seq2[*feedhistory.Reading, error]) iter.Seq2[*feedhistory.Reading, error] {
	return func(yield func(*feedhistory.Reading, error) bool) {
		for r, err := range readings {
			if r != nil && r.Document != nil {
				p.documents++
				p.entries += len(r.Document.Entries)
				p.bar.Describe(fmt.Sprintf("%s · %s", terminal.Count(p.documents, "document", "documents"), terminal.Count(p.entries, "entry", "entries")))
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// End removes the progress from the terminal.
func (p *Progress) End() {
	p.bar.End()
}

// Document reads the document named by an argument: a URL, a file, or standard input.
// With an error, it returns the readable part, or nil.
func (w *World) Document(arg, base string) (*feedhistory.Document, error) {
	arg = terminal.SourceAddress(arg)
	if terminal.IsURL(arg) {
		if err := terminal.CheckURL(arg); err != nil {
			return nil, err
		}
		if base != "" {
			return nil, terminal.UsageError("--base is for files and standard input: a document at a URL has its own base")
		}
		client, err := w.Authorized(arg)
		if err != nil {
			return nil, err
		}
		return client.Get(w.Ctx, arg)
	}
	in, err := w.Open(arg)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return feedhistory.Parser{MaxBytes: w.Client(w.Stderr).MaxBytes}.Parse(in, base)
}

// Open opens a file or standard input for a verb that also accepts URLs.
func (w *World) Open(arg string) (io.ReadCloser, error) {
	f, err := w.OpenFile(arg)
	if errors.Is(err, errNoFile) {
		err = &fs.PathError{Op: "open", Path: arg, Err: fmt.Errorf("%w (a URL begins with https:// or http://)", errNoFile)}
	}
	return f, err
}

// IsStream reports whether a file, or standard input, is anything but a file on a disk,
// such as a pipe, which may end before everything was written.
func (w *World) IsStream(arg string) bool {
	info, err := os.Stat(arg)
	if arg == "-" {
		stdin, ok := w.Stdin.(*terminal.StdinReader)
		if !ok {
			return true
		}
		file, ok := stdin.In.(*os.File)
		if !ok {
			return true
		}
		info, err = file.Stat()
	}
	return err != nil || !info.Mode().IsRegular()
}

var (
	errNoFile = errors.New("there is no such file")
	errIsURL  = errors.New("a URL cannot be read here, only a file or standard input")
)

// OpenFile opens a file or standard input.
func (w *World) OpenFile(arg string) (io.ReadCloser, error) {
	if arg == "-" {
		return io.NopCloser(w.Stdin), nil
	}
	f, err := os.Open(arg)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, fs.ErrNotExist) && terminal.IsURL(arg):
		err = errIsURL
	case errors.Is(err, fs.ErrNotExist):
		err = errNoFile
	default:
		return nil, err
	}
	return nil, &fs.PathError{Op: "open", Path: arg, Err: err}
}

// FeedsOf returns the feeds of the web page at an address, given the error of reading the
// address: the feeds named by the page or, if it names none, the feeds at well-known
// places. It returns nil if the error does not mean there is a page, or if there are no
// feeds.
func FeedsOf(ctx context.Context, client *feedhistory.Client, address string, err error) feedhistory.Links {
	page, ok := errors.AsType[*feedhistory.ParseError](err)
	if !ok {
		return nil
	}
	feeds := page.Feeds
	if len(feeds) == 0 && errors.Is(page, feedhistory.ErrWebPage) {
		feeds, err = client.Discover(ctx, address)
		if err != nil {
			return nil // the page's own error says more
		}
	}
	var others feedhistory.Links
	for _, feed := range feeds {
		if feed.Href != terminal.FeedName(address) && terminal.CheckURL(feed.Href) == nil {
			others = append(others, feed)
		}
	}
	return others
}

// TellFeeds says which feed of a page the command reads, and which others the page has.
func (w *World) TellFeeds(page string, feeds feedhistory.Links) {
	w.Tell(FeedOfPage(page, feeds[0]))
	for _, other := range feeds[1:] {
		w.Tell(OtherFeed(other))
	}
	if len(feeds) > 1 {
		w.Tell("to read another, give its address in place of the page's")
	}
}

// FeedOfPage says which feed belongs to a page.
func FeedOfPage(page string, feed feedhistory.Link) string {
	return show.Address(page) + ": a web page; its feed is " + show.Address(feed.Href)
}

// OtherFeed names another feed of a page.
func OtherFeed(feed feedhistory.Link) string {
	text := "it also has " + show.Address(feed.Href)
	title := terminal.Cut(terminal.Clean(feed.Title), terminal.Columns/2)
	switch {
	case title != "":
		text += fmt.Sprintf(" (%s)", title)
	case feed.Rel == "replies":
		text += " (comments)"
	}
	return text
}

// Resolve calls read with an address. If there is a web page, it calls read again with
// the address of the page's feed. It returns the last address, and the last error of
// read.
func (w *World) Resolve(client *feedhistory.Client, address string, read func(address string) error) (string, error) {
	err := read(address)
	feeds := FeedsOf(w.Ctx, client, address, err)
	if len(feeds) == 0 {
		return address, err
	}
	w.TellFeeds(address, feeds)
	feed, failed := feeds[0].Href, read(feeds[0].Href)
	for _, other := range FormatsOf(err, feed) {
		if !IsNoFeed(failed) {
			break
		}
		w.Tell(OtherFormat(feed, other, failed))
		feed, failed = other.Href, read(other.Href)
	}
	return feed, failed
}

// IsNoFeed reports whether an error means an address is not a feed's.
func IsNoFeed(err error) bool {
	parse, ok := errors.AsType[*feedhistory.ParseError](err)
	return ok && parse.Reason == feedhistory.ReasonNotFeed || errors.Is(err, fs.ErrNotExist)
}

// FormatsOf returns a feed of the web page in other formats, given the error of reading the page.
func FormatsOf(err error, feed string) (formats feedhistory.Links) {
	page, ok := errors.AsType[*feedhistory.ParseError](err)
	if !ok {
		return nil
	}
	for _, other := range page.Formats[feed] {
		if terminal.CheckURL(other.Href) == nil {
			formats = append(formats, other)
		}
	}
	return formats
}

// OtherFormat says in which format a command reads a feed that cannot be read in the one before.
func OtherFormat(feed string, other feedhistory.Link, err error) string {
	return show.Address(feed) + ": " + show.Detail(err) + "; the page also has the feed as " + show.Address(other.Href)
}

// Backfill are the flags for recovering entries to which a feed does not link.
type Backfill struct {
	Backfill        bool   `help:"If the feed does not link to its older entries, try the methods of its software, and then the pages of its site."`
	BackfillArchive string `placeholder:"URL" help:"Do the same as --backfill, and then ask a web archive: \"wayback\", or the beginning of the URLs of its TimeMaps."`
}

// Validate refuses an archive other than a URL or "wayback".
func (f *Backfill) Validate() error {
	if f.BackfillArchive == "" || f.BackfillArchive == "wayback" || terminal.IsWeb(f.BackfillArchive) {
		return nil
	}
	return errors.New("--backfill-archive: neither an http or https URL nor \"wayback\": " + f.BackfillArchive)
}

// A walk reads the documents of a feed and, if the flags ask for it, recovers entries
// to which the feed does not link.
type walk struct {
	Readings iter.Seq2[*feedhistory.Reading, error]
	Result   func(*feedhistory.History) *backfill.Recovery
}

// Walk returns a walk of a feed, with the methods the flags ask for. It tells of work that
// takes long.
func (f *Backfill) Walk(ctx context.Context, client *feedhistory.Client, url string, tell func(string)) walk {
	b := f.Methods(client, tell)
	if b != nil && len(client.Credentials) > 0 {
		b.Methods = WithoutArchives(b.Methods) // they would learn the address of a private feed
	}
	if b == nil {
		return walk{client.Walk(ctx, url), func(h *feedhistory.History) *backfill.Recovery {
			return &backfill.Recovery{History: h}
		}}
	}
	w := b.Attempt(ctx, url, backfill.Probe{})
	return walk{w.Readings(), w.Recovery}
}

// Methods returns the Backfill the flags ask for; nil if they do not ask for one. It tells of
// work that takes long.
func (f *Backfill) Methods(client *feedhistory.Client, tell func(string)) *backfill.Backfill {
	if !f.Backfill && f.BackfillArchive == "" {
		return nil
	}
	b := &backfill.Backfill{HTTP: client, Methods: append(backfill.Methods(), sitemap.Site{Announce: func(p sitemap.Plan) { tell(planText(p)) }})}
	switch f.BackfillArchive {
	case "":
	case "wayback":
		b.Methods = append(b.Methods, backfill.Memento{})
	default:
		b.Methods = append(b.Methods, backfill.Memento{TimeMap: f.BackfillArchive})
	}
	return b
}

// planText says how long a site will take to read.
func planText(p sitemap.Plan) string {
	pages := "its site's posts lead from one to the next"
	if p.Pages > 0 {
		pages = fmt.Sprintf("its site has %s that may be posts", terminal.Count(p.Pages, "more page", "more pages"))
	}
	text := fmt.Sprintf("%s: %s; reading one each %s", show.Address(p.Feed), pages, p.Pace)
	if p.Pages > 0 {
		text += " takes at least " + terminal.Span(time.Duration(min(p.Pages, p.Most))*p.Pace)
	}
	if p.Pages == 0 || p.Pages > p.Most {
		text += fmt.Sprintf("; at most %d are read now (--max-documents)", p.Most)
	}
	return text
}

// VerdictText is the meaning of a verdict for a history of which a method may have
// recovered a part.
func (f *Backfill) VerdictText(r *backfill.Recovery) string {
	v := r.Verdict()
	by := "Recovered by " + strings.ReplaceAll(r.RecoveredBy, ", ", " and ")
	switch {
	case r.RecoveredBy == "" && v == feedhistory.VerdictWindow && (f.Backfill || f.BackfillArchive != ""):
		text := show.VerdictText(v) + " No method found any"
		if r.Probe.Reason != "" {
			text += ": " + r.Probe.Reason
		}
		return text + "."
	case r.RecoveredBy == "":
		return show.VerdictText(v)
	case v == feedhistory.VerdictWhole:
		return by + ": every entry that the server counted is here."
	case v == feedhistory.VerdictLossy:
		return by + ", which the feed itself does not declare: entries may have slipped through."
	}
	return by + ". " + show.VerdictText(v)
}

// DocumentOf returns a history as one document.
func DocumentOf(r *backfill.Recovery) *feedhistory.Document {
	doc := compose.History(r.History)
	doc.Entries = append(compose.PseudoEntries(r.History), doc.Entries...)
	doc.Complete = r.Verdict() == feedhistory.VerdictWhole
	return doc
}

// Budget are the flags for limiting the requests, the bytes and the time for one feed.
type Budget struct {
	MaxDocuments int           `default:"10000" least:"1" placeholder:"N" help:"Request at most N documents of a feed (default: ${default})."`
	MaxBytes     terminal.Size `default:"1GiB" least:"1" placeholder:"SIZE" help:"Read at most this much of a feed, such as 10MB (default: ${default})."`
	MaxTime      time.Duration `default:"10m" above:"0s" placeholder:"TIME" help:"Request no further document of a feed after this time, such as 2h (default: ${default})."`
}

// Limits returns the budget of a walk by the flags.
func (f *Budget) Limits() feedhistory.Budget {
	return feedhistory.Budget{Documents: f.MaxDocuments, Bytes: int64(f.MaxBytes), Time: f.MaxTime}
}

// WithoutArchives returns the methods that ask nobody but the feed's own server.
func WithoutArchives(methods []backfill.Method) []backfill.Method {
	return slices.DeleteFunc(slices.Clone(methods), func(m backfill.Method) bool {
		_, asks := m.(backfill.Memento)
		return asks
	})
}

// BackfillMethods returns the names of the methods --backfill uses for a document: that
// of the software it names, and those for any.
func BackfillMethods(doc *feedhistory.Document) (names []string) {
	sure, maybe := (&Backfill{Backfill: true}).Methods(nil, nil).Candidates(doc)
	for _, m := range append(sure, maybe...) {
		if m.Recognise(doc) != backfill.Maybe {
			names = append(names, m.Name())
		}
	}
	return names
}

// OlderHint says in one line how to look for entries to which a feed does not link, given its
// first document or head and the findings so far; "" if there is nothing to look for. Only a
// public feed's address may be told to an archive.
func OlderHint(verb, url string, doc *feedhistory.Document, v feedhistory.Verdict, found backfill.Probe, isPrivate bool) string {
	if doc == nil || doc.Kind() != feedhistory.KindPlain || v == feedhistory.VerdictWhole {
		return ""
	}
	tried := append(found.Names(), found.Tried...)
	untried := slices.DeleteFunc(BackfillMethods(doc), func(name string) bool {
		isSoftware := name != sitemap.Site{}.Name() // of which all have been tried if one has
		return slices.Contains(tried, name) || isSoftware && found.Method != ""
	})
	command := "feedhistory " + verb + " --backfill"
	switch {
	case len(untried) > 0:
		return fmt.Sprintf("the feed may have older entries; to look for them (%s): %s %s", strings.Join(untried, ", "), command, url)
	case slices.Contains(tried, backfill.Memento{}.Name()) || isPrivate || v == feedhistory.VerdictPartial:
		return ""
	}
	return fmt.Sprintf("a web archive may have older entries; to ask one: %s-archive wayback %s", command, url)
}

// OlderHintOf is OlderHint for a mirrored feed.
func OlderHintOf(f *mirror.Feed) string {
	head, err := f.Document()
	if err != nil || f.Kind != feedhistory.KindPlain || f.Alias != "" || f.Gone || show.IsHarvested(f) {
		return ""
	}
	return OlderHint("sync", show.Address(f.URL), head, f.Verdict, backfill.Findings(f), f.Private)
}

// A Root is a directory. No name or symbolic link leads out of it. Each file is looked for in
// the directory that has the name then, because a site's build may replace it.
type Root struct {
	Name string

	mu     sync.Mutex
	opened *os.Root    // the directory that had the name last; nil if there is none to be kept
	info   fs.FileInfo // of that directory
}

// Open implements fs.FS.
func (dir *Root) Open(name string) (fs.File, error) {
	root, leave, err := dir.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	return root.Open(filepath.FromSlash(name))
}

// Stat implements fs.StatFS.
func (dir *Root) Stat(name string) (fs.FileInfo, error) {
	root, leave, err := dir.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	return root.Stat(filepath.FromSlash(name))
}

// enter returns the directory with the name. It keeps the directory open, except on Windows,
// where it could not be replaced then. The one kept before may be in use; it is closed when it
// is collected.
func (dir *Root) enter() (root *os.Root, leave func(), err error) {
	dir.mu.Lock()
	defer dir.mu.Unlock()
	info, err := os.Stat(dir.Name)
	if err != nil {
		return nil, nil, err
	}
	leave = func() {}
	if dir.opened != nil && os.SameFile(info, dir.info) {
		return dir.opened, leave, nil
	}
	if root, err = os.OpenRoot(dir.Name); err != nil {
		return nil, nil, err
	}
	if runtime.GOOS == "windows" {
		return root, func() { _ = root.Close() }, nil
	}
	if dir.info, err = root.Stat("."); err != nil {
		return nil, nil, errors.Join(err, root.Close())
	}
	dir.opened = root
	return root, leave, nil
}
