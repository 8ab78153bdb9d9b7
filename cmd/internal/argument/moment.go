package argument

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// A Moment is a time on the command line: a time by RFC 3339, a date, which means midnight
// in UTC, or how long ago the time was, such as 7d or 48h.
type Moment struct{ time.Time }

// Decode reads a moment from the command line.
func (m *Moment) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("time", &text); err != nil {
		return err
	}
	var err error
	m.Time, err = parseMoment(text, time.Now())
	return err
}

func parseMoment(text string, now time.Time) (time.Time, error) {
	text = strings.TrimSpace(text)
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	for unit, days := range map[string]int{"d": 1, "w": 7} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			if n, err := strconv.ParseUint(number, 10, 16); err == nil {
				return now.AddDate(0, 0, -int(n)*days), nil
			}
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 2003-12-13, 2003-12-13T18:30:02Z, 7d or 48h", text)
}
