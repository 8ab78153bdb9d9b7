package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// calls are the tests of many calls at once, of calls within calls, and by chance.
var calls = []test{
	{"EndedWhileRanging", testEndedWhileRanging},
	{"ChangesMoving", testChangesMoving},
	{"Again", testAgain},
	{"Nested", testNested},
	{"Aliases", testAliases},
	{"Fenced", testFenced},
	{"Whole", testWhole},
	{"RemovedMeanwhile", testRemovedMeanwhile},
	{"Model", testModel},
}

func testEnded(_ *testing.T, w *world) {
	w.commit(feedURL, mirror.Commit{Put: []*mirror.Record{live("a", at(0))}, Documents: []*mirror.DocumentRecord{document("d", "d")}})
	ended := *w
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	ended.ctx = ctx
	ended.look(feedURL, "a", "d")
	ended.entries(mirror.Query{Search: "a"})
	ended.remove(feedURL)
	ended.both("commit", func(s mirror.Store) error {
		return s.Commit(ctx, &mirror.Commit{Feed: &mirror.Feed{URL: feedURL, Commits: 1, Title: "new"}})
	})
	w.look(feedURL)
}

func testEndedWhileRanging(t *testing.T, w *world) {
	w.stock()
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	n := 0
	var last error
	for _, err := range w.Entries(ctx, mirror.Query{}) {
		require.NoError(t, last)
		n++
		last = err
		cancel()
	}
	require.ErrorIs(t, last, context.Canceled)
	require.Less(t, n, 600, "it goes on for a while at most")
}

func testAgain(t *testing.T, w *world) {
	want := w.stock()
	seq := w.Entries(w.ctx, mirror.Query{})
	for range seq {
		break
	}
	for r, err := range seq {
		require.NoError(t, err)
		if r.ID == want[200].ID && r.Feed == want[200].Feed {
			break
		}
	}
	same(t, want, feedtest.All(t, seq))
	same(t, want, feedtest.All(t, seq))
	newest := live("newest", at(5000))
	w.put("a", newest)
	require.Equal(t, "newest", feedtest.All(t, seq)[0].ID, "it starts afresh")

	w.commit("a", mirror.Commit{Documents: []*mirror.DocumentRecord{document("d", "d"), document("e", "e")}})
	w.put("a", live("newest", at(5001)), live("other", at(0)))
	changed := live("newest", at(5002))
	changed.Copy.Digest = "changed"
	w.put("a", changed)
	for range 2 {
		require.Len(t, w.feeds(mirror.FeedQuery{}), 3)
		for range w.Feeds(w.ctx, mirror.FeedQuery{}) {
			break
		}
		for range w.Documents(w.ctx, "a") {
			break
		}
		for range w.Versions(w.ctx, "a", "newest") {
			break
		}
	}
}

// testChangesMoving follows a long change, and remembers how far it has come
// where the query points; there, it also changes its mind before it begins.
func testChangesMoving(t *testing.T, w *world) {
	var records []*mirror.Record
	for i := range 1000 {
		records = append(records, live(fmt.Sprintf("%04d", i), at(i)))
	}
	w.put(feedURL, records...)
	seen, n := int64(0), 0
	for r, err := range w.Entries(w.ctx, mirror.Query{Feed: feedURL, AfterCommit: &seen}) {
		require.NoError(t, err)
		require.Equal(t, records[n].ID, r.ID)
		seen = r.LastCommit
		n++
	}
	require.Len(t, records, n)

	zero, beyond := int64(0), *records[999]
	beyond.Feed = feedURL
	changes := w.Entries(w.ctx, mirror.Query{Feed: feedURL, AfterCommit: &zero})
	older := w.Entries(w.ctx, mirror.Query{Feed: feedURL, Beyond: &beyond})
	zero, beyond = 1, *records[500]
	require.Len(t, feedtest.All(t, changes), 1000)
	n = 0
	for r, err := range older {
		require.NoError(t, err)
		beyond = *r
		n++
	}
	require.Equal(t, 999, n)
}

// testNested calls all methods while sequences of all kinds are being ranged
// over.
func testNested(t *testing.T, w *world) {
	w.stock()
	w.commit("a", mirror.Commit{
		Documents: []*mirror.DocumentRecord{document("d", "d"), document("e", "e")},
		Versions:  []*mirror.Record{{ID: "000", Copy: mirror.Copy{Digest: "1"}}, {ID: "000", Copy: mirror.Copy{Digest: "2"}}}, Keep: 2,
	})
	n := 0
	inside := func(store mirror.Store) {
		n++
		url := fmt.Sprintf("nested %d", n)
		require.NoError(t, store.Commit(w.ctx, &mirror.Commit{
			Feed: &mirror.Feed{URL: url}, Put: []*mirror.Record{live("x", at(0))}, Documents: []*mirror.DocumentRecord{document("d", "d")},
		}))
		f, err := store.Feed(w.ctx, url)
		require.NoError(t, err)
		require.NoError(t, store.Commit(w.ctx, &mirror.Commit{Feed: f}))
		_, err = store.Records(w.ctx, "a", []string{"000"})
		require.NoError(t, err)
		_, err = store.Document(w.ctx, url, "d")
		require.NoError(t, err)
		require.NotEmpty(t, feedtest.All(t, store.Entries(w.ctx, mirror.Query{Limit: 3})))
		require.NoError(t, store.Remove(w.ctx, url))
	}
	for _, err := range w.Feeds(w.ctx, mirror.FeedQuery{Limit: 2}) {
		require.NoError(t, err)
		for _, err := range w.Entries(w.ctx, mirror.Query{Feed: "a", Limit: 2}) {
			require.NoError(t, err)
			for _, err := range w.Documents(w.ctx, "a") {
				require.NoError(t, err)
				for _, err := range w.Versions(w.ctx, "a", "000") {
					require.NoError(t, err)
					inside(w.Store)
					inside(w.other)
				}
			}
		}
	}
	require.Equal(t, 32, n)

	for r, err := range w.Entries(w.ctx, mirror.Query{Feed: "a"}) { // each record is changed during the range
		require.NoError(t, err)
		r.Added = at(1)
		w.commit("a", mirror.Commit{Touch: []*mirror.Record{r}})
	}
}

// testAliases checks whether the store keeps references to its arguments or results.
func testAliases(t *testing.T, w *world) {
	var f mirror.Feed
	fill(&f)
	f.URL, f.Commits = feedURL, 0
	var d mirror.DocumentRecord
	fill(&d)
	d.Names = []string{"d", "e"}
	r := live("a", at(0))
	v := &mirror.Record{ID: "a", Copy: mirror.Copy{Digest: "old"}}
	require.NoError(t, w.Commit(w.ctx, &mirror.Commit{
		Feed: &f, Put: []*mirror.Record{r}, Documents: []*mirror.DocumentRecord{&d}, Versions: []*mirror.Record{v}, Keep: 1,
	}))
	want, wantDocument, wantRecord, wantVersion := normal(f), normal(d), normal(*r), normal(*v)
	wantRecord.Feed = feedURL
	scramble(reflect.ValueOf(&f))
	scramble(reflect.ValueOf(&d))
	r.Content.Title, v.Copy.Digest = "scrambled", "scrambled"
	for range 2 {
		got, err := w.Feed(w.ctx, feedURL)
		require.NoError(t, err)
		same(t, want, *got)
		scramble(reflect.ValueOf(got))
		got = feedtest.All(t, w.Feeds(w.ctx, mirror.FeedQuery{}))[0]
		same(t, want, *got)
		scramble(reflect.ValueOf(got))
		doc, err := w.Document(w.ctx, feedURL, "d")
		require.NoError(t, err)
		same(t, wantDocument, *doc)
		scramble(reflect.ValueOf(doc))
		doc = feedtest.All(t, w.Documents(w.ctx, feedURL))[0]
		same(t, wantDocument, *doc)
		scramble(reflect.ValueOf(doc))
		records, err := w.Records(w.ctx, feedURL, []string{"a"})
		require.NoError(t, err)
		records["a"].State = "scrambled"
		record := feedtest.All(t, w.Entries(w.ctx, mirror.Query{}))[0]
		same(t, wantRecord, *record)
		record.Content.Title = "scrambled"
		version := feedtest.All(t, w.Versions(w.ctx, feedURL, "a"))[0]
		same(t, wantVersion, *version)
		version.ID = "scrambled"
	}
}

// scramble changes the contents of lists in place.
func scramble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		scramble(v.Elem())
	case reflect.Struct:
		switch v.Interface().(type) {
		case time.Time, mirror.Ledger: // nobody else can change their contents
			return
		}
		for _, field := range v.Fields() {
			scramble(field)
		}
	case reflect.Slice:
		if raw, ok := v.Interface().(json.RawMessage); ok {
			clear(raw)
			return
		}
		for i := range v.Len() {
			v.Index(i).SetZero()
		}
	}
}

// testFenced lets many writers count in the same feed at once. Each commit without a
// conflict must count, and no other.
func testFenced(t *testing.T, w *world) {
	const writers, each = 8, 6
	w.commit(feedURL, mirror.Commit{})
	count := func(store mirror.Store, id string) error {
		for {
			f, err := store.Feed(w.ctx, feedURL)
			if err != nil {
				return err
			}
			f.Polls++
			r := live(id, at(int(f.Polls)))
			r.LastCommit = f.Commits + 1
			err = store.Commit(w.ctx, &mirror.Commit{Feed: f, Put: []*mirror.Record{r}})
			if !errors.Is(err, mirror.ErrConflict) {
				return err
			}
		}
	}
	feedtest.AtOnce(t, writers, func(i int) (err error) {
		for n := 0; n < each && err == nil; n++ {
			err = count(w.store(i), fmt.Sprint(i, "-", n))
		}
		return err
	})
	f, err := w.Feed(w.ctx, feedURL)
	require.NoError(t, err)
	require.EqualValues(t, writers*each, f.Polls)
	require.EqualValues(t, writers*each+1, f.Commits)
	zero := int64(0)
	counted := feedtest.All(t, w.Entries(w.ctx, mirror.Query{Feed: feedURL, AfterCommit: &zero}))
	for i, r := range counted {
		require.EqualValues(t, i+2, r.LastCommit, "one commit is one version")
	}
	require.Len(t, counted, writers*each)

	// Of several adding a feed at once, one succeeds.
	var won atomic.Int32
	feedtest.AtOnce(t, writers, func(i int) error {
		err := w.store(i).Commit(w.ctx, &mirror.Commit{Feed: &mirror.Feed{URL: "new"}})
		if errors.Is(err, mirror.ErrConflict) {
			return nil
		}
		won.Add(1)
		return err
	})
	require.EqualValues(t, 1, won.Load())
}

// testWhole reads while changes are committed. A change must be seen as a whole
// and, once it has been seen, by all later calls.
func testWhole(t *testing.T, w *world) {
	var ids []string
	for i := range 60 {
		ids = append(ids, fmt.Sprint(i))
	}
	change := func(n int64) *mirror.Commit {
		c := &mirror.Commit{Feed: &mirror.Feed{URL: feedURL, Commits: n - 1}, Keep: 2}
		for i, id := range ids {
			r := live(id, at(int(n)))
			r.LastCommit, r.Copy.Digest = n, fmt.Sprint(n)
			if i%3 == 0 {
				c.Touch = append(c.Touch, r)
			} else {
				c.Put = append(c.Put, r)
			}
		}
		return c
	}
	require.NoError(t, w.Commit(w.ctx, change(1)))
	const last, readers = 15, 4
	feedtest.AtOnce(t, 1+readers, func(i int) (err error) {
		if i > 0 {
			return readWhole(w.ctx, w.store(i), ids, last)
		}
		for n := int64(2); n <= last && err == nil; n++ {
			err = w.Commit(w.ctx, change(n))
		}
		return err
	})
}

// readWhole reads until it sees the last version.
func readWhole(ctx context.Context, store mirror.Store, ids []string, last int64) error {
	for {
		f, err := store.Feed(ctx, feedURL)
		if err != nil {
			return err
		}
		records, err := store.Records(ctx, feedURL, ids)
		if err != nil {
			return err
		}
		first := records[ids[0]].LastCommit
		for _, r := range records {
			if r.LastCommit != first {
				return fmt.Errorf("a part of a change: version %d together with %d", r.LastCommit, first)
			}
		}
		if len(records) != len(ids) || first < f.Commits {
			return fmt.Errorf("%d records of version %d, after the feed was at %d", len(records), first, f.Commits)
		}
		if first == last {
			return nil
		}
	}
}

// testRemovedMeanwhile removes a feed and adds it again while others read and
// search.
func testRemovedMeanwhile(t *testing.T, w *world) {
	const rounds, readers = 12, 3
	var done atomic.Bool
	var reading sync.WaitGroup
	reading.Add(readers)
	failures := make(chan error, readers)
	for range readers {
		go func() {
			err := w.readAll()
			for reading.Done(); err == nil && !done.Load(); {
				err = w.readAll()
			}
			failures <- err
		}()
	}
	reading.Wait()
	for n := range rounds {
		for i := range 3 {
			w.put(feedURL, live(fmt.Sprint("new", n), at(i)), live(fmt.Sprint(i), at(0)))
		}
		w.remove(feedURL)
	}
	done.Store(true)
	for range readers {
		require.NoError(t, <-failures)
	}
	require.Empty(t, w.entries(mirror.Query{Search: "content"}))
}

// readAll reads everything about the feed.
func (w *world) readAll() error {
	for _, err := range w.other.Feeds(w.ctx, mirror.FeedQuery{}) {
		if err != nil {
			return err
		}
	}
	for _, q := range []mirror.Query{{Search: "content"}, {Feed: feedURL, States: mirror.Current | mirror.Former}} {
		for r, err := range w.other.Entries(w.ctx, q) {
			if q.Search != "" && errors.Is(err, errors.ErrUnsupported) {
				break // it does not search
			} else if err != nil {
				return err
			} else if r.Feed != feedURL {
				return fmt.Errorf("an entry of %q", r.Feed)
			}
		}
	}
	return nil
}
