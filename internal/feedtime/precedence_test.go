package feedtime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func day(n int) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Date(2003, 12, n, 0, 0, 0, 0, time.UTC)
}

func TestCompare(t *testing.T) {
	older, newer := Rank{Time: day(1), Seq: 1}, Rank{Time: day(2), Seq: 2}
	for name, tc := range map[string]struct {
		a, b Copy
		want int
	}{
		"the later update wins, even in an older document":     {CopyOf(day(9), older), CopyOf(day(8), newer), 1},
		"at the same time, the newer document wins":            {CopyOf(day(9), older), CopyOf(day(9), newer), -1},
		"without times, too":                                   {CopyOf(day(0), older), CopyOf(day(0), newer), -1},
		"without a time, the document's time counts":           {CopyOf(day(0), newer), CopyOf(day(1), older), 1},
		"even against a newer document with an earlier update": {CopyOf(day(0), Rank{Time: day(5), Seq: 1}), CopyOf(day(3), Rank{Time: day(9), Seq: 2}), 1},
		"documents of one time are in order":                   {CopyOf(day(3), Rank{Time: day(1), Seq: 1}), CopyOf(day(3), Rank{Time: day(1), Seq: 2}), -1},
		"a reader's copy is older than any of the publisher's": {CopyOf(day(1), older), CopyOf(day(9), Rank{Time: day(9), Seq: 9, Kept: true}), 1},
		"a copy is as new as itself":                           {CopyOf(day(3), older), CopyOf(day(3), older), 0},
	} {
		require.Equal(t, tc.want, tc.a.Compare(tc.b), name)
		require.Equal(t, -tc.want, tc.b.Compare(tc.a), name)
	}
}

func TestDeletes(t *testing.T) {
	older, newer := Rank{Time: day(1), Seq: 1}, Rank{Time: day(2), Seq: 2}
	for name, tc := range map[string]struct {
		tombstone Tombstone
		updated   time.Time
		doc       Rank
		want      bool
	}{
		"a deletion after the update":               {Tombstone{day(5), older}, day(4), newer, true},
		"at the time of the update":                 {Tombstone{day(5), older}, day(5), newer, true},
		"of a reader's copy, whatever the times":    {Tombstone{day(5), older}, day(6), Rank{Time: day(9), Seq: 9, Kept: true}, true},
		"before it: the entry is back":              {Tombstone{day(5), newer}, day(6), older, false},
		"without a time, in a newer document":       {Tombstone{day(0), newer}, day(6), older, true},
		"without a time, in the same document":      {Tombstone{day(0), newer}, day(6), newer, true},
		"without a time, in an older document":      {Tombstone{day(0), older}, day(6), newer, false},
		"of an entry without a time, likewise":      {Tombstone{day(5), older}, day(0), newer, false},
		"of an entry without a time, the newer one": {Tombstone{day(5), newer}, day(0), older, true},
	} {
		require.Equal(t, tc.want, tc.tombstone.Deletes(tc.updated, tc.doc), name)
	}
}

// The result does not depend on the order in which copies and tombstones arrive.
func TestOrderDoesNotMatter(t *testing.T) {
	drawRank := rapid.Custom(func(t *rapid.T) Rank {
		place := rapid.IntRange(1, 4).Draw(t, "place")
		return Rank{Time: day(rapid.IntRange(1, 3).Draw(t, "time")), Seq: int64(place), Kept: rapid.Bool().Draw(t, "kept")}
	})
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) Copy {
			return CopyOf(day(rapid.IntRange(0, 3).Draw(t, label)), drawRank.Draw(t, label))
		}
		a, b, c := draw("a"), draw("b"), draw("c")
		require.Equal(t, a.Compare(b), -b.Compare(a))
		if a.Compare(b) <= 0 && b.Compare(c) <= 0 {
			require.LessOrEqual(t, a.Compare(c), 0, "there is one order of all copies")
		}
		x, y := Tombstone{a.At, a.Rank}, Tombstone{b.At, b.Rank}
		require.Equal(t, x.Join(y), y.Join(x))
	})
}
