package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/feedhistory/feedhistory/conformance"
)

// The verb conformance page.
type conformancePageCommand struct {
	Reports []string `arg:"" name:"FILE" help:"What conformance run --json printed."`
}

// Help is what --help says beyond the flags.
func (c *conformancePageCommand) Help() string {
	return "The page goes to standard output: a row for each case, a column for each report."
}

// Run makes the page.
func (c *conformancePageCommand) Run(w *world) error {
	var reports []*conformance.Report
	for _, name := range c.Reports {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for report, err := range jsonLines[*conformance.Report](bytes.NewReader(data)) {
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			reports = append(reports, report)
		}
	}
	return conformance.WritePage(w.stdout, reports...)
}
