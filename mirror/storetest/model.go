package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// testModel makes the same random changes to the store and to a mirror.Memory,
// and compares everything in them.
func testModel(t *testing.T, w world) {
	rapid.Check(t, func(t *rapid.T) {
		for _, f := range feedtest.All(w, w.Feeds(w.ctx, mirror.FeedQuery{})) {
			require.NoError(t, w.Remove(w.ctx, f.URL))
		}
		m := model{t: t, store: w, memory: &mirror.Memory{}}
		for range rapid.IntRange(1, 7).Draw(t, "steps") {
			url := drawURL.Draw(t, "feed")
			switch rapid.IntRange(0, 11).Draw(t, "step") {
			case 0:
				m.both("remove", func(s mirror.Store) error { return s.Remove(w.ctx, url) })
			case 1:
				stale := m.change(url)
				stale.Feed.Commits += int64(rapid.SampledFrom([]int{-1, 1}).Draw(t, "stale"))
				m.commit(stale)
			default:
				m.commit(m.change(url))
			}
			m.compare(url)
		}
	})
}

type model struct {
	t      *rapid.T
	store  world
	memory *mirror.Memory
}

var (
	drawURL    = rapid.SampledFrom([]string{"a", "b", "B"})
	drawID     = rapid.SampledFrom([]string{"1", "2", "3", "4", "5 ", "5"})
	drawName   = rapid.SampledFrom([]string{"x", "y", "z"})
	drawDigest = rapid.SampledFrom([]string{"d1", "d2", "d3", "d4"})
	drawState  = rapid.SampledFrom([]mirror.State{mirror.Live, mirror.Live, mirror.Deleted, mirror.Absent})
	drawTime   = rapid.Custom(func(t *rapid.T) time.Time {
		if n := rapid.IntRange(-1, 5).Draw(t, "time"); n >= 0 {
			return at(n)
		}
		return time.Time{}
	})
	drawRank = rapid.Custom(func(t *rapid.T) mirror.Rank {
		return mirror.Rank{Time: drawTime.Draw(t, "rank"), Seq: rapid.Int64Range(-2, 2).Draw(t, "place")}
	})
	drawCopy = rapid.Custom(func(t *rapid.T) mirror.Copy {
		return mirror.Copy{At: drawTime.Draw(t, "at"), Rank: drawRank.Draw(t, "rank"), Digest: drawDigest.Draw(t, "digest"), Source: drawDigest.Draw(t, "source")}
	})
	drawContent = rapid.Custom(func(t *rapid.T) mirror.Content {
		word := rapid.StringMatching(`[a-c]{1,2}( [a-c])?`)
		c := content(word.Draw(t, "title"), word.Draw(t, "text"), drawTime.Draw(t, "updated"))
		c.Published = drawTime.Draw(t, "published")
		return c
	})
	drawDocument = rapid.Custom(func(t *rapid.T) *mirror.DocumentRecord {
		return &mirror.DocumentRecord{
			URL: drawName.Draw(t, "url"), Names: rapid.SliceOfN(drawName, 0, 3).Draw(t, "names"),
			Rank: drawRank.Draw(t, "rank"), Entries: rapid.IntRange(0, 9).Draw(t, "entries"),
		}
	})
	drawVersion = rapid.Custom(func(t *rapid.T) *mirror.Version {
		return &mirror.Version{ID: drawID.Draw(t, "id"), Copy: drawCopy.Draw(t, "copy"), Content: drawContent.Draw(t, "content")}
	})
)

// change draws a change of a feed, as the model has it.
func (m *model) change(url string) *mirror.Commit {
	f, err := m.memory.Feed(m.store.ctx, url)
	if err != nil {
		f = &mirror.Feed{URL: url}
	}
	f.Next, f.Gone = drawTime.Draw(m.t, "next"), rapid.IntRange(0, 4).Draw(m.t, "gone") == 0
	c := &mirror.Commit{
		Feed: f, Keep: rapid.IntRange(0, 3).Draw(m.t, "keep"), Forget: rapid.IntRange(0, 7).Draw(m.t, "forget") == 0,
		Documents: rapid.SliceOfN(drawDocument, 0, 3).Draw(m.t, "documents"),
		Versions:  rapid.SliceOfN(drawVersion, 0, 3).Draw(m.t, "versions"),
	}
	for _, id := range rapid.SliceOfNDistinct(drawID, 0, 4, rapid.ID[string]).Draw(m.t, "ids") {
		r := &mirror.Record{
			ID: id, State: drawState.Draw(m.t, "state"), Copy: drawCopy.Draw(m.t, "copy"),
			Archived: rapid.Bool().Draw(m.t, "archived"), Absence: rapid.Int64Range(0, 1).Draw(m.t, "absence"),
			Tombstone:  mirror.TombstoneRecord{When: drawTime.Draw(m.t, "deleted"), Rank: drawRank.Draw(m.t, "tombstone")},
			LastCommit: rapid.Int64Range(0, 4).Draw(m.t, "change"), Added: drawTime.Draw(m.t, "added"), Changed: drawTime.Draw(m.t, "changed"),
		}
		known, _ := m.memory.Records(m.store.ctx, url, []string{id})
		switch {
		case rapid.Bool().Draw(m.t, "put"):
			r.Content = drawContent.Draw(m.t, "content")
			c.Put = append(c.Put, r)
		case known[id] == nil || known[id].Content.Format == 0:
			r.State, r.Copy = mirror.Unseen, mirror.Copy{}
			fallthrough
		default:
			c.Touch = append(c.Touch, r)
		}
	}
	return c
}

func (m *model) commit(c *mirror.Commit) {
	version := c.Feed.Commits
	m.both("commit", func(s mirror.Store) error {
		c.Feed.Commits = version
		return s.Commit(m.store.ctx, c)
	})
}

// both does the same thing to the store and to the model, and requires the same
// result.
func (m *model) both(what string, do func(mirror.Store) error) {
	want, got := do(m.memory), do(m.store.Store)
	for _, known := range []error{mirror.ErrConflict, mirror.ErrNotFound} {
		require.Equal(m.t, errors.Is(want, known), errors.Is(got, known), "%s: %v, %v", what, want, got)
	}
	require.Equal(m.t, want == nil, got == nil, "%s: %v, %v", what, want, got)
}

// compare compares the results of queries for the changed feed, and for all feeds.
func (m *model) compare(changed string) {
	ctx, a, b := m.store.ctx, m.memory, m.store.other
	for _, q := range []mirror.FeedQuery{{}, {Due: drawTime.Draw(m.t, "due")}, {Limit: 1}, {After: "B"}} {
		same(m.t, feedtest.All(m.t, a.Feeds(ctx, q)), feedtest.All(m.t, b.Feeds(ctx, q)), "%+v", q)
	}
	changes := rapid.Int64Range(-1, 4).Draw(m.t, "changes")
	q := mirror.Query{
		Deleted: rapid.Bool().Draw(m.t, "with deleted"), Limit: rapid.IntRange(0, 3).Draw(m.t, "limit"),
		Since: drawTime.Draw(m.t, "since"), Until: drawTime.Draw(m.t, "until"),
	}
	word := rapid.StringMatching(`[a-c]{1,2}`).Draw(m.t, "word")
	m.compareFeed(changed)
	for _, url := range []string{"", changed} {
		q.Feed = url
		beyond := &mirror.Place{Time: drawTime.Draw(m.t, "time"), Feed: "a", Commit: 2, ID: drawID.Draw(m.t, "id")}
		list := []mirror.Query{{Feed: url, Deleted: true}, {Feed: url, Beyond: beyond}, q, {Feed: url, Search: word}}
		if url != "" {
			list = append(list, mirror.Query{Feed: url, AfterCommit: &changes, Deleted: true}, mirror.Query{Feed: url, AfterCommit: &changes, Beyond: beyond})
		}
		for _, q := range list {
			same(m.t, feedtest.All(m.t, a.Entries(ctx, q)), feedtest.All(m.t, b.Entries(ctx, q)), "%+v", q)
		}
	}
}

// compareFeed compares the things queries do not return.
func (m *model) compareFeed(url string) {
	ctx, a, b := m.store.ctx, m.memory, m.store.other
	ids := []string{"1", "2", "3", "4", "5 ", "5", "6"}
	want, err := a.Records(ctx, url, ids)
	require.NoError(m.t, err)
	got, err := b.Records(ctx, url, ids)
	require.NoError(m.t, err)
	require.Len(m.t, got, len(want))
	for _, id := range ids {
		same(m.t, want[id], got[id])
		same(m.t, feedtest.All(m.t, a.Versions(ctx, url, id)), feedtest.All(m.t, b.Versions(ctx, url, id)), "versions of %s", id)
	}
	same(m.t, feedtest.All(m.t, a.Documents(ctx, url)), feedtest.All(m.t, b.Documents(ctx, url)))
	for _, name := range []string{"x", "y", "z"} {
		want, errA := a.Document(ctx, url, name)
		got, errB := b.Document(ctx, url, name)
		require.Equal(m.t, fmt.Sprint(errA == nil), fmt.Sprint(errB == nil))
		same(m.t, want, got)
	}
}
