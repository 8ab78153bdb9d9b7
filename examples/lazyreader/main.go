// Lazyreader shows a feed's history page by page, and reads only as much of it as it
// shows.
//
//	go run ./examples/lazyreader [URL]
//
// Press Enter for more; end the input (Ctrl-D) to leave. Without a URL it serves and
// reads a feed of three documents.
package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"log"
	"os"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/examples/site"
)

func main() {
	client, urls, stop := site.Feeds(site.Archived)
	defer stop()
	if err := show(context.Background(), os.Stdin, os.Stdout, client, urls[0], 2); err != nil {
		log.Fatal(err)
	}
}

// show prints a page of entries for each line of the input, and at the end the verdict.
func show(ctx context.Context, in io.Reader, out io.Writer, client *feedhistory.Client, url string, page int) error {
	s := newScroll(client.Walk(ctx, url))
	defer s.stop()
	for lines := bufio.NewScanner(in); ; {
		entries := s.next(page)
		for _, e := range entries {
			fmt.Fprintf(out, "%s  %s\n", cmp.Or(e.Updated, e.Published).Format(time.DateOnly), e.Title().Plain())
		}
		if len(entries) < page {
			break
		}
		if !lines.Scan() {
			return lines.Err() // the rest is not read, so there is no verdict
		}
	}
	history, err := s.merger.History()
	if history == nil {
		return err
	}
	fmt.Fprintln(out, history.Kind, history.Verdict())
	for _, gap := range history.Gaps {
		fmt.Fprintf(out, "missing: %v\n  what to do: %s\n", gap, gap.Reason.Advice())
	}
	return err
}

// A scroll is a walk through a feed at the reader's pace.
type scroll struct {
	pull   func() (*feedhistory.Reading, error, bool)
	stop   func()
	merger feedhistory.Merger
	shown  map[string]*feedhistory.Entry // by ID
}

func newScroll(walk iter.Seq2[*feedhistory.Reading, error]) *scroll {
	s := &scroll{shown: map[string]*feedhistory.Entry{}}
	s.pull, s.stop = iter.Pull2(walk)
	return s
}

// next returns the next n entries, the newest first, and fewer at the end. It reads a
// document only if it needs more entries; the walk itself requests at most one in
// advance. An entry comes again after it was shown if an older document has a newer
// version of it.
func (s *scroll) next(n int) (entries []*feedhistory.Entry) {
	for more := true; more; {
		entries = s.waiting(n)
		if len(entries) == n {
			break
		}
		var reading *feedhistory.Reading
		var err error
		if reading, err, more = s.pull(); more {
			s.merger.Add(reading, err) // drops duplicates, applies deletions, collects gaps
		}
	}
	for _, e := range entries {
		s.shown[e.ID] = e
	}
	return entries
}

// waiting returns up to n entries read but not shown.
func (s *scroll) waiting(n int) (entries []*feedhistory.Entry) {
	history, _ := s.merger.History()
	if history == nil {
		return nil
	}
	for _, e := range history.Entries {
		if len(entries) < n && s.shown[e.ID] != e {
			entries = append(entries, e)
		}
	}
	return entries
}
