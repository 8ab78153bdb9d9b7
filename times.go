package feedhistory

import (
	"fmt"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
)

// A dateReader reads the dates of one document.
type dateReader struct {
	zone  feedtime.Zone   // of the last date
	noted map[string]bool // zones that a note has been made of
}

// read reads a date of any feed format, and reports whether it could.
func (d *dateReader) read(s string) (t time.Time, ok bool) {
	t, d.zone, ok = feedtime.Read(s)
	return t, ok
}

// noteZone notes that the zone of the last date may be another than was taken:
// once for each zone, and once for all that are unknown.
func (r *reader) noteZone(offset int) {
	z := r.dates.zone
	if z.Doubt == feedtime.Sure {
		return
	}
	key, code, means := strings.ToLower(z.Name), "zone-ambiguous", time.Time{}.In(z.Location()).Format("-07:00")
	if z.Doubt == feedtime.Unknown {
		key, code, means = "", "zone-unknown", "UTC"
	}
	if r.dates.noted[key] {
		return
	}
	if r.dates.noted == nil {
		r.dates.noted = map[string]bool{}
	}
	r.dates.noted[key] = true
	r.note(code, fmt.Sprintf("the time zone %s is read as %s", clip(z.Name), means), offset)
}
