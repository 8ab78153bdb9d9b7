package main

import (
	"errors"
	"net/url"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
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
	if doc != nil {
		if err := c.show(w, doc); err != nil {
			return err
		}
	}
	var usage terminal.UsageError
	switch {
	case err == nil, errors.As(err, &usage):
		return err
	case doc != nil:
		w.Say(show.Failure(c.Source, err).Error())
		w.Say("the document is damaged; the output is the part before the damage")
		return terminal.StatusError(terminal.ExitFailed)
	}
	return show.Failure(c.Source, err)
}

func (c *inspectCommand) show(w *command.World, doc *feedhistory.Document) error {
	if c.JSON {
		return terminal.WriteJSON(w.Stdout, show.NewDocument(doc, command.BackfillMethods(doc)))
	}
	p := terminal.NewPage(w.Stdout)
	show.PrintDocument(p, doc, command.BackfillMethods(doc))
	return p.Err
}
