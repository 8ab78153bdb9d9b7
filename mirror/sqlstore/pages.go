package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"iter"
	"math/bits"
	"strconv"
	"strings"
)

// A sequence is read in pages, each by a separate statement, from where the last one
// ended. So neither a connection nor a lock is held during a range, and pages are
// small, however large their rows are.
const (
	pageRows  = 256
	pageBytes = 1 << 20
)

// A question is a query under construction.
type question struct {
	sql  strings.Builder
	args []any
	more bool // there may be more rows although the page is not full
}

func ask(query string, args ...any) *question {
	q := &question{args: args}
	q.sql.WriteString(query)
	return q
}

// add adds to the query.
func (q *question) add(more string, args ...any) {
	q.sql.WriteString(more)
	q.args = append(q.args, args...)
}

// pages yields the rows of a query, up to a limit, unless it is zero. The query selects
// the rows after an item, nil at first, in its order. Scan returns a row, and its size
// in bytes.
func pages[T any](
	ctx context.Context, s *Store, limit int,
	query func(after *T) (*question, error), scan func(*sql.Rows) (*T, int, error),
) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		if limit < 0 {
			yield(nil, errors.New("sqlstore: Limit is negative"))
			return
		}
		var last *T
		for left := limit; limit <= 0 || left > 0; {
			rows := pageRows
			if limit > 0 {
				rows = min(rows, left)
			}
			q, err := query(last)
			var page []*T
			var whole bool
			if err == nil {
				page, whole, err = readPage(ctx, s, q, rows, scan)
			}
			for _, item := range page {
				if !yield(item, nil) {
					return
				}
				last = item
			}
			if err != nil {
				yield(nil, failure(ctx, err))
				return
			}
			if left -= len(page); whole && len(page) < rows && !q.more {
				return
			}
		}
	}
}

// readPage returns at most some rows of a page, and reports whether there are
// no more so far.
func readPage[T any](
	ctx context.Context, s *Store, q *question, most int, scan func(*sql.Rows) (*T, int, error),
) (page []*T, whole bool, err error) {
	q.add(" LIMIT " + limitOf(most))
	rows, err := s.query(ctx, q.sql.String(), q.args...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	for bytes := 0; len(page) < most && rows.Next(); {
		item, size, err := scan(rows)
		if err != nil {
			return page, false, err
		}
		page = append(page, item)
		if bytes += size; bytes > pageBytes {
			return page, false, rows.Close()
		}
	}
	return page, true, cmp.Or(rows.Err(), rows.Close())
}

// limitOf returns the limit for a number of rows, rounded up to a power of two.
// It is not a parameter, because SQLite plans again for each value of a limit;
// rounding leaves few different statements.
func limitOf(rows int) string { return strconv.Itoa(1 << bits.Len(uint(rows-1))) }
