package publish

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// shownIDs returns the ids in the subscription document, newest first.
func shownIDs(t require.TestingT, p *Publisher) (ids []string) {
	doc, err := publishedDocument(p)
	require.NoError(t, err)
	for _, e := range doc.Entries {
		ids = append(ids, e.ID)
	}
	return ids
}

func publishedDocument(p *Publisher) (*feedhistory.Document, error) {
	f, err := p.Output.Open(p.name())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return feedhistory.Parse(f, p.URL())
}

// A reader that follows no archives, and reads at least after every tenth call or
// every third day, misses nothing, whatever bursts come and whoever publishes
// them. Nor does it find fewer entries than the source shows.
func TestRecent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		out := newMemory()
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		size := rapid.SampledFrom([]int{1, 3, 20, 100}).Draw(t, "archive")
		recent, source := rapid.SampledFrom([]int{0, 5, 50}).Draw(t, "recent"), rapid.SampledFrom([]int{0, 30}).Draw(t, "source")
		format := rapid.SampledFrom([]feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS}).Draw(t, "format")
		n, had, asleep, slept := 0, 0, 0, now
		for call := range rapid.IntRange(1, 16).Draw(t, "calls") {
			p := newPublisher(out)
			p.Recent, p.Split.Size, p.Format = recent, size, format
			now = now.Add(time.Duration(rapid.SampledFrom([]int{1, 600, 20_000, 100_000}).Draw(t, "seconds")) * time.Second)
			burst := rapid.SampledFrom([]int{0, 1, 3, 25, 60}).Draw(t, "burst")
			var all []*feedhistory.Entry
			for range burst {
				n++
				all = append(all, entry(t, fmt.Sprint("e", n), day.Add(time.Duration(n)*time.Hour), "x"))
			}
			_, err := p.Publish(t.Context(), Batch{Entries: all, Now: now, Shown: source})
			require.NoError(t, err)
			if n == 0 {
				continue
			}
			ids := shownIDs(t, p)
			require.GreaterOrEqual(t, len(ids), min(n, max(feedtime.LeastShown, recent, source)))
			if asleep++; had == 0 || asleep >= feedtime.RecentUpdates && now.Sub(slept) >= feedtime.RecentTime-2*time.Hour || rapid.Bool().Draw(t, "awake") {
				if had > 0 {
					for i := had + 1; i <= n; i++ {
						require.True(t, slices.Contains(ids, fmt.Sprint("e", i)), "call %d: e%d of e%d … e%d", call, i, had+1, n)
					}
				}
				had, asleep, slept = n, 0, now
			}
		}
	})
}

// What comes again in another order, after edits and deletions, is shown once.
func TestRecentEdited(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	p.Recent = 5
	for _, e := range entries(t, 1, 20) {
		require.NoError(t, p.Append(t.Context(), e))
		require.Equal(t, e.ID, shownIDs(t, p)[0])
	}
	require.NoError(t, p.Append(t.Context(), entry(t, "e18", day.Add(100*time.Hour), "changed")))
	require.NoError(t, p.Delete(t.Context(), "e17", day.Add(100*time.Hour)))
	require.Len(t, fetch(t, out, p.URL()).Entries, 19)
	require.Equal(t, []string{"e18", "e20", "e19", "e16"}, shownIDs(t, p)[:4])
	require.Len(t, shownIDs(t, p), 19)
}

// A first call, a backlog and what is old do not make the document large, nor do
// large entries; and a call without entries changes nothing.
func TestRecentBounded(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	p.Recent = 0
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 90)...))
	require.Len(t, shownIDs(t, p), 20)
	p.Backlog = true
	require.NoError(t, p.Append(t.Context(), entries(t, 91, 90)...))
	require.Len(t, shownIDs(t, p), 20)
	p.Backlog = false
	for i := range 12 {
		_, err := p.Publish(t.Context(), Batch{Entries: entries(t, 181+3*i, 3), Now: day.Add(time.Duration(i) * 1000 * time.Hour)})
		require.NoError(t, err)
	}
	require.Len(t, shownIDs(t, p), 20+30)
	before := out.clone()
	_, err := p.Publish(t.Context(), Batch{Entries: entries(t, 181, 9), Now: day.Add(1e6 * time.Hour)})
	require.NoError(t, err)
	require.Equal(t, before.texts(), out.texts())

	var large []*feedhistory.Entry
	for i := range 90 {
		large = append(large, entry(t, fmt.Sprint("large", i), day.Add(time.Duration(1000+i)*time.Hour), strings.Repeat("long ", 10_000)))
	}
	require.NoError(t, p.Append(t.Context(), large...))
	doc, err := publishedDocument(p)
	require.NoError(t, err)
	require.Less(t, len(doc.Entries), 50)
	require.GreaterOrEqual(t, len(doc.Entries), 20)

	// What the source's own document shows is shown, however large it is.
	p = newPublisher(newMemory())
	p.Recent = 0
	_, err = p.Publish(t.Context(), Batch{Entries: large, Shown: len(large), Now: day.AddDate(1, 0, 0)})
	require.NoError(t, err)
	require.Len(t, shownIDs(t, p), len(large))

	p.Recent = -1
	require.NoError(t, p.Append(t.Context(), entry(t, "last", day.Add(9000*time.Hour), "x")))
	require.Equal(t, []string{"last"}, shownIDs(t, p))
}

// The history of another feed is shown as far as that feed's own document shows
// it.
func TestRecentOfHistory(t *testing.T) {
	theirs := newPublisher(newMemory())
	theirs.Recent, theirs.Split.Size = 33, 1
	require.NoError(t, theirs.Append(t.Context(), entries(t, 1, 90)...))
	h := fetch(t, theirs.Output, theirs.URL())
	require.Equal(t, 33, ShownIn(h))
	p := newPublisher(newMemory())
	p.Recent = 0
	publishHistory(t, p, h)
	require.Len(t, shownIDs(t, p), 33)
}

// A deed is a call on a Publisher, with its expected result.
type deed struct {
	call func(*Publisher) error
	into func(model)
}

// history is a short history with everything that writes: the first entry,
// closing the first archive, the second, two at once, a deletion, a correction,
// erasures, another split.
func history(t testing.TB) []deed {
	add := func(from, n int) deed {
		return deed{
			func(p *Publisher) error { return p.Append(t.Context(), entries(t, from, n)...) },
			func(m model) {
				for _, e := range entries(t, from, n) {
					m.put(e.ID, e.Updated, e.Title().Body)
				}
			},
		}
	}
	late := day.Add(50 * time.Hour)
	erase := func(ids ...string) deed {
		return deed{func(p *Publisher) error { return p.Erase(t.Context(), ids...) }, func(m model) {
			for _, id := range ids {
				m.erase(id)
			}
		}}
	}
	return []deed{
		add(1, 1), add(2, 2), add(4, 1), add(5, 9), add(14, 1), erase("e10", "e11", "e12"),
		{func(p *Publisher) error { return p.Delete(t.Context(), "e2", late) }, func(m model) { m.remove("e2", late) }},
		{
			func(p *Publisher) error { return p.Append(t.Context(), entry(t, "e4", late, "corrected")) },
			func(m model) { m.put("e4", late, "corrected") },
		},
		erase("e5"),
		{
			func(p *Publisher) error {
				p.Split = compose.Split{Period: compose.Day}
				return p.Append(t.Context(), entries(t, 60, 3)...)
			},
			func(m model) { add(60, 3).into(m) },
		},
		erase("e1"), add(70, 30),
		{
			func(p *Publisher) error {
				_, err := p.Publish(t.Context(), Batch{Entries: append(entries(t, 14, 1), entries(t, 200, 10)...)})
				return err
			},
			func(m model) { add(14, 1).into(m); add(200, 10).into(m) },
		},
		erase("e75"),
		{
			func(p *Publisher) error {
				_, err := p.Publish(t.Context(), Batch{Entries: entries(t, 200, 10), DeleteMissing: true, MaxDeletions: -1, Now: day.Add(400 * time.Hour)})
				return err
			},
			func(m model) {
				for _, id := range m.ids() {
					m.remove(id, day.Add(400*time.Hour))
				}
				add(200, 10).into(m)
			},
		},
	}
}

// TestEveryFault makes operations of a history fail, in every possible way: each one in a long run.
// Afterwards nothing that was acknowledged is missing, no link dangles, and the
// failed call took effect either whole or not at all. Then the call is
// repeated, and the history goes on.
func TestEveryFault(t *testing.T) {
	feedtest.Long(t)
	stride := feedtest.Stride(1)
	for i, how := range []feedtest.Failure{feedtest.FailsBefore, feedtest.FailsAfter, feedtest.Crashes, feedtest.Crashed} {
		n := 1 + i*stride/4
		for hit := true; hit; n += stride {
			hit = t.Run(fmt.Sprintf("%d/%d", how, n), func(t *testing.T) { hit = fault(t, how, n) }) && hit
		}
		require.Greater(t, n, 30)
	}
}

// fault makes the nth operation fail, and reports whether there was one.
func fault(t *testing.T, how feedtest.Failure, n int) (hit bool) {
	out, m := newMemory(), newModel()
	p := newPublisher(out)
	out.Fail = func(string) feedtest.Failure {
		if n--; n != 0 {
			return feedtest.Works
		}
		hit = true
		return how
	}
	for _, d := range history(t) {
		done := m.clone()
		d.into(done)
		if err := d.call(p); err != nil {
			require.ErrorIs(t, err, feedtest.ErrDisk)
			recoverFrom(t, out, p, m, done)
			if how == feedtest.Crashes || how == feedtest.Crashed {
				out = out.clone()
				p = &Publisher{Output: out, Base: base, Recent: p.Recent, Split: p.Split, least: p.least, most: p.most}
			}
			err = d.call(p)
			if !errors.Is(err, ErrNotPublished) { // what is already erased cannot be erased again
				require.NoError(t, err)
			}
		}
		m = done
		require.True(t, m.matches(fetch(t, out, p.URL())))
		checkChain(t, out, p)
		require.Len(t, out.texts(), 1+len(archives(t, p)), "something is left over")
		for name := range out.files {
			require.Contains(t, out.files, archiveOf(name), "a part of the index without its archive")
		}
	}
	return hit
}

// recoverFrom checks the state after a fault, for readers and for a new
// process: it is either that from before the call, or that from after it.
func recoverFrom(t *testing.T, left *memory, p *Publisher, before, after model) {
	out := left.clone()
	checkChain(t, out, p)
	if _, ok := out.texts()[p.name()]; ok {
		h := fetch(t, out, p.URL())
		require.True(t, before.matches(h) || after.matches(h), "%v", facts(h))
	} else {
		require.Empty(t, before.entries)
	}
	p = &Publisher{Output: out, Base: base, Recent: p.Recent, Split: p.Split}
	require.NoError(t, p.Append(t.Context()))
	checkChain(t, out, p)
	if len(before.entries) > 0 {
		h := fetch(t, out, p.URL())
		require.True(t, before.matches(h) || after.matches(h), "%v", facts(h))
	}
}

// TestLeftovers checks that what a killed call has left is removed if nobody
// can know it, but never an archive that existed before, whether it is in the
// chain or not.
func TestLeftovers(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	p := newPublisher(d)
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 10)...))
	older, err := fs.ReadFile(d, p.name())
	require.NoError(t, err)
	require.NoError(t, p.Append(t.Context(), entries(t, 11, 10)...))
	known := archives(t, p)
	require.NoError(t, d.Put(t.Context(), p.name(), older)) // somebody has restored it, though readers know the newer one
	p = newPublisher(&killed{Dir: d, puts: 6})
	require.ErrorIs(t, p.Append(t.Context(), append(entries(t, 11, 6), entries(t, 30, 20)...)...), feedtest.ErrDisk)
	require.NoError(t, os.WriteFile(d.path("feed/.9-0123456789abcdef.atom.tmp"), []byte("half"), 0o666))
	left, err := fs.ReadFile(d, p.listName())
	require.NoError(t, err)
	written, err := fs.Glob(d, "feed/*.atom")
	require.NoError(t, err)
	require.Greater(t, len(written), len(known))
	require.NoError(t, d.Put(t.Context(), p.listName(), append(left, "\nfeed/9-0123456789abcdef.atom"...)))

	p = newPublisher(d)
	require.NoError(t, p.Append(t.Context()))
	for _, a := range known {
		require.FileExists(t, d.path(a.name))
	}
	written, err = fs.Glob(d, "feed/*")
	require.NoError(t, err)
	require.Len(t, written, len(known), "%v", written)
	_, err = fs.Stat(d, p.listName())
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, p.Append(t.Context(), entries(t, 11, 10)...))
	checkChain(t, d, p)
}

// A killed output does nothing more after a number of files.
type killed struct {
	Dir
	puts int
}

func (k *killed) Put(ctx context.Context, name string, data []byte) error {
	if k.puts--; k.puts < 0 {
		return feedtest.ErrDisk
	}
	return k.Dir.Put(ctx, name, data)
}

func (k *killed) Remove(context.Context, string) error { return feedtest.ErrDisk }

// TestUndo checks that neither a call that cannot be published nor a full disk
// leaves anything behind.
func TestUndo(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 3)...))
	before := out.clone()
	puts := 0
	out.Fail = func(op string) feedtest.Failure {
		if puts++; puts == 3 {
			return feedtest.FailsBefore
		}
		return feedtest.Works
	}
	require.ErrorIs(t, p.Append(t.Context(), entries(t, 4, 20)...), feedtest.ErrDisk)
	require.Equal(t, before.texts(), out.texts())
}

var million = flag.Int("million", 50_000, "how many entries BenchmarkSplit splits in one go")

// manyEntries returns n entries of about half a kilobyte, quickly.
func manyEntries(t testing.TB, from, n int) (all []*feedhistory.Entry) {
	for to := from + n; from < to; {
		var b strings.Builder
		b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom">`)
		for end := min(from+10_000, to); from < end; from++ {
			fmt.Fprintf(&b, `<entry><id>tag:example.org,2003:%d</id><title>Entry %[1]d</title><updated>%[2]s</updated>`+
				`<link href="https://example.org/%[1]d"/><content type="html">%[3]s</content></entry>`,
				from, day.Add(time.Duration(from)*time.Minute).Format(time.RFC3339), strings.Repeat("&lt;p>Some text.&lt;/p> ", 13))
		}
		b.WriteString(`</feed>`)
		doc, err := feedhistory.Parse(strings.NewReader(b.String()), "")
		require.NoError(t, err)
		all = append(all, doc.Entries...)
	}
	return all
}

// BenchmarkAppend publishes one more entry: the 101st and the 100,001st, in
// memory and in a directory. An archive is closed every 100 times.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{100, feedtest.Scaled(100_000, 1000)} {
		log := manyEntries(b, 0, n)
		for _, where := range []string{"memory", "dir"} {
			b.Run(fmt.Sprintf("%s/%d", where, n+1), func(b *testing.B) {
				out := newMemory()
				p := &Publisher{Output: out, Base: base}
				if where == "dir" {
					p.Output = counting{Dir{Path: b.TempDir()}, out}
				}
				require.NoError(b, p.Append(b.Context(), log...))
				out.written, out.names = 0, map[string]string{}
				b.ReportAllocs()
				next := n
				more := manyEntries(b, n, 1000)
				for b.Loop() {
					if len(more) == 0 {
						b.StopTimer()
						more = manyEntries(b, next, 1000)
						b.StartTimer()
					}
					if err := p.Append(b.Context(), more[0]); err != nil {
						b.Fatal(err)
					}
					more, next = more[1:], next+1
				}
				b.ReportMetric(float64(out.written)/float64(b.N), "written-B/op")
			})
		}
	}
}

// counting counts the bytes that are written to a directory.
type counting struct {
	Dir
	m *memory
}

func (c counting) Put(ctx context.Context, name string, data []byte) error {
	c.m.written += int64(len(data))
	return c.Dir.Put(ctx, name, data)
}

// BenchmarkSplit publishes a long log in one go, into 10,000 archives at most.
func BenchmarkSplit(b *testing.B) {
	log := manyEntries(b, 0, feedtest.Scaled(*million, 1000))
	for _, where := range []string{"nowhere", "dir"} {
		b.Run(where, func(b *testing.B) {
			var peak uint64
			for b.Loop() {
				var out Output = nowhere{newMemory()}
				if where == "dir" {
					out = Dir{Path: b.TempDir()}
				}
				p := &Publisher{Output: out, Base: base}
				peak = max(peak, peakOf(func() { require.NoError(b, p.Append(b.Context(), log...)) }))
			}
			b.ReportMetric(float64(len(log)*b.N)/b.Elapsed().Seconds(), "entries/s")
			b.ReportMetric(float64(peak)/(1<<20), "peak-MB")
		})
	}
}

// nowhere keeps only the subscription document.
type nowhere struct{ *memory }

func (n nowhere) Put(ctx context.Context, name string, data []byte) error {
	if archiveName.MatchString(name) {
		return nil
	}
	return n.memory.Put(ctx, name, data)
}

// peakOf returns the maximum of additional heap bytes while f runs.
func peakOf(f func()) (peak uint64) {
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // as of a program, not of tests
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	done := make(chan struct{})
	var sampler sync.WaitGroup
	sampler.Go(func() {
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
				runtime.ReadMemStats(&now)
				peak = max(peak, now.HeapAlloc-min(now.HeapAlloc, before.HeapAlloc))
			}
		}
	})
	f()
	close(done)
	sampler.Wait()
	return peak
}

// daily returns n items, one a day from November 2003 on.
func daily(t *testing.T, n int) (log []item) {
	for i := range n {
		log = append(log, entryItem(entry(t, fmt.Sprint("urn:", i), time.Date(2003, 11, 1+i, 12, 0, 0, 0, time.UTC), "x")))
	}
	return log
}

func cutBy(split compose.Split, log []item) (closed []part, open []item) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	c := (&session{Publisher: &Publisher{Split: split}}).cutter(now, now)
	all := func(yield func(item, error) bool) {
		for _, it := range log {
			if !yield(it, nil) {
				return
			}
		}
	}
	_ = c.cut(all, func(items []item) error { // without errors of the log there are none
		closed = append(closed, part{cmp.Or(c.period, strconv.Itoa(4+len(closed))), items})
		return nil
	})
	return closed, c.items
}

func TestCut(t *testing.T) {
	for _, tc := range []struct {
		split compose.Split
		n     int
		want  string
	}{
		{compose.Split{Size: 10}, 9, " | 9 open"},
		{compose.Split{Size: 10}, 10, "4:10 | 0 open"},
		{compose.Split{Size: 10}, 25, "4:10 5:10 | 5 open"},
		{compose.Split{}, 99, " | 99 open"},
		{compose.Split{}, 250, "4:100 5:100 | 50 open"},
		{compose.Split{Period: compose.Month}, 0, " | 0 open"},
		{compose.Split{Period: compose.Month}, 30, " | 30 open"},
		{compose.Split{Period: compose.Month}, 65, "2003/11:30 2003/12:31 | 4 open"},
		{compose.Split{Period: compose.Year}, 65, "2003:61 | 4 open"},
		{compose.Split{Period: compose.Day}, 3, "2003/11/01:1 2003/11/02:1 | 1 open"},
		{compose.Split{Period: 99}, 65, " | 65 open"},
	} {
		closed, open := cutBy(tc.split, daily(t, tc.n))
		var got []string
		for _, c := range closed {
			got = append(got, fmt.Sprintf("%s:%d", c.name, len(c.items)))
		}
		require.Equal(t, tc.want, fmt.Sprintf("%s | %d open", strings.Join(got, " "), len(open)), "%+v of %d", tc.split, tc.n)
	}
}

// An entry published late, with an older time, stays with those published around
// it: closed archives stay closed.
func TestCutKeepsOrder(t *testing.T) {
	log := daily(t, 40)
	closed, open := cutBy(compose.Split{Period: compose.Month}, append(log, log[0], log[39]))
	require.Len(t, closed, 1)
	require.Len(t, open, 12)
}

// Archives by period are cut by the time of change: an edit goes into a new archive.
func TestPeriodsGoByChange(t *testing.T) {
	edited := &feedhistory.Entry{ID: "urn:1", Published: time.Date(2003, 1, 1, 0, 0, 0, 0, time.UTC), Updated: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
	newest := &feedhistory.Entry{ID: "urn:2", Published: time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC)}
	closed, _ := cutBy(compose.Split{Period: compose.Year}, []item{entryItem(edited), entryItem(newest)})
	require.Len(t, closed, 1)
	require.Equal(t, "2020", closed[0].name)
}

// A watched output is looked at after each change, as a reader could.
type watched struct {
	*memory
	look func()
}

func (w watched) Put(ctx context.Context, name string, data []byte) error {
	defer w.look()
	return w.memory.Put(ctx, name, data)
}

func (w watched) Remove(ctx context.Context, name string) error {
	defer w.look()
	return w.memory.Remove(ctx, name)
}

// At no moment, not even within a call, does a reader find an entry whose deletion was there before,
// neither one that reads the subscription document alone nor one that reads all documents, unless the
// entry has been published again since.
func TestDeletedStaysDeleted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p *Publisher
		deleted := map[string]time.Time{} // when, by what was seen
		out := watched{memory: newMemory()}
		out.look = func() {
			text, ok := out.files[p.name()]
			if !ok {
				return
			}
			doc, err := feedhistory.Parse(strings.NewReader(string(text.Data)), p.URL())
			require.NoError(t, err)
			for _, d := range doc.Deleted {
				deleted[d.Ref] = feedtime.Later(deleted[d.Ref], d.When)
			}
			for who, entries := range map[string][]*feedhistory.Entry{"of the document alone": remaining(doc.Entries, doc.Deleted), "of all": fetch(t, out.memory, p.URL()).Entries} {
				for _, e := range entries {
					require.True(t, e.Updated.After(deleted[e.ID]), "the reader %s finds %s of %v, deleted at %v", who, e.ID, e.Updated, deleted[e.ID])
				}
			}
		}
		p = newPublisher(out)
		p.Recent, p.Versions = rapid.SampledFrom([]int{-1, 0}).Draw(t, "recent"), rapid.Bool().Draw(t, "versions")
		p.Split.Size = rapid.IntRange(1, 5).Draw(t, "size")
		now := day
		for range rapid.IntRange(1, 15).Draw(t, "calls") {
			now = now.Add(time.Hour)
			u := Batch{Now: now}
			for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 6), 0, 4, rapid.ID).Draw(t, "ids") {
				id := fmt.Sprint("urn:", n)
				if rapid.Bool().Draw(t, "deleted") {
					u.Deleted = append(u.Deleted, feedhistory.Tombstone{Ref: id})
				} else {
					u.Entries = append(u.Entries, entry(t, id, now, now.String()))
				}
			}
			_, err := p.Publish(t.Context(), u)
			require.NoError(t, err)
		}
	})
}

// remaining returns the entries without those deleted since (RFC 6721 §2).
func remaining(entries []*feedhistory.Entry, deleted []feedhistory.Tombstone) []*feedhistory.Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e *feedhistory.Entry) bool {
		return slices.ContainsFunc(deleted, func(d feedhistory.Tombstone) bool { return d.Ref == e.ID && !e.Updated.After(d.When) })
	})
}
