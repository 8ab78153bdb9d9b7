package datareplication

import (
	"errors"
	"net/http"

	"github.com/feedhistory/feedhistory/internal/replication"
)

// resume continues at the mark's page, so a harvest that was cut short asks for one page
// again, and does not go back to it from the newest one. It reports whether it could:
// otherwise nothing was yielded.
func (r *run) resume(url string) (resumed bool, err error) {
	r.walk = newWalk()
	page, err := r.markPage(url)
	switch {
	case r.found || err == nil && before(page, r.since.Time):
		if r.earlier = true; err == nil && !r.left {
			r.visited[page.Key()] = true
			err = r.onward(page)
		}
		return true, err
	case err == nil || isElsewhere(err):
		r.walk = newWalk()
		return true, r.backFrom(page)
	case r.ctx.Err() != nil || errors.As(err, new(*BudgetError)):
		return true, err
	}
	return false, nil
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
