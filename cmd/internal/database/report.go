package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
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
	DB      *Location
	Every   bool
	Quiet   bool // report only what is wrong
	feeds   int  // the number of feeds to poll; not used with every
	bar     *terminal.Bar
	Counted *CountedStore  // counts the documents and entries so far
	Told    map[string]int // the exit status of each feed's last poll
	last    string         // the trouble reported last

	hints []string // how to look for older entries of the feeds polled so far

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
	c := cmp.Or(o.Report, &mirror.Report{Feed: mirror.NewFeed(o.URL)})
	r.added, r.changed, r.deleted = r.added+c.Added, r.changed+c.Changed, r.deleted+c.Deleted
	if r.JSON {
		if err := terminal.WriteJSON(r.Stdout, o.JSON(c)); err != nil {
			return err
		}
	}
	if r.Every && again && before == status && o.kind == polled && c.Added+c.Changed+c.Deleted+c.Altered == 0 {
		return nil
	}
	if r.Quiet && status == terminal.ExitOK {
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
		r.Told[""] = terminal.ExitPartial
	}
	r.endHints()
	if r.polls < 2 {
		return
	}
	failures, partial := 0, 0
	for feed, status := range r.Told {
		switch {
		case status == terminal.ExitFailed:
			failures++
		case status == terminal.ExitPartial && feed != "":
			partial++
		}
	}
	text := terminal.Count(r.polls, "poll", "polls") + " · " + changesText(r.added, r.changed, r.deleted)
	text = terminal.Counts(text, terminal.Part{N: failures, Says: "failed"})
	if partial > 0 {
		text += " · " + terminal.Count(partial, "feed lacks", "feeds lack") + " something"
	}
	r.Asides.Para("", "", text)
}

// older collects a hint about older entries; "" is none.
func (r *Report) older(hint string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if hint != "" {
		r.hints = append(r.hints, hint)
	}
}

// endHints prints the hint about the only feed polled, or how many feeds have one.
func (r *Report) endHints() {
	switch {
	case r.polls == 1 && len(r.hints) == 1:
		r.Asides.Line(terminal.Clean(r.hints[0]))
	case len(r.hints) > 0:
		r.Asides.Para("", "", terminal.Count(len(r.hints), "feed", "feeds")+" may have older entries; feedhistory list FEED says how to look for them")
	}
}

// aside reports something besides the polls, line by line.
func (r *Report) aside(lines ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bar.Clear()
	for _, line := range lines {
		r.Asides.Line(line)
	}
}

// Tell reports a message besides the polls.
func (r *Report) Tell(message string) { r.aside(terminal.Clean(message)) }

// found reports which feed replaces a web page.
func (r *Report) found(page string, feeds feedhistory.Links) {
	lines := []string{terminal.Clean(command.FeedOfPage(page, feeds[0]))}
	for _, other := range feeds[1:] {
		lines = append(lines, "  "+terminal.Clean(command.OtherFeed(other)))
	}
	r.aside(lines...)
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
	worst := terminal.ExitOK
	for _, status := range r.Told {
		if status == terminal.ExitFailed {
			return terminal.StatusError(terminal.ExitFailed)
		}
		worst = max(worst, status)
	}
	if worst != terminal.ExitOK {
		return terminal.StatusError(worst)
	}
	return nil
}

// showOutcome shows the outcome of a poll.
func showOutcome(p *terminal.Page, o Outcome, c *mirror.Report) {
	text := terminal.Clean(o.Text(c))
	if before, after, ok := strings.Cut(text, " · "+c.Feed.Verdict.String()); ok {
		text = before + " · " + p.Styled(c.Feed.Verdict.String(), show.StyleOf(c.Feed.Verdict)) + after
	}
	p.Line(text)
	switch c.Moved {
	case "":
	case c.Feed.URL:
		p.Para("  ", "  ", "the feed is back at the address to which you subscribed")
	default:
		p.Para("  ", "  ", "the feed has moved permanently to "+show.Address(c.Moved))
	}
	if url := c.Feed.NewAddress(); url != "" && o.kind == polled {
		text := "the feed says that it has moved to " + show.Address(url) + "; to follow it: feedhistory move " + show.Address(c.Feed.URL) + " " + show.Address(url)
		if show.Address(url) != url {
			text += " (feedhistory export --raw has the address whole)"
		}
		p.Para("  ", "  ", text)
	}
	if c.Altered > 0 {
		p.Para("  ", "  ", terminal.Count(c.Altered, "archive document has", "archive documents have")+
			" changed, although archives should never change; their new entries have been added")
	}
	if (o.kind == polled || o.kind == interrupted) && c.Feed.Alias == "" {
		showMissing(p, c.Feed.URL, c.Feed.Ledger.Gaps())
	}
}

// showMissing shows the first gaps of a feed.
func showMissing(p *terminal.Page, feed string, gaps []*feedhistory.Gap) {
	for i, g := range gaps {
		if i == gapsShown && len(gaps) > gapsShown+1 {
			p.Para("  - ", "    ", fmt.Sprintf("and %d more: see feedhistory list %s", len(gaps)-i, feed))
			return
		}
		show.PrintGap(p, g)
	}
}

// An IndexedStore is a store indexing entries between polls.
type IndexedStore interface {
	mirror.Store
	Index(ctx context.Context) error
}

// A CountedStore counts the documents and entries committed by polls.
type CountedStore struct {
	IndexedStore
	CommittedDocuments, CommittedEntries atomic.Int64

	counted func() // called after the counts have changed; may be nil
}

// Commit implements mirror.Store.
func (s *CountedStore) Commit(ctx context.Context, c *mirror.Commit) error {
	err := s.IndexedStore.Commit(ctx, c)
	if err == nil && len(c.Put)+len(c.Touch)+len(c.Documents) > 0 {
		s.CommittedDocuments.Add(1)
		s.CommittedEntries.Add(int64(len(c.Put)))
		if s.counted != nil {
			s.counted()
		}
	}
	return err
}

// An Outcome is the result of a poll.
type Outcome struct {
	URL    string
	Report *mirror.Report // nil if the poll did not get so far
	Err    error
	Verb   string // the verb that continues it; "" means sync
	kind   outcomeKind
	forget bool      // no poll has ever read the feed, so its address may be wrong
	until  time.Time // when the host accepts requests again
	stray  bool      // the address was not a feed's, and has been removed
}

type outcomeKind uint8

const (
	polled      outcomeKind = iota // the poll read the feed
	failed                         // the subscription document could not be read
	busy                           // another process is polling the feed
	interrupted                    // an interrupt ended the poll early
	broken                         // an error of the store ended the poll
	removed                        // another process removed the feed before its turn
	waiting                        // the host asks for no requests, so there was none
)

func outcomeOf(before *mirror.Feed, r *mirror.Report, err error) Outcome {
	o := Outcome{URL: before.URL, Report: r, Err: err}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		o.kind = interrupted
	case errors.Is(err, mirror.ErrNotFound):
		o.kind = removed
	case errors.Is(err, mirror.ErrConflict):
		o.kind = busy
	case err != nil:
		o.kind = broken
	case r.Failure != nil:
		o.kind, o.forget = failed, before.Ledger.URL() == ""
		if errors.Is(r.Failure, mirror.ErrWaits) {
			o.kind, o.until = waiting, r.Feed.Wait
		}
	}
	return o
}

// Status returns the exit status for a poll. It is not a failure if the publisher has
// withdrawn a feed read by an earlier poll.
func (o *Outcome) Status() int {
	switch {
	case o.kind == broken, o.kind == failed && (o.forget || !o.Report.Feed.Gone):
		return terminal.ExitFailed
	case o.kind != busy && o.Report.Feed.Alias == "":
		return terminal.ExitOf(o.Report.Feed.Verdict)
	}
	return terminal.ExitOK
}

// changesText says how many entries have changed, and how.
func changesText(added, changed, deleted int) string {
	parts := terminal.Texts(terminal.Part{N: added, Says: "new"}, terminal.Part{N: changed, Says: "changed"}, terminal.Part{N: deleted, Says: "deleted"})
	return cmp.Or(strings.Join(parts, ", "), "nothing new")
}

// Text returns the outcome of a poll as one line.
func (o *Outcome) Text(c *mirror.Report) string {
	changes := changesText(c.Added, c.Changed, c.Deleted)
	address := show.Address(o.URL)
	result := fmt.Sprintf("%s: %s · %s", address, changes, c.Feed.Verdict)
	if !c.Feed.WholeAsOf().IsZero() {
		result += " as of " + c.Feed.WholeAsOf().UTC().Format(time.DateOnly)
	} else if c.Feed.Verdict == feedhistory.VerdictWhole && !c.Feed.Ledger.Checked().IsZero() && time.Since(c.Feed.Ledger.Checked()) > 48*time.Hour {
		result += ", archives as of " + c.Feed.Ledger.Checked().UTC().Format(time.DateOnly)
	}
	switch o.kind {
	case polled:
		if c.Feed.Alias != "" {
			return address + ": the feed has become " + show.Address(c.Feed.Alias) + ", which sync polls instead; the entries of the old one are kept"
		}
		if c.More {
			result += " · the budget is spent; the next " + cmp.Or(o.Verb, "sync") + " continues there"
		}
		return result
	case interrupted:
		if c.Feed.Next.After(time.Now()) { // the poll committed nothing, so there is nothing to continue
			return result + " · interrupted"
		}
		return result + " · interrupted; the next " + cmp.Or(o.Verb, "sync") + " continues there"
	case waiting:
		return fmt.Sprintf("%s: its host asks for no requests until %s", address, terminal.Time(o.until))
	case busy:
		return address + ": another process is polling it"
	case broken:
		return address + ": " + o.Err.Error()
	}
	text := show.Failure(address, o.Report.Failure).Error()
	if c.Added > 0 {
		text += " (what could be read: " + changes + ")"
	}
	if o.forget && !o.stray && isWrongAddress(o.Report.Failure) {
		text += "; feedhistory rm removes it"
	}
	return text
}

// isWrongAddress reports whether an error means the address may be wrong.
func isWrongAddress(err error) bool {
	parse, _ := errors.AsType[*feedhistory.ParseError](err)
	dns, _ := errors.AsType[*net.DNSError](err)
	return errors.Is(err, fs.ErrNotExist) ||
		parse != nil && parse.Reason == feedhistory.ReasonNotFeed || dns != nil && dns.IsNotFound
}

// gapsShown is the maximum number of gaps sync shows of a feed; list shows all.
const gapsShown = 3

// A jsonSync is the outcome of a poll in JSON.
type jsonSync struct {
	URL       string     `json:"url"`
	Kind      string     `json:"kind"`
	Verdict   string     `json:"verdict"`
	AsOf      string     `json:"as_of,omitempty"`
	Added     int        `json:"added"`
	Changed   int        `json:"changed"`
	Deleted   int        `json:"deleted"`
	Documents int        `json:"documents"`
	Altered   int        `json:"altered,omitempty"` // archive documents changed, although they must not
	Gaps      []show.Gap `json:"gaps"`
	NextPoll  string     `json:"next_poll,omitempty"`
	Checked   string     `json:"archives_as_of,omitempty"` // the time since which each archive has been read
	Moved     string     `json:"moved,omitempty"`
	Alias     string     `json:"alias,omitempty"` // the mirrored feed it has become
	Wait      string     `json:"wait,omitempty"`  // the feed's host asks for no requests until then, so there was none
	Gone      bool       `json:"gone,omitempty"`
	Busy      bool       `json:"busy,omitempty"` // another process is polling the feed
	Error     string     `json:"error,omitempty"`
}

// JSON returns the record of a poll for sync --json.
func (o *Outcome) JSON(c *mirror.Report) jsonSync {
	j := jsonSync{
		URL: c.Feed.URL, Kind: show.KindName(c.Feed.Kind), Verdict: c.Feed.Verdict.String(), AsOf: show.Second(c.Feed.WholeAsOf()), Checked: show.Second(c.Feed.Ledger.Checked()),
		Added: c.Added, Changed: c.Changed, Deleted: c.Deleted, Documents: c.Documents, Altered: c.Altered,
		Gaps: show.Each(c.Feed.Ledger.Gaps(), show.NewGap), NextPoll: show.Second(c.Feed.Next),
		Moved: c.Moved, Alias: c.Feed.Alias, Wait: show.Second(o.until), Gone: c.Feed.Gone, Busy: o.kind == busy,
	}
	if j.Alias != "" {
		j.NextPoll = "" // it is polled no more
	}
	switch o.kind {
	case failed:
		j.Error = show.Detail(o.Report.Failure)
	case broken:
		j.Error = o.Err.Error()
	case interrupted:
		j.Error = "interrupted"
	}
	return j
}
