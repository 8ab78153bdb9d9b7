package modifiedrange

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

func TestMain(m *testing.M) { feedtest.Main(m) }

const collection = "http://example.org/collections/categories"

// A version is an item in its present or an earlier state.
type version struct {
	id, text string
	at       time.Time
	deleted  bool
}

func (v version) item() Item {
	if v.deleted {
		return Item{Modified: v.at, Deleted: v.id}
	}
	e, err := feedhistory.Draft{ID: v.id, Title: feedhistory.Text{Body: v.text}, Updated: v.at}.Entry()
	if err != nil {
		panic(err)
	}
	return Item{Modified: v.at, Entry: e}
}

// A store is a collection on a server.
type store struct {
	items map[string]version
	now   time.Time
}

func (s *store) put(id, text string, at time.Time) {
	if s.items == nil {
		s.items = map[string]version{}
	}
	s.items[id] = version{id: id, text: text, at: at}
}

func (s *store) remove(id string, at time.Time) { s.items[id] = version{id: id, at: at, deleted: true} }

func (s *store) clock() time.Time { return s.now }

// within returns the versions in a range, newest first.
func (s *store) within(r Range) (found []version) {
	for _, v := range s.items {
		if r.Contains(v.at) {
			found = append(found, v)
		}
	}
	slices.SortFunc(found, func(a, b version) int {
		return cmp.Or(b.at.Compare(a.at), strings.Compare(a.id, b.id))
	})
	return found
}

// query is the store's RangeFunc.
func (s *store) query(_ context.Context, start, end time.Time, limit int) (items []Item, err error) {
	for _, v := range s.within(Range{start, end}) {
		if items = append(items, v.item()); len(items) == limit {
			break
		}
	}
	return items, nil
}

func (s *store) handler(limit int) *Handler {
	return &Handler{Items: s.query, Limit: limit, Now: s.clock}
}

// A wire carries requests to a handler, after whatever happens before them.
type wire struct {
	handler http.Handler
	before  func(r *http.Request)
	lose    func() bool // whether to lose the response after it was made
	log     strings.Builder
}

var errLost = errors.New("connection reset")

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.before != nil {
		w.before(r)
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	resp := rec.Result()
	w.note(r, resp, rec.Body.String())
	if w.lose != nil && w.lose() {
		return nil, errLost
	}
	return resp, nil
}

// note writes an exchange as text: the important header fields, and the titles.
func (w *wire) note(r *http.Request, resp *http.Response, body string) {
	fmt.Fprintf(&w.log, "> %s %s\n", r.Method, r.URL.RequestURI())
	noteFields(&w.log, "> ", r.Header, fieldModifiedRange, fieldRange)
	fmt.Fprintf(&w.log, "< %s\n", resp.Status)
	noteFields(&w.log, "< ", resp.Header, "Date", fieldModifiedRange, "Vary")
	doc, err := feedhistory.Parse(strings.NewReader(body), "")
	if err != nil {
		fmt.Fprintf(&w.log, "< %v\n\n", err)
		return
	}
	for _, e := range doc.Entries {
		fmt.Fprintf(&w.log, "< %s %s\n", formatTime(e.Updated), e.Title().Body)
	}
	for _, t := range doc.Deleted {
		fmt.Fprintf(&w.log, "< %s %s is deleted\n", formatTime(t.When), t.Ref)
	}
	fmt.Fprintln(&w.log)
}

func noteFields(w io.Writer, prefix string, header http.Header, names ...string) {
	for _, name := range names {
		for _, value := range header.Values(name) {
			fmt.Fprintf(w, "%s%s: %s\n", prefix, name, value)
		}
	}
}

// client returns a Harvester that sends requests to the wire and tries once.
func (w *wire) client() *Harvester {
	return &Harvester{URL: collection, HTTP: &feedhistory.Client{
		Transport: w, Retry: feedhistory.Retry{Tries: 1},
	}}
}

func at(t *testing.T, s string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, s)
	require.NoError(t, err)
	return parsed
}

// ids returns the IDs of a history's entries.
func ids(h *feedhistory.History) (ids []string) {
	for _, e := range h.Entries {
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	return ids
}
