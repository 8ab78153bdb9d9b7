package handover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/readerapi"
	"github.com/feedhistory/feedhistory/mirror"
)

// The states in which entries can be handed over.
const (
	Read   = "read"
	Unread = "unread"
)

// An Outcome is the fate of an entry.
type Outcome string

// The outcomes.
const (
	Shown   Outcome = "shown"   // the feed still shows it, so the reader gets it there
	Had     Outcome = "had"     // the reader has it already
	Added   Outcome = "added"   // it was handed over; in a dry run, it would be
	Removed Outcome = "removed" // the user has deleted it in the reader, and it stays deleted
	Refused Outcome = "refused" // the reader does not accept it
)

// A Handover hands entries of mirrored feeds over to Miniflux.
type Handover struct {
	Reader *Miniflux
	Store  mirror.Store
	Client *feedhistory.Client // reads the feed itself; nil means a client with default settings

	Status  string // Read or Unread; "" means Read
	Starred bool   // whether to star the entries; Miniflux never deletes starred ones
	DryRun  bool   // whether to change nothing in the reader

	// Through is the Base of a history server with the Store's feeds, within the
	// reader's reach. If set, the reader reads the history there,
	// and keeps its own hashes and enclosures; whatever it does not find there
	// is handed over one by one. "" means one by one.
	Through string

	// Doubt, if not nil, is called if the reader could not read the history at
	// the server.
	Doubt func(feed string, err error)

	// Gone says the feed no longer answers, so it shows nothing. Otherwise a feed that
	// cannot be read is an error, unless it answers with 410.
	Gone bool

	// Each, if not nil, is called for every entry, oldest first, with its
	// outcome. The error is that of a Refused entry, else nil.
	Each func(r *mirror.Record, o Outcome, err error)

	before map[string]bool // the hashes the reader had before it read the server's documents
}

// A Report is the result of a handover, in numbers of entries.
type Report struct {
	Feed    string // the URL of the mirrored feed
	ID      int64  // the reader's number of the feed
	Entries int    // entries in the mirror
	Shown   int
	Had     int
	Added   int
	Removed int
	Refused int

	// Verdict is the mirror's verdict on its own copy of the history.
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

// mostFailures is the number of consecutive server errors that end the run.
const mostFailures = 3

// Run hands over the entries of one feed, which the reader knows as to. The
// report is complete even if there is an error. Another run continues
// from there, because it asks the reader for its entries.
func (h *Handover) Run(ctx context.Context, feed string, to ReaderFeed) (*Report, error) {
	if h.Reader == nil || h.Store == nil {
		return nil, errors.New("handover: Handover.Reader and Handover.Store must be set")
	}
	f, err := h.Store.Feed(ctx, feed)
	if err != nil {
		return nil, err
	}
	report := &Report{Feed: f.URL, ID: to.ID, Verdict: f.Verdict}
	if h.Through != "" && !h.DryRun {
		before, err := h.hashes(ctx, to.ID)
		if err != nil {
			return report, err
		}
		h.before = before
		if err := h.through(ctx, f, to); ctx.Err() != nil {
			return report, errors.Join(ctx.Err(), err)
		} else if err != nil && h.Doubt != nil {
			h.Doubt(f.URL, err)
		}
	}
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

// known returns the entries the reader has, or will find in the feed.
func (h *Handover) known(ctx context.Context, f *mirror.Feed, to ReaderFeed) (*knownEntries, error) {
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
		found := traces{hashes: []string{e.Hash}, url: e.URL, title: e.Title, at: e.PublishedAt}
		if k.reader.add(found); h.before != nil && !h.before[e.Hash] {
			k.carried.add(found)
		}
	}
	return k, nil
}

// hashes returns the hashes of the entries the reader has of a feed.
func (h *Handover) hashes(ctx context.Context, feed int64) (map[string]bool, error) {
	all := map[string]bool{}
	for e, err := range h.Reader.entries(ctx, feed) {
		if err != nil {
			return nil, err
		}
		all[e.Hash] = true
	}
	return all, nil
}

// shown reads the document the reader polls.
func (h *Handover) shown(ctx context.Context, to ReaderFeed, k *knownEntries) error {
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

// An UnreadableError says the feed could not be read, so nobody knows which
// entries the reader will find there by itself. See Handover.Gone.
type UnreadableError struct {
	URL string
	Err error
}

// Error names the feed and the cause.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("the feed %s could not be read: %v", e.URL, e.Err)
}

// Unwrap returns the cause.
func (e *UnreadableError) Unwrap() error { return e.Err }

// A handoverResult is the outcome of an entry, with its error.
type handoverResult struct {
	outcome Outcome
	err     error
}

// one hands over one entry, if necessary.
func (h *Handover) one(
	ctx context.Context, f *mirror.Feed, to ReaderFeed, r *mirror.Record, k *knownEntries,
) (handoverResult, error) {
	e, err := r.Entry()
	if err != nil {
		return handoverResult{Refused, err}, nil
	}
	t := tracesOf(e)
	switch {
	case k.has(k.shown, t):
		return handoverResult{Shown, nil}, nil
	case k.has(k.carried, t):
		return handoverResult{Added, nil}, nil
	case k.has(k.reader, t):
		return handoverResult{Had, nil}, nil
	case h.DryRun:
		return handoverResult{Added, nil}, nil
	}
	a := articleOf(r, e, siteOf(f))
	entry := a.miniflux()
	entry.Status, entry.Starred = cmp.Or(h.Status, Read), h.Starred
	o, err := h.Reader.put(ctx, to.ID, entry)
	if err == nil {
		k.reader.add(t) // the store may yield the entry again if the feed changes meanwhile
	}
	return handoverResult{o, err}, err
}

// fatal returns the error if it ends the run. An answer of the reader about a
// single entry does not.
func (h *Handover) fatal(ctx context.Context, err error, failures *int) error {
	answer, ok := errors.AsType[*readerapi.Error](err)
	switch {
	case err == nil:
		*failures = 0
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case ok && isAboutEntry(answer):
		*failures = 0
		return nil
	case ok && answer.Status >= 500:
		if *failures++; *failures < mostFailures {
			return nil
		}
	}
	return err
}

// siteOf returns the address of a feed's website, or of the feed if it names
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
