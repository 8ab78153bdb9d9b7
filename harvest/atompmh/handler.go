package atompmh

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/harvest"
	shared "github.com/feedhistory/feedhistory/internal/harvest"
	"github.com/feedhistory/feedhistory/internal/settings"
	"github.com/feedhistory/feedhistory/publish/serve"
)

// A Handler is a producer without files: it makes each document of the feed from a query
// when somebody requests it. Archives have the URL of the subscription document, with the
// time before which their entries changed as the parameter before.
//
// Each link leads to the items before the oldest one here. So a chain stays readable while
// the pool changes, and a harvest cut short can go on at any later time. A record changed
// meanwhile leaves its archive, as the specification allows, and comes with the next
// harvest; for that, later changes must have later times.
type Handler struct {
	// Items finds the items. Earlier Items of a record become historical entries (atom-pmh#27).
	Items harvest.Query[Item]

	URL    string                // URL is the absolute URL of the subscription document.
	Head   *feedhistory.Document // Head describes the feed; nil means URL is its title.
	Size   int                   // Size is the approximate number of entries in a document; zero means 100.
	Logger *slog.Logger          // Logger logs failed queries; nil means no logging.
}

const paramBefore = "before"

// ServeHTTP answers GET and HEAD requests.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !shared.Begin(w, r) {
		return
	}
	var before time.Time
	if text := r.URL.Query().Get(paramBefore); text != "" {
		var err error
		if before, err = time.Parse(time.RFC3339Nano, text); err != nil {
			http.NotFound(w, r)
			return
		}
	}
	text, err := h.document(r.Context(), before.UTC())
	if err != nil {
		shared.Fail(w, r, h.Logger, "a document cannot be made", err)
		return
	}
	w.Header().Set("Content-Type", "application/atom+xml; charset=utf-8")
	_ = serve.Document{Tag: serve.TagOf(text), Content: bytes.NewReader(text)}.Serve(w, r) // its content has no errors
}

// document returns the document of the items before a time; zero means the subscription
// document.
func (h *Handler) document(ctx context.Context, before time.Time) ([]byte, error) {
	if h.Items == nil || h.URL == "" {
		return nil, errors.New("atompmh: Handler.Items and Handler.URL must be set")
	}
	if err := settings.Check("atompmh", settings.Number{Name: "Handler.Size", Value: int64(h.Size)}); err != nil {
		return nil, err
	}
	pool := shared.Pool[Item]{Query: h.Items, At: func(it Item) time.Time { return it.Modified }}
	items, whole, err := pool.Recent(ctx, time.Time{}, before, cmp.Or(h.Size, 100))
	if err != nil {
		return nil, err
	}
	entries, err := entriesOf(items)
	if err != nil {
		return nil, err
	}
	older := ""
	if !whole {
		older = h.archive(items[len(items)-1].Modified)
	}
	var doc *feedhistory.Document
	switch head := headOf(h.Head, h.URL, h.URL); {
	case !before.IsZero():
		doc = compose.Archive(head, entries, compose.URLs{Self: h.archive(before), Prev: older, Current: h.URL})
	case whole && !slices.ContainsFunc(items, func(it Item) bool { return it.Deleted }): // atom-pmh#32, atom-pmh#18
		doc = compose.Complete(head, entries, h.URL)
	default:
		doc = compose.Subscription(head, entries, h.URL, older)
	}
	doc.Updated = time.Unix(0, 0).UTC() // of a feed without entries
	if len(items) > 0 {
		doc.Updated = items[0].Modified.UTC() // atom-pmh#5, atom-pmh#7
	}
	var text bytes.Buffer
	err = compose.WriteAtom(&text, doc)
	return text.Bytes(), err
}

// archive returns the URL of the archive of the items before a time.
func (h *Handler) archive(before time.Time) string {
	address, query, _ := strings.Cut(h.URL, "?")
	values, _ := url.ParseQuery(query)
	values.Set(paramBefore, before.UTC().Format(time.RFC3339Nano))
	return address + "?" + values.Encode()
}

// headOf returns the head section of a feed: with an ID, by default the feed's URL, and
// with an author, as Atom requires, by default its title.
func headOf(given *feedhistory.Document, title, url string) *feedhistory.Document {
	head := feedhistory.Document{Title: title}
	if given != nil {
		head = *given
	}
	head.ID = cmp.Or(head.ID, url)
	if len(head.Authors) == 0 {
		head.Authors = []feedhistory.Person{{Name: cmp.Or(head.Title, head.ID)}}
	}
	return &head
}
