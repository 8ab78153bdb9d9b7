package suite_test

import (
	"context"
	"fmt"

	"github.com/feedhistory/feedhistory/conformance/suite"
)

// The report of a reader that finds one entry in every feed has a score for each level.
func Example() {
	cases, err := suite.Cases()
	if err == nil {
		cases, err = suite.Match(cases, "walk/archived")
	}
	if err != nil {
		panic(err)
	}
	read := func(context.Context, string, string) (*suite.Result, error) {
		return &suite.Result{Entries: []suite.ReaderEntry{{ID: "urn:1"}}}, nil
	}
	report, err := suite.Run(context.Background(), read, cases, nil)
	if err != nil {
		panic(err)
	}
	for _, trial := range report.Trials {
		switch trial.Outcome {
		case suite.Passed:
			fmt.Println(trial.Name, "is passed")
		case suite.Errored:
			fmt.Println(trial.Name, "has a run without a result")
		default:
			fmt.Println(trial.Name, trial.Outcome)
		}
	}
	var entries = report.Scores["entries"]
	fmt.Printf("%d of %d\n", entries.Must, entries.MustAll)
	// Output:
	// walk/archived fail
	// 2 of 4
}
