package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/conformance"
)

// A conformancePageCommand is the verb conformance page.
type conformancePageCommand struct {
	Reports []string `arg:"" name:"FILE" help:"What conformance run --json printed."`
}

// Help returns the text of --help that precedes the flags.
func (c *conformancePageCommand) Help() string {
	return "The page goes to standard output. It has a row for each case and a column for each report."
}

// Run makes the page.
func (c *conformancePageCommand) Run(w *command.World) error {
	var reports []*conformance.Report
	for _, name := range c.Reports {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for report, err := range schema.Lines[*conformance.Report](bytes.NewReader(data)) {
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			reports = append(reports, report)
		}
	}
	return conformance.WritePage(w.Stdout, reports...)
}
