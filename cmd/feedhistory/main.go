// Command feedhistory reads the history of web feeds: everything that a feed
// ever published, once each, with a verdict on what is missing.
//
// Results go to standard output and everything else to standard error. The exit
// status is 0 if nothing is known to be missing, 1 after a failure, 2 after wrong
// usage, 3 if the history has gaps, and 130 after an interrupt before there was
// anything to show.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/build"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// The exit statuses.
const (
	exitOK      = 0 // nothing is known to be missing
	exitFailed  = 1
	exitUsage   = 2
	exitPartial = 3 // something is missing, and the command has said what

	exitInterrupted = 130 // interrupted before there was anything to show
)

const description = `Everything that a feed ever published, and a verdict on what is missing.

Exit status: 0: nothing is known to be missing; 1: the command failed; 2: wrong usage; 3: something is missing; 130: interrupted before there was anything to show.`

// A commandLine has the verbs and their flags.
type commandLine struct {
	globals

	Inspect inspectCommand `cmd:"" help:"Show one feed document."`
	Fetch   fetchCommand   `cmd:"" help:"Fetch a feed's whole history."`
	Check   checkCommand   `cmd:"" help:"Report what is wrong with a feed's history."`
	Publish publishCommand `cmd:"" help:"Publish entries as a feed with its whole history."`
	Harvest harvestCommand `cmd:"" help:"Print what changed in a collection since the last harvest."`
	Produce produceCommand `cmd:"" help:"Publish records, entities or entries for others to harvest."`
	Serve   serveCommand   `cmd:"" help:"Serve published feeds, or the history server, over HTTP."`
	Sync    syncCommand    `cmd:"" help:"Mirror feeds: poll them, and keep everything that they publish."`
	List    listCommand    `cmd:"" help:"List the mirrored feeds, and say which of them lack something."`
	Entries entriesCommand `cmd:"" help:"Show the entries that the mirror has."`
	Entry   entryCommand   `cmd:"" help:"Show one entry as text."`
	Export  exportCommand  `cmd:"" help:"Write mirrored feeds as JSON Lines, Atom, OPML or in other formats."`
	Import  importCommand  `cmd:"" help:"Import what export --raw or fetch --raw wrote."`
	Move    moveCommand    `cmd:"" help:"Give a mirrored feed another address."`
	Rm      rmCommand      `cmd:"" help:"Remove feeds from the mirror."`
	Erase   eraseCommand   `cmd:"" help:"Remove entries for good, from a mirror and from what is published."`

	Handover handoverCommand `cmd:"" help:"Hand the mirrored history over to a feed reader."`

	Completion completionCommand `cmd:"" help:"Print a script that completes verbs and flags in a shell."`
	Help       helpCommand       `cmd:"" help:"Show how to use a verb."`
	Ver        versionCommand    `cmd:"" name:"version" help:"Print the version."`
	Man        manCommand        `cmd:"" hidden:""`

	Conformance conformanceCommand `cmd:"" help:"Test readers and publishers, in any language, against RFC 5005."`
}

// globals are the flags that every verb has.
type globals struct {
	Quiet   bool             `short:"q" help:"On standard error, print only errors and what is missing."`
	Version kong.VersionFlag `help:"Print the version."`
}

// A world is what a verb runs with: the flags that several verbs have, the context, and
// the standard streams.
type world struct {
	*globals
	*networkFlags // the verb's; zero if it makes no requests
	*privateFlags // the verb's; nil if it has none
	ctx           context.Context
	stdin         io.Reader
	stdout        io.Writer
	terminal.Voice
}

// A usageError is a mistake on the command line.
type usageError string

// Error returns the message.
func (e usageError) Error() string { return string(e) }

// A statusError ends the command with an exit status, after the command has said why.
type statusError int

// Error returns the status as text.
func (e statusError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		stop() // a second signal kills
		time.Sleep(grace)
		os.Exit(exitInterrupted)
	})
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs the command and returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var line commandLine
	out := &stdoutWriter{Writer: stdout}
	w := &world{
		globals: &line.globals, networkFlags: &networkFlags{}, ctx: ctx, stdout: out,
		Voice: terminal.Voice{Command: "feedhistory", Stderr: stderr, Silent: &line.Quiet},
	}
	w.stdin = &stdinReader{ctx: ctx, in: stdin, waits: func() { w.Tell("reading from the terminal; Ctrl-D ends it") }}
	ended := -1 // the status that --help or --version asked for
	settings, err := readConfig()
	if err != nil {
		return w.misused(err, nil)
	}
	parser := kong.Must(&line,
		kong.Name("feedhistory"), kong.Description(description),
		kong.Vars{
			"version": build.Version("feedhistory"), "agent": "feedhistory/" + feedhistory.Version, "db": defaultDB(),
		},
		kong.Resolvers(settings), kong.Writers(out, stderr), kong.Exit(func(status int) { ended = status }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: columns}),
	)
	if err := checkEmpty(args); err != nil {
		return w.misused(err, nil)
	}
	call, err := parser.Parse(asFlags(args))
	failed := out.failed.Load()
	switch {
	case failed != nil: // the help, or the version, could not be printed
		return w.status(*failed, call)
	case ended >= 0:
		return ended
	case err != nil:
		return w.misused(err, call)
	}
	if verb, ok := call.Selected().Target.Addr().Interface().(interface{ network() *networkFlags }); ok {
		w.networkFlags = verb.network()
		if verb, ok := verb.(interface{ private() *privateFlags }); ok {
			w.privateFlags = verb.private()
		}
		if err := w.prepare(); err != nil {
			return w.status(err, call)
		}
	}
	return w.status(call.Run(w), call)
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
			return usageError(args[i-1] + ": the value is empty")
		case arg == "":
			return usageError("an argument is empty")
		case ok && value == "" && strings.HasPrefix(flag, "--"):
			return usageError(flag + ": the value is empty")
		}
	}
	return nil
}

// The verbs help and version do the same as the flags --help and --version; see asFlags.
type (
	helpCommand struct {
		Verb []string `arg:"" optional:"" name:"VERB" help:"The verb (default: list all verbs)."`
	}
	versionCommand struct{}
)

// asFlags replaces the verbs help and version with the flags.
func asFlags(args []string) []string {
	switch {
	case len(args) > 0 && args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case len(args) > 0 && args[0] == "version":
		return append(slices.Clone(args[1:]), "--version")
	}
	return args
}

// status reports an error, if there is one, and returns the exit status.
func (w *world) status(err error, call *kong.Context) int {
	var status statusError
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &usage):
		return w.misused(err, call)
	}
	if w.isInterrupt(err) && !errors.Is(err, errInterrupted) { // another package describes it in its own words
		err = errInterrupted
	}
	w.Say(err.Error())
	if _, ok := errors.AsType[interruptedError](err); ok || w.isInterrupt(err) {
		return w.interrupted()
	}
	return exitFailed
}

// misused says what is wrong with the command line, and where to read more, and returns
// the exit status.
func (w *world) misused(err error, call *kong.Context) int {
	w.Say(err.Error())
	verb := "feedhistory"
	var parse *kong.ParseError
	if call == nil && errors.As(err, &parse) {
		call = parse.Context
	}
	if call != nil && call.Selected() != nil {
		verb = call.Selected().FullPath()
	}
	w.Say("see " + verb + " --help")
	return exitUsage
}
