package sqlstore

import (
	"cmp"
	"context"

	"github.com/feedhistory/feedhistory/mirror"
)

// Commit implements mirror.Store.
func (s *Store) Commit(ctx context.Context, c *mirror.Change) error {
	version := cmp.Or(c.Version, c.Feed.Version+1)
	err := s.transact(ctx, func(t transaction) error {
		feed, err := t.feed(c.Feed, version) // locks the feed
		if err != nil {
			return err
		}
		if err := t.entries(feed, c); err != nil {
			return err
		}
		return t.documents(feed, c)
	})
	if err == nil {
		c.Feed.Version = version
	}
	return err
}

// entries stores the entries of a change and their versions.
func (t transaction) entries(feed int64, c *mirror.Change) error {
	touched := make([]string, 0, len(c.Put)+len(c.Touch)+len(c.Versions))
	begin := func(values []any, id string) []any {
		n := nameOf(id)
		touched = append(touched, n.key)
		return append(values, feed, n.key, n.long)
	}
	var puts, marked, versions []any
	for _, r := range c.Put {
		puts = appendContent(appendRecord(begin(puts, r.ID), r), &r.Content)
	}
	for _, r := range c.Touch {
		marked = appendRecord(begin(marked, r.ID), r)
	}
	for _, v := range c.Versions {
		versions = appendContent(appendCopy(begin(versions, v.ID), v.Copy), &v.Content)
	}
	if len(touched) == 0 {
		return nil
	}
	if err := t.put(feed, list(&t.dialect, touched[:len(c.Put)]), c.Keep, puts); err != nil {
		return err
	}
	if err := t.insert("entries", markColumns, markRow, markConflict, marked); err != nil {
		return err
	}
	if err := t.insert("versions", versionColumns, versionRow, " ON CONFLICT (feed, id, digest) DO NOTHING", versions); err != nil {
		return err
	}
	return t.prune(feed, list(&t.dialect, touched), c.Keep)
}

const (
	markColumns    = "feed, id, long_id, " + recordColumns
	putColumns     = markColumns + ", " + contentColumns
	versionColumns = "feed, id, long_id, " + copyColumns + ", " + contentColumns
)

var (
	markRow, putRow, versionRow = marks(markColumns), marks(putColumns), marks(versionColumns)

	markConflict = replacing("feed, id", recordColumns)
	putConflict  = replacing("feed, id", recordColumns+", "+contentColumns)
)

// put stores entries with contents, and has what they replace become versions.
func (t transaction) put(feed int64, ids any, keep int, values []any) error {
	if len(values) == 0 {
		return nil
	}
	if keep > 0 {
		if err := t.exec("INSERT INTO versions ("+versionColumns+") SELECT "+versionColumns+t.of("?")+
			" WHERE format <> '' ON CONFLICT (feed, id, digest) DO NOTHING", ids, feed); err != nil {
			return err
		}
	}
	if err := t.insert("entries", putColumns, putRow, putConflict, values); err != nil {
		return err
	}
	// A row that waits in the queue already is locked, so that nobody indexes what
	// it replaces.
	return t.exec("INSERT INTO unindexed SELECT key"+t.of("?")+
		" WHERE true ORDER BY key ON CONFLICT (key) DO UPDATE SET key = excluded.key", ids, feed)
}

// prune drops the versions of entries that are the current one, and those that
// are too many.
func (t transaction) prune(feed int64, ids any, keep int) error {
	of := "DELETE FROM versions WHERE feed = ? AND id" + t.in
	if err := t.exec(of+` AND digest = (SELECT e.digest FROM entries e
		WHERE e.feed = versions.feed AND e.id = versions.id)`, feed, ids); err != nil {
		return err
	}
	return t.exec(of+` AND ? <= (SELECT count(*) FROM versions newer
		WHERE newer.feed = versions.feed AND newer.id = versions.id AND
			(newer.at, newer.rank_time, newer.rank_place, newer.digest) >
			(versions.at, versions.rank_time, versions.rank_place, versions.digest))`, feed, ids, max(keep, 0))
}
