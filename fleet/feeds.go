package fleet

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/feedhistory/feedhistory/mirror"
)

// A turn is a feed that is being polled.
type turn struct {
	hold
	url   string
	tries int       // this one included, since a poll came to its end
	due   time.Time // when it was
}

// next returns the feed of a host whose turn it is; nil if none is due, or the
// hold is lost. Should its poll not come to an end, it is due again, later and
// later.
func (d *Database) next(ctx context.Context, h hold, lease time.Duration) (*turn, error) {
	t := &turn{hold: h}
	err := d.pool.QueryRow(ctx, `
		UPDATE fleet_feeds f SET tries = f.tries + 1, due = now() + $3::interval * (1 << least(f.tries, 10))
		FROM (
			SELECT url, due FROM fleet_feeds WHERE host = $1 AND due <= now() ORDER BY due LIMIT 1 FOR UPDATE
		) was, fleet_hosts h
		WHERE f.url = was.url AND h.host = $1 AND h.holder = $2 AND h.until > now()
		RETURNING f.url, f.tries, was.due`, h.host, h.token, lease).Scan(&t.url, &t.tries, &t.due)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return t, nil
}

// An ending is how a poll ended, and what is to be known of the feed after it.
type ending struct {
	outcome outcome
	changes *mirror.Changes // nil: there was none, or the store could not be read
	feed    *mirror.Feed    // its state; nil: as it was
	due     time.Time       // not used if the poll was broken: then a time has been set already
	err     string          // why the poll failed, or is broken
	dead    string          // why the feed is a dead letter
}

// end notes how a turn has ended. It is false if the feed is not the worker's
// any more.
func (d *Database) end(ctx context.Context, t *turn, e ending) (noted bool, err error) {
	var b pgx.Batch
	host := t.host
	if e.feed != nil {
		host = hostOf(e.feed)
	}
	if host != t.host {
		b.Queue(`
			INSERT INTO fleet_hosts AS h (host, due) VALUES ($1, $2)
			ON CONFLICT (host) DO UPDATE SET due = least(h.due, excluded.due)
			WHERE h.until IS NULL OR h.until <= now()`, host, e.due)
	}
	set, args := e.columns(host)
	b.Queue(`
		UPDATE fleet_feeds SET polled = now(), `+set+`
		WHERE url = $1 AND EXISTS (SELECT FROM fleet_hosts WHERE host = $2 AND holder = $3)`,
		append([]any{t.url, t.host, t.token}, args...)...,
	).Exec(func(tag pgconn.CommandTag) error {
		noted = tag.RowsAffected() > 0
		return nil
	})
	err = d.brief(ctx, &b)
	return noted, err
}

// columns are what an ending sets, in SQL, with its parameters from $4.
func (e *ending) columns(host string) (set string, args []any) {
	switch f := e.feed; {
	case e.dead != "":
		return `due = NULL, dead = $4, died = now()`, []any{text(e.dead)}
	case e.outcome == broken:
		return `error = $4`, []any{text(e.err)}
	case f == nil:
		return `tries = 0, due = $4`, []any{e.due}
	default:
		return `tries = 0, due = CASE WHEN NOT $5 THEN $4::timestamptz END, gone = $5,
				host = $6, verdict = $7, failures = $8, error = $9`,
			[]any{e.due, f.Gone || f.Alias != "", host, f.Verdict.String(), f.Failures, text(e.err)}
	}
}

// text is an error as a column can have it: short, and nothing but characters.
func text(s string) string {
	const most = 500
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// forgotten removes a feed from the store that was unsubscribed from during the
// poll, which may just have put it there.
func (d *Database) forgotten(ctx context.Context, t *turn) error {
	var there bool
	err := d.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM fleet_feeds WHERE url = $1)`, t.url).Scan(&there)
	if err != nil || there {
		return err
	}
	return d.forget(ctx, t.url)
}
