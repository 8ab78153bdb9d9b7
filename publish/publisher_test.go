package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/check"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/togofeed"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAppend(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 8)...))
	h := fetch(t, out, p.URL())
	require.Len(t, h.Entries, 8)
	require.Equal(t, feedhistory.KindArchived, h.Kind)
	require.Equal(t, 3, h.Documents)
	require.Equal(t, "e8", h.Entries[0].ID)
	require.Equal(t, "A blog", h.Head.Title)
	link, err := togofeed.Item(h.Entries[0])
	require.NoError(t, err)
	require.Contains(t, link.Content, base+"more")
}

func TestReopen(t *testing.T) {
	out := newMemory()
	for _, e := range entries(t, 1, 20) {
		p := newPublisher(out)
		p.Head = nil
		if e.ID == "e1" {
			p.Head = &feedhistory.Document{Title: "A blog"}
		}
		require.NoError(t, p.Append(t.Context(), e))
	}
	h := fetch(t, out, base+"feed.atom")
	require.Len(t, h.Entries, 20)
	require.Equal(t, "A blog", h.Head.Title)
	require.Equal(t, base+"feed.atom", h.Head.ID)
}

func TestRefused(t *testing.T) {
	for _, format := range []feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS} {
		t.Run(string(format), func(t *testing.T) {
			out := newMemory()
			p := newPublisher(out)
			p.Format = format
			all := entries(t, 1, 10)
			require.NoError(t, p.Append(t.Context(), all...))
			before := out.clone()
			for _, id := range []string{"e10", "e1"} { // one in the subscription document, one archived
				at := all[0].Updated
				if id == "e10" {
					at = all[9].Updated
				}
				refused := func(err, why error, at, published time.Time) {
					t.Helper()
					require.ErrorIs(t, err, why)
					entry, ok := errors.AsType[*EntryError](err)
					require.True(t, ok)
					require.Equal(t, id, entry.ID)
					require.True(t, at.Equal(entry.Given))
					require.True(t, published.Equal(entry.Published), "%v", entry)
				}
				refused(p.Append(t.Context(), entry(t, id, at, "changed")), ErrSameTime, at, at)
				refused(p.Append(t.Context(), entry(t, id, at.Add(-time.Second), "changed")), ErrStale, at.Add(-time.Second), at)
				refused(p.Delete(t.Context(), id, at.Add(-time.Second)), ErrStale, at.Add(-time.Second), at)
				refused(p.Append(t.Context(), entries(t, 20, 2)[0], entry(t, id, at, "changed")), ErrSameTime, at, at)
				require.NoError(t, p.Append(t.Context(), entry(t, id, at, strings.Replace(id, "e", "text ", 1))), "the very same")
			}
			require.Equal(t, before.texts(), out.texts(), "all or nothing")
		})
	}
}

func TestAppendTwice(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	all := entries(t, 1, 10)
	require.NoError(t, p.Append(t.Context(), all...))
	out.Operations()
	require.NoError(t, p.Append(t.Context(), all...))
	require.Empty(t, out.Operations(), "nothing is written")
	require.NoError(t, newPublisher(out).Append(t.Context(), all...))
	require.Empty(t, out.Operations())
	all = append(all, entry(t, "e4", day.Add(100*time.Hour), "changed"))
	require.NoError(t, p.Append(t.Context(), all[3:]...))
	h := fetch(t, out, p.URL())
	require.Len(t, h.Entries, 10)
	require.Equal(t, "changed", h.Entries[0].Title().Body)
}

func TestDelete(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 10)...))
	require.NoError(t, p.Delete(t.Context(), "e1", day.Add(20*time.Hour)))
	require.NoError(t, p.Delete(t.Context(), "e10", day.Add(20*time.Hour)))
	require.NoError(t, p.Delete(t.Context(), "e10", day.Add(20*time.Hour)), "again")
	h := fetch(t, out, p.URL())
	require.Len(t, h.Entries, 8)
	require.Len(t, h.Deleted, 2)
	require.ErrorIs(t, p.Append(t.Context(), entry(t, "e10", day.Add(20*time.Hour), "too early")), ErrStale)
	require.NoError(t, p.Append(t.Context(), entry(t, "e1", day.Add(21*time.Hour), "again")))
	require.NoError(t, p.Append(t.Context(), entries(t, 22, 6)...))
	h = fetch(t, out, p.URL())
	require.Len(t, h.Entries, 15)
	require.Len(t, h.Deleted, 1)
	s, err := at(p).load()
	require.NoError(t, err)
	require.Empty(t, s.doc.Deleted, "the deletion has moved into an archive")
	require.ErrorIs(t, p.Delete(t.Context(), "", day), ErrUnpublishable)
	require.NoError(t, p.Delete(t.Context(), "e24", time.Time{}), "now")
	require.Len(t, fetch(t, out, p.URL()).Entries, 14)
}

func TestCorrect(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 10)...))
	require.NoError(t, p.Append(t.Context(), entry(t, "e2", day.Add(30*time.Hour), "corrected")))
	require.ErrorIs(t, p.Append(t.Context(), entry(t, "e1", day, "corrected")), ErrStale)
	require.NoError(t, p.Delete(t.Context(), "e3", day.Add(30*time.Hour)))
	h := fetch(t, out, p.URL())
	require.Len(t, h.Entries, 9)
	require.Equal(t, "corrected", h.Entries[0].Title().Body)
}

func TestErase(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 20)...))
	require.ErrorIs(t, p.Erase(t.Context(), "e10", "e99"), ErrNotPublished)
	old := archives(t, p)
	require.Len(t, old, 6)
	require.NoError(t, p.Erase(t.Context(), "e10", "e20"))
	after := archives(t, p)
	require.Len(t, after, 6)
	for i, a := range after[:3] {
		require.NotEqual(t, old[i].name, a.name)
		require.NotContains(t, out.texts(), old[i].name)
	}
	for i := 3; i < 6; i++ {
		require.Equal(t, old[i].name, after[i].name)
		require.Equal(t, old[i].doc.Entries[0].XML(), after[i].doc.Entries[0].XML())
	}
	for name, data := range out.texts() {
		require.False(t, bytes.Contains(data, []byte("text 10,")), name)
		require.False(t, bytes.Contains(data, []byte("text 20,")), name)
	}
	require.Len(t, fetch(t, out, p.URL()).Entries, 18)
	require.NoError(t, p.Erase(t.Context(), "e1", "e2", "e3"))
	require.Len(t, archives(t, p), 5, "an archive without entries is left out")
	require.NoError(t, p.Append(t.Context(), entries(t, 30, 10)...))
	require.Len(t, fetch(t, out, p.URL()).Entries, 25)
	require.Len(t, out.texts(), 1+len(archives(t, p)))
}

func TestEraseAll(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 6)...))
	require.NoError(t, p.Erase(t.Context(), "e1", "e2", "e3", "e4", "e5", "e6"))
	require.Len(t, out.texts(), 1)
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 7)...))
	require.Len(t, fetch(t, out, p.URL()).Entries, 7)
	require.NoError(t, p.Erase(t.Context(), "e4", "e5", "e6"))
	require.NotContains(t, string(out.texts()[archives(t, p)[0].name]), "next-archive", "its successor is gone")
}

func TestErasedFromMissingArchive(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 10)...))
	out.drop(archives(t, p)[1].name) // 5005#18 allows that
	before := out.clone()
	require.ErrorContains(t, p.Erase(t.Context(), "e9"), "not exist")
	require.Equal(t, before.texts(), out.texts())
	require.NoError(t, p.Append(t.Context(), entries(t, 11, 10)...))
	require.NoError(t, p.Append(t.Context(), entry(t, "old", day, "given an old date")))
}

func TestTwoWriters(t *testing.T) {
	out := newMemory()
	unlock, err := out.Lock(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, newPublisher(out).Append(t.Context(), entries(t, 1, 1)...), ErrLocked)
	require.NoError(t, unlock())
	require.NoError(t, newPublisher(out).Append(t.Context(), entries(t, 1, 1)...))
}

func TestForeign(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	out.replace(p.name(), `<feed xmlns="http://www.w3.org/2005/Atom"><id>x</id></feed>`)
	require.ErrorIs(t, p.Append(t.Context(), entries(t, 1, 1)...), ErrForeign)
}

func TestSettings(t *testing.T) {
	for _, p := range []*Publisher{
		{Base: base},
		{Output: newMemory()},
		{Output: newMemory(), Base: "/blog/"},
		{Output: newMemory(), Base: "https://example.org/?x"},
		{Output: newMemory(), Base: base, Format: feedhistory.FormatJSONFeed},
		{Output: newMemory(), Base: base, Name: "feed"},
		{Output: newMemory(), Base: base, Name: "../feed.atom"},
		{Output: newMemory(), Base: base, Name: ".feed.atom"},
		{Output: newMemory(), Base: base, Name: "a b.atom"},
	} {
		require.ErrorContains(t, p.Append(t.Context(), entries(t, 1, 1)...), "publish: ")
	}
}

func TestUnpublishable(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	bad := entry(t, "bad\x01id", day, "x")
	bad.ID = "bad\x01id"
	err := p.Append(t.Context(), append(entries(t, 1, 8), bad)...)
	require.ErrorIs(t, err, ErrUnpublishable)
	require.Empty(t, out.texts())
}

func TestSplitByMonth(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	p.Split = compose.Split{Period: compose.Month}
	for _, at := range []string{"2003-10-01", "2003-10-31", "2003-11-01", "2003-10-05", "2003-12-01"} {
		when, err := time.Parse(time.DateOnly, at)
		require.NoError(t, err)
		require.NoError(t, p.Append(t.Context(), entry(t, at, when, at)))
	}
	var names []string
	for _, a := range archives(t, p) {
		names = append(names, a.name[:len("feed/2003/11-")])
		require.True(t, archiveName.MatchString(a.name))
	}
	require.Equal(t, []string{"feed/2003/11-", "feed/2003/10-"}, names)
	require.Len(t, fetch(t, out, p.URL()).Entries, 5)
}

func TestLargePeriod(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	p.Split = compose.Split{Period: compose.Year}
	long := strings.Repeat("0123456789abcdef", 64<<10) // 1 MiB
	for i := range 20 {
		require.NoError(t, p.Append(t.Context(), entry(t, string(rune('a'+i)), day.Add(time.Duration(i)*time.Second), long)))
		require.Less(t, len(out.texts()[p.name()]), 15<<20)
	}
	require.Len(t, fetch(t, out, p.URL()).Entries, 20)
	for _, a := range archives(t, p) {
		require.True(t, strings.HasPrefix(a.name, "feed/2003-"), a.name)
	}
}

func TestBaseMoves(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	p.Base = "https://old.example.org"
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 10)...))
	p = newPublisher(out)
	require.NoError(t, p.Append(t.Context(), entries(t, 11, 10)...))
	require.Len(t, archives(t, p), 6)
	require.NoError(t, p.Append(t.Context(), entry(t, "old", day, "given an old date")), "all archives are found")
	require.NoError(t, p.Erase(t.Context(), "e1"))
	require.Len(t, archives(t, p), 7)
}

func TestPublishHistory(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 10)...))
	h := fetch(t, out, p.URL())
	for _, format := range []feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS} {
		other := newMemory()
		q := newPublisher(other)
		q.Format = format
		publishHistory(t, q, h)
		require.Equal(t, facts(h), facts(fetch(t, other, q.URL())))
		other.Operations()
		publishHistory(t, q, h)
		require.Empty(t, other.Operations())
		later := *h
		later.Deleted = []feedhistory.Tombstone{{Ref: "e5", When: day.Add(30 * time.Hour)}}
		later.Entries = slices.DeleteFunc(slices.Clone(h.Entries), func(e *feedhistory.Entry) bool { return e.ID == "e5" })
		publishHistory(t, q, &later)
		require.Equal(t, facts(&later), facts(fetch(t, other, q.URL())))
	}
}

// at returns a session of a Publisher, without the lock.
func at(p *Publisher) *session { return &session{Publisher: p, ctx: context.Background()} }

// checkChain checks what Fetch does not look at: that every link of every
// reachable document leads to a document that links back. Between a crash and
// the next call, an archive may already have its new successor.
func checkChain(t require.TestingT, out fs.FS, p *Publisher) {
	if _, err := fs.Stat(out, p.name()); isNotExist(err) {
		return
	}
	reader, known := Publisher{Output: readOnly{FS: out}}, map[string]*archive{}
	read := func(name string) *archive {
		if known[name] == nil {
			a, err := at(&reader).archive(name)
			require.NoError(t, err)
			known[name] = a
		}
		return known[name]
	}
	href := func(a *archive, rel string) string {
		l, _ := a.doc.Links.Rel(rel)
		return strings.TrimPrefix(l.Href, base)
	}
	newer := read(p.name())
	require.False(t, newer.doc.Archive)
	require.Empty(t, href(newer, "next-archive"), "the subscription document is no archive")
	newest := true
	for name := newer.prev; name != ""; name = newer.prev {
		a := read(name)
		require.True(t, a.doc.Archive, "5005#14")
		require.Equal(t, name, href(a, "self"))
		require.Equal(t, p.name(), href(a, "current"), "5005#13")
		next := href(a, "next-archive")
		require.True(t, newest || next != "", "5005#12")
		if next != "" {
			require.Equal(t, name, read(next).prev, "5005#15")
		}
		newer, newest = a, false
	}
}

// readOnly is an output that refuses writes.
type readOnly struct {
	fs.FS
	Output
}

func (r readOnly) Open(name string) (fs.File, error) { return r.FS.Open(name) }

// A memory is a MemoryOutput that can fail, and that records its calls in order: "put
// NAME" or "remove NAME".
type memory struct {
	MemoryOutput
	feedtest.Faults
	names   map[string]string // what was ever stored under an archive's name
	written int64             // bytes
}

func newMemory() *memory {
	return &memory{MemoryOutput: MemoryOutput{files: fstest.MapFS{}}, names: map[string]string{}}
}

// texts returns all documents by their names, without the index.
func (m *memory) texts() map[string][]byte {
	all := map[string][]byte{}
	for name, file := range m.files {
		if !strings.HasSuffix(name, indexSuffix) {
			all[name] = file.Data
		}
	}
	return all
}

// drop removes a document, as somebody who is no Publisher would.
func (m *memory) drop(name string) { delete(m.files, name) }

// replace replaces a document, as somebody who is no Publisher would.
func (m *memory) replace(name, text string) { m.files[name] = &fstest.MapFile{Data: []byte(text)} }

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
	format := feedhistory.FormatAtom
	if strings.HasSuffix(name, ".rss") {
		format = feedhistory.FormatRSS
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
	c := &feedhistory.Client{AllowPrivate: true, Transport: site{out}}
	h, err := c.Fetch(context.Background(), url)
	require.NoError(t, err)
	require.Empty(t, h.Gaps)
	require.Equal(t, feedhistory.VerdictWhole, h.Verdict(), "kind %v", h.Kind)
	return h
}

var day = time.Date(2003, 12, 13, 18, 30, 2, 0, time.UTC)

// entry returns an entry. Its text says which version it is.
func entry(t require.TestingT, id string, updated time.Time, text string) *feedhistory.Entry {
	e, err := compose.Draft{
		ID: id, Updated: updated, Title: feedhistory.Text{Body: text},
		Links:   feedhistory.Links{{Rel: "alternate", Href: "https://example.org/" + id}},
		Content: feedhistory.Text{Type: "html", Body: `<p>` + text + `, <a href="more">more</a></p>`},
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
		Output: out, Base: base, Recent: -1, Split: compose.Split{Size: 3},
		Head:  &feedhistory.Document{Title: "A blog", ID: "urn:blog"},
		least: 2, most: 20, mostQueued: 3000,
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

// A model is the expected content of the feed, expressed as simply as possible.
type model struct {
	entries map[string]string // id to time and text
	deleted map[string]string // id to time
	erased  map[string]bool   // these may still be among the deleted
}

func newModel() model {
	return model{map[string]string{}, map[string]string{}, map[string]bool{}}
}

func (m model) clone() model {
	return model{maps.Clone(m.entries), maps.Clone(m.deleted), maps.Clone(m.erased)}
}

func stamp(t time.Time, text string) string { return t.UTC().Format(time.RFC3339Nano) + " " + text }

func (m model) put(id string, at time.Time, text string) {
	m.entries[id] = stamp(at, text)
	delete(m.deleted, id)
	delete(m.erased, id)
}

func (m model) remove(id string, at time.Time) {
	m.deleted[id] = stamp(at, "deleted")
	delete(m.entries, id)
}

func (m model) erase(id string) {
	delete(m.entries, id)
	m.erased[id] = true
}

// matches reports whether a reader has found exactly the expected content.
func (m model) matches(h *feedhistory.History) bool {
	entries, deleted := map[string]string{}, map[string]string{}
	for _, e := range h.Entries {
		entries[e.ID] = stamp(e.Updated, e.Title().Plain())
	}
	for _, d := range h.Deleted {
		if _, ok := m.deleted[d.Ref]; ok || !m.erased[d.Ref] {
			deleted[d.Ref] = stamp(d.When, "deleted")
		}
	}
	return maps.Equal(m.entries, entries) && maps.Equal(m.deleted, deleted)
}

func (m model) ids() []string { return slices.Sorted(maps.Keys(m.entries)) }

// A machine drives a Publisher and its model in parallel.
type machine struct {
	out   *memory
	p     *Publisher
	model model
	now   time.Time
	count int
}

// TestModel drives a Publisher through random histories. After each step a
// reader who walks the feed has exactly what was published, and knows that
// nothing is missing.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{out: newMemory(), model: newModel(), now: day}
		m.p = newPublisher(m.out)
		m.p.Format = rapid.SampledFrom([]feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS}).Draw(t, "format")
		t.Repeat(map[string]func(*rapid.T){
			"append": m.append, "append again": m.append, "old date": m.oldDate, "edit": m.edit,
			"correct": m.correct, "delete": m.delete, "erase": m.erase, "stale": m.stale,
			"split": m.split, "reopen": m.reopen, "crash": m.crash, "": m.check,
		})
	})
}

func (m *machine) tick(t *rapid.T) time.Time {
	m.now = m.now.Add(time.Duration(rapid.SampledFrom([]int64{
		1, int64(time.Millisecond), int64(time.Second), int64(time.Hour), int64(9 * 24 * time.Hour),
	}).Draw(t, "later")))
	return m.now
}

// fresh returns an entry that never existed, with the given date.
func (m *machine) fresh(t *rapid.T, at time.Time, into model) *feedhistory.Entry {
	m.count++
	id, text := fmt.Sprintf("e%d", m.count), fmt.Sprintf("text %d & <b>", m.count)
	into.put(id, at, text)
	return entry(t, id, at, text)
}

// some draws the id of a published entry.
func (m *machine) some(t *rapid.T) string {
	ids := m.model.ids()
	if len(ids) == 0 {
		t.Skip("nothing is published")
	}
	return rapid.SampledFrom(ids).Draw(t, "id")
}

func (m *machine) append(t *rapid.T) {
	var all []*feedhistory.Entry
	for range rapid.IntRange(0, 9).Draw(t, "entries") {
		all = append(all, m.fresh(t, m.tick(t), m.model))
	}
	require.NoError(t, m.p.Append(t.Context(), all...))
}

func (m *machine) oldDate(t *rapid.T) {
	at := m.now.Add(-time.Duration(rapid.Int64Range(0, int64(30*24*time.Hour)).Draw(t, "ago")))
	require.NoError(t, m.p.Append(t.Context(), m.fresh(t, at, m.model)))
}

func (m *machine) edit(t *rapid.T) {
	id, at := m.some(t), m.tick(t)
	if deleted := slices.Sorted(maps.Keys(m.model.deleted)); len(deleted) > 0 && rapid.Bool().Draw(t, "revive") {
		id = deleted[0]
	}
	m.count++
	text := fmt.Sprintf("edited %d", m.count)
	m.model.put(id, at, text)
	require.NoError(t, m.p.Append(t.Context(), m.fresh(t, at, m.model), entry(t, id, at, text)))
}

func (m *machine) correct(t *rapid.T) {
	id, at := m.some(t), m.tick(t)
	m.model.put(id, at, "corrected")
	require.NoError(t, m.p.Append(t.Context(), entry(t, id, at, "corrected")))
}

func (m *machine) delete(t *rapid.T) {
	id, at := m.some(t), m.tick(t)
	m.model.remove(id, at)
	require.NoError(t, m.p.Delete(t.Context(), id, at))
}

func (m *machine) erase(t *rapid.T) {
	ids := []string{m.some(t), m.some(t)}
	for _, id := range ids {
		m.model.erase(id)
	}
	require.NoError(t, m.p.Erase(t.Context(), ids...))
}

// stale offers items that are not newer than the published ones.
func (m *machine) stale(t *rapid.T) {
	id := m.some(t)
	at, err := time.Parse(time.RFC3339Nano, m.model.entries[id][:len(m.model.entries[id])-len(text(m.model.entries[id]))-1])
	require.NoError(t, err)
	require.ErrorIs(t, m.p.Append(t.Context(), entry(t, id, at, "changed")), ErrSameTime)
	require.ErrorIs(t, m.p.Append(t.Context(), entry(t, id, at.Add(-1), "changed")), ErrStale)
	require.ErrorIs(t, m.p.Delete(t.Context(), id, at.Add(-1)), ErrStale)
	require.NoError(t, m.p.Append(t.Context(), entry(t, id, at, text(m.model.entries[id]))), "the very same")
}

// text returns what follows the time.
func text(stamped string) string {
	for i := range stamped {
		if stamped[i] == ' ' {
			return stamped[i+1:]
		}
	}
	return ""
}

func (m *machine) split(t *rapid.T) {
	m.p.Split = rapid.SampledFrom([]compose.Split{
		{Size: 1}, {Size: 2}, {Size: 7}, {Period: compose.Day}, {Period: compose.Month}, {Period: compose.Year},
	}).Draw(t, "split")
	m.p.Recent = rapid.SampledFrom([]int{-1, 0, 1, 5}).Draw(t, "recent")
}

func (m *machine) reopen(*rapid.T) {
	old := m.p
	m.p = &Publisher{Output: m.out, Base: base, Format: old.Format, Split: old.Split, Recent: old.Recent}
}

// crash interrupts a call at any of its operations. The call has either taken
// effect or not.
func (m *machine) crash(t *rapid.T) {
	after := rapid.IntRange(0, 9).Draw(t, "operations")
	how := rapid.SampledFrom([]feedtest.Failure{feedtest.FailsBefore, feedtest.FailsAfter, feedtest.Crashes, feedtest.Crashed}).Draw(t, "how")
	done := m.model.clone()
	m.out.Fail = func(string) feedtest.Failure {
		if after--; after == -1 {
			return how
		}
		return feedtest.Works
	}
	var err error
	if ids := m.model.ids(); len(ids) > 0 && rapid.Bool().Draw(t, "erase") {
		id := rapid.SampledFrom(ids).Draw(t, "id")
		done.erase(id)
		err = m.p.Erase(t.Context(), id)
	} else {
		var all []*feedhistory.Entry
		for range rapid.IntRange(1, 9).Draw(t, "entries") {
			all = append(all, m.fresh(t, m.tick(t), done))
		}
		err = m.p.Append(t.Context(), all...)
	}
	m.out.Fail = nil
	if rapid.Bool().Draw(t, "a new process") {
		m.out = m.out.clone()
		m.reopen(t)
	} else if err != nil {
		require.ErrorIs(t, err, feedtest.ErrDisk)
	}
	h := m.fetch(t)
	if err == nil || done.matches(h) {
		m.model = done
		return
	}
	if require.NoError(t, m.p.Append(t.Context())); len(m.out.texts()) > 0 && done.matches(m.fetch(t)) {
		m.model = done // the call had taken effect already
	}
}

func (m *machine) fetch(t *rapid.T) *feedhistory.History {
	if _, ok := m.out.texts()[m.p.name()]; !ok {
		require.Empty(t, m.model.entries)
		return &feedhistory.History{}
	}
	checkChain(t, m.out, m.p)
	return fetch(t, m.out, m.p.URL())
}

func (m *machine) check(t *rapid.T) {
	if h := m.fetch(t); !m.model.matches(h) {
		require.Equal(t, m.model.entries, facts(h))
		t.Fatal("not what was published")
	}
}

// These tests check the duties of a publisher (RFC 5005), each met by default,
// in Atom and RSS.

// published returns what a Publisher with default settings makes of 350
// entries, appended a few at a time.
func published(t *testing.T, format feedhistory.Format) (*memory, *Publisher) {
	out := newMemory()
	p := &Publisher{Output: out, Base: base, Format: format}
	for from := 1; from <= 350; from += 25 {
		require.NoError(t, p.Append(t.Context(), entries(t, from, 25)...))
	}
	return out, p
}

func TestDuties(t *testing.T) {
	for _, format := range []feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS} {
		t.Run(string(format), func(t *testing.T) {
			feed, _ := published(t, format)
			for _, duty := range []struct {
				name string
				test func(*testing.T, *memory, *Publisher)
			}{
				{"2: fh:complete is empty, and in the head only", duty2},
				{"8: the subscription document has the latest entries, always", duty8},
				{"9: the entries of an archive never change", duty9},
				{"10: the URI of an archive never changes", duty10},
				{"11: prev-archive on all documents but the oldest", duty11},
				{"12: next-archive on all archives but the newest", duty12},
				{"13: current on every archive", duty13},
				{"14: fh:archive in the head of every archive", duty14},
				{"15: no next-archive to what is still being filled", duty15},
				{"16: duplicates have distinct update times", duty16},
				{"17: a correction is in the subscription document", duty17},
				{"18: an erased archive is refused", duty18},
			} {
				t.Run(duty.name, func(t *testing.T) {
					out := feed.clone()
					out.names = maps.Clone(feed.names)
					duty.test(t, out, &Publisher{Output: out, Base: base, Format: format})
				})
			}
		})
	}
}

// duty2 checks that the feed is complete as long as there is no archive
// (5005#26).
func duty2(t *testing.T, out *memory, p *Publisher) {
	require.NotContains(t, string(out.texts()[p.name()]), "complete", "there are archives")
	young := newMemory()
	p = &Publisher{Output: young, Base: base, Format: p.Format}
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 5)...))
	text := string(young.texts()[p.name()])
	flag := strings.Index(text, `<fh:complete xmlns:fh="http://purl.org/syndication/history/1.0"/>`)
	require.Positive(t, flag)
	require.Less(t, flag, strings.Index(text, "text 5"))
	require.Equal(t, 1, strings.Count(text, "fh:complete"))
	s, err := at(p).load()
	require.NoError(t, err)
	require.Equal(t, []feedhistory.Kind{feedhistory.KindComplete}, s.doc.Combines())
}

func duty8(t *testing.T, out *memory, p *Publisher) {
	name := p.name()
	for i, e := range append(entries(t, 400, 120), entry(t, "e7", day.Add(1000*time.Hour), "changed")) {
		require.NoError(t, p.Append(t.Context(), e))
		s, err := at(p).load()
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(s.doc.Entries), 10)
		for n, shown := range s.doc.Entries[:min(i+1, 10)] {
			if e.ID != "e7" {
				require.Equal(t, entries(t, 400+i-n, 1)[0].ID, shown.ID)
			}
		}
	}
	s, err := at(p).load()
	require.NoError(t, err)
	require.Equal(t, "e7", s.doc.Entries[0].ID)
	require.Equal(t, name, p.name(), "there is one, at one place")
	require.False(t, s.doc.Archive)
	require.False(t, s.doc.Updated.Before(s.doc.Entries[0].Updated))
}

// duty9 checks that nothing else changes, except that next-archive is added
// once.
func duty9(t *testing.T, out *memory, p *Publisher) {
	before := archives(t, p)
	require.Len(t, before, 3)
	p.Split = compose.Split{Period: compose.Day}
	p.Head = &feedhistory.Document{Title: "Another title"}
	require.NoError(t, p.Append(t.Context(), entries(t, 400, 350)...))
	require.NoError(t, p.Append(t.Context(), entry(t, "e1", day.Add(1000*time.Hour), "corrected")))
	require.NoError(t, p.Delete(t.Context(), "e2", day.Add(1000*time.Hour)))
	for i, a := range before {
		text, err := at(p).read(a.name)
		require.NoError(t, err)
		if i > 0 {
			require.Equal(t, a.text, text, "next-archive was there already")
		}
		unlinked, err := setNext(text, "", p.format())
		require.NoError(t, err)
		require.Equal(t, i == 0, unlinked == a.text)
		now, err := at(p).archive(a.name)
		require.NoError(t, err)
		for n, e := range a.doc.Entries {
			require.True(t, bytes.Equal(e.XML(), now.doc.Entries[n].XML()))
		}
	}
}

func duty10(t *testing.T, out *memory, p *Publisher) {
	before := archives(t, p)
	for _, split := range []compose.Split{{Size: 7}, {Period: compose.Month}, {Size: 1}} {
		p.Split = split
		require.NoError(t, p.Append(t.Context(), entries(t, 400+100*split.Size, 50)...))
	}
	after := archives(t, p)
	for i, a := range before {
		require.Equal(t, a.name, after[len(after)-len(before)+i].name)
	}
}

func duty11(t *testing.T, out *memory, p *Publisher) {
	text := string(out.texts()[p.name()])
	all := archives(t, p)
	for i, a := range all {
		require.Equal(t, 1, strings.Count(text, `rel="prev-archive" href="`+base+a.name+`"`), a.name)
		if text = a.text; i == len(all)-1 {
			require.NotContains(t, text, "prev-archive")
		}
	}
}

func duty12(t *testing.T, out *memory, p *Publisher) {
	all := archives(t, p)
	for i, a := range all {
		if i > 0 {
			require.Equal(t, 1, strings.Count(a.text, `rel="next-archive" href="`+base+all[i-1].name+`"`))
		} else {
			require.NotContains(t, a.text, "next-archive")
		}
	}
	checkChain(t, out, p)
}

func duty13(t *testing.T, out *memory, p *Publisher) {
	for _, a := range archives(t, p) {
		require.Equal(t, 1, strings.Count(a.text, `rel="current" href="`+p.URL()+`"`))
	}
	require.NotContains(t, string(out.texts()[p.name()]), "current")
}

func duty14(t *testing.T, out *memory, p *Publisher) {
	for _, a := range archives(t, p) {
		require.True(t, a.doc.Archive)
		flag := strings.Index(a.text, `<fh:archive xmlns:fh="http://purl.org/syndication/history/1.0"/>`)
		require.Positive(t, flag)
		require.Less(t, flag, strings.Index(a.text, "text "))
	}
	require.NotContains(t, string(out.texts()[p.name()]), "fh:archive")
}

// duty15 checks that the target of next-archive exists before the link does,
// with all its entries. The memory panics if they ever change.
func duty15(t *testing.T, out *memory, p *Publisher) {
	links := 0
	out.Fail = func(string) feedtest.Failure { // called before each operation
		for name, data := range out.texts() {
			if !archiveName.MatchString(name) {
				continue
			}
			_, rest, linked := strings.Cut(string(data), `rel="next-archive" href="`+base)
			next, _, _ := strings.Cut(rest, `"`)
			if linked {
				links++
				require.Contains(t, out.texts(), next)
				require.Contains(t, string(out.texts()[next]), "fh:archive")
			}
		}
		return feedtest.Works
	}
	for from := 400; from < 800; from += 10 {
		require.NoError(t, p.Append(t.Context(), entries(t, from, 10)...))
	}
	require.Positive(t, links)
}

func duty16(t *testing.T, out *memory, p *Publisher) {
	for _, id := range []string{"e1", "e350"} { // one in an archive, one not
		old := fetch(t, out, p.URL()).Entries
		at := old[0].Updated
		for _, e := range old {
			if e.ID == id {
				at = e.Updated
			}
		}
		require.ErrorIs(t, p.Append(t.Context(), entry(t, id, at, "changed")), ErrSameTime)
		require.NoError(t, p.Append(t.Context(), entry(t, id, at.Add(5000*time.Hour), "changed")))
	}
	require.NoError(t, p.Append(t.Context(),
		entry(t, "twin1", day.Add(9000*time.Hour), "twins may"), entry(t, "twin2", day.Add(9000*time.Hour), "have one time"),
	))
	require.NoError(t, p.Append(t.Context(), entries(t, 6000, 200)...))
	times := map[string]string{}
	for name, data := range out.texts() {
		doc, err := parse(string(data))
		require.NoError(t, err)
		for _, e := range doc.Entries {
			key := e.ID + e.Updated.UTC().String()
			if other, ok := times[key]; ok {
				require.Equal(t, other, string(e.XML()), "%s: one version only has this time", name)
			}
			times[key] = string(e.XML())
		}
	}
}

func duty17(t *testing.T, out *memory, p *Publisher) {
	require.NoError(t, p.Append(t.Context(), entry(t, "e5", day.Add(1000*time.Hour), "corrected")))
	s, err := at(p).load()
	require.NoError(t, err)
	require.Equal(t, "corrected", s.doc.Entries[0].Title().Plain())
	for _, e := range fetch(t, out, p.URL()).Entries {
		require.Equal(t, e.ID == "e5", e.Title().Plain() == "corrected")
	}
}

func duty18(t *testing.T, out *memory, p *Publisher) {
	gone := archives(t, p)[1].name
	require.NoError(t, p.Erase(t.Context(), "e150"))
	w := httptest.NewRecorder()
	(&Handler{FS: out}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/"+gone, nil))
	require.Equal(t, http.StatusNotFound, w.Code)
	require.Len(t, fetch(t, out, p.URL()).Entries, 349)
}

// TestPagedDuties checks 5005#5, that a page has at least one of the four
// links, and 5005#6, that it has as many as is practical.
func TestPagedDuties(t *testing.T) {
	for _, n := range []int{0, 1, 10, 11, 35} {
		log := entries(t, 1, n)
		slices.Reverse(log)
		pages := &Pages{
			Head: &feedhistory.Document{ID: "urn:log", Title: "Log"}, Size: 10, URL: base,
			Older: func(_ context.Context, than Position, limit int) ([]*feedhistory.Entry, bool, error) {
				from := 0
				if than.ID != "" {
					from = 1 + slices.IndexFunc(log, func(e *feedhistory.Entry) bool { return e.ID == than.ID })
				}
				rest := log[from:]
				return rest[:min(limit, len(rest))], len(rest) > limit, nil
			},
		}
		found, url := 0, base
		for url != "" {
			w := httptest.NewRecorder()
			pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
			require.Equal(t, http.StatusOK, w.Code)
			doc, err := feedhistory.Parse(w.Body, url)
			require.NoError(t, err)
			require.Equal(t, feedhistory.KindPaged, doc.Kind(), "5005#5: %d entries", n)
			first, ok := doc.Links.Rel("first")
			require.True(t, ok, "5005#6")
			require.Equal(t, base, first.Href)
			next, more := doc.Links.Rel("next")
			found += len(doc.Entries)
			require.Equal(t, found < n, more, "5005#6")
			url = next.Href
		}
		require.Equal(t, n, found)
	}
}

// chainOf returns the published documents, newest first.
func chainOf(t require.TestingT, p *Publisher) (docs []*feedhistory.Document) {
	s, err := at(p).load()
	require.NoError(t, err)
	docs = append(docs, s.doc)
	for name := s.prev; name != ""; {
		a, err := at(p).archive(name)
		require.NoError(t, err)
		docs = append(docs, a.doc)
		name = a.prev
	}
	return docs
}

// A chronological feed keeps the order of time through all its documents,
// however its entries come and are cut, even if many have the same time: no
// archive is newer than a later entry, no document is older than its content,
// and the subscription document has the newest entry. Older items are refused.
func TestChronological(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		out := newMemory()
		p := newPublisher(out)
		p.Chronological, p.Versions = true, rapid.Bool().Draw(t, "versions")
		if p.Split.Size = rapid.IntRange(1, 5).Draw(t, "size"); rapid.Bool().Draw(t, "by day") {
			p.Split = compose.Split{Period: compose.Day}
		}
		require.NoError(t, p.Append(t.Context()))
		require.Empty(t, chainOf(t, p)[0].Entries)
		now, all, last := day, 0, map[string]time.Time{}
		for range rapid.IntRange(1, 6).Draw(t, "calls") {
			var entries []*feedhistory.Entry
			for range rapid.IntRange(0, 8).Draw(t, "entries") {
				at := now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "later")) * 13 * time.Hour)
				id := fmt.Sprintf("urn:%d", rapid.IntRange(0, 20).Draw(t, "id"))
				if at.After(last[id]) {
					entries = append(entries, entry(t, id, at, "text"))
					last[id] = at
				}
			}
			all += len(entries)
			require.NoError(t, p.Append(t.Context(), entries...))
			docs := chainOf(t, p)
			now = docs[0].Updated
			inOrder(t, docs)
			if all > 0 {
				require.NotEmpty(t, docs[0].Entries)
				require.Equal(t, now, docs[0].Entries[0].Updated)
				late := p.Append(t.Context(), entry(t, "urn:late", now.Add(-time.Second), "text"))
				require.ErrorIs(t, late, ErrLate)
			}
		}
		if p.Versions {
			for _, doc := range chainOf(t, p) {
				all -= len(doc.Entries)
			}
			require.Zero(t, all)
		}
	})
}

func inOrder(t require.TestingT, docs []*feedhistory.Document) {
	for i, doc := range docs {
		for _, e := range doc.Entries {
			require.False(t, e.Updated.After(doc.Updated))
			if i+1 < len(docs) {
				require.False(t, docs[i+1].Updated.After(e.Updated))
			}
		}
	}
}

// A function can decide, from the subscription document, whether it is marked
// as complete.
func TestCompleteIsAsked(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	p.Complete = func(d *feedhistory.Document) bool { return len(d.Entries) == 1 }
	for i, complete := range []bool{true, false} {
		require.NoError(t, p.Append(t.Context(), entry(t, fmt.Sprintf("urn:%d", i), day, "text")))
		require.Equal(t, complete, chainOf(t, p)[0].Complete)
	}
}

// The latest version counts, even if older ones are in the same document.
func TestVersionsAreKnown(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	p.Versions = true
	first, second := entry(t, "urn:a", day, "first"), entry(t, "urn:a", day.Add(time.Hour), "second")
	require.NoError(t, p.Append(t.Context(), first, second))
	require.ErrorIs(t, p.Append(t.Context(), entry(t, "urn:a", day.Add(time.Minute), "between")), ErrStale)
	updated, err := p.Publish(t.Context(), Batch{Entries: []*feedhistory.Entry{second}})
	require.NoError(t, err)
	require.Equal(t, &Report{Unchanged: 1}, updated)
	require.Len(t, chainOf(t, p)[0].Entries, 2)
}

// What is nil or empty is an error that says so; nothing is published.
func TestNilAndEmpty(t *testing.T) {
	out := &MemoryOutput{}
	p := &Publisher{Output: out, Base: "https://example.org/"}
	for _, entries := range [][]*feedhistory.Entry{{nil}, {{}}, {{Links: feedhistory.Links{{Rel: "alternate", Href: "https://example.org/1"}}}}} {
		require.ErrorIs(t, p.Append(t.Context(), entries...), ErrNoID)
		_, err := p.Publish(t.Context(), Batch{Entries: entries})
		require.ErrorIs(t, err, ErrNoID)
	}
	require.ErrorContains(t, new(Publisher).Append(t.Context()), "Output must be set")
	_, err := out.Open("feed.atom")
	require.True(t, isNotExist(err))
}

// A call whose context has ended publishes nothing, leaves no file, and frees the lock.
// A call whose context ends before its turn returns, and the one at work goes on.
func TestEndedBeforeTurn(t *testing.T) {
	p := newPublisher(newMemory())
	at, on, ended := make(chan bool), make(chan bool), make(chan error)
	go func() {
		_, err := p.Publish(t.Context(), Batch{Entries: entries(t, 1, 3), Check: func(Report) error {
			at <- true
			<-on
			return nil
		}})
		ended <- err
	}()
	<-at
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	require.ErrorIs(t, p.Append(ctx, entries(t, 4, 5)...), context.Canceled)
	late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := p.Publish(late, Batch{Entries: entries(t, 4, 5)})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	on <- true
	require.NoError(t, <-ended)
	require.NoError(t, p.Append(t.Context(), entries(t, 4, 5)...))
	require.Len(t, fetch(t, p.Output, p.URL()).Entries, 8)
}

func TestCancelled(t *testing.T) {
	out := &MemoryOutput{}
	p := &Publisher{Output: out, Base: "https://example.org/", Split: compose.Split{Size: 2}}
	ctx, cancel := context.WithCancel(t.Context())
	e, err := compose.Draft{ID: "urn:1", Updated: epoch.AddDate(30, 0, 0)}.Entry()
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, p.Append(ctx, e), context.Canceled)
	unlock, err := out.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, unlock())
	require.NoError(t, p.Append(t.Context(), e))
}

// The subscription document passes on what a feed says about its coverage, and
// keeps it when it is published again. Archives, which never change, do not
// have it.
func TestCoverageIsHandedOn(t *testing.T) {
	coverage := &feedhistory.Coverage{Of: "http://example.org/feed", Kind: feedhistory.KindPlain, Verdict: feedhistory.VerdictWindow}
	out := Dir{Path: t.TempDir()}
	p := &Publisher{
		Output: out, Base: "http://mirror.example/", Split: compose.Split{Size: 2},
		Head: &feedhistory.Document{ID: "urn:feed", Title: "A", Coverage: coverage},
	}
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 5)...))
	p = &Publisher{Output: out, Base: p.Base, Split: p.Split} // this one takes the published head
	require.NoError(t, p.Append(t.Context(), entries(t, 6, 1)...))

	documents := 0
	require.NoError(t, fs.WalkDir(out, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".atom") {
			return err
		}
		documents++
		text, err := fs.ReadFile(out, name)
		require.Equal(t, name == p.name(), strings.Contains(string(text), "m:mirror"), name)
		return err
	}))
	require.Greater(t, documents, 2)

	client := &feedhistory.Client{AllowPrivate: true, Transport: feedtest.Direct{Handler: &Handler{FS: out}}}
	h, err := client.Fetch(t.Context(), p.URL())
	require.NoError(t, err)
	require.Len(t, h.Entries, 6)
	require.Equal(t, feedhistory.VerdictWindow, h.Verdict())
}

// At each step of a feed's life, in both formats, check finds nothing but notes
// in the whole chain as it is published and served.
func TestPublishedIsClean(t *testing.T) {
	for _, format := range []feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS} {
		t.Run(string(format), func(t *testing.T) {
			out := newMemory()
			server := feedtest.Server(t, http.StripPrefix("/feeds", &Handler{FS: out}))
			client := &feedhistory.Client{AllowPrivate: true}
			defer client.CloseIdle()
			p := newPublisher(out)
			p.Format, p.Base, p.Recent = format, server.URL+"/feeds/", 0

			var log []*feedhistory.Entry
			for i := range 25 {
				at := day.Add(time.Duration(i) * time.Hour)
				log = append(log, entry(t, fmt.Sprintf("urn:e%d", i), at, fmt.Sprintf("text %d", i)))
			}
			last, later := log[19].Updated, log[20:]
			for i, e := range later {
				later[i] = entry(t, e.ID, last.Add(time.Duration(3+i)*time.Hour), "later")
			}
			for n, step := range []func() error{
				func() error { return p.Append(t.Context(), log[0]) },
				func() error { return p.Append(t.Context(), log[1:4]...) },
				func() error { return p.Append(t.Context(), log[4:20]...) },
				func() error { return p.Append(t.Context(), entry(t, log[2].ID, last.Add(time.Hour), "corrected")) },
				func() error { return p.Delete(t.Context(), log[5].ID, last.Add(2*time.Hour)) },
				func() error {
					p.Split = compose.Split{Period: compose.Day}
					return p.Append(t.Context(), later...)
				},
				func() error { return p.Erase(t.Context(), log[7].ID) },
			} {
				require.NoError(t, step(), "step %d", n)
				var chain check.Chain
				for _, finding := range feedtest.All(t, chain.Check(t.Context(), client, p.URL())) {
					require.Equal(t, check.Note, finding.Level, "step %d: %v", n, finding)
				}
				require.NotZero(t, chain.Documents())
			}
		})
	}
}

// An entry that a program makes is published as it is written.
func TestMadeEntries(t *testing.T) {
	for _, format := range []feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS} {
		p := newPublisher(newMemory())
		p.Format = format
		made := &feedhistory.Entry{ID: "urn:1", Updated: day, Links: feedhistory.Links{{Rel: "alternate", Href: "http://h/1"}}}
		require.NoError(t, p.Append(t.Context(), made, &feedhistory.Entry{ID: "urn:2", Updated: day, Head: &feedhistory.Document{Format: feedhistory.FormatJSONFeed}}))
		entries := fetch(t, p.Output.(*memory), p.URL()).Entries
		require.Len(t, entries, 2)
		for _, e := range entries {
			require.True(t, day.Equal(e.Updated))
		}
	}
}

// The error for an entry that cannot be published says why.
func TestConditions(t *testing.T) {
	for id, why := range map[string]string{
		" urn:1":     "white space",
		"urn:\x01":   "a character that XML does not allow",
		"urn:\xff":   "a character that XML does not allow",
		"urn:\ufffe": "a character that XML does not allow",
	} {
		err := newPublisher(newMemory()).Append(t.Context(), &feedhistory.Entry{ID: id, Updated: day})
		require.ErrorIs(t, err, ErrUnpublishable, "%q", id)
		require.ErrorContains(t, err, ErrUnpublishable.Error()+": ", "%q", id)
		require.ErrorContains(t, err, why, "%q", id)
	}
	err := newPublisher(newMemory()).Append(t.Context(), &feedhistory.Entry{ID: "urn:1", Updated: day.AddDate(10_000, 0, 0)})
	require.ErrorIs(t, err, ErrUnpublishable)
	require.ErrorContains(t, err, "time")
	require.ErrorContains(t, newPublisher(newMemory()).Delete(t.Context(), "", day), "a deletion needs an ID")
}

// A publisher without posts has a feed.
func TestEmptyFeed(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	require.NoError(t, p.Append(t.Context()))
	h := fetch(t, out, p.URL())
	require.Empty(t, h.Entries)
	require.Equal(t, feedhistory.VerdictWhole, h.Verdict())
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 1)...))
	require.Len(t, fetch(t, out, p.URL()).Entries, 1)
}
