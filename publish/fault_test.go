package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

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
			func(p *Publisher) error { return p.Correct(t.Context(), entry(t, "e4", late, "corrected")) },
			func(m model) { m.put("e4", late, "corrected") },
		},
		erase("e5"),
		{
			func(p *Publisher) error {
				p.Split = feedhistory.Split{Period: feedhistory.Day}
				return p.Append(t.Context(), entries(t, 60, 3)...)
			},
			func(m model) { add(60, 3).into(m) },
		},
		erase("e1"), add(70, 30),
	}
}

// TestEveryFault makes each operation of a history fail, in every possible way.
// Afterwards nothing that was acknowledged is missing, no link dangles, and the
// failed call took effect either whole or not at all. Then the call is
// repeated, and the history goes on.
func TestEveryFault(t *testing.T) {
	feedtest.Long(t)
	for _, how := range []feedtest.Failure{feedtest.FailsBefore, feedtest.FailsAfter, feedtest.Crashes, feedtest.Crashed} {
		faults := 0
		for n, hit := 1, true; hit; n++ {
			hit = t.Run(fmt.Sprintf("%d/%d", how, n), func(t *testing.T) { hit = fault(t, how, n) }) && hit
			faults = n - 1
		}
		require.Greater(t, faults, 30)
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
				p = &Publisher{Output: out, Base: base, Recent: p.Recent, Split: p.Split}
			}
			err = d.call(p)
			if !errors.Is(err, ErrNotPublished) { // what is already erased cannot be erased again
				require.NoError(t, err)
			}
		}
		m = done
		require.True(t, m.matches(fetch(t, out, p.URL())))
		checkChain(t, out, p)
		require.Len(t, out.files, 1+len(archives(t, p)), "something is left over")
	}
	return hit
}

// recoverFrom checks the state after a fault, for readers and for a new
// process: it is either that from before the call, or that from after it.
func recoverFrom(t *testing.T, left *memory, p *Publisher, before, after model) {
	out := left.clone()
	checkChain(t, out, p)
	if _, ok := out.files[p.name()]; ok {
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
	require.Equal(t, before.files, out.files)
}
