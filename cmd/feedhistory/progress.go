package main

import (
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/feedhistory/feedhistory"
)

// A progress counts the documents of a walk, and shows the count on a terminal.
type progress struct {
	bar       *progressbar.ProgressBar // nil if it is not shown
	documents int
	entries   int
}

// newProgress returns a progress. It is shown if newBar returns a bar.
func (w *world) newProgress() *progress {
	return &progress{bar: w.newBar(-1, "looking for the feed")}
}

// newBar returns a bar if standard error is a terminal and neither --verbose nor --quiet is
// given; else nil. With a negative length, the bar shows only that time passes.
func (w *world) newBar(length int, description string) *progressbar.ProgressBar {
	if w.Verbose || w.Quiet || !isTerminal(w.Stderr) {
		return nil
	}
	bar := progressbar.NewOptions(length,
		progressbar.OptionSetWriter(w.Stderr), progressbar.OptionSpinnerType(14),
		progressbar.OptionSetDescription(description), progressbar.OptionSetElapsedTime(true),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	_ = bar.RenderBlank() // the first document may take some time
	return bar
}

func isTerminal(w io.Writer) bool {
	if out, ok := w.(*stdoutWriter); ok {
		w = out.Writer
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// watch yields what a walk yields, and counts the documents.
func (p *progress) watch(docs iter.Seq2[*feedhistory.Document, error]) iter.Seq2[*feedhistory.Document, error] {
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

func (p *progress) add(doc *feedhistory.Document) {
	p.documents++
	p.entries += len(doc.Entries)
	if p.bar != nil {
		p.bar.Describe(fmt.Sprintf("%s · %s", count(p.documents, "document", "documents"),
			count(p.entries, "entry", "entries")))
		_ = p.bar.Add(1)
	}
}

// end removes the progress from the terminal.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
