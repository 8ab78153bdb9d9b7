package sqlstore

import (
	"context"
	"database/sql"
	"slices"

	"github.com/feedhistory/feedhistory/mirror"
)

// A Hook changes tables of your own in the transaction of a commit, so they always
// agree with the mirror, after any crash. An error of the hook prevents the commit, and
// is returned by it. A mirror.Poller takes it for a failing Store: Drain ends, and Run waits
// for a minute.
//
// A hook is not told of entries committed before it was set: if the mirror has any, fill
// your tables from Store.Entries first.
//
// A hook added later misses earlier commits: fill your tables from Store.Entries first. An
// error for one feed ends Poller.Drain for all, so return errors of the database only.
//
// A hook gets each change once, however often a commit is tried again: earlier tries
// are rolled back. It must not use the Store, nor keep tx.
type Hook func(ctx context.Context, tx *sql.Tx, d *Delta) error

// A Delta is the difference one commit makes to a feed's live entries. Polls without
// news have a Delta, too.
type Delta struct {
	Feed    *mirror.Feed // the feed's new state, with its new Version; the last state if Removed
	From    string       // the URL of the feed before Store.Move; "" if it has not moved
	Removed bool         // whether the feed is removed, with all of its entries

	Added   []*mirror.Record // new live entries, deleted ones back again included
	Changed []*mirror.Record // live entries with other content than before
	Deleted []*mirror.Record // entries no longer live; they may lack their Content
}

// A liveCopy is the state of an entry before a commit.
type liveCopy struct {
	live   bool
	digest string
}

// before returns the entries of a change as they are stored, by ID.
func (t transaction) before(feed int64, c *mirror.Commit) (map[string]liveCopy, error) {
	found := make(map[string]liveCopy, len(c.Put)+len(c.Touch))
	for _, r := range slices.Concat(c.Put, c.Touch) {
		found[r.ID] = liveCopy{}
	}
	rows, err := t.query("SELECT coalesce(long_id, id), state, digest"+t.of("?"), t.keys(c.Put, c.Touch), feed)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id, state, digest string
		if err := rows.Scan(textColumn{&id}, textColumn{&state}, textColumn{&digest}); err != nil {
			return nil, err
		}
		found[id] = liveCopy{live: mirror.State(state) == mirror.Live, digest: digest}
	}
	return found, rows.Err()
}

// keys returns the keys of records' IDs, as a parameter.
func (t transaction) keys(lists ...[]*mirror.Record) any {
	var keys []string
	for _, r := range slices.Concat(lists...) {
		keys = append(keys, keyOf(r.ID))
	}
	return list(&t.dialect, keys)
}

// difference compares the entries of a change with those before it. The contents missing
// from the change, of entries back again, are read.
func (t transaction) difference(feed int64, c *mirror.Commit, before map[string]liveCopy) (*Delta, error) {
	d := &Delta{}
	var bare []*mirror.Record
	for i, r := range slices.Concat(c.Put, c.Touch) {
		was := before[r.ID]
		live := r.State == mirror.Live
		switch {
		case was.live && !live:
			d.Deleted = append(d.Deleted, r)
		case live && !was.live:
			d.Added = append(d.Added, r)
		case live && was.digest != r.Copy.Digest:
			d.Changed = append(d.Changed, r)
		default:
			continue
		}
		if live && i >= len(c.Put) {
			bare = append(bare, r)
		}
	}
	if len(bare) == 0 {
		return d, nil
	}
	contents, err := t.contents(feed, bare)
	if err != nil {
		return nil, err
	}
	for _, list := range [][]*mirror.Record{d.Added, d.Changed} {
		for i, r := range list {
			if content, ok := contents[r.ID]; ok {
				filled := *r
				filled.Content = content
				list[i] = &filled
			}
		}
	}
	return d, nil
}

// contents returns the stored contents of records, by ID.
func (t transaction) contents(feed int64, records []*mirror.Record) (map[string]mirror.Content, error) {
	rows, err := t.query("SELECT coalesce(long_id, id), "+contentColumns+t.of("?"), t.keys(records), feed)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[string]mirror.Content{}
	for rows.Next() {
		var id string
		var content mirror.Content
		if err := rows.Scan(append([]any{textColumn{&id}}, contentTargets(&content)...)...); err != nil {
			return nil, err
		}
		found[id] = content
	}
	return found, rows.Err()
}

// tell calls the hook, if there is one.
func (t transaction) tell(f *mirror.Feed, version int64, d *Delta) error {
	if t.Hook == nil {
		return nil
	}
	state := *f
	state.Commits = version
	d.Feed = &state
	return t.Hook(t.ctx, t.tx, d)
}
