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
	Add    string        `required:"" placeholder:"CMD" help:"Command that adds an entry. Each CMD is a command line for the shell; its environment has CONFORMANCE_STEP, a number that is new each time."`
	Edit   string        `placeholder:"CMD" help:"Command that changes an entry that has been published."`
	Delete string        `placeholder:"CMD" help:"Command that deletes an entry."`
	Adds   int           `default:"200" placeholder:"N" help:"Add at most N entries until an archive is closed (default: ${default})."`
	Settle time.Duration `default:"5s" placeholder:"TIME" help:"How long the feed may take to show a step (default: ${default})."`
	JSON   bool          `name:"json" help:"Print JSON Lines (one object a line): the report."`
}

// Help is what --help says beyond the flags.
func (c *conformancePublisherCommand) Help() string {
	return "The test adds entries until an archive is closed, and then until another is; it changes an entry, adds one, and deletes one. After each step it reads all documents " +
		"and reports which duties hold. Use a feed that is for tests: what is added stays there.\n\n" +
		"The exit status is 1 if a must is not met."
}

// Validate refuses limits that allow for nothing.
func (c *conformancePublisherCommand) Validate() error {
	switch {
	case c.Adds < 1:
		return errors.New("--adds: at least 1")
	case c.Settle <= 0:
		return errors.New("--settle: more than 0s")
	}
	return checkURL(c.URL)
}

// Run tests the publisher.
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
