package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/conformance/suite"
)

// A conformanceCommand is the verb conformance.
type conformanceCommand struct {
	Serve     conformanceServeCommand     `cmd:"" help:"Serve the cases on the loopback interface, and judge results over HTTP."`
	Run       conformanceRunCommand       `cmd:"" help:"Test a program that reads feeds."`
	Page      conformancePageCommand      `cmd:"" help:"Make one HTML page from several reports."`
	Publisher conformancePublisherCommand `cmd:"" help:"Test a program that publishes a feed."`
}

// caseFlags choose cases.
type caseFlags struct {
	Case   []string `sep:"none" placeholder:"PATTERN" help:"Only cases whose names match, such as walk/archive-* (repeatable)."`
	Flag   []string `sep:"," placeholder:"FLAG" help:"Only cases with these flags: rfc, http, security, goal, hostile, rss1, polls; with ! before one, cases without it."`
	Format []string `sep:"," placeholder:"FORMAT" help:"Only cases whose documents all have one of these formats: atom, rss, json."`
}

var caseFormats = []string{"atom", "rss", "json"}

// cases returns the cases chosen by the flags.
func (f *caseFlags) cases() ([]*suite.Case, error) {
	cases, err := suite.Cases()
	if err != nil {
		return nil, err
	}
	if cases, err = suite.Match(cases, f.Case...); err != nil {
		return nil, terminal.UsageError("--case: " + err.Error())
	}
	if cases, err = suite.Flagged(cases, f.Flag...); err != nil {
		return nil, terminal.UsageError("--flag: " + err.Error() + "; see --help for those there are")
	}
	if len(f.Format) > 0 {
		for _, format := range f.Format {
			if !slices.Contains(caseFormats, format) {
				return nil, terminal.UsageError(fmt.Sprintf("--format: %q is none of %s", format, strings.Join(caseFormats, ", ")))
			}
		}
		cases = slices.DeleteFunc(slices.Clone(cases), func(c *suite.Case) bool {
			return slices.ContainsFunc(c.Formats, func(format string) bool { return !slices.Contains(f.Format, format) })
		})
	}
	if len(cases) == 0 {
		return nil, terminal.UsageError("no case has all of this: --case, --flag and --format leave none")
	}
	return cases, nil
}

// writeFile makes the file named by a flag, with the content that a function writes.
func writeFile(flag, name string, write func(io.Writer) error) error {
	f, err := command.NewFile(flag, name)
	if err != nil {
		return err
	}
	defer f.Discard()
	return cmp.Or(write(f), f.Commit())
}

// A conformanceRunCommand is the verb conformance run.
type conformanceRunCommand struct {
	Command []string `arg:"" passthrough:"" name:"COMMAND" help:"The program and its arguments, after --. In the arguments, {url} becomes the feed's address, and {state} a directory that persists from poll to poll."`

	Name     string        `placeholder:"NAME" help:"Name of the program in the report, such as its name and version (default: the name of its file)."`
	Parallel int           `default:"2" least:"1" placeholder:"N" help:"Test N cases at the same time (default: ${default})."`
	Timeout  time.Duration `default:"20s" above:"0s" placeholder:"TIME" help:"Maximum time for one run of the program (default: ${default})."`
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

// Run tests the program.
func (c *conformanceRunCommand) Run(w *command.World) error {
	command := c.Command
	switch {
	case len(command) > 0 && command[0] == "--":
		command = command[1:]
	case len(command) > 0 && strings.HasPrefix(command[0], "-"):
		return terminal.UsageError("there is no flag " + command[0] + "; the program and its arguments come after --")
	}
	if len(command) == 0 {
		return terminal.UsageError("give the program and its arguments after --")
	}
	if err := terminal.CheckTarget("--html", c.HTML); err != nil {
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
		return terminal.StatusError(terminal.ExitFailed)
	}
	return nil
}

func (c *conformanceRunCommand) print(w *command.World, report *suite.Report) error {
	if c.HTML != "" {
		if err := writeFile("--html", c.HTML, func(f io.Writer) error { return suite.WritePage(f, report) }); err != nil {
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

// A conformanceServeCommand is the verb conformance serve.
type conformanceServeCommand struct {
	Listen terminal.Listen `default:"127.0.0.1:5005" placeholder:"ADDRESS" help:"Where to listen (default: ${default}); port 0 means any free port."`

	caseFlags
}

// Help returns the text of --help before the flags.
func (c *conformanceServeCommand) Help() string {
	return "Each case is a website on its own port, always on the loopback interface. The first page lists the addresses of the cases; " +
		"/cases/NAME/requests lists the requests that a case has received, and /cases/NAME/judge judges the JSON that you send to it."
}

// Run serves until the context ends.
func (c *conformanceServeCommand) Run(w *command.World) error {
	cases, err := c.cases()
	if err != nil {
		return err
	}
	listener, err := terminal.ListenAt(c.Listen)
	if err != nil {
		return err
	}
	server, err := suite.NewServer(cases)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer server.Close()
	w.Tell(fmt.Sprintf("%d cases at http://%s/", len(cases), terminal.AddressOf(listener)))
	return serveHTTP(w, listener, server, slog.New(slog.NewTextHandler(w.Stderr, nil)))
}

// A conformancePublisherCommand is the verb conformance publisher.
type conformancePublisherCommand struct {
	URL    string        `arg:"" name:"URL" help:"The subscription document's address."`
	Add    string        `required:"" placeholder:"CMD" help:"Command that adds an entry. Each CMD is a command line for the shell. The environment variable CONFORMANCE_STEP has a different number each time."`
	Edit   string        `placeholder:"CMD" help:"Command that changes a published entry."`
	Delete string        `placeholder:"CMD" help:"Command that deletes an entry."`
	Adds   int           `default:"200" least:"1" placeholder:"N" help:"Add at most N entries until an archive is closed (default: ${default})."`
	Settle time.Duration `default:"5s" above:"0s" placeholder:"TIME" help:"How long the feed may take to show a step (default: ${default})."`

	terminal.JSONFlag `set:"record=the report"`
}

// Help returns the text of --help before the flags.
func (c *conformancePublisherCommand) Help() string {
	return "The test adds entries until the publisher closes an archive, and then until it closes another; it changes an entry, adds one, and deletes one. After each step it reads all documents " +
		"and reports which duties the publisher fulfils. Of a paged feed, which has no archives, it reads all pages. Use a feed that is for tests only: the added entries stay there.\n\n" +
		"The exit status is 1 if the publisher breaks a \"must\"."
}

// Validate refuses a URL that cannot be fetched.
func (c *conformancePublisherCommand) Validate() error { return terminal.CheckURL(c.URL) }

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
		err = terminal.StatusError(terminal.ExitFailed)
	}
	return err
}

// A conformancePageCommand is the verb conformance page.
type conformancePageCommand struct {
	Reports []string `arg:"" name:"FILE" help:"Reports that conformance run --json printed."`
	Badge   string   `placeholder:"FILE" help:"Also write the first report's result as JSON for an endpoint badge of shields.io."`
}

// Help returns the text of --help before the flags.
func (c *conformancePageCommand) Help() string {
	return "The page goes to standard output. It has a row for each case and a column for each report."
}

// Run makes the page.
func (c *conformancePageCommand) Run(w *command.World) error {
	if err := terminal.CheckTarget("--badge", c.Badge); err != nil {
		return err
	}
	var reports []*suite.Report
	for _, name := range c.Reports {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for report, err := range show.Lines[*suite.Report](bytes.NewReader(data)) {
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			reports = append(reports, report)
		}
	}
	if c.Badge != "" && len(reports) > 0 {
		if err := writeFile("--badge", c.Badge, func(f io.Writer) error { return suite.WriteBadge(f, reports[0]) }); err != nil {
			return err
		}
	}
	return suite.WritePage(w.Stdout, reports...)
}
