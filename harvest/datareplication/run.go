package datareplication

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/replication"
)

// A run is a harvest under way.
type run struct {
	*Harvest
	ctx     context.Context // for the requests
	fetcher *feedhistory.Client
	limits  Budget
	yield   func(*Entity, error) bool
	left    bool // the caller has stopped ranging over the entities
	partly  bool // part of a snapshot was yielded
	came    bool // part of the feed was yielded

	since Mark // where to begin in the feed
	walk
}

// A walk is one pass through the feed.
type walk struct {
	visited map[string]bool // the pages, by their identifying URLs
	ids     recentIDs
	found   bool      // the mark's entity was found
	earlier bool      // an entity is stamped before the mark, so the feed reaches back to it
	older   string    // the URL of the last page read that is stamped before the mark
	first   time.Time // the first stamp read
	last    time.Time // the last stamp read
}

// run reads the snapshot, if the harvest needs one, and then the feed.
func (r *run) run() error {
	r.since = r.from
	r.since.Time = seconds(r.from.Time)
	if r.from.IsZero() && r.c.Snapshot != "" {
		var created time.Time
		err := again(func() (err error) {
			created, err = r.snapshot()
			return err
		}, func() bool { return !r.partly })
		if err != nil || r.left {
			return err
		}
		r.since = Mark{Time: seconds(created)}
		r.cursor = r.since
		if err := r.tell(); err != nil {
			return err
		}
	}
	return again(r.feed, func() bool { return true })
}

// again calls do, and calls it again if a page is missing, because it may have
// been cleaned up meanwhile; but not if the same page is missing again.
func again(do func() error, may func() bool) error {
	const tries = 10
	missing := ""
	for try := 1; ; try++ {
		err := do()
		page, ok := errors.AsType[*PageError](err)
		if !ok || !gone(err) || page.URL == missing || try == tries || !may() {
			return err
		}
		missing = page.URL
	}
}

// feed reads the feed from the start, or from where it was interrupted.
func (r *run) feed() error {
	if r.came {
		r.since = r.cursor
	}
	mark := r.since
	r.since.Page, r.since.Next = "", "" // a place is tried once
	newest, err := r.head(r.c.URL, "")
	switch {
	case err != nil:
		return err
	case newest.IsEmpty() && r.since.ContentID != "":
		return r.lost(newest.URL)
	case newest.IsEmpty(), before(newest, r.since.Time): // datareplication#consumer-3
		return nil
	}
	if resumed, err := r.resume(mark); resumed {
		return err
	}
	r.walk = newWalk()
	return r.backFrom(newest)
}

func newWalk() walk { return walk{visited: map[string]bool{}, ids: newRecentIDs()} }

// backFrom goes back from a page to the page where reading must begin, and reads from there.
func (r *run) backFrom(page *replication.Page) error {
	way, err := r.back(page)
	if err != nil {
		return err
	}
	return r.forward(way)
}

// before reports whether everything on a page is stamped before a time.
func before(p *replication.Page, t time.Time) bool {
	return !p.Modified.IsZero() && p.Modified.Before(t)
}

// A step is a page to read, and the page linking to it.
type step struct{ url, from string }

// back goes from the newest page back to the page where reading must begin: one stamped
// before the mark, or else the oldest one (datareplication#consumer-1). It returns
// the pages on the way.
func (r *run) back(newest *replication.Page) (way []step, err error) {
	way = []step{{newest.Key(), r.c.URL}}
	r.cursor.Page, r.cursor.Next = newest.URL, ""
	if err := r.visit(newest, newest.Key()); err != nil {
		return nil, err
	}
	for newer := newest; newer.Prev != "" && !before(newer, r.since.Time); {
		older, err := r.head(newer.Prev, newer.Key())
		if gone(err) && r.isOldest(newer) {
			return way, nil
		}
		if err == nil {
			err = r.neighbours(older, newer, newer == newest)
		}
		if err != nil {
			return nil, err
		}
		way = append(way, step{older.Key(), newer.Key()})
		newer, r.cursor.Page = older, older.URL
	}
	return way, nil
}

// isOldest reports whether a page no longer links to an older one, because the older
// one has been cleaned up meanwhile (datareplication#feed-6).
func (r *run) isOldest(page *replication.Page) bool {
	now, err := r.head(page.Key(), "")
	return err == nil && now.Prev == ""
}

// neighbours checks whether the links and stamps of two pages agree. The link to the
// newest page is written last, so it may still be missing (datareplication#producer-1).
func (r *run) neighbours(older, newer *replication.Page, newest bool) error {
	if err := r.visit(newer, older.Key()); err != nil {
		return err
	}
	switch {
	case older.Self != "" && !(older.Self == newer.Prev || older.Self == older.URL):
		return &LinkError{URL: older.URL, Rel: "self", Link: older.Self, Want: newer.Prev, Clause: clauseLinks}
	case older.Next == "" && newest, newer.Self == "" && newest:
	case !newer.Is(older.Next):
		return &LinkError{URL: older.URL, Rel: "next", Link: older.Next, Want: newer.Key(), Clause: clauseLinks}
	}
	if !newer.Modified.IsZero() && newer.Modified.Before(older.Modified) {
		return &StampError{URL: newer.URL, Stamp: newer.Modified, Before: older.Modified, Clause: clauseStamps}
	}
	return nil
}

// visit records a page another one links to.
func (r *run) visit(from *replication.Page, key string) error {
	if r.visited[key] {
		return &LoopError{URL: from.URL, Link: key, Clause: clauseLinks}
	}
	r.visited[key] = true
	return nil
}

// forward reads the pages of a way, last first, and then those added since.
func (r *run) forward(way []step) error {
	var page *replication.Page
	for _, at := range slices.Backward(way) {
		var err error
		if page, err = r.read(at, nil); err == nil {
			err = r.turn(page)
		}
		if err != nil || r.left {
			return err
		}
	}
	return r.onward(page)
}

// onward reads the pages after a page.
func (r *run) onward(page *replication.Page) error {
	for page.Next != "" {
		next, err := r.read(step{page.Next, page.Key()}, page)
		if err == nil {
			err = r.turn(next)
		}
		if err != nil || r.left {
			return err
		}
		page = next
	}
	if r.since.ContentID != "" && !r.found {
		return r.missing(page.URL)
	}
	return nil
}

// read reads a page and yields its entities after the mark. If an older page links to
// it and was not known to be its neighbour, the two must agree.
func (r *run) read(at step, older *replication.Page) (*replication.Page, error) {
	page, err := r.open(http.MethodGet, at.url, at.from)
	if err != nil {
		return nil, err
	}
	defer page.Close()
	if older != nil {
		if err := r.visit(older, page.Key()); err != nil {
			return nil, err
		}
		if page.Prev != "" && !older.Is(page.Prev) {
			return nil, &LinkError{URL: page.URL, Rel: "prev", Link: page.Prev, Want: older.Key(), Clause: clauseLinks}
		}
	}
	if before(page, r.since.Time) {
		r.earlier, r.older = true, page.URL
	}
	err = r.entities(page, time.Time{}, func(e *Entity) error {
		if e.Modified.Before(r.last) {
			return &StampError{URL: page.URL, ContentID: e.ContentID, Stamp: e.Modified, Before: r.last, Clause: clauseStamps}
		}
		r.last = e.Modified
		return r.hand(e)
	})
	if err == nil && !r.left && before(page, r.last) {
		err = &StampError{URL: page.URL, Stamp: page.Modified, Before: r.last, Clause: clauseStamps}
	}
	return page, err
}

// errLeft ends the reading of a page when the caller has stopped.
var errLeft = errors.New("left")

// entities reads the entities of a page of the feed, or of a snapshot created at the
// given time.
func (r *run) entities(page *replication.Page, created time.Time, hand func(*Entity) error) error {
	boundary, err := replication.Boundary(page.Header.Get(replication.FieldType))
	if err != nil {
		return &MalformedError{URL: page.URL, Err: err, Clause: clauseReading}
	}
	parts := replication.NewParts(page.Body(), boundary, r.limits.Entity)
	for n := 1; ; n++ {
		part, err := parts.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			if cut := r.interrupted(page, n-1, err); cut != nil {
				return cut
			}
			return &MalformedError{URL: page.URL, Entity: n, Err: err, Clause: clauseReading}
		}
		e, err := received(part, page.URL, created)
		if err != nil {
			return &MalformedError{URL: page.URL, Entity: n, Err: err, Clause: clauseParts}
		}
		e.number = n
		if err := hand(e); err != nil {
			return err
		}
	}
}
