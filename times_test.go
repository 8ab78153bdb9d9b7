package feedhistory

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTimes(t *testing.T) {
	for text, want := range map[string]string{
		"2003-12-13T18:30:02Z":             "2003-12-13T18:30:02Z",
		" 2003-12-13T18:30:02.250+01:00\n": "2003-12-13T18:30:02.25+01:00",
		"Tue, 03 Jun 2003 09:39:21 GMT":    "2003-06-03T09:39:21Z",
		"Tue, 3 Jun 2003 09:39:21 +0200":   "2003-06-03T09:39:21+02:00",
		"Tue, 03 Jun 2003 09:39:21 EST":    "2003-06-03T09:39:21-05:00",
		"Tue, 03 Jun 2003 09:39:21 PDT":    "2003-06-03T09:39:21-07:00",
		"Mon, 03 Jun 2003 09:39:21 Z":      "2003-06-03T09:39:21Z", // a Tuesday, in fact
		"3 Jun 2003 09:39:21 +0000":        "2003-06-03T09:39:21Z",
		"2003-06-03":                       "2003-06-03T00:00:00Z",
		"2003-06-03 09:39:21":              "2003-06-03T09:39:21Z",
		"Tuesday, June 3, 2003":            "2003-06-03T00:00:00Z",
		"":                                 "",
		"yesterday":                        "",
		"<script>":                         "",
		"Tue, 03 Jun 2003 09:39:21 GMT and a long, long, long, long tail of it": "",
	} {
		got, ok := new(dateReader).read(text)
		require.Equal(t, want != "", ok, text)
		if ok {
			require.Equal(t, want, got.Format(time.RFC3339Nano), text)
		}
	}
}

// A document of unreadable dates ends in fewer and fewer attempts, never in
// none for dates that are well written.
func TestTimesGiveUp(t *testing.T) {
	d := new(dateReader)
	for range 2000 {
		_, ok := d.read("the day after")
		require.False(t, ok)
	}
	_, ok := d.read("Tuesday, June 3, 2003")
	require.False(t, ok)
	_, ok = d.read("Tue, 03 Jun 2003 09:39:21 GMT")
	require.True(t, ok)
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
