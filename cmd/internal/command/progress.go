package command

import (
	"fmt"
	"iter"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// A Progress counts the documents of a walk, and shows the count on a terminal.
type Progress struct {
	bar       *terminal.Bar
	documents int
	entries   int
}

// NewProgress returns a progress. It is shown if NewBar returns a bar.
func (w *World) NewProgress() *Progress {
	return &Progress{bar: w.NewBar(0, "looking for the feed")}
}

// Watch yields the documents and errors of a walk, and counts the documents.
func (p *Progress) Watch(docs iter.Seq2[*feedhistory.Document, error]) iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		for doc, err := range docs {
			if doc != nil {
				p.add(doc)
			}
			if !yield(doc, err) {
				return
			}
		}
	}
}

func (p *Progress) add(doc *feedhistory.Document) {
	p.documents++
	p.entries += len(doc.Entries)
	p.bar.Describe(fmt.Sprintf("%s · %s", terminal.Count(p.documents, "document", "documents"),
		terminal.Count(p.entries, "entry", "entries")))
}

// End removes the progress from the terminal.
func (p *Progress) End() {
	p.bar.End()
}
