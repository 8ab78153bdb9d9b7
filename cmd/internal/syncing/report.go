package syncing

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// A Report reports on a sync: a line for each poll, a bar on a terminal, and a
// summary.
type Report struct {
	mu      sync.Mutex
	JSON    bool
	Stdout  io.Writer
	Page    *terminal.Page // for results
	Asides  *terminal.Page // for the summary
	Errors  *terminal.Page // for failed polls
	DB      *database.Location
	Every   bool
	feeds   int // the number of feeds to poll; not used with every
	bar     *terminal.Bar
	Counted *CountedStore  // counts the documents and entries so far
	Told    map[string]int // the exit status of each feed's last poll
	last    string         // the trouble reported last

	polls, added, changed, deleted int // so far
	Ended                          int // polls not ended by an interrupt
	left                           int // feeds whose poll an interrupt ended before it had a result
}

// Begin begins the report on the polls of a number of feeds.
func (r *Report) Begin(w *command.World, feeds int) {
	r.feeds = feeds
	if r.Every {
		feeds = 0
	}
	r.bar = w.NewBar(feeds, "polling")
	r.Counted.counted = func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.describe()
	}
}

// describe shows the work done on the bar. It needs the lock.
func (r *Report) describe() {
	done := terminal.Count(r.polls, "poll", "polls")
	if !r.Every {
		done = fmt.Sprintf("%d of %s", r.polls, terminal.Count(r.feeds, "feed", "feeds"))
	}
	r.bar.Describe(fmt.Sprintf("%s · %s · %s", done, terminal.Count(int(r.Counted.CommittedDocuments.Load()), "document", "documents"),
		terminal.Count(int(r.Counted.CommittedEntries.Load()), "entry", "entries")))
}

// tell reports the outcome of a poll. It returns an error of the output.
func (r *Report) tell(o Outcome) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bar.Clear()
	defer func() {
		r.bar.Step()
		r.describe()
	}()
	switch {
	case o.kind == removed, o.kind == broken && !r.Every: // an error of the store ends the sync, which reports it
		return nil
	case o.kind == interrupted && o.Report == nil:
		r.left++
		return nil
	}
	if o.kind == broken {
		o.Err = r.DB.Failure(o.Err)
	}
	status := o.Status()
	before, again := r.Told[o.URL]
	r.Told[o.URL] = status
	r.polls++
	if o.kind != interrupted {
		r.Ended++
	}
	c := cmp.Or(o.Report, &mirror.Report{URL: o.URL, Verdict: feedhistory.Partial})
	r.added, r.changed, r.deleted = r.added+c.Added, r.changed+c.Changed, r.deleted+c.Deleted
	if r.JSON {
		if err := terminal.WriteJSON(r.Stdout, o.JSON(c)); err != nil {
			return err
		}
	}
	if r.Every && again && before == status && o.kind == polled && c.Added+c.Changed+c.Deleted+c.Altered == 0 {
		return nil
	}
	r.last = ""
	if o.kind == failed || o.kind == broken {
		showOutcome(r.Errors, o, c)
		return nil
	}
	showOutcome(r.Page, o, c)
	return r.Page.Err
}

// Trouble reports an unreadable store. It reports the same error only once in
// succession.
func (r *Report) Trouble(err error) {
	if text := r.DB.Failure(err).Error(); text != r.last {
		r.last = text
		r.Errors.Line(terminal.Clean(text + "; trying again every minute"))
	}
}

// End prints the summary. left is the number of feeds still in the queue.
func (r *Report) End(left int) {
	r.bar.End()
	if left += r.left; left > 0 && !r.Every {
		r.Asides.Para("", "", terminal.Count(left, "feed was", "feeds were")+" not polled; the next sync begins with them if they are due")
		r.Told[""] = exit.Partial
	}
	if r.polls < 2 {
		return
	}
	failures, partial := 0, 0
	for feed, status := range r.Told {
		switch {
		case status == exit.Failed:
			failures++
		case status == exit.Partial && feed != "":
			partial++
		}
	}
	text := terminal.Count(r.polls, "poll", "polls") + " · " + changesText(r.added, r.changed, r.deleted)
	if failures > 0 {
		text += fmt.Sprintf(" · %d failed", failures)
	}
	if partial > 0 {
		text += " · " + terminal.Count(partial, "feed lacks", "feeds lack") + " something"
	}
	r.Asides.Para("", "", text)
}

// found reports which feed replaces a web page.
func (r *Report) found(page string, feeds feedhistory.Links) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bar.Clear()
	r.Asides.Line(terminal.Clean(argument.WithoutUser(page) + ": a web page; its feed is " + feeds[0].Href))
	for _, other := range feeds[1:] {
		r.Asides.Line("  " + terminal.Clean(command.OtherFeed(other)))
	}
}

// private reports a new feed kept private because of its address.
func (r *Report) private(feed string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bar.Clear()
	r.Asides.Line(terminal.Clean(argument.WithoutUser(feed) + ": private, because its address seems to have a secret; sync --public URL shows it to everybody"))
}

// gone reports a feed removed by somebody during the sync.
func (r *Report) gone(feed string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bar.Clear()
	r.Asides.Line(terminal.Clean(feed + ": removed from the mirror meanwhile"))
}

// hasTold reports whether tell has reported a poll of a feed.
func (r *Report) hasTold(feed string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, told := r.Told[feed]
	return told
}

// Status returns the exit status for the last poll of each feed, as an error; nil for 0.
func (r *Report) Status() error {
	worst := exit.OK
	for _, status := range r.Told {
		if status == exit.Failed {
			return exit.StatusError(exit.Failed)
		}
		worst = max(worst, status)
	}
	if worst != exit.OK {
		return exit.StatusError(worst)
	}
	return nil
}

// showOutcome shows the outcome of a poll.
func showOutcome(p *terminal.Page, o Outcome, c *mirror.Report) {
	p.Line(terminal.Clean(o.Text(c)))
	switch c.Moved {
	case "":
	case c.URL:
		p.Para("  ", "  ", "the feed is back at the address to which you subscribed")
	default:
		p.Para("  ", "  ", "the feed has moved permanently to "+c.Moved)
	}
	if c.Altered > 0 {
		p.Para("  ", "  ", terminal.Count(c.Altered, "archive document has", "archive documents have")+
			" changed, although archives should never change; their new entries have been added")
	}
	if (o.kind == polled || o.kind == interrupted) && c.Alias == "" {
		showMissing(p, c.URL, c.Gaps)
	}
}

// showMissing shows the first gaps of a feed.
func showMissing(p *terminal.Page, feed string, gaps []*feedhistory.Gap) {
	for i, g := range gaps {
		if i == gapsShown && len(gaps) > gapsShown+1 {
			p.Para("  - ", "    ", fmt.Sprintf("and %d more: see feedhistory list %s", len(gaps)-i, feed))
			return
		}
		explain.Gap(p, g)
	}
}

// A CountedStore counts the documents and entries committed by polls.
type CountedStore struct {
	mirror.Indexer
	CommittedDocuments, CommittedEntries atomic.Int64

	counted func() // called after the counts have changed; may be nil
}

// Commit implements mirror.Store.
func (s *CountedStore) Commit(ctx context.Context, c *mirror.Commit) error {
	err := s.Indexer.Commit(ctx, c)
	if err == nil && len(c.Put)+len(c.Touch)+len(c.Documents) > 0 {
		s.CommittedDocuments.Add(1)
		s.CommittedEntries.Add(int64(len(c.Put)))
		if s.counted != nil {
			s.counted()
		}
	}
	return err
}
