package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/words"
)

// Records implements mirror.Store.
func (s *Store) Records(ctx context.Context, feed string, ids []string) (map[string]*mirror.Record, error) {
	found := make(map[string]*mirror.Record, len(ids))
	rows, err := s.query(ctx, "SELECT coalesce(long_id, id), "+recordColumns+", format, updated, published, size"+
		s.of("SELECT key FROM fh.feeds WHERE url = ?"), list(&s.dialect, keysOf(ids)), keyOf(feed))
	if err != nil {
		return nil, failure(ctx, err)
	}
	defer rows.Close()
	for rows.Next() {
		r := &mirror.Record{Feed: feed}
		c := &r.Content
		known := []any{formatColumn{&c.Format}, timeColumn{&c.Updated}, timeColumn{&c.Published}, &c.Size}
		if err := rows.Scan(slices.Concat([]any{textColumn{&r.ID}}, recordTargets(r), known)...); err != nil {
			return nil, failure(ctx, err)
		}
		found[r.ID] = r
	}
	return found, failure(ctx, rows.Err())
}

// Entries implements mirror.Store.
func (s *Store) Entries(ctx context.Context, q mirror.Query) iter.Seq2[*mirror.Record, error] {
	if q.AfterCommit != nil {
		after := *q.AfterCommit // which the caller may change during the range
		q.AfterCommit = &after
	}
	var found *search
	query := func(after *mirror.Record) (_ *question, err error) {
		beyond := q.Beyond
		if after != nil {
			beyond = after.Place()
		} else if found, err = s.begin(ctx, &q); err != nil {
			return nil, err
		}
		if err := found.prepare(ctx, &q, beyond); err != nil {
			return nil, err
		}
		ask := s.entriesQuery(selectEntries, &q, beyond, found.condition())
		ask.more = found.more()
		return ask, nil
	}
	return pages(ctx, s, q.Limit, query, func(rows *sql.Rows) (*mirror.Record, int, error) {
		r := &mirror.Record{}
		err := rows.Scan(slices.Concat([]any{textColumn{&r.Feed}, textColumn{&r.ID}}, recordTargets(r), contentTargets(&r.Content))...)
		return r, len(r.Content.Data), err
	})
}

// begin checks a query, and brings the index up to date if the query searches. A reader
// looks through the entries waiting to be indexed.
func (s *Store) begin(ctx context.Context, q *mirror.Query) (found *search, err error) {
	wanted := words.Fields(q.Search)
	switch {
	case q.AfterCommit != nil && q.Feed == "":
		return nil, errors.New("a Query with AfterCommit needs a Feed")
	case q.Search == "":
		return nil, nil
	case len(wanted) == 0:
		return nil, fmt.Errorf("no words in %q: %w", q.Search, errors.ErrUnsupported)
	}
	found = &search{Store: s, wanted: wanted, prefix: q.Prefix, words: s.all(wanted, q.Prefix)}
	if s.reads {
		found.fresh, err = s.unindexed(ctx, wanted, q.Prefix)
		return found, err
	}
	return found, s.Index(ctx)
}

// The URL of a feed is looked up for each entry, because the order is the entries'.
const (
	selectEntries = "SELECT feed_url, coalesce(long_id, id), " + recordColumns + ", " + contentColumns
	withFeeds     = " CROSS JOIN (SELECT key AS feed_key, coalesce(long_url, url) AS feed_url FROM fh.feeds) AS f WHERE feed_key = feed"
)

// entriesQuery returns the statement for a query, from beyond a place, with the
// conditions of a search.
func (s *Store) entriesQuery(columns string, q *mirror.Query, beyond *mirror.Place, found condition) *question {
	ask := ask(columns + " FROM fh.entries")
	if q.Feed == "" && (found.sql == "" || found.ordered) {
		ask.add(s.newest)
	}
	ask.add(withFeeds)
	if q.Feed != "" {
		ask.add(" AND "+ofFeed, keyOf(q.Feed))
	}
	s.narrow(ask, q, found)
	if q.AfterCommit != nil {
		ask.add(s.every("change >= 0")+" AND change > ?", *q.AfterCommit)
		than, order := ">", ""
		if q.Latest {
			than, order = "<", " DESC"
		}
		if beyond != nil {
			ask.add(" AND change "+than+"= ? AND (change, coalesce(long_id, id)) "+than+" (?, ?)", beyond.Commit, beyond.Commit, escaped(beyond.ID))
		}
		ask.add(" ORDER BY change" + order + ", coalesce(long_id, id)" + order)
		return ask
	}
	if q.Feed != "" {
		ask.add(s.every("time >= ''"))
	}
	than, order := "<", " DESC"
	if q.Oldest {
		than, order = ">", ""
	}
	if beyond != nil {
		time := timeText(beyond.Time)
		ask.add(" AND time "+than+"= ? AND (time, feed_url, coalesce(long_id, id)) "+than+" (?, ?, ?)",
			time, time, escaped(beyond.Feed), escaped(beyond.ID))
	}
	ask.add(" ORDER BY time" + order)
	if q.Feed == "" {
		ask.add(", feed_url" + order)
	}
	ask.add(", coalesce(long_id, id)" + order)
	return ask
}

// narrow adds the conditions of a query, except for the feed and the place.
func (s *Store) narrow(ask *question, q *mirror.Query, found condition) {
	switch {
	case q.Every:
	case q.Bare:
		ask.add(" AND state <> 'live' AND format = ''")
	case q.Gone:
		ask.add(" AND state <> 'live' AND format <> ''")
	case q.Deleted:
		ask.add(" AND (state = 'live' OR format <> '')")
	default:
		ask.add(" AND state = 'live'")
	}
	if !q.Since.IsZero() {
		ask.add(" AND time >= ?", timeText(q.Since))
	}
	if !q.Until.IsZero() {
		ask.add(" AND time < ?", timeText(q.Until))
	}
	if found.sql != "" {
		ask.add(" AND "+found.sql, found.args...)
	}
}

// Versions implements mirror.Store.
func (s *Store) Versions(ctx context.Context, feed, id string) iter.Seq2[*mirror.Version, error] {
	query := func(after *mirror.Version) (*question, error) {
		q := ask("SELECT coalesce(long_id, id), "+copyColumns+", "+contentColumns+" FROM fh.versions WHERE "+ofFeed+" AND id = ?",
			keyOf(feed), keyOf(id))
		if after != nil {
			q.add(" AND (at, rank_time, rank_place, digest) < (?, ?, ?, ?)", appendCopy(nil, after.Copy)[:4]...)
		}
		q.add(" ORDER BY at DESC, rank_time DESC, rank_place DESC, digest DESC")
		return q, nil
	}
	return pages(ctx, s, 0, query, func(rows *sql.Rows) (*mirror.Version, int, error) {
		v := &mirror.Version{}
		err := rows.Scan(slices.Concat([]any{textColumn{&v.ID}}, copyTargets(&v.Copy), contentTargets(&v.Content))...)
		return v, len(v.Content.Data), err
	})
}
