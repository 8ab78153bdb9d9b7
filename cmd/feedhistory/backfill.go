package main

import (
	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
)

// jsonInspected is the JSON of a document, with the methods --backfill would try.
type jsonInspected struct {
	schema.Document
	Backfill []string      `json:"backfill,omitempty"`
	Coverage *jsonCoverage `json:"coverage,omitempty"`
}

// A jsonCoverage is how much of another feed a document declares to have.
type jsonCoverage struct {
	Of      string       `json:"of,omitempty"`
	Verdict string       `json:"verdict"`
	AsOf    string       `json:"as_of,omitempty"`
	Gaps    []schema.Gap `json:"gaps,omitempty"`
}

func newCoverage(c *feedhistory.Coverage) *jsonCoverage {
	if c == nil {
		return nil
	}
	return &jsonCoverage{Of: c.Of, Verdict: c.Verdict.String(), AsOf: schema.Second(c.AsOf), Gaps: schema.Each(c.Gaps, schema.NewGap)}
}

// applicable returns the names of the methods for the software named by a document.
func applicable(doc *feedhistory.Document) (names []string) {
	sure, _ := new(backfill.Backfill).Candidates(doc)
	for _, m := range sure {
		names = append(names, m.Name())
	}
	return names
}
