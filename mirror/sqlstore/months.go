package sqlstore

import (
	"context"
	"errors"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
)

// Months implements mirror.Calendar.
func (s *Store) Months(ctx context.Context, q mirror.Query) ([]mirror.Month, error) {
	if q.Feed == "" {
		return nil, errors.New("a Query for Months needs a Feed")
	}
	if q.Search == "" && !q.Deleted && !q.Gone {
		key := keyOf(q.Feed)
		return s.months(ctx, s.countMonths(), key, key, key)
	}
	found, err := s.begin(ctx, &q)
	if err != nil {
		return nil, err
	}
	q.Since, q.Until = time.Time{}, time.Time{}
	ask := ask("SELECT substr(time, 1, 7) AS month, count(*) FROM fh.entries WHERE "+ofFeed, keyOf(q.Feed))
	s.narrow(ask, &q, found.condition())
	ask.add(" AND time > '' GROUP BY 1 ORDER BY 1")
	return s.months(ctx, ask.sql.String(), ask.args...)
}

func (s *Store) months(ctx context.Context, query string, values ...any) (months []mirror.Month, err error) {
	rows, err := s.query(ctx, query, values...)
	if err != nil {
		return nil, failure(ctx, err)
	}
	defer rows.Close()
	for rows.Next() {
		var start string
		var m mirror.Month
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

// countMonths steps from month to month through the index, and counts the entries in
// between: "2006-01~" sorts after everything with the beginning "2006-01".
func (s *Store) countMonths() string {
	live := ofFeed + s.every("time >= ''") + " AND state = 'live'"
	return `WITH RECURSIVE months (month) AS (
		SELECT substr(min(time), 1, 7) FROM fh.entries WHERE ` + live + ` AND time > ''
	UNION ALL
		SELECT (SELECT substr(min(time), 1, 7) FROM fh.entries WHERE ` + live + ` AND time > month || '~')
		FROM months WHERE month IS NOT NULL
	)
	SELECT month, (SELECT count(*) FROM fh.entries WHERE ` + live + ` AND time > month AND time < month || '~')
	FROM months WHERE month IS NOT NULL ORDER BY month`
}
