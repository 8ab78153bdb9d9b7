package publish

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

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
	for _, format := range []feedhistory.Format{feedhistory.Atom, feedhistory.RSS} {
		t.Run(format.String(), func(t *testing.T) {
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
					out, p := published(t, format)
					duty.test(t, out, p)
				})
			}
		})
	}
}

// duty2 checks that the feed is complete as long as there is no archive
// (5005#26).
func duty2(t *testing.T, out *memory, p *Publisher) {
	require.NotContains(t, string(out.files[p.name()]), "complete", "there are archives")
	young := newMemory()
	p = &Publisher{Output: young, Base: base, Format: p.Format}
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 5)...))
	text := string(young.files[p.name()])
	flag := strings.Index(text, `<fh:complete xmlns:fh="http://purl.org/syndication/history/1.0"/>`)
	require.Positive(t, flag)
	require.Less(t, flag, strings.Index(text, "text 5"))
	require.Equal(t, 1, strings.Count(text, "fh:complete"))
	s, err := at(p).load()
	require.NoError(t, err)
	require.Equal(t, []feedhistory.Kind{feedhistory.Complete}, s.doc.Combines())
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
	p.Split = feedhistory.Split{Period: feedhistory.Day}
	p.Head = &feedhistory.Document{Title: "Another title"}
	require.NoError(t, p.Append(t.Context(), entries(t, 400, 350)...))
	require.NoError(t, p.Correct(t.Context(), entry(t, "e1", day.Add(1000*time.Hour), "corrected")))
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
	for _, split := range []feedhistory.Split{{Size: 7}, {Period: feedhistory.Month}, {Size: 1}} {
		p.Split = split
		require.NoError(t, p.Append(t.Context(), entries(t, 400+100*split.Size, 50)...))
	}
	after := archives(t, p)
	for i, a := range before {
		require.Equal(t, a.name, after[len(after)-len(before)+i].name)
	}
}

func duty11(t *testing.T, out *memory, p *Publisher) {
	text := string(out.files[p.name()])
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
	require.NotContains(t, string(out.files[p.name()]), "current")
}

func duty14(t *testing.T, out *memory, p *Publisher) {
	for _, a := range archives(t, p) {
		require.True(t, a.doc.Archive)
		flag := strings.Index(a.text, `<fh:archive xmlns:fh="http://purl.org/syndication/history/1.0"/>`)
		require.Positive(t, flag)
		require.Less(t, flag, strings.Index(a.text, "text "))
	}
	require.NotContains(t, string(out.files[p.name()]), "fh:archive")
}

// duty15 checks that the target of next-archive exists before the link does,
// with all its entries. The memory panics if they ever change.
func duty15(t *testing.T, out *memory, p *Publisher) {
	links := 0
	out.Fail = func(string) feedtest.Failure { // called before each operation
		for name, data := range out.files {
			if !archiveName.MatchString(name) {
				continue
			}
			_, rest, linked := strings.Cut(string(data), `rel="next-archive" href="`+base)
			next, _, _ := strings.Cut(rest, `"`)
			if linked {
				links++
				require.Contains(t, out.files, next)
				require.Contains(t, string(out.files[next]), "fh:archive")
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
	for name, data := range out.files {
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
	require.NoError(t, p.Correct(t.Context(), entry(t, "e5", day.Add(1000*time.Hour), "corrected")))
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
			require.Equal(t, feedhistory.Paged, doc.Kind(), "5005#5: %d entries", n)
			first, ok := doc.Links.Rel(feedhistory.RelFirst)
			require.True(t, ok, "5005#6")
			require.Equal(t, base, first.Href)
			next, more := doc.Links.Rel(feedhistory.RelNext)
			found += len(doc.Entries)
			require.Equal(t, found < n, more, "5005#6")
			url = next.Href
		}
		require.Equal(t, n, found)
	}
}
