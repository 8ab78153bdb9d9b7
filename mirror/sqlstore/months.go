package sqlstore

import (
	"context"
	"time"
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
	rows, err := s.query(ctx, countMonths, key, key, key)
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

// countMonths goes from month to month along the index, and counts what lies
// between: "2006-01~" is beyond all that begins with "2006-01".
const countMonths = `WITH RECURSIVE months (month) AS (
		SELECT substr(min(time), 1, 7) FROM entries WHERE ` + ofFeed + ` AND time > '' AND state = 'live'
	UNION ALL
		SELECT (SELECT substr(min(time), 1, 7) FROM entries WHERE ` + ofFeed + ` AND time > month || '~' AND state = 'live')
		FROM months WHERE month IS NOT NULL
	)
	SELECT month, (SELECT count(*) FROM entries WHERE ` + ofFeed + ` AND time > month AND time < month || '~' AND state = 'live')
	FROM months WHERE month IS NOT NULL ORDER BY month`
