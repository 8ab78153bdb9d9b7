package fleet

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feedhistory/feedhistory/mirror"
)

// A claim asks for the due feeds of a held host.
type claim struct {
	hold
	doubtful bool // the last holder did not release the host, so a poll may have ended without a record
	most     int  // maximum number of feeds

	// The results.
	left  time.Duration // how long the host is still held; zero if there are no turns
	turns []*turn       // the longest due first
}

// A turn is a feed to be polled.
type turn struct {
	hold
	url      string
	tries    int       // polls in a row begun but not ended properly, including this one once it is recorded
	due      time.Time // when the feed was due
	state    *mirror.Feed
	doubtful bool
	noted    bool // whether the beginning of the poll is recorded
}

// claim carries out several claims together. It records nothing about the feeds, because
// nobody else polls them while the host is held.
func (d *Database) claim(ctx context.Context, claims []*claim) error {
	by := make(map[string]*claim, len(claims))
	var b pgx.Batch
	var hosts []string
	var tokens, most []int64
	for _, c := range claims {
		by[c.host] = c
		c.turns, c.left = nil, 0
		hosts, tokens, most = append(hosts, c.host), append(tokens, c.token), append(most, int64(c.most))
	}
	var urls []string
	b.Queue(dueFeeds, hosts, tokens, most).Query(func(rows pgx.Rows) error {
		var t turn
		var left time.Duration
		_, err := pgx.ForEachRow(rows, []any{&t.host, &t.url, &t.tries, &t.due, &left}, func() error {
			c, t := by[t.host], t
			t.hold, t.doubtful, c.left = c.hold, c.doubtful, left
			c.turns = append(c.turns, &t)
			urls = append(urls, t.url)
			return nil
		})
		return err
	})
	if err := d.brief(ctx, &b); err != nil || len(urls) == 0 {
		return err
	}
	states, err := d.states.FeedsByURL(ctx, urls)
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

const dueFeeds = `
	SELECT h.host, f.url, f.tries, f.due, h.until - now()
	FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS a (host, token, most)
	JOIN fleet_hosts h ON h.host = a.host AND h.holder = a.token AND h.until > now()
		AND (h.wait IS NULL OR h.wait <= now())
	CROSS JOIN LATERAL (
		SELECT url, tries, due FROM fleet_feeds WHERE host = a.host AND due <= now() ORDER BY due LIMIT a.most
	) f`

// begin records the beginning of a feed's poll, in case it does not end properly: then
// the feed is due again, after longer and longer times. It returns false if the host is
// no longer the worker's, or the feed must not be polled.
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
