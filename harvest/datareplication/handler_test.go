package datareplication

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/stretchr/testify/require"
)

// request sends one request to a handler.
func request(w *transport, method, name string) *http.Response {
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, httptest.NewRequest(method, base+name, nil))
	return rec.Result()
}

// TestPages checks the duties of a producer on what it serves, by GET and HEAD.
//
// Duties: datareplication#feed-1, datareplication#feed-2, datareplication#feed-3,
// datareplication#feed-5, datareplication#feed-6.
func TestPages(t *testing.T) {
	out := newMemory()
	w, p := serve(out), newProducer(out)
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		require.Equal(t, http.StatusNoContent, request(w, method, "").StatusCode) // feed-1
		require.Equal(t, http.StatusNotFound, request(w, method, "1").StatusCode)
		require.Equal(t, http.StatusNotFound, request(w, method, "snapshot").StatusCode)
	}
	require.NoError(t, p.Append(t.Context(), entities(0, 3)...))
	require.NoError(t, p.Append(t.Context(), entities(3, 3)...))
	require.NoError(t, p.Append(t.Context(), entities(6, 2)...))
	require.NoError(t, p.Append(t.Context(), entities(8, 1)...)) // a second later, on the same page
	for name, links := range map[string][]string{
		"":  {"<" + base + "3>; rel=self", "<" + base + "2>; rel=prev"},
		"3": {"<" + base + "3>; rel=self", "<" + base + "2>; rel=prev"},
		"2": {"<" + base + "2>; rel=self", "<" + base + "1>; rel=prev", "<" + base + "3>; rel=next"},
		"1": {"<" + base + "1>; rel=self", "<" + base + "2>; rel=next"},
	} {
		get, head := request(w, http.MethodGet, name), request(w, http.MethodHead, name)
		require.Equal(t, get.Header, head.Header)
		require.Equal(t, links, get.Header.Values("Link"), name)
		require.Regexp(t, `^multipart/mixed; boundary=[A-Z0-9]{20,70}$`, get.Header.Get("Content-Type"))
		body, err := io.ReadAll(get.Body)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(len(body)), get.Header.Get("Content-Length"))
		stamps := strings.Count(string(body), "Last-Modified: ")
		require.Equal(t, stamps, strings.Count(string(body), "\r\nContent-ID: e"))
		last := body[strings.LastIndex(string(body), "Last-Modified: "):]
		require.True(t, strings.HasPrefix(string(last), "Last-Modified: "+get.Header.Get("Last-Modified")+"\r\n"))
		none, err := io.ReadAll(head.Body)
		require.NoError(t, err)
		require.Empty(t, none)
	}
	require.Contains(t, bodyOf(t, w, "1"), "\r\nContent-Type: text/plain\r\nLast-Modified: Sun, 01 Mar 2026 12:00:01 GMT\r\n"+
		"Content-Length: 6\r\nContent-ID: e0\r\nOperation-Type: http-equiv=PUT\r\n\r\nbody 0\r\n--")
	end, err := p.Last()
	require.NoError(t, err)
	require.NoError(t, p.CleanUp(t.Context(), end.Time))
	require.Equal(t, http.StatusGone, request(w, http.MethodGet, "1").StatusCode)
	require.Equal(t, []string{"<" + base + "2>; rel=self", "<" + base + "3>; rel=next"}, request(w, http.MethodHead, "2").Header.Values("Link"))
	for _, name := range []string{"0", "-1", "03", "4", "x", "snapshots/x/1", "feed.json", "pages/2.json"} {
		require.Contains(t, []int{http.StatusNotFound, http.StatusGone}, request(w, http.MethodGet, name).StatusCode, name)
	}
	require.Equal(t, http.StatusMethodNotAllowed, request(w, http.MethodPost, "").StatusCode)
}

func bodyOf(t *testing.T, w *transport, name string) string {
	body, err := io.ReadAll(request(w, http.MethodGet, name).Body)
	require.NoError(t, err)
	return string(body)
}

// TestAppendRefuses checks that no entity of a call is published if one of them
// cannot be.
func TestAppendRefuses(t *testing.T) {
	out := newMemory()
	p := newProducer(out)
	for _, test := range []struct {
		bad Entity
		why error
	}{
		{Entity{ContentID: "a\r\nX: y"}, ErrField}, {Entity{ContentID: " a"}, ErrField}, {Entity{Type: "text/plain\n"}, ErrField},
		{Entity{Operation: "POST"}, ErrOperation}, {Entity{ContentID: "e0"}, ErrRepeatedID},
		{Entity{Header: map[string][]string{"X Y": {"z"}}}, ErrField}, {Entity{Header: map[string][]string{"X": {"\x00"}}}, ErrField},
	} {
		refused := feedtest.ErrorAs[*harvest.Error](t, p.Append(t.Context(), append(entities(0, 2), test.bad)...), "%+v", test.bad)
		require.Equal(t, harvest.ErrEntity, refused.Code)
		require.ErrorContains(t, refused, "entity 2, ")
		require.ErrorIs(t, refused, test.why)
	}
	require.Empty(t, out.Names())
	require.Error(t, new(Producer).Append(t.Context(), entities(0, 1)...))
}

// TestRepeat checks that repeating a call does nothing.
func TestRepeat(t *testing.T) {
	out := newMemory()
	p := newProducer(out)
	for range 2 {
		require.NoError(t, p.Append(t.Context(), entities(0, 3)...))
	}
	got, mark := harvestAll(t, serve(out), Mark{})
	require.Equal(t, ids(0, 3), got)
	end, err := p.Last()
	require.NoError(t, err)
	mark.Page = ""
	require.Equal(t, mark, end)
}

// TestBoundary checks that an entity that contains the page's boundary begins
// another page.
func TestBoundary(t *testing.T) {
	out := newMemory()
	p := &Producer{Output: out}
	require.NoError(t, p.Append(t.Context(), entities(0, 1)...))
	for i := range 3 {
		s, err := loadState(out)
		require.NoError(t, err)
		body := "\r\n--" + s.Newest.Boundary + "--\r\n"
		require.NoError(t, p.Append(t.Context(), Entity{ContentID: fmt.Sprint("evil", i), Body: []byte(body)}))
	}
	got, _ := harvestAll(t, serve(out), Mark{})
	require.Equal(t, []string{"e0", "evil0", "evil1", "evil2"}, got)
}

// TestHeaders checks that additional header fields come with an entity, except
// those that the producer sets itself.
//
// Duties: datareplication#feed-4.
func TestHeaders(t *testing.T) {
	out := newMemory()
	p := newProducer(out)
	require.NoError(t, p.Append(t.Context(), Entity{Operation: Delete, Header: map[string][]string{
		"X-Key": {"1", "2"}, "content-id": {"no"}, "Operation-Type": {"no"}, "Content-Transfer-Encoding": {"base64"},
	}, Body: []byte("AA==")}))
	for _, e := range feedtest.All(t, serve(out).client().Harvest(t.Context(), Mark{}).Entities()) {
		require.Equal(t, []string{"1", "2"}, e.Header["X-Key"])
		require.Equal(t, []string{"http-equiv=DELETE"}, e.Header["Operation-Type"])
		require.Len(t, e.Header["Content-Id"], 1)
		require.Equal(t, Delete, e.Operation)
		require.NotEqual(t, "no", e.ContentID)
		require.NotEmpty(t, e.ContentID)
		require.Equal(t, "application/octet-stream", e.Type)
		require.Equal(t, "AA==", string(e.Body)) // feed-4: no transfer decoding
		require.Equal(t, base+"1", e.Page)
	}
}

// TestSnapshots checks that a snapshot has all resources, that a failed one
// does not exist, and that the one before stays for those who read it.
//
// Duties: datareplication#snapshot-1.
func TestSnapshots(t *testing.T) {
	out := newMemory()
	p, w := newProducer(out), serve(out)
	resources := func(n int, err error) func(func(Entity, error) bool) {
		return func(yield func(Entity, error) bool) {
			for i, e := range entities(0, n) {
				e.Modified = noon.AddDate(-1, 0, i)
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				yield(Entity{}, err)
			}
		}
	}
	require.NoError(t, p.Snapshot(t.Context(), resources(9, nil)))
	old := bodyOf(t, w, "snapshot")
	require.ErrorIs(t, p.Snapshot(t.Context(), resources(5, feedtest.ErrDisk)), feedtest.ErrDisk)
	require.Equal(t, old, bodyOf(t, w, "snapshot"))
	require.ErrorIs(t, p.Snapshot(t.Context(), func(func(Entity, error) bool) {
		require.NoError(t, p.Snapshot(t.Context(), resources(2, nil)))
	}), ErrSuperseded)
	require.NotEqual(t, old, bodyOf(t, w, "snapshot"))
	w.handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/feed/snapshot" {
			_, _ = io.WriteString(rw, old)
			return
		}
		serve(out).handler.ServeHTTP(rw, r)
	})
	// A feed that begins after its snapshot does not look as if it had lost
	// anything.
	require.NoError(t, p.Append(t.Context(), entities(20, 2)...))
	c := w.client()
	c.Snapshot = base + "snapshot"
	h := c.Harvest(t.Context(), Mark{})
	modified := map[int]bool{}
	n := 0
	for e, err := range h.Entities() {
		require.NoError(t, err)
		require.Equal(t, Put, e.Operation)
		if n++; n <= 9 {
			modified[e.Modified.YearDay()] = true
			require.Empty(t, e.ContentID)
			require.True(t, markOf(h).IsZero())
		}
	}
	require.Equal(t, 11, n)
	require.Len(t, modified, 9)
}

// A busy file system calls a function before a file is opened.
type busy struct {
	*memory
	before func(name string)
}

func (b busy) Open(name string) (fs.File, error) {
	b.before(name)
	return b.memory.Open(name)
}

// TestMerged checks that files of the newest page may be merged right before
// they are opened.
func TestMerged(t *testing.T) {
	out := newMemory()
	p := &Producer{Output: out}
	require.NoError(t, p.Append(t.Context(), entities(0, 1)...))
	n := 1
	w := serve(busy{out, func(name string) {
		if n < 4 && strings.HasPrefix(name, pagesDir) {
			n++
			require.NoError(t, p.Append(t.Context(), entities(n-1, 1)...))
		}
	}})
	require.Equal(t, 2, strings.Count(bodyOf(t, w, "1"), "Content-ID")) // the third came too late
	require.Equal(t, n, strings.Count(bodyOf(t, serve(out), "1"), "Content-ID"))
}

// TestConcurrent runs readers over HTTP, writers and clean-ups of a directory
// at the same time. A reader that keeps up gets everything once.
//
// Duties: datareplication#feed-6.
func TestConcurrent(t *testing.T) {
	dir := publish.Dir{Path: t.TempDir()}
	h := &Handler{FS: dir}
	server := feedtest.Server(t, h)
	h.Base = server.URL
	const writers, each = 3, 40
	var wg sync.WaitGroup
	p := &Producer{Output: dir, PageSize: 2000}
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				e := Entity{ContentID: fmt.Sprintf("%d-%d", w, i), Body: []byte(strings.Repeat("x", 100))}
				for {
					err := p.Append(t.Context(), e)
					if err == nil {
						break
					}
					if !errors.Is(err, publish.ErrLocked) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	written, done := context.WithCancel(t.Context())
	go func() { wg.Wait(); done() }()
	c := Harvester{URL: server.URL, HTTP: &feedhistory.Client{AllowPrivate: true}}
	var mark Mark
	seen := map[string]int{}
	for last := false; ; {
		harvest := c.Harvest(t.Context(), mark)
		for e, err := range harvest.Entities() {
			require.NoError(t, err)
			seen[e.ContentID]++
		}
		mark, _ = harvest.Mark()
		require.NoError(t, p.CleanUp(t.Context(), mark.Time))
		if last {
			break
		}
		last = written.Err() != nil
	}
	require.Len(t, seen, writers*each)
	for id, n := range seen {
		require.Equal(t, 1, n, id)
	}
}

// The header fields of the protocol's own table, to the letter: a boundary in typographic quotes,
// and a link without angle brackets.
//
// Duties: datareplication#feed-2, datareplication#consumer-6.
func TestSeedHeaders(t *testing.T) {
	asked := 0
	page := func(r *http.Request) (*http.Response, error) {
		asked++
		require.Equal(t, "https://example.com/feed/hash", r.URL.String())
		header := http.Header{}
		for line := range strings.Lines(string(feedtest.ReadFile(t, "testdata/seed-headers.txt"))) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			header.Add(name, value)
		}
		body := "--rdm-bny\r\nContent-Type: text/plain\r\nLast-Modified: Mon, 27 Nov 2023 03:10:00 GMT\r\nContent-ID: 1\r\nOperation-Type: http-equiv=PUT\r\n\r\nx\r\n--rdm-bny--\r\n"
		return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
	h := Harvester{URL: "https://example.com/feed/hash", HTTP: &feedhistory.Client{Transport: roundTripper(page), AllowPrivate: true, Tries: 1}}
	got, err := collect(h.Harvest(t.Context(), Mark{}))
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, 2, asked)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
