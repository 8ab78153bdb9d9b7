package fleet

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// A write is a record about a host: its polls without news, and its release.
type write struct {
	hold
	polls   []*routine
	release bool
	pause   time.Duration // how long the host must rest after it is released
	wait    time.Duration // how long it asks to be left alone; zero or less if it does not

	held bool // result: whether the host was still the worker's
}

// A routine is a poll without news. Its state has not been stored yet; if it never is,
// the feed is polled again.
type routine struct {
	*turn
	state  *mirror.Feed // with the Commits it was made from
	stored bool         // result: whether the state was stored
	there  bool         // result: whether the feed is subscribed to
}

// write carries out several writes together. It is not durable.
func (d *Database) write(ctx context.Context, writes []*write) error {
	return pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		held, err := lockHeld(ctx, tx, writes)
		if err != nil {
			return err
		}
		var polls []*routine
		var states []*mirror.Feed
		var released []string
		var pauses, waits []time.Duration
		for _, w := range writes {
			if w.held = held[w.host]; !w.held {
				continue
			}
			for _, p := range w.polls {
				p.stored, p.there = false, false
				polls, states = append(polls, p), append(states, p.state)
			}
			if w.release {
				released, pauses, waits = append(released, w.host), append(pauses, w.pause), append(waits, w.wait)
			}
		}
		if len(polls) > 0 {
			if err := store(ctx, tx, polls, states); err != nil {
				return err
			}
			if err := note(ctx, tx, polls); err != nil {
				return err
			}
		}
		if len(released) > 0 {
			_, err = tx.Exec(ctx, releaseHosts, released, pauses, waits)
		}
		return err
	})
}

// lockHeld locks the hosts still held. Their feeds are then read in their present
// state. All who lock several hosts do so in the same order.
func lockHeld(ctx context.Context, tx pgx.Tx, writes []*write) (held map[string]bool, err error) {
	var hosts []string
	var tokens []int64
	for _, w := range writes {
		hosts, tokens = append(hosts, w.host), append(tokens, w.token)
	}
	rows, err := tx.Query(ctx, lockHosts, hosts, tokens)
	if err != nil {
		return nil, err
	}
	held = make(map[string]bool, len(hosts))
	var host string
	_, err = pgx.ForEachRow(rows, []any{&host}, func() error {
		held[host] = true
		return nil
	})
	return held, err
}

// store stores the states of feeds, and marks the polls whose states were
// stored.
func store(ctx context.Context, tx pgx.Tx, polls []*routine, states []*mirror.Feed) error {
	query, args := sqlstore.UpdatePolls(states)
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	var place int
	_, err = pgx.ForEachRow(rows, []any{&place}, func() error {
		polls[place-1].stored = true
		return nil
	})
	return err
}

// note records how polls ended. A feed changed by something else meanwhile is due again
// soon.
func note(ctx context.Context, tx pgx.Tx, polls []*routine) error {
	by := make(map[string]*routine, len(polls))
	urls, due := make([]string, len(polls)), make([]time.Time, len(polls))
	for i, p := range polls {
		by[p.url], urls[i], due[i] = p, p.url, p.state.Next
		if !p.stored {
			due[i] = time.Now().Add(afterConflict)
		}
	}
	rows, err := tx.Query(ctx, noteFeeds, urls, due)
	if err != nil {
		return err
	}
	var url string
	_, err = pgx.ForEachRow(rows, []any{&url}, func() error {
		by[url].there = true
		return nil
	})
	return err
}

const (
	lockHosts = `
		SELECT h.host FROM unnest($1::text[], $2::bigint[]) AS a (host, token) JOIN fleet_hosts h ON h.host = a.host AND h.holder = a.token
		ORDER BY h.host FOR UPDATE OF h`
	// The hosts are locked, so nobody else changes several of these feeds.
	noteFeeds = `
		UPDATE fleet_feeds f SET polled = now(), tries = 0, due = a.due, failures = 0, error = '', gone = false
		FROM unnest($1::text[], $2::timestamptz[]) AS a (url, due) WHERE f.url = a.url
		RETURNING f.url`
	// A host is due when one of its feeds is, but not before the pause and the wait are over.
	releaseHosts = `
		UPDATE fleet_hosts h SET holder = NULL, until = NULL, wait = CASE WHEN a.wait > '0' THEN greatest(h.wait, now() + a.wait) ELSE h.wait END,
			due = (SELECT CASE WHEN min(f.due) IS NOT NULL THEN greatest(min(f.due), now() + a.pause, now() + a.wait, h.wait) END FROM fleet_feeds f WHERE f.host = a.host)
		FROM unnest($1::text[], $2::interval[], $3::interval[]) AS a (host, pause, wait) WHERE h.host = a.host`
)
