// Package relay serves a mirror's feed again, by the sibling protocols of RFC 5005:
//
//	feed := relay.Upstream{Store: store, URL: "https://example.org/feed.atom"}
//	http.Handle("/pmh/", http.StripPrefix("/pmh", feed.AtomPMH("https://mirror.example/pmh/")))
//	http.Handle("/range", feed.ModifiedRange())
//
// The mirror may go on changing: each answer shows the store as it is. An entry is given
// out with the time of its last change in the mirror, not with its own: consumers look for
// later times only, and a mirror also receives entries with old ones.
//
// A function that takes a context may return the error of the context.
package relay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/harvest/atompmh"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	wire "github.com/feedhistory/feedhistory/internal/harvest"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
	"github.com/feedhistory/feedhistory/mirror"
)

// An Upstream is the mirrored feed to serve. Store and URL must be set.
type Upstream struct {
	Store mirror.Store
	URL   string

	// OwnTimes gives entries out with their own times, for a store to which changes are added
	// in the order of these. An ID then ends before a NUL character, so the store may have
	// several states of an item. It is not for a Journal.
	OwnTimes bool
}

// stampOf returns the time of a record's last change, to the second, with the number of the
// change as nanoseconds. So changes have times in their order, and those of one commit have
// the same time. It relies on Record.Changed never decreasing.
func (f Upstream) stampOf(r *mirror.Record) time.Time {
	if f.OwnTimes {
		return r.Time()
	}
	return r.Changed.UTC().Truncate(time.Second).Add(time.Duration(r.LastCommit) % time.Second)
}

// recent returns the records changed within a range of stamps, most recently changed first.
func (f Upstream) recent(ctx context.Context, start, end time.Time, limit int) (found []*mirror.Record, err error) {
	if f.Store == nil {
		return nil, errors.New("relay: Feed.Store must be set")
	}
	q := mirror.Query{Feed: f.URL, Since: start, Until: end, States: mirror.Current | mirror.Former}
	if !f.OwnTimes {
		if q, err = f.changes(ctx, start, end); err != nil {
			return nil, err
		}
	}
	q.Limit = limit
	for r, err := range f.Store.Entries(ctx, q) {
		if err != nil {
			return nil, err
		}
		if f.OwnTimes {
			r.ID, _, _ = strings.Cut(r.ID, "\x00")
		}
		found = append(found, r)
	}
	return found, nil
}

// changes returns the query for the changes within a range of stamps.
func (f Upstream) changes(ctx context.Context, start, end time.Time) (q mirror.Query, err error) {
	state, err := f.Store.Feed(ctx, f.URL)
	if err != nil {
		return q, err
	}
	after, upTo := int64(0), state.Commits
	if !start.IsZero() {
		if after, err = f.versionBefore(ctx, start, upTo); err != nil {
			return q, err
		}
	}
	if !end.IsZero() {
		if upTo, err = f.versionBefore(ctx, end, upTo); err != nil {
			return q, err
		}
	}
	return mirror.Query{Feed: f.URL, AfterCommit: &after, Reverse: true, States: mirror.AllStates, Beyond: &mirror.Record{LastCommit: upTo + 1}}, nil
}

// versionBefore returns a version of the feed: the changes up to it have stamps before a
// time, and the others have not.
func (f Upstream) versionBefore(ctx context.Context, at time.Time, last int64) (int64, error) {
	low, high := int64(0), last
	for low < high {
		middle := low + (high-low)/2
		next, err := f.after(ctx, middle)
		switch {
		case err != nil:
			return 0, err
		case next == nil || !f.stampOf(next).Before(at):
			high = middle
		default:
			low = min(next.LastCommit, high)
		}
	}
	return low, nil
}

// after returns the first record changed after a version; nil if there is none.
func (f Upstream) after(ctx context.Context, version int64) (*mirror.Record, error) {
	q := mirror.Query{Feed: f.URL, AfterCommit: &version, States: mirror.AllStates, Limit: 1}
	for r, err := range f.Store.Entries(ctx, q) {
		return r, err
	}
	return nil, nil
}

// now returns the time by the clock of the stamps: that of the latest change, because later
// ones may still get times before the present. It is the epoch while there is none.
func (f Upstream) now(ctx context.Context) time.Time {
	latest, err := f.recent(ctx, time.Time{}, time.Time{}, 1)
	if err != nil || len(latest) == 0 {
		return time.Unix(0, 0)
	}
	return f.stampOf(latest[0])
}

// entryOf returns the entry of a record as an Atom entry that is valid by itself: as it was
// published, if it is one, and else converted.
func entryOf(r *mirror.Record) (*feedhistory.Entry, error) {
	e, err := r.Entry()
	if err != nil || isValid(r, e) {
		return e, err
	}
	d := compose.DraftOf(e)
	d.ID = r.ID
	if d.Updated.IsZero() {
		d.Updated = r.Time()
	}
	e, err = d.Entry()
	if err != nil {
		return nil, fmt.Errorf("entry %q: %w", r.ID, err)
	}
	return e, nil
}

func isValid(r *mirror.Record, e *feedhistory.Entry) bool {
	if r.Content.Format != feedhistory.Atom || e.WeakID || e.ID != r.ID || e.Updated.IsZero() {
		return false
	}
	text := string(e.XML())
	s := xmlscan.NewFragment(text, nil, xmlscan.Unlimited())
	return s.Child(0) && s.Is(feedxml.Atom, "entry") && xmlscan.WellFormed(text) == nil
}

const nsApp = "http://www.w3.org/2007/app"

// stamped returns an entry with its time of modification as app:edited, in place of its own
// one, if it has one (RFC 5023 §10.2).
func stamped(e *feedhistory.Entry, at time.Time) (*feedhistory.Entry, error) {
	text := string(e.XML())
	for _, own := range slices.Backward(slices.Collect(xmlscan.Children(text, nsApp, "edited"))) {
		text = text[:own.Start] + text[own.End:]
	}
	s := xmlscan.New(text, xmlscan.Unlimited())
	s.Child(0)
	stamp := fmt.Sprintf(`<edited xmlns="%s">%s</edited>`, nsApp, at.Format(time.RFC3339Nano))
	return feedhistory.ReadEntry(feedhistory.Atom, text[:s.End()]+stamp+text[s.End():], "")
}

// ModifiedRange returns a handler for the feed's collection. Entries are as published, with
// the time of their last change in the mirror as app:edited. The Date of an answer is the
// time of the latest change.
func (f Upstream) ModifiedRange() *modifiedrange.Handler {
	return &modifiedrange.Handler{
		Head: f.head(), Now: func() time.Time { return f.now(context.Background()) },
		Items: query(f, f.rangeItem),
	}
}

func (f Upstream) rangeItem(r *mirror.Record) (modifiedrange.Item, error) {
	at := f.stampOf(r)
	if r.State != mirror.Live {
		return modifiedrange.Item{Modified: at, Deleted: r.ID}, nil
	}
	e, err := entryOf(r)
	if err == nil && !f.OwnTimes {
		e, err = stamped(e, at)
	}
	return modifiedrange.Item{Modified: at, Entry: e}, err
}

// head returns the feed's head section.
func (f Upstream) head() *feedhistory.Document {
	head := &feedhistory.Document{ID: f.URL, Title: f.URL}
	if f.Store == nil {
		return head
	}
	state, err := f.Store.Feed(context.Background(), f.URL)
	if err != nil {
		return head
	}
	if doc, err := state.Document(); err == nil {
		head = &feedhistory.Document{ID: doc.ID, Title: doc.Title, Authors: doc.Authors}
	}
	if head.ID == "" {
		head.ID = f.URL
	}
	return head
}

// query returns the query for the items records become.
func query[T any](f Upstream, item func(*mirror.Record) (T, error)) harvest.Query[T] {
	return func(ctx context.Context, start, end time.Time, limit int) ([]T, error) {
		records, err := f.recent(ctx, start, end, limit)
		if err != nil {
			return nil, err
		}
		items := make([]T, len(records))
		for i, r := range records {
			if items[i], err = item(r); err != nil {
				return nil, err
			}
		}
		return items, nil
	}
}

// AtomPMH returns a handler for the feed as metadata records, whose root is at base. An
// entry as the protocol has it keeps its title and its links. Any other entry is a
// representation itself, in Atom, and the handler serves it.
func (f Upstream) AtomPMH(base string) http.Handler {
	base = strings.TrimSuffix(base, "/") + "/"
	feed := &atompmh.Handler{URL: base, Head: f.head(), Items: f.Records(base)}
	mux := http.NewServeMux()
	mux.Handle("/{$}", feed)
	mux.HandleFunc("/entry", f.serveEntry)
	return mux
}

// Records returns the query of an atompmh.Handler for the feed as metadata records. Entries that
// are representations themselves are at base.
func (f Upstream) Records(base string) harvest.Query[atompmh.Item] {
	return query(f, func(r *mirror.Record) (atompmh.Item, error) { return f.pmhItem(r, base) })
}

const entryType = "application/atom+xml;type=entry"

func (f Upstream) pmhItem(r *mirror.Record, base string) (it atompmh.Item, err error) {
	it = atompmh.Item{ID: r.ID, Modified: f.stampOf(r), Title: xmlText(r.Content.Title), Deleted: r.State != mirror.Live}
	if it.Deleted {
		return it, nil
	}
	e, err := r.Entry()
	if err != nil {
		return it, err
	}
	if it.Representations = atompmh.RepresentationsOf(e); it.Representations == nil {
		it.Representations = []atompmh.Representation{{URL: base + "entry?id=" + url.QueryEscape(r.ID), Type: entryType}}
	}
	return it, nil
}

// xmlText returns a text without the characters XML cannot have as they are.
func xmlText(s string) string {
	return strings.Map(func(r rune) rune {
		if !xmlscan.IsPlain(r) {
			return -1
		}
		return r
	}, s)
}

// serveEntry serves the entry of a record.
func (f Upstream) serveEntry(w http.ResponseWriter, r *http.Request) {
	record, err := mirror.Lookup(r.Context(), f.Store, f.URL, r.URL.Query().Get("id"))
	if errors.Is(err, mirror.ErrNotFound) || err == nil && record.State != mirror.Live {
		http.NotFound(w, r)
		return
	}
	var e *feedhistory.Entry
	if err == nil {
		e, err = entryOf(record)
	}
	if err != nil {
		wire.Fail(w, r, nil, "", err)
		return
	}
	w.Header().Set("Content-Type", entryType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(e.XML()) // on an error, the client has gone
}
