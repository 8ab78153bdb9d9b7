package feedtime

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory/internal/feedtest"
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
