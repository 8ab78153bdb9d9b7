package publish

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A memory is a MemoryOutput that can fail, and that records its calls in order: "put
// NAME" or "remove NAME".
type memory struct {
	MemoryOutput
	feedtest.Faults
	names   map[string]string // what was ever stored under an archive's name
	written int64             // bytes
}

func newMemory() *memory {
	return &memory{MemoryOutput: MemoryOutput{files: map[string][]byte{}, times: map[string]time.Time{}}, names: map[string]string{}}
}

// Put implements Output.
func (m *memory) Put(ctx context.Context, name string, data []byte) error {
	return m.Change("put "+name, func() error {
		m.remember(name, string(data))
		m.written += int64(len(data))
		return m.MemoryOutput.Put(ctx, name, data)
	})
}

// Remove implements Output.
func (m *memory) Remove(ctx context.Context, name string) error {
	return m.Change("remove "+name, func() error { return m.MemoryOutput.Remove(ctx, name) })
}

// remember panics if the name of an archive is used for different content,
// except that next-archive may change (5005#9, 5005#10).
func (m *memory) remember(name, text string) {
	if !archiveName.MatchString(name) {
		return
	}
	format := feedhistory.Atom
	if strings.HasSuffix(name, ".rss") {
		format = feedhistory.RSS
	}
	text, err := setNext(text, "", format)
	if err != nil {
		panic(err)
	}
	if before, ok := m.names[name]; ok && before != text {
		panic(name + " has different content")
	}
	m.names[name] = text
}

// clone returns what a crash leaves: the files.
func (m *memory) clone() *memory {
	left := newMemory()
	left.names = m.names
	m.mu.RLock()
	defer m.mu.RUnlock()
	maps.Copy(left.files, m.files)
	return left
}

const base = "https://example.org/blog/"

// A site serves an output under base, without sockets.
type site struct{ fs.FS }

// RoundTrip implements http.RoundTripper.
func (s site) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Request: r, Body: http.NoBody}
	name, ok := strings.CutPrefix(r.URL.String(), base)
	if !ok {
		return resp, nil
	}
	data, err := fs.ReadFile(s.FS, name)
	if err == nil {
		resp.StatusCode, resp.Body, resp.ContentLength = http.StatusOK, io.NopCloser(bytes.NewReader(data)), int64(len(data))
	}
	return resp, nil
}

// fetch walks the feed in an output, as any reader would.
func fetch(t require.TestingT, out fs.FS, url string) *feedhistory.History {
	c := &feedhistory.Client{Transport: site{out}}
	h, err := c.Fetch(context.Background(), url)
	require.NoError(t, err)
	require.Empty(t, h.Gaps)
	require.Equal(t, feedhistory.Whole, h.Verdict(), "kind %v", h.Kind)
	return h
}

var day = time.Date(2003, 12, 13, 18, 30, 2, 0, time.UTC)

// entry returns an entry. Its text says which version it is.
func entry(t require.TestingT, id string, updated time.Time, text string) *feedhistory.Entry {
	e, err := feedhistory.Draft{
		ID: id, Updated: updated, Title: feedhistory.Text{Body: text},
		Links:   feedhistory.Links{{Rel: "alternate", Href: "https://example.org/" + id}},
		Content: feedhistory.Text{Type: feedhistory.TextHTML, Body: `<p>` + text + `, <a href="more">more</a></p>`},
	}.Entry()
	require.NoError(t, err)
	return e
}

// entries returns n entries, an hour apart.
func entries(t require.TestingT, from, n int) (all []*feedhistory.Entry) {
	for i := from; i < from+n; i++ {
		all = append(all, entry(t, fmt.Sprintf("e%d", i), day.Add(time.Duration(i)*time.Hour), fmt.Sprintf("text %d", i)))
	}
	return all
}

func newPublisher(out Output) *Publisher {
	return &Publisher{
		Output: out, Base: base, Recent: -1, Split: feedhistory.Split{Size: 3},
		Head: &feedhistory.Document{Title: "A blog", ID: "urn:blog"},
	}
}

// facts returns the content of a history: an entry's time and title by its id.
func facts(h *feedhistory.History) map[string]string {
	all := map[string]string{}
	for _, e := range h.Entries {
		all[e.ID] = e.Updated.UTC().Format(time.RFC3339Nano) + " " + e.Title().Body
	}
	for _, d := range h.Deleted {
		all[d.Ref] = d.When.UTC().Format(time.RFC3339Nano) + " deleted"
	}
	return all
}

// archives returns an output's archives, newest first.
func archives(t testing.TB, p *Publisher) (all []*archive) {
	s, err := at(p).load()
	require.NoError(t, err)
	for name := s.prev; name != ""; {
		a, err := at(p).archive(name)
		require.NoError(t, err)
		all = append(all, a)
		name = a.prev
	}
	return all
}
