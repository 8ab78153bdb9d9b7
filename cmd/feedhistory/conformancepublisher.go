package main

import (
	"context"
	"errors"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/conformance/suite"
)

// A conformancePublisherCommand is the verb conformance publisher.
type conformancePublisherCommand struct {
	URL    string        `arg:"" name:"URL" help:"The subscription document's address."`
	Add    string        `required:"" placeholder:"CMD" help:"Command that adds an entry. Each CMD is a command line for the shell. The environment variable CONFORMANCE_STEP has a different number each time."`
	Edit   string        `placeholder:"CMD" help:"Command that changes a published entry."`
	Delete string        `placeholder:"CMD" help:"Command that deletes an entry."`
	Adds   int           `default:"200" placeholder:"N" help:"Add at most N entries until an archive is closed (default: ${default})."`
	Settle time.Duration `default:"5s" placeholder:"TIME" help:"How long the feed may take to show a step (default: ${default})."`

	terminal.JSONFlag `set:"record=the report"`
}

// Help returns the text of --help before the flags.
func (c *conformancePublisherCommand) Help() string {
	return "The test adds entries until the publisher closes an archive, and then until it closes another; it changes an entry, adds one, and deletes one. After each step it reads all documents " +
		"and reports which duties the publisher fulfils. Of a paged feed, which has no archives, it reads all pages. Use a feed that is for tests only: the added entries stay there.\n\n" +
		"The exit status is 1 if the publisher breaks a \"must\"."
}

// Validate refuses limits of zero, and a URL that cannot be fetched.
func (c *conformancePublisherCommand) Validate() error {
	switch {
	case c.Adds < 1:
		return errors.New("--adds: at least 1")
	case c.Settle <= 0:
		return errors.New("--settle: more than 0s")
	}
	return argument.CheckURL(c.URL)
}

// Run tests the publisher.
func (c *conformancePublisherCommand) Run(w *command.World) error {
	step := func(line string) func(context.Context) error {
		if line == "" {
			return nil
		}
		return suite.Shell(c.URL, line)
	}
	p := &suite.PublisherTest{
		URL: c.URL, Add: step(c.Add), Edit: step(c.Edit), Delete: step(c.Delete), Adds: c.Adds, Settle: c.Settle,
	}
	report, err := p.Run(w.Ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		err = terminal.WriteJSON(w.Stdout, report)
	} else {
		err = report.WriteText(w.Stdout)
	}
	if err == nil && report.Failed() {
		err = exit.StatusError(exit.Failed)
	}
	return err
}
