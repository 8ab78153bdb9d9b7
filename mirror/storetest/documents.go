package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

func document(url string, names ...string) *mirror.DocumentRecord {
	return &mirror.DocumentRecord{URL: url, Names: names}
}

// documentNamed returns the URL of the document with the name, "" if there is none.
func (w world) documentNamed(name string) string {
	w.Helper()
	d, err := w.Document(w.ctx, feedURL, name)
	if err != nil {
		require.ErrorIs(w, err, mirror.ErrNotFound)
		return ""
	}
	return d.URL
}

func testDocument(t *testing.T, w world) {
	var full mirror.DocumentRecord
	fill(&full)
	full.URL, full.Names = "full", []string{"z", "full", "a\x00"}
	w.commit(feedURL, mirror.Commit{Documents: []*mirror.DocumentRecord{&full, document("bare", "bare")}})
	for _, name := range full.Names {
		got, err := w.other.Document(w.ctx, feedURL, name)
		require.NoError(t, err)
		same(t, &full, got)
	}
	got, err := w.Document(w.ctx, feedURL, "bare")
	require.NoError(t, err)
	same(t, document("bare", "bare"), got)
	for _, name := range []string{"", "a", "FULL", "full "} {
		require.Empty(t, w.documentNamed(name))
	}
	_, err = w.Document(w.ctx, "another feed", "bare")
	require.ErrorIs(t, err, mirror.ErrNotFound)

	// A document with the same URL replaces it, and no other does.
	w.commit(feedURL, mirror.Commit{Documents: []*mirror.DocumentRecord{document("full", "full")}})
	got, err = w.Document(w.ctx, feedURL, "full")
	require.NoError(t, err)
	same(t, document("full", "full"), got)
	require.Empty(t, w.documentNamed("z"))
	require.Equal(t, "bare", w.documentNamed("bare"))

	for _, url := range oddURLs {
		w.commit(feedURL, mirror.Commit{Documents: []*mirror.DocumentRecord{document(url, url)}})
	}
	for _, url := range oddURLs {
		require.Equal(t, url, w.documentNamed(url))
	}
	require.Len(t, feedtest.All(t, w.Documents(w.ctx, feedURL)), 2+len(oddURLs))
}

func testNames(t *testing.T, w world) {
	w.commit(feedURL, mirror.Commit{Documents: []*mirror.DocumentRecord{document("one", "one", "self"), document("two", "two", "self", "self")}})
	require.Equal(t, "two", w.documentNamed("self"), "the last one")
	w.commit(feedURL, mirror.Commit{Documents: []*mirror.DocumentRecord{document("one", "one", "self")}})
	require.Equal(t, "one", w.documentNamed("self"), "the last one, over several commits")
	w.commit(feedURL, mirror.Commit{Documents: []*mirror.DocumentRecord{document("three", "three", "one")}})
	require.Equal(t, "three", w.documentNamed("one"), "a name that is another's URL")
	require.Equal(t, "one", w.documentNamed("self"))
	w.commit(feedURL, mirror.Commit{Documents: []*mirror.DocumentRecord{document("one", "one")}})
	require.Equal(t, "two", w.documentNamed("self"), "of those that have it still")
	require.Equal(t, "one", w.documentNamed("one"))
	w.commit("another feed", mirror.Commit{Documents: []*mirror.DocumentRecord{document("four", "self")}})
	require.Equal(t, "two", w.documentNamed("self"))

	d, err := w.Document(w.ctx, feedURL, "two")
	require.NoError(t, err)
	same(t, document("two", "two", "self", "self"), d)
	w.commit(feedURL, mirror.Commit{Documents: []*mirror.DocumentRecord{document("five", "x"), document("five", "five")}})
	require.Equal(t, "", w.documentNamed("x"), "the second of a change replaces the first")
	require.Equal(t, "five", w.documentNamed("five"))
	require.Len(t, feedtest.All(t, w.Documents(w.ctx, feedURL)), 4)
}

func testDocumentsByRank(t *testing.T, w world) {
	var want []*mirror.DocumentRecord
	for i := range 300 { // more than an implementation might read at once
		d := document(string(rune('a'+i)), string(rune('a'+i)))
		d.Rank = mirror.Rank{Time: at(i / 7), Seq: int64(i%7 - 3)}
		want = append([]*mirror.DocumentRecord{d}, want...)
	}
	for i := range want {
		if i%10 == 0 { // in a different order
			batch := append([]*mirror.DocumentRecord(nil), want[290-i:300-i]...)
			batch[2], batch[7] = batch[7], batch[2]
			w.commit(feedURL, mirror.Commit{Documents: batch})
		}
	}
	w.commit("another", mirror.Commit{Documents: []*mirror.DocumentRecord{document("x")}})
	same(t, want, feedtest.All(t, w.Documents(w.ctx, feedURL)))

	// The rank of the last commit counts.
	moved := *want[299]
	moved.Rank = mirror.Rank{Time: at(1000)}
	w.commit(feedURL, mirror.Commit{Documents: []*mirror.DocumentRecord{&moved}})
	same(t, append([]*mirror.DocumentRecord{&moved}, want[:299]...), feedtest.All(t, w.Documents(w.ctx, feedURL)))
}

func testForget(t *testing.T, w world) {
	w.commit(feedURL, mirror.Commit{
		Put: []*mirror.Record{live("a", at(0))}, Documents: []*mirror.DocumentRecord{document("one", "one", "self"), document("two", "two")},
	})
	w.commit("another", mirror.Commit{Documents: []*mirror.DocumentRecord{document("x", "x")}})
	w.commit(feedURL, mirror.Commit{Forget: true, Documents: []*mirror.DocumentRecord{document("two", "two", "new")}})
	same(t, []*mirror.DocumentRecord{document("two", "two", "new")}, feedtest.All(t, w.Documents(w.ctx, feedURL)))
	require.Equal(t, []string{"", "", "two", "two"}, []string{
		w.documentNamed("one"), w.documentNamed("self"), w.documentNamed("two"), w.documentNamed("new"),
	})
	w.commit(feedURL, mirror.Commit{Forget: true})
	require.Empty(t, feedtest.All(t, w.Documents(w.ctx, feedURL)))
	require.Equal(t, []string{"a"}, w.ids(mirror.Query{}), "entries stay")
	require.Len(t, feedtest.All(t, w.Documents(w.ctx, "another")), 1)
}
