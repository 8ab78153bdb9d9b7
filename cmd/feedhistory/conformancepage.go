package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/conformance/suite"
)

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
	if err := argument.CheckTarget("--badge", c.Badge); err != nil {
		return err
	}
	var reports []*suite.Report
	for _, name := range c.Reports {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for report, err := range schema.Lines[*suite.Report](bytes.NewReader(data)) {
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			reports = append(reports, report)
		}
	}
	if c.Badge != "" && len(reports) > 0 {
		if err := writeFile(c.Badge, func(f *os.File) error { return suite.WriteBadge(f, reports[0]) }); err != nil {
			return err
		}
	}
	return suite.WritePage(w.Stdout, reports...)
}
