package main

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/conformance/suite"
)

// A conformanceRunCommand is the verb conformance run.
type conformanceRunCommand struct {
	Command []string `arg:"" passthrough:"" name:"COMMAND" help:"The program and its arguments, after --. In the arguments, {url} becomes the feed's address, and {state} a directory that persists from poll to poll."`

	Name     string        `placeholder:"NAME" help:"Name of the program in the report, such as its name and version (default: the name of its file)."`
	Parallel int           `default:"2" placeholder:"N" help:"Test N cases at the same time (default: ${default})."`
	Timeout  time.Duration `default:"20s" placeholder:"TIME" help:"Maximum time for one run of the program (default: ${default})."`
	Warnings bool          `help:"Also show each \"should\" broken by the program."`

	terminal.JSONFlag `set:"record=the whole report"`

	Verbose bool   `short:"v" help:"Show the program's standard error of each run; without it, only that of the first run that failed."`
	HTML    string `name:"html" placeholder:"FILE" help:"Also write the report as an HTML page."`

	caseFlags
}

// Help returns the text of --help before the flags.
func (c *conformanceRunCommand) Help() string {
	return `The program reads the feed at {url}, prints {"entries":[{"id":"…","title":"…"}]} and exits. ` +
		`If it also prints "verdict" (whole, window, lossy or partial), "gaps" (addresses) or "deleted" (ids), the suite judges these too. ` +
		"The program may also print JSON Lines, with an entry on each line. " +
		"If its arguments contain {state}, the program runs once for each poll of a case, and prints all entries of the feed that it knows; " +
		"otherwise, the suite leaves out cases with several polls. " +
		"The feed is due at each poll, unless the environment has CONFORMANCE_DUE=0; then the program decides. " +
		"A run that ends without a result counts as an error, unless there is no feed.\n\n" +
		"The exit status is 1 if the program breaks a \"must\" or a run fails."
}

// Validate refuses limits of zero.
func (c *conformanceRunCommand) Validate() error {
	switch {
	case c.Parallel < 1:
		return errors.New("--parallel: at least 1")
	case c.Timeout <= 0:
		return errors.New("--timeout: more than 0s")
	}
	return nil
}

// Run tests the program.
func (c *conformanceRunCommand) Run(w *command.World) error {
	command := c.Command
	switch {
	case len(command) > 0 && command[0] == "--":
		command = command[1:]
	case len(command) > 0 && strings.HasPrefix(command[0], "-"):
		return exit.UsageError("there is no flag " + command[0] + "; the program and its arguments come after --")
	}
	if len(command) == 0 {
		return exit.UsageError("give the program and its arguments after --")
	}
	if err := argument.CheckTarget("--html", c.HTML); err != nil {
		return err
	}
	cases, err := c.cases()
	if err != nil {
		return err
	}
	var stderr io.Writer
	if c.Verbose {
		stderr = w.Stderr
	}
	report, err := suite.Run(w.Ctx, suite.Command(stderr, command...), cases, &suite.Options{
		Parallel: c.Parallel, Timeout: c.Timeout, NoState: !suite.Keeps(command),
	})
	if err != nil {
		return err
	}
	report.Reader, report.Command = cmp.Or(c.Name, filepath.Base(command[0])), command
	report.At = time.Now().UTC().Truncate(time.Second)
	if err := c.print(w, report); err != nil {
		return err
	}
	if report.Failed() {
		return exit.StatusError(exit.Failed)
	}
	return nil
}

func (c *conformanceRunCommand) print(w *command.World, report *suite.Report) error {
	if c.HTML != "" {
		if err := writeFile(c.HTML, func(f *os.File) error { return suite.WritePage(f, report) }); err != nil {
			return err
		}
	}
	if c.JSON {
		return terminal.WriteJSON(w.Stdout, report)
	}
	var text bytes.Buffer
	if err := report.WriteText(&text, c.Warnings); err != nil {
		return err
	}
	p := terminal.NewPage(w.Stdout)
	p.Text(text.String())
	return p.Err
}
