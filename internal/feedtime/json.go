package feedtime

import (
	"fmt"
	"time"
)

// JSON returns a time as text, in UTC; "" for one RFC 3339 cannot express.
func JSON(t time.Time) string {
	if t = t.UTC(); t.IsZero() || t.Year() < 0 || t.Year() > 9999 {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

// ReadJSON reads the time of a member: RFC 3339, or a date, which means midnight UTC; zero for "".
func ReadJSON(member, value string) (t time.Time, err error) {
	if value == "" {
		return t, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err = time.Parse(layout, value); err == nil {
			return t, nil
		}
	}
	return t, fmt.Errorf("%s is not a time such as 2003-12-13T18:30:02Z: %q", member, value)
}
