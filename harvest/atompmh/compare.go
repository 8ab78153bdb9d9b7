package atompmh

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
)

// The order of time is what a feed with deletion entries rests on. What comes
// out of order is found here: records from the future, which would make
// everything after them late, and those that are late.

// slack is by how much clocks may differ, and how late a change is looked for
// at each update.
const slack = time.Minute

// since returns from when on the pool is asked for changes: since some time
// before the latest that is published, which is the window within which what is
// late is found each time, or since the beginning if the whole pool is to be
// compared.
func (p *Producer) since(published *feedhistory.Document, now time.Time) (window, since time.Time) {
	if published == nil {
		return time.Time{}, time.Time{}
	}
	latest := published.Updated
	if now.Before(latest) {
		latest = now // a feed that is dated in the future has no changes since
	}
	window = latest.Add(-max(p.Settle, slack))
	due := now.Before(p.compared) || now.Sub(p.compared) >= cmp.Or(p.Compare, 24*time.Hour)
	if p.Compare >= 0 && due {
		return window, time.Time{}
	}
	return window, window
}

// split separates what is ahead of the clock.
func split(entries []*feedhistory.Entry, now time.Time) (come, future []*feedhistory.Entry) {
	for i, e := range entries { // the oldest first
		if e.Updated.After(now) {
			return entries[:i:i], entries[i:]
		}
	}
	return entries, nil
}

// early returns the errors for records that wait for their time, if that is
// more than what clocks may differ by.
func early(future []*feedhistory.Entry, now time.Time) error {
	var all []error
	for _, e := range future {
		if e.Updated.After(now.Add(slack)) {
			all = append(all, &RecordError{ID: e.ID, Modified: e.Updated, Clause: "atom-pmh#7", Err: ErrFuture})
		}
	}
	return errors.Join(all...)
}

// ahead adds to an error why nothing can be published, where the published feed
// is ahead of the clock itself.
func ahead(err error, published *feedhistory.Document, now time.Time) error {
	if published == nil || !errors.Is(err, ErrLate) || !published.Updated.After(now.Add(slack)) {
		return err
	}
	return fmt.Errorf("%w\nthe published feed is dated %s, and nothing can be published before that: begin a new one under another Name",
		err, published.Updated.Format(time.RFC3339))
}

// window returns the entries that the feed is to be brought up to date with, of
// the pool's since some time. Those before the window should be published; if
// they are not, they are late.
func (p *Producer) window(entries []*feedhistory.Entry, window, since time.Time) ([]*feedhistory.Entry, error) {
	n := 0
	for n < len(entries) && entries[n].Updated.Before(window) {
		n++
	}
	if n == 0 || !since.IsZero() {
		return entries[n:], nil
	}
	known, whole, err := p.all()
	if err != nil {
		return nil, err
	}
	var late []error
	for _, e := range entries[:n] {
		seen, ok := known[e.ID]
		if err := compare(e, seen); err != nil && (ok || whole) {
			late = append(late, err)
		}
	}
	return entries[n:], errors.Join(late...)
}

// compare says why an entry cannot be published that is too old to be; nil if
// it is published.
func compare(e *feedhistory.Entry, published Seen) error {
	r := &RecordError{ID: e.ID, Modified: e.Updated, Clause: "atom-pmh#7", Err: ErrLate}
	switch c := e.Updated.Compare(published.Time); {
	case c == 0 && isDeletion(e) == published.Deleted:
		return nil
	case c == 0:
		r.Clause, r.Err = "atom-pmh#13, atom-pmh#24", ErrSameTime
	case c < 0:
		r.Clause = "atom-pmh#12, atom-pmh#23"
	}
	return r
}

// all returns what is published of each record, by its latest entry, and whether
// that is all: an archive may have been taken away (5005#18).
func (p *Producer) all() (known map[string]Seen, whole bool, err error) {
	known = map[string]Seen{}
	for name := p.name(); ; {
		doc, err := p.document(name)
		if errors.Is(err, fs.ErrNotExist) {
			return known, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		for _, e := range doc.Entries {
			kind := kindOf(e)
			if seen, ok := known[e.ID]; kind != Other && (!ok || e.Updated.After(seen.Time)) {
				known[e.ID] = Seen{Time: e.Updated, Deleted: kind == Deleted}
			}
		}
		older, linked := doc.Links.Rel(feedhistory.RelPrevArchive)
		if !linked {
			return known, true, nil
		}
		// Under the base of its time: it may have been another.
		self, _ := doc.Links.Rel(feedhistory.RelSelf)
		base, _ := strings.CutSuffix(self.Href, "/"+name)
		if name, linked = strings.CutPrefix(older.Href, base+"/"); !linked || !fs.ValidPath(name) {
			return nil, false, fmt.Errorf("atompmh: %s: not an archive of the feed: %q", path.Base(doc.URL), older.Href)
		}
	}
}
