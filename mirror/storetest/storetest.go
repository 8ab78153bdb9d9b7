// Package storetest tests implementations of mirror.Store against the interface's
// documentation.
package storetest

import (
	"context"
	"encoding/json"
	"iter"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// Run tests the stores open returns: two over the same data, which is empty at first.
// They may be the same store, if there is no way to open two.
func Run(t *testing.T, open func(t testing.TB) (store, other mirror.Store)) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, w world)
	}{
		{"Feed", testFeed},
		{"FeedURLs", testFeedURLs},
		{"FeedsByURL", testFeedsByURL},
		{"FeedsDue", testFeedsDue},
		{"Conflict", testConflict},
		{"Version", testVersion},
		{"Remove", testRemove},
		{"RecordRoundTrip", testRecordRoundTrip},
		{"RecordIDs", testRecordIDs},
		{"RecordTimes", testRecordTimes},
		{"Put", testPut},
		{"Mark", testMark},
		{"Order", testOrder},
		{"OrderOfPlaces", testOrderOfPlaces},
		{"Interval", testInterval},
		{"Changes", testChanges},
		{"ChangesMoving", testChangesMoving},
		{"Deleted", testDeleted},
		{"Search", testSearch},
		{"Versions", testVersions},
		{"Keep", testKeep},
		{"Document", testDocument},
		{"Names", testNames},
		{"DocumentsByRank", testDocumentsByRank},
		{"Forget", testForget},
		{"NothingOfAnUnknownFeed", testUnknown},
		{"Ended", testEnded},
		{"EndedWhileRanging", testEndedWhileRanging},
		{"Again", testAgain},
		{"Nested", testNested},
		{"Aliases", testAliases},
		{"Fenced", testFenced},
		{"Whole", testWhole},
		{"RemovedMeanwhile", testRemovedMeanwhile},
		{"Marks", testMarks},
		{"MarksOrder", testMarksOrder},
		{"MarksAtOnce", testMarksAtOnce},
		{"Model", testModel},
	} {
		t.Run(test.name, func(t *testing.T) {
			store, other := open(t)
			test.run(t, world{T: t, Store: store, other: other, ctx: t.Context()})
		})
	}
}

// A world is the environment of a test: its store, and another one over the same data.
type world struct {
	*testing.T
	mirror.Store
	other mirror.Store
	ctx   context.Context
}

const feedURL = "https://example.org/feed"

// epoch is the time at which the tests begin.
var epoch = time.Date(2024, 2, 28, 23, 59, 59, 123456789, time.UTC)

// at returns a time some hours after the epoch.
func at(hours int) time.Time { return epoch.Add(time.Duration(hours) * time.Hour) }

// commit commits a change of the feed with the URL, from its stored version; it
// adds the feed if there is none.
func (w world) commit(url string, c mirror.Commit) *mirror.Feed {
	w.Helper()
	f, err := w.Feed(w.ctx, url)
	if err != nil {
		require.ErrorIs(w, err, mirror.ErrNotFound)
		f = &mirror.Feed{URL: url}
	}
	c.Feed = f
	require.NoError(w, w.Commit(w.ctx, &c))
	return f
}

// put stores records with their contents.
func (w world) put(url string, records ...*mirror.Record) *mirror.Feed {
	w.Helper()
	return w.commit(url, mirror.Commit{Put: records, Keep: 9})
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
		Format: feedhistory.Atom,
		Data: `<entry xmlns="http://www.w3.org/2005/Atom"><title>` + title + `</title>` +
			`<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">` + text + `</div></content></entry>`,
		Title: title, Updated: updated,
	}
}

// A tester is a *testing.T, or a *rapid.T.
type tester interface {
	require.TestingT
	Helper()
}

// failure returns the error at the end of a sequence.
func failure[T any](t tester, seq iter.Seq2[*T, error]) (failure error) {
	t.Helper()
	for v, err := range seq {
		require.NoError(t, failure, "a sequence goes on after its error")
		if failure = err; err != nil {
			require.Nil(t, v)
		}
	}
	require.Error(t, failure)
	return failure
}

func (w world) entries(q mirror.Query) []*mirror.Record {
	w.Helper()
	return feedtest.All(w, w.Entries(w.ctx, q))
}

func (w world) ids(q mirror.Query) (ids []string) {
	w.Helper()
	for _, r := range w.entries(q) {
		ids = append(ids, r.ID)
	}
	return ids
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
