package feedtime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Additions have all entries of the latest updates and of the last three days,
// at most an hour's more, and stay few.
func TestAdditions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type update struct {
			at      time.Time
			entries int
		}
		var all []update
		var a Additions
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for range rapid.IntRange(1, 400).Draw(t, "updates") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{1, 60, 3600, 86400, 500_000}).Draw(t, "seconds")) * time.Second)
			n := rapid.IntRange(0, 9).Draw(t, "entries")
			a = a.Begin(int64(len(all)+1), now)
			a.Add(n)
			all = append(all, update{now, n})
			least, most := 0, 0
			for i, u := range all {
				latest := len(all)-i <= RecentUpdates
				if latest || now.Sub(u.at) < RecentTime {
					least += u.entries
				}
				if latest || now.Sub(u.at) < RecentTime+time.Hour {
					most += u.entries
				}
			}
			require.GreaterOrEqual(t, a.Entries(), least)
			require.LessOrEqual(t, a.Entries(), most)
			require.LessOrEqual(t, len(a), 73+RecentUpdates+1)
			read, err := ParseAdditions(a.String())
			require.NoError(t, err)
			require.Equal(t, a, read)
			require.Equal(t, int64(len(all)+1), a.Next())
		}
	})
}

func TestParseAdditionsRefuses(t *testing.T) {
	for _, text := range []string{"", "1", "1@2", "x@1:1", "1@x:1", "1@1:-1", "1@1:1,", "1@1:x", "1@1:1x", "1@1:1 "} {
		_, err := ParseAdditions(text)
		require.Error(t, err, text)
	}
}
