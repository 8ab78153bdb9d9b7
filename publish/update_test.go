package publish

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/settings"
	"github.com/feedhistory/feedhistory/togofeed"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// served publishes into an output that a Handler serves, and fetches what
// readers get.
type served struct{ *Publisher }

func newServed(t testing.TB, out Output, format feedhistory.Format) *served {
	server := feedtest.Server(t, &Handler{FS: out})
	s := &served{}
	s.Publisher = &Publisher{Output: out, Base: server.URL, Format: format, Split: compose.Split{Size: 3}, Recent: -1}
	return s
}

func (s *served) fetch(t require.TestingT) *feedhistory.History {
	c := feedhistory.Client{AllowPrivate: true}
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
	for r, err := range Lines(strings.NewReader(lines), nil) {
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
	for _, format := range []feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS} {
		t.Run(string(format), func(t *testing.T) { testUpdate(t, format) })
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

	// Readers would ignore a deletion from before the published version.
	gone = feedhistory.Tombstone{Ref: "urn:4", When: find(h, "urn:4").Updated.Add(-time.Second)}
	update(Batch{Entries: few[1:2], Deleted: []feedhistory.Tombstone{gone}}, Report{Unchanged: 1, Missing: 1, Outdated: []string{"urn:4"}})
}

// An empty source deletes nothing, and a source that lacks much deletes only what
// MaxDeletions allows.
func TestUpdateBoundsDeletions(t *testing.T) {
	var lines []string
	for n := range 40 {
		lines = append(lines, fmt.Sprintf(`{"id": "urn:%d", "updated": "2003-12-13"}`, n))
	}
	source := func(n int) []*feedhistory.Entry { return records(t, strings.Join(lines[:n], "\n")) }
	s := newServed(t, newMemory(), feedhistory.FormatAtom)
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
		s := newServed(t, newMemory(), rapid.SampledFrom([]feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS}).Draw(r, "format"))
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
	for _, format := range []feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS} {
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
		if format == feedhistory.FormatRSS {
			assert.Contains(t, string(one.XML()), "<x:y>kept</x:y>")
		}
	}
}

func TestUpdateRefuses(t *testing.T) {
	s := newServed(t, Dir{Path: t.TempDir()}, feedhistory.FormatAtom)
	twice := append(records(t, someRecords), records(t, someRecords)...)
	_, err := s.Publish(t.Context(), Batch{Entries: twice})
	assert.ErrorContains(t, err, "two entries have the id urn:1")
	assert.Empty(t, s.files(t))
}

func TestLines(t *testing.T) {
	entries := records(t, "\ufeff"+someRecords+`{"id": "x", "title": null, "weak_id": false, "else": [1]}`)
	require.Len(t, entries, 5)
	assert.Equal(t, "html", entries[0].Content().Type)
	assert.Equal(t, "https://example.org/1/", entries[0].Content().Base)
	assert.Equal(t, entries[0].Published, entries[0].Updated)
	assert.Equal(t, "2003-12-14T18:30:02.5+01:00", entries[1].Updated.Format(time.RFC3339Nano))
	item, err := togofeed.Item(entries[1])
	require.NoError(t, err)
	assert.Equal(t, "Bob", item.Authors[1].Name)
	assert.Equal(t, []string{"a", "B"}, item.Categories)
	assert.Equal(t, "alternate", entries[2].Links[0].Rel)
	assert.Equal(t, "Sum & total", entries[3].Summary().Body)
	for line, want := range map[string]string{
		`x`:                       "line 3: not an entry in JSON",
		`{"title": "One"}`:        "line 3: the entry has no id",
		`{"id": 1}`:               "line 3: not an entry in JSON",
		`{"id": "a"} {"id": "b"}`: "line 3: not an entry in JSON",
		`{"id": "0"}`:             "line 3: the id 0 is already in line 1",
	} {
		var got error
		for _, err := range Lines(strings.NewReader(`{"id": "0"}`+"\n\n"+line), nil) {
			got = err
		}
		assert.ErrorContains(t, got, want)
	}
	endless := make([]byte, settings.MaxLine+1)
	_, err = ReadLine(endless)
	assert.ErrorContains(t, err, "it is longer than 256 MiB")
	for _, err := range Lines(io.MultiReader(strings.NewReader("\n\n"), bytes.NewReader(endless)), nil) {
		assert.ErrorContains(t, err, "line 3: it is longer than 256 MiB")
	}
	for r, err := range Lines(strings.NewReader(`{"id": "long", "title": "`+strings.Repeat("x", 33<<20)+`"}`), nil) { // escapes can make it so
		require.NoError(t, err)
		assert.Equal(t, "long", r.ID)
	}
	_, err = (&Line{EntryJSON: compose.EntryJSON{ID: "urn:1", Updated: "yesterday"}}).Entry()
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
		for _, r := range feedtest.All(t, Lines(strings.NewReader(line), nil)) {
			assert.Equal(t, want, r.Deleted, line)
		}
	}
}

// Any missing archive is written again, byte for byte, if the source has its
// content: at each position in the chain, whatever else is new. A run that is not long has
// all numbers of new entries at the ends of the chain, and one of them at each place between.
func TestRestored(t *testing.T) {
	for _, format := range []feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS} {
		for _, split := range []compose.Split{{Size: 3}, {Period: compose.Day}} {
			out := newMemory()
			publisher := func() *Publisher {
				p := newPublisher(out)
				p.Format, p.Split = format, split
				return p
			}
			all := entries(t, 1, 60)
			for n := 5; n <= len(all); n += 5 { // step by step, as a site grows
				_, err := publisher().Publish(t.Context(), Batch{Entries: all[:n]})
				require.NoError(t, err)
			}
			before := out.clone()
			names := archives(t, publisher())
			for i, a := range names {
				for j, more := range []int{0, 2, 40} {
					if 0 < i && i < len(names)-1 && i%3 != j && !feedtest.LongRun() {
						continue
					}
					t.Run(fmt.Sprint(format, split, i, "+", more), func(t *testing.T) {
						out = before.clone()
						out.drop(a.name)
						p := publisher()
						p.Head = &feedhistory.Document{Title: "Another title", ID: "urn:blog"}
						report, err := p.Publish(t.Context(), Batch{Entries: append(all[:len(all):len(all)], entries(t, 100, more)...)})
						require.NoError(t, err)
						require.Equal(t, []string{a.name}, report.Restored)
						require.Empty(t, report.Lost)
						require.Equal(t, more, report.New)
						if i > 0 || more == 0 { // the newest one may have gained a successor
							require.True(t, bytes.Equal(before.texts()[a.name], out.texts()[a.name]))
						}
						checkChain(t, out, p)
						require.Len(t, fetch(t, out, p.URL()).Entries, len(all)+more)
					})
				}
			}
		}
	}
}

// An entry published before its format carried elements of other formats has not changed.
func TestPublishedUncarried(t *testing.T) {
	doc, err := feedhistory.Parse(strings.NewReader(`<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>F</title><entry xml:lang="de"><id>urn:1</id><title>a &lt;b&gt;T&lt;/b&gt;</title>`+
		`<updated>2003-12-13T18:30:02Z</updated><author><name>Ann</name><uri>http://a.example/ann</uri></author><contributor><name>Bob</name></contributor>`+
		`<rights>R</rights><category term="c" label="C"/><link href="http://a.example/1"/><x:y xmlns:x="urn:x">Z</x:y></entry></feed>`), "http://a.example/feed")
	require.NoError(t, err)
	out := newMemory()
	publish := func() *Report {
		p := newPublisher(out)
		p.Format, p.Split = feedhistory.FormatRSS, compose.Split{}
		report, err := p.Publish(t.Context(), Batch{Entries: doc.Entries})
		require.NoError(t, err)
		return report
	}
	require.Equal(t, 1, publish().New)
	carried := regexp.MustCompile(`(?s)<atom:category [^>]*>\n|<(author|dc:contributor|dc:rights) xmlns.*?</(author|dc:contributor|dc:rights)>\n`)
	for name, file := range out.files {
		item := strings.Index(string(file.Data), "<item")
		require.Len(t, carried.FindAll(file.Data[item:], -1), 4, "%s", file.Data)
		text := string(file.Data[:item]) + string(carried.ReplaceAll(file.Data[item:], nil))
		require.Contains(t, text, "<title>a &amp;lt;b&amp;gt;T")
		text = strings.Replace(text, ` form="3"`, "", 1) // the feed began in the first form
		text = strings.Replace(text, `<dc:language xmlns:dc="http://purl.org/dc/elements/1.1/">de</dc:language>`+"\n", "", 1)
		file.Data = []byte(strings.ReplaceAll(text, "&amp;", "&"))
		out.files[name] = file
	}
	require.Equal(t, &Report{Unchanged: 1}, publish())
}

// An archive whose content is no longer known is reported. Older entries do not
// count as new, and those that the source has are published again, once.
func TestLost(t *testing.T) {
	out := newMemory()
	all := entries(t, 1, 30)
	_, err := newPublisher(out).Publish(t.Context(), Batch{Entries: all})
	require.NoError(t, err)
	gone := archives(t, newPublisher(out))[4]
	out.drop(gone.name)
	edited := append([]*feedhistory.Entry{}, all...)
	for i, e := range edited {
		if e.ID == gone.doc.Entries[1].ID {
			edited[i] = entry(t, e.ID, e.Updated.Add(time.Minute), "edited")
		}
	}
	names := len(out.texts())
	for round := range 3 {
		report, err := newPublisher(out).Publish(t.Context(), Batch{Entries: edited})
		require.NoError(t, err)
		require.Equal(t, []string{gone.name}, report.Lost)
		require.Empty(t, report.Restored)
		if round == 0 {
			require.Equal(t, 3, report.New)
		} else {
			require.Zero(t, report.New)
		}
		require.Zero(t, report.Changed)
		require.NotContains(t, out.texts(), gone.name, "no other bytes under its name")
	}
	require.LessOrEqual(t, len(out.texts()), names+1)

	// An archive that was removed for good, with everything older, is only
	// reported.
	chain, err := at(newPublisher(out)).published()
	require.NoError(t, err)
	for name := range out.texts() {
		if name != chain.prev && archiveName.MatchString(name) {
			out.drop(name)
		}
	}
	report, err := newPublisher(out).Publish(t.Context(), Batch{Entries: edited[27:]})
	require.NoError(t, err)
	require.Len(t, report.Lost, 1)
}

// An entry that is dated in the future neither ends a period nor begins one:
// over many rounds archives are closed as they would be without it, do not
// change except for next-archive, and the subscription document does not grow. A run that is
// not long has each two of the three circumstances together once.
func TestFuture(t *testing.T) {
	for i, ahead := range []time.Duration{50 * 365 * 24 * time.Hour, 10 * 24 * time.Hour} {
		for j, split := range []compose.Split{{Period: compose.Day}, {Period: compose.Month}, {Size: 10}} {
			for k, first := range []bool{true, false} {
				if (i+j+k)%2 == 0 || feedtest.LongRun() {
					t.Run(fmt.Sprint(ahead, "/", split, "/", first), func(t *testing.T) { future(t, split, ahead, first) })
				}
			}
		}
	}
}

func future(t *testing.T, split compose.Split, ahead time.Duration, first bool) {
	with, without := newMemory(), newMemory()
	now := day
	archives, most := map[string][]byte{}, 0
	var all []*feedhistory.Entry
	for round := range 36 {
		now = now.Add(24 * time.Hour)
		var fresh []*feedhistory.Entry
		for i := range 3 {
			fresh = append(fresh, entry(t, fmt.Sprintf("e%d-%d", round, i), now.Add(time.Duration(i-3)*time.Hour), "text"))
		}
		ahead := entry(t, "ahead", day.Add(25*time.Hour).Add(ahead), "ahead of its time")
		for _, out := range []*memory{with, without} {
			p := newPublisher(out)
			p.Split = split
			entries := append(all, fresh...)
			if out == with && (first || round > 3) {
				entries = append(entries, ahead)
			}
			_, err := p.Publish(t.Context(), Batch{Entries: entries, Now: now})
			require.NoError(t, err)
		}
		all = append(all, fresh...)
		for name, data := range with.texts() {
			if !archiveName.MatchString(name) {
				continue
			}
			if before, ok := archives[name]; ok && !bytes.Equal(before, data) {
				old, err := setNext(string(data), "", feedhistory.FormatAtom)
				require.NoError(t, err)
				before, err := setNext(string(before), "", feedhistory.FormatAtom)
				require.NoError(t, err)
				require.Equal(t, before, old, name)
			}
			archives[name] = data
		}
		for name := range archives {
			require.Contains(t, with.texts(), name)
		}
		most = max(most, len(without.texts()["feed.atom"]))
		require.Less(t, len(with.texts()["feed.atom"]), most+2000, "round %d", round)
		require.InDelta(t, len(without.texts()), len(with.texts()), 1, "round %d", round)
		h := fetch(t, with, newPublisher(with).URL())
		want := len(all)
		if first || round > 3 {
			want++
		}
		require.Len(t, h.Entries, want)
	}
}

// publishRich publishes a rich document in archives of one entry.
func publishRich(t *testing.T, out *memory, name string, format feedhistory.Format) *Report {
	t.Helper()
	text, err := os.ReadFile("../testdata/rich/feed." + name)
	require.NoError(t, err)
	p := &Publisher{Output: out, Base: "https://example.org/", Format: format, Split: compose.Split{Size: 1}}
	doc, err := feedhistory.Parse(bytes.NewReader(text), p.URL())
	require.NoError(t, err)
	p.Head = doc.Head()
	p.Head.Links = nil
	report, err := p.Publish(t.Context(), Batch{Entries: doc.Entries, Shown: len(doc.Entries)})
	require.NoError(t, err)
	return report
}

// A head that is read and written again stays the same, in each format, so an unchanged source
// writes nothing, and a lost archive is restored.
func TestRichHeadsStay(t *testing.T) {
	for _, name := range []string{"atom", "atom03", "rdf"} {
		for _, format := range []feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS} {
			t.Run(name+" in "+string(format), func(t *testing.T) {
				out := newMemory()
				n := publishRich(t, out, name, format).New
				before := out.texts()
				require.Equal(t, &Report{Unchanged: n}, publishRich(t, out, name, format))
				require.Equal(t, before, out.texts())
				lost := ""
				for file := range before {
					if strings.Contains(file, "/2-") {
						lost = file
					}
				}
				out.drop(lost)
				require.Equal(t, []string{lost}, publishRich(t, out, name, format).Restored)
				require.Equal(t, before, out.texts())
			})
		}
	}
}

// Feeds that the versions of the first and of the second form began, at the commits 4a7bc3f9 and
// c3990f89, have not changed, and no archive is written again.
func TestForms(t *testing.T) {
	for _, dir := range feedtest.Glob(t, "testdata/forms/*/*") {
		t.Run(dir, func(t *testing.T) {
			out := newMemory()
			for _, pattern := range []string{"/*.*", "/feed/*.*"} {
				for _, file := range feedtest.Glob(t, dir+pattern) {
					name := strings.TrimPrefix(filepath.ToSlash(file), filepath.ToSlash(dir)+"/")
					require.NoError(t, out.Put(t.Context(), name, feedtest.ReadFile(t, file)))
				}
			}
			before := out.texts()
			doc, format, _ := strings.Cut(filepath.Base(dir), "-in-")
			report := publishRich(t, out, doc, feedhistory.Format(format))
			require.Zero(t, report.New+report.Changed+report.Archives)
			for name, text := range before {
				if strings.Contains(name, "/") {
					require.Equal(t, text, out.texts()[name], name)
				}
			}
		})
	}
}
