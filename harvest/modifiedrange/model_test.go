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

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A machine runs a client and a server while writers work.
type machine struct {
	*store
	t      *rapid.T
	wire   *wire
	client *Harvester
	skew   time.Duration // of the server's clock relative to the stamps' clock
	kind   string        // the kind of the server
	limit  int           // the limit of the server

	state Mark
	copy  map[string]version // what the client has
	count int
}

const mostRequests = 400

// TestModel lets writers work between requests, with any limit, with many equal
// stamps, and with lost responses. No item comes twice within a harvest, and every
// harvest ends. Once the writers rest, one more harvest makes the copy equal to the
// collection. Against a server that breaks the rules, the same holds for every
// harvest that reports to be whole.
//
// Duties: modified-range#4, modified-range#9.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		for range rapid.IntRange(1, 4).Draw(t, "syncs") {
			m.write("before", 12)
			m.busy()
			m.sync()
		}
		m.rest()
		if m.sync(); m.kind == "ours" {
			require.True(t, m.equal(), "%v\nwant %v\n%s", m.copy, m.items, m.wire.log.String())
		}
	})
}

func newMachine(t *rapid.T) *machine {
	m := &machine{
		store: &store{items: map[string]version{}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)},
		t:     t, copy: map[string]version{},
		skew: time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "skew")),
		kind: rapid.SampledFrom([]string{
			"ours", "ours", "kept", "cuts", "claims", "claims, cuts", "deaf", "closed", "closed, cuts", "closed, claims",
		}).Draw(t, "server"),
	}
	dialect := rapid.SampledFrom([]Dialect{AnyDialect, ModifiedRange, RangeUpdated, GData}).Draw(t, "dialect")
	limit := rapid.IntRange(1, 5).Draw(t, "limit")
	theirs := &foreign{
		store: m.store, dialect: max(dialect, ModifiedRange), limit: limit,
		cuts: strings.Contains(m.kind, "cuts"), claims: strings.Contains(m.kind, "claims"),
		closed: strings.Contains(m.kind, "closed"),
	}
	m.limit = limit
	if m.kind == "deaf" {
		theirs.dialect, theirs.claims = AnyDialect, rapid.Bool().Draw(t, "claims")
	}
	m.wire = &wire{handler: theirs}
	if m.kind == "ours" {
		m.wire.handler = &Handler{Items: m.query, Limit: limit, Now: func() time.Time { return m.now.Add(m.skew) }}
	}
	m.client = m.wire.client()
	m.client.Dialect = dialect
	m.client.Budget.Requests = mostRequests
	return m
}

// busy lets writers work between requests, and responses be lost.
func (m *machine) busy() {
	m.wire.before = func(*http.Request) { m.write("between", 3) }
	m.wire.lose = func() bool { return rapid.IntRange(0, 9).Draw(m.t, "lost") == 9 }
}

func (m *machine) rest() { m.wire.before, m.wire.lose = nil, nil }

// write makes up to n changes. Often no time passes between them.
func (m *machine) write(label string, most int) {
	for range rapid.IntRange(0, most).Draw(m.t, label) {
		m.now = m.now.Add(time.Duration(rapid.SampledFrom([]int64{
			0, 0, 0, 1, int64(time.Millisecond), int64(time.Second), int64(time.Hour),
		}).Draw(m.t, "later")))
		m.count++
		id := fmt.Sprintf("urn:%d", rapid.IntRange(1, 9).Draw(m.t, "id"))
		if _, there := m.items[id]; there && rapid.IntRange(0, 3).Draw(m.t, "what") == 0 {
			m.remove(id, m.now)
		} else {
			m.put(id, fmt.Sprintf("text %d", m.count), m.now)
		}
	}
}

// harvest harvests once, and stores the result together with the mark.
func (m *machine) sync() {
	sync := m.client.Harvest(m.t.Context(), m.state)
	came := map[string]bool{}
	var docs []*feedhistory.Document
	h, err := feedhistory.Merge(feedtest.Watch(sync.Readings(), func(r *feedhistory.Reading, _ error) {
		if r == nil || r.Document == nil {
			return
		}
		doc := r.Document
		if docs = append(docs, doc); m.state.Rest == (Rest{}) {
			m.once(came, doc)
		}
	}))
	next, whole := sync.Mark()
	require.Less(m.t, sync.Requests(), mostRequests)
	require.Equal(m.t, err == nil && len(h.Gaps) == 0, whole, "%v", err)
	if err == nil {
		m.known(h.Gaps)
		for _, doc := range docs {
			m.apply(doc)
		}
	}
	wasLossy := m.state.Rest.Stage.Lossy // then the next harvest asks for the whole range again
	m.state = next
	// If a server cuts through a group and says that this is everything, nobody
	// can find out if there is nothing else.
	if whole && m.wire.before == nil && m.kind != "claims, cuts" {
		require.True(m.t, m.equal(), "%v\nwant %v\n%s", m.copy, m.items, m.wire.log.String())
	}
	if err == nil && m.wire.before == nil && !wasLossy && m.kind != "deaf" && m.kind != "claims, cuts" {
		m.small()
	}
}

// small checks that the groups of equal stamps that are not larger than the
// limit have come, however large newer groups are.
func (m *machine) small() {
	group := map[time.Time]int{}
	for _, v := range m.items {
		group[v.at]++
	}
	for id, v := range m.items {
		if group[v.at] <= m.limit {
			require.Equal(m.t, v, m.copy[id], "%v\nwant %v\n%s", m.copy, m.items, m.wire.log.String())
		}
	}
}

// once checks that no entry has come before in this harvest.
func (m *machine) once(came map[string]bool, doc *feedhistory.Document) {
	for _, e := range doc.Entries {
		require.False(m.t, came[e.ID], "%s came twice\n%s", e.ID, m.wire.log.String())
		came[e.ID] = true
	}
}

// known checks that a harvest ends for one of the possible reasons.
func (m *machine) known(gaps []*feedhistory.Gap) {
	for _, g := range gaps {
		switch {
		case errors.Is(g, errLost) && m.wire.lose != nil:
		case errors.Is(g, harvest.ErrLoss):
			if m.wire.before == nil && m.state.Rest == (Rest{}) { // an item changed between two requests looks like one cut off
				require.NotContains(m.t, []string{"ours", "closed"}, m.kind, m.wire.log.String())
			}
		case errors.Is(g, harvest.ErrIgnored):
			require.Contains(m.t, []string{"deaf"}, m.kind, m.wire.log.String())
		default:
			require.NoError(m.t, g)
		}
	}
}

// apply updates the copy, in the order of the answers: of two states with the same time, the
// later one counts.
func (m *machine) apply(doc *feedhistory.Document) {
	var all []version
	for _, e := range doc.Entries {
		all = append(all, version{id: e.ID, text: e.Title().Body, at: e.Updated.UTC()})
	}
	for _, t := range doc.Deleted {
		all = append(all, version{id: t.Ref, at: t.When.UTC(), deleted: true})
	}
	for _, v := range all {
		if !v.at.Before(m.copy[v.id].at) {
			m.copy[v.id] = v
		}
	}
}

func (m *machine) equal() bool {
	want := m.within(Range{})
	have := (&store{items: m.copy}).within(Range{})
	return slices.Equal(want, have)
}

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
	e, err := compose.Draft{ID: v.id, Title: feedhistory.Text{Body: v.text}, Updated: v.at}.Entry()
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

// query is the store's Query.
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
		AllowPrivate: true, Transport: w, Tries: 1,
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
