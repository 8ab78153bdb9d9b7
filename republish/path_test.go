package republish

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
)

// A Handler below a path answers requests with the path, and those from which a
// proxy has removed it; all its links contain the path.
func TestPath(t *testing.T) {
	w := newWorld(t, nil)
	w.write(2003, 2012)
	page, feed := w.add("/blog/feed.atom"), w.feedURL("/blog/feed.atom")
	for _, path := range []string{"/", "/feeds/", "/a/b/", "/ä b/"} {
		base := "https://h.example" + strings.ReplaceAll(strings.ReplaceAll(path, " ", "%20"), "ä", "%C3%A4")
		h := &Handler{Store: w.Store, Base: base}
		for _, prefix := range []string{strings.TrimSuffix(strings.TrimPrefix(base, "https://h.example"), "/"), ""} {
			index := asked(t, h, prefix+page+"/index.atom")
			doc, err := feedhistory.Parse(strings.NewReader(index), "")
			require.NoError(t, err)
			self, _ := doc.Links.Rel(feedhistory.RelSelf)
			require.Equal(t, base+strings.TrimPrefix(page, "/")+"/index.atom", self.Href)
			older, _ := doc.Links.Rel(feedhistory.RelPrevArchive)
			require.True(t, strings.HasPrefix(older.Href, base))
			asked(t, h, prefix+"/"+strings.TrimPrefix(older.Href, base))
			for _, document := range []string{"/complete.atom", "/slice.rss", "/replay.atom?start=2020-01-01&every=1d"} {
				require.Contains(t, asked(t, h, prefix+page+document), `href="`+base)
			}
			status, _, header := answer(h, getRequest(t.Context(), prefix+"/feeds/"+oldName(feed)+"/complete.atom?a=b"))
			require.Equal(t, http.StatusPermanentRedirect, status)
			require.Equal(t, strings.TrimPrefix(base, "https://h.example")+strings.TrimPrefix(page, "/")+"/complete.atom?a=b", header.Get("Location"))
			status, body, _ := answer(h, getRequest(t.Context(), prefix+"/elsewhere"))
			require.Equal(t, http.StatusNotFound, status, body)
		}
	}
}
