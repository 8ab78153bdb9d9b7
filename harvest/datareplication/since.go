package datareplication

// What of the pages that are read comes after the cursor
// (datareplication#consumer-2).

// hand hands an entity on if it comes after the cursor.
func (r *run) hand(e *Entity) error {
	if r.first.IsZero() {
		r.first = e.Modified
	}
	wanted, err := r.wanted(e)
	if err != nil || !wanted {
		return err
	}
	r.cursor = Cursor{e.Modified, e.ContentID}
	if r.left = !r.yield(e, nil); r.left {
		return errLeft
	}
	return nil
}

// wanted reports whether an entity comes after the cursor. The error is that
// the cursor's place is not in the feed.
func (r *run) wanted(e *Entity) (bool, error) {
	since := r.since
	if e.Modified.Before(since.Time) {
		r.earlier = true
	}
	switch {
	case since.IsZero() || r.found:
		return true, nil
	case since.ContentID == "" && e.Modified.Before(since.Time):
		return false, nil
	case since.ContentID == "":
		if !r.earlier && e.Modified.After(since.Time) {
			return false, r.lost(e.Page)
		}
		r.found = true
		return true, nil
	case e.ContentID == since.ContentID:
		r.found = true
		return false, nil
	case !since.Time.IsZero() && e.Modified.After(since.Time):
		return false, r.missing(e.Page)
	}
	return false, nil
}

// ended reports whether the entity of the cursor is missing of the whole feed.
func (r *run) ended(page string) error {
	if r.since.ContentID != "" && !r.found {
		return r.missing(page)
	}
	return nil
}

// missing is why the entity of the cursor is not there.
func (r *run) missing(page string) error {
	if !r.earlier {
		return r.lost(page)
	}
	return &NotFoundError{URL: r.c.URL, Cursor: r.since, Clause: clauseCursor}
}

func (r *run) lost(page string) error {
	return &ReachError{URL: page, Cursor: r.since, Oldest: r.first, Clause: clauseReach}
}
