package sqlstore

import (
	"context"

	"github.com/feedhistory/feedhistory/mirror"
)

// Commit implements mirror.Store.
func (s *Store) Commit(ctx context.Context, c *mirror.Change) error {
	err := s.transact(ctx, func(t transaction) error {
		feed, err := t.feed(c.Feed) // locks the feed
		if err != nil {
			return err
		}
		if err := t.entries(feed, c); err != nil {
			return err
		}
		return t.documents(feed, c)
	})
	if err == nil {
		c.Feed.Version++
	}
	return err
}

// entries stores the entries of a change and their versions.
func (t transaction) entries(feed int64, c *mirror.Change) error {
	var put, touched []string
	var puts, marks, versions [][]any
	for _, r := range c.Put {
		id := nameOf(r.ID)
		put = append(put, id.key)
		puts = append(puts, row([]any{feed, id.key, id.long}, recordValues(r), contentValues(&r.Content)))
	}
	touched = put
	for _, r := range c.Mark {
		id := nameOf(r.ID)
		touched = append(touched, id.key)
		marks = append(marks, row([]any{feed, id.key, id.long}, recordValues(r)))
	}
	for _, v := range c.Versions {
		id := nameOf(v.ID)
		touched = append(touched, id.key)
		versions = append(versions, row([]any{feed, id.key, id.long}, copyValues(v.Copy), contentValues(&v.Content)))
	}
	if len(touched) == 0 {
		return nil
	}
	var err error
	ids := list(&t.dialect, put)
	if len(put) > 0 && c.Keep > 0 {
		err = t.exec(saveVersions+t.of("?")+" WHERE format <> '' ON CONFLICT (feed, id, digest) DO NOTHING", ids, feed)
	}
	if err == nil {
		err = t.insert("entries", putColumns, putConflict, puts)
	}
	if err == nil && len(put) > 0 {
		// A row that waits in the queue already is locked, so that nobody indexes
		// what it replaces.
		err = t.exec("INSERT INTO unindexed SELECT key"+t.of("?")+
			" WHERE true ORDER BY key ON CONFLICT (key) DO UPDATE SET key = excluded.key", ids, feed)
	}
	if err == nil {
		err = t.insert("entries", markColumns, markConflict, marks)
	}
	if err == nil {
		err = t.insert("versions", versionColumns, " ON CONFLICT (feed, id, digest) DO NOTHING", versions)
	}
	if err != nil {
		return err
	}
	return t.prune(feed, touched, c.Keep)
}

func row(parts ...[]any) (values []any) {
	for _, part := range parts {
		values = append(values, part...)
	}
	return values
}

const (
	markColumns    = "feed, id, long_id, " + recordColumns
	putColumns     = markColumns + ", " + contentColumns
	versionColumns = "feed, id, long_id, " + copyColumns + ", " + contentColumns

	saveVersions = "INSERT INTO versions (" + versionColumns + ") SELECT " + versionColumns
)

var (
	putConflict  = replacing("feed, id", recordColumns+", "+contentColumns)
	markConflict = replacing("feed, id", recordColumns)
)

// prune drops the versions of entries that are the current one, and those that
// are too many.
func (t transaction) prune(feed int64, ids []string, keep int) error {
	of := "DELETE FROM versions WHERE feed = ? AND id" + t.in
	touched := list(&t.dialect, ids)
	err := t.exec(of+` AND digest = (SELECT e.digest FROM entries e
		WHERE e.feed = versions.feed AND e.id = versions.id AND e.format <> '')`, feed, touched)
	if err == nil {
		err = t.exec(of+` AND ? <= (SELECT count(*) FROM versions newer
			WHERE newer.feed = versions.feed AND newer.id = versions.id AND
				(newer.at, newer.rank_time, newer.rank_place, newer.digest) >
				(versions.at, versions.rank_time, versions.rank_place, versions.digest))`, feed, touched, max(keep, 0))
	}
	return err
}
