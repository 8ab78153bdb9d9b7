package publish

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
)

func TestAppend(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 8)...))
	h := fetch(t, out, p.URL())
	require.Len(t, h.Entries, 8)
	require.Equal(t, feedhistory.Archived, h.Kind)
	require.Equal(t, 3, h.Documents)
	require.Equal(t, "e8", h.Entries[0].ID)
	require.Equal(t, "A blog", h.Head.Title)
	link, err := h.Entries[0].Decode()
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
	for _, format := range []feedhistory.Format{feedhistory.Atom, feedhistory.RSS} {
		t.Run(format.String(), func(t *testing.T) {
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
			require.Equal(t, before.files, out.files, "all or nothing")
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
	require.NoError(t, p.Correct(t.Context(), entry(t, "e2", day.Add(30*time.Hour), "corrected")))
	require.ErrorIs(t, p.Correct(t.Context(), entry(t, "e99", day.Add(30*time.Hour), "corrected")), ErrNotPublished)
	require.ErrorIs(t, p.Correct(t.Context(), entry(t, "e1", day, "corrected")), ErrStale)
	require.NoError(t, p.Delete(t.Context(), "e3", day.Add(30*time.Hour)))
	require.ErrorIs(t, p.Correct(t.Context(), entry(t, "e3", day.Add(31*time.Hour), "corrected")), ErrNotPublished)
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
		require.NotContains(t, out.files, old[i].name)
	}
	for i := 3; i < 6; i++ {
		require.Equal(t, old[i].name, after[i].name)
		require.Equal(t, old[i].doc.Entries[0].XML(), after[i].doc.Entries[0].XML())
	}
	for name, data := range out.files {
		require.False(t, bytes.Contains(data, []byte("text 10,")), name)
		require.False(t, bytes.Contains(data, []byte("text 20,")), name)
	}
	require.Len(t, fetch(t, out, p.URL()).Entries, 18)
	require.NoError(t, p.Erase(t.Context(), "e1", "e2", "e3"))
	require.Len(t, archives(t, p), 5, "an archive without entries is left out")
	require.NoError(t, p.Append(t.Context(), entries(t, 30, 10)...))
	require.Len(t, fetch(t, out, p.URL()).Entries, 25)
	require.Len(t, out.files, 1+len(archives(t, p)))
}

func TestEraseAll(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 6)...))
	require.NoError(t, p.Erase(t.Context(), "e1", "e2", "e3", "e4", "e5", "e6"))
	require.Len(t, out.files, 1)
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 7)...))
	require.Len(t, fetch(t, out, p.URL()).Entries, 7)
	require.NoError(t, p.Erase(t.Context(), "e4", "e5", "e6"))
	require.NotContains(t, string(out.files[archives(t, p)[0].name]), "next-archive", "its successor is gone")
}

func TestErasedFromMissingArchive(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 10)...))
	delete(out.files, archives(t, p)[1].name) // 5005#18 allows that
	before := out.clone()
	require.ErrorContains(t, p.Erase(t.Context(), "e9"), "not exist")
	require.Equal(t, before.files, out.files)
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
	out.files[p.name()] = []byte(`<feed xmlns="http://www.w3.org/2005/Atom"><id>x</id></feed>`)
	require.ErrorIs(t, p.Append(t.Context(), entries(t, 1, 1)...), ErrForeign)
}

func TestSettings(t *testing.T) {
	for _, p := range []*Publisher{
		{Base: base},
		{Output: newMemory()},
		{Output: newMemory(), Base: "/blog/"},
		{Output: newMemory(), Base: "https://example.org/?x"},
		{Output: newMemory(), Base: base, Format: feedhistory.JSONFeed},
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
	require.Empty(t, out.files)
}

func TestSplitByMonth(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	p.Split = feedhistory.Split{Period: feedhistory.Month}
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
	p.Split = feedhistory.Split{Period: feedhistory.Year}
	long := strings.Repeat("0123456789abcdef", 64<<10) // 1 MiB
	for i := range 20 {
		require.NoError(t, p.Append(t.Context(), entry(t, string(rune('a'+i)), day.Add(time.Duration(i)*time.Second), long)))
		require.Less(t, len(out.files[p.name()]), 15<<20)
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

func TestAppendHistory(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 10)...))
	require.NoError(t, p.Delete(t.Context(), "e5", day.Add(30*time.Hour)))
	h := fetch(t, out, p.URL())
	for _, format := range []feedhistory.Format{feedhistory.Atom, feedhistory.RSS} {
		other := newMemory()
		q := newPublisher(other)
		q.Format = format
		require.NoError(t, q.AppendHistory(t.Context(), h))
		require.Equal(t, facts(h), facts(fetch(t, other, q.URL())))
		other.Operations()
		require.NoError(t, q.AppendHistory(t.Context(), h))
		require.Empty(t, other.Operations())
		require.NoError(t, q.Append(t.Context(), entry(t, "e3", day.Add(40*time.Hour), "changed here")))
		require.NoError(t, q.AppendHistory(t.Context(), h))
		require.Equal(t, "changed here", fetch(t, other, q.URL()).Entries[0].Title().Body)
	}
}

// at returns a session of a Publisher, without the lock.
func at(p *Publisher) *session { return &session{Publisher: p, ctx: context.Background()} }
