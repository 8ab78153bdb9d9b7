package harvest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/check"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/harvest/atompmh"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

func TestMain(m *testing.M) { feedtest.Main(m) }

const (
	feedURL = "https://origin.example/feed.atom"
	root    = "https://mirror.example/"
)

// A world is a mirror that goes on changing, with handlers for it.
type world struct {
	testing.TB
	random *rand.Rand
	mirror.Mirror
	count    int
	pmh      bool // the entries are those of Atom-PMH
	handlers http.ServeMux

	before func()      // what happens before each request
	lose   func() bool // whether the response is lost
}

func newWorld(t testing.TB, seed uint64, pmh bool) *world {
	w := &world{
		TB: t, random: rand.New(rand.NewPCG(seed, 0)), Mirror: mirror.Mirror{Store: mirror.NewMemory()}, pmh: pmh,
	}
	f := upstream{store: w.Store, url: feedURL}
	w.handlers.Handle("/pmh/", http.StripPrefix("/pmh", f.atomPMH(root+"pmh/")))
	w.handlers.Handle("/range", f.modifiedRange())
	return w
}

// RoundTrip implements http.RoundTripper.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.before != nil {
		w.before()
	}
	rec := httptest.NewRecorder()
	w.handlers.ServeHTTP(rec, r)
	if w.lose != nil && w.lose() {
		return nil, errLost
	}
	return rec.Result(), nil
}

var errLost = errors.New("connection reset")

func (w *world) client() *feedhistory.Client {
	return &feedhistory.Client{AllowPrivate: true, Transport: w, Tries: 1, PerHost: 1}
}

// change adds, modifies and deletes up to n entries in one commit.
func (w *world) change(n int) {
	doc := &feedhistory.Document{URL: feedURL, Format: feedhistory.FormatAtom, Title: "A feed", ID: feedURL, Updated: time.Now()}
	used := map[string]bool{}
	for range 1 + w.random.IntN(n) {
		id := fmt.Sprintf("urn:%d", w.random.IntN(300))
		if w.count++; used[id] {
			continue
		}
		used[id] = true
		at := time.Unix(1e9+int64(w.count), 0).UTC()
		if w.random.IntN(4) == 0 {
			doc.Deleted = append(doc.Deleted, feedhistory.Tombstone{Ref: id, When: at})
			continue
		}
		d := compose.Draft{ID: id, Title: feedhistory.Text{Body: fmt.Sprint("Title ", w.count)}, Updated: at}
		if w.pmh {
			d.Links = feedhistory.Links{{Rel: "alternate", Href: fmt.Sprint("https://origin.example/", w.count), Type: "text/html"}}
		} else {
			d.Content = feedhistory.Text{Type: "text", Body: fmt.Sprint("Content ", w.count)}
			d.Extensions = []string{`<edited xmlns="http://www.w3.org/2007/app">1999-01-01T00:00:00Z</edited>`}
		}
		e, err := d.Entry()
		require.NoError(w, err)
		doc.Entries = append(doc.Entries, e)
	}
	w.merge(doc)
}

func (w *world) merge(doc *feedhistory.Document) {
	end := func() (json.RawMessage, bool, time.Time) { return nil, true, time.Time{} }
	_, err := w.Keep(w.Context(), feedURL, mirror.Source{Name: "test", Readings: feedhistory.Readings(doc), End: end})
	require.NoError(w, err)
}

// A copied is an entry of a mirror, in words that all protocols preserve.
type copied map[string]string

// present returns the live entries of a feed.
func present(t testing.TB, s mirror.Store, feed string, text func(*mirror.Record) string) copied {
	all := copied{}
	for r, err := range s.Entries(t.Context(), mirror.Query{Feed: feed}) {
		require.NoError(t, err)
		all[r.ID] = text(r)
	}
	return all
}

func entry(t testing.TB, r *mirror.Record) *feedhistory.Entry {
	e, err := r.Entry()
	require.NoError(t, err)
	return e
}

// A protocol is a way to harvest the mirror into another one.
type protocol struct {
	feed   string
	pmh    bool
	keep   func(context.Context, *feedhistory.Client, *mirror.Mirror) (*mirror.Report, error)
	source func(testing.TB, *mirror.Record) string // an entry of the mirror, as it should arrive
	result func(testing.TB, *mirror.Record) string // an entry as it has
}

func links(t testing.TB, r *mirror.Record) string {
	e := entry(t, r)
	return e.Title().Body + fmt.Sprint(e.Links)
}

func texts(t testing.TB, r *mirror.Record) string {
	e := entry(t, r)
	return e.Title().Body + e.Content().Body + e.Updated.String()
}

var protocols = map[string]protocol{
	"atom-pmh": {root + "pmh/", true, func(ctx context.Context, c *feedhistory.Client, m *mirror.Mirror) (*mirror.Report, error) {
		return (&atompmh.Harvester{HTTP: c, URL: root + "pmh/"}).Keep(ctx, m)
	}, links, links},
	"modified-range": {root + "range", false, func(ctx context.Context, c *feedhistory.Client, m *mirror.Mirror) (*mirror.Report, error) {
		return (&modifiedrange.Harvester{HTTP: c, URL: root + "range"}).Keep(ctx, m)
	}, texts, texts},
}

// A mirror is served while it changes; harvests are interrupted, go on, and miss nothing: at
// rest, the copy is equal (5005#1, atom-pmh#8, atom-pmh#9, atom-pmh#17, modified-range#9,
// modified-range#10).
//
// Duties: atom-pmh#1, atom-pmh#10, atom-pmh#21.
func TestAgain(t *testing.T) {
	for name, p := range protocols {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2) {
				testAgain(newWorld(t, seed, p.pmh), p)
			}
		})
	}
}

func testAgain(w *world, p protocol) {
	copy := &mirror.Mirror{Store: mirror.NewMemory()}
	for range 4 {
		w.change(250)
		w.before = func() {
			if w.random.IntN(2) == 0 {
				w.change(20)
			}
		}
		w.lose = func() bool { return w.random.IntN(4) == 0 }
		for range w.random.IntN(4) {
			_, _ = p.keep(w.Context(), w.client(), copy)
		}
		w.before, w.lose = nil, nil
		r, err := p.keep(w.Context(), w.client(), copy)
		require.NoError(w, err)
		require.Empty(w, r.Feed.Ledger.Gaps())
		want := present(w, w.Store, feedURL, func(r *mirror.Record) string { return p.source(w, r) })
		require.Equal(w, want, present(w, copy.Store, p.feed, func(r *mirror.Record) string { return p.result(w, r) }))
	}
}

// A feed served again keeps the producers' duties that a chain shows (atom-pmh#3, atom-pmh#4,
// atom-pmh#5, atom-pmh#6, atom-pmh#7, atom-pmh#14, atom-pmh#18, atom-pmh#25, atom-pmh#26, atom-pmh#32).
func TestDuties(t *testing.T) {
	for _, pmh := range []bool{true, false} {
		w := newWorld(t, 1, pmh)
		for n := range 10 {
			w.change(40 + 40*n) // at last more than a document holds
			chain := check.Chain{Profile: check.AtomPMH}
			requireClean(t, chain.Check(t.Context(), w.client(), root+"pmh/"))
		}
		require.Greater(t, len(feedtest.All(t, w.client().Walk(t.Context(), root+"pmh/"))), 2, "with its end")
	}
}

func requireClean(t *testing.T, findings iter.Seq2[check.Finding, error]) {
	for finding, err := range findings {
		require.NoError(t, err)
		if finding.Code != "archive-without-next" && finding.Code != "next-archive-missing" { // the next one depends on what comes
			require.Failf(t, "a finding", "%v", finding)
		}
	}
}

// An entry that is no metadata record is a representation itself, as long as it is live
// (atom-pmh#15, atom-pmh#16).
func TestRepresentation(t *testing.T) {
	w := newWorld(t, 1, false)
	w.change(50)
	h := atompmh.Harvester{HTTP: w.client(), URL: root + "pmh/"}
	changes := h.Harvest(t.Context(), atompmh.Mark{})
	n := 0
	for f, err := range h.Fetch(t.Context(), changes.Changes(), nil) {
		require.NoError(t, err)
		require.NoError(t, f.Err)
		if f.Kind != atompmh.Record {
			continue
		}
		n++
		require.Equal(t, entryType, f.Type)
		require.Equal(t, entryType, f.Chosen.Type)
		r, err := mirror.Lookup(t.Context(), w.Store, feedURL, f.ID)
		require.NoError(t, err)
		require.Equal(t, r.Content.Data, string(f.Body))
	}
	state, err := w.Store.Feed(t.Context(), feedURL)
	require.NoError(t, err)
	require.Equal(t, state.Entries, int64(n))
	rec := httptest.NewRecorder()
	w.handlers.ServeHTTP(rec, httptest.NewRequest("GET", "/pmh/entry?id=none", nil))
	require.Equal(t, http.StatusNotFound, rec.Code)
}

// An erased entry is deleted in what is served.
func TestErased(t *testing.T) {
	for name, p := range protocols {
		w := newWorld(t, 1, p.pmh)
		w.change(50)
		copy := &mirror.Mirror{Store: mirror.NewMemory()}
		_, err := p.keep(t.Context(), w.client(), copy)
		require.NoError(t, err)
		var id string
		for id = range present(t, w.Store, feedURL, func(*mirror.Record) string { return "" }) {
		}
		require.NoError(t, w.Erase(t.Context(), feedURL, id))
		_, err = p.keep(t.Context(), w.client(), copy)
		require.NoError(t, err)
		require.NotContains(t, present(t, copy.Store, p.feed, func(*mirror.Record) string { return "" }), id, name)
	}
}

// Entries of other formats, without IDs or times, and with characters XML cannot have, come
// as valid Atom.
func TestFormats(t *testing.T) {
	w := newWorld(t, 1, false)
	for _, text := range []string{
		`<rss version="2.0"><channel><title>R</title><item><title>One</title><link>https://origin.example/1</link></item></channel></rss>`,
		`{"version":"https://jsonfeed.org/version/1.1","title":"J","items":[{"id":"json","title":"A\u0001b","content_text":"text"}]}`,
		`<feed version="0.3" xmlns="http://purl.org/atom/ns#"><entry><id>urn:old</id><title>Old</title><modified>2003-12-13T18:30:02Z</modified></entry></feed>`,
	} {
		doc, err := feedhistory.Parse(strings.NewReader(text), feedURL)
		require.NoError(t, err)
		w.merge(doc)
	}
	for name, p := range protocols {
		copy := &mirror.Mirror{Store: mirror.NewMemory()}
		r, err := p.keep(t.Context(), w.client(), copy)
		require.NoError(t, err, name)
		require.Empty(t, r.Feed.Ledger.Gaps())
		nothing := func(*mirror.Record) string { return "" }
		require.Equal(t, present(t, w.Store, feedURL, nothing), present(t, copy.Store, p.feed, nothing), name)
	}
}
