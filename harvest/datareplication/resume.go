package datareplication

import (
	"errors"
	"net/http"

	"github.com/feedhistory/feedhistory/internal/replication"
)

// resume continues at the mark's place, so a harvest that was cut short does not go back to
// it from the newest page. It reports whether it could: otherwise nothing was yielded.
func (r *run) resume(mark Mark) (resumed bool, err error) {
	r.walk = newWalk()
	if mark.Next != "" {
		if resumed, err := r.resumeAfter(mark); resumed || err != nil {
			return resumed, err
		}
		r.walk = newWalk()
	}
	if mark.Page == "" {
		return false, nil
	}
	page, err := r.markPage(mark.Page)
	switch {
	case r.found || err == nil && before(page, r.since.Time):
		if r.earlier = true; err == nil && !r.left {
			r.visited[page.Key()] = true
			if err = r.turn(page); err == nil {
				err = r.onward(page)
			}
		}
		return true, err
	case err == nil || isElsewhere(err):
		r.walk = newWalk()
		return true, r.backFrom(page)
	case r.isFinal(err):
		return true, err
	}
	return false, nil
}

// isFinal reports whether an error would end any other way of beginning, too.
func (r *run) isFinal(err error) bool {
	return r.ctx.Err() != nil || errors.As(err, new(*BudgetError))
}

// resumeAfter continues with the mark's Next. The header of the mark's Page must prove that
// the entity is the last there; a page with a successor does not change
// (datareplication#feed-6). If that page is older than the entity, the entity is looked for.
func (r *run) resumeAfter(mark Mark) (resumed bool, err error) {
	at := step{mark.Next, r.c.URL}
	if mark.Page != "" {
		page, err := r.head(mark.Page, r.c.URL)
		switch {
		case err != nil:
			return r.isFinal(err), err
		case before(page, r.since.Time):
			r.earlier, r.older = true, page.URL
		case page.Next == mark.Next && page.Modified.Equal(r.since.Time):
			r.found, r.earlier, r.last = true, true, r.since.Time
			r.ids.repeated(mark.ContentID)
			r.visited[page.Key()] = true
			return true, r.onward(page)
		default:
			return false, nil
		}
	}
	page, err := r.read(at, nil)
	switch {
	case gone(err):
		return false, nil
	case err != nil || r.left:
		return true, err
	}
	r.visited[page.Key()] = true
	if err = r.turn(page); err == nil {
		err = r.onward(page)
	}
	return true, err
}

// turn notes that a page has been read to its end. If it has a successor, nothing will be
// added to it (datareplication#feed-6), so the next harvest may begin there.
func (r *run) turn(page *replication.Page) error {
	at := &r.cursor
	switch {
	case r.left || page.Next == "":
		return nil
	case r.since.ContentID != "" && !r.found:
		at.Page, at.Next = r.older, page.Next
	case at.ContentID != "" && at.Page == page.URL:
		at.Next = page.Next
	case at.ContentID == "" && before(page, at.Time):
		at.Page = page.URL
	default:
		return nil
	}
	return r.tell()
}

// tell announces the mark.
func (r *run) tell() error {
	if r.c.PageDone == nil {
		return nil
	}
	return r.c.PageDone(r.cursor)
}

// markPage reads the mark's page, which should have the mark's entity. A mark without
// an entity needs only the page's header.
func (r *run) markPage(url string) (*replication.Page, error) {
	if r.since.ContentID != "" {
		return r.read(step{url, r.c.URL}, nil)
	}
	page, err := r.open(http.MethodHead, url, r.c.URL)
	if err == nil {
		err = page.Close()
	}
	if err == nil && page.IsEmpty() {
		err = errElsewhere
	}
	return page, err
}

var errElsewhere = errors.New("the page has no entities")

// isElsewhere reports whether an error means the mark's entity is not on the pages read.
func isElsewhere(err error) bool {
	return errors.As(err, new(*ReachError)) || errors.As(err, new(*NotFoundError))
}
