package publish

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
)

// A deed is one call on a Publisher, and what it should come to.
type deed struct {
	call func(*Publisher) error
	into func(model)
}

// history is a short history in which everything happens that writes: the first
// entry, closing the first archive, the second, two at once, a deletion, a
// correction, erasures, another split.
func history(t testing.TB) []deed {
	add := func(from, n int) deed {
		return deed{
			func(p *Publisher) error { return p.Append(entries(t, from, n)...) },
			func(m model) {
				for _, e := range entries(t, from, n) {
					m.put(e.ID, e.Updated, e.Title().Body)
				}
			},
		}
	}
	late := day.Add(50 * time.Hour)
	erase := func(ids ...string) deed {
		return deed{func(p *Publisher) error { return p.Erase(ids...) }, func(m model) {
			for _, id := range ids {
				m.erase(id)
			}
		}}
	}
	return []deed{
		add(1, 1), add(2, 2), add(4, 1), add(5, 9), add(14, 1), erase("e10", "e11", "e12"),
		{func(p *Publisher) error { return p.Delete("e2", late) }, func(m model) { m.remove("e2", late) }},
		{
			func(p *Publisher) error { return p.Correct(entry(t, "e4", late, "corrected")) },
			func(m model) { m.put("e4", late, "corrected") },
		},
		erase("e5"),
		{
			func(p *Publisher) error {
				p.Split = feedhistory.Split{Period: feedhistory.Day}
				return p.Append(entries(t, 60, 3)...)
			},
			func(m model) { add(60, 3).into(m) },
		},
		erase("e1"), add(70, 30),
	}
}

// TestEveryFault lets each operation of a history fail, in each way that there
// is. Nothing that was acknowledged is missing afterwards, no link leads
// nowhere, and what failed took place whole or not at all. Then it is repeated,
// and the history goes on.
func TestEveryFault(t *testing.T) {
	for _, how := range []failure{failsBefore, failsAfter, crashes, crashed} {
		faults := 0
		for n, hit := 1, true; hit; n++ {
			hit = t.Run(fmt.Sprintf("%d/%d", how, n), func(t *testing.T) { hit = fault(t, how, n) }) && hit
			faults = n - 1
		}
		require.Greater(t, faults, 30)
	}
}

// fault lets the nth operation fail, and reports whether there was one.
func fault(t *testing.T, how failure, n int) (hit bool) {
	out, m := newMemory(), newModel()
	p := newPublisher(out)
	out.fail = func(string) failure {
		if n--; n != 0 {
			return works
		}
		hit = true
		return how
	}
	for _, d := range history(t) {
		done := m.clone()
		d.into(done)
		if err := d.call(p); err != nil {
			require.ErrorIs(t, err, errDisk)
			recoverFrom(t, out, p, m, done)
			if how == crashes || how == crashed {
				out = out.clone()
				p = &Publisher{Output: out, Base: base, Recent: p.Recent, Split: p.Split}
			}
			err = d.call(p)
			if !errors.Is(err, ErrNotPublished) { // what is erased already cannot be again
				require.NoError(t, err)
			}
		}
		m = done
		require.True(t, m.matches(fetch(t, out, p.URL())))
		checkChain(t, out, p)
	}
	out.fail = nil
	leftovers(t, out, p)
	return hit
}

// recoverFrom checks what a fault leaves: all of before, or all of after, for
// readers and for a new process.
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
	require.NoError(t, p.Append())
	checkChain(t, out, p)
	if len(before.entries) > 0 {
		h := fetch(t, out, p.URL())
		require.True(t, before.matches(h) || after.matches(h), "%v", facts(h))
	}
}

// leftovers checks that an erasure has left nothing that is not referred to.
func leftovers(t *testing.T, out *memory, p *Publisher) {
	require.NoError(t, p.Erase("e3"))
	require.Len(t, out.files, 1+len(archives(t, p)))
}

// TestUndo: what cannot be published leaves nothing behind, and neither does a
// disk that is full.
func TestUndo(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	require.NoError(t, p.Append(entries(t, 1, 3)...))
	before := out.clone()
	puts := 0
	out.fail = func(op string) failure {
		if puts++; puts == 3 {
			return failsBefore
		}
		return works
	}
	require.ErrorIs(t, p.Append(entries(t, 4, 20)...), errDisk)
	require.Equal(t, before.files, out.files)
}
