package web

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/republish"
)

// The index.atom of a large feed is there as soon as the feed has been read; that of a
// small one, when it has changed after the first request.
func TestPrepared(t *testing.T) {
	out := &publish.MemoryOutput{}
	w := newWorld(t, func(s *Server) { s.Output = out })
	var entries []*feedhistory.Entry
	for n := range largeFeed {
		entries = append(entries, blogEntry(t, 2003+n/120, n%12+1, n/12%10+1, ""))
	}
	require.NoError(t, w.blog.Append(t.Context(), entries...))
	has := func(feed, text string) func() bool {
		return func() bool {
			found := false
			_ = fs.WalkDir(out, ".", func(name string, d fs.DirEntry, err error) error {
				if err == nil && d.Name() == "index.atom" {
					data, _ := fs.ReadFile(out, name)
					doc, err := feedhistory.Parse(bytes.NewReader(data), "")
					found = found || err == nil && strings.Contains(name, republish.Name(feed)) && strings.Contains(string(data), text) && len(doc.Entries) > 0
				}
				return nil
			})
			return found
		}
	}
	w.add("/blog/feed.atom")
	require.Eventually(t, has(w.feedURL("/blog/feed.atom"), "<entry"), patience, 10*time.Millisecond, "published without a request")
	tides := w.add("/tides.atom")
	w.get(tides + "/index.atom")
	require.True(t, has(w.feedURL("/tides.atom"), "<entry")())
	require.NoError(t, w.blog.Append(t.Context(), blogEntry(t, 2050, 1, 1, " at last")))
	w.poll(w.feedURL("/blog/feed.atom"))
	require.Eventually(t, has(w.feedURL("/blog/feed.atom"), " at last"), patience, 10*time.Millisecond, "up to date without a request")
}
