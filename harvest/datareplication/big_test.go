package datareplication

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

var pageBytes = flag.Int64("page-bytes", 64<<20, "size of the page of TestBigPage")

// TestBigPage checks that memory does not grow with the size of a page.
func TestBigPage(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 4<<10)
	n := int(*pageBytes / int64(len(body)))
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "multipart/mixed; boundary=b")
		w.Header().Set("Last-Modified", noon.Format(http.TimeFormat))
		w.Header().Set("Link", "<http://"+r.Host+"/>; rel=self")
		if r.Method == http.MethodHead {
			return
		}
		for i := range n {
			e := Entity{ContentID: fmt.Sprint(i), Operation: Put, Modified: noon, Body: body}
			_, _ = w.Write(appendEntity(nil, "b", &e))
		}
		_, _ = io.WriteString(w, "--b--\r\n")
	}))
	c := Harvester{URL: server.URL, HTTP: &feedhistory.Client{Policy: feedhistory.Policy{AllowPrivate: true}}}
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, most, got := live(), uint64(0), 0
	for e, err := range c.Harvest(t.Context(), Mark{}).Entities() {
		require.NoError(t, err)
		require.Len(t, e.Body, len(body))
		if got++; got%(n/8) == 0 {
			most = max(most, live())
		}
	}
	require.Equal(t, n, got)
	require.Less(t, most, before+8<<20)
	t.Logf("%d MB in %d entities: %d KB more of live heap at most", *pageBytes>>20, n, (int64(most)-int64(before))>>10)
}

// TestLimits checks that what is too large is an error, and that what came
// before is not lost.
func TestLimits(t *testing.T) {
	out := newMemory()
	p := newProducer(out)
	require.NoError(t, p.Append(t.Context(), entities(0, 20)...))
	require.NoError(t, p.Append(t.Context(), Entity{Body: make([]byte, 1000)}))
	for limit, test := range map[string]struct {
		limits Budget
		brings int
	}{"requests": {Budget{Requests: 11}, 9}, "entity": {Budget{Entity: 999}, 20}} {
		c := serve(out).client()
		c.Budget = test.limits
		got, err := collect(c.Harvest(t.Context(), Mark{}))
		exceeded := feedtest.ErrorAs[*BudgetError](t, err)
		require.Equal(t, limit, exceeded.Limit)
		require.Len(t, got, test.brings)
	}
	c := serve(out).client()
	c.Budget = Budget{Page: 700}
	_, err := collect(c.Harvest(t.Context(), Mark{}))
	feedtest.ErrorAs[*feedhistory.LimitError](t, err)
}

// TestSameOrigin checks that the policy applies to links and to the pages of a
// snapshot.
func TestSameOrigin(t *testing.T) {
	out := newMemory()
	p := newProducer(out)
	require.NoError(t, p.Append(t.Context(), entities(0, 9)...))
	require.NoError(t, p.Snapshot(t.Context(), func(yield func(Entity, error) bool) { yield(entities(0, 1)[0], nil) }))
	w := serve(out)
	other := &Handler{FS: out, Base: "http://example.com/feed/"}
	w.handler = http.StripPrefix("/feed/", other)
	for _, snapshot := range []string{"", base + "snapshot"} {
		c := w.client()
		c.Snapshot = snapshot
		got, err := collect(c.Harvest(t.Context(), Mark{}))
		require.NoError(t, err)
		require.NotEmpty(t, got)
		c.HTTP.Policy.SameOrigin = true
		got, err = collect(c.Harvest(t.Context(), Mark{}))
		refused := feedtest.ErrorAs[*feedhistory.RefusedError](t, err)
		require.Contains(t, refused.URL, "example.com")
		require.Empty(t, got)
	}
}
