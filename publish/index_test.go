package publish

import (
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A twin publishes into two outputs: one with an index, in parts of a few entries and with most items
// in a temporary file, and one whose archives are read at each call.
type twin struct {
	t       *rapid.T
	out     [2]*memory
	split   compose.Split
	format  feedhistory.Format
	now     time.Time
	dropped map[string]string
	missed  map[string]bool // what was ever dropped
}

func (w *twin) publisher(i int) *Publisher {
	p := newPublisher(w.out[i])
	p.Split, p.Format = w.split, w.format
	p.least, p.most, p.mostQueued = 1+i*math.MaxInt32, 8, 3000
	if i == 1 {
		p.most, p.mostQueued = math.MaxInt32, math.MaxInt32
	}
	return p
}

// both requires that a call has the same result with and without an index.
func (w *twin) both(call func(p *Publisher) (*Report, error)) {
	indexed, err := call(w.publisher(0))
	plain, wantErr := call(w.publisher(1))
	require.Equal(w.t, fmt.Sprint(wantErr), fmt.Sprint(err))
	require.Equal(w.t, plain, indexed)
	require.Equal(w.t, w.out[1].texts(), w.out[0].texts())
	for name := range w.out[0].files {
		if archive := archiveOf(name); !w.missed[archive] {
			require.Contains(w.t, w.out[0].files, archive, "a part of the index without its archive")
		}
	}
}

// entries draws entries whose ids, times and texts often repeat.
func (w *twin) entries(most int) (all []*feedhistory.Entry) {
	for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 40), 0, most, rapid.ID).Draw(w.t, "ids") {
		d := compose.Draft{ID: fmt.Sprint("urn:", n), Updated: day.Add(time.Duration(rapid.IntRange(0, 60).Draw(w.t, "hour")) * time.Hour)}
		d.Title.Body = rapid.SampledFrom([]string{"One", "Two"}).Draw(w.t, "title")
		d.Links = feedhistory.Links{{Rel: "alternate", Href: fmt.Sprint("https://example.org/", rapid.IntRange(0, 30).Draw(w.t, "page"))}}
		e, err := d.Entry()
		require.NoError(w.t, err)
		all = append(all, e)
	}
	return all
}

// archive draws the name of an archive; "" if there is none.
func (w *twin) archive() string {
	names := slices.DeleteFunc(w.out[1].Names(), func(name string) bool { return !archiveName.MatchString(name) })
	if len(names) == 0 {
		return ""
	}
	return rapid.SampledFrom(names).Draw(w.t, "archive")
}

func (w *twin) publish(*rapid.T) {
	w.now = w.now.Add(time.Hour)
	u := Batch{Entries: w.entries(30), Now: w.now, MaxDeletions: rapid.IntRange(-1, 5).Draw(w.t, "most")}
	u.DeleteMissing = rapid.IntRange(0, 3).Draw(w.t, "missing") == 0
	for _, n := range rapid.SliceOfN(rapid.IntRange(0, 40), 0, 2).Draw(w.t, "deleted") {
		u.Deleted = append(u.Deleted, feedhistory.Tombstone{Ref: fmt.Sprint("urn:", n), When: day.Add(30 * time.Hour)})
	}
	w.both(func(p *Publisher) (*Report, error) { return p.Publish(w.t.Context(), u) })
}

func (w *twin) again(*rapid.T) {
	var all []*feedhistory.Entry
	if h, err := publishedDocument(w.publisher(1)); err == nil {
		all = h.Entries
	}
	for _, name := range w.out[1].Names() {
		if a, err := at(w.publisher(1)).archive(name); err == nil && archiveName.MatchString(name) {
			all = append(all, a.doc.Entries...)
		}
	}
	slices.SortFunc(all, func(a, b *feedhistory.Entry) int {
		return strings.Compare(a.ID+a.Updated.String(), b.ID+b.Updated.String())
	})
	slices.Reverse(all)
	all = slices.CompactFunc(all, func(a, b *feedhistory.Entry) bool { return a.ID == b.ID })
	w.both(func(p *Publisher) (*Report, error) { return p.Publish(w.t.Context(), Batch{Entries: all, Now: w.now}) })
}

func (w *twin) append(*rapid.T) {
	all := w.entries(5)
	for i := range all {
		w.now = w.now.Add(time.Hour)
		all[i], _ = w.publisher(1).dated(all[i], w.now)
	}
	w.both(func(p *Publisher) (*Report, error) { return nil, p.Append(w.t.Context(), all...) })
}

func (w *twin) erase(*rapid.T) {
	id := fmt.Sprint("urn:", rapid.IntRange(0, 40).Draw(w.t, "id"))
	w.both(func(p *Publisher) (*Report, error) { return nil, p.Erase(w.t.Context(), id) })
}

// lose removes an archive, or puts it back.
func (w *twin) lose(*rapid.T) {
	if names := slices.Sorted(maps.Keys(w.dropped)); len(names) > 0 {
		for _, out := range w.out {
			out.replace(names[0], w.dropped[names[0]])
		}
		delete(w.dropped, names[0])
		return
	}
	if name := w.archive(); name != "" {
		w.dropped[name], w.missed[name] = string(w.out[1].files[name].Data), true
		for _, out := range w.out {
			out.drop(name)
		}
	}
}

// edit changes an archive, as somebody who is no Publisher would.
func (w *twin) edit(*rapid.T) {
	if name := w.archive(); name != "" {
		text := strings.ReplaceAll(string(w.out[1].files[name].Data), ">One<", ">Three<")
		for _, out := range w.out {
			out.replace(name, text)
			delete(out.names, name)
		}
	}
}

// damage changes or removes a part of the index.
func (w *twin) damage(*rapid.T) {
	for _, name := range w.out[0].Names() {
		file := w.out[0].files[name]
		if !strings.HasSuffix(name, indexSuffix) {
			continue
		}
		if rapid.Bool().Draw(w.t, "remove") {
			w.out[0].drop(name)
		} else {
			text := slices.Clone(file.Data)
			text[rapid.IntRange(0, len(text)-1).Draw(w.t, "at")] ^= 4
			w.out[0].replace(name, string(text))
		}
		return
	}
}

func (w *twin) cut(*rapid.T) {
	w.split = rapid.SampledFrom([]compose.Split{{Size: 1}, {Size: 3}, {Period: compose.Day}, {Period: compose.Month}}).Draw(w.t, "split")
}

// TestIndex checks that the index changes no result: whatever is published, erased, lost, edited or
// damaged, a Publisher with an index does the same as one that reads all archives.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &twin{t: t, out: [2]*memory{newMemory(), newMemory()}, split: compose.Split{Size: 3}, now: day.Add(100 * time.Hour), dropped: map[string]string{}, missed: map[string]bool{}}
		w.format = rapid.SampledFrom([]feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS}).Draw(t, "format")
		t.Repeat(map[string]func(*rapid.T){
			"publish": w.publish, "publish more": w.publish, "publish again": w.again, "append": w.append,
			"erase": w.erase, "lose": w.lose, "edit": w.edit, "damage": w.damage, "cut": w.cut,
		})
	})
}

// An opener notes which documents are opened.
type opener struct {
	*memory
	opened []string
}

func (o *opener) Open(name string) (fs.File, error) {
	if archiveName.MatchString(name) {
		o.opened = append(o.opened, name)
	}
	return o.memory.Open(name)
}

// One more entry opens no archive, and a source that has not changed opens each once.
func TestIndexOpensFewArchives(t *testing.T) {
	out := &opener{memory: newMemory()}
	p := func() *Publisher { return &Publisher{Output: out, Base: base, Split: compose.Split{Size: 10}} }
	all := manyEntries(t, 0, 2000)
	_, err := p().Publish(t.Context(), Batch{Entries: all})
	require.NoError(t, err)
	for n := range 30 {
		out.opened = nil
		report, err := p().Publish(t.Context(), Batch{Entries: manyEntries(t, 2000+n, 1)})
		require.NoError(t, err)
		require.Equal(t, Report{New: 1, Missing: 2000 + n, Archives: report.Archives}, *report)
		require.LessOrEqual(t, len(out.opened), leastIndexed)
	}
	out.opened = nil
	report, err := p().Publish(t.Context(), Batch{Entries: all})
	require.NoError(t, err)
	require.Equal(t, Report{Unchanged: 2000, Missing: 30}, *report)
	slices.Sort(out.opened)
	require.Len(t, slices.Compact(slices.Clone(out.opened)), len(out.opened))
	require.GreaterOrEqual(t, len(out.opened), 200)
}

// Source yields entries like Entries, of which most are in a temporary file, and Ended may refuse them.
func TestSource(t *testing.T) {
	for _, n := range []int{10, 8000} {
		all := manyEntries(t, 0, feedtest.Scaled(n, 10))
		want, got := newMemory(), newMemory()
		p := &Publisher{Output: want, Base: base, mostQueued: 100_000}
		_, err := p.Publish(t.Context(), Batch{Entries: slices.Clone(all)})
		require.NoError(t, err)
		slices.Reverse(all)
		source := func(err error) func(yield func(*feedhistory.Entry, error) bool) {
			return func(yield func(*feedhistory.Entry, error) bool) {
				for _, e := range all {
					if !yield(e, nil) {
						return
					}
				}
				if err != nil {
					yield(nil, err)
				}
			}
		}
		p = &Publisher{Output: got, Base: base, mostQueued: 100_000}
		_, err = p.Publish(t.Context(), Batch{Source: source(feedtest.ErrDisk)})
		require.ErrorIs(t, err, feedtest.ErrDisk)
		_, err = p.Publish(t.Context(), Batch{Source: source(nil), Ended: func(*Batch) error { return feedtest.ErrDisk }})
		require.ErrorIs(t, err, feedtest.ErrDisk)
		require.Empty(t, got.texts())
		gone := feedhistory.Tombstone{Ref: "tag:example.org,2003:none"}
		report, err := p.Publish(t.Context(), Batch{Source: source(nil), Ended: func(u *Batch) error {
			u.Deleted = append(u.Deleted, gone)
			return nil
		}})
		require.NoError(t, err)
		require.Equal(t, len(all), report.New)
		require.Equal(t, want.texts(), got.texts())
	}
}
