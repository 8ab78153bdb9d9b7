package modifiedrange

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/harvest"
	shared "github.com/feedhistory/feedhistory/internal/harvest"
	"github.com/feedhistory/feedhistory/internal/settings"
)

// A Handler serves a collection by ranges of modification times, in all
// dialects. The items come from a query.
type Handler struct {
	Items harvest.Query[Item] // Items finds the items modified within a range. It is required.

	// Limit is the maximum number of items in an answer, unless more are needed
	// to complete a group of equal stamps (modified-range#5). Zero means 100.
	Limit int

	// Partial is the status of a partial answer, from 201 to 299; the proposal leaves the
	// choice open (modified-range#3). Zero means 206, another number is an error.
	Partial int

	// Head describes the feed: ID, Title, Authors, Links … Do not change it while
	// it is in use. Nil means no description.
	Head *feedhistory.Document

	Format feedhistory.Format // Format is Atom or RSS; "" means Atom.
	Now    func() time.Time   // Now is the clock for stamping items; nil means time.Now.
	Logger *slog.Logger       // Logger logs malformed ranges and failed queries; nil means no logging.
}

// ServeHTTP answers with the items of the requested range, or with the most
// recent of them.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !shared.Begin(w, r) {
		return
	}
	// The next harvest starts at this time, so it may not be later than the query
	// (modified-range#8).
	w.Header().Set("Date", settings.Now(h.Now).UTC().Format(http.TimeFormat))
	span, err := requestedRange(r)
	if err != nil {
		if span = (Range{}); h.Logger != nil {
			h.Logger.Warn("a malformed range is ignored", "url", r.URL.String(), "error", err)
		}
	}
	items, covered, whole, err := h.page(r.Context(), span)
	if err == nil {
		err = h.write(w, r, items, covered, whole)
	}
	if err != nil {
		shared.Fail(w, r, h.Logger, "a range cannot be answered", err)
	}
}

// page returns the most recent items of a range, the part of it with no others, and whether
// this is all of it.
func (h *Handler) page(ctx context.Context, span Range) (items []Item, covered Range, whole bool, err error) {
	if h.Items == nil {
		return nil, span, false, errors.New("modifiedrange: Handler.Items must be set")
	}
	if err := settings.Check("modifiedrange", settings.Number{Name: "Handler.Limit", Value: int64(h.Limit)},
		settings.Number{Name: "Handler.Partial", Value: int64(h.Partial)}); err != nil {
		return nil, span, false, err
	}
	if h.Partial != 0 && (h.Partial <= http.StatusOK || h.Partial > 299) {
		return nil, span, false, fmt.Errorf("modifiedrange: Handler.Partial is not from 201 to 299: %d", h.Partial)
	}
	if span.isEmpty() {
		return nil, span, true, nil
	}
	items, whole, err = h.pool().Recent(ctx, span.Start, span.End, cmp.Or(h.Limit, 100))
	if err == nil && !whole {
		span.Start = items[len(items)-1].Modified
	}
	return items, span, whole, err
}

// pool returns the query, with a check of its items.
func (h *Handler) pool() shared.Pool[Item] {
	return shared.Pool[Item]{
		At: func(item Item) time.Time { return item.Modified },
		Query: func(ctx context.Context, start, end time.Time, limit int) ([]Item, error) {
			items, err := h.Items(ctx, start, end, limit)
			for _, item := range items {
				if err == nil {
					err = item.check(Range{start, end})
				}
			}
			return items, err
		},
	}
}

// document returns the feed document of an answer.
func (h *Handler) document(items []Item) *feedhistory.Document {
	doc := &feedhistory.Document{}
	if h.Head != nil {
		*doc = *h.Head
	}
	doc.Entries, doc.Deleted = nil, nil
	for _, item := range items {
		if item.Entry != nil {
			doc.Entries = append(doc.Entries, item.Entry)
		} else {
			doc.Deleted = append(doc.Deleted, feedhistory.Tombstone{Ref: item.Deleted, When: item.Modified})
		}
	}
	return doc
}

// write sends an answer, which names the range it covers (modified-range#3).
func (h *Handler) write(w http.ResponseWriter, r *http.Request, items []Item, covered Range, whole bool) error {
	var body bytes.Buffer
	write, kind := compose.WriteAtom, "application/atom+xml"
	if h.Format == feedhistory.FormatRSS {
		write, kind = compose.WriteRSS, "application/rss+xml"
	}
	if err := write(&body, h.document(items)); err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Type", kind+"; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(body.Len()))
	header.Set(fieldModifiedRange, covered.String())
	header.Add("Vary", fieldModifiedRange)
	header.Add("Vary", fieldRange)
	if whole {
		w.WriteHeader(http.StatusOK)
	} else {
		w.WriteHeader(cmp.Or(h.Partial, http.StatusPartialContent))
	}
	if r.Method != http.MethodHead {
		_, _ = w.Write(body.Bytes()) // on an error, the client has gone
	}
	return nil
}
