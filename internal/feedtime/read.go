// Package feedtime reads the dates in feeds: RFC 3339 and similar formats, RFC 822 with
// the zones people write, and other formats found in feeds.
package feedtime

import (
	"strings"
	"time"
)

// The layouts of nearly every RSS feed; readDate handles the others.
const (
	layoutRSS     = "Mon, 2 Jan 2006 15:04:05"
	layoutNumeric = layoutRSS + " -0700"
)

// Read reads a date of any feed format; ok is false if it is invalid. A named zone is
// returned, because its meaning may be doubtful. Invalid text takes no more time than a
// valid date of the same length, and text longer than any date is not read.
func Read(s string) (t time.Time, z Zone, ok bool) {
	if s = strings.Trim(s, " \t\r\n"); s == "" {
		return t, z, false
	}
	if isDigit(s[0]) {
		if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
			return t, z, true
		}
	}
	if t, ok := parseRSSTime(s); ok {
		return t, z, true
	}
	return readDate(s)
}

// parseRSSTime reads the RFC 822 dates of RSS generators. It removes the zone first,
// because time.Parse would give EST the offset zero.
func parseRSSTime(s string) (time.Time, bool) {
	i := strings.LastIndexByte(s, ' ')
	if i < 0 {
		return time.Time{}, false
	}
	local, zone := s[:i], s[i+1:]
	switch t, ok := parseLocal(local); {
	case !ok:
	case zone == "GMT":
		return t, true
	case zone == "+0000": // time.Parse may return the local zone
		if _, offset := t.Local().Zone(); offset == 0 {
			return t.Local(), true
		}
		return t.In(time.FixedZone("", 0)), true
	}
	switch zone {
	case "GMT", "UTC", "UT", "Z":
		t, err := time.Parse(layoutRSS, local)
		return t, err == nil
	case "EDT":
		s = local + " -0400"
	case "EST", "CDT":
		s = local + " -0500"
	case "MDT": // and CST, which is also China's
		s = local + " -0600"
	case "MST", "PDT":
		s = local + " -0700"
	case "PST":
		s = local + " -0800"
	}
	t, err := time.Parse(layoutNumeric, s)
	return t, err == nil
}

// parseLocal reads a date in layoutRSS, if the day has two digits, ten times as
// fast as time.Parse.
func parseLocal(s string) (t time.Time, ok bool) {
	const form, days, months = "xxx, 00 xxx 0000 00:00:00", "MonTueWedThuFriSatSun", "JanFebMarAprMayJunJulAugSepOctNovDec"
	if len(s) != len(form) {
		return t, false
	}
	for i := range len(form) {
		if form[i] == '0' && !isDigit(s[i]) || form[i] != '0' && form[i] != 'x' && form[i] != s[i] {
			return t, false
		}
	}
	number := func(i int) int { return int(s[i]-'0')*10 + int(s[i+1]-'0') }
	weekday, month := strings.Index(days, s[:3]), strings.Index(months, s[8:11])
	day, hour, minute, second := number(5), number(17), number(20), number(23)
	if weekday%3 != 0 || month%3 != 0 || hour > 23 || minute > 59 || second > 59 {
		return t, false
	}
	t = time.Date(number(12)*100+number(14), time.Month(month/3+1), day, hour, minute, second, 0, time.UTC)
	return t, t.Day() == day
}
