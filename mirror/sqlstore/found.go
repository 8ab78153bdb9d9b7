package sqlstore

import (
	"cmp"
	"context"
	"strconv"

	"github.com/feedhistory/feedhistory/mirror"
)

// A search is what a query's words find. A word that few entries have is looked up
// in the index, and what it finds is put in order. With one that very many have
// that takes long; so the entries are gone through in the query's order, and each
// is looked for among what is found, until there are enough for a page.
type search struct {
	*Store
	words string
	fresh []int64 // of those that wait to be indexed, what a reader has found

	counted bool    // there is more than a few
	settled bool    // what is found is looked up for the rest of the query
	some    bool    // keys has all that can be on the next page, or on any once settled
	keys    []int64 // of entries
}

// few is how many entries are looked up without a thought.
const few = 2000

// A walk goes through at most so many entries, with a statement for each portion. To
// look for an entry in the index costs up to a millisecond, so a word that few of
// them have is better looked up.
var strides = []int{64, 256}

// prepare chooses how the next page is found.
func (f *search) prepare(ctx context.Context, q *mirror.Query, beyond *mirror.Place) error {
	if f == nil || f.settled {
		return nil
	}
	f.some, f.keys = false, nil
	if q.Changes != nil {
		f.settled = true
		return nil
	}
	want := pageRows
	if q.Limit > 0 {
		want = min(want, q.Limit)
	}
	if f.one { // SQLite stops at the first few; PostgreSQL gathers all to tell that it is too much
		if err := f.count(ctx); err != nil || f.settled {
			return err
		}
	}
	for _, stride := range strides {
		last, err := f.walk(ctx, q, beyond, stride, want)
		if err != nil {
			return err
		}
		if last == nil || len(f.keys) >= want {
			f.some = true
			return nil
		}
		beyond = last
	}
	err := f.count(ctx)
	f.settled = true // if it is common, then elsewhere: in another feed, or at another time
	return err
}

// count looks up what is found, if that is little.
func (f *search) count(ctx context.Context) error {
	if f.counted {
		return nil
	}
	f.counted = true
	rows, err := f.query(ctx, f.hits+" LIMIT "+strconv.Itoa(few+1), f.words)
	if err != nil {
		return err
	}
	defer rows.Close()
	keys := make([]int64, 0, few)
	for rows.Next() {
		var key int64
		if err := rows.Scan(&key); err != nil {
			return err
		}
		keys = append(keys, key)
	}
	if f.settled = len(keys) <= few; f.settled {
		f.some, f.keys = true, keys
	}
	return cmp.Or(rows.Err(), rows.Close())
}

// walk goes through entries from beyond a place, and adds the keys of those that
// are found until there are as many as wanted. It returns where it has come to;
// nil at the end of all.
func (f *search) walk(ctx context.Context, q *mirror.Query, beyond *mirror.Place, stride, want int) (*mirror.Place, error) {
	is := f.with(f.probe, f.words)
	ask := f.entriesQuery("SELECT key, "+is.sql+", time, feed_url, coalesce(long_id, id)", q, beyond, condition{})
	ask.add(" LIMIT " + strconv.Itoa(stride))
	rows, err := f.query(ctx, ask.sql.String(), append(is.args, ask.args...)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	n, last := 0, &mirror.Place{}
	for ; len(f.keys) < want && rows.Next(); n++ {
		var key int64
		var isFound bool
		if err := rows.Scan(&key, &isFound, timeColumn{&last.Time}, textColumn{&last.Feed}, textColumn{&last.ID}); err != nil {
			return nil, err
		}
		if isFound {
			f.keys = append(f.keys, key)
		}
	}
	if n < stride && len(f.keys) < want {
		last = nil
	}
	return last, cmp.Or(rows.Err(), rows.Close())
}

// A condition is a part of a statement; the zero value is none.
type condition struct {
	sql  string
	args []any
}

// condition is what an entry has to meet.
func (f *search) condition() condition {
	switch {
	case f == nil:
		return condition{}
	case f.settled && f.some:
		return f.with("key"+f.in, list(&f.dialect, f.keys))
	case f.some: // among them are those that wait to be indexed
		return condition{"key" + f.in, []any{list(&f.dialect, f.keys)}}
	}
	return f.with(f.found, f.words)
}

// with adds, to a condition on what is in the index, what is not in it yet.
func (f *search) with(indexed string, arg any) condition {
	if !f.reads {
		return condition{indexed, []any{arg}}
	}
	return condition{
		"(" + indexed + " AND NOT key IN (SELECT key FROM unindexed) OR key" + f.in + ")",
		[]any{arg, list(&f.dialect, f.fresh)},
	}
}
