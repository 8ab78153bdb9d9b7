package database

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/jackc/pgx/v5/pgconn"
)

// This file removes feeds, gives them other addresses, and adds feeds with logins: in the
// database, in the file with the logins, and in the records of the entries printed. The database
// notes each such change before it is made: if the process ends in between, the next one completes the change.

const changesSchema = `CREATE TABLE IF NOT EXISTS feedhistory_changes (feed TEXT NOT NULL PRIMARY KEY, target TEXT NOT NULL)`

// Remove implements mirror.Store. It also removes the feed's credentials, and the record
// of its printed entries.
func (s *Store) Remove(ctx context.Context, url string) error {
	return s.change(ctx, url, "", func() error { return s.Store.Remove(ctx, url) })
}

// Move gives a feed another address, where no feed is, with its credentials, unless the
// address has another origin. Its aliases follow it.
func (s *Store) Move(ctx context.Context, f *mirror.Feed, to string) error {
	return s.change(ctx, f.URL, to, func() error { return s.Store.Move(ctx, f, to) })
}

// Adding notes that feeds get logins before they are in the database: if the process ends in
// between, the next one removes the logins. The caller calls added when the feeds are there, and
// then stores the logins once more, because another process may have begun meanwhile.
func (s *Store) Adding(ctx context.Context, feeds []string) (added func() error, err error) {
	_, err = s.DB.ExecContext(ctx, changesSchema)
	var noted []string
	for _, feed := range feeds {
		isNew, failed := s.lacks(ctx, feed)
		if err = cmp.Or(err, failed); err == nil && isNew {
			_, err = s.DB.ExecContext(ctx, "INSERT INTO feedhistory_changes (feed, target) VALUES ($1, '') ON CONFLICT (feed) DO NOTHING", feed)
			noted = append(noted, feed)
		}
	}
	return func() (err error) {
		for _, feed := range noted {
			_, failed := s.DB.ExecContext(context.WithoutCancel(ctx), "DELETE FROM feedhistory_changes WHERE feed = $1 AND target = ''", feed)
			err = errors.Join(err, failed)
		}
		return err
	}, err
}

// change notes a feed's change of address, makes it, and completes it. The target is "" for a
// removal.
func (s *Store) change(ctx context.Context, feed, target string, do func() error) error {
	if s.Keys == nil { // the store is only read, which the change's error says
		return do()
	}
	_, err := s.DB.ExecContext(ctx, changesSchema)
	if err == nil {
		_, err = s.DB.ExecContext(ctx, `INSERT INTO feedhistory_changes (feed, target) VALUES ($1, $2)
			ON CONFLICT (feed) DO UPDATE SET target = excluded.target`, feed, target)
	}
	if err == nil {
		err = do()
	}
	if err != nil {
		return err
	}
	return s.complete(ctx, feed, target)
}

// resume completes interrupted changes.
func (s *Store) resume(ctx context.Context) error {
	rows, err := s.DB.QueryContext(ctx, "SELECT feed, target FROM feedhistory_changes")
	if isNoTable(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer rows.Close()
	changes := map[string]string{}
	for rows.Next() {
		var feed, target string
		if err := rows.Scan(&feed, &target); err != nil {
			return err
		}
		changes[feed] = target
	}
	err = errors.Join(rows.Err(), rows.Close())
	for feed, target := range changes {
		err = cmp.Or(err, s.complete(ctx, feed, target))
	}
	return err
}

// isNoTable reports whether an error means nothing was noted yet.
func isNoTable(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "42P01" || err != nil && strings.Contains(err.Error(), "no such table")
}

// complete completes a change, unless the database has not made it, and forgets it.
func (s *Store) complete(ctx context.Context, feed, target string) error {
	made, err := s.lacks(ctx, feed)
	if err == nil && made {
		moved := false
		if target != "" {
			missing, failed := s.lacks(ctx, target)
			moved, err = !missing, failed
		}
		switch {
		case err != nil:
		case moved:
			err = s.moved(ctx, feed, target)
		default:
			err = s.removed(ctx, feed)
		}
	}
	if err == nil {
		_, err = s.DB.ExecContext(ctx, "DELETE FROM feedhistory_changes WHERE feed = $1 AND target = $2", feed, target)
	}
	return err
}

func (s *Store) lacks(ctx context.Context, feed string) (bool, error) {
	_, err := s.Feed(ctx, feed)
	if errors.Is(err, mirror.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// removed removes the traces of a feed outside of the mirror.
func (s *Store) removed(ctx context.Context, feed string) error {
	err := s.Keys.Replace(feed, "")
	if err == nil {
		err = createPrinted(ctx, s.DB)
	}
	if err == nil {
		_, err = s.DB.ExecContext(ctx, "DELETE FROM feedhistory_printed WHERE feed = $1", feed)
	}
	if err == nil {
		_, err = s.DB.ExecContext(ctx, "DELETE FROM feedhistory_delivered WHERE feed = $1", feed)
	}
	return err
}

// moved gives the traces of a feed its new address.
func (s *Store) moved(ctx context.Context, from, to string) error {
	err := s.Keys.Move(from, to)
	if err == nil {
		err = createPrinted(ctx, s.DB)
	}
	if err == nil { // a former feed there
		_, err = s.DB.ExecContext(ctx, `DELETE FROM feedhistory_printed WHERE feed = $1
			AND name IN (SELECT name FROM feedhistory_printed WHERE feed = $2)`, to, from)
	}
	if err == nil {
		_, err = s.DB.ExecContext(ctx, "UPDATE feedhistory_printed SET feed = $1 WHERE feed = $2", to, from)
	}
	if err != nil {
		return err
	}
	for other, err := range s.Feeds(ctx, mirror.FeedQuery{}) {
		if err == nil && other.Alias == from {
			err = Amend(ctx, s, other.URL, func(f *mirror.Feed) bool {
				f.Alias = to
				return true
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
