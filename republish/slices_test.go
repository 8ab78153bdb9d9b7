package republish

import (
	"encoding/xml"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// requireWellFormed checks a document with a different parser.
func requireWellFormed(t require.TestingT, text string) {
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			require.NoError(t, err, text)
		}
	}
}

// Slices are separate feeds, and together they are the feed.
func TestSlices(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(2003, 2012)
	for _, path := range []string{"/blog/feed.atom", "/news.rss"} {
		page, feed := w.add(path), w.feedURL(path)
		f, err := w.Store.Feed(t.Context(), feed)
		require.NoError(t, err)

		// With the sizes that readers accept, as small as possible here.
		var groups []Slice
		for r, err := range w.Store.Entries(t.Context(), mirror.Query{Feed: feed}) {
			require.NoError(t, err)
			groups = append(groups, Slice{Since: r.Time(), Entries: 1, Bytes: 1000})
		}
		cut := cut(groups, 40_000, 1000)
		require.Equal(t, path == "/blog/feed.atom", len(cut.Slices) > 3)
		for _, format := range []string{"atom", "rss"} {
			got := map[string]string{}
			for _, part := range cut.Slices {
				address := page + "/slice." + format + "?" + part.Query()
				status, body, header := w.get(address)
				require.Equal(t, http.StatusOK, status, body)
				require.Contains(t, header.Get("Content-Type"), format)
				requireWellFormed(t, body)
				h, err := reader().Fetch(t.Context(), strings.TrimSuffix(w.url, "/")+address)
				require.NoError(t, err)
				require.Len(t, h.Entries, part.Entries)
				require.Equal(t, f.Verdict == feedhistory.Whole, h.Head.Complete)
				for _, e := range h.Entries {
					require.NotContains(t, got, e.ID)
					got[e.ID] = words(e)
				}
				w.checked(address)
			}
			require.Equal(t, w.mirrored(feed), got)
		}
	}
	page := "/feeds/" + Name(w.feedURL("/news.rss"))
	for query, want := range map[string]string{
		"since=x": "neither a date", "since=2004-01-01&until=2004-01-01": "must be before",
		"since=": "neither a date", "form=2004-01-01": "form= is unknown", "since=2004-01-01&since=2005-01-01": "since= is given twice",
	} {
		require.Contains(t, w.refused(page+"/slice.atom?"+query, http.StatusBadRequest), want)
	}
}

// However entries are spread, each is in one slice, no slice is too large, and
// existing slices stay as the feed grows.
func TestCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := time.Date(2003, 1, 1, 0, 0, 0, 0, time.UTC)
		most := int64(rapid.IntRange(100, 1000).Draw(t, "most"))
		var groups []Slice // newest first
		total := 0
		for range rapid.IntRange(0, 60).Draw(t, "groups") {
			at = at.Add(time.Duration(1+rapid.IntRange(0, 1000).Draw(t, "gap")) * time.Second)
			g := Slice{Since: at, Entries: rapid.IntRange(1, 3).Draw(t, "entries"), Bytes: int64(rapid.IntRange(1, 300).Draw(t, "bytes"))}
			groups = append([]Slice{g}, groups...)
			total += g.Entries
		}
		all := cut(groups, most, 10)
		for i, part := range all.Slices {
			total -= part.Entries
			single := 0
			for _, g := range groups {
				if !g.Since.Before(part.Since) && (part.Until.IsZero() || g.Since.Before(part.Until)) {
					single++
				}
			}
			require.True(t, part.Bytes <= most || single == 1)
			require.Equal(t, i == 0, part.Since.IsZero())
			require.Equal(t, i == len(all.Slices)-1, part.Until.IsZero())
			if i > 0 {
				require.Equal(t, all.Slices[i-1].Until, part.Since)
			}
		}
		require.Zero(t, total)
		if len(groups) > 1 {
			before := cut(groups[1:], most, 10)
			for i, part := range before.Slices[:len(before.Slices)-1] {
				require.Equal(t, part, all.Slices[i])
			}
		}
	})
}
