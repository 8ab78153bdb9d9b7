package datareplication

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// keyOf returns the key in a body "key=value".
func keyOf(e *Entity) (string, error) {
	key, _, ok := bytes.Cut(e.Body, []byte("="))
	if !ok {
		return "", errors.New("no key")
	}
	return "urn:" + string(key), nil
}

func operation(op Operation, id, body string) Entity {
	return Entity{ContentID: id, Operation: op, Type: "text/plain", Body: []byte(body)}
}

// keep mirrors what has come since the last time.
func keep(t *testing.T, store mirror.Store, c *Harvester, of Resources) *mirror.Report {
	changes, err := c.Keep(t.Context(), &mirror.Mirror{Store: store}, of)
	require.NoError(t, err)
	return changes
}

func mirrored(t *testing.T, store mirror.Store) map[string]string {
	all := map[string]string{}
	for r, err := range store.Entries(t.Context(), mirror.Query{Feed: base}) {
		require.NoError(t, err)
		e, err := r.Entry()
		require.NoError(t, err)
		all[r.ID] = e.Content().Body
	}
	return all
}

// TestMirror checks that puts and deletions reach a store, those of the same
// second in their order, over several harvests, some of which are cut short.
//
// Duties: datareplication#feed-7, datareplication#consumer-5.
func TestMirror(t *testing.T) {
	for _, size := range []int{1, 2, 100} {
		out, store := newMemory(), mirror.NewMemory()
		p := newProducer(out)
		p.Now = noon.UTC // the clock stands still
		w := serve(out)
		merge := func() {
			keep(t, store, w.client(), Resources{Key: keyOf, Size: size})
		}
		require.NoError(t, p.Append(t.Context(), operation(Put, "1", "a=1"), operation(Put, "2", "b=1"), operation(Delete, "3", "a="), operation(Put, "4", "a=2")))
		merge()
		require.Equal(t, map[string]string{"urn:a": "a=2", "urn:b": "b=1"}, mirrored(t, store))
		require.NoError(t, p.Append(t.Context(), operation(Put, "5", "a=3"), operation(Delete, "6", "b="), operation(Put, "7", "c=1")))
		w.tear = func(r *http.Request, body io.Reader) io.Reader { return io.LimitReader(body, 900) }
		merge()
		feed, err := store.Feed(t.Context(), base)
		require.NoError(t, err)
		require.NotEmpty(t, feed.Mark)
		w.tear = nil
		merge()
		require.Equal(t, map[string]string{"urn:a": "a=3", "urn:c": "c=1"}, mirrored(t, store))
		merge()
		require.Equal(t, map[string]string{"urn:a": "a=3", "urn:c": "c=1"}, mirrored(t, store))
		feed, err = store.Feed(t.Context(), base)
		require.NoError(t, err)
		require.Equal(t, "datareplication", feed.Source)
		require.JSONEq(t, `{"time": "2026-03-01T12:00:00Z", "content_id": "7", "page": "http://example.org/feed/3", "order": 7}`, string(feed.Mark))
		require.Empty(t, feed.Ledger.Gaps())
	}
}

// TestMirrorSnapshot checks that a change in the second of a snapshot is newer.
//
// Duties: datareplication#snapshot-2.
func TestMirrorSnapshot(t *testing.T) {
	out, store := newMemory(), mirror.NewMemory()
	p := newProducer(out)
	p.Now = noon.UTC
	require.NoError(t, p.Append(t.Context(), operation(Put, "1", "a=1")))
	require.NoError(t, p.Snapshot(t.Context(), func(yield func(Entity, error) bool) {
		for i := range 9 { // all but the last in one second
			if !yield(Entity{Type: "text/plain", Body: fmt.Appendf(nil, "%c=1", 'i'-i), Modified: noon.AddDate(0, 0, -i/8)}, nil) {
				return
			}
		}
	}))
	require.NoError(t, p.Append(t.Context(), operation(Put, "2", "a=2"), operation(Delete, "3", "b="), operation(Put, "4", "i=2")))
	for range 2 {
		c := serve(out).client()
		c.Snapshot = base + "snapshot"
		changes := keep(t, store, c, Resources{Key: keyOf})
		require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict)
		all := mirrored(t, store)
		require.Len(t, all, 8)
		require.Equal(t, "a=2", all["urn:a"])
		require.Equal(t, "i=2", all["urn:i"])
		require.NotContains(t, all, "urn:b")
	}
}

// TestMirrorLog checks that each entity is an entry if there are no keys.
func TestMirrorLog(t *testing.T) {
	out, store := newMemory(), mirror.NewMemory()
	p := newProducer(out)
	require.NoError(t, p.Append(t.Context(), operation(Put, "1", "a"), operation(Delete, "2", ""), operation(Patch, "3", "b")))
	changes := keep(t, store, serve(out).client(), Resources{})
	require.NotEqual(t, feedhistory.VerdictWhole, changes.Feed.Verdict)
	require.Equal(t, map[string]string{"1": "a", "2": "", "3": "b"}, mirrored(t, store))
	for _, r := range feedtest.All(t, store.Entries(t.Context(), mirror.Query{Limit: 1})) {
		require.Contains(t, r.Content.Data, `<category term="PATCH"`)
	}
}

// TestPatch checks that a patch needs a function, and that the mirror does not
// go beyond the patch without one.
//
// Duties: datareplication#feed-7.
func TestPatch(t *testing.T) {
	out, store := newMemory(), mirror.NewMemory()
	p := newProducer(out)
	require.NoError(t, p.Append(t.Context(), operation(Put, "1", "a=1"), operation(Patch, "2", "a=+1")))
	changes := keep(t, store, serve(out).client(), Resources{Key: keyOf})
	require.Len(t, changes.Feed.Ledger.Gaps(), 1)
	require.ErrorContains(t, changes.Feed.Ledger.Gaps()[0], "a patch of")
	require.Equal(t, map[string]string{"urn:a": "a=1"}, mirrored(t, store))
	changes = keep(t, store, serve(out).client(), Resources{Key: keyOf, Patch: func(key string, e *Entity) (*Entity, error) {
		return &Entity{Type: "application/json", Body: []byte("2")}, nil
	}})
	require.Empty(t, changes.Feed.Ledger.Gaps())
	require.Equal(t, map[string]string{"urn:a": "2"}, mirrored(t, store))
}

func TestContentOf(t *testing.T) {
	for _, test := range []struct{ kind, body, wantKind, wantBody string }{
		{"text/plain; charset=utf-8", "é<&", "text/plain; charset=utf-8", "é<&"},
		{"text/plain", "\x00", "application/octet-stream", "\x00"},
		{"text/plain", "\xff", "application/octet-stream", "\xff"},
		{"text/xml", "<a/>", "application/octet-stream", "<a/>"},
		{"application/json", "{}", "application/json", "{}"},
		{"", "x", "application/octet-stream", "x"},
	} {
		got := contentOf(&Entity{Type: test.kind, Body: []byte(test.body)})
		require.Equal(t, feedhistory.Text{Type: test.wantKind, Body: test.wantBody}, got, fmt.Sprint(test))
		e, err := compose.Draft{ID: "x", Updated: noon, Content: got}.Entry()
		require.NoError(t, err)
		require.Equal(t, test.body, e.Content().Body)
	}
}
