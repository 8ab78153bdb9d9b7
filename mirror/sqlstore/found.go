package sqlstore

import (
	"cmp"
	"context"
	"strconv"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/internal/words"
)

// A search is what a query's words find. A word that few entries have is looked up
// in the index, and what it finds is put in order. With one that very many have
// that takes long; so the entries are read in the query's order, and the words of
// each are compared, until there are enough for a page.
type search struct {
	*Store
	wanted []string
	prefix bool    // the last one that is wanted is the beginning of a word
	words  string  // those that are wanted, as the index is asked for them
	fresh  []int64 // of those that wait to be indexed, what a reader has found

	counted bool    // there is more than a few
	settled bool    // what is found is looked up for the rest of the query
	some    bool    // keys has all that can be on the next page, or on any once settled
	keys    []int64 // of entries
	want    int     // how many a page may have
}

// A reach says how far a search goes before it chooses another way. None changes what
// is found.
type reach struct {
	few int // as many hits are looked up without a thought

	// A walk reads entries in portions, with a statement for each: the first has so
	// many entries, the next four times as many. It ends after the portion that is
	// the last, or four times what a page may have, and after so many bytes. To look
	// for each entry in SQLite's index would cost up to a millisecond, and to read one
	// of a kilobyte is a twentieth of that.
	first, last, bytes int
}

var usual = reach{few: 2000, first: 64, last: 256, bytes: 4 << 20}

// prepare chooses how the next page is found.
func (f *search) prepare(ctx context.Context, q *mirror.Query, beyond *mirror.Cursor) error {
	if f == nil || f.settled {
		return nil
	}
	f.some, f.keys = false, nil
	if q.Changes != nil {
		f.settled = true
		return nil
	}
	// SQLite stops at the first few, unless it has to gather all words with a
	// beginning; PostgreSQL gathers all to tell that it is too much.
	if f.one && !f.prefix {
		if err := f.count(ctx); err != nil || f.settled {
			return err
		}
	}
	var err error
	if f.some, err = f.walk(ctx, q, beyond); err != nil || f.some {
		return err
	}
	err = f.count(ctx)
	f.settled = true // if it is common, then elsewhere: in another feed, or at another time
	return err
}

// count looks up what is found, if that is little.
func (f *search) count(ctx context.Context) error {
	if f.counted {
		return nil
	}
	f.counted = true
	rows, err := f.query(ctx, f.hits+" LIMIT "+strconv.Itoa(f.reach.few+1), f.words)
	if err != nil {
		return err
	}
	defer rows.Close()
	keys := make([]int64, 0, f.reach.few)
	for rows.Next() {
		var key int64
		if err := rows.Scan(&key); err != nil {
			return err
		}
		keys = append(keys, key)
	}
	if f.settled = len(keys) <= f.reach.few; f.settled {
		f.some, f.keys = true, keys
	}
	return cmp.Or(rows.Err(), rows.Close())
}

// walk reads entries from beyond a place, and gathers the keys of those that have
// the words. It reports whether that is all that the next page can have.
func (f *search) walk(ctx context.Context, q *mirror.Query, beyond *mirror.Cursor) (enough bool, err error) {
	f.want = pageRows
	if q.Limit > 0 {
		f.want = min(f.want, q.Limit)
	}
	read := 0
	for stride := f.reach.first; stride <= max(f.reach.last, 4*f.want); stride *= 4 {
		last := &mirror.Cursor{}
		n, err := f.stride(ctx, f.texts(q, beyond, stride), last, &read)
		switch {
		case err != nil:
			return false, err
		case len(f.keys) >= f.want:
			return true, nil
		case read > f.reach.bytes:
			return false, nil
		case n < stride:
			return true, nil
		}
		beyond = last
	}
	return false, nil
}

// texts asks for the texts of some entries, in a query's order.
func (f *search) texts(q *mirror.Query, beyond *mirror.Cursor, stride int) *question {
	ask := f.entriesQuery("SELECT "+textColumns+", time, feed_url, coalesce(long_id, id)", q, beyond, condition{})
	ask.add(" LIMIT " + strconv.Itoa(stride))
	return ask
}

// stride reads a portion of the entries, and returns how many. It ends early once
// there is enough, or too much has been read. Last becomes where it has come to.
func (f *search) stride(ctx context.Context, ask *question, last *mirror.Cursor, read *int) (n int, err error) {
	rows, err := f.query(ctx, ask.sql.String(), ask.args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var set words.Set
	for ; len(f.keys) < f.want && *read <= f.reach.bytes && rows.Next(); n++ {
		var key int64
		var r mirror.Record
		if err := rows.Scan(append(textTargets(&key, &r), timeColumn{&last.Time}, textColumn{&last.Feed}, textColumn{&last.ID})...); err != nil {
			return 0, err
		}
		fillWords(&set, &r)
		if set.Contains(f.wanted, f.prefix) {
			f.keys = append(f.keys, key)
		}
		*read += len(r.Content.Data)
	}
	return n, cmp.Or(rows.Err(), rows.Close())
}

// A condition is a part of a statement; the zero value is none.
type condition struct {
	sql  string
	args []any
}

// more reports whether there may be more than the next page's query finds: what the
// walk has gathered may be gone by then.
func (f *search) more() bool { return f != nil && f.some && !f.settled && len(f.keys) >= f.want }

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
