package sqlstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
)

// ofFeed is the condition for rows of the feed with a URL.
const ofFeed = "feed = (SELECT key FROM fh.feeds WHERE url = ?)"

// Feed implements mirror.Store.
func (s *Store) Feed(ctx context.Context, url string) (*mirror.Feed, error) {
	for f, err := range s.feeds(s.brief(ctx), 1, func(*mirror.Feed) (*question, error) {
		return ask(selectFeeds+" AND url = ?", keyOf(url)), nil
	}) {
		return f, err
	}
	return nil, notFound("feed", url)
}

// Feeds implements mirror.Store.
func (s *Store) Feeds(ctx context.Context, q mirror.FeedQuery) iter.Seq2[*mirror.Feed, error] {
	return s.feeds(ctx, q.Limit, func(after *mirror.Feed) (*question, error) {
		switch {
		case q.Due.IsZero():
			url := q.After
			if after != nil {
				url = after.URL
			}
			url = escaped(url)
			order := "coalesce(long_url, url)"
			ask := ask(selectFeeds+" AND "+order+" > ?", url)
			if s.dollars { // whose index has only the beginnings of URLs
				ask.add(" AND "+beginning(order)+" >= "+beginning("?::text"), url)
				order = beginning(order) + ", " + order
			}
			ask.add(" ORDER BY " + order)
			return ask, nil
		case q.After != "":
			return nil, errors.New("a FeedQuery cannot have both Due and After")
		}
		ask := ask(selectDue+" AND NOT gone AND next <= ?", timeText(q.Due))
		if after != nil {
			next := timeText(after.Next)
			ask.add(" AND next >= ? AND (next, coalesce(long_url, url)) > (?, ?)", next, next, escaped(after.URL))
		}
		ask.add(" ORDER BY next, coalesce(long_url, url)")
		return ask, nil
	})
}

// beginning is the part of a URL in PostgreSQL's index feeds_by_url: it takes 2,704
// bytes at most.
func beginning(url string) string { return "left(" + url + ", 500)" }

func (s *Store) feeds(ctx context.Context, limit int, query func(*mirror.Feed) (*question, error)) iter.Seq2[*mirror.Feed, error] {
	return pages(ctx, s, limit, query, scanFeed)
}

// Newest returns the time of the newest live entry of each feed, by
// mirror.Record.Time and by URL. Feeds without entries are missing from the
// result. One call for many feeds is faster than a call for each.
func (s *Store) Newest(ctx context.Context, feeds []string) (map[string]time.Time, error) {
	rows, err := s.query(ctx, "SELECT coalesce(long_url, url), (SELECT time FROM fh.entries WHERE feed = fh.feeds.key"+
		s.every("time >= ''")+" AND state = 'live' ORDER BY time DESC LIMIT 1) FROM fh.feeds WHERE url"+s.in,
		list(&s.dialect, keysOf(feeds)))
	newest := make(map[string]time.Time, len(feeds))
	err = eachRow(rows, err, func() error {
		var feed string
		var at sql.NullString
		if err := rows.Scan(textColumn{&feed}, &at); err != nil || !at.Valid {
			return err
		}
		var when time.Time
		err := (timeColumn{&when}).Scan(at.String)
		newest[feed] = when
		return err
	})
	return newest, failure(ctx, err)
}

func notFound(what, url string) error { return fmt.Errorf("%s %s: %w", what, url, mirror.ErrNotFound) }

// Remove implements mirror.Store.
func (s *Store) Remove(ctx context.Context, url string) error {
	last := &mirror.Feed{URL: url}
	if s.Hook != nil {
		var err error
		if last, err = s.Feed(ctx, url); err != nil {
			return err
		}
	}
	return s.transact(ctx, func(t transaction) error {
		t.brief = ctx // many entries take long
		// This locks the feed, so nobody adds to it.
		feeds, err := t.numbers("UPDATE fh.polls SET version = version + 1 WHERE "+ofFeed+" RETURNING feed", keyOf(url))
		if err == nil && len(feeds) == 0 {
			return notFound("feed", url)
		}
		const ofFeed = "IN (SELECT key FROM fh.entries WHERE feed = ?"
		for _, query := range []string{
			"DELETE FROM fh.unindexed WHERE key IN (SELECT key FROM fh.unindexed WHERE key " + ofFeed + ") ORDER BY key" + t.locked + ")",
			"DELETE FROM fh.search WHERE rowid " + ofFeed + ")",
			"DELETE FROM fh.feeds WHERE key = ?",
		} {
			if err == nil {
				err = t.exec(query, feeds[0])
			}
		}
		if err != nil {
			return err
		}
		return t.tell(last, last.Commits, &Delta{Removed: true})
	})
}

// Move changes the URL of a feed, and stores its state. Everything belonging to the feed
// stays. If the feed has changed since it was read, the error matches
// mirror.ErrConflict.
func (s *Store) Move(ctx context.Context, f *mirror.Feed, to string) error {
	if f == nil {
		return errors.New("sqlstore: Move: the Feed is nil")
	}
	from := f.URL
	version := f.Commits + 1
	err := s.transact(ctx, func(t transaction) error {
		if _, err := t.feed(f, version); err != nil {
			return err
		}
		moved := *f
		moved.URL = to
		state, err := stateText(&moved)
		if err != nil {
			return err
		}
		url, row := nameOf(to), t.sums.feedRow(&moved, state)
		if err := t.exec("UPDATE fh.feeds SET url = ?, long_url = ?, state = ?, checksum = ? WHERE url = ?",
			url.key, url.long, state, row[len(row)-1], keyOf(from)); err != nil {
			return err
		}
		return t.tell(&moved, version, &Delta{From: from})
	})
	if err == nil {
		f.URL, f.Commits = to, version
	}
	return err
}

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
		err = f.UnmarshalJSON([]byte(state))
	}
	f.Commits, f.Polls, f.Polled, f.Next = poll.Commits, poll.Polls, poll.Polled, poll.Next
	return f, len(state), err
}

// stateText returns the text for the column state. Markup in it is not escaped, because
// escaping would make it half as long again. The Ledger comes last, because encoding/json would
// read its text once more.
func stateText(f *mirror.Feed) (string, error) {
	f = inUTC(f)
	f.Polls, f.Polled, f.Next = 0, time.Time{}, time.Time{} // these are in the table polls
	ledger, err := f.Ledger.MarshalJSON()
	if err != nil {
		return "", err
	}
	f.Ledger = mirror.Ledger{}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err = enc.Encode(f)
	return strings.TrimSuffix(b.String(), "}\n") + `,"ledger":` + string(bytes.TrimSpace(ledger)) + "}", err
}

// FeedsByURL returns the states of feeds. Feeds unknown to the store are missing
// from the result. One call for many feeds is faster than a call for each.
func (s *Store) FeedsByURL(ctx context.Context, urls []string) (map[string]*mirror.Feed, error) {
	rows, err := s.query(ctx, selectFeeds+" AND url"+s.in, list(&s.dialect, keysOf(urls)))
	states := make(map[string]*mirror.Feed, len(urls))
	err = eachRow(rows, err, func() error {
		f, _, err := scanFeed(rows)
		states[f.URL] = f
		return err
	})
	return states, failure(ctx, err)
}

// feed stores the state of a known feed at a version, which locks the feed, and returns its
// key.
func (t transaction) feed(f *mirror.Feed, version int64) (key int64, err error) {
	state, err := stateText(f)
	if err != nil {
		return 0, err
	}
	keys, err := t.numbers(updatePoll, append(t.sums.pollRow(f, version), keyOf(f.URL), f.Commits)...)
	switch {
	case err != nil:
		return 0, err
	case len(keys) == 0:
		return 0, fmt.Errorf("%s: %w", f.URL, mirror.ErrConflict)
	}
	return keys[0], t.exec(updateFeed, append(t.sums.feedRow(f, state), keys[0], state)...)
}

// feedRow returns the values of feedColumns, and their checksum.
func (s *summer) feedRow(f *mirror.Feed, state string) []any {
	url := nameOf(f.URL)
	values := []any{escaped(f.Title), escaped(string(f.Kind)), f.Verdict.String(), f.Entries, f.Deleted, f.Documents, escaped(f.Error), state}
	return append(values, s.of([]any{url.key, url.long}, values))
}

// pollRow returns the values of pollColumns, and their checksum.
func (s *summer) pollRow(f *mirror.Feed, version int64) []any {
	values := []any{version, f.Polls, timeText(f.Polled), timeText(f.Next), f.Gone || f.Alias != ""}
	return append(values, s.of(values))
}

const (
	feedColumns    = "title, kind, verdict, entries, deleted, documents, error, state"
	newFeedColumns = feedColumns + ", checksum, url, long_url"
	updateFeed     = "UPDATE fh.feeds SET (" + feedColumns + ", checksum) = (?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE key = ? AND state <> ?"

	pollColumns    = "version, polls, polled, next, gone"
	newPollColumns = pollColumns + ", checksum, feed"
	updatePoll     = "UPDATE fh.polls SET (" + pollColumns + ", checksum) = (?, ?, ?, ?, ?, ?) WHERE " + ofFeed + " AND version = ? RETURNING feed"
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
		row := sums.pollRow(f, f.Commits+1)
		gone[i], checksums[i] = f.Gone || f.Alias != "", row[len(row)-1].(int64)
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

// Text is escaped so it may contain NUL, which PostgreSQL refuses and at which SQLite's
// tools cut text: \x00 becomes \x01\x01, and \x01 becomes \x01\x02. This keeps the
// order.
var (
	escaper   = strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02")
	unescaper = strings.NewReplacer("\x01\x01", "\x00", "\x01\x02", "\x01")
)

func escaped(s string) string {
	if strings.IndexByte(s, 0) < 0 && strings.IndexByte(s, 1) < 0 {
		return s
	}
	return escaper.Replace(s)
}

func unescaped(s string) string {
	if strings.IndexByte(s, 1) < 0 {
		return s
	}
	return unescaper.Replace(s)
}

// longest is the maximum length of an ID or URL in an index, in bytes:
// PostgreSQL allows 2,704 for all columns together.
const longest = 1000

// A name is an ID or a URL. Its key is used to find it: the name itself or, if that is
// too long, its beginning and a digest, which together are longer than any name as its
// own key. The database then has the whole name in a separate column.
type name struct {
	key  string
	long sql.NullString
}

func nameOf(s string) name {
	s = escaped(s)
	if len(s) <= longest {
		return name{key: s}
	}
	sum := sha256.Sum256([]byte(s))
	begin := strings.ToValidUTF8(s[:longest], "")
	return name{key: begin + "…" + hex.EncodeToString(sum[:]), long: sql.NullString{String: s, Valid: true}}
}

func keyOf(s string) string { return nameOf(s).key }

func keysOf(names []string) []string {
	keys := make([]string, len(names))
	for i, s := range names {
		keys[i] = keyOf(s)
	}
	return keys
}

// layout is the layout of times in columns: in UTC, with nanoseconds, so times sort as
// text. The zero time is "".
const layout = "2006-01-02T15:04:05.000000000Z"

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	switch t = t.UTC(); {
	case t.Year() < 0:
		return "0000-01-01T00:00:00.000000000Z"
	case t.Year() > 9999:
		return "9999-12-31T23:59:59.999999999Z"
	}
	text := t.AppendFormat(make([]byte, 0, len(layout)), time.RFC3339) // package time has a short way for it
	text = strconv.AppendInt(text[:len("2006-01-02T15:04:05")], int64(time.Second)+int64(t.Nanosecond()), 10)
	text[len("2006-01-02T15:04:05")] = '.' // in place of the one second
	return string(append(text, 'Z'))
}

// A timeColumn scans a time.
type timeColumn struct{ *time.Time }

// Scan implements sql.Scanner.
func (c timeColumn) Scan(src any) (err error) {
	text, _ := src.(string)
	if text == "" {
		*c.Time = time.Time{}
		return nil
	}
	*c.Time, err = time.Parse(time.RFC3339, text)
	return err
}

// A textColumn scans escaped text.
type textColumn struct{ *string }

// Scan implements sql.Scanner.
func (c textColumn) Scan(src any) error {
	text, _ := src.(string)
	*c.string = unescaped(text)
	return nil
}

// inUTC returns a copy of a value with all times in UTC, because JSON refuses
// extreme offsets such as +24:00.
func inUTC[T any](v *T) *T {
	twin := reflect.New(reflect.TypeFor[T]()).Elem()
	twin.Set(reflect.ValueOf(v).Elem())
	toUTC(twin)
	return twin.Addr().Interface().(*T)
}

func toUTC(v reflect.Value) {
	if !v.CanInterface() {
		return // what marshals itself sees to its times
	}
	if t, ok := reflect.TypeAssert[time.Time](v); ok {
		v.Set(reflect.ValueOf(t.UTC()))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			toUTC(field)
		}
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() != reflect.Struct {
			return
		}
		list := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(list, v)
		for i := range list.Len() {
			toUTC(list.Index(i))
		}
		v.Set(list)
	}
}

// An Info is an overview of a database.
type Info struct {
	Schema    int64 `json:"schema"`    // the version of the schema
	Bytes     int64 `json:"bytes"`     // the size: of a SQLite file without its log, of PostgreSQL's tables and indexes
	Unused    int64 `json:"unused"`    // the bytes of pages for Scrub to release; zero in PostgreSQL
	Feeds     int64 `json:"feeds"`     // the numbers of rows
	Entries   int64 `json:"entries"`   // with deleted ones
	Erased    int64 `json:"erased"`    // erased entries, of which only the IDs are kept; not among Entries
	Versions  int64 `json:"versions"`  // earlier versions of entries
	Documents int64 `json:"documents"` // archive documents processed
	Unindexed int64 `json:"unindexed"` // entries waiting to be indexed
}

// Describe returns an overview. It counts all rows.
func (s *Store) Describe(ctx context.Context) (*Info, error) {
	i := &Info{}
	bytes, unused := "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", "SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size"
	if !s.one {
		bytes = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_catalog.pg_class WHERE relnamespace = to_regnamespace('feedhistory') AND relkind = 'r'"
		unused = "SELECT 0"
	}
	for query, n := range map[string]*int64{
		bytes: &i.Bytes, unused: &i.Unused,
		"SELECT count(*) FROM fh.entries WHERE state <> 'erased'": &i.Entries,
		"SELECT count(*) FROM fh.entries WHERE state = 'erased'":  &i.Erased,
		"SELECT max(version) FROM fh.schema":                      &i.Schema,
		"SELECT count(*) FROM fh.feeds":                           &i.Feeds,
		"SELECT count(*) FROM fh.versions":                        &i.Versions,
		"SELECT count(*) FROM fh.documents":                       &i.Documents,
		"SELECT count(*) FROM fh.unindexed":                       &i.Unindexed,
	} {
		if err := s.db.QueryRowContext(ctx, s.text(query)).Scan(n); err != nil {
			return nil, failure(ctx, err)
		}
	}
	return i, nil
}

// Backup copies a SQLite database, as it is now, to a new or empty file. Others may use
// the database meanwhile. The copy has no unused pages and needs no log.
func (s *Store) Backup(ctx context.Context, file string) error {
	if !s.one {
		return fmt.Errorf("sqlstore: %w: use pg_dump", errors.ErrUnsupported)
	}
	err := s.aside(ctx, func(conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, "VACUUM INTO ?", file)
		return err
	})
	return failure(ctx, err)
}

// aside lends a connection to SQLite with permission to write beside the database, even if
// it may not write to the database itself.
func (s *Store) aside(ctx context.Context, do func(conn *sql.Conn) error) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	only := 0
	if err := conn.QueryRowContext(ctx, "PRAGMA query_only").Scan(&only); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "PRAGMA query_only = OFF"); err != nil {
		return err
	}
	defer func() {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf("PRAGMA query_only = %d", only))
	}()
	return do(conn)
}
