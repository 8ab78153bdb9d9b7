package mirror_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/website"
	"github.com/feedhistory/feedhistory/mirror"
)

// A rows is a program's own table of one feed's entries, and its Ledger as it is stored.
type rows struct {
	table   map[string]row
	text    []byte
	commits int64
	stored  func() // called after each Reading, if not nil
}

// A row is an entry, or the deletion of one.
type row struct {
	rank, title string
	isDeleted   bool
}

func newRows() *rows { return &rows{table: map[string]row{}} }

// store does for each Change what its statement does.
func (s *rows) store(changes []mirror.Change) {
	for _, c := range changes {
		switch old, ok := s.table[c.ID]; c.Op {
		case mirror.OpPut:
			put := row{rank: c.Rank, isDeleted: c.Entry == nil}
			if c.Entry != nil {
				put.title = c.Entry.Title().Plain()
			}
			if !ok || c.Rank >= old.rank {
				s.table[c.ID] = put
			}
		case mirror.OpKeep:
			if ok && old.rank < c.Rank {
				old.rank = c.Rank
				s.table[c.ID] = old
			}
		case mirror.OpClear:
			for id, r := range s.table {
				if r.rank >= c.Since && r.rank < c.Rank && !r.isDeleted {
					s.table[id] = row{rank: c.Rank, isDeleted: true}
				}
			}
		}
	}
}

// titles returns those of the entries, by their IDs.
func (s *rows) titles() map[string]string {
	titles := map[string]string{}
	for id, r := range s.table {
		if !r.isDeleted {
			titles[id] = r.title
		}
	}
	return titles
}

// ledger returns the stored Ledger.
func (s *rows) ledger(t testing.TB) (l mirror.Ledger) {
	if s.text != nil {
		require.NoError(t, json.Unmarshal(s.text, &l))
	}
	return l
}

// walk polls the feed, until most readings are stored.
func (s *rows) walk(ctx context.Context, t testing.TB, m *mirror.Mirror, url string, most int) error {
	for r, err := range m.Poll(ctx, url, s.ledger(t)) {
		if err != nil {
			require.Nil(t, r)
			return err
		}
		if most--; most < 0 {
			return nil // it could not be stored
		}
		s.store(r.Changes)
		require.True(t, r.Ledger.Follows(s.ledger(t)), "for compare and swap")
		text, err := json.Marshal(r.Ledger)
		require.NoError(t, err)
		s.text, s.commits = text, s.commits+1
		require.Equal(t, s.commits, r.Ledger.Feed().Commits)
		if s.stored != nil {
			s.stored()
		}
	}
	return nil
}

// Poll does the same as Update, with every fixture and at every poll: it makes the same
// requests, and comes to the same entries, gaps and verdict.
func TestWalkOfFixtures(t *testing.T) {
	for _, file := range append(feedtest.Glob(t, "testdata/*.txtar"), feedtest.Glob(t, "../conformance/cases/polls/*.txtar")...) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text := string(feedtest.ReadFile(t, file))
			synctest.Test(t, func(t *testing.T) { testWalkOfFixture(t, strings.TrimSuffix(filepath.Base(file), ".txtar"), text) })
		})
	}
}

// exceptions are the fixtures in which a Poll asks for more than Update, or owes what Update writes off;
// true means at their end. A document is named by documents to which the chain no longer leads, and
// only rows show that the chain has their entries; nothing shows that no entry of a rebuilt feed was
// known before, or that a second link leads to known ones, or where a window joins.
var exceptions = map[string]bool{
	"leftovers-of-an-old-chain": true, "leftovers-of-old-chains": true, "program-rebuilt-same-urls": true,
	"program-second-link-many": false, "program-empty-then-archives": false,
}

func testWalkOfFixture(t *testing.T, name, text string) {
	polls, _ := feedtest.Parse(text).File("polls")
	store, own := mirror.NewMemory(), newRows()
	owed, isException := exceptions[name]
	isOwed := false
	sites := make([]*website.Site, 2)
	for i := range sites {
		site, err := website.New(text)
		require.NoError(t, err)
		site.URL, site.Other = "http://site.example", "http://other.example"
		sites[i] = site
	}
	url := sites[0].URL + "/feed.atom"
	for i, words := range strings.Split(strings.TrimSuffix(polls, "\n"), "\n") {
		time.Sleep(time.Hour)
		mirrors := make([]*mirror.Mirror, 2)
		for k, site := range sites {
			if i > 0 {
				site.Next()
			}
			mirrors[k] = newMirror(nil, site)
			mirrors[k].Revalidate = strings.Contains(words, "revalidate")
			if _, words, ok := strings.Cut(words, "budget"); ok {
				_, _ = fmt.Sscan(words, &mirrors[k].Client.Budget.Documents)
			}
		}
		mirrors[0].Store = store
		report, err := mirrors[0].Update(t.Context(), url)
		require.NoError(t, err)
		if err := own.walk(t.Context(), t, mirrors[1], url, 1000); report.Failure == nil {
			require.NoError(t, err, "poll %d", i)
		} else {
			require.EqualError(t, err, report.Failure.Error(), "poll %d", i)
		}
		ledger, want := own.ledger(t), feedOf(t, store, url)
		require.Equal(t, held(t, store, url), own.titles(), "poll %d", i)
		if !isException {
			require.Equal(t, sites[0].Requests(), sites[1].Requests(), "poll %d", i)
		}
		got := ledger.Feed()
		if isOwed = isException && got.Verdict == feedhistory.VerdictPartial; isOwed {
			continue
		}
		require.Equal(t, fmt.Sprint(report.Feed.Ledger.Gaps()), fmt.Sprint(ledger.Gaps()), "poll %d", i)
		require.Equal(t, want.Verdict, got.Verdict, "poll %d", i)
		require.Equal(t, []any{want.Kind, want.Title, want.Documents, want.Address, want.Failures, want.Unfinished, want.More, want.Gone},
			[]any{got.Kind, got.Title, got.Documents, got.Address, got.Failures, got.Unfinished, got.More, got.Gone}, "poll %d", i)
		require.True(t, want.Next.Equal(got.Next), "poll %d", i)
	}
	require.Equal(t, owed, isOwed)
}

var walkSchedules = flag.Int("walk-schedules", feedtest.Count(200), "the number of schedules to test Poll with")

// However often walks are interrupted, cannot be stored or fail, a few more make the table
// equal to what is published.
func TestWalkInterrupted(t *testing.T) {
	for seed := range feedtest.Seeds(*walkSchedules) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			model, own := feedtest.NewModel("/feed", seed), newRows()
			walk := func(most int) error {
				time.Sleep(26 * time.Hour)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				m := newMirror(nil, model)
				m.Client.NoGuess = seed%2 == 0
				m.Client.Budget.Documents = []int{0, 0, 2, 5}[random.IntN(4)]
				return own.walk(ctx, t, m, modelURL, most)
			}
			for range 5 + random.IntN(30) {
				if random.IntN(2) == 0 {
					model.Step()
					continue
				}
				model.Fail([]float64{0, 0.1, 0.5}[random.IntN(3)])
				_ = walk(random.IntN(5)) // however it ends
			}
			model.Fail(0)
			model.Close()
			model.Become([]string{"archived", "complete"}[random.IntN(2)])
			for polls := 0; polls == 0 || own.ledger(t).Feed().Verdict != feedhistory.VerdictWhole; polls++ {
				require.Less(t, polls, 20, "seed %d: %v", seed, own.ledger(t).Gaps())
				_ = walk(1000)
			}
			require.Equal(t, model.Published(), own.titles(), "seed %d", seed)
		})
	}
}

// archivedModel returns a feed after some steps, with archives.
func archivedModel(seed uint64, steps int) *feedtest.Model {
	model := feedtest.NewModel("/feed", seed)
	for range steps {
		model.Step()
	}
	model.Become("archived")
	return model
}

// A program stores several Readings at a time, and then the Ledger of the last: the next walk goes
// on from there, wherever it was interrupted.
func TestWalkStoredSeldom(t *testing.T) {
	for every := 1; every <= 7; every++ {
		model := archivedModel(uint64(every), 60)
		m, own := newMirror(nil, model), newRows()
		for walks := 0; own.text == nil || own.ledger(t).Feed().Verdict != feedhistory.VerdictWhole; walks++ {
			require.Less(t, walks, 100)
			stored := own.ledger(t)
			var pending []*mirror.Reading
			left := every + walks%2 // cut off after that many
			for r, err := range m.Poll(t.Context(), modelURL, stored) {
				require.NoError(t, err)
				if pending = append(pending, r); len(pending) == every || r.Ledger.Feed().Verdict == feedhistory.VerdictWhole {
					require.True(t, r.Ledger.Follows(stored))
					for _, r := range pending {
						own.store(r.Changes)
					}
					text, err := json.Marshal(r.Ledger)
					require.NoError(t, err)
					own.text, stored, pending = text, r.Ledger, nil
				}
				if left--; left == 0 {
					break
				}
			}
		}
		require.Equal(t, model.Published(), own.titles())
	}
}

// Of two walks that begin with one Ledger, the second to store one sees that it is late. A Ledger
// with the validators that a program already has makes the first request conditional.
func TestLedgerFollows(t *testing.T) {
	model := archivedModel(3, 40)
	m := newMirror(nil, model)
	walk := func(from mirror.Ledger) (ledgers []mirror.Ledger) {
		for r, err := range m.Poll(t.Context(), modelURL, from) {
			require.NoError(t, err)
			require.NotZero(t, r.Response.Status)
			var again mirror.Ledger
			text, err := json.Marshal(r.Ledger)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &again))
			ledgers = append(ledgers, again)
		}
		return ledgers
	}
	one, two := walk(mirror.Ledger{}), walk(mirror.Ledger{})
	require.Greater(t, len(one), 2)
	for i, l := range one {
		require.True(t, l.Follows(mirror.Ledger{}))
		for k, old := range one {
			require.Equal(t, i > k, l.Follows(old))
			require.False(t, two[len(two)-1].Follows(old))
		}
	}
	next := walk(one[1])
	require.True(t, next[0].Follows(one[1]))
	require.False(t, next[0].Follows(one[2]), "which the other walk has stored")
	require.False(t, mirror.Ledger{}.Follows(one[0]))
	require.False(t, walk(one[0])[0].Follows(mirror.Ledger{}))

	etag, requests := `"1"`, []string{}
	text := `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><entry><id>urn:1</id><title>T</title></entry></feed>`
	m = newMirror(nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.Header.Get("If-None-Match"))
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	begun := walk(mirror.NewLedger(modelURL, feedhistory.Known{ETag: etag}))
	require.Len(t, begun, 1)
	require.Equal(t, feedhistory.VerdictUnknown, begun[0].Feed().Verdict)
	require.Equal(t, []string{etag}, requests)
	etag = `"2"`
	begun = walk(begun[0])
	require.Equal(t, feedhistory.VerdictWindow, begun[len(begun)-1].Feed().Verdict)
	require.Equal(t, []string{`"1"`, `"1"`}, requests)
}

// A Ledger is one feed's, and stays as it is while later readings go on.
func TestWalkLedger(t *testing.T) {
	model := archivedModel(1, 60)
	m := newMirror(nil, model)
	var ledgers []mirror.Ledger
	var texts [][]byte
	for r, err := range m.Poll(t.Context(), modelURL, mirror.Ledger{}) {
		require.NoError(t, err)
		text, err := json.Marshal(r.Ledger)
		require.NoError(t, err)
		ledgers, texts = append(ledgers, r.Ledger), append(texts, text)
	}
	require.Greater(t, len(ledgers), 2)
	for i, l := range ledgers {
		text, err := json.Marshal(l)
		require.NoError(t, err)
		require.JSONEq(t, string(texts[i]), string(text))
		var again mirror.Ledger
		require.NoError(t, json.Unmarshal(text, &again))
		text, err = json.Marshal(again)
		require.NoError(t, err)
		require.JSONEq(t, string(texts[i]), string(text), "stored and read")
	}
	require.Zero(t, (mirror.Ledger{}).Feed().Commits)
	for _, err := range m.Poll(t.Context(), "/relative", mirror.Ledger{}) {
		require.ErrorContains(t, err, "not an absolute URL")
	}

	// A column of a database.
	var scanned mirror.Ledger
	stored, err := ledgers[0].Value()
	require.NoError(t, err)
	for _, column := range []any{stored, []byte(stored.(string))} {
		require.NoError(t, scanned.Scan(column))
		require.Equal(t, ledgers[0].Feed().Commits, scanned.Feed().Commits)
	}
	for _, column := range []any{nil, "", []byte{}} {
		require.NoError(t, scanned.Scan(column))
		require.Zero(t, scanned.Feed().Commits)
	}
	require.ErrorContains(t, scanned.Scan(1), "a int is no Ledger")
	for _, err := range m.Poll(t.Context(), "http://other.example/feed", ledgers[0]) {
		require.ErrorContains(t, err, "of another feed, "+modelURL)
	}
	for text, want := range map[string]string{
		`{"commits":1,"rows":"AAAA"}`:         "rows of a Ledger",
		`{"commits":1,"rows":"qgMA"}`:         "rows of a Ledger",
		`{"commits":1,"rows":"qqgFAAAA//8="}`: "rows of a Ledger",
		`{"commits":1,"rows":1}`:              "cannot unmarshal",
	} {
		require.ErrorContains(t, json.Unmarshal([]byte(text), new(mirror.Ledger)), want)
	}

	// Reset, as for a Store's.
	last := ledgers[len(ledgers)-1]
	requests := 0
	m = newMirror(nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		require.Empty(t, r.Header.Get("If-None-Match"))
		model.ServeHTTP(w, r)
	}))
	last.Reset(false)
	for _, err := range m.Poll(t.Context(), modelURL, last) {
		require.NoError(t, err)
	}
	require.Positive(t, requests)
	require.NotEmpty(t, last.URL())
	last.Reset(true)
	require.Empty(t, last.URL(), "the next poll is as the first")
	require.Error(t, json.Unmarshal([]byte(`{"kind":"archived","entries":"many"}`), new(mirror.Feed)))
}

// A feed read before there were ledgers has none of these members; each of them alone tells
// that a later version has read it.
func TestUnverified(t *testing.T) {
	const known = `"kind":"archived","known":{"url":"http://a.example/feed"}`
	unverified := func(member string) bool {
		var l mirror.Ledger
		require.NoError(t, json.Unmarshal([]byte("{"+known+member+"}"), &l))
		return l.Unverified()
	}
	require.True(t, unverified(""))
	for _, member := range []string{
		`"shown":["urn:1"],"versions":"AAAAAA=="`, `"ids":["urn:a"]`, `"recent":["AAAA"]`, `"former":{"poll":1}`, `"stranger":{}`, `"past":{}`, `"elsewhere":true`,
		`"since":1`,
	} {
		require.False(t, unverified(","+member), member)
	}
	require.True(t, unverified(`,"inherited":"2020-01-02T00:00:00Z","checked":"2020-01-01T00:00:00Z"`))
	require.False(t, unverified(`,"inherited":"2020-01-02T00:00:00Z","checked":"2020-01-03T00:00:00Z"`))
}

// A Reading's entries can be given to another parser as they were published, in RSS if they
// were.
func TestReadingXML(t *testing.T) {
	const head = `<link rel="self" href="http://model.example/feed"/>`
	for feed, want := range map[string][]string{
		`<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>F</title>` + head + `<entry><id>urn:1</id><title>One &amp; all</title></entry></feed>`: {
			"<feed", "<title>F</title>", "One &amp; all",
		},
		`<rss version="2.0"><channel><title>F</title><item><guid isPermaLink="false">1</guid><x:y xmlns:x="urn:x">z</x:y></item></channel></rss>`: {
			"<rss", "<title>F</title>", `<guid isPermaLink="false">1</guid>`, `<x:y xmlns:x="urn:x">z</x:y>`,
		},
		`{"version": "https://jsonfeed.org/version/1.1", "title": "F", "items": [{"id": "1", "content_text": "T"}]}`: {"<feed", "<id>1</id>"},
	} {
		m := newMirror(nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(feed)) }))
		n := 0
		for r, err := range m.Poll(t.Context(), modelURL, mirror.Ledger{}) {
			require.NoError(t, err)
			text, err := xmlOf(r)
			require.NoError(t, err)
			doc, err := feedhistory.Parse(bytes.NewReader(text), modelURL)
			require.NoError(t, err)
			n += len(doc.Entries)
			for _, part := range want {
				require.Contains(t, string(text), part)
			}
		}
		require.Equal(t, 1, n)
	}

	m := newMirror(nil, http.NotFoundHandler())
	for r, err := range m.Poll(t.Context(), modelURL, mirror.Ledger{}) {
		if err == nil { // a feed never read has no head section
			doc, err := r.Document()
			require.NoError(t, err)
			require.Empty(t, doc.Entries)
		}
	}
}

// An error that ends a walk comes alone, after what was read before it.
func TestWalkFails(t *testing.T) {
	own := newRows()
	m := newMirror(nil, http.NotFoundHandler())
	err := own.walk(t.Context(), t, m, modelURL, 10)
	require.ErrorAs(t, err, new(*feedhistory.FetchError))
	require.Equal(t, 1, own.ledger(t).Feed().Failures)

	ctx, cancel := context.WithCancel(t.Context())
	m = newMirror(nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		older := map[string]string{"/feed": "/1", "/1": "/2"}[r.URL.Path]
		_, _ = fmt.Fprintf(w, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><link rel="prev-archive" href="%s"/><entry><id>urn:%s</id><title>T</title></entry></feed>`, older, strings.Trim(r.URL.Path, "/"))
	}))
	own.stored = cancel
	err = own.walk(ctx, t, m, modelURL, 10)
	require.True(t, errors.Is(err, context.Canceled), err)
	require.Contains(t, own.titles(), "urn:feed")
	require.True(t, own.ledger(t).Feed().Unfinished)
	own.stored = nil
	require.NoError(t, own.walk(t.Context(), t, m, modelURL, 10))
	require.Len(t, own.titles(), 3)

	require.PanicsWithValue(t, "in the loop", func() {
		for range m.Poll(t.Context(), modelURL, mirror.Ledger{}) {
			panic("in the loop")
		}
	})
}

// earlierSite is the feed of testdata/ledger-with-rows.json: six entries in three documents, of which
// that Ledger knows two.
func earlierSite(w http.ResponseWriter, r *http.Request) {
	n := map[string]int{"/feed": 3, "/2": 2, "/1": 1}[r.URL.Path]
	fmt.Fprint(w, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>F</title>`)
	if n > 1 {
		fmt.Fprintf(w, `<link rel="prev-archive" href="/%d"/>`, n-1)
	}
	for k := 2*n + 1; k > 2*n-1; k-- {
		fmt.Fprintf(w, `<entry><id>http://model.example/%d</id><title>T%[1]d</title><updated>2026-01-%02[1]dT00:00:00Z</updated></entry>`, k)
	}
	fmt.Fprint(w, "</feed>")
}

// A Ledger that a version before stored, with a row of each entry, is read, and the walk goes on.
func TestLedgerWithRows(t *testing.T) {
	own := newRows()
	own.text = feedtest.ReadFile(t, "testdata/ledger-with-rows.json")
	require.Equal(t, feedhistory.VerdictPartial, own.ledger(t).Feed().Verdict)
	require.Equal(t, 1, own.ledger(t).Pending())
	var requests []string
	m := newMirror(nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.URL.Path)
		earlierSite(w, r)
	}))
	m.Client.NoGuess = true
	m.Now = func() time.Time { return own.ledger(t).Feed().Next.Add(time.Second) }
	own.commits = own.ledger(t).Feed().Commits
	require.NoError(t, own.walk(t.Context(), t, m, modelURL, 100))
	require.Equal(t, []string{"/feed", "/1"}, requests)
	require.Equal(t, map[string]string{"http://model.example/2": "T2", "http://model.example/3": "T3"}, own.titles())
	require.Equal(t, feedhistory.VerdictWhole, own.ledger(t).Feed().Verdict)
}

// What a Ledger remembers does not grow with the entries of a feed: fewer than 4 kB, and 26 bytes
// for each archive and each entry of the subscription document.
func TestSizeOfALedger(t *testing.T) {
	for _, archives := range []int{0, 20, 100, 200} {
		m := newMirror(nil, archiveSite(archives))
		var last mirror.Ledger
		for r, err := range m.Poll(t.Context(), modelURL, mirror.Ledger{}) {
			require.NoError(t, err)
			last = r.Ledger
		}
		text, err := last.MarshalJSON()
		require.NoError(t, err)
		require.Less(t, len(text), 4000+26*(archives+100), "%d archives", archives)
		require.NotEqual(t, feedhistory.VerdictPartial, last.Feed().Verdict)
	}
}
