package mirror_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// Of every site that does not change, a mirror has the same entries and the
// same verdict as a single walk: after one poll, and after many polls with a
// budget of four documents each.
func TestMirrorIsWhatAWalkFinds(t *testing.T) {
	for _, file := range feedtest.Glob(t, "../conformance/cases/walk/*.txtar") {
		text := feedtest.ReadFile(t, file)
		archive := feedtest.Parse(string(text))
		changes := slices.ContainsFunc(archive.Files, func(f feedtest.File) bool {
			return strings.Contains(f.Name, "#") || strings.Contains(f.Data, "{{count}}")
		})
		_, options := archive.File("options")
		judge, _ := archive.File("judge")
		if changes || options {
			continue
		}
		start := "/feed.atom"
		if _, after, given := strings.Cut(judge, "\nstart "); given {
			start, _, _ = strings.Cut(after, "\n")
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name+"/at once", func(t *testing.T) { testAsWalked(t, string(text), start, 0) })
		t.Run(name+"/bit by bit", func(t *testing.T) { testAsWalked(t, string(text), start, 4) })
	}
}

func testAsWalked(t *testing.T, text, start string, budget int) {
	site := feedtest.Serve(t, text)
	url := site.URL + start
	client := func() *feedhistory.Client {
		return &feedhistory.Client{
			AllowPrivate: true, Transport: feedtest.Direct{Handler: site},
			Tries: 1,
		}
	}
	want, err := client().Fetch(t.Context(), url)
	store := mirror.NewMemory()
	m := &mirror.Mirror{Store: store, Client: client()}
	m.Client.Budget.Documents = budget
	changes, updateErr := m.Update(t.Context(), url)
	for polls := 0; budget > 0 && updateErr == nil && changes.Failure == nil && changes.More && polls < 100; polls++ {
		changes, updateErr = m.Update(t.Context(), url)
	}
	require.NoError(t, updateErr)
	if err != nil {
		require.EqualError(t, changes.Failure, err.Error())
		return
	}
	require.NoError(t, changes.Failure)
	require.Equal(t, titles(want), held(t, store, url))
	require.Equal(t, want.Verdict().String(), changes.Feed.Verdict.String(), "%v, not %v", changes.Feed.Ledger.Gaps(), want.Gaps)
	require.Equal(t, want.Kind, changes.Feed.Kind)
}

func titles(h *feedhistory.History) map[string]string {
	titles := map[string]string{}
	for _, e := range h.Entries {
		titles[e.ID] = e.Title().Plain()
	}
	return titles
}
