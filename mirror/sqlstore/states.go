package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
)

// The table polls has the part of a feed's state changed by every poll, feeds the rest.
// scanFeed reads the rows of these queries.
const (
	stateColumns = "version, polls, polled, next, state"
	selectFeeds  = "SELECT " + stateColumns + " FROM fh.feeds CROSS JOIN fh.polls WHERE feed = key"
	selectDue    = "SELECT " + stateColumns + " FROM fh.polls CROSS JOIN fh.feeds WHERE key = feed"
)

// scanFeed reads the state of a feed, and the size of its text.
func scanFeed(rows *sql.Rows) (*mirror.Feed, int, error) {
	f, poll, state := &mirror.Feed{}, mirror.Feed{}, ""
	err := rows.Scan(&poll.Commits, &poll.Polls, timeColumn{&poll.Polled}, timeColumn{&poll.Next}, &state)
	if err == nil {
		err = json.Unmarshal([]byte(state), f)
	}
	f.Commits, f.Polls, f.Polled, f.Next = poll.Commits, poll.Polls, poll.Polled, poll.Next
	return f, len(state), err
}

// stateText returns the text for the column state. Markup in it is not escaped, because
// escaping would make it half as long again.
func stateText(f *mirror.Feed) (string, error) {
	f = inUTC(f)
	f.Polls, f.Polled, f.Next = 0, time.Time{}, time.Time{} // these are in the table polls
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(f)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// FeedsByURL returns the states of feeds. Feeds unknown to the store are missing
// from the result. One call for many feeds is faster than a call for each.
// The error may be the context's.
func (s *Store) FeedsByURL(ctx context.Context, urls []string) (map[string]*mirror.Feed, error) {
	rows, err := s.query(ctx, selectFeeds+" AND url"+s.in, list(&s.dialect, keysOf(urls)))
	if err != nil {
		return nil, failure(ctx, err)
	}
	defer rows.Close()
	states := make(map[string]*mirror.Feed, len(urls))
	for rows.Next() {
		f, _, err := scanFeed(rows)
		if err != nil {
			return nil, failure(ctx, err)
		}
		states[f.URL] = f
	}
	return states, failure(ctx, rows.Err())
}

// feed stores the state of a feed at a version, which locks the feed, and
// returns its key.
func (t transaction) feed(f *mirror.Feed, version int64) (key int64, err error) {
	state, err := stateText(f)
	if err != nil {
		return 0, err
	}
	url := nameOf(f.URL)
	values := feedValues(f, state)
	values = append(values, t.sums.of([]any{url.key, url.long}, values))
	poll := pollValues(f, version)
	poll = append(poll, t.sums.of(poll))
	query, args := updatePoll, append(poll, url.key, f.Commits)
	if f.Commits == 0 {
		query, args = insertFeed, append(values, url.key, url.long)
	}
	keys, err := t.numbers(query, args...)
	switch {
	case err != nil:
		return 0, err
	case len(keys) == 0:
		return 0, fmt.Errorf("%s: %w", f.URL, mirror.ErrConflict)
	case f.Commits == 0:
		err = t.exec(insertPoll, append(poll, keys[0])...)
	default:
		err = t.exec(updateFeed, append(values, keys[0], state)...)
	}
	return keys[0], err
}

func feedValues(f *mirror.Feed, state string) []any {
	return []any{escaped(f.Title), f.Kind.String(), f.Verdict.String(), f.Entries, f.Deleted, f.Documents, escaped(f.Error), state}
}

func pollValues(f *mirror.Feed, version int64) []any {
	return []any{version, f.Polls, timeText(f.Polled), timeText(f.Next), f.Gone || f.Alias != ""}
}

const (
	feedColumns = "title, kind, verdict, entries, deleted, documents, error, state"
	insertFeed  = "INSERT INTO fh.feeds (" + feedColumns + ", checksum, url, long_url) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)" +
		" ON CONFLICT (url) DO NOTHING RETURNING key"
	updateFeed = "UPDATE fh.feeds SET (" + feedColumns + ", checksum) = (?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE key = ? AND state <> ?"

	pollColumns = "version, polls, polled, next, gone"
	insertPoll  = "INSERT INTO fh.polls (" + pollColumns + ", checksum, feed) VALUES (?, ?, ?, ?, ?, ?, ?)"
	updatePoll  = "UPDATE fh.polls SET (" + pollColumns + ", checksum) = (?, ?, ?, ?, ?, ?) WHERE " + ofFeed + " AND version = ? RETURNING feed"
)

// UpdatePolls returns a statement for PostgreSQL to record polls of many feeds at once:
// it stores their Polls, Polled and Next, as Commit does for a change of nothing else.
// Run it in a transaction of your own, which may be durable or not. The Commits of
// each state must be the stored ones, and are then one more. The statement returns which
// of the states it has stored, as positions in the list from 1. Feeds with other Commits,
// and unknown ones, do not change. A nil Feed panics.
func UpdatePolls(states []*mirror.Feed) (query string, args []any) {
	n := len(states)
	urls, versions, polls, polled, next := make([]string, n), make([]int64, n), make([]int64, n), make([]string, n), make([]string, n)
	gone, checksums := make([]bool, n), make([]int64, n)
	var sums summer
	for i, f := range states {
		if f == nil {
			panic("sqlstore: UpdatePolls: a Feed is nil")
		}
		urls[i], versions[i], polls[i], polled[i], next[i] = keyOf(f.URL), f.Commits, f.Polls, timeText(f.Polled), timeText(f.Next)
		gone[i], checksums[i] = f.Gone || f.Alias != "", sums.of(pollValues(f, f.Commits+1))
	}
	return updatePolls, []any{urls, versions, polls, polled, next, gone, checksums}
}

const updatePolls = `
	UPDATE feedhistory.polls p SET (version, polls, polled, next, gone, checksum) =
		(n.version + 1, n.polls, n.polled, n.next, n.gone, n.checksum)
	FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::boolean[], $7::bigint[]) WITH ORDINALITY
		AS n (url, version, polls, polled, next, gone, checksum, place) JOIN feedhistory.feeds f ON f.url = n.url
	WHERE p.feed = f.key AND p.version = n.version
	RETURNING n.place`
