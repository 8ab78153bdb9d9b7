package feedtime

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/mmcdole/gofeed"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestTimes reads the dates of testdata/dates.txt. Each line has a date as
// written, and its meaning, "-" for none, with the doubt about its zone.
func TestTimes(t *testing.T) {
	data := feedtest.ReadFile(t, "testdata/dates.txt")
	lines := 0
	for line := range strings.Lines(string(data)) {
		text, want, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if !ok {
			require.True(t, line == "\n" || line[0] == '#', line)
			continue
		}
		lines++
		when, zone, ok := Read(text)
		got := "-"
		if ok {
			got = when.Format(time.RFC3339Nano) + map[Doubt]string{Ambiguous: " ambiguous", Unknown: " unknown"}[zone.Doubt]
		}
		require.Equal(t, want, got, text)
		require.True(t, ok || when.IsZero() && zone == Zone{}, "what cannot be read is no time: %s", text)
	}
	require.Greater(t, lines, 200)
	for _, text := range []string{"", " \n", strings.Repeat("2003-12-13 ", 10)} {
		_, _, ok := Read(text)
		require.False(t, ok, text)
	}
}

// Dates that are read without time.Parse have the same result as with
// time.Parse.
func TestParseLocal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := time.Unix(rapid.Int64Range(-1<<36, 1<<37).Draw(t, "second"), 0).UTC().Format("Mon, 02 Jan 2006 15:04:05")
		if at := rapid.IntRange(0, 2*len(text)).Draw(t, "at"); at < len(text) {
			text = text[:at] + rapid.StringMatching("[0-9a-zA-Z :,]").Draw(t, "other") + text[at+1:]
		}
		got, ok := parseLocal(text)
		if want, err := time.Parse(layoutRSS, text); ok {
			require.NoError(t, err, text)
			require.Equal(t, want, got, text)
		}
	})
	usual, ok := parseLocal("Tue, 03 Jun 2003 09:39:21")
	require.True(t, ok)
	require.Equal(t, time.Date(2003, 6, 3, 9, 39, 21, 0, time.UTC), usual)
	for _, text := range []string{"Mon, 31 Feb 2003 00:00:00", "Mon, 00 Feb 2003 00:00:00", "Mon, 01 Feb 2003 24:00:00", "onT, 01 Feb 2003 00:00:00", "Mon, 01 anF 2003 00:00:00"} {
		_, ok := parseLocal(text)
		require.False(t, ok, text)
	}
	for _, zone := range []string{"GMT", "+0000"} { // the local zone included
		want, err := time.Parse(layoutRSS+map[string]string{"GMT": " GMT", "+0000": " -0700"}[zone], "Tue, 03 Jun 2003 09:39:21 "+zone)
		require.NoError(t, err)
		got, _, _ := Read("Tue, 03 Jun 2003 09:39:21 " + zone)
		require.Equal(t, want.Format(time.RFC3339), got.Format(time.RFC3339))
	}
}

// Each date costs little, whether it is valid or not.
func TestCost(t *testing.T) {
	unusual := []string{
		"2003-12-13", "Saturday, December 13, 2003", "13.12.2003 18:30", "13 Dec 2003 18:30 MEZ",
		"Sat Dec 13 18:30:02 JST 2003", "2003-12-13T18:30+09:00", "2003-12-13 23:59:60",
	}
	hostile := []string{
		"yesterday", strings.Repeat("9", maxDate), strings.Repeat("1 ", maxDate/2), strings.Repeat("1:", maxDate/2),
		strings.Repeat("-", maxDate), strings.Repeat("Mon ", maxDate/4), strings.Repeat("Ιούλ", maxDate/8), strings.Repeat("(", maxDate),
		"2003-12-13T18:30:02." + strings.Repeat("9", 79), "13 Dec 2003 18:30 " + strings.Repeat("X", 80), strings.Repeat("x", 1<<20),
	}
	for _, text := range append(hostile, unusual...) {
		require.LessOrEqual(t, testing.AllocsPerRun(10, func() { Read(text) }), float64(maxDate/3), text)
	}
}

func FuzzTimes(f *testing.F) {
	data := feedtest.ReadFile(f, "testdata/dates.txt")
	for line := range strings.Lines(string(data)) {
		text, _, _ := strings.Cut(line, " = ")
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, _, ok := readDate(text)
		want, err := time.Parse(time.RFC3339Nano, text)
		if err == nil && len(text) <= maxDate {
			require.True(t, ok, text)
			require.True(t, want.Equal(got), "%s: want %v, got %v", text, want, got)
		}
		if ok {
			again, _, ok := readDate(got.Format(time.RFC3339Nano))
			require.True(t, ok && again.Equal(got) || got.Year() > 9999 || got.Year() < 0 || got.Format("Z07:00") != got.Format("Z07:00:00"), "%s: %v", text, got)
		}
	})
}

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
			offset := zoneNames()[strings.ToLower(zone)] * 60
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

// The form of RSS's dates.
func TestIsRFC822Form(t *testing.T) {
	form := regexp.MustCompile(`^(?:(Mon|Tue|Wed|Thu|Fri|Sat|Sun), )?\d\d? (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) ` +
		`\d\d\d\d \d\d:\d\d(?::\d\d)? (?:[+-]\d\d[0-5]\d|UT|GMT|EST|EDT|CST|CDT|MST|MDT|PST|PDT|Z)$`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`((Sun|Mon|Tue|sun|Sunday),? )?[0-3]?[0-9] (Jan|Feb|June|jan|Dec) (20)?[0-9]{2} [01][0-9]:[0-6][0-9](:[0-6][0-9])?( GMT| gmt| EST| [+-][01][0-9][0-7]0| CET| Z|  Z)?`).Draw(t, "date")
		parts := form.FindStringSubmatch(text)
		read, zone, ok := Read(text)
		want := parts != nil && ok && (parts[1] == "" || parts[1] == read.Weekday().String()[:3])
		require.Equal(t, want, IsRFC822(text), "%s %s", text, zone.Location())
	})
}
