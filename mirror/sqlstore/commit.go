package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/feedhistory/feedhistory/mirror"
)

// Commit implements mirror.Store.
func (s *Store) Commit(ctx context.Context, c *mirror.Commit) error {
	if c == nil || c.Feed == nil {
		return errors.New("sqlstore: Commit: the Commit, or its Feed, is nil")
	}
	if c.Feed.Commits == 0 {
		errs, err := s.CommitNew(ctx, []*mirror.Commit{c})
		return cmp.Or(err, errors.Join(errs...))
	}
	version := numberOf(c)
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
		return t.finish(feed, c, before)
	})
	if err == nil {
		c.Feed.Commits = version
	}
	return err
}

func numberOf(c *mirror.Commit) int64 { return cmp.Or(c.Number, c.Feed.Commits+1) }

// finish stores the documents of a change, and tells the Hook.
func (t transaction) finish(feed int64, c *mirror.Commit, before map[string]liveCopy) error {
	if err := t.documents(feed, c); err != nil || t.Hook == nil {
		return err
	}
	d, err := t.difference(feed, c, before)
	if err != nil {
		return err
	}
	return t.tell(c.Feed, numberOf(c), d)
}

// CommitNew stores the first commits of feeds, which have no Commits yet, in one
// transaction. One call for many feeds is faster than a Commit for each. The results are in
// the order of the commits: one matches mirror.ErrConflict if the store has the feed already,
// or it is that of an earlier commit of the call, and nothing of it is stored. If err is not
// nil, nothing is stored at all.
func (s *Store) CommitNew(ctx context.Context, commits []*mirror.Commit) (results []error, err error) {
	for _, c := range commits {
		if c == nil || c.Feed == nil || c.Feed.Commits != 0 {
			return nil, errors.New("sqlstore: CommitNew: a Commit, or its Feed, is nil, or is not the first")
		}
	}
	results = make([]error, len(commits))
	err = s.transact(ctx, func(t transaction) error {
		keys, err := t.addFeeds(commits)
		if err != nil {
			return err
		}
		if err := t.newEntries(keys, commits); err != nil {
			return err
		}
		for i, c := range commits {
			if results[i] = nil; keys[i] == 0 {
				results[i] = fmt.Errorf("%s: %w", c.Feed.URL, mirror.ErrConflict)
			} else if err := t.finish(keys[i], c, nil); err != nil {
				return err
			}
		}
		return nil
	})
	for i, c := range commits {
		if err == nil && results[i] == nil {
			c.Feed.Commits = numberOf(c)
		}
	}
	return results, err
}

// addFeeds stores the states of new feeds, and returns their keys: 0 for a feed that is not new.
func (t transaction) addFeeds(commits []*mirror.Commit) ([]int64, error) {
	places := make(map[string]int, len(commits))
	for i, c := range slices.Backward(commits) {
		places[keyOf(c.Feed.URL)] = i
	}
	urls := slices.Sorted(maps.Keys(places)) // in one order, or two transactions would wait for each other
	var feeds, polls []any
	for _, url := range urls {
		f := commits[places[url]].Feed
		state, err := stateText(f)
		if err != nil {
			return nil, err
		}
		name := nameOf(f.URL)
		feeds = append(append(feeds, t.sums.feedRow(f, state)...), name.key, name.long)
	}
	if err := t.insert("fh.feeds", newFeedColumns, marks(newFeedColumns), " ON CONFLICT (url) DO NOTHING", feeds); err != nil {
		return nil, err
	}
	added, err := t.query("SELECT url, key FROM fh.feeds WHERE url"+t.in+" AND NOT EXISTS (SELECT 1 FROM fh.polls WHERE feed = key)", list(&t.dialect, urls))
	if err != nil {
		return nil, err
	}
	defer added.Close()
	keys := make([]int64, len(commits))
	for added.Next() {
		var url string
		var key int64
		if err := added.Scan(&url, &key); err != nil {
			return nil, err
		}
		i := places[url]
		keys[i], polls = key, append(append(polls, t.sums.pollRow(commits[i].Feed, numberOf(commits[i]))...), key)
	}
	if err := cmp.Or(added.Err(), added.Close()); err != nil {
		return nil, err
	}
	return keys, t.insert("fh.polls", newPollColumns, marks(newPollColumns), "", polls)
}

// newEntries stores the entries of new feeds. Without other versions, there is nothing to
// replace or to prune.
func (t transaction) newEntries(keys []int64, commits []*mirror.Commit) error {
	var all rows
	var ids []string // of puts
	var feeds []int64
	for i, c := range commits {
		switch {
		case keys[i] == 0:
		case len(c.Versions) == 0:
			all.add(&t, keys[i], c)
			for _, r := range c.Put {
				ids, feeds = append(ids, keyOf(r.ID)), append(feeds, keys[i])
			}
		default:
			if err := t.entries(keys[i], c); err != nil {
				return err
			}
		}
	}
	if err := t.upsert(t.put, all.puts); err != nil {
		return err
	}
	if err := t.upsert(t.mark, all.marked); err != nil || len(ids) == 0 {
		return err
	}
	return t.exec("INSERT INTO fh.unindexed SELECT key"+t.several, list(&t.dialect, ids), list(&t.dialect, feeds))
}

// rows are the rows of entries and their versions.
type rows struct {
	puts, marked, versions []any
	touched                []string // the keys of their IDs
}

// add adds the rows of a feed's change.
func (all *rows) add(t *transaction, feed int64, c *mirror.Commit) {
	key := func(values []any, id string) []any {
		n := nameOf(id)
		all.touched = append(all.touched, n.key)
		return appendKey(values, feed, n)
	}
	for _, r := range c.Put {
		begin := len(all.puts)
		all.puts = t.appendRecord(key(all.puts, r.ID), r, true)
		all.puts = t.appendSummed(all.puts, all.puts[begin:begin+3], &r.Content)
	}
	for _, r := range c.Touch {
		all.marked = t.appendRecord(key(all.marked, r.ID), r, false) // its content is not known here
	}
	for _, v := range c.Versions {
		begin := len(all.versions)
		all.versions = key(all.versions, v.ID)
		of := all.versions[begin:]
		all.versions = appendCopy(all.versions, v.Copy)
		all.versions = append(all.versions, t.sums.ofCopy(of, all.versions[begin+3:]))
		all.versions = t.appendSummed(all.versions, all.versions[begin:begin+3], &v.Content)
	}
}

// entries stores the entries of a change and their versions.
func (t transaction) entries(feed int64, c *mirror.Commit) error {
	var all rows
	if all.add(&t, feed, c); len(all.touched) == 0 {
		return nil
	}
	if err := t.replace(feed, list(&t.dialect, all.touched[:len(c.Put)]), c.Keep, all.puts); err != nil {
		return err
	}
	if err := t.upsert(t.mark, all.marked); err != nil {
		return err
	}
	if err := t.insert("fh.versions", versionColumns, versionRow, " ON CONFLICT (feed, id, digest) DO NOTHING", all.versions); err != nil {
		return err
	}
	return t.prune(feed, list(&t.dialect, all.touched), c.Keep)
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
			" WHERE format <> '' ON CONFLICT (feed, id, digest) DO NOTHING", ids, feed); err != nil {
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
	of := " FROM fh.versions WHERE feed = ? AND id" + t.in
	if some, err := t.numbers("SELECT 1"+of+" LIMIT 1", feed, ids); err != nil || len(some) == 0 {
		return err
	}
	if err := t.exec("DELETE"+of+` AND digest = (SELECT e.digest FROM fh.entries e
		WHERE e.feed = fh.versions.feed AND e.id = fh.versions.id)`, feed, ids); err != nil {
		return err
	}
	return t.exec("DELETE"+of+` AND ? <= (SELECT count(*) FROM fh.versions newer
		WHERE newer.feed = fh.versions.feed AND newer.id = fh.versions.id AND
			(newer.at, newer.rank_time, newer.rank_place, newer.digest) >
			(fh.versions.at, fh.versions.rank_time, fh.versions.rank_place, fh.versions.digest))`, feed, ids, max(keep, 0))
}
