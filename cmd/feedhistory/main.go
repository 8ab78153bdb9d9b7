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
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/build"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/logins"
	"github.com/feedhistory/feedhistory/cmd/internal/network"
	"github.com/feedhistory/feedhistory/cmd/internal/settings"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/cmd/internal/usage"
)

const description = `Everything that a feed ever published, and a verdict on what is missing.

Exit status: 0: nothing is known to be missing; 1: the command failed; 2: wrong usage; 3: something is missing; 130: interrupted before there was anything to show.`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		stop() // a second signal kills
		time.Sleep(grace)
		os.Exit(exit.Interrupted)
	})
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs the command and returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var line commandLine
	out := &terminal.StdoutWriter{Writer: stdout}
	w := &command.World{
		Globals: &line.Globals, Flags: &network.Flags{}, Ctx: ctx, Stdout: out,
		Voice: terminal.Voice{Command: "feedhistory", Stderr: stderr, Silent: &line.Quiet},
	}
	w.Stdin = &terminal.StdinReader{Ctx: ctx, In: stdin, Waits: func() { w.Tell("reading from the terminal; Ctrl-D ends it") }}
	ended := -1 // the status asked for by --help or --version
	settings, err := settings.Read(exclusive, formats)
	if err != nil {
		return w.Misused(err, nil)
	}
	w.SetBy = settings.SetBy
	parser := kong.Must(&line,
		kong.Name("feedhistory"), kong.Description(description),
		kong.Vars{
			"version": build.Version("feedhistory"), "agent": "feedhistory/" + feedhistory.Version, "db": database.DefaultDB(),
		},
		kong.Resolvers(settings), kong.Writers(out, stderr), kong.Exit(func(status int) { ended = status }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: terminal.Columns}),
	)
	if err := checkEmpty(args); err != nil {
		return w.Misused(err, nil)
	}
	call, err := parser.Parse(usage.AsFlags(args))
	failed := out.Failed.Load()
	switch {
	case failed != nil: // the help, or the version, could not be printed
		return w.Status(*failed, call)
	case ended >= 0:
		return ended
	case err != nil:
		return w.Misused(err, call)
	}
	if verb, ok := call.Selected().Target.Addr().Interface().(interface{ Network() *network.Flags }); ok {
		w.Flags = verb.Network()
		if verb, ok := verb.(interface{ LoginFlags() *logins.Login }); ok {
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
			return exit.UsageError(args[i-1] + ": the value is empty")
		case arg == "":
			return exit.UsageError("an argument is empty")
		case ok && value == "" && strings.HasPrefix(flag, "--"):
			return exit.UsageError(flag + ": the value is empty")
		}
	}
	return nil
}
