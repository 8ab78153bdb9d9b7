package feedhistory

import (
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
)

// lastChange returns when the entry last changed, as far as that is known.
func (e *Entry) lastChange() time.Time {
	var source time.Time
	if e.Source != nil {
		source = e.Source.documentTime()
	}
	return feedtime.First(e.Updated, e.Published, source, time.Unix(0, 0).UTC())
}

// lastChange returns when the document was updated or, if it does not say, the latest
// change of the given entries.
func (d *Document) lastChange(entries []*Entry) time.Time {
	if t := d.documentTime(); !t.IsZero() {
		return t
	}
	var t time.Time
	for _, e := range entries {
		if e != nil {
			t = feedtime.Later(t, e.lastChange())
		}
	}
	return t
}

// documentTime is the time that decides between duplicates that have the same
// update time or none (5005#21); zero if neither document nor response has one.
func (d *Document) documentTime() time.Time {
	return feedtime.First(d.Updated, d.LastModified)
}
