package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
)

// A shelf is an endless feed: entries in the order of a PageFunc.
type shelf struct{ entries []*feedhistory.Entry }

func newestFirst(a, b Position) int {
	return cmp.Or(b.Updated.Compare(a.Updated), strings.Compare(b.ID, a.ID))
}

func (s *shelf) add(id string, updated time.Time) {
	e, err := compose.Draft{ID: id, Updated: updated, Title: feedhistory.Text{Body: id}}.Entry()
	if err != nil {
		panic(err)
	}
	s.entries = append(s.entries, e)
	slices.SortFunc(s.entries, func(a, b *feedhistory.Entry) int { return newestFirst(positionOf(a), positionOf(b)) })
}

func (s *shelf) older(_ context.Context, than Position, limit int) ([]*feedhistory.Entry, bool, error) {
	rest := s.entries
	if !than.IsZero() {
		rest = slices.DeleteFunc(slices.Clone(rest), func(e *feedhistory.Entry) bool { return newestFirst(positionOf(e), than) <= 0 })
	}
	return rest[:min(limit, len(rest))], len(rest) > limit, nil
}

func (s *shelf) newer(_ context.Context, than Position, limit int) ([]*feedhistory.Entry, bool, error) {
	rest := slices.DeleteFunc(slices.Clone(s.entries), func(e *feedhistory.Entry) bool { return newestFirst(positionOf(e), than) >= 0 })
	return rest[max(len(rest)-limit, 0):], len(rest) > limit, nil
}

var pagesHead = &feedhistory.Document{ID: "urn:log", Title: "Log", Authors: []feedhistory.Person{{Name: "A"}}}

// readPage requests a page and parses it.
func readPage(t require.TestingT, h http.Handler, target string, header ...string) *feedhistory.Document {
	w := getPath(h, target, header...)
	require.Equal(t, http.StatusOK, w.Code, "%s: %s", target, w.Body)
	doc, err := feedhistory.Parse(w.Body, "http://example.org"+target)
	require.NoError(t, err, target)
	return doc
}

// followLink returns the path and query of a link; "" if there is none.
func followLink(doc *feedhistory.Document, rel string) string {
	link, ok := doc.Links.Rel(rel)
	if !ok {
		return ""
	}
	u, err := url.Parse(link.Href)
	if err != nil {
		panic(err)
	}
	return u.RequestURI()
}

func pageIDs(entries []*feedhistory.Entry) (list []string) {
	for _, e := range entries {
		list = append(list, e.ID)
	}
	return list
}

// Entries are added while pages are read forwards and backwards. None of those
// that were there at the start is repeated or skipped.
func TestPagesWhileEntriesAreAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &shelf{}
		next := 0
		add := func(when int) {
			s.add(fmt.Sprintf("urn:%d", next), time.Unix(int64(when), 0))
			next++
		}
		for range rapid.IntRange(0, 25).Draw(t, "at the start") {
			add(rapid.IntRange(0, 10).Draw(t, "time"))
		}
		want := pageIDs(s.entries)
		h := &Pages{Head: pagesHead, Older: s.older, Newer: s.newer, Size: rapid.IntRange(1, 7).Draw(t, "size")}
		walk := func(from, rel string) (got []string, last string) {
			for target := from; target != ""; {
				doc := readPage(t, h, target)
				require.Equal(t, feedhistory.KindPaged, doc.Kind())
				require.Equal(t, target, followLink(doc, "self"))
				require.Equal(t, "/log", followLink(doc, "first"))
				page := pageIDs(doc.Entries)
				if rel == "previous" {
					slices.Reverse(page)
				}
				got, last = append(got, page...), target
				for range rapid.IntRange(0, 3).Draw(t, "added") {
					if next > 60 {
						break // otherwise the way back might not end
					}
					add(rapid.IntRange(11, 20).Draw(t, "newer"))
				}
				target = followLink(doc, rel)
			}
			return got, last
		}
		got, last := walk("/log", "next")
		require.Equal(t, want, got)
		require.Equal(t, last, cmp.Or(followLink(readPage(t, h, last), "last"), last))

		if last == "/log" {
			return // the first page, which has changed since
		}
		// Back again, with everything that has been added since.
		back, _ := walk(last, "previous")
		slices.Reverse(back)
		seen := map[string]bool{}
		for _, id := range back {
			require.False(t, seen[id], "repeated: %s", id)
			seen[id] = true
		}
		require.True(t, len(back) >= len(want))
		require.Equal(t, strings.Join(want, " "), strings.Join(back[len(back)-len(want):], " "))
	})
}

func TestPagesLinks(t *testing.T) {
	s := &shelf{}
	h := &Pages{Head: pagesHead, Older: s.older, Newer: s.newer, Size: 2}
	empty := readPage(t, h, "/log")
	assert.Equal(t, "/log", followLink(empty, "last"))
	assert.Empty(t, followLink(empty, "next"))

	for i := range 3 {
		s.add(fmt.Sprintf("urn:%d", i), time.Unix(int64(i), 5))
	}
	first := readPage(t, h, "/log?q=a+b")
	assert.Equal(t, []string{"urn:2", "urn:1"}, pageIDs(first.Entries))
	assert.Equal(t, "/log?q=a+b", followLink(first, "first"))
	assert.Empty(t, followLink(first, "previous"))
	assert.Empty(t, followLink(first, "last"), "not known yet")

	second := readPage(t, h, followLink(first, "next"))
	assert.Equal(t, []string{"urn:0"}, pageIDs(second.Entries))
	assert.Equal(t, followLink(second, "self"), followLink(second, "last"))
	assert.Contains(t, followLink(second, "self"), "q=a+b")

	back := readPage(t, h, followLink(second, "previous"))
	assert.Equal(t, pageIDs(first.Entries), pageIDs(back.Entries))
	assert.Empty(t, followLink(back, "previous"))
	assert.Equal(t, followLink(first, "next"), followLink(back, "next"))

	// Everything newer has been deleted: the previous page is the first one.
	s.entries = s.entries[2:]
	w := getPath(h, followLink(second, "previous"))
	assert.Equal(t, http.StatusTemporaryRedirect, w.Code)
	assert.Equal(t, "/log?q=a+b", w.Header().Get("Location"))

	h.Newer = nil
	assert.Empty(t, followLink(readPage(t, h, followLink(first, "next")), "previous"))
	assert.Equal(t, http.StatusBadRequest, getPath(h, followLink(second, "previous")).Code)
}

// The URL is the configured one, or else the requested path, which can never be
// another host's address.
func TestPagesURL(t *testing.T) {
	s := &shelf{}
	self := func(h http.Handler, target string) string {
		doc, err := feedhistory.Parse(getPath(h, target).Body, "")
		require.NoError(t, err)
		link, _ := doc.Links.Rel("self")
		return link.Href
	}
	h := &Pages{Head: pagesHead, Older: s.older}
	assert.Equal(t, "/a/log", self(http.StripPrefix("/a", h), "/a/log"))
	assert.Equal(t, "/evil.example/", self(h, "http://example.org//evil.example/"))
	assert.Equal(t, "/%3c%22", self(h, "/%3c%22"))
	h.URL = "https://example.org/log?feed=1"
	assert.Equal(t, "https://example.org/log?feed=1&q=1", self(h, "/x?q=1&feed=2"))
}

func TestPagesRefuse(t *testing.T) {
	s := &shelf{}
	s.add("urn:1", time.Unix(1, 0))
	h := &Pages{Head: pagesHead, Older: s.older, Newer: s.newer}
	token := Position{time.Unix(1, 0), "urn:1"}.token()
	require.Equal(t, http.StatusOK, getPath(h, "/log?before="+token).Code)
	for _, query := range []string{
		"before=", "before=x", "before=" + token[1:], "before=" + token[:len(token)-1], "before=" + token + "A",
		"before=" + token + "&before=" + token, "before=" + token + "&after=" + token, "before=AAAA",
		"before=" + strings.Repeat("A", 100_000), "before=%00",
	} {
		w := getPath(h, "/log?"+query)
		assert.Equal(t, http.StatusBadRequest, w.Code, query)
		assert.Equal(t, "this is not the address of a page; begin with the first page: /log\n", w.Body.String())
	}
	r := httptest.NewRequest(http.MethodPost, "/log", nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	assert.Equal(t, http.StatusMethodNotAllowed, w.Code)

	h.Older = func(context.Context, Position, int) ([]*feedhistory.Entry, bool, error) {
		return nil, false, errors.New("no database")
	}
	failed := getPath(h, "/log")
	assert.Equal(t, http.StatusInternalServerError, failed.Code)
	assert.NotContains(t, failed.Body.String(), "database")
}

func TestPagesFormats(t *testing.T) {
	s := &shelf{}
	for i := range 30 {
		s.add(fmt.Sprintf("urn:%d", i), time.Unix(int64(i), 0))
	}
	h := &Pages{Head: pagesHead, Older: s.older}
	atom := getPath(h, "/log")
	assert.Equal(t, "application/atom+xml", atom.Header().Get("Content-Type"))
	assert.Equal(t, []string{"Accept", "Accept-Encoding"}, atom.Header()["Vary"])
	assert.Equal(t, "public, max-age=60", atom.Header().Get("Cache-Control"))
	assert.Equal(t, []string{`</log>; rel="first"`, `</log>; rel="last"`}, atom.Header()["Link"])
	again := getPath(h, "/log", "If-None-Match", atom.Header().Get("Etag"))
	assert.Equal(t, http.StatusNotModified, again.Code)

	rss := getPath(h, "/log", "Accept", "application/rss+xml")
	assert.Equal(t, "application/rss+xml", rss.Header().Get("Content-Type"))
	packed := getPath(h, "/log", "Accept-Encoding", "gzip")
	z, err := gzip.NewReader(packed.Body)
	require.NoError(t, err)
	doc, err := feedhistory.Parse(z, "")
	require.NoError(t, err)
	assert.Len(t, doc.Entries, 30)
	assert.NotEqual(t, atom.Header().Get("Etag"), packed.Header().Get("Etag"))

	h.Format, h.MaxAge = feedhistory.FormatRSS, -1
	fixed := getPath(h, "/log", "Accept", "application/atom+xml")
	assert.Equal(t, "application/rss+xml", fixed.Header().Get("Content-Type"))
	assert.Equal(t, "no-cache", fixed.Header().Get("Cache-Control"))
	assert.Equal(t, []string{"Accept-Encoding"}, fixed.Header()["Vary"])
	h.Format = feedhistory.FormatJSONFeed
	assert.Equal(t, http.StatusInternalServerError, getPath(h, "/log").Code)
}

// A query that returns more than the limit does no harm.
func TestPagesOfAGenerousQuery(t *testing.T) {
	s := &shelf{}
	for i := range 7 {
		s.add(fmt.Sprintf("urn:%d", i), time.Unix(int64(i), 0))
	}
	generous := func(q PageFunc) PageFunc {
		return func(ctx context.Context, than Position, limit int) ([]*feedhistory.Entry, bool, error) {
			entries, _, err := q(ctx, than, limit+2)
			return entries, false, err
		}
	}
	h := &Pages{Head: pagesHead, Older: generous(s.older), Newer: generous(s.newer), Size: 3}
	second := readPage(t, h, followLink(readPage(t, h, "/log"), "next"))
	assert.Equal(t, []string{"urn:3", "urn:2", "urn:1"}, pageIDs(second.Entries))
	third := readPage(t, h, followLink(second, "next"))
	assert.Equal(t, []string{"urn:0"}, pageIDs(third.Entries))
	assert.Equal(t, pageIDs(second.Entries), pageIDs(readPage(t, h, followLink(third, "previous")).Entries))
}

func TestToken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Position{
			Updated: time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "seconds"),
				rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).UTC(),
			ID: rapid.StringN(1, 100, 1000).Draw(t, "id"),
		}
		got, err := parseToken(c.token())
		require.NoError(t, err)
		require.Equal(t, c.ID, got.ID)
		require.True(t, c.Updated.Equal(got.Updated))
	})
	none := Position{ID: "urn:1"}
	got, err := parseToken(none.token())
	require.NoError(t, err)
	assert.True(t, got.Updated.IsZero(), "an entry without a time")
}

func FuzzToken(f *testing.F) {
	f.Add(Position{time.Unix(1, 2), "urn:1"}.token())
	f.Fuzz(func(t *testing.T, token string) {
		if c, err := parseToken(token); err == nil {
			assert.Equal(t, token, c.token())
		}
	})
}
