package feedhistory

import (
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
)

// Time returns when the entry was published, or else updated; zero if it says neither.
// Use it for everything people see: it shows, sorts and dates an entry as its readers
// know it, and an edit does not move the entry.
func (e *Entry) Time() time.Time { return feedtime.First(e.Published, e.Updated) }

// Changed returns when the entry was updated, or else published; zero if it says
// neither. Use it to find new entries: archives are cut by it, and an edit moves the
// entry.
func (e *Entry) Changed() time.Time { return feedtime.First(e.Updated, e.Published) }

// lastChange returns when the entry changed or, if it does not say, when its document
// did. Atom requires a time, so the last resort is the epoch.
func (e *Entry) lastChange() time.Time {
	var source time.Time
	if e.Source != nil {
		source = e.Source.datedTime()
	}
	return feedtime.First(e.Changed(), source, epoch)
}

// epoch replaces an unknown time where a format requires one.
var epoch = time.Unix(0, 0).UTC()

// lastChange returns when the document was updated or, if it does not say, the latest
// change of the given entries. It is the epoch if none has a time, and zero if there are
// none.
func (d *Document) lastChange(entries []*Entry) time.Time {
	if t := d.datedTime(); !t.IsZero() {
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

// datedTime is the time for what says none itself: the feed's own, or the response's. It
// is the same at each run.
func (d *Document) datedTime() time.Time {
	return feedtime.First(d.Updated, d.Published, d.LastModified)
}

// documentTime is the time to decide between duplicates with the same update time or
// none (5005#21); zero if neither document nor response has one.
func (d *Document) documentTime() time.Time {
	return feedtime.First(d.Updated, d.LastModified)
}
