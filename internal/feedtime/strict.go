package feedtime

import (
	"regexp"
	"strings"
	"time"
)

// IsRFC3339 reports whether Atom allows the text as a date (RFC 4287 §3.3).
func IsRFC3339(text string) bool {
	if len(text) < len("2006-01-02T15:04:05Z") || text[10] != 'T' || text[len(text)-1] == 'z' {
		return false
	}
	_, err := time.Parse(time.RFC3339Nano, text)
	return err == nil && !strings.Contains(text, ",")
}

var rfc822 = regexp.MustCompile(`^(?:(Mon|Tue|Wed|Thu|Fri|Sat|Sun), )?\d\d? (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) ` +
	`\d\d\d\d \d\d:\d\d(?::\d\d)? (?:[+-]\d\d[0-5]\d|UT|GMT|EST|EDT|CST|CDT|MST|MDT|PST|PDT|Z)$`)

// IsRFC822 reports whether RSS allows the text as a date: its day of the week is right,
// and its year has four digits.
func IsRFC822(text string) bool {
	parts := rfc822.FindStringSubmatch(text)
	if parts == nil {
		return false
	}
	t, _, ok := Read(text)
	return ok && (parts[1] == "" || parts[1] == t.Weekday().String()[:3])
}
