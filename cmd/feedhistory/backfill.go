package main

import (
	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
)

// jsonInspected is the JSON of a document, with the methods --backfill would try.
type jsonInspected struct {
	schema.Document
	Backfill []string `json:"backfill,omitempty"`
}

// applicable returns the names of the methods for the software named by a document.
func applicable(doc *feedhistory.Document) (names []string) {
	sure, _ := new(backfill.Backfill).Candidates(doc)
	for _, m := range sure {
		names = append(names, m.Name())
	}
	return names
}
