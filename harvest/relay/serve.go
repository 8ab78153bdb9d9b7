package relay

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest/atompmh"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
	"github.com/feedhistory/feedhistory/mirror"
)

// ModifiedRange returns a handler for the feed's collection. Entries are as published, with
// the time of their last change in the mirror as app:edited. The Date of an answer is the
// time of the latest change.
func (f Upstream) ModifiedRange() *modifiedrange.Handler {
	return &modifiedrange.Handler{
		Head: f.head(), Now: func() time.Time { return f.now(context.Background()) },
		Items: func(ctx context.Context, start, end time.Time, limit int) ([]modifiedrange.Item, error) {
			return each(ctx, f, start, end, limit, rangeItem)
		},
	}
}

func rangeItem(r *mirror.Record) (modifiedrange.Item, error) {
	at := stampOf(r)
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

// each returns what the records of a range become.
func each[T any](ctx context.Context, f Upstream, start, end time.Time, limit int, item func(*mirror.Record) (T, error)) ([]T, error) {
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

// AtomPMH returns a handler for the feed as metadata records, whose root is at base. An
// entry as the protocol has it keeps its title and its links. Any other entry is a
// representation itself, in Atom, and the handler serves it.
func (f Upstream) AtomPMH(base string) http.Handler {
	base = strings.TrimSuffix(base, "/") + "/"
	feed := &atompmh.Handler{
		URL: base, Head: f.head(),
		Items: func(ctx context.Context, start, end time.Time, limit int) ([]atompmh.Item, error) {
			return each(ctx, f, start, end, limit, func(r *mirror.Record) (atompmh.Item, error) { return pmhItem(r, base) })
		},
	}
	mux := http.NewServeMux()
	mux.Handle("/{$}", feed)
	mux.HandleFunc("/entry", f.serveEntry)
	return mux
}

const entryType = "application/atom+xml;type=entry"

func pmhItem(r *mirror.Record, base string) (it atompmh.Item, err error) {
	it = atompmh.Item{ID: r.ID, Modified: stampOf(r), Title: xmlText(r.Content.Title), Deleted: r.State != mirror.Live}
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
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", entryType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(e.XML()) // on an error, the client has gone
}
