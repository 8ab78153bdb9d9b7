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

// A feed with deletion entries relies on the order of time. This file finds records out
// of order: those from the future, which would make everything after them late, and
// late ones.

// slack is how much clocks may differ, and how late a change may be for each
// update to find it.
const slack = time.Minute

// since returns the time from which to ask the pool for changes. Usually it lies some
// time before the latest published change, so each update finds changes late by less.
// To compare the whole pool, it is the beginning.
func (p *Producer) since(published *feedhistory.Document, now time.Time) (window, since time.Time) {
	if published == nil {
		return time.Time{}, time.Time{}
	}
	latest := published.Updated
	if now.Before(latest) {
		latest = now // a feed dated in the future has no later changes
	}
	window = latest.Add(-max(p.Settle, slack))
	due := now.Before(p.compared) || now.Sub(p.compared) >= cmp.Or(p.Compare, 24*time.Hour)
	if p.Compare >= 0 && due {
		return window, time.Time{}
	}
	return window, window
}

// split separates the entries ahead of the clock.
func split(entries []*feedhistory.Entry, now time.Time) (come, future []*feedhistory.Entry) {
	for i, e := range entries { // oldest first
		if e.Updated.After(now) {
			return entries[:i:i], entries[i:]
		}
	}
	return entries, nil
}

// early returns the errors for records waiting for a time further ahead than clocks may
// differ.
func early(future []*feedhistory.Entry, now time.Time) error {
	var all []error
	for _, e := range future {
		if e.Updated.After(now.Add(slack)) {
			all = append(all, &RecordError{ID: e.ID, Modified: e.Updated, Clause: "atom-pmh#7", Err: ErrFuture})
		}
	}
	return errors.Join(all...)
}

// ahead adds to an error why nothing can be published, if the published feed is
// itself ahead of the clock.
func ahead(err error, published *feedhistory.Document, now time.Time) error {
	if published == nil || !errors.Is(err, ErrLate) || !published.Updated.After(now.Add(slack)) {
		return err
	}
	return fmt.Errorf("%w\nthe published feed is dated %s, and nothing can be published before that: begin a new feed with a different Name",
		err, published.Updated.Format(time.RFC3339))
}

// window returns the entries to publish, among those of the pool since some
// time. Entries before the window should be published already; if they are not,
// they are late.
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

// compare returns why an old entry cannot be published; nil if it is published
// already.
func compare(e *feedhistory.Entry, published SeenRecord) error {
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

// all returns the latest published entry of each record, and whether the feed is whole:
// an archive may have been removed (5005#18).
func (p *Producer) all() (known map[string]SeenRecord, whole bool, err error) {
	known = map[string]SeenRecord{}
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
				known[e.ID] = SeenRecord{Time: e.Updated, Deleted: kind == Deleted}
			}
		}
		older, linked := doc.Links.Rel(feedhistory.RelPrevArchive)
		if !linked {
			return known, true, nil
		}
		// The base may have changed since the archive was written.
		self, _ := doc.Links.Rel(feedhistory.RelSelf)
		base, _ := strings.CutSuffix(self.Href, "/"+name)
		if name, linked = strings.CutPrefix(older.Href, base+"/"); !linked || !fs.ValidPath(name) {
			return nil, false, fmt.Errorf("atompmh: %s: not an archive of the feed: %q", path.Base(doc.URL), older.Href)
		}
	}
}
