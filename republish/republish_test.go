package republish

import (
	"context"
	"io/fs"
	"iter"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

func TestRepublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(2003, 2020)
	page := w.add("/blog/feed.atom")
	feed := w.feedURL("/blog/feed.atom")
	w.requireSame(page, feed)
	before := archivesIn(w.t, w.Handler, feed)
	require.Greater(t, len(before), 4)

	// New entries, a new version and a deletion follow what was published.
	w.write(2020, 2026)
	require.NoError(t, w.blog.Correct(t.Context(), blogEntryAt(t, 2004, 3, 1, ", corrected", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))))
	require.NoError(t, w.blog.Delete(t.Context(), "tag:lighthouse.example,2005:1/1", time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)))
	state := w.poll(feed)
	require.Equal(t, int64(1), state.Deleted)
	w.requireSame(page, feed)
	after := archivesIn(w.t, w.Handler, feed)
	require.Greater(t, len(after), len(before))
	for name, text := range before {
		require.Equal(t, text, after[name], name)
	}

	// Nothing is written if nothing has changed.
	w.poll(feed)
	_, index, _ := w.get(page + "/index.atom")
	w.poll(feed)
	_, again, _ := w.get(page + "/index.atom")
	require.Equal(t, index, again)

	// Another mirror gets everything, and names the source.
	second := &mirror.Memory{}
	m := &mirror.Mirror{Store: second, Client: reader()}
	changes, err := m.Update(t.Context(), strings.TrimSuffix(w.url, "/")+page+"/index.atom")
	require.NoError(t, err)
	require.NoError(t, changes.Failure)
	require.Equal(t, feedhistory.Whole, changes.Verdict)
	require.Equal(t, len(w.mirrored(feed)), changes.Added)
	for r, err := range second.Entries(t.Context(), mirror.Query{}) {
		require.NoError(t, err)
		require.Contains(t, r.Content.Data, "<id>tag:lighthouse.example,2003:log</id><title>The Lighthouse Log</title>")
		require.Contains(t, r.Content.Data, `<link rel="self" href="`+feed+`"/>`)
	}
}

// A server that is restarted over the same output continues where the last one
// ended; with a different base it begins again.
func TestRepublishedAfterRestart(t *testing.T) {
	t.Parallel()
	dir := publish.Dir{Path: t.TempDir()}
	w := newWorld(t, func(s *Handler) { s.Output = dir })
	w.write(2003, 2015)
	page := w.add("/blog/feed.atom")
	feed := w.feedURL("/blog/feed.atom")
	w.requireSame(page, feed)
	before := archivesIn(w.t, w.Handler, feed)

	_, index, _ := w.get(page + "/index.atom")
	other := &Handler{Store: w.Store, Base: w.Base, Output: dir}
	require.Equal(t, index, asked(t, other, page+"/index.atom"))
	other = &Handler{Store: w.Store, Base: "https://elsewhere.example", Output: dir}
	require.Contains(t, asked(t, other, page+"/index.atom"), `href="https://elsewhere.example`+page+`/index.atom"`)
	require.Equal(t, before, archivesIn(w.t, w.Handler, feed))

	// If the beginning was cut short, it begins again, with the same names.
	require.NoError(t, subOutput{w.chains.out, Name(feed)}.Remove(t.Context(), ".index.atom.json"))
	w.requireSame(page, feed)
	require.Equal(t, before, archivesIn(w.t, w.Handler, feed))

	// What was published but not recorded is not published again.
	w.write(2015, 2016)
	w.poll(feed)
	noted, err := fs.ReadFile(w.chains.out, Name(feed)+"/.index.atom.json")
	require.NoError(t, err)
	_, index, _ = w.get(page + "/index.atom")
	require.NoError(t, subOutput{w.chains.out, Name(feed)}.Put(t.Context(), ".index.atom.json", noted))
	_, again, _ := w.get(page + "/index.atom")
	require.Equal(t, index, again)

	require.NoError(t, w.Remove(t.Context(), feed))
	status, _, _ := w.get(page + "/index.atom")
	require.Equal(t, http.StatusNotFound, status)
	left, _ := fs.Glob(w.chains.out, Name(feed)+"/*/*")
	require.Empty(t, left)
}

// Versions that only the mirror knows to be newer, RSS without update times,
// and entries that a complete feed no longer has.
func TestRepublishedSilentChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, path := range []string{"/news.rss", "/tides.atom"} {
		page, feed := w.add(path), w.feedURL(path)
		w.requireSame(page, feed)
		was := w.mirrored(feed)
		w.poll(feed)
		require.NotEqual(t, was, w.mirrored(feed))
		w.requireSame(page, feed)
	}
	_, index, _ := w.get("/feeds/" + Name(w.feedURL("/tides.atom")) + "/index.atom")
	require.Contains(t, index, `<at:deleted-entry xmlns:at="http://purl.org/atompub/tombstones/1.0" ref="urn:tides:1"`)
	require.Contains(t, index, `kind="complete" verdict="whole"></m:mirror>`)
	_, index, _ = w.get("/feeds/" + Name(w.feedURL("/news.rss")) + "/index.atom")
	require.Contains(t, index, `kind="plain" verdict="window"></m:mirror>`)
	require.NotContains(t, index, "fh:complete", "nobody says that this is everything")
	require.Contains(t, index, "lists only its latest entries")
}

// An entry reports a gap as long as the gap exists.
func TestRepublishedGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(2003, 2016)
	saved := w.files.Clone()
	w.lose("feed/3-")
	page, feed := w.add("/blog/feed.atom"), w.feedURL("/blog/feed.atom")
	_, h := w.fetched(page + "/index.atom")
	require.Len(t, h.Entries, len(w.mirrored(feed))+1)
	state, err := w.Store.Feed(t.Context(), feed)
	require.NoError(t, err)
	gap := state.Missing()[0]
	_, index, _ := w.get(page + "/index.atom")
	require.Contains(t, index, `verdict="partial"><m:gap reason="status" href="`+gap.URL+`"/></m:mirror>`)
	require.Contains(t, index, gap.PseudoEntry().ID)
	require.Equal(t, feedhistory.Partial, h.Verdict(), "who reads it learns that something is missing")
	require.Equal(t, gap.URL, h.Gaps[0].URL)
	require.Contains(t, index, "Something is known to be missing.")
	for _, document := range []string{"/index.atom", "/index.rss", "/complete.atom"} {
		w.checked(page + document)
	}

	archives := archivesIn(w.t, w.Handler, feed)
	for _, name := range saved.Names() {
		text, err := saved.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, w.files.Put(t.Context(), name, text))
	}
	m := &mirror.Mirror{Store: w.Store, Client: reader(), Revalidate: true}
	changes, err := m.Update(t.Context(), feed)
	require.NoError(t, err)
	require.NoError(t, changes.Failure)
	require.Equal(t, feedhistory.Whole, changes.Verdict)
	w.requireSame(page, feed)
	_, index, _ = w.get(page + "/index.atom")
	require.Contains(t, index, `ref="`+gap.PseudoEntry().ID+`"`)
	require.NotContains(t, index, "<m:gap")
	for name, text := range archives {
		require.Equal(t, text, archivesIn(w.t, w.Handler, feed)[name], "archives stay where they were")
	}
}

// Several feeds are published at the same time. While another process has the
// output, the existing documents are served.
func TestRepublishedTogether(t *testing.T) {
	t.Parallel()
	dir := publish.Dir{Path: t.TempDir()}
	w := newWorld(t, func(s *Handler) { s.Output = dir })
	w.write(2003, 2015)
	pages := []string{w.add("/blog/feed.atom"), w.add("/news.rss"), w.add("/tides.atom")}
	unlock, err := dir.Lock(t.Context())
	require.NoError(t, err)
	require.Contains(t, w.refused(pages[0]+"/index.atom", http.StatusServiceUnavailable), "another server is publishing")
	require.NoError(t, unlock())

	var all sync.WaitGroup
	for range 3 {
		for _, page := range pages {
			for _, document := range []string{"/index.atom", "/index.rss"} {
				all.Go(func() {
					status, body, _ := answer(w.Handler, getRequest(t.Context(), page+document))
					assert.Equal(t, http.StatusOK, status, body)
				})
			}
		}
	}
	all.Wait()
	unlock, err = dir.Lock(t.Context())
	require.NoError(t, err)
	w.poll(w.feedURL("/tides.atom"))
	status, _, _ := w.get(pages[2] + "/index.atom")
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, unlock())
	w.requireSame(pages[2], w.feedURL("/tides.atom"))
}

// An impatientStore cancels a context as soon as entries are read.
type impatientStore struct {
	mirror.Store
	cancel context.CancelFunc
}

func (s impatientStore) Entries(ctx context.Context, q mirror.Query) iter.Seq2[*mirror.Record, error] {
	s.cancel()
	return s.Store.Entries(ctx, q)
}

func TestRepublishedThoughNobodyWaits(t *testing.T) {
	w := newWorld(t, nil)
	page := w.add("/tides.atom")
	ctx, cancel := context.WithCancel(t.Context())
	s := &Handler{Store: impatientStore{w.Store, cancel}}
	_, _, _ = answer(s, getRequest(ctx, page+"/index.atom"))
	require.Error(t, ctx.Err())
	require.True(t, s.chains.isPublished(Name(w.feedURL("/tides.atom")), feedhistory.Atom))
}

// What is forgotten is gone from the Output, at every Base and under both names, and is
// published again when somebody requests it. Other feeds stay.
func TestForget(t *testing.T) {
	out := publish.Dir{Path: t.TempDir()}
	w := newWorld(t, func(s *Handler) { s.Output = out })
	w.write(2003, 2008)
	blog, tides := w.feedURL("/blog/feed.atom"), w.feedURL("/tides.atom")
	for _, path := range []string{w.add("/blog/feed.atom"), w.add("/tides.atom")} {
		for _, s := range []*Handler{w.Handler, {Store: w.Store, Base: "https://elsewhere.example/", Output: out}} {
			for _, format := range []string{"atom", "rss"} {
				status, _, _ := answer(s, getRequest(t.Context(), path+"/index."+format))
				require.Equal(t, http.StatusOK, status)
			}
		}
	}
	require.NoError(t, out.Put(t.Context(), "00000000/"+oldName(blog)+"/index.atom", []byte("old")))
	of := func(feed string) (n int) {
		for _, name := range filesOf(t, out) {
			if strings.Contains(name, "/"+oldName(feed)) {
				n++
			}
		}
		return n
	}
	before := of(blog)
	require.Greater(t, before, 8)
	require.NotZero(t, of(tides))

	unlock, err := out.Lock(t.Context())
	require.NoError(t, err)
	_, err = Forget(t.Context(), out, blog)
	require.ErrorIs(t, err, publish.ErrLocked)
	require.NoError(t, unlock())
	require.Equal(t, before, of(blog))

	for _, want := range [][]string{{blog}, nil} {
		forgotten, err := Forget(t.Context(), out, blog, "https://example.org/unknown")
		require.NoError(t, err)
		require.Equal(t, want, forgotten)
		require.Zero(t, of(blog))
		require.NotZero(t, of(tides))
	}
	status, index, _ := w.get("/feeds/" + Name(blog) + "/index.atom")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, index, "prev-archive")
	require.NotZero(t, of(blog))
	forgotten, err := Forget(t.Context(), &publish.MemoryOutput{}, blog)
	require.NoError(t, err)
	require.Empty(t, forgotten)
	forgotten, err = Forget(t.Context(), publish.Dir{Path: filepath.Join(t.TempDir(), "none")}, blog)
	require.NoError(t, err)
	require.Empty(t, forgotten)
}
