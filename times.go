package feedhistory

import (
	"fmt"
	"strings"
	"time"
)

// The layouts that nearly every RSS feed uses; readDate knows the rest.
const (
	layoutRSS     = "Mon, 2 Jan 2006 15:04:05"
	layoutNumeric = layoutRSS + " -0700"
)

// A dateReader reads the dates of one document.
type dateReader struct {
	zone  zone            // of the last date
	noted map[string]bool // zones that a note has been made of
}

// read reads a date of any feed format, and reports whether it could.
func (d *dateReader) read(s string) (time.Time, bool) {
	d.zone = zone{}
	s = trim(s)
	if s == "" {
		return time.Time{}, false
	}
	if isDigit(s[0]) {
		if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
			return t, true
		}
	}
	if t, ok := parseRSSTime(s); ok {
		return t, true
	}
	t, zone, ok := readDate(s)
	d.zone = zone
	return t, ok
}

// noteZone notes that the zone of the last date may be another than was taken:
// once for each zone, and once for all that are unknown.
func (r *reader) noteZone(offset int) {
	z := r.dates.zone
	if z.doubt == zoneSure || r.dates.noted[z.key()] {
		return
	}
	if r.dates.noted == nil {
		r.dates.noted = map[string]bool{}
	}
	r.dates.noted[z.key()] = true
	if z.doubt == zoneUnknown {
		r.note("zone-unknown", "the time zone "+clip(z.name)+" is read as UTC", offset)
		return
	}
	r.note("zone-ambiguous", fmt.Sprintf("the time zone %s is read as %s",
		z.name, time.Time{}.In(z.location()).Format("-07:00")), offset)
}

// key is the same for zones of which one note is enough.
func (z zone) key() string {
	if z.doubt == zoneUnknown {
		return ""
	}
	return strings.ToLower(z.name)
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
	case "MDT": // and CST, which China has as well
		s = local + " -0600"
	case "MST", "PDT":
		s = local + " -0700"
	case "PST":
		s = local + " -0800"
	}
	t, err := time.Parse(layoutNumeric, s)
	return t, err == nil
}
