// Command feedfleet mirrors feeds on many machines: package fleet at a terminal.
//
// Results go to standard output and everything else to standard error. The exit
// status is 0, 1 after a failure, and 2 after wrong usage.
package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// The exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

const description = `Mirrors feeds on many machines, which share a PostgreSQL database.

feedhistory list, entries, export and serve read the same database.

Exit status: 0 done, 1 failed, 2 wrong usage.`

// A commandLine is the whole command line.
type commandLine struct {
	globals

	Work        workCommand        `cmd:"" help:"Run a worker."`
	Subscribe   subscribeCommand   `cmd:"" help:"Have the workers mirror feeds."`
	Unsubscribe unsubscribeCommand `cmd:"" help:"Have the workers stop mirroring feeds."`
	Status      statusCommand      `cmd:"" help:"Show the state of the workers' feeds."`
}

// The globals are the flags common to all verbs, except for the database.
type globals struct {
	AllowPrivate bool             `help:"Allow requests to loopback and private addresses."`
	UserAgent    string           `placeholder:"NAME" help:"User-Agent to send to servers (default: ${agent})."`
	Pace         time.Duration    `default:"0s" placeholder:"TIME" help:"Minimum time between requests to one host, such as 500ms."`
	Verbose      bool             `short:"v" help:"Log each request on standard error."`
	Quiet        bool             `short:"q" help:"Print only errors on standard error."`
	Version      kong.VersionFlag `help:"Print the version."`
}

// Validate refuses values no client can use.
func (g *globals) Validate() error {
	if g.Pace < 0 {
		return errors.New("--pace: a time cannot be negative")
	}
	return nil
}

// client returns the Client the flags ask for.
func (g *globals) client(stderr io.Writer) *feedhistory.Client {
	c := &feedhistory.Client{
		UserAgent: g.UserAgent, Pace: g.Pace,
		Budget:       feedhistory.Budget{Documents: slicedDocuments},
		AllowPrivate: g.AllowPrivate, PerHost: 1,
	}
	if g.Verbose {
		c.Logger = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return c
}

// A world is the environment of a verb.
type world struct {
	*globals
	ctx    context.Context
	stdin  io.Reader
	stdout io.Writer
	terminal.Voice
}

// A usageError is a mistake on the command line.
type usageError string

func (e usageError) Error() string { return string(e) }

// errSaid ends the command with exitFailed. The command has said why.
var errSaid = errors.New("failed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the command; it returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var line commandLine
	w := &world{
		globals: &line.globals, ctx: ctx, stdin: stdin, stdout: stdout,
		Voice: terminal.Voice{Command: "feedfleet", Stderr: stderr, Silent: &line.Quiet},
	}
	ended := -1 // the status asked for by --help or --version
	parser := kong.Must(&line,
		kong.Name("feedfleet"), kong.Description(description),
		kong.Vars{"version": terminal.Version("feedfleet"), "agent": "feedhistory/" + feedhistory.Version},
		kong.Writers(stdout, stderr), kong.Exit(func(status int) { ended = status }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: terminal.Columns}),
	)
	call, err := parser.Parse(terminal.AsFlags(args))
	if ended >= 0 {
		return ended
	}
	if err == nil {
		if err = call.Run(w); err == nil {
			return exitOK
		}
		if _, wrong := errors.AsType[usageError](err); !wrong {
			if !errors.Is(err, errSaid) {
				w.Say(show.InWords(err).Error())
			}
			return exitFailed
		}
	}
	if parse, ok := errors.AsType[*kong.ParseError](err); ok {
		call = parse.Context
	}
	verb := ""
	if call != nil && call.Selected() != nil {
		verb = " " + call.Selected().Name
	}
	w.Say(terminal.UsageText(err, nil))
	w.Say("see feedfleet" + verb + " --help")
	return exitUsage
}
