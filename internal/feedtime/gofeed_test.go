package feedtime

import (
	"strings"
	"testing"
	"time"

	"github.com/mmcdole/gofeed"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// gofeedTime reads a date with gofeed.
func gofeedTime(s string) (time.Time, bool) {
	if strings.ContainsAny(s, "<>&") {
		return time.Time{}, false
	}
	feed, err := gofeed.NewParser().ParseString(
		"<rss><channel><item><pubDate>" + s + "</pubDate></item></channel></rss>")
	if err != nil || len(feed.Items) != 1 || feed.Items[0].PublishedParsed == nil {
		return time.Time{}, false
	}
	return *feed.Items[0].PublishedParsed, true
}

// Whatever gofeed reads has the same result here; the exceptions have a reason.
func TestTimesAsGofeed(t *testing.T) {
	better := map[string]string{
		"6/1/2 15:04":                   "the year is 0: its 6 is no field",
		"6-1-2 15:04":                   "the year is 0: its 6 is no field",
		"Mon, 2 Jan 15:04:05 MST":       "the year is 0",
		"January 2, 2006, 3:04 p.m.":    "its p.m. is no field",
		"Mon, Jan 2 2006 15:04:05 -700": "its -700 is no field",
	}
	data := feedtest.ReadFile(t, "testdata/gofeed-layouts.txt")
	for layout := range strings.Lines(string(data)) {
		layout = strings.TrimSuffix(layout, "\n")
		if better[layout] != "" {
			continue
		}
		rapid.Check(t, func(t *rapid.T) {
			zone := rapid.SampledFrom([]string{"GMT", "UTC", "EST", "EDT", "CST", "CDT", "MST", "MDT", "PST", "PDT", "WEST", "BST", "CET", "CEST", "EET", "EEST"}).Draw(t, "zone")
			offset := zoneNames[strings.ToLower(zone)] * 60
			if !strings.Contains(layout, "MST") {
				offset = rapid.IntRange(-14*4, 14*4).Draw(t, "quarters") * 15 * 60
			}
			year := rapid.IntRange(1970, 2049).Draw(t, "year") // two digits mean the same in both
			when := time.Unix(rapid.Int64Range(0, 365*24*3600).Draw(t, "second"), 0).UTC()
			when = time.Date(year, when.Month(), when.Day(), when.Hour(), when.Minute(), when.Second(), 0, time.FixedZone(zone, offset))
			text := when.Format(layout)
			want, ok := gofeedTime(text)
			if !ok { // Go takes the GMT+01 of GMT+01:00 for a name
				require.Contains(t, text, "GMT")
				return
			}
			got, _, ok := Read(text)
			require.True(t, ok, "%s: %s", layout, text)
			require.True(t, want.Equal(got), "%s: %s: want %s, got %s", layout, text, want, got)
		})
	}
}
