package publish

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
)

// chainOf returns the published documents, newest first.
func chainOf(t require.TestingT, p *Publisher) (docs []*feedhistory.Document) {
	s, err := at(p).load()
	require.NoError(t, err)
	docs = append(docs, s.doc)
	for name := s.prev; name != ""; {
		a, err := at(p).archive(name)
		require.NoError(t, err)
		docs = append(docs, a.doc)
		name = a.prev
	}
	return docs
}

// A chronological feed keeps the order of time through all its documents,
// however its entries come and are cut, even if many have the same time: no
// archive is newer than a later entry, no document is older than its content,
// and the subscription document has the newest entry. Older items are refused.
func TestChronological(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		out := newMemory()
		p := newPublisher(out)
		p.Chronological, p.Versions = true, rapid.Bool().Draw(t, "versions")
		if p.Split.Size = rapid.IntRange(1, 5).Draw(t, "size"); rapid.Bool().Draw(t, "by day") {
			p.Split = feedhistory.Split{Period: feedhistory.Day}
		}
		require.NoError(t, p.Append(t.Context()))
		require.Empty(t, chainOf(t, p)[0].Entries)
		now, all, last := day, 0, map[string]time.Time{}
		for range rapid.IntRange(1, 6).Draw(t, "calls") {
			var entries []*feedhistory.Entry
			for range rapid.IntRange(0, 8).Draw(t, "entries") {
				at := now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "later")) * 13 * time.Hour)
				id := fmt.Sprintf("urn:%d", rapid.IntRange(0, 20).Draw(t, "id"))
				if at.After(last[id]) {
					entries = append(entries, entry(t, id, at, "text"))
					last[id] = at
				}
			}
			all += len(entries)
			require.NoError(t, p.Append(t.Context(), entries...))
			docs := chainOf(t, p)
			now = docs[0].Updated
			inOrder(t, docs)
			if all > 0 {
				require.NotEmpty(t, docs[0].Entries)
				require.Equal(t, now, docs[0].Entries[0].Updated)
				late := p.Append(t.Context(), entry(t, "urn:late", now.Add(-time.Second), "text"))
				require.ErrorIs(t, late, ErrLate)
			}
		}
		if p.Versions {
			for _, doc := range chainOf(t, p) {
				all -= len(doc.Entries)
			}
			require.Zero(t, all)
		}
	})
}

func inOrder(t require.TestingT, docs []*feedhistory.Document) {
	for i, doc := range docs {
		for _, e := range doc.Entries {
			require.False(t, e.Updated.After(doc.Updated))
			if i+1 < len(docs) {
				require.False(t, docs[i+1].Updated.After(e.Updated))
			}
		}
	}
}

// A function can decide, from the subscription document, whether it is marked
// as complete.
func TestCompleteIsAsked(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	p.Complete = func(d *feedhistory.Document) bool { return len(d.Entries) == 1 }
	for i, complete := range []bool{true, false} {
		require.NoError(t, p.Append(t.Context(), entry(t, fmt.Sprintf("urn:%d", i), day, "text")))
		require.Equal(t, complete, chainOf(t, p)[0].Complete)
	}
}

// The latest version counts, even if older ones are in the same document.
func TestVersionsAreKnown(t *testing.T) {
	out := newMemory()
	p := newPublisher(out)
	p.Versions = true
	first, second := entry(t, "urn:a", day, "first"), entry(t, "urn:a", day.Add(time.Hour), "second")
	require.NoError(t, p.Append(t.Context(), first, second))
	require.ErrorIs(t, p.Append(t.Context(), entry(t, "urn:a", day.Add(time.Minute), "between")), ErrStale)
	updated, err := p.Publish(t.Context(), Batch{Entries: []*feedhistory.Entry{second}})
	require.NoError(t, err)
	require.Equal(t, &Report{Unchanged: 1}, updated)
	require.Len(t, chainOf(t, p)[0].Entries, 2)
}
