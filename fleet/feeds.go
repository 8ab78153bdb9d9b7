package fleet

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/feedhistory/feedhistory/mirror"
)

// A pollResult is the result of a poll, with everything to record about the feed.
type pollResult struct {
	outcome outcome
	changes *mirror.Report // nil if there were none, or the store could not be read
	feed    *mirror.Feed   // the state of the feed; nil if it is not stored, or something else has changed it
	due     time.Time      // not used if the poll was broken, because a time has been set already
	err     string         // why the poll failed or is broken
	dead    string         // why the feed is a dead letter
	held    *mirror.Feed   // the state to be stored together with others; nil if there is none
}

// end records how a turn has ended. noted is false if the worker no longer holds
// the host, or the feed is no longer subscribed to.
func (d *Database) end(ctx context.Context, t *turn, e pollResult) (noted bool, err error) {
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

// columns returns the columns a pollResult sets, in SQL, with parameters from $4.
func (e *pollResult) columns(host string) (set string, args []any) {
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

// text returns an error in a form fit for a column: short and valid.
func text(s string) string {
	const most = 500
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// forgotten removes a feed from the store if it is no longer subscribed to: a poll
// under way meanwhile may have added it again.
func (d *Database) forgotten(ctx context.Context, t *turn) error {
	var there bool
	err := d.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM fleet_feeds WHERE url = $1)`, t.url).Scan(&there)
	if err != nil || there {
		return err
	}
	return d.forget(ctx, t.url)
}
