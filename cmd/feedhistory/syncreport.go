package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// A syncReport reports on a sync: a line for each poll, a bar on a terminal, and a
// summary.
type syncReport struct {
	mu      sync.Mutex
	json    bool
	stdout  io.Writer
	page    *terminal.Page // for results
	asides  *terminal.Page // for the summary
	errors  *terminal.Page // for polls that failed
	db      *database.Location
	every   bool
	feeds   int                      // the number of feeds to poll; not used with every
	bar     *progressbar.ProgressBar // nil if it is not shown
	stop    chan struct{}            // closed to stop drawing the bar
	counted *countedStore            // counts the documents and entries so far
	told    map[string]int           // the exit status of each feed's last poll
	last    string                   // the trouble that was reported last

	polls, added, changed, deleted int // so far
	ended                          int // polls that no interrupt ended
	left                           int // feeds whose poll an interrupt ended before it had a result
}

func (r *syncReport) begin(w *command.World, feeds int) {
	r.feeds = feeds
	if r.every {
		feeds = -1
	}
	if r.bar = w.NewBar(feeds, "polling"); r.bar != nil {
		r.stop = make(chan struct{})
		go r.draw()
	}
}

// draw draws the bar until stop is closed.
func (r *syncReport) draw() {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-tick.C:
			r.describe()
		}
	}
}

func (r *syncReport) describe() {
	r.mu.Lock()
	defer r.mu.Unlock()
	done := terminal.Count(r.polls, "poll", "polls")
	if !r.every {
		done = fmt.Sprintf("%d of %s", r.polls, terminal.Count(r.feeds, "feed", "feeds"))
	}
	r.bar.Describe(fmt.Sprintf("%s · %s · %s", done, terminal.Count(int(r.counted.documents.Load()), "document", "documents"),
		terminal.Count(int(r.counted.entries.Load()), "entry", "entries")))
}

// tell reports the outcome of a poll. It returns an error of the output.
func (r *syncReport) tell(o outcome) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bar != nil {
		_ = r.bar.Clear()
		defer func() { _ = r.bar.Add(1) }()
	}
	switch {
	case o.kind == removed, o.kind == broken && !r.every: // an error of the store ends the sync, which reports it
		return nil
	case o.kind == interrupted && o.Changes == nil:
		r.left++
		return nil
	}
	if o.kind == broken {
		o.Err = r.db.Failure(o.Err)
	}
	status := o.status()
	before, again := r.told[o.URL]
	r.told[o.URL] = status
	r.polls++
	if o.kind != interrupted {
		r.ended++
	}
	c := cmp.Or(o.Changes, &mirror.Changes{URL: o.URL, Verdict: feedhistory.Partial})
	r.added, r.changed, r.deleted = r.added+c.Added, r.changed+c.Changed, r.deleted+c.Deleted
	if r.json {
		if err := terminal.WriteJSON(r.stdout, o.json(c)); err != nil {
			return err
		}
	}
	if r.every && again && before == status && o.kind == polled && c.Added+c.Changed+c.Deleted+c.Altered == 0 {
		return nil
	}
	r.last = ""
	if o.kind == failed || o.kind == broken {
		showOutcome(r.errors, o, c)
		return nil
	}
	showOutcome(r.page, o, c)
	return r.page.Err
}

// trouble reports that the store cannot be read. It reports the same error only once in
// succession.
func (r *syncReport) trouble(err error) {
	if text := r.db.Failure(err).Error(); text != r.last {
		r.last = text
		r.errors.Line(terminal.Clean(text + "; trying again every minute"))
	}
}

// end prints the summary. left is the number of feeds that are still in the queue.
func (r *syncReport) end(left int) {
	if r.bar != nil {
		close(r.stop)
		_ = r.bar.Finish()
	}
	if left += r.left; left > 0 && !r.every {
		r.asides.Para("", "", terminal.Count(left, "feed was", "feeds were")+" not polled; the next sync begins with them if they are due")
		r.told[""] = exit.Partial
	}
	if r.polls < 2 {
		return
	}
	failures, partial := 0, 0
	for feed, status := range r.told {
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
	r.asides.Para("", "", text)
}

// found reports which feed replaces a web page.
func (r *syncReport) found(page string, feeds feedhistory.Links) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bar != nil {
		_ = r.bar.Clear()
	}
	r.asides.Line(terminal.Clean(argument.WithoutUser(page) + ": a web page; its feed is " + feeds[0].Href))
	for _, other := range feeds[1:] {
		r.asides.Line("  " + terminal.Clean(command.OtherFeed(other)))
	}
}

// hasTold reports whether tell has reported a poll of a feed.
func (r *syncReport) hasTold(feed string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, told := r.told[feed]
	return told
}

// status returns the exit status for the last poll of each feed, as an error; nil for 0.
func (r *syncReport) status() error {
	worst := exit.OK
	for _, status := range r.told {
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

// status returns the exit status for a poll. It is not a failure if the publisher has
// withdrawn a feed that an earlier poll has read.
func (o *outcome) status() int {
	switch {
	case o.kind == broken, o.kind == failed && (o.forget || !o.Changes.Gone):
		return exit.Failed
	case o.kind != busy && o.Changes.Alias == "" && o.Changes.Verdict == feedhistory.Partial:
		return exit.Partial
	}
	return exit.OK
}

// changesText says how many entries have changed, and how.
func changesText(added, changed, deleted int) string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{added, "new"}, {changed, "changed"}, {deleted, "deleted"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	if len(parts) == 0 {
		return "nothing new"
	}
	return strings.Join(parts, ", ")
}

// showOutcome shows the outcome of a poll.
func showOutcome(p *terminal.Page, o outcome, c *mirror.Changes) {
	p.Line(terminal.Clean(o.text(c)))
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

// text returns the outcome of a poll as one line.
func (o *outcome) text(c *mirror.Changes) string {
	changes := changesText(c.Added, c.Changed, c.Deleted)
	result := fmt.Sprintf("%s: %s · %s", o.URL, changes, c.Verdict)
	if !c.AsOf.IsZero() {
		result += " as of " + c.AsOf.UTC().Format(time.DateOnly)
	}
	switch o.kind {
	case polled:
		if c.Alias != "" {
			return o.URL + ": the feed has become " + c.Alias + ", which sync polls instead; the entries of the old one are kept"
		}
		if c.More {
			result += " · the budget is spent; the next sync continues there"
		}
		return result
	case interrupted:
		if c.Next.After(time.Now()) { // the poll committed nothing, so there is nothing to continue
			return result + " · interrupted"
		}
		return result + " · interrupted; the next sync continues there"
	case waiting:
		return fmt.Sprintf("%s: its host asks for no requests until %s", o.URL, terminal.Time(o.until))
	case busy:
		return o.URL + ": another process is polling it"
	case broken:
		return o.URL + ": " + o.Err.Error()
	}
	text := explain.Failure(o.URL, o.Changes.Failure).Error()
	if c.Added > 0 {
		text += " (what could be read: " + changes + ")"
	}
	if o.forget && !o.stray && isWrongAddress(o.Changes.Failure) {
		text += "; feedhistory rm removes it"
	}
	return text
}

// isWrongAddress reports whether an error means that the address may be wrong.
func isWrongAddress(err error) bool {
	status, _ := errors.AsType[*feedhistory.StatusError](err)
	parse, _ := errors.AsType[*feedhistory.ParseError](err)
	dns, _ := errors.AsType[*net.DNSError](err)
	return status != nil && (status.Status == http.StatusNotFound || status.Gone) ||
		parse != nil && parse.Reason == feedhistory.ReasonNotFeed || dns != nil && dns.IsNotFound
}

// gapsShown is the maximum number of gaps that sync shows of a feed; list shows all.
const gapsShown = 3

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

// A jsonSync is the outcome of a poll in JSON.
type jsonSync struct {
	URL       string       `json:"url"`
	Kind      string       `json:"kind"`
	Verdict   string       `json:"verdict"`
	AsOf      string       `json:"as_of,omitempty"`
	Added     int          `json:"added"`
	Changed   int          `json:"changed"`
	Deleted   int          `json:"deleted"`
	Documents int          `json:"documents"`
	Altered   int          `json:"altered,omitempty"` // archive documents that changed, although they must not
	Gaps      []schema.Gap `json:"gaps"`
	NextPoll  string       `json:"next_poll,omitempty"`
	Moved     string       `json:"moved,omitempty"`
	Alias     string       `json:"alias,omitempty"` // the mirrored feed that it has become
	Wait      string       `json:"wait,omitempty"`  // the feed's host asks for no requests until then, so there was none
	Gone      bool         `json:"gone,omitempty"`
	Busy      bool         `json:"busy,omitempty"` // another process is polling the feed
	Error     string       `json:"error,omitempty"`
}

func (o *outcome) json(c *mirror.Changes) jsonSync {
	j := jsonSync{
		URL: c.URL, Kind: c.Kind.String(), Verdict: c.Verdict.String(), AsOf: schema.Second(c.AsOf),
		Added: c.Added, Changed: c.Changed, Deleted: c.Deleted, Documents: c.Documents, Altered: c.Altered,
		Gaps: schema.Each(c.Gaps, schema.NewGap), NextPoll: schema.Second(c.Next),
		Moved: c.Moved, Alias: c.Alias, Wait: schema.Second(o.until), Gone: c.Gone, Busy: o.kind == busy,
	}
	switch o.kind {
	case failed:
		j.Error = explain.Detail(o.Changes.Failure)
	case broken:
		j.Error = o.Err.Error()
	case interrupted:
		j.Error = "interrupted"
	}
	return j
}

// A countedStore counts the documents and entries that polls commit.
type countedStore struct {
	mirror.Indexer
	documents, entries atomic.Int64
}

// Commit implements mirror.Store.
func (s *countedStore) Commit(ctx context.Context, c *mirror.Change) error {
	err := s.Indexer.Commit(ctx, c)
	if err == nil && len(c.Put)+len(c.Touch)+len(c.Documents) > 0 {
		s.documents.Add(1)
		s.entries.Add(int64(len(c.Put)))
	}
	return err
}
