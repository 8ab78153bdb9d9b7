package republish

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// Whatever a publisher does, what is published again equals the mirror, and an
// archive stays an archive.
func TestRepublishedModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		model := feedtest.NewModel("/feed.atom", rapid.Uint64().Draw(t, "seed"))
		model.Fail(rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "faults"))
		store := &mirror.Memory{}
		m := &mirror.Mirror{Store: store, Client: direct(model), Versions: 2}
		s := &Handler{Store: store, Base: "http://127.0.0.1:8005/", Size: 3}
		const feed = "http://site.test/feed.atom"
		before := map[string]string{}
		for range rapid.IntRange(1, 4).Draw(t, "polls") {
			for range rapid.IntRange(0, 10).Draw(t, "steps") {
				model.Step()
			}
			_, _ = m.Update(t.Context(), feed)
			state, err := store.Feed(t.Context(), feed)
			if err != nil || state.Head == "" {
				continue
			}
			want := map[string]string{}
			for r, err := range store.Entries(t.Context(), mirror.Query{Feed: feed}) {
				require.NoError(t, err)
				e, err := r.Entry()
				require.NoError(t, err)
				want[r.ID] = words(e)
			}
			for _, gap := range state.Missing() {
				want[gap.PseudoEntry().ID] = ""
			}
			for _, document := range []string{"/index.atom", "/index.rss"} {
				h, err := direct(s).Fetch(t.Context(), "http://127.0.0.1:8005/feeds/"+Name(feed)+document)
				require.NoError(t, err)
				got := map[string]string{}
				for _, e := range h.Entries {
					if got[e.ID] = words(e); e.Title().Plain() == "Entries may be missing" {
						got[e.ID] = "" // the entry keeps its first report
					}
				}
				require.Equal(t, want, got, document)
			}
			after := archivesIn(t, s, feed)
			for name, text := range before {
				require.Equal(t, text, after[name], "%s is still there", name)
			}
			before = after
		}
	})
}

// archivesIn returns the archives that a server has published of a feed,
// without next-archive.
func archivesIn(t require.TestingT, s *Handler, feed string) map[string]string {
	names, err := fs.Glob(s.chains.out, Name(feed)+"/index/*")
	require.NoError(t, err)
	all := map[string]string{}
	for _, name := range names {
		data, err := fs.ReadFile(s.chains.out, name)
		require.NoError(t, err)
		lines := slices.DeleteFunc(slices.Collect(strings.Lines(string(data))), func(line string) bool {
			return strings.Contains(line, `rel="next-archive"`)
		})
		all[path.Base(name)] = strings.Join(lines, "")
	}
	return all
}
