package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"iter"
	"slices"

	"github.com/feedhistory/feedhistory/mirror"
)

const (
	markKey     = "feed, id"
	markTimes   = "read, starred, forward, backward"
	selectMarks = "SELECT coalesce(f.long_url, f.url), coalesce(m.long_id, m.id), " + markTimes + ", more FROM fh.marks m JOIN fh.feeds f ON f.key = m.feed WHERE "
)

// Marks implements mirror.Marker.
func (s *Store) Marks(ctx context.Context, q mirror.MarksQuery) iter.Seq2[*mirror.Marks, error] {
	if err := q.Check(); err != nil {
		return func(yield func(*mirror.Marks, error) bool) { yield(nil, err) }
	}
	q.IDs = slices.Clone(q.IDs)
	return pages(ctx, s, q.Limit, func(after *mirror.Marks) (*question, error) {
		ask, time := ask(selectMarks), q.With
		if q.With == "" {
			ask.add("m."+ofFeed, keyOf(q.Feed))
		} else if ask.add("m." + time + " <> ''"); q.Feed != "" {
			ask.add(" AND m."+ofFeed, keyOf(q.Feed))
		}
		if q.IDs != nil {
			ask.add(" AND m.id"+s.in, list(&s.dialect, keysOf(q.IDs)))
		}
		switch {
		case q.With == "" && after != nil:
			ask.add(" AND m.id > ?", keyOf(after.ID))
		case after != nil:
			at := timeText(after.Time(q.With))
			ask.add(" AND m."+time+" <= ? AND (m."+time+" < ? OR (f.url, m.id) > (?, ?))", at, at, keyOf(after.Feed), keyOf(after.ID))
		}
		if q.With != "" {
			ask.add(" ORDER BY m." + time + " DESC, f.url, m.id")
		} else {
			ask.add(" ORDER BY m.id")
		}
		return ask, nil
	}, scanMarks)
}

// scanMarks reads the marks of an entry, and their size.
func scanMarks(rows *sql.Rows) (*mirror.Marks, int, error) {
	m, more := &mirror.Marks{}, ""
	err := rows.Scan(textColumn{&m.Feed}, textColumn{&m.ID}, timeColumn{&m.Read}, timeColumn{&m.Starred}, timeColumn{&m.Forward}, timeColumn{&m.Backward}, &more)
	if err == nil && more != "" {
		var rest mirror.Marks
		err = json.Unmarshal([]byte(more), &rest)
		m.Position, m.Labels = rest.Position, rest.Labels
	}
	return m, len(m.ID) + len(more), err
}

// Mark implements mirror.Marker.
func (s *Store) Mark(ctx context.Context, feed string, ids []string, change func(*mirror.Marks)) error {
	return s.transact(ctx, func(t transaction) error {
		feeds, err := t.numbers("SELECT feed FROM fh.polls WHERE "+ofFeed+t.locked, keyOf(feed))
		if err != nil {
			return err
		}
		if len(feeds) == 0 {
			return notFound("feed", feed)
		}
		stored, err := t.marks(feed, ids)
		if err != nil {
			return err
		}
		var values []any
		for _, id := range ids {
			m := stored[id]
			if m == nil {
				m = &mirror.Marks{}
				stored[id] = m
			}
			m.Feed, m.ID = feed, id
			change(m)
		}
		for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
			row, err := markValues(stored[id])
			if err != nil {
				return err
			}
			if row == nil {
				continue
			}
			name := nameOf(id)
			values = append(append(values, feeds[0], name.key, name.long), row...)
		}
		if err := t.exec("DELETE FROM fh.marks WHERE feed = ? AND id"+t.in, feeds[0], list(&t.dialect, keysOf(ids))); err != nil {
			return err
		}
		columns := markKey + ", long_id, " + markTimes + ", more"
		return t.insert("fh.marks", columns, marks(columns), "", values)
	})
}

// marks returns the marks of entries, by ID.
func (t transaction) marks(feed string, ids []string) (map[string]*mirror.Marks, error) {
	found := make(map[string]*mirror.Marks, len(ids))
	rows, err := t.query(selectMarks+"m."+ofFeed+" AND m.id"+t.in, keyOf(feed), list(&t.dialect, keysOf(ids)))
	err = eachRow(rows, err, func() error {
		m, _, err := scanMarks(rows)
		found[m.ID] = m
		return err
	})
	return found, err
}

// markValues returns the columns of marks; nil if there is nothing to store.
func markValues(m *mirror.Marks) ([]any, error) {
	rest, more := mirror.Marks{Position: m.Position, Labels: m.Labels}, ""
	if m.Position != 0 || len(m.Labels) > 0 {
		text, err := json.Marshal(rest)
		if err != nil {
			return nil, err
		}
		more = string(text)
	}
	values := []any{timeText(m.Read), timeText(m.Starred), timeText(m.Forward), timeText(m.Backward), more}
	if !slices.ContainsFunc(values, func(v any) bool { return v != "" }) {
		return nil, nil
	}
	return values, nil
}
