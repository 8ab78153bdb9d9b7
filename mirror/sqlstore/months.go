package sqlstore

import (
	"context"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
)

// A Month says how many entries of a feed fall into a calendar month.
type Month struct {
	Start   time.Time // its first instant, in UTC
	Entries int64     // that are live, by mirror.Record.Time
}

// Months returns the months of a feed that have entries, the oldest first.
// Entries without any time are left out.
func (s *Store) Months(ctx context.Context, feed string) (months []Month, err error) {
	key := keyOf(feed)
	return s.months(ctx, s.countMonths(), key, key, key)
}

func (s *Store) months(ctx context.Context, query string, values ...any) (months []Month, err error) {
	rows, err := s.query(ctx, query, values...)
	if err != nil {
		return nil, failure(ctx, err)
	}
	defer rows.Close()
	for rows.Next() {
		var start string
		var m Month
		if err := rows.Scan(&start, &m.Entries); err != nil {
			return nil, failure(ctx, err)
		}
		if m.Start, err = time.Parse("2006-01", start); err != nil {
			return nil, failure(ctx, err)
		}
		months = append(months, m)
	}
	return months, failure(ctx, rows.Err())
}

// MonthsOf returns the months that have entries which a query asks for, the
// oldest first. Of the query, Feed, Search, Prefix, Deleted and Gone count.
func (s *Store) MonthsOf(ctx context.Context, q mirror.Query) (months []Month, err error) {
	found, err := s.begin(ctx, &q)
	if err != nil {
		return nil, err
	}
	q.Since, q.Until = time.Time{}, time.Time{}
	ask := ask("SELECT substr(time, 1, 7) AS month, count(*) FROM entries WHERE "+ofFeed, keyOf(q.Feed))
	s.narrow(ask, &q, found.condition())
	ask.add(" AND time > '' GROUP BY 1 ORDER BY 1")
	return s.months(ctx, ask.sql.String(), ask.args...)
}

// countMonths goes from month to month along the index, and counts what lies
// between: "2006-01~" is beyond all that begins with "2006-01".
func (s *Store) countMonths() string {
	live := ofFeed + s.every("time >= ''") + " AND state = 'live'"
	return `WITH RECURSIVE months (month) AS (
		SELECT substr(min(time), 1, 7) FROM entries WHERE ` + live + ` AND time > ''
	UNION ALL
		SELECT (SELECT substr(min(time), 1, 7) FROM entries WHERE ` + live + ` AND time > month || '~')
		FROM months WHERE month IS NOT NULL
	)
	SELECT month, (SELECT count(*) FROM entries WHERE ` + live + ` AND time > month AND time < month || '~')
	FROM months WHERE month IS NOT NULL ORDER BY month`
}
