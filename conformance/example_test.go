package conformance_test

import (
	"context"
	"fmt"
	"log"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/conformance"
)

// A reader in Go is tested by one call. This one reads every feed to its end.
func Example() {
	read := func(ctx context.Context, url, _ string) (*conformance.Result, error) {
		c := &feedhistory.Client{Policy: feedhistory.Policy{AllowPrivate: true}}
		defer c.CloseIdle()
		h, err := c.Fetch(ctx, url)
		if err != nil {
			return &conformance.Result{Failed: true}, nil
		}
		r := &conformance.Result{Verdict: h.Verdict().String()}
		for _, e := range h.Entries {
			r.Entries = append(r.Entries, conformance.Entry{ID: e.ID, Title: e.Title().Plain()})
		}
		return r, nil
	}
	cases, err := conformance.Cases()
	if err != nil {
		log.Fatal(err)
	}
	if cases, err = conformance.Match(cases, "walk/*"); err != nil {
		log.Fatal(err)
	}
	report, err := conformance.Run(context.Background(), read, cases[:1], nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, trial := range report.Trials {
		fmt.Println(trial.Name, trial.Outcome == conformance.Passed)
	}
	// Output: walk/all-documents-of-the-same-time true
}
