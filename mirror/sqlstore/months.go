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
	rows, err := s.query(ctx, "SELECT substr(time, 1, 7), count(*) FROM entries WHERE "+ofFeed+
		" AND time > '' AND state = 'live' GROUP BY 1 ORDER BY 1", keyOf(feed))
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
