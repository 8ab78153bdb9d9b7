package publish

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// The subscription document passes on what a feed says about its coverage, and
// keeps it when it is published again. Archives, which never change, do not
// have it.
func TestCoverageIsHandedOn(t *testing.T) {
	coverage := &feedhistory.Coverage{Of: "http://example.org/feed", Kind: feedhistory.Plain, Verdict: feedhistory.Window}
	out := Dir{Path: t.TempDir()}
	p := &Publisher{
		Output: out, Base: "http://mirror.example/", Split: feedhistory.Split{Size: 2},
		Head: &feedhistory.Document{ID: "urn:feed", Title: "A", Coverage: coverage},
	}
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 5)...))
	p = &Publisher{Output: out, Base: p.Base, Split: p.Split} // this one takes the published head
	require.NoError(t, p.Append(t.Context(), entries(t, 6, 1)...))

	documents := 0
	require.NoError(t, fs.WalkDir(out, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".atom") {
			return err
		}
		documents++
		text, err := fs.ReadFile(out, name)
		require.Equal(t, name == p.name(), strings.Contains(string(text), "m:mirror"), name)
		return err
	}))
	require.Greater(t, documents, 2)

	client := &feedhistory.Client{Transport: feedtest.Direct{Handler: &Handler{FS: out}}}
	h, err := client.Fetch(t.Context(), p.URL())
	require.NoError(t, err)
	require.Len(t, h.Entries, 6)
	require.Equal(t, feedhistory.Window, h.Verdict())
}
