package feedhistory

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// All dates of a document are read, however many of them are unusual.
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
