// Package command has the environment of feedhistory's verbs: the context, the standard
// streams, the flags common to many verbs, and the opening of files and URLs named by
// arguments.
package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/logins"
	"github.com/feedhistory/feedhistory/cmd/internal/network"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/cmd/internal/usage"
)

// interrupted returns the exit status of an interrupted verb. The status depends on
// whether the verb had printed anything.
func (w *World) interrupted() int {
	if out, ok := w.Stdout.(*terminal.StdoutWriter); ok && out.Written.Load() {
		return exit.Partial
	}
	return exit.Interrupted
}

// isInterrupt reports whether an interrupt caused an error.
func (w *World) isInterrupt(err error) bool {
	return w.Ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, exit.ErrInterrupted))
}

// Globals are the flags common to all verbs.
type Globals struct {
	Quiet   bool             `short:"q" help:"On standard error, print only errors and gaps."`
	Version kong.VersionFlag `help:"Print the version."`
}

// A World is the environment of a verb: the flags common to several verbs, the context,
// and the standard streams.
type World struct {
	*Globals
	*network.Flags // the verb's; zero if it makes no requests
	*logins.Login  // the verb's; nil if it has none
	Ctx            context.Context
	Stdin          io.Reader
	Stdout         io.Writer
	SetBy          func(flag string) string // what has set a flag missing on the command line; nil or "" means nothing
	terminal.Voice
}

// Status reports an error, if there is one, and returns the exit status.
func (w *World) Status(err error, call *kong.Context) int {
	var status exit.StatusError
	var wrong exit.UsageError
	switch {
	case err == nil:
		return exit.OK
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &wrong):
		return w.Misused(err, call)
	}
	if w.isInterrupt(err) && !errors.Is(err, exit.ErrInterrupted) { // another package describes it in its own words
		err = exit.ErrInterrupted
	}
	w.Say(explain.InWords(err).Error())
	if _, ok := errors.AsType[exit.InterruptedError](err); ok || w.isInterrupt(err) {
		return w.interrupted()
	}
	return exit.Failed
}

// Misused prints the fault of the command line, and where to read more, and returns the
// exit status.
func (w *World) Misused(err error, call *kong.Context) int {
	verb := "feedhistory"
	if parse, ok := errors.AsType[*kong.ParseError](err); ok && call == nil {
		call = parse.Context
	}
	w.Say(usage.Text(err, w.SetBy))
	if call != nil && call.Selected() != nil {
		verb = call.Selected().FullPath()
	}
	w.Say("see " + verb + " --help")
	return exit.Usage
}

// NewBar returns a bar if standard error is a terminal and neither --verbose nor --quiet is
// given; else nil. A total of 0 is unknown.
func (w *World) NewBar(total int, text string) *terminal.Bar {
	if w.Verbose || w.Quiet || !terminal.IsTerminal(w.Stderr) {
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
