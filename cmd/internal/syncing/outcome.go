package syncing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// An Outcome is the result of a poll.
type Outcome struct {
	mirror.PollResult
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

func outcomeOf(p mirror.PollResult) Outcome {
	o := Outcome{PollResult: p}
	switch {
	case errors.Is(p.Err, context.Canceled), errors.Is(p.Err, context.DeadlineExceeded):
		o.kind = interrupted
	case errors.Is(p.Err, mirror.ErrNotFound):
		o.kind = removed
	case errors.Is(p.Err, mirror.ErrConflict):
		o.kind = busy
	case p.Err != nil:
		o.kind = broken
	case p.Report.Failure != nil:
		o.kind, o.forget = failed, p.Before.Known.URL == ""
		if wait, ok := errors.AsType[*mirror.WaitError](p.Report.Failure); ok {
			o.kind, o.until = waiting, wait.Until
		}
	}
	return o
}

// Status returns the exit status for a poll. It is not a failure if the publisher has
// withdrawn a feed read by an earlier poll.
func (o *Outcome) Status() int {
	switch {
	case o.kind == broken, o.kind == failed && (o.forget || !o.Report.Gone):
		return exit.Failed
	case o.kind != busy && o.Report.Alias == "":
		return exit.Of(o.Report.Verdict)
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

// Text returns the outcome of a poll as one line.
func (o *Outcome) Text(c *mirror.Report) string {
	changes := changesText(c.Added, c.Changed, c.Deleted)
	result := fmt.Sprintf("%s: %s · %s", o.URL, changes, c.Verdict)
	if !c.AsOf.IsZero() {
		result += " as of " + c.AsOf.UTC().Format(time.DateOnly)
	} else if c.Verdict == feedhistory.Whole && !c.Checked.IsZero() && time.Since(c.Checked) > 48*time.Hour {
		result += ", archives as of " + c.Checked.UTC().Format(time.DateOnly)
	}
	switch o.kind {
	case polled:
		if c.Alias != "" {
			return o.URL + ": the feed has become " + c.Alias + ", which sync polls instead; the entries of the old one are kept"
		}
		if c.More {
			result += " · the budget is spent; the next " + cmp.Or(o.Verb, "sync") + " continues there"
		}
		return result
	case interrupted:
		if c.Next.After(time.Now()) { // the poll committed nothing, so there is nothing to continue
			return result + " · interrupted"
		}
		return result + " · interrupted; the next " + cmp.Or(o.Verb, "sync") + " continues there"
	case waiting:
		return fmt.Sprintf("%s: its host asks for no requests until %s", o.URL, terminal.Time(o.until))
	case busy:
		return o.URL + ": another process is polling it"
	case broken:
		return o.URL + ": " + o.Err.Error()
	}
	text := explain.Failure(o.URL, o.Report.Failure).Error()
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
	status, _ := errors.AsType[*feedhistory.StatusError](err)
	parse, _ := errors.AsType[*feedhistory.ParseError](err)
	dns, _ := errors.AsType[*net.DNSError](err)
	return status != nil && (status.Status == http.StatusNotFound || status.Gone) ||
		parse != nil && parse.Reason == feedhistory.ReasonNotFeed || dns != nil && dns.IsNotFound
}

// gapsShown is the maximum number of gaps sync shows of a feed; list shows all.
const gapsShown = 3

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
	Altered   int          `json:"altered,omitempty"` // archive documents changed, although they must not
	Gaps      []schema.Gap `json:"gaps"`
	NextPoll  string       `json:"next_poll,omitempty"`
	Checked   string       `json:"archives_as_of,omitempty"` // the time since which each archive has been read
	Moved     string       `json:"moved,omitempty"`
	Alias     string       `json:"alias,omitempty"` // the mirrored feed it has become
	Wait      string       `json:"wait,omitempty"`  // the feed's host asks for no requests until then, so there was none
	Gone      bool         `json:"gone,omitempty"`
	Busy      bool         `json:"busy,omitempty"` // another process is polling the feed
	Error     string       `json:"error,omitempty"`
}

// JSON returns the record of a poll for sync --json.
func (o *Outcome) JSON(c *mirror.Report) jsonSync {
	j := jsonSync{
		URL: c.URL, Kind: c.Kind.String(), Verdict: c.Verdict.String(), AsOf: schema.Second(c.AsOf), Checked: schema.Second(c.Checked),
		Added: c.Added, Changed: c.Changed, Deleted: c.Deleted, Documents: c.Documents, Altered: c.Altered,
		Gaps: schema.Each(c.Gaps, schema.NewGap), NextPoll: schema.Second(c.Next),
		Moved: c.Moved, Alias: c.Alias, Wait: schema.Second(o.until), Gone: c.Gone, Busy: o.kind == busy,
	}
	switch o.kind {
	case failed:
		j.Error = explain.Detail(o.Report.Failure)
	case broken:
		j.Error = o.Err.Error()
	case interrupted:
		j.Error = "interrupted"
	}
	return j
}
