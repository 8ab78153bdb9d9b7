package publish

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
)

// An entry that is dated in the future neither ends a period nor begins one:
// over many rounds archives are closed as they would be without it, do not
// change except for next-archive, and the subscription document does not grow.
func TestFuture(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"for ever": 50 * 365 * 24 * time.Hour, "for ten days": 10 * 24 * time.Hour} {
		for _, split := range []feedhistory.Split{{Period: feedhistory.Day}, {Period: feedhistory.Month}, {Size: 10}} {
			for _, first := range []bool{true, false} {
				t.Run(fmt.Sprint(name, "/", split, "/", first), func(t *testing.T) { future(t, split, ahead, first) })
			}
		}
	}
}

func future(t *testing.T, split feedhistory.Split, ahead time.Duration, first bool) {
	with, without := newMemory(), newMemory()
	now := day
	archives, most := map[string][]byte{}, 0
	var all []*feedhistory.Entry
	for round := range 36 {
		now = now.Add(24 * time.Hour)
		var fresh []*feedhistory.Entry
		for i := range 3 {
			fresh = append(fresh, entry(t, fmt.Sprintf("e%d-%d", round, i), now.Add(time.Duration(i-3)*time.Hour), "text"))
		}
		ahead := entry(t, "ahead", day.Add(25*time.Hour).Add(ahead), "ahead of its time")
		for _, out := range []*memory{with, without} {
			p := newPublisher(out)
			p.Split = split
			entries := append(all, fresh...)
			if out == with && (first || round > 3) {
				entries = append(entries, ahead)
			}
			_, err := p.Publish(t.Context(), Batch{Entries: entries, Now: now})
			require.NoError(t, err)
		}
		all = append(all, fresh...)
		for name, data := range with.files {
			if !archiveName.MatchString(name) {
				continue
			}
			if before, ok := archives[name]; ok && !bytes.Equal(before, data) {
				old, err := setNext(string(data), "", feedhistory.Atom)
				require.NoError(t, err)
				before, err := setNext(string(before), "", feedhistory.Atom)
				require.NoError(t, err)
				require.Equal(t, before, old, name)
			}
			archives[name] = data
		}
		for name := range archives {
			require.Contains(t, with.files, name)
		}
		most = max(most, len(without.files["feed.atom"]))
		require.Less(t, len(with.files["feed.atom"]), most+2000, "round %d", round)
		require.InDelta(t, len(without.files), len(with.files), 1, "round %d", round)
		h := fetch(t, with, newPublisher(with).URL())
		want := len(all)
		if first || round > 3 {
			want++
		}
		require.Len(t, h.Entries, want)
	}
}
