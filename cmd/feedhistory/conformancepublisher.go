package main

import (
	"context"
	"errors"
	"time"

	"github.com/feedhistory/feedhistory/conformance"
)

// The verb conformance publisher.
type conformancePublisherCommand struct {
	URL    string        `arg:"" name:"URL" help:"The subscription document's address."`
	Add    string        `required:"" placeholder:"CMD" help:"Adds an entry. Each CMD is a command line for the shell, with CONFORMANCE_STEP, another number each time, in its environment."`
	Edit   string        `placeholder:"CMD" help:"Changes an entry that has been published."`
	Delete string        `placeholder:"CMD" help:"Deletes an entry."`
	Adds   int           `default:"200" placeholder:"N" help:"Entries to add at most until an archive is closed (default: ${default})."`
	Settle time.Duration `default:"5s" placeholder:"TIME" help:"How long the feed may take to show a step (default: ${default})."`
	JSON   bool          `name:"json" help:"Print JSON Lines (one object a line): the report."`
}

// Help is what --help says beyond the flags.
func (c *conformancePublisherCommand) Help() string {
	return "It adds entries until an archive is closed, and then another, changes one, adds one, and deletes one. After each step it reads all documents, " +
		"and says which duties hold. Give it a feed for tests: what is added stays there.\n\n" +
		"The exit status is 1 if anything is not as it must be."
}

// Validate refuses what cannot be driven.
func (c *conformancePublisherCommand) Validate() error {
	switch {
	case c.Adds < 1:
		return errors.New("--adds: at least 1")
	case c.Settle <= 0:
		return errors.New("--settle: more than nothing")
	}
	return checkURL(c.URL)
}

// Run drives the publisher.
func (c *conformancePublisherCommand) Run(w *world) error {
	step := func(line string) func(context.Context) error {
		if line == "" {
			return nil
		}
		return conformance.Shell(c.URL, line)
	}
	p := &conformance.Publisher{
		URL: c.URL, Add: step(c.Add), Edit: step(c.Edit), Delete: step(c.Delete), Adds: c.Adds, Settle: c.Settle,
	}
	report, err := p.Run(w.ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		err = printLine(w.stdout, report)
	} else {
		err = report.WriteText(w.stdout)
	}
	if err == nil && report.Failed() {
		err = statusError(exitFailed)
	}
	return err
}
