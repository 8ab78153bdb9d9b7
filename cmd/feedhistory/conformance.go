package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory/cmd/internal/exit"
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
		return nil, exit.UsageError("--case: " + err.Error())
	}
	if cases, err = suite.Flagged(cases, f.Flag...); err != nil {
		return nil, exit.UsageError("--flag: " + err.Error() + "; see --help for those there are")
	}
	if len(f.Format) > 0 {
		for _, format := range f.Format {
			if !slices.Contains(caseFormats, format) {
				return nil, exit.UsageError(fmt.Sprintf("--format: %q is none of %s", format, strings.Join(caseFormats, ", ")))
			}
		}
		cases = slices.DeleteFunc(slices.Clone(cases), func(c *suite.Case) bool {
			return slices.ContainsFunc(c.Formats, func(format string) bool { return !slices.Contains(f.Format, format) })
		})
	}
	if len(cases) == 0 {
		return nil, exit.UsageError("no case has all of this: --case, --flag and --format leave none")
	}
	return cases, nil
}

// writeFile creates a file, or truncates it, and calls a function to write its content.
func writeFile(name string, write func(*os.File) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
