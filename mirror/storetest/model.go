package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// testModel makes random changes, and compares everything in the stores.
func testModel(t *testing.T, w *world) {
	rapid.Check(t, func(t *rapid.T) {
		for _, f := range feedtest.All(t, w.Feeds(w.ctx, mirror.FeedQuery{})) {
			require.NoError(t, w.Remove(w.ctx, f.URL))
		}
		m := *w
		m.tester, m.memory = t, mirror.NewMemory()
		for range rapid.IntRange(1, 7).Draw(t, "steps") {
			url := drawURL.Draw(t, "feed")
			switch rapid.IntRange(0, 11).Draw(t, "step") {
			case 0:
				m.remove(url)
			case 1:
				stale := m.draw(t, url)
				stale.Feed.Commits += int64(rapid.SampledFrom([]int{-1, 1}).Draw(t, "stale"))
				m.commitDrawn(stale)
			default:
				m.commitDrawn(m.draw(t, url))
			}
			m.compare(t, url)
		}
	})
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
	drawVersion = rapid.Custom(func(t *rapid.T) *mirror.Record {
		return &mirror.Record{ID: drawID.Draw(t, "id"), Copy: drawCopy.Draw(t, "copy"), Content: drawContent.Draw(t, "content")}
	})
)

// draw draws a change of a feed, as the Memory has it.
func (w *world) draw(t *rapid.T, url string) *mirror.Commit {
	f, err := w.memory.Feed(w.ctx, url)
	if err != nil {
		f = &mirror.Feed{URL: url}
	}
	f.Next, f.Gone = drawTime.Draw(t, "next"), rapid.IntRange(0, 4).Draw(t, "gone") == 0
	c := &mirror.Commit{
		Feed: f, Keep: rapid.IntRange(0, 3).Draw(t, "keep"), Forget: rapid.IntRange(0, 7).Draw(t, "forget") == 0,
		Documents: rapid.SliceOfN(drawDocument, 0, 3).Draw(t, "documents"),
		Versions:  rapid.SliceOfN(drawVersion, 0, 3).Draw(t, "versions"),
	}
	for _, id := range rapid.SliceOfNDistinct(drawID, 0, 4, rapid.ID[string]).Draw(t, "ids") {
		r := &mirror.Record{
			ID: id, State: drawState.Draw(t, "state"), Copy: drawCopy.Draw(t, "copy"),
			Archived: rapid.Bool().Draw(t, "archived"), Absence: rapid.Int64Range(0, 1).Draw(t, "absence"),
			Tombstone:  mirror.TombstoneRecord{When: drawTime.Draw(t, "deleted"), Rank: drawRank.Draw(t, "tombstone")},
			LastCommit: rapid.Int64Range(0, 4).Draw(t, "change"), Added: drawTime.Draw(t, "added"), Changed: drawTime.Draw(t, "changed"),
		}
		known, _ := w.memory.Records(w.ctx, url, []string{id})
		switch {
		case rapid.Bool().Draw(t, "put"):
			r.Content = drawContent.Draw(t, "content")
			c.Put = append(c.Put, r)
		case known[id] == nil || known[id].Content.Format == "":
			r.State, r.Copy = mirror.Unseen, mirror.Copy{}
			fallthrough
		default:
			c.Touch = append(c.Touch, r)
		}
	}
	return c
}

// commitDrawn commits a change to the store as it is.
func (w *world) commitDrawn(c *mirror.Commit) {
	version := c.Feed.Commits
	w.both("commit", func(s mirror.Store) error {
		c.Feed.Commits = version
		return s.Commit(w.ctx, c)
	})
}

// compare compares everything of the changed feed, and what queries yield of all feeds.
func (w *world) compare(t *rapid.T, changed string) {
	for _, q := range []mirror.FeedQuery{{}, {Due: drawTime.Draw(t, "due")}, {Limit: 1}, {After: "B"}} {
		w.feeds(q)
	}
	after := rapid.Int64Range(-1, 4).Draw(t, "changes")
	q := mirror.Query{
		States: mirror.States(rapid.IntRange(0, int(mirror.AllStates)).Draw(t, "states")), Limit: rapid.IntRange(0, 3).Draw(t, "limit"),
		Skip: rapid.IntRange(0, 4).Draw(t, "skip"), Reverse: rapid.Bool().Draw(t, "reverse"),
		Since: drawTime.Draw(t, "since"), Until: drawTime.Draw(t, "until"),
	}
	word := rapid.StringMatching(`[a-c]{1,2}`).Draw(t, "word")
	w.lookAt(changed, "1", "2", "3", "4", "5 ", "5", "6", "x", "y", "z")
	for _, url := range []string{"", changed} {
		q.Feed = url
		beyond := &mirror.Record{Added: drawTime.Draw(t, "time"), Feed: "a", LastCommit: 2, ID: drawID.Draw(t, "id")}
		w.entries(mirror.Query{Feed: url, States: mirror.Current | mirror.Former}, mirror.Query{Feed: url, Beyond: beyond}, q, mirror.Query{Feed: url, Search: word})
		if url != "" {
			w.entries(mirror.Query{Feed: url, AfterCommit: &after, States: mirror.Current | mirror.Former}, mirror.Query{Feed: url, AfterCommit: &after, Beyond: beyond})
		}
	}
}
