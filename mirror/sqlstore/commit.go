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
		puts = appendContent(t.appendRecord(begin(puts, r.ID), r, t.unless(r.Copy.At, r.Content.Updated)), &r.Content)
	}
	for _, r := range c.Touch {
		marked = t.appendRecord(begin(marked, r.ID), r, timeText(r.Copy.At)) // its content is not known here
	}
	for _, v := range c.Versions {
		versions = appendContent(appendCopy(begin(versions, v.ID), timeText(v.Copy.At), v.Copy), &v.Content)
	}
	if len(touched) == 0 {
		return nil
	}
	if err := t.replace(feed, list(&t.dialect, touched[:len(c.Put)]), c.Keep, puts); err != nil {
		return err
	}
	if err := t.upsert(t.mark, marked); err != nil {
		return err
	}
	if err := t.insert("versions", versionColumns, versionRow, " ON CONFLICT (feed, id, digest) DO NOTHING", versions); err != nil {
		return err
	}
	return t.prune(feed, list(&t.dialect, touched), c.Keep)
}

const versionColumns = "feed, id, long_id, " + copyColumns + ", " + contentColumns

var versionRow = marks(versionColumns)

func (t transaction) upsert(u upsert, values []any) error {
	return t.insert("entries", u.columns, u.row, u.conflict, values)
}

// replace stores entries with contents, and makes versions of those that they
// replace.
func (t transaction) replace(feed int64, ids any, keep int, values []any) error {
	if len(values) == 0 {
		return nil
	}
	if keep > 0 {
		if err := t.exec("INSERT INTO versions ("+versionColumns+") SELECT "+versionColumns+t.of("?")+
			" WHERE format <> '' ON CONFLICT (feed, id, digest) DO NOTHING", ids, feed); err != nil {
			return err
		}
	}
	if err := t.upsert(t.put, values); err != nil {
		return err
	}
	// This also locks a row that is in the queue already, so that nobody
	// indexes the replaced text.
	return t.exec("INSERT INTO unindexed SELECT key"+t.of("?")+
		" WHERE true ORDER BY key ON CONFLICT (key) DO UPDATE SET key = excluded.key", ids, feed)
}

// prune drops versions that equal the current one, and those that exceed keep.
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
