package datareplication

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/replication"
)

// A run is a harvest under way.
type run struct {
	*Harvest
	fetcher *fetch.Client
	limits  Limits
	yield   func(*Entity, error) bool
	left    bool // by whoever ranges over the entities

	visited map[string]bool // the pages, by what they are known by
	since   Cursor          // where to begin in the feed
	found   bool            // the entity of the cursor
	earlier bool            // something is stamped before the cursor: the feed reaches back to it
	first   time.Time       // the first stamp that was read
	last    time.Time       // and the last
}

// run reads the snapshot, if one is wanted, and then the feed.
func (r *run) run() error {
	r.since = Cursor{seconds(r.from.Time), r.from.ContentID}
	if r.from.IsZero() && r.c.Snapshot != "" {
		created, err := r.snapshot()
		if err != nil || r.left {
			return err
		}
		r.since = Cursor{Time: seconds(created)}
		r.cursor = r.since
	}
	newest, err := r.head(r.c.URL)
	switch {
	case err != nil:
		return err
	case newest.IsEmpty() && r.since.ContentID != "":
		return r.lost(newest.URL)
	case newest.IsEmpty(), before(newest, r.since.Time): // datareplication#consumer-3
		return nil
	}
	way, err := r.back(newest)
	if err != nil {
		return err
	}
	return r.forward(way)
}

// before reports whether all of a page is stamped before a time.
func before(p *replication.Page, t time.Time) bool {
	return !p.Modified.IsZero() && p.Modified.Before(t)
}

// back goes from the newest page to the one from which on to read, which is
// stamped before the cursor, or else the oldest that there is
// (datareplication#consumer-1). It returns the pages on that way.
func (r *run) back(newest *replication.Page) (way []string, err error) {
	way = []string{newest.Key()}
	if err := r.visit(newest, newest.Key()); err != nil {
		return nil, err
	}
	for newer := newest; newer.Prev != "" && !before(newer, r.since.Time); {
		older, err := r.head(newer.Prev)
		if gone(err) {
			return r.cleaned(newer, way, err)
		}
		if err == nil {
			err = r.neighbours(older, newer, newer == newest)
		}
		if err != nil {
			return nil, err
		}
		way = append(way, older.Key())
		newer = older
	}
	return way, nil
}

// cleaned looks whether a page that is gone has been cleaned up meanwhile: then
// the one that linked to it is the oldest now (datareplication#feed-6).
func (r *run) cleaned(newer *replication.Page, way []string, err error) ([]string, error) {
	again, headErr := r.head(newer.Key())
	if headErr != nil || again.Prev != "" {
		return nil, err
	}
	return way, nil
}

// neighbours checks that two pages agree about their links and stamps. The link
// to the newest page comes last, so it may be missing yet
// (datareplication#producer-1).
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

// visit notes a page that another leads to.
func (r *run) visit(from *replication.Page, key string) error {
	if r.visited[key] {
		return &LoopError{URL: from.URL, Link: key, Clause: clauseLinks}
	}
	r.visited[key] = true
	return nil
}

// forward reads the pages of a way, the last first, and then those that have
// been added since.
func (r *run) forward(way []string) error {
	var page *replication.Page
	for i := len(way) - 1; i >= 0; i-- {
		var err error
		if page, err = r.read(way[i], nil); err != nil || r.left {
			return err
		}
	}
	for page.Next != "" {
		next, err := r.read(page.Next, page)
		if err != nil || r.left {
			return err
		}
		page = next
	}
	return r.ended(page.URL)
}

// read reads a page and hands on what is wanted of it. If it was linked to by
// an older one that was not known to be its neighbour, they must agree.
func (r *run) read(url string, older *replication.Page) (*replication.Page, error) {
	page, err := r.open(http.MethodGet, url)
	if gone(err) {
		return nil, &ReachError{URL: url, Cursor: r.cursor, Err: err, Clause: clauseReach}
	}
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
	r.earlier = r.earlier || before(page, r.since.Time)
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

// errLeft ends the reading of a page that nobody wants any more.
var errLeft = errors.New("left")

// entities reads the entities of a page, of the feed or of a snapshot that was
// created at some time.
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
		if err := hand(e); err != nil {
			return err
		}
	}
}
