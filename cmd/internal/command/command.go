// Package command has the environment of feedhistory's verbs: the context, the standard
// streams, and the flags common to several verbs: for requests, credentials, and the
// files, URLs and outputs named by arguments.
package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// interrupted returns the exit status of an interrupted verb. The status depends on
// whether the verb had printed anything.
func (w *World) interrupted() int {
	if out, ok := w.Stdout.(*terminal.StdoutWriter); ok && out.Written.Load() {
		return terminal.ExitPartial
	}
	return terminal.ExitInterrupted
}

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
	terminal.Voice
}

// Status reports an error, if there is one, and returns the exit status.
func (w *World) Status(err error, call *kong.Context) int {
	var status terminal.StatusError
	var wrong terminal.UsageError
	switch {
	case err == nil:
		return terminal.ExitOK
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &wrong):
		return w.Misused(err, call)
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
	if _, ok := errors.AsType[terminal.InterruptedError](err); ok || w.isInterrupt(err) {
		return w.interrupted()
	}
	return terminal.ExitFailed
}

// Misused prints the fault of the command line, and where to read more, and returns the
// exit status.
func (w *World) Misused(err error, call *kong.Context) int {
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

// Watch yields the documents and errors of a walk, and counts the documents.
func (p *Progress) Watch(docs iter.Seq2[*feedhistory.Document, error]) iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		for doc, err := range docs {
			if doc != nil {
				p.add(doc)
			}
			if !yield(doc, err) {
				return
			}
		}
	}
}

func (p *Progress) add(doc *feedhistory.Document) {
	p.documents++
	p.entries += len(doc.Entries)
	p.bar.Describe(fmt.Sprintf("%s · %s", terminal.Count(p.documents, "document", "documents"),
		terminal.Count(p.entries, "entry", "entries")))
}

// End removes the progress from the terminal.
func (p *Progress) End() {
	p.bar.End()
}
