package republish

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

const damagedURL = "https://site.test/feed"

// A damagedStore has a feed of entries with the given ids, one of which cannot
// be read.
func damagedStore(t *testing.T, damaged int) (*mirror.Memory, func(n int, text string)) {
	store := &mirror.Memory{}
	feed := &mirror.Feed{
		URL: damagedURL, Title: "Site", Kind: feedhistory.Archived, Verdict: feedhistory.Whole, Known: feedhistory.Known{URL: damagedURL},
		Head: `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:site</id><title>Site</title><updated>2026-01-01T00:00:00Z</updated><author><name>A</name></author></feed>`,
	}
	put := func(n int, text string) {
		at := time.Date(2020, 1, 1+n, 0, 0, 0, 0, time.UTC)
		id := fmt.Sprint("urn:", n)
		known, err := store.Records(t.Context(), damagedURL, []string{id})
		require.NoError(t, err)
		first := feed.Commits + 1
		if r := known[id]; r != nil {
			first = r.FirstCommit
		}
		feed.Changed = at
		require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: feed, Put: []*mirror.Record{{
			Feed: damagedURL, ID: id, State: mirror.Live, FirstCommit: first, LastCommit: feed.Commits + 1, Added: at, Changed: at, Copy: mirror.Copy{At: at, Digest: text},
			Content: mirror.Content{Format: feedhistory.Atom, Updated: at, Data: text},
		}}}))
	}
	for n := range 25 {
		put(n, soundEntry(n))
	}
	put(damaged, `<entry xmlns="http://www.w3.org/2005/Atom"><id>urn:`)
	return store, put
}

func soundEntry(n int) string {
	return fmt.Sprintf(`<entry xmlns="http://www.w3.org/2005/Atom"><id>urn:%d</id><title>%[1]d</title><updated>2020-01-%02dT00:00:00Z</updated></entry>`, n, n+1)
}

// An entry the mirror cannot read is missing from every document, and every
// document says that something is missing, until the entry can be read again.
func TestLoss(t *testing.T) {
	for _, damaged := range []int{0, 3, 24} {
		store, put := damagedStore(t, damaged)
		h := &Handler{Store: store, Size: 10}
		server := httptest.NewServer(h)
		defer server.Close()
		site := server.URL + "/feeds/" + Name(damagedURL)
		requirePartial := func(document string) {
			t.Helper()
			history, err := direct(h).Fetch(t.Context(), "http://127.0.0.1:8005/feeds/"+Name(damagedURL)+document)
			require.NoError(t, err, document)
			require.Equal(t, feedhistory.Partial, history.Verdict(), document)
			text := asked(t, h, "/feeds/"+Name(damagedURL)+document)
			require.NotContains(t, text, "fh:complete", document)
			require.Contains(t, text, "Entries may be missing", document)
			require.Contains(t, text, `verdict="partial"`, document)
		}
		for _, document := range []string{"/complete.atom", "/slice.atom?since=2019-01-01", "/slice.rss"} {
			resp, err := http.Get(site + document)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				require.NoError(t, resp.Body.Close())
			}
			if document == "/complete.atom" {
				require.Error(t, err, "the first document breaks off")
			}
			requirePartial(document)
		}
		requirePartial("/index.atom")
		requirePartial("/index.rss")
		if damaged < 24 {
			requirePartial("/replay.atom?start=2021-01-01&every=1d")
		}

		put(damaged, soundEntry(damaged))
		for _, document := range []string{"/complete.atom", "/index.atom", "/index.rss"} {
			text := asked(t, h, "/feeds/"+Name(damagedURL)+document)
			require.NotContains(t, text, "Entries may be missing", document)
			require.Contains(t, text, `verdict="whole"`, document)
			history, err := direct(h).Fetch(t.Context(), "http://127.0.0.1:8005/feeds/"+Name(damagedURL)+document)
			require.NoError(t, err)
			require.Equal(t, feedhistory.Whole, history.Verdict(), document)
			require.Len(t, history.Entries, 25, document)
		}
	}
}
