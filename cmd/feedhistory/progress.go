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

// A progress counts the documents of a walk, on a terminal for all to see.
type progress struct {
	bar       *progressbar.ProgressBar // nil: not shown
	documents int
	entries   int
}

// newProgress shows itself if stderr is a terminal that nothing else is to be
// written to.
func (w *world) newProgress() *progress {
	p := &progress{}
	if !w.Verbose && isTerminal(w.stderr) {
		p.bar = progressbar.NewOptions(-1,
			progressbar.OptionSetWriter(w.stderr), progressbar.OptionSpinnerType(14),
			progressbar.OptionSetDescription("looking for the feed"), progressbar.OptionSetElapsedTime(true),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
		_ = p.bar.RenderBlank() // the first document may take its time
	}
	return p
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// watch counts what a walk yields as it passes.
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

// end takes the progress off the terminal.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
