package mirror_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// An erased entry does not come back, however often the feed shows it, and with
// whatever content. Other entries are not affected.
func TestErase(t *testing.T) {
	const head = `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:at="http://purl.org/atompub/tombstones/1.0"><title>F</title><id>urn:f</id><updated>2003-12-13T18:30:02Z</updated>`
	entry := func(id, updated, title string) string {
		return `<entry><id>` + id + `</id><title>` + title + `</title><updated>` + updated + `</updated></entry>`
	}
	feed := head + entry("urn:1", "2003-01-01T00:00:00Z", "secret") + entry("urn:2", "2003-01-02T00:00:00Z", "Two") + "</feed>"
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(feed)) }))
	m := &mirror.Mirror{Store: mirror.NewMemory(), Client: &feedhistory.Client{AllowPrivate: true}}
	defer m.Client.CloseIdle()
	update := func() *mirror.Report {
		c, err := m.Update(t.Context(), server.URL)
		require.NoError(t, err)
		return c
	}
	update()
	feed = strings.Replace(feed, "secret", "secret again", 1)
	feed = strings.Replace(feed, "2003-01-01", "2003-02-01", 1)
	update()
	before, err := m.Store.Feed(t.Context(), server.URL)
	require.NoError(t, err)

	require.ErrorIs(t, m.Erase(t.Context(), server.URL, "urn:2", "urn:none"), mirror.ErrNotFound)
	require.ErrorIs(t, m.Erase(t.Context(), "http://none.example/", "urn:2"), mirror.ErrNotFound)
	require.NoError(t, m.Erase(t.Context(), server.URL, "urn:1"))
	check := func() {
		t.Helper()
		f, err := m.Store.Feed(t.Context(), server.URL)
		require.NoError(t, err)
		require.EqualValues(t, 1, f.Entries)
		require.Less(t, usageOf(t, f).Contents, usageOf(t, before).Contents/2)
		left := feedtest.All(t, m.Store.Entries(t.Context(), mirror.Query{States: mirror.Current | mirror.Former}))
		require.Len(t, left, 1)
		require.Equal(t, "urn:2", left[0].ID)
		for range m.Store.Versions(t.Context(), server.URL, "urn:1") {
			require.Fail(t, "a version is left")
		}
		for _, r := range feedtest.All(t, m.Store.Entries(t.Context(), mirror.Query{States: mirror.Traces})) {
			require.Equal(t, mirror.Erased, r.State)
		}
	}
	check()
	for _, now := range []string{
		entry("urn:1", "2003-02-01T00:00:00Z", "secret again"), entry("urn:1", "2004-02-01T00:00:00Z", "secret still"),
		`<at:deleted-entry ref="urn:1" when="2005-01-01T00:00:00Z"/>`,
	} {
		feed = head + now + entry("urn:2", "2003-01-02T00:00:00Z", "Two") + "</feed>"
		changes := update()
		require.Zero(t, changes.Added+changes.Changed+changes.Deleted)
		check()
	}
	feed = strings.Replace(head, "<title>", `<fh:complete xmlns:fh="http://purl.org/syndication/history/1.0"/><title>`, 1) +
		entry("urn:1", "2004-02-01T00:00:00Z", "secret still") + entry("urn:2", "2003-01-02T00:00:00Z", "Two") + "</feed>"
	update()
	check()
}

// An erased entry that the feed still shows says nothing when all others have changed but for their
// times, as numbers of views do.
func TestErasedAmongRenewed(t *testing.T) {
	newest, views := 4, 0
	m := newMirror(mirror.NewMemory(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `<feed xmlns="http://www.w3.org/2005/Atom"><title>F</title><id>urn:f</id>`)
		for n := newest; n > newest-4; n-- {
			_, _ = fmt.Fprintf(w, `<entry><id>urn:%d</id><title>%[1]d, seen %d times</title><updated>2003-01-0%[1]dT00:00:00Z</updated></entry>`, n, views)
		}
		_, _ = fmt.Fprint(w, "</feed>")
	}))
	polled(t, m, modelURL)
	require.NoError(t, m.Erase(t.Context(), modelURL, "urn:3"))
	views++
	polled(t, m, modelURL)
	views++
	newest++
	changes := polled(t, m, modelURL)
	require.Equal(t, []int{1, 2}, []int{changes.Added, changes.Changed})
	gaps := changes.Feed.Ledger.Gaps()
	require.Len(t, gaps, 1)
	require.Equal(t, feedhistory.ReasonMissedWindow, gaps[0].Reason)
}
