package harvest_test

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

// An upstream is a mirrored feed, served again by the protocols: the producer of the tests
// whose items change while they are harvested. An entry is given out with the time of its
// last change in the mirror: consumers look for later times only, and a mirror also
// receives entries with old ones.
type upstream struct {
	store mirror.Store
	url   string
}

// stampOf returns the time of a record's last change, to the second, with the number of the
// change as nanoseconds. So changes have times in their order, and those of one commit have
// the same time. It relies on Record.Changed never decreasing.
func (f upstream) stampOf(r *mirror.Record) time.Time {
	return r.Changed.UTC().Truncate(time.Second).Add(time.Duration(r.LastCommit) % time.Second)
}

// recent returns the records changed within a range of stamps, most recently changed first.
func (f upstream) recent(ctx context.Context, start, end time.Time, limit int) (found []*mirror.Record, err error) {
	q, err := f.changes(ctx, start, end)
	if err != nil {
		return nil, err
	}
	q.Limit = limit
	for r, err := range f.store.Entries(ctx, q) {
		if err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, nil
}

// changes returns the query for the changes within a range of stamps.
func (f upstream) changes(ctx context.Context, start, end time.Time) (q mirror.Query, err error) {
	state, err := f.store.Feed(ctx, f.url)
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
	return mirror.Query{Feed: f.url, AfterCommit: &after, Reverse: true, States: mirror.AllStates, Beyond: &mirror.Record{LastCommit: upTo + 1}}, nil
}

// versionBefore returns a version of the feed: the changes up to it have stamps before a
// time, and the others have not.
func (f upstream) versionBefore(ctx context.Context, at time.Time, last int64) (int64, error) {
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
func (f upstream) after(ctx context.Context, version int64) (*mirror.Record, error) {
	q := mirror.Query{Feed: f.url, AfterCommit: &version, States: mirror.AllStates, Limit: 1}
	for r, err := range f.store.Entries(ctx, q) {
		return r, err
	}
	return nil, nil
}

// now returns the time by the clock of the stamps: that of the latest change, because later
// ones may still get times before the present. It is the epoch while there is none.
func (f upstream) now(ctx context.Context) time.Time {
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
	if r.Content.Format != feedhistory.FormatAtom || e.WeakID || e.ID != r.ID || e.Updated.IsZero() {
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
	return feedhistory.ReadEntry(feedhistory.FormatAtom, text[:s.End()]+stamp+text[s.End():], "")
}

// modifiedRange returns a handler for the feed's collection. Entries are as published, with
// the time of their last change in the mirror as app:edited. The Date of an answer is the
// time of the latest change.
func (f upstream) modifiedRange() *modifiedrange.Handler {
	return &modifiedrange.Handler{
		Head: f.head(), Now: func() time.Time { return f.now(context.Background()) },
		Items: query(f, f.rangeItem),
	}
}

func (f upstream) rangeItem(r *mirror.Record) (modifiedrange.Item, error) {
	at := f.stampOf(r)
	if r.State != mirror.Live {
		return modifiedrange.Item{Modified: at, Deleted: r.ID}, nil
	}
	e, err := entryOf(r)
	if err == nil {
		e, err = stamped(e, at)
	}
	return modifiedrange.Item{Modified: at, Entry: e}, err
}

// head returns the feed's head section.
func (f upstream) head() *feedhistory.Document {
	return &feedhistory.Document{ID: f.url, Title: "A feed"}
}

// query returns the query for the items records become.
func query[T any](f upstream, item func(*mirror.Record) (T, error)) harvest.Query[T] {
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

// atomPMH returns a handler for the feed as metadata records, whose root is at base. An
// entry as the protocol has it keeps its title and its links. Any other entry is a
// representation itself, in Atom, and the handler serves it.
func (f upstream) atomPMH(base string) http.Handler {
	base = strings.TrimSuffix(base, "/") + "/"
	records := query(f, func(r *mirror.Record) (atompmh.Item, error) { return f.pmhItem(r, base) })
	feed := &atompmh.Handler{URL: base, Head: f.head(), Items: records}
	mux := http.NewServeMux()
	mux.Handle("/{$}", feed)
	mux.HandleFunc("/entry", f.serveEntry)
	return mux
}

const entryType = "application/atom+xml;type=entry"

func (f upstream) pmhItem(r *mirror.Record, base string) (it atompmh.Item, err error) {
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
func (f upstream) serveEntry(w http.ResponseWriter, r *http.Request) {
	record, err := mirror.Lookup(r.Context(), f.store, f.url, r.URL.Query().Get("id"))
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
