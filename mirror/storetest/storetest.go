// Package storetest tests implementations of mirror.Store against the interface's
// documentation.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// Run tests the stores open returns: two over the same data, which is empty at first.
// They may be the same store, if there is no way to open two.
//
// Most tests make the same changes in the stores and in a mirror.NewMemory, and require the
// same answers of all three. A store that does not search says so by errors.ErrUnsupported;
// it is then not asked.
func Run(t *testing.T, open func(t testing.TB) (store, other mirror.Store)) {
	for _, test := range append(rules, calls...) {
		t.Run(test.name, func(t *testing.T) {
			store, other := open(t)
			test.run(t, &world{tester: t, Store: store, other: other, memory: mirror.NewMemory(), ctx: t.Context()})
		})
	}
}

// A test is one of the suite.
type test struct {
	name string
	run  func(t *testing.T, w *world)
}

// A world is the environment of a test: its store, another one over the same data, and a
// Memory that gives the right answers.
type world struct {
	tester
	mirror.Store
	other  mirror.Store
	memory mirror.Store
	ctx    context.Context
	writes int

	answered func(question string, answer any, err error) // if not nil, is told each answer of the Memory
}

// A tester is a *testing.T, or a *rapid.T.
type tester interface {
	require.TestingT
	Helper()
}

const feedURL = "https://example.org/feed"

// epoch is the time at which the tests begin.
var epoch = time.Date(2024, 2, 28, 23, 59, 59, 123456789, time.UTC)

// at returns a time some hours after the epoch.
func at(hours int) time.Time { return epoch.Add(time.Duration(hours) * time.Hour) }

// both makes the same change in the Memory and, by turns, in one of the stores, and
// requires the same outcome.
func (w *world) both(what string, change func(mirror.Store) error) {
	w.Helper()
	w.writes++
	want, got := change(w.memory), change(w.store(w.writes))
	w.requireOutcome(what, want, got)
	w.note(what, nil, want)
}

// store returns one store for even numbers, and the other one for odd ones.
func (w *world) store(i int) mirror.Store { return []mirror.Store{w.Store, w.other}[i%2] }

func (w *world) requireOutcome(what string, want, got error) {
	w.Helper()
	for _, known := range []error{nil, mirror.ErrConflict, mirror.ErrNotFound, errors.ErrUnsupported, context.Canceled} {
		require.Equal(w, errors.Is(want, known), errors.Is(got, known), "%s: %v, not %v", what, got, want)
	}
}

func (w *world) note(question string, answer any, err error) {
	if w.answered != nil {
		w.answered(question, answer, err)
	}
}

// commit commits a change of a feed from its stored version; it adds the feed if there is
// none. The state of the feed is that of the change or, if it has none, stays.
func (w *world) commit(url string, c mirror.Commit) {
	w.Helper()
	state := c.Feed
	w.both("commit", func(s mirror.Store) error {
		f, err := s.Feed(w.ctx, url)
		if errors.Is(err, mirror.ErrNotFound) {
			f, err = &mirror.Feed{URL: url}, nil
		}
		require.NoError(w, err)
		if c.Feed = f; state != nil {
			twin := *state
			twin.Commits = f.Commits
			c.Feed = &twin
		}
		if err := s.Commit(w.ctx, &c); err != nil {
			return err
		}
		f, err = s.Feed(w.ctx, url)
		require.NoError(w, err)
		require.Equal(w, f.Commits, c.Feed.Commits, "the change has the feed's new version")
		return nil
	})
}

// put stores records with their contents.
func (w *world) put(url string, records ...*mirror.Record) {
	w.Helper()
	w.commit(url, mirror.Commit{Put: records, Keep: 9})
}

func (w *world) remove(url string) {
	w.Helper()
	w.both("remove", func(s mirror.Store) error { return s.Remove(w.ctx, url) })
}

// ask requires both stores to give the Memory's answer, and returns it.
func ask[T any](w *world, question string, call func(mirror.Store) (T, error)) T {
	w.Helper()
	want, wanted := call(w.memory)
	for _, store := range []mirror.Store{w.Store, w.other} {
		got, err := call(store)
		w.requireOutcome(question, wanted, err)
		same(w, want, got, question)
	}
	w.note(question, want, wanted)
	return want
}

// askAll is ask for a sequence, whose error comes once, in the end, and without a value.
func askAll[T any](w *world, question string, call func(mirror.Store) iter.Seq2[*T, error]) []*T {
	w.Helper()
	return ask(w, question, func(s mirror.Store) (all []*T, failure error) {
		for v, err := range call(s) {
			require.NoError(w, failure, "a sequence goes on after its error: %s", question)
			if failure = err; err != nil {
				require.Nil(w, v, question)
				continue
			}
			all = append(all, v)
		}
		return all, failure
	})
}

func (w *world) feed(url string) *mirror.Feed {
	w.Helper()
	return ask(w, "feed "+url, func(s mirror.Store) (*mirror.Feed, error) { return s.Feed(w.ctx, url) })
}

func (w *world) feeds(q mirror.FeedQuery) []*mirror.Feed {
	w.Helper()
	return askAll(w, "feeds"+brief(q), func(s mirror.Store) iter.Seq2[*mirror.Feed, error] { return s.Feeds(w.ctx, q) })
}

func (w *world) records(url string, ids ...string) map[string]*mirror.Record {
	w.Helper()
	return ask(w, "records of "+url, func(s mirror.Store) (map[string]*mirror.Record, error) { return s.Records(w.ctx, url, ids) })
}

func (w *world) entries(queries ...mirror.Query) (all []*mirror.Record) {
	w.Helper()
	for _, q := range queries {
		if q.Search != "" && !w.searches() {
			continue
		}
		all = askAll(w, "entries"+brief(q), func(s mirror.Store) iter.Seq2[*mirror.Record, error] { return s.Entries(w.ctx, q) })
	}
	return all
}

// searches reports whether the store searches.
func (w *world) searches() bool {
	for _, err := range w.Store.Entries(w.ctx, mirror.Query{Search: "a"}) {
		return !errors.Is(err, errors.ErrUnsupported)
	}
	return true
}

func (w *world) versions(url, id string) []*mirror.Record {
	w.Helper()
	return askAll(w, "versions of "+id, func(s mirror.Store) iter.Seq2[*mirror.Record, error] { return s.Versions(w.ctx, url, id) })
}

func (w *world) document(url, name string) *mirror.DocumentRecord {
	w.Helper()
	return ask(w, "document "+name, func(s mirror.Store) (*mirror.DocumentRecord, error) { return s.Document(w.ctx, url, name) })
}

func (w *world) documents(url string) []*mirror.DocumentRecord {
	w.Helper()
	return askAll(w, "documents of "+url, func(s mirror.Store) iter.Seq2[*mirror.DocumentRecord, error] { return s.Documents(w.ctx, url) })
}

// look asks for everything there is, and for everything of a feed, which there may be.
// More are names of entries and documents that may be missing.
func (w *world) look(url string, more ...string) {
	w.Helper()
	w.entries(mirror.Query{}, mirror.Query{States: mirror.Current | mirror.Former})
	w.lookAt(url, more...)
	for _, f := range w.feeds(mirror.FeedQuery{}) {
		if f.URL != url {
			w.lookAt(f.URL)
		}
	}
}

func (w *world) lookAt(url string, more ...string) {
	w.Helper()
	w.feed(url)
	all, names := int64(-1), append([]string{"", "unknown"}, more...)
	w.entries(mirror.Query{Feed: url}, mirror.Query{Feed: url, States: mirror.Current | mirror.Former})
	for _, r := range w.entries(mirror.Query{Feed: url, States: mirror.AllStates, AfterCommit: &all}) {
		names = append(names, r.ID)
	}
	w.records(url, names...)
	for _, id := range names {
		w.versions(url, id)
	}
	for _, d := range w.documents(url) {
		more = append(more, d.Names...)
	}
	for _, name := range append(more, "") {
		w.document(url, name)
	}
}

// brief returns the fields of a query that are set.
func brief(query any) string {
	var b strings.Builder
	for field, v := range reflect.ValueOf(query).Fields() {
		if r, ok := v.Interface().(*mirror.Record); ok && r != nil {
			fmt.Fprintf(&b, " Beyond={%v %s %d %s}", r.Time(), r.Feed, r.LastCommit, r.ID)
		} else if !v.IsZero() {
			fmt.Fprintf(&b, " %s=%v", field.Name, reflect.Indirect(v))
		}
	}
	return b.String()
}

// live returns a record of an entry.
func live(id string, updated time.Time) *mirror.Record {
	return &mirror.Record{
		ID: id, State: mirror.Live, FirstCommit: 1, LastCommit: 1, Added: at(0), Changed: at(0),
		Copy:    mirror.Copy{At: updated, Rank: mirror.Rank{Time: updated, Seq: 1}, Digest: "digest of " + id, Source: "source of " + id},
		Content: content("Title", "Content", updated),
	}
}

// content returns the content of an Atom entry. Title and text are markup.
func content(title, text string, updated time.Time) mirror.Content {
	return mirror.Content{
		Format: feedhistory.FormatAtom,
		Data: `<entry xmlns="http://www.w3.org/2005/Atom"><title>` + title + `</title>` +
			`<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">` + text + `</div></content></entry>`,
		Title: title, Updated: updated,
	}
}

// same requires two values to be equal, where times are compared as instants, JSON as
// values, and an empty list equals nil.
func same[T any](t tester, want, got T, about ...any) {
	t.Helper()
	require.Equal(t, normal(want), normal(got), about...)
}

func normal[T any](v T) T {
	twin := reflect.New(reflect.TypeFor[T]()).Elem()
	copyNormal(twin, reflect.ValueOf(&v).Elem())
	return twin.Interface().(T)
}

func copyNormal(to, from reflect.Value) {
	switch v := from.Interface().(type) {
	case time.Time:
		to.Set(reflect.ValueOf(v.Round(0).UTC()))
		return
	case json.RawMessage:
		var value any
		if json.Unmarshal(v, &value) == nil {
			again, _ := json.Marshal(value)
			to.Set(reflect.ValueOf(json.RawMessage(again)))
		}
		return
	case mirror.Ledger:
		text, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(text, to.Addr().Interface())
		}
		if err != nil {
			panic(err)
		}
		return
	}
	switch from.Kind() {
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(from.Type().Elem()))
			copyNormal(to.Elem(), from.Elem())
		}
	case reflect.Struct:
		for i := range from.NumField() {
			copyNormal(to.Field(i), from.Field(i))
		}
	case reflect.Map:
		if from.Len() > 0 {
			to.Set(reflect.MakeMap(from.Type()))
		}
		for key, value := range from.Seq2() {
			element := reflect.New(value.Type()).Elem()
			copyNormal(element, value)
			to.SetMapIndex(key, element)
		}
	case reflect.Slice:
		for i := range from.Len() {
			element := reflect.New(from.Type().Elem()).Elem()
			copyNormal(element, from.Index(i))
			to.Set(reflect.Append(to, element))
		}
	default:
		to.Set(from)
	}
}

// ledger is a Ledger with much in it.
const ledger = `{"kind":"archived","known":{"URL":"https://example.org/é<&>","ETag":"\"\u0000\u2028\"","Kind":"archived","Older":"/1"},
	"further":["/2"],"census":1,"unsettled":true,"checked":"2024-01-01T01:00:00.000000001+01:00","shown":["a","b\u0001"],"versions":"AAAAAQAAAAI=","back":[1],
	"debts":[{"kind":"document","url":"/1","reason":"status","message":"404","found":"2024-01-01T00:00:00-05:00","rank":{"time":"2023-01-01T00:00:00Z","place":-7},
		"names":["/3"],"tries":2,"wait":"2024-02-01T00:00:00Z"},
		{"kind":"window","url":"/","reason":"missed-window","message":"<&>","found":"2024-01-01T00:00:00Z","before":["a"],"after":["b"]}],
	"stranger":{"digest":"d","polls":2,"since":"2024-01-01T00:00:00Z"},"past":{"title":"T","ledger":{"kind":"paged","known":{"URL":"/p"}}}}`

// fill sets every field of a value to something nonzero and different from field to
// field.
func fill(v any) {
	n := 0
	fillValue(reflect.ValueOf(v).Elem(), &n)
}

func fillValue(v reflect.Value, n *int) {
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(at(*n).In(time.FixedZone("", 3600*(*n%5)))))
		return
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage(`{"a":["<&>\u0000\u2028",1]}`)))
		return
	case mirror.Ledger:
		if err := json.Unmarshal([]byte(ledger), v.Addr().Interface()); err != nil {
			panic(err)
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fillValue(field, n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fillValue(v.Index(i), n)
		}
	case reflect.String:
		v.SetString("é <&> '\"\\\x00\x01\x02\u2028\U0001F600" + time.Duration(*n).String() + " ")
	case reflect.Uint8: // the enumerations
		v.SetUint(uint64(1 + *n%3))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n)<<40 + int64(*n))
	default:
		v.SetUint(uint64(*n))
	}
}
