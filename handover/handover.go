package handover

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// The states in which entries are handed over.
const (
	Read   = "read"
	Unread = "unread"
)

// An Outcome is what became of an entry.
type Outcome string

// The outcomes.
const (
	Shown   Outcome = "shown"   // the feed still shows it: the reader gets it there
	Had     Outcome = "had"     // the reader has it
	Added   Outcome = "added"   // it was handed over; in a dry run, it would be
	Removed Outcome = "removed" // the reader once had it, has deleted it, and keeps it so
	Refused Outcome = "refused" // the reader does not take it
)

// A Handover hands entries of mirrored feeds to a Miniflux.
type Handover struct {
	Reader *Miniflux
	Store  mirror.Store
	Client *feedhistory.Client // reads what a feed shows; nil: one with the default settings

	Status  string // Read or Unread; "": Read
	Starred bool   // star the entries: Miniflux never deletes those
	DryRun  bool   // change nothing in the reader

	// Gone says that the feed does not answer any more, so that it shows nothing.
	// Otherwise a feed that cannot be read is an error, unless it says itself that
	// it is gone (410).
	Gone bool

	// Each is called for every entry, oldest first, with what became of it. The
	// error is that of a Refused one, else nil. Nil: nobody is called.
	Each func(r *mirror.Record, o Outcome, err error)
}

// A Report says what a handover has done, in numbers of entries.
type Report struct {
	Feed    string // the mirrored feed's URL
	ID      int64  // the reader's number of it
	Entries int    // that the mirror has
	Shown   int
	Had     int
	Added   int
	Removed int
	Refused int

	// Verdict is the mirror's: how much of the history it has itself.
	Verdict feedhistory.Verdict
}

func (r *Report) count(o Outcome) {
	r.Entries++
	switch o {
	case Shown:
		r.Shown++
	case Had:
		r.Had++
	case Added:
		r.Added++
	case Removed:
		r.Removed++
	case Refused:
		r.Refused++
	}
}

// mostFailures is how many entries in a row may fail with errors of the server
// before that is no longer their own fault.
const mostFailures = 3

// Run hands over the entries of one feed, which the reader is subscribed to as
// to. The report says what was done, with an error too: another run goes on from
// there, by what the reader then has.
func (h *Handover) Run(ctx context.Context, feed string, to ReaderFeed) (*Report, error) {
	f, err := h.Store.Feed(ctx, feed)
	if err != nil {
		return nil, err
	}
	report := &Report{Feed: f.URL, ID: to.ID, Verdict: f.Verdict}
	known, err := h.known(ctx, f, to)
	if err != nil {
		return report, err
	}
	failures := 0
	for r, err := range h.Store.Entries(ctx, mirror.Query{Feed: f.URL, Oldest: true}) {
		if err != nil {
			return report, err
		}
		o, err := h.one(ctx, f, to, r, known)
		if err = h.fatal(ctx, err, &failures); err != nil {
			return report, err
		}
		report.count(o.outcome)
		if h.Each != nil {
			h.Each(r, o.outcome, o.err)
		}
	}
	return report, nil
}

// known returns what the reader has, or will find in the feed.
func (h *Handover) known(ctx context.Context, f *mirror.Feed, to ReaderFeed) (*known, error) {
	k := newKnown()
	for r, err := range h.Store.Entries(ctx, mirror.Query{Feed: f.URL}) {
		if err != nil {
			return nil, err
		}
		k.count(r)
	}
	if err := h.shown(ctx, to, k); err != nil {
		return nil, err
	}
	for e, err := range h.Reader.entries(ctx, to.ID) {
		if err != nil {
			return nil, err
		}
		k.reader.add(traces{hashes: []string{e.Hash}, url: e.URL, title: e.Title, at: e.PublishedAt})
	}
	return k, nil
}

// shown reads the document that the reader polls.
func (h *Handover) shown(ctx context.Context, to ReaderFeed, k *known) error {
	if h.Gone {
		return nil
	}
	client := h.Client
	if client == nil {
		client = new(feedhistory.Client)
		defer client.CloseIdle()
	}
	doc, err := client.Get(ctx, to.FeedURL)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if status, ok := errors.AsType[*feedhistory.StatusError](err); ok && status.Status == http.StatusGone {
		return nil
	}
	if err != nil {
		return &UnreadableError{to.FeedURL, err}
	}
	for _, e := range doc.Entries {
		k.shown.add(tracesOf(e))
	}
	return nil
}

// An UnreadableError says that what a feed shows could not be read, so that it is
// not known what the reader will find there by itself. See Handover.Gone.
type UnreadableError struct {
	URL string
	Err error
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("what the feed %s shows could not be read: %v", e.URL, e.Err)
}

// Unwrap returns the cause.
func (e *UnreadableError) Unwrap() error { return e.Err }

// A handed is what became of an entry, and why.
type handed struct {
	outcome Outcome
	err     error
}

// one hands over one entry, if it is to be.
func (h *Handover) one(
	ctx context.Context, f *mirror.Feed, to ReaderFeed, r *mirror.Record, k *known,
) (handed, error) {
	e, err := r.Entry()
	if err != nil {
		return handed{Refused, err}, nil
	}
	t := tracesOf(e)
	switch {
	case k.has(k.shown, t):
		return handed{Shown, nil}, nil
	case k.has(k.reader, t):
		return handed{Had, nil}, nil
	case h.DryRun:
		return handed{Added, nil}, nil
	}
	a := articleOf(r, e, siteOf(f))
	entry := a.miniflux()
	entry.Status, entry.Starred = h.Status, h.Starred
	if entry.Status == "" {
		entry.Status = Read
	}
	o, err := h.Reader.put(ctx, to.ID, entry)
	if err == nil {
		k.reader.add(t) // a store whose feed changes meanwhile may yield it again
	}
	return handed{o, err}, err
}

// fatal returns the error that ends the run, if this one does: the reader's word
// on a single entry does not.
func (h *Handover) fatal(ctx context.Context, err error, failures *int) error {
	answer, ok := errors.AsType[*ReaderError](err)
	switch {
	case err == nil:
		*failures = 0
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case ok && answer.isAboutEntry():
		*failures = 0
		return nil
	case ok && answer.Status >= 500:
		if *failures++; *failures < mostFailures {
			return nil
		}
	}
	return err
}

// siteOf returns the address of a feed's website; that of the feed if it names
// none.
func siteOf(f *mirror.Feed) string {
	if head, err := f.Document(); err == nil {
		if site, ok := head.Links.Rel(feedhistory.RelAlternate); ok && isWeb(site.Href) {
			return site.Href
		}
	}
	return f.URL
}

func isWeb(url string) bool {
	return strings.HasPrefix(url, "http://") || strings.HasPrefix(url, "https://")
}
