package feedhistory

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTimes reads the dates of testdata/times/dates.txt: each line has a date
// as it is written, and what it means, "-" for nothing, with the doubt about its
// zone.
func TestTimes(t *testing.T) {
	data, err := os.ReadFile("testdata/times/dates.txt")
	require.NoError(t, err)
	lines := 0
	for line := range strings.Lines(string(data)) {
		text, want, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if !ok {
			require.True(t, line == "\n" || line[0] == '#', line)
			continue
		}
		lines++
		d := new(dateReader)
		when, ok := d.read(text)
		got := "-"
		if ok {
			got = when.Format(time.RFC3339Nano) + map[zoneDoubt]string{zoneAmbiguous: " ambiguous", zoneUnknown: " unknown"}[d.zone.doubt]
		}
		require.Equal(t, want, got, text)
	}
	require.Greater(t, lines, 200)
	for _, text := range []string{"", " \n", strings.Repeat("2003-12-13 ", 10)} {
		_, ok := new(dateReader).read(text)
		require.False(t, ok, text)
	}
}

// All dates of a document are read, however many of them are unusual, and each
// costs little whether it can be read or not.
func TestTimesAreAllRead(t *testing.T) {
	unusual := []string{
		"2003-12-13", "Saturday, December 13, 2003", "13.12.2003 18:30", "13 Dec 2003 18:30 MEZ",
		"Sat Dec 13 18:30:02 JST 2003", "2003-12-13T18:30+09:00", "2003-12-13 23:59:60",
	}
	var feed strings.Builder
	feed.WriteString("<rss><channel>")
	const n = 50_000
	for i := range n {
		fmt.Fprintf(&feed, "<item><guid>%d</guid><pubDate>%s</pubDate></item>", i, unusual[i%len(unusual)])
	}
	feed.WriteString("</channel></rss>")
	doc, err := Parse(strings.NewReader(feed.String()), "")
	require.NoError(t, err)
	require.Len(t, doc.Entries, n)
	for _, e := range doc.Entries {
		require.Equal(t, 2003, e.Published.Year())
	}
	require.Empty(t, doc.Notes)

	hostile := []string{
		"yesterday", strings.Repeat("9", maxDate), strings.Repeat("1 ", maxDate/2), strings.Repeat("1:", maxDate/2),
		strings.Repeat("-", maxDate), strings.Repeat("Mon ", maxDate/4), strings.Repeat("Ιούλ", maxDate/8), strings.Repeat("(", maxDate),
		"2003-12-13T18:30:02." + strings.Repeat("9", 79), "13 Dec 2003 18:30 " + strings.Repeat("X", 80), strings.Repeat("x", 1<<20),
	}
	d := new(dateReader)
	for _, text := range append(hostile, unusual...) {
		require.LessOrEqual(t, testing.AllocsPerRun(10, func() { d.read(text) }), float64(maxDate/3), text)
	}
}

// A doubtful zone is noted once for a document, so that there is room for other
// notes; what RFC 822 has no doubt about is not.
func TestTimesZoneNotes(t *testing.T) {
	var feed strings.Builder
	feed.WriteString("<rss><channel>")
	for range 100 {
		for _, zone := range []string{"EST", "BST", "bst", "CST", "CET", "XYZ", "A", "+0100"} {
			feed.WriteString("<item><pubDate>Sat, 13 Dec 2003 18:30:02 " + zone + "</pubDate></item>")
		}
	}
	feed.WriteString("</channel></rss>")
	doc, err := Parse(strings.NewReader(feed.String()), "")
	require.NoError(t, err)
	var notes []string
	for _, n := range doc.Notes {
		notes = append(notes, n.Code+": "+n.Message)
	}
	require.Equal(t, []string{
		"zone-ambiguous: the time zone BST is read as +01:00",
		"zone-ambiguous: the time zone CST is read as -06:00",
		"zone-unknown: the time zone XYZ is read as UTC",
	}, notes)
}

func FuzzTimes(f *testing.F) {
	data, err := os.ReadFile("testdata/times/dates.txt")
	require.NoError(f, err)
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

// HTTP wants two digits for the day (RFC 9110 §5.6.7), but servers write one.
func TestLastModified(t *testing.T) {
	for text, want := range map[string]time.Time{
		"Sun, 06 Nov 1994 08:49:37 GMT":  time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC),
		"Sun, 6 Nov 1994 08:49:37 GMT":   time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC),
		"Sunday, 06-Nov-94 08:49:37 GMT": time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC),
		"Sun Nov  6 08:49:37 1994":       time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC),
		"recently":                       {},
	} {
		doc, err := Parser{Header: http.Header{"Last-Modified": {text}}}.Parse(strings.NewReader("<rss><channel/></rss>"), "")
		require.NoError(t, err)
		require.True(t, want.Equal(doc.LastModified), "%s: %v", text, doc.LastModified)
	}
}
