package sqlstore

import (
	"cmp"
	"context"
	"math/bits"
	"strconv"
	"time"

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
	sparse  bool    // a walk has not found enough
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

	// For each entry that a page may have, so many steps are taken through the index
	// of times. In SQLite a step takes a twentieth of the time that it takes to look
	// up when an entry is from.
	steps int
}

func (d *dialect) usual() reach {
	return reach{few: 2000, first: 64, last: 256, bytes: 4 << 20, steps: d.steps}
}

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
	// SQLite stops at the first few, unless it has to gather all words with a
	// beginning; PostgreSQL gathers all to tell that it is too much.
	if f.one && !f.prefix {
		if err := f.count(ctx); err != nil || f.settled {
			return err
		}
	}
	f.want = pageRows
	if q.Limit > 0 {
		f.want = min(f.want, q.Limit)
	}
	if !f.sparse {
		enough, err := f.walk(ctx, q, beyond)
		if f.some, f.sparse = enough, !enough; err != nil || enough {
			return err
		}
		if err := f.count(ctx); err != nil || f.settled {
			return err
		}
	}
	var err error
	f.some, err = f.pick(ctx, q, beyond)
	f.settled = !f.some // if it is common, then elsewhere: in another feed, or at another time
	return err
}

// count looks up what is found, if that is little.
func (f *search) count(ctx context.Context) error {
	if f.counted {
		return nil
	}
	f.counted = true
	keys, err := f.numbers(ctx, f.hits+" LIMIT "+strconv.Itoa(f.reach.few+1), f.words)
	if f.settled = err == nil && len(keys) <= f.reach.few; f.settled {
		f.some, f.keys = true, keys
	}
	return err
}

// walk reads entries from beyond a place, and gathers the keys of those that have
// the words. It reports whether that is all that the next page can have.
func (f *search) walk(ctx context.Context, q *mirror.Query, beyond *mirror.Place) (enough bool, err error) {
	read := 0
	for stride := f.reach.first; stride <= max(f.reach.last, 4*f.want); stride *= 4 {
		last := &mirror.Place{}
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
func (f *search) texts(q *mirror.Query, beyond *mirror.Place, stride int) *question {
	ask := f.entriesQuery("SELECT "+textColumns+", time, feed_url, coalesce(long_id, id)", q, beyond, condition{})
	ask.add(" LIMIT " + strconv.Itoa(stride))
	return ask
}

// stride reads a portion of the entries, and returns how many. It ends early once
// there is enough, or too much has been read. Last becomes where it has come to.
func (f *search) stride(ctx context.Context, ask *question, last *mirror.Place, read *int) (n int, err error) {
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

// pick goes through the index of times for entries that are found, for so many steps.
// It reports whether that is all that the next page can have.
func (f *search) pick(ctx context.Context, q *mirror.Query, beyond *mirror.Place) (enough bool, err error) {
	bounded, whole, err := f.bound(ctx, *q, beyond)
	if err != nil {
		return false, err
	}
	is := f.with(f.among, f.words)
	is.ordered = true
	ask := f.entriesQuery("SELECT key", &bounded, beyond, is)
	ask.add(" LIMIT " + limitOf(f.want))
	f.keys, err = f.numbers(ctx, ask.sql.String(), ask.args...)
	return whole || len(f.keys) >= f.want, err
}

// bound returns a query that ends some steps beyond a place, and whether that is all
// that there is.
func (f *search) bound(ctx context.Context, q mirror.Query, beyond *mirror.Place) (mirror.Query, bool, error) {
	ask := ask("SELECT time FROM entries")
	than, order := "<=", " DESC"
	if q.Oldest {
		than, order = ">=", ""
	}
	if q.Feed == "" {
		ask.add(f.newest + " WHERE true")
	} else {
		ask.add(" WHERE "+ofFeed+f.every("time >= ''"), keyOf(q.Feed))
	}
	switch {
	case beyond != nil:
		ask.add(" AND time "+than+" ?", timeText(beyond.Time))
	case q.Oldest && !q.Since.IsZero():
		ask.add(" AND time >= ?", timeText(q.Since))
	case !q.Oldest && !q.Until.IsZero():
		ask.add(" AND time < ?", timeText(q.Until))
	}
	ask.add(" ORDER BY time" + order + " LIMIT 1 OFFSET " + strconv.Itoa(f.reach.steps<<bits.Len(uint(f.want-1))))
	rows, err := f.query(ctx, ask.sql.String(), ask.args...)
	if err != nil {
		return q, false, err
	}
	defer rows.Close()
	whole := true
	for rows.Next() {
		var last time.Time
		if err := rows.Scan(timeColumn{&last}); err != nil {
			return q, false, err
		}
		switch {
		case q.Oldest && (q.Until.IsZero() || last.Before(q.Until)):
			q.Until, whole = last.Add(1), false
		case !q.Oldest && last.After(q.Since):
			q.Since, whole = last, false
		}
	}
	return q, whole, cmp.Or(rows.Err(), rows.Close())
}

// A condition is a part of a statement; the zero value is none.
type condition struct {
	sql  string
	args []any

	ordered bool // entries are gone through in the query's order, whatever it finds
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
		return condition{sql: "key" + f.in, args: []any{list(&f.dialect, f.keys)}}
	}
	return f.with(f.found, f.words)
}

// with adds, to a condition on what is in the index, what is not in it yet.
func (f *search) with(indexed string, arg any) condition {
	if !f.reads {
		return condition{sql: indexed, args: []any{arg}}
	}
	return condition{
		sql:  "(" + indexed + " AND NOT key IN (SELECT key FROM unindexed) OR key" + f.in + ")",
		args: []any{arg, list(&f.dialect, f.fresh)},
	}
}
