package schema

import "github.com/feedhistory/feedhistory"

// Inspected is a document in JSON, with the methods --backfill would try.
type Inspected struct {
	Document
	Backfill []string  `json:"backfill,omitempty"`
	Coverage *Coverage `json:"coverage,omitempty"`
}

// Coverage is how much of another feed a document declares to have.
type Coverage struct {
	Of      string `json:"of,omitempty"`
	Verdict string `json:"verdict"`
	AsOf    string `json:"as_of,omitempty"`
	Gaps    []Gap  `json:"gaps,omitempty"`
}

func newCoverage(c *feedhistory.Coverage) *Coverage {
	if c == nil {
		return nil
	}
	return &Coverage{Of: c.Of, Verdict: c.Verdict.String(), AsOf: Second(c.AsOf), Gaps: Each(c.Gaps, NewGap)}
}

// NewInspected returns a document in JSON, with the names of the methods for its software.
func NewInspected(doc *feedhistory.Document, methods []string) Inspected {
	return Inspected{NewDocument(doc), methods, newCoverage(doc.Coverage)}
}
