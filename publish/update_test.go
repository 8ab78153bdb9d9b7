package publish

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// served publishes into an output that a Handler serves, and fetches what
// readers get.
type served struct{ *Publisher }

func newServed(t testing.TB, out Output, format feedhistory.Format) *served {
	server := feedtest.Server(t, &Handler{FS: out})
	s := &served{}
	s.Publisher = &Publisher{Output: out, Base: server.URL, Format: format, Split: feedhistory.Split{Size: 3}, Recent: -1}
	return s
}

func (s *served) fetch(t require.TestingT) *feedhistory.History {
	c := feedhistory.Client{Policy: feedhistory.Policy{AllowPrivate: true}}
	defer c.CloseIdle()
	h, err := c.Fetch(&testContext{}, s.URL())
	require.NoError(t, err)
	require.Empty(t, h.Gaps)
	return h
}

// A testContext never ends.
type testContext struct{}

func (testContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (testContext) Done() <-chan struct{}       { return nil }
func (testContext) Err() error                  { return nil }
func (testContext) Value(any) any               { return nil }

// files returns the published documents by name.
func (s *served) files(t require.TestingT) map[string]string {
	files := map[string]string{}
	if _, err := fs.Stat(s.Output, "."); err != nil {
		return files // nothing has been published yet
	}
	require.NoError(t, fs.WalkDir(s.Output, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		data, err := fs.ReadFile(s.Output, name)
		files[name] = string(data)
		return err
	}))
	return files
}

func records(t require.TestingT, lines string) (entries []*feedhistory.Entry) {
	for r, err := range Lines(strings.NewReader(lines)) {
		require.NoError(t, err)
		e, err := r.Entry()
		require.NoError(t, err)
		entries = append(entries, e)
	}
	return entries
}

const someRecords = `
{"id": "urn:1", "title": "One", "published": "2003-12-13", "content": {"type": "html", "body": "<a href='x'>x</a>", "base": "https://example.org/1/"}}
{"id": "urn:2", "title": {"type": "html", "body": "<b>Two</b>"}, "updated": "2003-12-14T18:30:02.5+01:00", "authors": ["Ann", {"name": "Bob", "email": "bob@example.org"}], "categories": ["a", {"term": "b", "label": "B"}]}
{"id": "urn:3", "title": "Three", "links": [{"href": "https://example.org/3"}, {"rel": "enclosure", "href": "https://example.org/3.mp3", "type": "audio/mpeg", "length": "3"}]}
{"id": "urn:4", "title": "Four", "updated": "2003-12-15", "summary": "Sum & total"}
`

func TestUpdate(t *testing.T) {
	for _, format := range []feedhistory.Format{feedhistory.Atom, feedhistory.RSS} {
		t.Run(format.String(), func(t *testing.T) { testUpdate(t, format) })
	}
}

func testUpdate(t *testing.T, format feedhistory.Format) {
	s := newServed(t, Dir{Path: t.TempDir()}, format)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	update := func(u Batch, want Report) {
		t.Helper()
		now = now.Add(time.Hour)
		u.Now = now
		got, err := s.Publish(t.Context(), u)
		require.NoError(t, err)
		require.Equal(t, want, *got)
	}
	update(Batch{}, Report{})
	assert.Empty(t, s.files(t), "a feed begins with its first entry")

	update(Batch{Entries: records(t, someRecords)}, Report{New: 4, Dated: 1, Archives: 1})
	assert.Equal(t, []string{"urn:3", "urn:4", "urn:2", "urn:1"}, pageIDs(s.fetch(t).Entries))

	// The same again does not change a byte.
	before := s.files(t)
	update(Batch{Entries: records(t, someRecords), DeleteMissing: true}, Report{Unchanged: 4})
	assert.Equal(t, before, s.files(t))

	// Edits without a newer time get one, so that readers notice.
	edited := strings.NewReplacer("Two", "Zwei", "Three", "Drei").Replace(someRecords)
	edited = strings.Replace(edited, `"2003-12-15"`, `"2003-12-16"`, 1)
	update(Batch{Entries: records(t, edited)}, Report{Changed: 3, Dated: 2, Unchanged: 1, Archives: 1})
	update(Batch{Entries: records(t, edited)}, Report{Unchanged: 4})
	h := s.fetch(t)
	assert.Equal(t, "Zwei", find(h, "urn:2").Title().Plain())
	assert.Equal(t, "Drei", find(h, "urn:3").Title().Plain())
	assert.Equal(t, now.Add(-time.Hour), find(h, "urn:3").Updated.UTC())
	assert.Equal(t, "2003-12-16T00:00:00Z", find(h, "urn:4").Updated.Format(time.RFC3339))

	// Entries that are gone from the source are kept, unless they are to be
	// deleted.
	few := records(t, edited)[1:]
	update(Batch{Entries: few}, Report{Unchanged: 3, Missing: 1})
	update(Batch{Entries: few, DeleteMissing: true}, Report{Unchanged: 3, Deleted: 1})
	update(Batch{Entries: few, DeleteMissing: true}, Report{Unchanged: 3})
	h = s.fetch(t)
	assert.Len(t, h.Entries, 3)
	assert.Equal(t, "urn:1", h.Deleted[0].Ref)

	// An entry comes back, with a time after its deletion.
	update(Batch{Entries: records(t, edited)}, Report{New: 1, Dated: 1, Unchanged: 3})
	h = s.fetch(t)
	assert.Len(t, h.Entries, 4)
	assert.Equal(t, now, find(h, "urn:1").Updated.UTC())
	update(Batch{Entries: records(t, edited)}, Report{Unchanged: 4})
	gone := feedhistory.Tombstone{Ref: "urn:2", When: now}
	update(Batch{Entries: few[1:], Deleted: []feedhistory.Tombstone{gone, {Ref: "urn:unheard-of"}}},
		Report{Unchanged: 2, Deleted: 1, Missing: 1})
}

// An empty source deletes nothing, and a source that lacks much deletes only what
// MaxDeletions allows.
func TestUpdateBoundsDeletions(t *testing.T) {
	var lines []string
	for n := range 40 {
		lines = append(lines, fmt.Sprintf(`{"id": "urn:%d", "updated": "2003-12-13"}`, n))
	}
	source := func(n int) []*feedhistory.Entry { return records(t, strings.Join(lines[:n], "\n")) }
	s := newServed(t, newMemory(), feedhistory.Atom)
	_, err := s.Publish(t.Context(), Batch{Entries: source(40)})
	require.NoError(t, err)
	before := s.files(t)
	for _, most := range []int{0, 40, -1} {
		_, err = s.Publish(t.Context(), Batch{DeleteMissing: true, MaxDeletions: most})
		require.ErrorIs(t, err, ErrEmptySource)
	}
	for left, most := range map[int]int{31: 0, 38: 1, 3: 36} {
		_, err = s.Publish(t.Context(), Batch{Entries: source(left), DeleteMissing: true, MaxDeletions: most})
		many := new(TooManyDeletionsError)
		require.ErrorAs(t, err, &many)
		require.Equal(t, TooManyDeletionsError{Missing: 40 - left, Published: 40}, *many)
	}
	require.Equal(t, before, s.files(t))

	// Deletions that the source names are its own word.
	var named []feedhistory.Tombstone
	for n := 32; n < 40; n++ {
		named = append(named, feedhistory.Tombstone{Ref: fmt.Sprint("urn:", n)})
	}
	done, err := s.Publish(t.Context(), Batch{Entries: source(26), Deleted: named, DeleteMissing: true})
	require.NoError(t, err)
	require.Equal(t, Report{Unchanged: 26, Deleted: 14, Archives: done.Archives}, *done)
	for _, step := range []struct{ left, most int }{{21, 0}, {9, 12}, {1, -1}} {
		_, err = s.Publish(t.Context(), Batch{Entries: source(step.left), DeleteMissing: true, MaxDeletions: step.most})
		require.NoError(t, err)
	}
}

func find(h *feedhistory.History, id string) *feedhistory.Entry {
	i := slices.IndexFunc(h.Entries, func(e *feedhistory.Entry) bool { return e.ID == id })
	return h.Entries[i]
}

// Whatever a source has at each of many updates, readers have the same
// afterwards, and a second update finds nothing to do.
func TestUpdateModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := newServed(t, newMemory(), rapid.SampledFrom([]feedhistory.Format{feedhistory.Atom, feedhistory.RSS}).Draw(r, "format"))
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for range rapid.IntRange(1, 5).Draw(r, "updates") {
			source := rapid.MapOfN(rapid.IntRange(1, 6), rapid.IntRange(0, 99), 1, 6).Draw(r, "source")
			var lines strings.Builder
			want := map[string]string{}
			for id, n := range source {
				want[fmt.Sprintf("urn:%d", id)] = fmt.Sprint("Title ", n%3)
				fmt.Fprintf(&lines, `{"id": "urn:%d", "title": "Title %d"`, id, n%3)
				if n%4 > 0 {
					fmt.Fprintf(&lines, `, "%s": "2003-12-%02d"`, []string{"published", "updated"}[n%2], n%28+1)
				}
				lines.WriteString("}\n")
			}
			now = now.Add(time.Minute)
			u := Batch{Entries: records(r, lines.String()), DeleteMissing: true, Now: now}
			_, err := s.Publish(r.Context(), u)
			require.NoError(r, err)
			got := map[string]string{}
			for _, e := range s.fetch(r).Entries {
				got[e.ID] = e.Title().Plain()
			}
			require.Equal(r, want, got)

			before := maps.Clone(s.files(r))
			u.Now = now.Add(time.Second)
			again, err := s.Publish(r.Context(), u)
			require.NoError(r, err)
			require.Equal(r, Report{Unchanged: len(source)}, *again)
			require.Equal(r, before, s.files(r))
		}
	})
}

// Entries of another feed keep their own XML, except for a time that must be
// set: an RSS feed that a site's generator makes has no other sign of an edit.
func TestUpdateFromFeed(t *testing.T) {
	const text = `<rss version="2.0" xmlns:x="urn:x"><channel><title>Feed</title><lastBuildDate>%s</lastBuildDate>
<item><guid>urn:1</guid><title>%s</title><pubDate>Sat, 13 Dec 2003 18:30:02 GMT</pubDate><x:y>kept</x:y></item>
<item><guid>urn:2</guid><title>Undated</title></item></channel></rss>`
	parseFeed := func(built, title string) []*feedhistory.Entry {
		doc, err := feedhistory.Parse(strings.NewReader(fmt.Sprintf(text, built, title)), "https://example.org/index.xml")
		require.NoError(t, err)
		return doc.Entries
	}
	for _, format := range []feedhistory.Format{feedhistory.Atom, feedhistory.RSS} {
		s := newServed(t, Dir{Path: t.TempDir()}, format)
		_, err := s.Publish(t.Context(), Batch{Entries: parseFeed("Mon, 1 Jan 2024 00:00:00 GMT", "One")})
		require.NoError(t, err)
		again, err := s.Publish(t.Context(), Batch{Entries: parseFeed("Tue, 2 Jan 2024 00:00:00 GMT", "One")})
		require.NoError(t, err)
		assert.Equal(t, Report{Unchanged: 2}, *again, "a build is no change")
		edited, err := s.Publish(t.Context(), Batch{Entries: parseFeed("Wed, 3 Jan 2024 00:00:00 GMT", "One, edited")})
		require.NoError(t, err)
		assert.Equal(t, Report{Changed: 1, Dated: 1, Unchanged: 1}, *edited)
		one := find(s.fetch(t), "urn:1")
		assert.Equal(t, "One, edited", one.Title().Plain())
		assert.Equal(t, 2003, one.Published.Year())
		if format == feedhistory.RSS {
			assert.Contains(t, string(one.XML()), "<x:y>kept</x:y>")
		}
	}
}

func TestUpdateRefuses(t *testing.T) {
	s := newServed(t, Dir{Path: t.TempDir()}, feedhistory.Atom)
	twice := append(records(t, someRecords), records(t, someRecords)...)
	_, err := s.Publish(t.Context(), Batch{Entries: twice})
	assert.ErrorContains(t, err, "two entries have the id urn:1")
	assert.Empty(t, s.files(t))
}

func TestLines(t *testing.T) {
	entries := records(t, "\ufeff"+someRecords+`{"id": "x", "title": null, "weak_id": false, "else": [1]}`)
	require.Len(t, entries, 5)
	assert.Equal(t, feedhistory.TextHTML, entries[0].Content().Type)
	assert.Equal(t, "https://example.org/1/", entries[0].Content().Base)
	assert.Equal(t, entries[0].Published, entries[0].Updated)
	assert.Equal(t, "2003-12-14T18:30:02.5+01:00", entries[1].Updated.Format(time.RFC3339Nano))
	item, err := entries[1].Decode()
	require.NoError(t, err)
	assert.Equal(t, "Bob", item.Authors[1].Name)
	assert.Equal(t, []string{"a", "B"}, item.Categories)
	assert.Equal(t, feedhistory.RelAlternate, entries[2].Links[0].Rel)
	assert.Equal(t, "Sum & total", entries[3].Summary().Body)
	for line, want := range map[string]string{
		`x`:                                "line 3: not an entry in JSON",
		`{"title": "One"}`:                 "line 3: the entry has no id",
		`{"id": 1}`:                        "line 3: not an entry in JSON",
		`{"id": "a"} {"id": "b"}`:          "line 3: not an entry in JSON",
		`{"id": "0"}`:                      "line 3: the id 0 is already in line 1",
		strings.Repeat("x", maxDocument+1): "line 3: it is longer than 33554432 bytes",
	} {
		var got error
		for _, err := range Lines(strings.NewReader(`{"id": "0"}` + "\n\n" + line)) {
			got = err
		}
		assert.ErrorContains(t, got, want)
	}
	_, err = (&Line{EntryJSON: feedhistory.EntryJSON{ID: "urn:1", Updated: "yesterday"}}).Entry()
	assert.ErrorContains(t, err, `updated is not a time such as 2003-12-13T18:30:02Z: "yesterday"`)
}

func TestLineDeletion(t *testing.T) {
	for line, want := range map[string]LineDeletion{
		`{"id": "1"}`:                                      {},
		`{"id": "1", "deleted": false}`:                    {},
		`{"id": "1", "deleted": null}`:                     {},
		`{"id": "1", "deleted": true}`:                     {Deleted: true},
		`{"id": "1", "deleted": "2003-12-13T18:30:02.5Z"}`: {true, time.Date(2003, 12, 13, 18, 30, 2, 5e8, time.UTC)},
	} {
		for _, r := range feedtest.All(t, Lines(strings.NewReader(line))) {
			assert.Equal(t, want, r.Deleted, line)
		}
	}
}
