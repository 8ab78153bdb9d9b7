package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
)

// ofFeed is the condition for rows of the feed with a URL.
const ofFeed = "feed = (SELECT key FROM fh.feeds WHERE url = ?)"

// Feed implements mirror.Store.
func (s *Store) Feed(ctx context.Context, url string) (*mirror.Feed, error) {
	for f, err := range s.feeds(ctx, 1, func(*mirror.Feed) (*question, error) {
		return ask(selectFeeds+" AND url = ?", keyOf(url)), nil
	}) {
		return f, err
	}
	return nil, notFound("feed", url)
}

// Feeds implements mirror.Store.
func (s *Store) Feeds(ctx context.Context, q mirror.FeedQuery) iter.Seq2[*mirror.Feed, error] {
	return s.feeds(ctx, q.Limit, func(after *mirror.Feed) (*question, error) {
		switch {
		case q.Due.IsZero():
			url := q.After
			if after != nil {
				url = after.URL
			}
			url = escaped(url)
			order := "coalesce(long_url, url)"
			ask := ask(selectFeeds+" AND "+order+" > ?", url)
			if s.dollars { // whose index has only the beginnings of URLs
				ask.add(" AND "+beginning(order)+" >= "+beginning("?::text"), url)
				order = beginning(order) + ", " + order
			}
			ask.add(" ORDER BY " + order)
			return ask, nil
		case q.After != "":
			return nil, errors.New("a FeedQuery cannot have both Due and After")
		}
		ask := ask(selectDue+" AND NOT gone AND next <= ?", timeText(q.Due))
		if after != nil {
			next := timeText(after.Next)
			ask.add(" AND next >= ? AND (next, coalesce(long_url, url)) > (?, ?)", next, next, escaped(after.URL))
		}
		ask.add(" ORDER BY next, coalesce(long_url, url)")
		return ask, nil
	})
}

// beginning is the part of a URL in PostgreSQL's index feeds_by_url: it takes 2,704
// bytes at most.
func beginning(url string) string { return "left(" + url + ", 500)" }

func (s *Store) feeds(ctx context.Context, limit int, query func(*mirror.Feed) (*question, error)) iter.Seq2[*mirror.Feed, error] {
	return pages(ctx, s, limit, query, scanFeed)
}

// Newest returns the time of the newest live entry of each feed, by
// mirror.Record.Time and by URL. Feeds without entries are missing from the
// result. One call for many feeds is faster than a call for each.
// The error may be the context's.
func (s *Store) Newest(ctx context.Context, feeds []string) (map[string]time.Time, error) {
	rows, err := s.query(ctx, "SELECT coalesce(long_url, url), (SELECT time FROM fh.entries WHERE feed = fh.feeds.key"+
		s.every("time >= ''")+" AND state = 'live' ORDER BY time DESC LIMIT 1) FROM fh.feeds WHERE url"+s.in,
		list(&s.dialect, keysOf(feeds)))
	if err != nil {
		return nil, failure(ctx, err)
	}
	defer rows.Close()
	newest := make(map[string]time.Time, len(feeds))
	for rows.Next() {
		var feed string
		var at sql.NullString
		if err := rows.Scan(textColumn{&feed}, &at); err != nil {
			return nil, failure(ctx, err)
		}
		if !at.Valid {
			continue
		}
		var when time.Time
		if err := (timeColumn{&when}).Scan(at.String); err != nil {
			return nil, failure(ctx, err)
		}
		newest[feed] = when
	}
	return newest, failure(ctx, rows.Err())
}

func notFound(what, url string) error { return fmt.Errorf("%s %s: %w", what, url, mirror.ErrNotFound) }

// Remove implements mirror.Store.
func (s *Store) Remove(ctx context.Context, url string) error {
	last := &mirror.Feed{URL: url}
	if s.Hook != nil {
		var err error
		if last, err = s.Feed(ctx, url); err != nil {
			return err
		}
	}
	return s.transact(ctx, func(t transaction) error {
		// This locks the feed, so nobody adds to it.
		feeds, err := t.numbers("UPDATE fh.polls SET version = version + 1 WHERE "+ofFeed+" RETURNING feed", keyOf(url))
		if err == nil && len(feeds) == 0 {
			return notFound("feed", url)
		}
		const ofFeed = "IN (SELECT key FROM fh.entries WHERE feed = ?"
		for _, query := range []string{
			"DELETE FROM fh.unindexed WHERE key IN (SELECT key FROM fh.unindexed WHERE key " + ofFeed + ") ORDER BY key" + t.locked + ")",
			"DELETE FROM fh.search WHERE rowid " + ofFeed + ")",
			"DELETE FROM fh.feeds WHERE key = ?",
		} {
			if err == nil {
				err = t.exec(query, feeds[0])
			}
		}
		if err != nil {
			return err
		}
		return t.tell(last, last.Commits, &Delta{Removed: true})
	})
}

// Move changes the URL of a feed, and stores its state. Everything belonging to the feed
// stays. If the feed has changed since it was read, the error matches
// mirror.ErrConflict. The error may be the context's.
func (s *Store) Move(ctx context.Context, f *mirror.Feed, to string) error {
	if f == nil {
		return errors.New("sqlstore: Move: the Feed is nil")
	}
	from := f.URL
	version := f.Commits + 1
	err := s.transact(ctx, func(t transaction) error {
		if _, err := t.feed(f, version); err != nil {
			return err
		}
		moved := *f
		moved.URL = to
		state, err := stateText(&moved)
		if err != nil {
			return err
		}
		url, values := nameOf(to), feedValues(&moved, state)
		if err := t.exec("UPDATE fh.feeds SET url = ?, long_url = ?, state = ?, checksum = ? WHERE url = ?",
			url.key, url.long, state, t.sums.of([]any{url.key, url.long}, values), keyOf(from)); err != nil {
			return err
		}
		return t.tell(&moved, version, &Delta{From: from})
	})
	if err == nil {
		f.URL, f.Commits = to, version
	}
	return err
}
