package atompmh

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/check"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/stretchr/testify/require"
)

type poolFunc = func(context.Context, time.Time) iter.Seq2[Item, error]

// way names how deletions are shown.
func way(byAbsence bool) string {
	if byAbsence {
		return "absence"
	}
	return "entry"
}

// items is a Pool that never changes.
func items(all ...Item) poolFunc {
	return func(_ context.Context, since time.Time) iter.Seq2[Item, error] {
		return func(yield func(Item, error) bool) {
			for _, it := range all {
				if !it.Modified.Before(since) && !yield(it, nil) {
					return
				}
			}
		}
	}
}

var noon = time.Date(2012, 11, 1, 12, 0, 0, 0, time.UTC)

func item(id string, at time.Time) Item {
	return Item{ID: id, Modified: at, Title: id, Representations: []Representation{{"https://example.org/" + id[4:], "text/html"}}}
}

// A record that lacks a required part is refused, and nothing is published.
func TestRecordErrors(t *testing.T) {
	with := func(change func(*Item)) Item {
		it := item("urn:a", noon)
		change(&it)
		return it
	}
	for name, test := range map[string]struct {
		it     Item
		clause string
	}{
		"no id":               {with(func(i *Item) { i.ID = "" }), "atom-pmh#3"},
		"an id that is cut":   {with(func(i *Item) { i.ID = "urn:a\x00" }), "atom-pmh#3"},
		"no time":             {with(func(i *Item) { i.Modified = time.Time{} }), "atom-pmh#11"},
		"a time beyond":       {with(func(i *Item) { i.Modified = noon.AddDate(9000, 0, 0) }), "atom-pmh#11"},
		"no representation":   {with(func(i *Item) { i.Representations = nil }), "atom-pmh#15"},
		"no media type":       {with(func(i *Item) { i.Representations[0].Type = "" }), "atom-pmh#15"},
		"a media range":       {with(func(i *Item) { i.Representations[0].Type = "text/*" }), "atom-pmh#15"},
		"a relative URL":      {with(func(i *Item) { i.Representations[0].URL = "a" }), "atom-pmh#15"},
		"a URL that is none":  {with(func(i *Item) { i.Representations[0].URL = "http://[" }), "atom-pmh#15"},
		"a URL that is split": {with(func(i *Item) { i.Representations[0].URL = "urn:a\x01" }), "atom-pmh#15"},
	} {
		for _, mode := range []bool{false, true} {
			t.Run(name+" "+way(mode), func(t *testing.T) {
				out := newMemory()
				p := Producer{Output: out, Base: base, Pool: items(item("urn:b", noon), test.it), ByAbsence: mode}
				record := feedtest.ErrorAs[*harvest.Error](t, p.Update(t.Context()))
				require.Equal(t, harvest.ErrRecord, record.Code)
				require.Equal(t, test.clause, record.Clause)
				require.Equal(t, test.it.ID, record.Item)
				require.Empty(t, out.Names())
				out.requireUnlocked(t)
			})
		}
	}
	p := Producer{Output: newMemory(), Base: base, Pool: items(item("urn:a", noon), item("urn:a", noon.Add(1)))}
	require.ErrorContains(t, p.Update(t.Context()), "the pool returned it twice (atom-pmh#8)")
	require.ErrorContains(t, new(Producer).Update(t.Context()), "must be set")
	for _, mode := range []bool{false, true} {
		p := Producer{Output: newMemory(), Base: "/records", Pool: items(), ByAbsence: mode}
		require.ErrorContains(t, p.Update(t.Context()), "not an absolute URL")
	}
	failed := errors.New("no database")
	p.Pool = func(context.Context, time.Time) iter.Seq2[Item, error] {
		return func(yield func(Item, error) bool) { yield(Item{}, failed) }
	}
	require.ErrorIs(t, p.Update(t.Context()), failed)
}

// A record that comes too late, or twice with the same time, is refused; Settle
// waits for it.
//
// Duties: atom-pmh#7, atom-pmh#12, atom-pmh#13, atom-pmh#23, atom-pmh#24.
func TestLate(t *testing.T) {
	p := Producer{Output: newMemory(), Base: base, Pool: items(item("urn:a", noon))}
	require.NoError(t, p.Update(t.Context()))
	var record *harvest.Error

	p.Pool = items(item("urn:a", noon), item("urn:late", noon.Add(-time.Second)))
	err := p.Update(t.Context())
	require.ErrorIs(t, err, harvest.ErrLate)
	require.ErrorAs(t, err, &record)
	require.Equal(t, "urn:late", record.Item)
	require.Equal(t, "atom-pmh#7", record.Clause)

	other := item("urn:a", noon)
	other.Representations[0].URL += "2"
	for _, it := range []Item{other, {ID: "urn:a", Modified: noon, Deleted: true}} {
		p.Pool = items(it)
		err = p.Update(t.Context())
		require.ErrorIs(t, err, harvest.ErrSameTime)
		require.ErrorAs(t, err, &record)
		require.Equal(t, "atom-pmh#13, atom-pmh#24", record.Clause)
	}
	p.Pool = items(item("urn:a", noon.Add(-time.Second)))
	err = p.Update(t.Context())
	require.ErrorIs(t, err, harvest.ErrLate)
	require.ErrorAs(t, err, &record)
	require.Equal(t, "atom-pmh#12, atom-pmh#23", record.Clause)

	now := noon
	p = Producer{Output: newMemory(), Base: base, Settle: 5 * time.Second, Now: func() time.Time { return now }}
	p.Pool = items(item("urn:a", noon))
	require.NoError(t, p.Update(t.Context()))
	require.Empty(t, published(t, &p))
	p.Pool = items(item("urn:a", noon), item("urn:late", noon.Add(-time.Second)))
	now = noon.Add(5 * time.Second)
	require.NoError(t, p.Update(t.Context()))
	require.Equal(t, []string{"urn:a", "urn:late"}, published(t, &p))
}

// published returns the ids in the subscription document in its order.
func published(t *testing.T, p *Producer) (ids []string) {
	doc, err := p.published()
	require.NoError(t, err)
	for _, e := range doc.Entries {
		ids = append(ids, e.ID)
	}
	return ids
}

// The way in which a feed shows deletions cannot change if the published feed
// contradicts that.
//
// Duties: atom-pmh#17.
func TestChangeOfDeletions(t *testing.T) {
	deleted := Item{ID: "urn:b", Modified: noon.Add(time.Second), Deleted: true}
	for name, test := range map[string]struct {
		first, then bool // whether deletions are shown by absence
		pool        poolFunc
		split       int
		refused     bool
	}{
		"nothing was deleted":          {false, true, items(item("urn:a", noon)), 0, false},
		"an empty feed":                {false, true, items(), 0, false},
		"there is a deletion entry":    {false, true, items(item("urn:a", noon), deleted), 0, true},
		"there are archives":           {false, true, items(item("urn:a", noon), item("urn:b", noon)), 1, true},
		"records may have vanished":    {true, false, items(item("urn:a", noon)), 0, true},
		"whether entries or not":       {true, false, items(), 0, true},
		"and back, before any of this": {false, false, items(item("urn:a", noon), deleted), 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			out := newMemory()
			p := Producer{Output: out, Base: base, Pool: test.pool, ByAbsence: test.first, Split: compose.Split{Size: test.split}}
			require.NoError(t, p.Update(t.Context()))
			before := out.text(t, "feed.atom")
			p.ByAbsence = test.then
			err := p.Update(t.Context())
			if !test.refused {
				require.NoError(t, err)
				return
			}
			deletions := feedtest.ErrorAs[*harvest.Error](t, err)
			require.Equal(t, harvest.ErrDeletions, deletions.Code)
			require.Equal(t, way(test.first), deletions.Item)
			require.ErrorContains(t, err, "shows deletions by "+way(test.first))
			require.Equal(t, before, out.text(t, "feed.atom"))
			out.requireUnlocked(t)
		})
	}
	for _, foreign := range []string{feed(day(1), ""), feed(day(1), "complete"), "<nothing/>"} {
		for _, mode := range []bool{false, true} {
			out := newMemory()
			require.NoError(t, out.Put(t.Context(), "feed.atom", []byte(foreign)))
			p := Producer{Output: out, Base: base, Pool: items(item("urn:a", noon)), ByAbsence: mode, Head: &feedhistory.Document{ID: "urn:other"}}
			require.Error(t, p.Update(t.Context()))
			require.Equal(t, foreign, out.text(t, "feed.atom"))
		}
	}
}

// Over HTTP, at each step of a pool's life: the checks find nothing in what is
// published; consumers that come at each step or only at the end have the pool;
// the history is there according to the setting; and an update with nothing new
// writes nothing.
//
// Duties: atom-pmh#2, atom-pmh#18, atom-pmh#33.
func TestProducer(t *testing.T) {
	for _, mode := range []bool{false, true} {
		for _, historical := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, " ", historical), func(t *testing.T) {
				pool, out := newPool(), publish.Dir{Path: t.TempDir()}
				server := feedtest.Server(t, &publish.Handler{FS: out})
				p := Producer{
					Output: out, Base: server.URL, Pool: pool.query, ByAbsence: mode, Historical: historical,
					Split: compose.Split{Size: 4},
				}
				client := loopback()
				defer client.CloseIdle()
				newConsumer := func() *consumer {
					return &consumer{Harvester: &Harvester{HTTP: client, URL: p.URL()}, has: map[string]copied{}}
				}
				steady := newConsumer()
				steps := []func(at time.Time){
					func(time.Time) {},
					func(at time.Time) { pool.put("urn:a", at) },
					func(at time.Time) { pool.put("urn:a", at); pool.put("urn:b", at); pool.put("urn:c", at) },
					func(at time.Time) { pool.remove("urn:b", at) },
					func(at time.Time) { pool.put("urn:b", at) },
					func(at time.Time) {
						for i := range 10 {
							pool.put(fmt.Sprintf("urn:%d", i), at)
						}
					},
					func(at time.Time) { pool.remove("urn:3", at); pool.put("urn:4", at) },
				}
				for i, step := range steps {
					step(noon.Add(time.Duration(i) * time.Hour))
					require.NoError(t, p.Update(t.Context()))
					chain := check.Chain{Profile: check.AtomPMH}
					for _, finding := range feedtest.All(t, chain.Check(t.Context(), client, p.URL())) {
						require.Failf(t, "a finding", "step %d: %v", i, finding)
					}
					_, _, err := steady.harvest(t.Context())
					require.NoError(t, err)
					require.Equal(t, pool.present(), steady.present(), "step %d", i)
				}
				before, err := p.published()
				require.NoError(t, err)
				require.NoError(t, p.Update(t.Context()))
				after, err := p.published()
				require.NoError(t, err)
				require.Equal(t, before.Text(), after.Text())

				late := newConsumer()
				_, _, err = late.harvest(t.Context())
				require.NoError(t, err)
				require.Equal(t, pool.present(), late.present())
				require.Equal(t, historical, versionsOf(t, client, p.URL(), "urn:a") > 1)
			})
		}
	}
}

// versionsOf counts the entries of a record.
func versionsOf(t *testing.T, client *feedhistory.Client, url, id string) (n int) {
	for _, r := range feedtest.All(t, client.Walk(t.Context(), url)) {
		if r.Document == nil {
			continue
		}
		for _, e := range r.Document.Entries {
			if e.ID == id {
				n++
			}
		}
	}
	return n
}

// The head is the caller's, or else stays as it is published.
func TestHead(t *testing.T) {
	for _, mode := range []bool{false, true} {
		out := newMemory()
		head := &feedhistory.Document{ID: "urn:feed", Title: "Records", Authors: []feedhistory.Person{{Name: "Ann"}}}
		p := Producer{Output: out, Base: base, Pool: items(item("urn:a", noon)), ByAbsence: mode, Head: head}
		require.NoError(t, p.Update(t.Context()))
		p.Head, p.Pool = nil, items(item("urn:b", noon.Add(time.Hour)), item("urn:a", noon))
		require.NoError(t, p.Update(t.Context()))
		doc, err := p.published()
		require.NoError(t, err)
		require.Equal(t, "urn:feed", doc.ID)
		require.Equal(t, "Records", doc.Title)
		require.Equal(t, head.Authors, doc.Authors)
		require.Len(t, doc.Entries, 2)

		p = Producer{Output: newMemory(), Base: base, Pool: items(item("urn:a", noon)), ByAbsence: mode, Name: "records.atom"}
		require.NoError(t, p.Update(t.Context()))
		require.Equal(t, base+"records.atom", p.URL())
		require.Equal(t, []string{"records.atom"}, p.Output.(*memory).Names())
		doc, err = p.published()
		require.NoError(t, err)
		require.Equal(t, p.URL(), doc.ID)
		require.NotEmpty(t, strings.TrimSpace(doc.Authors[0].Name)) // RFC 4287 §4.1.1
	}
}
