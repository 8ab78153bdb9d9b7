package fleet

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feedhistory/feedhistory/mirror"
)

// A claim asks for a host, and for those of its feeds that are due.
type claim struct {
	hold
	again bool // the worker holds the host already
	most  int  // maximum number of feeds

	// The results.
	held     bool
	doubtful bool    // the previous holder has not released the host, so a poll may have ended without a record
	turns    []*turn // those that have been due for longest first
}

// A turn is a feed to be polled.
type turn struct {
	hold
	url      string
	tries    int       // polls in a row that have begun but not ended properly, including this one once it is recorded
	due      time.Time // when the feed was due
	state    *mirror.Feed
	doubtful bool
	noted    bool // whether the beginning of the poll is recorded
}

// claim carries out several claims together. It records nothing about the
// feeds, because nobody else polls them while the host is held. A hold is
// durable, so that the host is not given to another worker after a crash of the
// database while its feeds are being polled.
func (d *Database) claim(ctx context.Context, claims []*claim, lease time.Duration) error {
	by := make(map[string]*claim, len(claims))
	var b pgx.Batch
	var wanted, hosts []string
	var wantedTokens, tokens, most []int64
	for _, c := range claims {
		by[c.host] = c
		c.turns = nil
		if !c.again {
			c.held, wanted, wantedTokens = false, append(wanted, c.host), append(wantedTokens, c.token)
		}
		hosts, tokens, most = append(hosts, c.host), append(tokens, c.token), append(most, int64(c.most))
	}
	if len(wanted) > 0 {
		b.Queue(`SELECT set_config('synchronous_commit', 'on', true)`)
		b.Queue(holdHosts, wanted, wantedTokens, lease).Query(func(rows pgx.Rows) error {
			var host string
			var doubtful bool
			_, err := pgx.ForEachRow(rows, []any{&host, &doubtful}, func() error {
				by[host].held, by[host].doubtful = true, doubtful
				return nil
			})
			return err
		})
	}
	var urls []string
	b.Queue(dueFeeds, hosts, tokens, most).Query(func(rows pgx.Rows) error {
		var t turn
		_, err := pgx.ForEachRow(rows, []any{&t.host, &t.url, &t.tries, &t.due}, func() error {
			c, t := by[t.host], t
			t.hold, t.doubtful = c.hold, c.doubtful
			c.turns = append(c.turns, &t)
			urls = append(urls, t.url)
			return nil
		})
		return err
	})
	if err := d.brief(ctx, &b); err != nil || len(urls) == 0 {
		return err
	}
	states, err := d.states.States(ctx, urls)
	if err != nil {
		return err
	}
	for _, c := range claims {
		for _, t := range c.turns {
			t.state = states[t.url]
		}
	}
	return nil
}

const (
	holdHosts = `
		WITH free AS (
			SELECT h.host, a.token, h.holder IS NOT NULL AS doubtful
			FROM unnest($1::text[], $2::bigint[]) AS a (host, token) JOIN fleet_hosts h ON h.host = a.host
			WHERE h.until IS NULL OR h.until <= now()
			ORDER BY h.host FOR UPDATE OF h
		)
		UPDATE fleet_hosts h SET holder = free.token, until = now() + $3, due = now() + $3
		FROM free WHERE h.host = free.host
		RETURNING h.host, free.doubtful`
	dueFeeds = `
		SELECT h.host, f.url, f.tries, f.due
		FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS a (host, token, most)
		JOIN fleet_hosts h ON h.host = a.host AND h.holder = a.token AND h.until > now()
		CROSS JOIN LATERAL (
			SELECT url, tries, due FROM fleet_feeds WHERE host = a.host AND due <= now() ORDER BY due LIMIT a.most
		) f`
)

// begin records that the poll of a feed begins, in case it does not end
// properly: then the feed is due again, after longer and longer times. It
// returns false if the host is no longer the worker's, or the feed must not be
// polled.
func (d *Database) begin(ctx context.Context, t *turn, lease time.Duration) (bool, error) {
	tag, err := d.pool.Exec(ctx, `
		UPDATE fleet_feeds f SET tries = f.tries + 1, due = now() + $4::interval * (1 << least(f.tries, 10))
		FROM fleet_hosts h
		WHERE f.url = $1 AND f.host = $2 AND f.due <= now() AND h.host = $2 AND h.holder = $3 AND h.until > now()`,
		t.url, t.host, t.token, lease)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}
	t.tries++
	t.noted = true
	return true, nil
}
