package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/publish"
)

// An Export writes everything a mirror knows about feeds, as lines of JSON for Import.
// Lines contain no passwords. Each call of the writer gets one line. Only Store must be
// set, for Feeds; History and End need no Store.
type Export struct {
	Store Store // Store has the feeds.

	// Private reports whether a feed is private although its state does not say so. Nil
	// means the state decides.
	Private func(feed string) bool
}

// Feeds writes feeds, one after the other. The error is the Store's or the writer's, or
// reports a feed that cannot be exported now: an import of it has not ended, or it has
// changed meanwhile. The error may be the context's.
func (x *Export) Feeds(ctx context.Context, w io.Writer, feeds iter.Seq2[*Feed, error]) error {
	if x.Store == nil {
		return errors.New("mirror: Export.Store must be set")
	}
	if w == nil || feeds == nil {
		return errors.New("mirror: Export.Feeds: the io.Writer or the feeds are nil")
	}
	for f, err := range feeds {
		if err == nil {
			err = x.feed(ctx, withoutPasswords(w, f), f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *Export) feed(ctx context.Context, w io.Writer, f *Feed) error {
	if f.Importing() {
		return fmt.Errorf("%s: its import is not complete; run the same import again", f.URL)
	}
	if err := x.state(ctx, w, f); err != nil {
		return err
	}
	for _, q := range []Query{{Feed: f.URL, Deleted: true, Oldest: true}, {Feed: f.URL, Bare: true, Oldest: true}} {
		for r, err := range x.Store.Entries(ctx, q) {
			if err == nil {
				err = x.entry(ctx, w, r)
			}
			if err != nil {
				return err
			}
		}
	}
	if now, err := x.Store.Feed(ctx, f.URL); err != nil || now.Commits != f.Commits {
		return fmt.Errorf("%s: the feed has changed meanwhile, so its lines may contradict each other; export it again", f.URL)
	}
	return nil
}

// state writes everything about a feed but its entries.
func (x *Export) state(ctx context.Context, w io.Writer, f *Feed) error {
	state := *f
	state.Gaps, state.Pending = nil, nil
	private := f.Private || x.Private != nil && x.Private(f.URL)
	err := writeLine(w, feedLine{line: line{"feed", f.URL}, Version: f.Commits, Private: private, State: &state})
	for _, p := range f.Pending {
		err = cmp.Or(err, writeLine(w, gapLine{line: line{"gap", f.URL}, Pending: &p}))
	}
	for _, g := range f.Gaps {
		err = cmp.Or(err, writeLine(w, gapLine{line: line{"gap", f.URL}, Gap: &g}))
	}
	if err != nil {
		return err
	}
	for d, err := range x.Store.Documents(ctx, f.URL) {
		if err == nil {
			d.Read, d.Oldest, d.Newest = utc(d.Read), utc(d.Oldest), utc(d.Newest)
			err = writeLine(w, documentLine{line{"document", f.URL}, d})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *Export) entry(ctx context.Context, w io.Writer, r *Record) error {
	l := entryLine{Line: publish.Line{EntryJSON: feedhistory.EntryJSON{ID: r.ID}}}
	if r.Content.Format != 0 {
		if e, err := r.Entry(); err == nil { // for a damaged entry, the line has only the stored bytes
			l.Line = *publish.NewLine(e)
		}
		l.Raw = &publish.RawEntry{Format: r.Content.Format, Data: r.Content.Data, Base: r.Content.Base, Digest: r.Copy.Digest}
	} else {
		r.Content = Content{}
	}
	l.Type, l.Feed = "entry", r.Feed
	if t, ok := r.Deletion(); ok {
		l.Deleted = publish.LineDeletion{Deleted: true, When: t.When}
	}
	for v, err := range x.Store.Versions(ctx, r.Feed, r.ID) {
		if err != nil {
			return err
		}
		l.Versions = append(l.Versions, v)
	}
	r.Added, r.Changed = utc(r.Added), utc(r.Changed)
	r.Content.Data, r.Content.Base = "", ""
	l.Mirror = r
	return writeLine(w, l)
}

// History writes a fetched history of a feed as if one poll had mirrored it,
// with the given verdict.
func (x *Export) History(w io.Writer, feed string, h *feedhistory.History, v feedhistory.Verdict) error {
	if w == nil || h == nil {
		return errors.New("mirror: Export.History: the io.Writer or the History is nil")
	}
	now := time.Now().UTC()
	state := &Feed{URL: feed, Kind: h.Kind, Verdict: v, Entries: int64(len(h.Entries)), Polls: 1, Polled: now, Changed: now}
	if h.Head != nil {
		state.Title, state.Head = h.Head.Title, headOf(h.Head)
	}
	private := x.Private != nil && x.Private(feed)
	err := writeLine(w, feedLine{line: line{"feed", feed}, Version: 1, Private: private, State: state})
	for _, g := range h.Gaps {
		gap := newGap(g)
		gap.Found, gap.Poll = utc(g.Found), 1
		err = cmp.Or(err, writeLine(w, gapLine{line: line{"gap", feed}, Gap: &gap}))
	}
	for _, e := range h.Entries {
		entry := publish.NewLine(e)
		entry.Type, entry.Feed, entry.Raw = "entry", feed, publish.NewRawEntry(e)
		err = cmp.Or(err, writeLine(w, entry))
	}
	for _, t := range h.Deleted {
		deleted := publish.LineDeletion{Deleted: true, When: utc(t.When)}
		err = cmp.Or(err, writeLine(w, &publish.Line{Type: "entry", Feed: feed, EntryJSON: feedhistory.EntryJSON{ID: t.Ref}, Deleted: deleted}))
	}
	return err
}

// End writes the record that ends the lines, so that a reader of a pipe knows
// that it was not cut. Call it last, and only if nothing was left out.
func (x *Export) End(w io.Writer) error { return writeLine(w, endLine{lineEnd}) }

// withoutPasswords returns a writer of lines without the users and passwords in a
// feed's addresses.
func withoutPasswords(w io.Writer, f *Feed) io.Writer {
	var pairs []string
	for _, address := range []string{f.URL, f.Address, f.Lost, f.Known.URL} {
		start, n := strings.Index(address, "//"), len(address)-len(iri.Redact(address))
		if start < 0 || n == 0 {
			continue
		}
		secret := address[start : start+2+n]
		pairs = append(pairs, secret, "//")
		if quoted, err := unescaped(secret); err == nil {
			pairs = append(pairs, strings.Trim(string(quoted), "\"\n"), "//")
		}
	}
	if pairs == nil {
		return w
	}
	return &replacer{w, strings.NewReplacer(pairs...)}
}

// A replacer replaces text in lines. Each call of Write writes one line.
type replacer struct {
	w  io.Writer
	by *strings.Replacer
}

// Write implements io.Writer.
func (r *replacer) Write(text []byte) (int, error) {
	if _, err := io.WriteString(r.w, r.by.Replace(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
