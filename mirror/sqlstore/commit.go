package sqlstore

import (
	"cmp"
	"context"
	"errors"

	"github.com/feedhistory/feedhistory/mirror"
)

// Commit implements mirror.Store.
func (s *Store) Commit(ctx context.Context, c *mirror.Commit) error {
	if c == nil || c.Feed == nil {
		return errors.New("sqlstore: Commit: the Change, or its Feed, is nil")
	}
	version := cmp.Or(c.Number, c.Feed.Commits+1)
	err := s.transact(ctx, func(t transaction) error {
		feed, err := t.feed(c.Feed, version) // locks the feed
		if err != nil {
			return err
		}
		var before map[string]liveCopy
		if s.Hook != nil {
			if before, err = t.before(feed, c); err != nil {
				return err
			}
		}
		if err := t.entries(feed, c); err != nil {
			return err
		}
		if err := t.documents(feed, c); err != nil || s.Hook == nil {
			return err
		}
		d, err := t.difference(feed, c, before)
		if err != nil {
			return err
		}
		return t.tell(c.Feed, version, d)
	})
	if err == nil {
		c.Feed.Commits = version
	}
	return err
}

// entries stores the entries of a change and their versions.
func (t transaction) entries(feed int64, c *mirror.Commit) error {
	touched := make([]string, 0, len(c.Put)+len(c.Touch)+len(c.Versions))
	key := func(values []any, id string) []any {
		n := nameOf(id)
		touched = append(touched, n.key)
		return appendKey(values, feed, n)
	}
	var puts, marked, versions []any
	for _, r := range c.Put {
		begin := len(puts)
		puts = t.appendRecord(key(puts, r.ID), r, true)
		puts = t.appendSummed(puts, puts[begin:begin+3], &r.Content)
	}
	for _, r := range c.Touch {
		marked = t.appendRecord(key(marked, r.ID), r, false) // its content is not known here
	}
	for _, v := range c.Versions {
		begin := len(versions)
		versions = key(versions, v.ID)
		of := versions[begin:]
		versions = appendCopy(versions, v.Copy)
		versions = append(versions, t.sums.ofCopy(of, versions[begin+3:]))
		versions = t.appendSummed(versions, versions[begin:begin+3], &v.Content)
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
	if err := t.insert("fh.versions", versionColumns, versionRow, " ON CONFLICT (feed, id, digest) DO NOTHING", versions); err != nil {
		return err
	}
	return t.prune(feed, list(&t.dialect, touched), c.Keep)
}

const versionColumns = keyColumns + ", " + copyColumns + ", copy_checksum, " + contentColumns + ", content_checksum"

var versionRow = marks(versionColumns)

func (t transaction) upsert(u upsert, values []any) error {
	return t.insert("fh.entries", u.columns, u.row, u.conflict, values)
}

// replace stores entries with contents, and makes versions of those they replace.
func (t transaction) replace(feed int64, ids any, keep int, values []any) error {
	if len(values) == 0 {
		return nil
	}
	if keep > 0 {
		if err := t.exec("INSERT INTO fh.versions ("+versionColumns+") SELECT "+versionColumns+t.of("?")+
			" WHERE format <> '' AND NOT ("+isHealed+") ON CONFLICT (feed, id, digest) DO NOTHING", ids, feed); err != nil {
			return err
		}
	}
	if err := t.upsert(t.put, values); err != nil {
		return err
	}
	// This also locks a row already in the queue, so nobody indexes the replaced text.
	return t.exec("INSERT INTO fh.unindexed SELECT key"+t.of("?")+
		" WHERE true ORDER BY key ON CONFLICT (key) DO UPDATE SET key = excluded.key", ids, feed)
}

// prune drops versions equal to the current one, and those beyond keep.
func (t transaction) prune(feed int64, ids any, keep int) error {
	of := "DELETE FROM fh.versions WHERE feed = ? AND id" + t.in
	if err := t.exec(of+` AND digest = (SELECT e.digest FROM fh.entries e
		WHERE e.feed = fh.versions.feed AND e.id = fh.versions.id)`, feed, ids); err != nil {
		return err
	}
	return t.exec(of+` AND ? <= (SELECT count(*) FROM fh.versions newer
		WHERE newer.feed = fh.versions.feed AND newer.id = fh.versions.id AND
			(newer.at, newer.rank_time, newer.rank_place, newer.digest) >
			(fh.versions.at, fh.versions.rank_time, fh.versions.rank_place, fh.versions.digest))`, feed, ids, max(keep, 0))
}
