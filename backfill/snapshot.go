package backfill

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
)

// walk yields the snapshots, newest first, from where an earlier walk ended. It
// requests the oldest at once, to know the range between.
func (a *archive) walk(live *feedhistory.Document) {
	a.original = cmp.Or(a.original, live.URL)
	newest, high := live, len(a.snapshots)
	if before := a.task.place.Before; !before.IsZero() {
		high = slices.IndexFunc(append(a.snapshots, snapshot{Time: endOfTime}), func(s snapshot) bool { return s.Time.After(before) })
		if newest, high = a.nearest(0, high, high-1); newest != nil && !newest.LastModified.Equal(before) && !a.hand(newest) {
			return
		}
	}
	oldest, at := a.nearest(0, high, 0)
	if oldest != nil && !(a.between(newest, oldest, at+1, high) && a.hand(oldest)) || a.ended {
		return
	}
	a.task.place = place{}
}

// endOfTime is later than all snapshots.
var endOfTime = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// between yields the entries the snapshots from low until high add to the documents
// before and after them, and reports whether the walk continues.
func (a *archive) between(newer, older *feedhistory.Document, low, high int) bool {
	overlap := ids(older.Entries).hasAny(newer.Entries)
	if overlap && !a.All {
		return true
	}
	middle, at := a.nearest(low, high, low+(high-low)/2)
	switch {
	case a.ended:
		return false
	case middle != nil:
		return a.between(newer, middle, at+1, high) && a.hand(middle) && a.between(middle, older, low, at)
	case overlap:
		return true
	}
	gap := feedhistory.NewGap(older.Response.Requested, fmt.Errorf(
		"the snapshot of %s has no entry in common with the next that can be retrieved", older.LastModified.UTC().Format(time.RFC3339)))
	gap.Reason, gap.From = feedhistory.ReasonMissedWindow, newer.Response.Requested
	a.ended = !a.yield(nil, gap)
	return !a.ended
}

// hand yields a snapshot.
func (a *archive) hand(doc *feedhistory.Document) bool {
	a.task.place = place{Before: doc.LastModified}
	a.ended = !a.yield(doc, nil)
	return !a.ended
}

// maxFailed is the number of failed snapshots in succession before the archive is left
// alone.
const maxFailed = 10

// nearest reads a snapshot among those from low until high: the wanted one or,
// if it cannot be retrieved or has no entries, the nearest one after or before
// it. (Archives also have copies of error pages.) It requests each only once.
func (a *archive) nearest(low, high, want int) (*feedhistory.Document, int) {
	for distance := 0; distance < high-low; distance++ {
		for _, at := range []int{want + distance, want - distance} {
			if at < low || at >= high || a.tried[at] {
				continue
			}
			a.tried[at] = true
			doc, err := a.snapshot(a.snapshots[at])
			if err == nil {
				a.failed = 0
				if len(doc.Entries) > 0 {
					return doc, at
				}
			} else if a.failed++; a.failed >= maxFailed || a.ctx.Err() != nil {
				if (answer{err: err}).failure() == nil {
					a.task.place = place{} // the next walk would end in the same way
				}
				a.yield(nil, answer{err: err}.gap(a.snapshots[at].URL, a.original))
				a.ended = true
				return nil, 0
			}
		}
	}
	return nil, 0
}

// snapshot reads a snapshot, in its raw form if the archive has it.
func (a *archive) snapshot(s snapshot) (*feedhistory.Document, error) {
	raw, offered := rawForm(s.URL)
	if !offered || a.rewritten {
		raw = s.URL
	}
	text, resp, err := a.get(raw)
	if raw != s.URL && (answer{err: err}).missing() {
		if text, resp, err = a.get(s.URL); err == nil {
			a.rewritten = true
		}
	}
	if err != nil {
		return nil, err
	}
	if a.rewritten || !offered {
		text = restore(text, s.URL)
	}
	// The Link fields and the dates of the archive's answer are not the feed's.
	p := feedhistory.Parser{Limits: a.limits, Header: http.Header{
		"Content-Type":  {cmp.Or(resp.Header.Get("X-Archive-Orig-Content-Type"), resp.Header.Get("Content-Type"))},
		"Last-Modified": {s.Time.UTC().Format(http.TimeFormat)},
	}}
	doc, err := p.Parse(strings.NewReader(text), a.original)
	if err != nil {
		return nil, err
	}
	doc.Response = feedhistory.Response{Requested: s.URL, Received: time.Now()}
	if len(doc.Entries) > 0 {
		doc.Entries[0].Source.Response = doc.Response // shared by all entries
	}
	return doc, nil
}

// memento matches the URLs of snapshots in the Wayback Machine and similar
// archives: a prefix, the time, the URL of the document.
var memento = regexp.MustCompile(`^(.*?/)([0-9]{14})(/[a-z]+:/.*)$`)

// rawForm returns the URL of a snapshot without rewritten links.
func rawForm(u string) (string, bool) {
	m := memento.FindStringSubmatch(u)
	if m == nil {
		return u, false
	}
	return m[1] + m[2] + "id_" + m[3], true
}

// restore restores the URLs an archive has rewritten to point to itself.
func restore(text, snapshot string) string {
	m := memento.FindStringSubmatch(snapshot)
	if m == nil {
		return text
	}
	u, err := url.Parse(m[1])
	if err != nil {
		return text
	}
	stamped := regexp.QuoteMeta(u.Path) + `[0-9]{4,14}(?:[a-z]{2}_)?/([a-z]+:/)`
	text = regexp.MustCompile(`(?:https?:)?//`+regexp.QuoteMeta(u.Host)+stamped).ReplaceAllString(text, "$1")
	return regexp.MustCompile(`([\s"'=(>;])`+stamped).ReplaceAllString(text, "$1$2")
}
