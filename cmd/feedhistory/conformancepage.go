package main

import (
	"encoding/json"
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
	reports := make([]*conformance.Report, len(c.Reports))
	for i, name := range c.Reports {
		data, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(data, &reports[i])
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return conformance.WritePage(w.stdout, reports...)
}
