package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// Index reports whether the index differs from the entries, so Heal has made all of them
// wait to be indexed.
func (i *Inspection) Index() bool { return i.index }

// Heal prepares the repair of the damage Check has found, and returns the URLs of the feeds to
// update: they are read again from their beginning, and whatever they still have replaces the
// damaged rows. Until then damaged entries stay as they are. Heal removes damaged versions,
// builds the index again if it differs, and adds the missing checksums. If the structure of a
// SQLite file is damaged beyond its indexes, the error matches ErrStructure: export the
// readable part, and import it into a new database. The error may be the context's.
func (s *Store) Heal(ctx context.Context, found *Inspection) (feeds []string, err error) {
	if found == nil {
		return nil, errors.New("sqlstore: Heal: the Inspection is nil")
	}
	if found.structural {
		if err := s.rebuild(ctx, found); err != nil {
			return nil, failure(ctx, err)
		}
	}
	for _, step := range []func(transaction, *Inspection) error{
		transaction.healFeeds, transaction.healEntries, transaction.healIndex, transaction.seal,
	} {
		if err := s.transact(ctx, func(t transaction) error { return step(t, found) }); err != nil {
			return nil, err
		}
	}
	for _, url := range slices.Sorted(maps.Keys(found.refetch)) {
		f, err := s.Feed(ctx, url)
		if err != nil {
			return nil, err
		}
		f.Known = feedhistory.Known{}
		if err := s.Commit(ctx, &mirror.Commit{Feed: f, Forget: true}); err != nil {
			return nil, err
		}
		feeds = append(feeds, url)
	}
	return feeds, nil
}

// rebuild makes all indexes again, and checks the structure of the file.
func (s *Store) rebuild(ctx context.Context, found *Inspection) error {
	if !s.one || s.reads {
		return ErrStructure
	}
	found.index = true
	if err := s.transact(ctx, func(t transaction) error { return t.healIndex(found) }); err != nil {
		return errors.Join(ErrStructure, err)
	}
	if _, err := s.db.ExecContext(ctx, "REINDEX"); err != nil {
		return errors.Join(ErrStructure, err)
	}
	said, err := column(ctx, s.db, "PRAGMA integrity_check")
	if err == nil && !slices.Equal(said, []string{"ok"}) {
		return ErrStructure
	}
	fault, failed := s.schemaFault(ctx)
	if err = errors.Join(err, failed); fault != "" {
		err = errors.Join(ErrStructure, errors.New(fault))
	}
	return err
}

// healFeeds gives feeds with a damaged state a new one, and their polls. The numbers of
// entries are counted. A feed that may have been private stays private.
func (t transaction) healFeeds(found *Inspection) error {
	keys := map[any]bool{}
	for _, place := range slices.Concat(found.rows["feeds"], found.rows["polls"]) {
		keys[place[0]] = true
	}
	for key := range keys {
		var url, state string
		var long *string
		err := t.tx.QueryRowContext(t.ctx, t.text("SELECT url, long_url, state FROM fh.feeds WHERE key = ?"), key).Scan(&url, &long, &state)
		if err != nil {
			return err
		}
		f := mirror.NewFeed(nameIn(url, nilOr(long)))
		old := &mirror.Feed{}
		f.Private = strings.Contains(state, `"private":true`)
		if json.Unmarshal([]byte(state), old) == nil {
			f.Title, f.Head, f.Private, f.Gone, f.Alias = old.Title, old.Head, old.Private || f.Private, old.Gone, old.Alias
			f.Named, f.Folders = old.Named, old.Folders
		}
		if err := t.replaceFeed(key, f); err != nil {
			return err
		}
	}
	return nil
}

func nilOr(s *string) any {
	if s == nil {
		return nil
	}
	return *s
}

// replaceFeed stores another state of a feed, at the version after the last change of an
// entry.
func (t transaction) replaceFeed(key any, f *mirror.Feed) error {
	err := t.tx.QueryRowContext(t.ctx, t.text(`SELECT coalesce(sum(CASE WHEN state = 'live' THEN 1 ELSE 0 END), 0),
		coalesce(sum(CASE WHEN state <> 'live' AND first > 0 THEN 1 ELSE 0 END), 0), coalesce(max(change), 0)
		FROM fh.entries WHERE feed = ?`), key).Scan(&f.Entries, &f.Deleted, &f.Commits)
	if err != nil {
		return err
	}
	var version int64
	if err := t.tx.QueryRowContext(t.ctx, t.text("SELECT coalesce(max(version), 0) FROM fh.polls WHERE feed = ?"), key).Scan(&version); err != nil {
		return err
	}
	version = max(version, f.Commits) + 1
	state, err := stateText(f)
	if err != nil {
		return err
	}
	url, values := nameOf(f.URL), feedValues(f, state)
	values = append(values, t.sums.of([]any{url.key, url.long}, values))
	if err := t.exec("UPDATE fh.feeds SET ("+feedColumns+", checksum) = (?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE key = ?", append(values, key)...); err != nil {
		return err
	}
	if err := t.exec("DELETE FROM fh.polls WHERE feed = ?", key); err != nil {
		return err
	}
	poll := pollValues(f, version)
	return t.exec(insertPoll, append(poll, t.sums.of(poll), key)...)
}

// isHealed is true of entries changed by healEntries, until they are replaced.
const isHealed = "digest = '' AND rank_place = -1"

// healEntries makes damaged entries older than any copy to be read again, and removes
// damaged versions. It empties unreadable times, because a mirror could not replace
// such an entry.
func (t transaction) healEntries(found *Inspection) error {
	times := "added, changed, tomb_when, tomb_time, updated, published"
	oldest := "at = '', rank_time = '', rank_place = -1, digest = ''"
	if t.one {
		times = strings.Replace(times, "changed", "changed_own", 1)
		oldest = strings.Replace(oldest, "at =", "at_own =", 1) + ", archived = archived <> 0, weak_id = weak_id <> 0"
	}
	for _, place := range found.rows["entries"] {
		set := oldest
		err := scanRows(t.ctx, t.tx, t.text(fmt.Sprintf("SELECT %s FROM fh.entries WHERE key = %d", times, place[0])), func(values []any) {
			for i, column := range strings.Split(times, ", ") {
				if (timeColumn{new(time.Time)}).Scan(values[i]) != nil && values[i] != "=" {
					set += ", " + column + " = ''"
				}
			}
		})
		if err == nil {
			err = t.exec("UPDATE fh.entries SET "+set+" WHERE key = ?", place[0])
		}
		if err != nil {
			return err
		}
	}
	for _, place := range found.rows["versions"] {
		if err := t.exec("DELETE FROM fh.versions WHERE feed = ? AND id = ? AND digest = ?", place...); err != nil {
			return err
		}
	}
	return nil
}

// healIndex makes all entries wait to be indexed again.
func (t transaction) healIndex(found *Inspection) error {
	if !found.index {
		return nil
	}
	drop := "DELETE FROM fh.search"
	if t.one {
		drop = "INSERT INTO fh.search (fh.search) VALUES ('delete-all')"
	}
	if err := t.exec(drop); err != nil {
		return err
	}
	return t.exec("INSERT INTO fh.unindexed SELECT key FROM fh.entries WHERE format <> '' ON CONFLICT (key) DO NOTHING")
}

// seal adds the missing checksums of rows, unless they are damaged.
func (t transaction) seal(found *Inspection) error {
	if found.Unsealed == 0 {
		return nil
	}
	for _, table := range checkedTables() {
		var rows []*checkedRow
		err := scanRows(t.ctx, t.tx, t.text(table.query()), func(values []any) {
			if r := table.row(slices.Clone(values), t.sums); r.intact && !r.sealed && !found.has(table.name, r.place) {
				r.groups, r.prefix = nil, nil
				rows = append(rows, r)
			}
		})
		if err != nil {
			return err
		}
		var sets []string
		for _, g := range table.groups {
			sets = append(sets, g[1]+" = ?")
		}
		where := strings.ReplaceAll(table.place, ", ", " = ? AND ") + " = ?"
		for _, r := range rows {
			var args []any
			for _, sum := range r.sums {
				args = append(args, sum)
			}
			if err := t.exec("UPDATE fh."+table.name+" SET "+strings.Join(sets, ", ")+" WHERE "+where, append(args, r.place...)...); err != nil {
				return err
			}
		}
	}
	return nil
}

// has reports whether a row is known to be damaged.
func (i *Inspection) has(table string, place []any) bool {
	return slices.ContainsFunc(i.rows[table], func(p []any) bool { return slices.Equal(p, place) })
}
