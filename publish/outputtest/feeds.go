package outputtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/publish"
)

const base = "https://example.org/blog/"

var noon = time.Date(2003, 12, 13, 12, 0, 0, 0, time.UTC)

func newPublisher(out publish.Output) *publish.Publisher {
	return &publish.Publisher{
		Output: out, Base: base, Recent: -1, Split: compose.Split{Size: 3},
		Head: &feedhistory.Document{Title: "A blog", ID: "urn:blog"},
	}
}

// entries returns n entries, numbered from from, an hour apart.
func entries(t testing.TB, from, n int) (all []*feedhistory.Entry) {
	for i := from; i < from+n; i++ {
		all = append(all, entry(t, fmt.Sprint("e", i), noon.Add(time.Duration(i)*time.Hour), fmt.Sprint("text ", i)))
	}
	return all
}

func entry(t testing.TB, id string, updated time.Time, title string) *feedhistory.Entry {
	e, err := compose.Draft{ID: id, Updated: updated, Title: feedhistory.Text{Body: title}}.Entry()
	require.NoError(t, err)
	return e
}

// Fetch walks the feed of an output below a base URL, as any reader would. It requires
// a verdict of whole, and each link of each document to lead to a document that links
// back (5005#12, 5005#15). It returns the titles of the entries by their ids, and
// "deleted" for deleted ones.
func Fetch(t testing.TB, out fs.FS, base, name string) map[string]string {
	t.Helper()
	u, err := url.Parse(base)
	require.NoError(t, err)
	site := feedtest.Direct{Handler: http.StripPrefix(strings.TrimSuffix(u.Path, "/"), &publish.Handler{FS: out})}
	c := &feedhistory.Client{AllowPrivate: true, Transport: site, Tries: 1}
	h, err := c.Fetch(t.Context(), base+name)
	require.NoError(t, err)
	require.Empty(t, h.Gaps)
	require.Equal(t, feedhistory.VerdictWhole, h.Verdict(), "kind %v", h.Kind)
	requireLinks(t, out, base, base+name)
	found := map[string]string{}
	for _, e := range h.Entries {
		require.NotContains(t, found, e.ID, "twice")
		found[e.ID] = e.Title().Body
	}
	for _, d := range h.Deleted {
		found[d.Ref] = "deleted"
	}
	return found
}

// requireLinks follows the chain from the subscription document. Between a
// crash and the next call, the newest archive may already have a successor.
func requireLinks(t testing.TB, out fs.FS, base, url string) {
	t.Helper()
	document := func(url string) *feedhistory.Document {
		data, err := fs.ReadFile(out, strings.TrimPrefix(url, base))
		require.NoError(t, err, url)
		d, err := feedhistory.Parse(bytes.NewReader(data), url)
		require.NoError(t, err, url)
		return d
	}
	rel := func(d *feedhistory.Document, rel string) string {
		link, _ := d.Links.Rel(rel)
		return link.Href
	}
	subscription := document(url)
	newest := true
	for at, d := url, subscription; rel(d, "prev-archive") != ""; newest = false {
		at = rel(d, "prev-archive")
		d = document(at)
		require.True(t, d.Archive, "5005#14")
		require.Equal(t, at, rel(d, "self"))
		require.Equal(t, url, rel(d, "current"), "5005#13")
		next := rel(d, "next-archive")
		require.True(t, newest || next != "", "5005#12")
		if next != "" {
			require.Equal(t, at, rel(document(next), "prev-archive"), "5005#15")
		}
	}
}

// requireTitles requires readers to find the given entries through both outputs.
func (w *world) requireTitles(want map[string]string) {
	w.Helper()
	for _, out := range []fs.FS{w.Output, w.other} {
		require.Equal(w, want, Fetch(w.T, out, base, "feed.atom"))
	}
}

func titles(all []*feedhistory.Entry) map[string]string {
	found := map[string]string{}
	for _, e := range all {
		found[e.ID] = e.Title().Body
	}
	return found
}

func testFeed(t *testing.T, w *world) {
	p := newPublisher(w.Output)
	all := entries(t, 1, 20)
	for i := 0; i < len(all); i += 4 {
		require.NoError(t, p.Append(t.Context(), all[i:i+4]...))
		w.requireTitles(titles(all[:i+4]))
	}
	want := titles(all)
	before, err := visible(w.other, ".")
	require.NoError(t, err)
	require.NoError(t, p.Append(t.Context(), all...), "the very same")
	after, err := visible(w.other, ".")
	require.NoError(t, err)
	require.Equal(t, before, after)

	require.NoError(t, p.Append(t.Context(), entry(t, "e2", noon.AddDate(1, 0, 0), "corrected")))
	require.NoError(t, p.Delete(t.Context(), "e3", noon.AddDate(1, 0, 1)))
	want["e2"], want["e3"] = "corrected", "deleted"
	w.requireTitles(want)
}

func testFeedByTurns(t *testing.T, w *world) {
	all := entries(t, 1, 12)
	for i := range all {
		out := w.Output
		if i%2 == 1 {
			out = w.other
		}
		require.NoError(t, newPublisher(out).Append(t.Context(), all[i]))
		w.requireTitles(titles(all[:i+1]))
	}
}

func testFeedErased(t *testing.T, w *world) {
	p := newPublisher(w.Output)
	all := entries(t, 1, 14)
	require.NoError(t, p.Append(t.Context(), all...))
	want := titles(all)
	for _, id := range []string{"e5", "e1", "e14"} {
		require.NoError(t, p.Erase(t.Context(), id))
		delete(want, id)
		w.requireTitles(want)
		names, err := visible(w.other, ".")
		require.NoError(t, err)
		for _, name := range names {
			data, err := fs.ReadFile(w.other, name)
			require.NoError(t, err)
			require.NotContains(t, string(data), "<id>"+id+"</id>", "%s still has it", name)
		}
	}
}

// testFeedRaced lets two publishers work at the same time, each until its
// entries are acknowledged.
func testFeedRaced(t *testing.T, w *world) {
	const each = 8
	all := [][]*feedhistory.Entry{entries(t, 1, each), entries(t, 101, each)}
	feedtest.AtOnce(t, 2, func(i int) error {
		p := newPublisher([]publish.Output{w.Output, w.other}[i])
		for n := 0; n < each; {
			switch err := p.Append(t.Context(), all[i][n]); {
			case err == nil:
				n++
			case errors.Is(err, publish.ErrLocked):
				time.Sleep(time.Millisecond)
			default:
				return err
			}
		}
		return nil
	})
	w.requireTitles(titles(slices.Concat(all...)))
}

// errCut is the error of a cut output.
var errCut = errors.New("cut short")

// A cut output does nothing more after a number of changes.
type cut struct {
	publish.Output
	left int
}

func (c *cut) Put(ctx context.Context, name string, data []byte) error {
	if c.left--; c.left < 0 {
		return errCut
	}
	return c.Output.Put(ctx, name, data)
}

func (c *cut) Remove(ctx context.Context, name string) error {
	if c.left--; c.left < 0 {
		return errCut
	}
	return c.Output.Remove(ctx, name)
}

// testFeedCutShort ends a call after each of its operations. The next
// publisher, on another machine, continues.
func testFeedCutShort(t *testing.T, w *world) {
	all := entries(t, 1, 60)
	want := map[string]string{}
	for i, n := 0, 0; i < len(all); n++ {
		batch := all[i:min(i+4, len(all))]
		err := newPublisher(&cut{Output: w.Output, left: n}).Append(t.Context(), batch...)
		if err != nil {
			require.ErrorIs(t, err, errCut)
			if len(want) > 0 {
				found := Fetch(t, w.other, base, "feed.atom")
				require.Contains(t, []int{len(want), len(want) + len(batch)}, len(found), "whole or not at all")
			}
			require.NoError(t, newPublisher(w.other).Append(t.Context(), batch...))
		}
		maps.Copy(want, titles(batch))
		i += len(batch)
		w.requireTitles(want)
	}
	// There is nothing but the archives: the remains of a cut have been removed.
	names, err := visible(w.other, ".")
	require.NoError(t, err)
	require.Len(t, names, 1+len(all)/3, "%v", names)
}
