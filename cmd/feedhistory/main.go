// Command feedhistory reads the history of web feeds: everything a feed ever published,
// once each, with a verdict on its completeness.
//
// Results go to standard output and everything else to standard error. The exit
// status is 0 if nothing is known to be missing, 1 after a failure, 2 after wrong
// usage, 3 if the history has gaps, and 130 after an interrupt before there was
// anything to show.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/readers"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

const description = `Everything that a feed ever published, and a verdict on what is missing.

Exit status: 0: nothing is known to be missing; 1: the command failed; 2: wrong usage; 3: something is missing; 130: interrupted before there was anything to show.`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		stop() // a second signal kills
		time.Sleep(grace)
		os.Exit(terminal.ExitInterrupted)
	})
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs the command and returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var line commandLine
	out := &terminal.StdoutWriter{Writer: stdout}
	w := &command.World{
		Globals: &line.Globals, NetworkFlags: &command.NetworkFlags{}, Ctx: ctx, Stdout: out,
		Voice: terminal.Voice{Command: "feedhistory", Stderr: stderr, Silent: &line.Quiet},
	}
	w.Stdin = &terminal.StdinReader{Ctx: ctx, In: stdin, Waits: func() { w.Tell("reading from the terminal; Ctrl-D ends it") }}
	ended := -1 // the status asked for by --help or --version
	config, err := readSettings(exclusive, formats)
	if err != nil {
		return w.Misused(err, nil)
	}
	w.SetBy = config.SetBy
	parser := kong.Must(&line,
		kong.Name("feedhistory"), kong.Description(description+settingsPlace()),
		kong.Vars{
			"version": terminal.Version("feedhistory"), "agent": "feedhistory/" + feedhistory.Version, "db": database.DefaultDB(), "kinds": readers.KindNames(),
		},
		kong.Resolvers(config), kong.Writers(out, stderr), kong.Exit(func(status int) { ended = status }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: terminal.Columns}),
	)
	if err := checkEmpty(args); err != nil {
		return w.Misused(err, nil)
	}
	call, err := parser.Parse(terminal.AsFlags(args))
	failed := out.Failed.Load()
	switch {
	case failed != nil: // the help, or the version, could not be printed
		return w.Status(*failed, call)
	case ended >= 0:
		return ended
	case err != nil:
		if i := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") }); i >= 0 && otherWords[args[i]] != "" {
			err = terminal.UsageError("there is no verb " + args[i] + ": " + otherWords[args[i]])
		}
		return w.Misused(err, call)
	}
	if verb, ok := call.Selected().Target.Addr().Interface().(interface{ Network() *command.NetworkFlags }); ok {
		w.NetworkFlags = verb.Network()
		if verb, ok := verb.(interface{ LoginFlags() *command.Login }); ok {
			w.Login = verb.LoginFlags()
		}
		err := w.Prepare()
		if err == nil && w.Login != nil {
			err = w.Login.Verify()
		}
		if err != nil {
			return w.Status(err, call)
		}
	}
	return w.Status(call.Run(w), call)
}

// checkEmpty refuses empty arguments and empty values of flags, which come from scripts
// with unset variables: with --user "", the command would not log in.
func checkEmpty(args []string) error {
	for i, arg := range args {
		flag, value, ok := strings.Cut(arg, "=")
		switch {
		case arg == "--": // the rest may be a command with its own arguments
			return nil
		case arg == "" && i > 0 && strings.HasPrefix(args[i-1], "-"):
			return terminal.UsageError(args[i-1] + ": the value is empty")
		case arg == "":
			return terminal.UsageError("an argument is empty")
		case ok && value == "" && strings.HasPrefix(flag, "--"):
			return terminal.UsageError(flag + ": the value is empty")
		}
	}
	return nil
}

// A commandLine has the verbs and their flags.
type commandLine struct {
	command.Globals

	Inspect  inspectCommand  `cmd:"" help:"Show one feed document."`
	Fetch    fetchCommand    `cmd:"" help:"Fetch a feed's whole history."`
	Check    checkCommand    `cmd:"" help:"Check a feed's history for faults."`
	Publish  publishCommand  `cmd:"" help:"Publish entries as a feed with its whole history."`
	Harvest  harvestCommand  `cmd:"" help:"Print the changes in a collection since the last harvest."`
	Produce  produceCommand  `cmd:"" help:"Publish records, entities or entries for others to harvest."`
	Serve    serveCommand    `cmd:"" help:"Serve published feeds, or the history server, over HTTP."`
	Demo     demoCommand     `cmd:"" help:"Show all this on a small website of its own, without a network."`
	Sync     syncCommand     `cmd:"" help:"Mirror feeds: poll them, and keep everything they publish."`
	List     listCommand     `cmd:"" help:"List the mirrored feeds, with a verdict on each."`
	Entries  entriesCommand  `cmd:"" help:"Show the entries in the mirror."`
	Entry    entryCommand    `cmd:"" help:"Show one entry as text."`
	New      newCommand      `cmd:"" help:"Print the entries not printed before."`
	Download downloadCommand `cmd:"" help:"Download the files of mirrored entries, such as episodes."`
	Export   exportCommand   `cmd:"" help:"Write mirrored feeds as JSON Lines, Atom, OPML or in other formats."`
	Import   importCommand   `cmd:"" help:"Import the output of export --raw, or the archives of feed readers and others."`
	Move     moveCommand     `cmd:"" help:"Give a mirrored feed another address."`
	Rm       rmCommand       `cmd:"" help:"Remove feeds from the mirror."`
	Erase    eraseCommand    `cmd:"" help:"Remove entries for good, from a mirror and from published feeds."`
	DB       dbCommand       `cmd:"" name:"db" help:"Check, describe, copy or rewrite the database of the mirrored feeds."`

	Handover handoverCommand `cmd:"" help:"Hand the mirrored history over to a feed reader."`

	Completion completionCommand `cmd:"" help:"Print a script that completes verbs and flags in a shell."`
	Help       helpCommand       `cmd:"" help:"Show how to use a verb."`
	Ver        versionCommand    `cmd:"" name:"version" help:"Print the version."`
	Man        manCommand        `cmd:"" hidden:""`
	Names      namesCommand      `cmd:"" hidden:""`

	Conformance conformanceCommand `cmd:"" help:"Test readers and publishers, in any language, against RFC 5005."`
}

// The verbs help and version do the same as the flags --help and --version; see terminal.AsFlags.
type (
	helpCommand struct {
		Verb []string `arg:"" optional:"" name:"VERB" help:"The verb (default: list all verbs)."`
	}
	versionCommand struct{}
)

// otherWords lead from words people try to the verbs.
var otherWords = map[string]string{
	"add":         syncsFeeds,
	"backup":      "feedhistory db backup FILE copies the database",
	"cat":         showsEntries,
	"delete":      removesFeeds,
	"feeds":       "feedhistory list lists the feeds",
	"find":        searches,
	"get":         "feedhistory fetch URL prints a feed's history, feedhistory sync URL mirrors it",
	"grep":        searches,
	"ls":          "feedhistory list lists the feeds",
	"open":        showsEntries,
	"poll":        pollsFeeds,
	"read":        showsEntries,
	"remove":      removesFeeds,
	"search":      searches,
	"show":        showsEntries,
	"status":      "feedhistory list lists the feeds",
	"subscribe":   syncsFeeds,
	"unsubscribe": removesFeeds,
	"update":      pollsFeeds,
	"view":        showsEntries,
}

const (
	searches     = "feedhistory entries --search WORDS finds entries"
	showsEntries = "feedhistory entry ID shows an entry, feedhistory entries lists them, feedhistory list FEED shows a feed"
	syncsFeeds   = "feedhistory sync URL adds a feed, and polls it"
	pollsFeeds   = "feedhistory sync polls the feeds that are due"
	removesFeeds = "feedhistory rm FEED removes a feed, feedhistory erase ID an entry"
)

// exclusive has, for each verb, the incompatible flags and arguments. If one is on the
// command line, settings of the others have no effect.
var exclusive = map[string][][]string{
	"check":    {{"digests", "save"}, {"digests", "against"}},
	"entries":  {{"json", "enclosures", "long"}},
	"export":   {{"deleted", "raw"}},
	"fetch":    {{"json", "format"}},
	"handover": {{"user", "token-env", "token-file"}},
	"import":   {{"from", "replace"}},
	"harvest":  {{"json", "format"}, {"db", "state"}, {"db", "fetch"}},
	"list":     {{"<FEED>", "due"}, {"<FEED>", "partial"}},
	"new":      {{"json", "maildir"}},
	"publish":  {{"size", "by"}},
	"serve":    {{"<DIR>", "base"}, {"<DIR>", "name"}, {"<DIR>", "private"}, {"<DIR>", "published"}},
	"sync":     {{"all", "every"}, {"all", "<URL>"}, {"all", "opml"}},
}

// formats has, for each verb and flag, the formats with which the flag has an effect. If
// the command line asks for another format, a setting of the flag has no effect.
var formats = map[string]map[string][]string{
	"export": {"raw": {"jsonl"}, "deleted": {"jsonl", "csv"}, "status": readerFormats, "starred": readerFormats},
	"fetch":  {"raw": {"jsonl"}},
}

var readerFormats = []string{"greader", "nextcloud"}

// grace is the time for a verb to end properly after an interrupt. Polls and servers need
// less.
const grace = 30 * time.Second
