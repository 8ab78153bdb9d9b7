package feedhistory

import (
	"net/mail"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"
)

// The layouts that nearly every RSS feed uses; libraries read the rest.
const (
	layoutRSS     = "Mon, 2 Jan 2006 15:04:05"
	layoutNumeric = layoutRSS + " -0700"
)

// A dateReader reads the dates of one document, of which there may be 50,000.
// The more of them no library can read, the less it tries: gofeed has a hundred
// layouts for each.
type dateReader struct{ odd, failed int }

// read reads a date of any feed format, and reports whether it could.
func (d *dateReader) read(s string) (time.Time, bool) {
	s = trim(s)
	if s == "" || len(s) > 64 {
		return time.Time{}, false
	}
	if '0' <= s[0] && s[0] <= '9' {
		if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
			return t, true
		}
	}
	if t, ok := parseRSSTime(s); ok {
		return t, true
	}
	if d.failed >= 1000 {
		return time.Time{}, false
	}
	if t, err := mail.ParseDate(s); err == nil {
		return t, true
	}
	if d.odd++; d.odd <= 100 && d.failed < 10 {
		if t, ok := parseOddTime(s); ok {
			return t, true
		}
	}
	d.failed++
	return time.Time{}, false
}

// parseRSSTime reads the RFC 822 dates that RSS generators write. The zone is
// taken off first: time.Parse would make up an offset of zero for EST.
func parseRSSTime(s string) (time.Time, bool) {
	i := strings.LastIndexByte(s, ' ')
	if i < 0 {
		return time.Time{}, false
	}
	local, zone := s[:i], s[i+1:]
	switch zone {
	case "GMT", "UTC", "UT", "Z":
		t, err := time.Parse(layoutRSS, local)
		return t, err == nil
	case "EDT":
		s = local + " -0400"
	case "EST", "CDT":
		s = local + " -0500"
	case "CST", "MDT":
		s = local + " -0600"
	case "MST", "PDT":
		s = local + " -0700"
	case "PST":
		s = local + " -0800"
	}
	t, err := time.Parse(layoutNumeric, s)
	return t, err == nil
}

// parseOddTime has gofeed read a date: it knows the many grammars seen in the
// wild. The item around it is ours, so nothing hostile reaches it.
func parseOddTime(s string) (time.Time, bool) {
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
