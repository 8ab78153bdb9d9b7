package fleet

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/feedhistory/feedhistory/mirror"
)

// Subscribe subscribes to feeds, and workers keep them up to date. If one of the
// addresses is invalid, it does nothing, and the error is a *URLError. Feeds that are
// gone or dead letters are polled again. It returns how many feeds were not subscribed
// to before. The error may be the context's.
func (d *Database) Subscribe(ctx context.Context, urls []string) (added int, err error) {
	rows := make([][]any, 0, len(urls))
	for _, address := range urls {
		feed, host, err := subscribable(address)
		if err != nil {
			return 0, err
		}
		rows = append(rows, []any{feed, host})
	}
	err = d.durably(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `CREATE TEMPORARY TABLE wanted (url text COLLATE "C", host text COLLATE "C") ON COMMIT DROP`); err != nil {
			return err
		}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"wanted"}, []string{"url", "host"}, pgx.CopyFromRows(rows)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, wakeHosts); err != nil {
			return err
		}
		return tx.QueryRow(ctx, addFeeds).Scan(&added)
	})
	return added, err
}

// Subscribe locks the hosts first, and in order, as does everything that locks several
// hosts. So a job ending meanwhile either sees the added feeds, or has released its
// host before they are added.
const wakeHosts = `
	INSERT INTO fleet_hosts AS h (host, due)
	SELECT DISTINCT coalesce(f.host, w.host), now()
	FROM wanted w LEFT JOIN fleet_feeds f USING (url)
	WHERE f.url IS NULL OR f.due IS NULL
	ORDER BY 1
	ON CONFLICT (host) DO UPDATE SET due = least(h.due, excluded.due)
	WHERE h.until IS NULL OR h.until <= now()`

// Unchanged feeds are not locked: a worker polling them locks only their host.
const addFeeds = `
	WITH put AS (
		INSERT INTO fleet_feeds AS f (url, host, due)
		SELECT DISTINCT ON (url) url, w.host, now() FROM wanted w LEFT JOIN fleet_feeds was USING (url)
		WHERE was.url IS NULL OR was.due IS NULL
		ORDER BY url
		ON CONFLICT (url) DO UPDATE SET due = now(), tries = 0, gone = false, dead = NULL, died = NULL
		WHERE f.due IS NULL
		RETURNING xmax = 0 AS added
	)
	SELECT count(*) FILTER (WHERE added) FROM put`

// Unsubscribe stops polling feeds, and removes them from the store with everything
// belonging to them. It ignores addresses not subscribed to, and returns how many were.
// If an address is invalid, the error is a *URLError. The error may be the context's.
func (d *Database) Unsubscribe(ctx context.Context, urls []string) (removed int, err error) {
	feeds := make([]string, 0, len(urls))
	for _, address := range urls {
		feed, _, err := name(address)
		if err != nil {
			return 0, err
		}
		feeds = append(feeds, feed)
	}
	for _, feed := range feeds {
		err := d.durably(ctx, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, `DELETE FROM fleet_feeds WHERE url = $1`, feed)
			removed += int(tag.RowsAffected())
			return err
		})
		if err != nil {
			return removed, err
		}
		if err := d.forget(ctx, feed); err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// forget removes a feed from the store.
func (d *Database) forget(ctx context.Context, feed string) error {
	err := d.Store.Remove(ctx, feed)
	if errors.Is(err, mirror.ErrNotFound) {
		return nil
	}
	return err
}
