package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"iter"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/words"
)

// Records implements mirror.Store.
func (s *Store) Records(ctx context.Context, feed string, ids []string) (map[string]*mirror.Record, error) {
	found := make(map[string]*mirror.Record, len(ids))
	rows, err := s.query(s.brief(ctx), "SELECT coalesce(long_id, id), "+recordColumns+", format, updated, published, size"+
		s.of("SELECT key FROM fh.feeds WHERE url = ?"), list(&s.dialect, keysOf(ids)), keyOf(feed))
	err = eachRow(rows, err, func() error {
		r := &mirror.Record{Feed: feed}
		c := &r.Content
		known := []any{textColumn{(*string)(&c.Format)}, timeColumn{&c.Updated}, timeColumn{&c.Published}, &c.Size}
		err := rows.Scan(slices.Concat([]any{textColumn{&r.ID}}, recordTargets(r), known)...)
		found[r.ID] = r
		return err
	})
	return found, failure(ctx, err)
}

// Entries implements mirror.Store.
func (s *Store) Entries(ctx context.Context, q mirror.Query) iter.Seq2[*mirror.Record, error] {
	q = q.Clone()
	if q.Skip != 0 {
		return s.skipping(ctx, q)
	}
	return s.entries(ctx, q, 0)
}

// skipping yields the records of a query with a Skip. It steps over them through the index of
// times, or else reads them.
func (s *Store) skipping(ctx context.Context, q mirror.Query) iter.Seq2[*mirror.Record, error] {
	return func(yield func(*mirror.Record, error) bool) {
		if q.Skip < 0 {
			yield(nil, errors.New("sqlstore: Skip is negative"))
			return
		}
		skip, offset := q.Skip, 0
		q.Skip = 0
		if q.Search == "" && q.AfterCommit == nil && q.Beyond == nil {
			var err error
			if offset, err = s.stepOver(ctx, &q, skip); err != nil {
				yield(nil, failure(ctx, err))
				return
			}
			skip = 0
		}
		if q.Limit > 0 {
			q.Limit += skip
		}
		for r, err := range s.entries(ctx, q, offset) {
			if skip--; err == nil && skip >= 0 {
				continue
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// stepOver narrows a query to the entries from the time of the one after some others on, and
// returns how many of that time are still to be left out.
func (s *Store) stepOver(ctx context.Context, q *mirror.Query, skip int) (offset int, err error) {
	ask, order := s.times(q)
	than := " AND time > ?"
	if q.Reverse {
		than = " AND time < ?"
	}
	s.narrow(ask, q, condition{})
	first := ask.sql.String()
	rows, err := s.query(ctx, first+order+" LIMIT 1 OFFSET "+strconv.Itoa(skip), ask.args...)
	var at []time.Time
	err = eachRow(rows, err, func() error {
		at = append(at, time.Time{})
		return rows.Scan(timeColumn{&at[0]})
	})
	if err != nil || len(at) == 0 || at[0].IsZero() {
		return skip, err
	}
	before, err := s.numbers(ctx, strings.Replace(first, "SELECT time", "SELECT count(*)", 1)+than, append(ask.args, timeText(at[0]))...)
	if err != nil {
		return 0, err
	}
	if q.Reverse {
		q.Since = at[0]
	} else {
		q.Until = at[0].Add(1)
	}
	return skip - int(before[0]), nil
}

// times returns the beginning of a statement for the times of a query's entries, and their order.
func (s *Store) times(q *mirror.Query) (of *question, order string) {
	if of = ask("SELECT time FROM fh.entries"); q.Feed == "" {
		of.add(s.newest + " WHERE true")
	} else {
		of.add(" WHERE "+ofFeed+s.every("time >= ''"), keyOf(q.Feed))
	}
	if q.Reverse {
		return of, " ORDER BY time"
	}
	return of, " ORDER BY time DESC"
}

// entries yields the records of a query without a Skip; of its first page without some.
func (s *Store) entries(ctx context.Context, q mirror.Query, skip int) iter.Seq2[*mirror.Record, error] {
	var found *search
	query := func(after *mirror.Record) (_ *question, err error) {
		beyond := cmp.Or(after, q.Beyond)
		if after == nil {
			if found, err = s.begin(ctx, &q); err != nil {
				return nil, err
			}
		}
		if err := found.prepare(ctx, &q, beyond); err != nil {
			return nil, err
		}
		ask := s.entriesQuery(selectEntries, &q, beyond, found.condition())
		if ask.more = found.more(); after == nil {
			ask.skip = skip
		}
		return ask, nil
	}
	all := pages(ctx, s, q.Limit, query, func(rows *sql.Rows) (*mirror.Record, int, error) {
		r := &mirror.Record{}
		err := rows.Scan(slices.Concat([]any{textColumn{&r.Feed}, textColumn{&r.ID}}, recordTargets(r), contentTargets(&r.Content))...)
		return r, len(r.Content.Data), err
	})
	return func(yield func(*mirror.Record, error) bool) {
		for r, err := range all {
			if !yield(r, err) || err != nil {
				return
			}
		}
		if err := found.unreadError(); err != nil {
			yield(nil, err)
		}
	}
}

// unreadError returns an error if a search could not look into all entries.
func (f *search) unreadError() error {
	if f == nil || f.unread == 0 {
		return nil
	}
	return &UnindexedError{f.unread}
}

// begin checks a query, and brings the index up to date if the query searches. A reader
// looks through the latest of the entries waiting to be indexed.
func (s *Store) begin(ctx context.Context, q *mirror.Query) (found *search, err error) {
	switch {
	case q.AfterCommit != nil && q.Feed == "":
		return nil, errors.New("a Query with AfterCommit needs a Feed")
	case q.Search == "":
		return nil, nil
	}
	wanted, err := words.Parse(q.Search, q.Prefix)
	if err != nil {
		return nil, err
	}
	found = &search{Store: s, wanted: wanted, words: s.expression(wanted)}
	if s.reads {
		err = found.readFresh(ctx)
	} else {
		err = s.Index(ctx)
	}
	if err == nil {
		err = found.estimate(ctx, q.Feed)
	}
	if err == nil && found.stage != settled && len(wanted.Phrases()) > 0 {
		var candidates []int64
		if candidates, err = found.indexed(ctx, found.words, 0); err == nil {
			err = found.verify(ctx, q.Feed, candidates)
		}
	}
	return found, failure(ctx, err)
}

// The URL of a feed is looked up for each entry, because the order is the entries'.
const (
	selectEntries = "SELECT feed_url, coalesce(long_id, id), " + recordColumns + ", " + contentColumns
	withFeeds     = " CROSS JOIN (SELECT key AS feed_key, coalesce(long_url, url) AS feed_url FROM fh.feeds) AS f WHERE feed_key = feed"
)

// entriesQuery returns the statement for a query, from beyond a place, with the
// conditions of a search.
func (s *Store) entriesQuery(columns string, q *mirror.Query, beyond *mirror.Record, found condition) *question {
	ask := ask(columns + " FROM fh.entries")
	switch {
	case found.listed:
		ask.add(s.byKey)
	case q.Feed == "" && (found.sql == "" || found.ordered):
		ask.add(s.newest)
	}
	ask.add(withFeeds)
	if q.Feed != "" {
		ask.add(" AND "+ofFeed, keyOf(q.Feed))
	}
	s.narrow(ask, q, found)
	if q.AfterCommit != nil {
		ask.add(s.every("change >= 0")+" AND change > ?", *q.AfterCommit)
		than, order := ">", ""
		if q.Reverse {
			than, order = "<", " DESC"
		}
		if beyond != nil {
			ask.add(" AND change "+than+"= ? AND (change, coalesce(long_id, id)) "+than+" (?, ?)", beyond.LastCommit, beyond.LastCommit, escaped(beyond.ID))
		}
		ask.add(" ORDER BY change" + order + ", coalesce(long_id, id)" + order)
		return ask
	}
	if q.Feed != "" {
		ask.add(s.every("time >= ''"))
	}
	than, order := "<", " DESC"
	if q.Reverse {
		than, order = ">", ""
	}
	if beyond != nil {
		time := timeText(beyond.Time())
		ask.add(" AND time "+than+"= ? AND (time, feed_url, coalesce(long_id, id)) "+than+" (?, ?, ?)",
			time, time, escaped(beyond.Feed), escaped(beyond.ID))
	}
	ask.add(" ORDER BY time" + order)
	if q.Feed == "" {
		ask.add(", feed_url" + order)
	}
	ask.add(", coalesce(long_id, id)" + order)
	return ask
}

// conditions select by the kinds of entries.
var conditions = map[mirror.States]string{
	0:                              " AND state = 'live'",
	mirror.Current:                 " AND state = 'live'",
	mirror.Former:                  " AND state <> 'live' AND format <> ''",
	mirror.Traces:                  " AND state <> 'live' AND format = ''",
	mirror.Current | mirror.Former: " AND (state = 'live' OR format <> '')",
	mirror.Current | mirror.Traces: " AND (state = 'live' OR format = '')",
	mirror.Former | mirror.Traces:  " AND state <> 'live'",
	mirror.AllStates:               "",
}

// narrow adds the conditions of a query, except for the feed and the place.
func (s *Store) narrow(ask *question, q *mirror.Query, found condition) {
	ask.add(conditions[q.States])
	if !q.Since.IsZero() {
		ask.add(" AND time >= ?", timeText(q.Since))
	}
	if !q.Until.IsZero() {
		ask.add(" AND time < ?", timeText(q.Until))
	}
	if found.sql != "" {
		ask.add(" AND "+found.sql, found.args...)
	}
}

// Versions implements mirror.Store.
func (s *Store) Versions(ctx context.Context, feed, id string) iter.Seq2[*mirror.Record, error] {
	query := func(after *mirror.Record) (*question, error) {
		q := ask("SELECT coalesce(long_id, id), "+copyColumns+", "+contentColumns+" FROM fh.versions WHERE "+ofFeed+" AND id = ?",
			keyOf(feed), keyOf(id))
		if after != nil {
			q.add(" AND (at, rank_time, rank_place, digest) < (?, ?, ?, ?)", appendCopy(nil, after.Copy)[:4]...)
		}
		q.add(" ORDER BY at DESC, rank_time DESC, rank_place DESC, digest DESC")
		return q, nil
	}
	return pages(ctx, s, 0, query, func(rows *sql.Rows) (*mirror.Record, int, error) {
		v := &mirror.Record{}
		err := rows.Scan(slices.Concat([]any{textColumn{&v.ID}}, copyTargets(&v.Copy), contentTargets(&v.Content))...)
		return v, len(v.Content.Data), err
	})
}

// The columns of entries in a record: its life in the feed, the copy that counts, and
// its content. Versions have the last two as well. Each group has its checksum, because
// each may be written without the others.
const (
	lifeColumns    = "state, archived, first, change, added, changed, tomb_when, tomb_time, tomb_place, absence"
	copyColumns    = "at, rank_time, rank_place, digest, source"
	contentColumns = "format, title, link, updated, published, base, weak_id, data, size"
	recordColumns  = lifeColumns + ", " + copyColumns
	markColumns    = recordColumns + ", checksum, copy_checksum"
	putColumns     = markColumns + ", " + contentColumns + ", content_checksum"
)

// An upsert inserts entries, or replaces some of their columns.
type upsert struct{ columns, row, conflict string }

func upsertOf(columns string) upsert {
	all := keyColumns + ", " + columns
	return upsert{columns: all, row: marks(all), conflict: replacing("feed, id", columns)}
}

// own replaces columns by those SQLite stores: a time equal to another one is stored as
// "=", and changed and at are computed.
var own = strings.NewReplacer(" changed,", " changed_own,", " at,", " at_own,")

// keyColumns tell an entry from others.
const keyColumns = "feed, id, long_id"

func appendKey(values []any, feed int64, n name) []any { return append(values, feed, n.key, n.long) }

func appendCopy(values []any, c mirror.Copy) []any {
	return append(values, timeText(c.At), timeText(c.Rank.Time), c.Rank.Seq, escaped(c.Digest), escaped(c.Source))
}

func copyTargets(c *mirror.Copy) []any {
	return []any{timeColumn{&c.At}, timeColumn{&c.Rank.Time}, &c.Rank.Seq, textColumn{&c.Digest}, textColumn{&c.Source}}
}

func appendContent(values []any, c *mirror.Content) []any {
	return append(values, escaped(string(c.Format)), escaped(c.Title), escaped(c.Link), timeText(c.Updated), timeText(c.Published),
		escaped(c.Base), c.WeakID, escaped(c.Data), c.Size)
}

func contentTargets(c *mirror.Content) []any {
	return []any{
		textColumn{(*string)(&c.Format)}, textColumn{&c.Title}, textColumn{&c.Link}, timeColumn{&c.Updated}, timeColumn{&c.Published},
		textColumn{&c.Base}, &c.WeakID, textColumn{&c.Data}, &c.Size,
	}
}

func appendLife(values []any, r *mirror.Record) []any {
	return append(values, escaped(string(r.State)), r.Archived, r.FirstCommit, r.LastCommit, timeText(r.Added), timeText(r.Changed),
		timeText(r.Tombstone.When), timeText(r.Tombstone.Rank.Time), r.Tombstone.Rank.Seq, r.Absence)
}

func recordTargets(r *mirror.Record) []any {
	return append([]any{
		textColumn{(*string)(&r.State)}, &r.Archived, &r.FirstCommit, &r.LastCommit, timeColumn{&r.Added}, timeColumn{&r.Changed},
		timeColumn{&r.Tombstone.When}, timeColumn{&r.Tombstone.Rank.Time}, &r.Tombstone.Rank.Seq, &r.Absence,
	}, copyTargets(&r.Copy)...)
}

// The places of changed and added among lifeColumns.
const placeAdded, placeChanged = 4, 5

// appendRecord appends the values of markColumns, after the key's. Set whole if those
// of contentColumns are appended next: only then can a time be abbreviated as equal to
// the content's.
func (t transaction) appendRecord(values []any, r *mirror.Record, whole bool) []any {
	life := len(values)
	values = appendLife(values, r)
	copied := len(values)
	values = appendCopy(values, r.Copy)
	key := values[life-3 : life]
	values = append(values, t.sums.of(key, values[life:copied]), t.sums.ofCopy(key, values[copied:]))
	if t.one {
		if !r.Changed.IsZero() && values[life+placeChanged] == values[life+placeAdded] {
			values[life+placeChanged] = "="
		}
		if whole && !r.Copy.At.IsZero() && r.Copy.At.Equal(r.Content.Updated) {
			values[copied] = "="
		}
	}
	return values
}

// appendSummed appends the values of contentColumns and their checksum.
func (t transaction) appendSummed(values, key []any, c *mirror.Content) []any {
	begin := len(values)
	values = appendContent(values, c)
	return append(values, t.sums.of(key, values[begin:]))
}

// most is the maximum number of rows a statement inserts in SQLite.
const most = 32

// insert inserts rows, whose values are given one after the other, with the
// given conflict clause. In SQLite, statements have only a few different sizes,
// because they are prepared. In PostgreSQL there is one statement, whose
// parameters are the columns.
func (t transaction) insert(table, columns, row, conflict string, values []any) error {
	width := strings.Count(row, "?")
	if t.dollars && len(values) > 0 {
		return t.insertColumns(table, columns, row, conflict, values)
	}
	for size := most; len(values) > 0; {
		if size*width > len(values) {
			size /= 2
			continue
		}
		query := "INSERT INTO " + table + " (" + columns + ") VALUES " + row + strings.Repeat(", "+row, size-1) + conflict
		if err := t.exec(query, values[:size*width]...); err != nil {
			return err
		}
		values = values[size*width:]
	}
	return nil
}

// insertColumns inserts any number of rows with one statement.
func (t transaction) insertColumns(table, columns, row, conflict string, values []any) error {
	width := strings.Count(row, "?")
	args, lists, names := make([]any, width), make([]string, width), make([]string, width)
	row = strings.TrimSuffix(strings.TrimPrefix(row, "("), ")")
	for i := range width {
		args[i], lists[i] = columnOf(values, i, width)
		names[i] = "c" + strconv.Itoa(i)
		row = strings.Replace(row, "?", names[i], 1)
	}
	return t.exec("INSERT INTO "+table+" ("+columns+") SELECT "+row+" FROM unnest("+strings.Join(lists, ", ")+
		") AS given ("+strings.Join(names, ", ")+")"+conflict, args...)
}

// columnOf returns a column of rows as a parameter, and the expression for it
// in a statement. All values have the type of the first one.
func columnOf(values []any, column, width int) (list any, parameter string) {
	switch values[column].(type) {
	case int64:
		return every[int64](values, column, width), "?::bigint[]"
	case bool:
		return every[bool](values, column, width), "?::boolean[]"
	case sql.NullString:
		texts := make([]*string, len(values)/width)
		for i, v := range every[sql.NullString](values, column, width) {
			if v.Valid {
				texts[i] = &v.String
			}
		}
		return texts, "?::text[]"
	}
	return every[string](values, column, width), "?::text[]"
}

func every[T any](values []any, column, width int) []T {
	list := make([]T, len(values)/width)
	for i := range list {
		list[i] = values[i*width+column].(T)
	}
	return list
}

// marks returns the parameters of a row for a list of columns.
func marks(columns string) string {
	return "(?" + strings.Repeat(", ?", strings.Count(columns, ",")) + ")"
}

// replacing returns a conflict clause for replacing the columns of an existing row.
func replacing(key, columns string) string {
	names := strings.Split(columns, ", ")
	for i, n := range names {
		names[i] = n + " = excluded." + n
	}
	return " ON CONFLICT (" + key + ") DO UPDATE SET " + strings.Join(names, ", ")
}

// A sequence is read in pages, each by a separate statement, from where the last one
// ended. So neither a connection nor a lock is held during a range, and pages are
// small, however large their rows are.
const (
	pageRows  = 256
	pageBytes = 1 << 20
)

// A question is a query under construction.
type question struct {
	sql  strings.Builder
	args []any
	more bool // there may be more rows although the page is not full
	skip int  // the number of rows to leave out
}

func ask(query string, args ...any) *question {
	q := &question{args: args}
	q.sql.WriteString(query)
	return q
}

// add adds to the query.
func (q *question) add(more string, args ...any) {
	q.sql.WriteString(more)
	q.args = append(q.args, args...)
}

// pages yields the rows of a query, up to a limit, unless it is zero. The query selects
// the rows after an item, nil at first, in its order. Scan returns a row, and its size
// in bytes.
func pages[T any](
	ctx context.Context, s *Store, limit int,
	query func(after *T) (*question, error), scan func(*sql.Rows) (*T, int, error),
) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		if limit < 0 {
			yield(nil, errors.New("sqlstore: Limit is negative"))
			return
		}
		var last *T
		for left := limit; limit <= 0 || left > 0; {
			rows := pageRows
			if limit > 0 {
				rows = min(rows, left)
			}
			q, err := query(last)
			var page []*T
			var whole bool
			if err == nil {
				page, whole, err = readPage(ctx, s, q, rows, scan)
			}
			for _, item := range page {
				if !yield(item, nil) {
					return
				}
				last = item
			}
			if err != nil {
				yield(nil, failure(ctx, err))
				return
			}
			if left -= len(page); whole && len(page) < rows && !q.more {
				return
			}
		}
	}
}

// readPage returns at most some rows of a page, and reports whether there are
// no more so far.
func readPage[T any](
	ctx context.Context, s *Store, q *question, most int, scan func(*sql.Rows) (*T, int, error),
) (page []*T, whole bool, err error) {
	q.add(" LIMIT " + limitOf(most))
	if q.skip > 0 {
		q.add(" OFFSET " + strconv.Itoa(q.skip))
	}
	rows, err := s.query(ctx, q.sql.String(), q.args...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	for bytes := 0; len(page) < most && rows.Next(); {
		item, size, err := scan(rows)
		if err != nil {
			return page, false, err
		}
		page = append(page, item)
		if bytes += size; bytes > pageBytes {
			return page, false, rows.Close()
		}
	}
	return page, true, cmp.Or(rows.Err(), rows.Close())
}

// limitOf returns the limit for a number of rows, rounded up to a power of two.
// It is not a parameter, because SQLite plans again for each value of a limit;
// rounding leaves few different statements.
func limitOf(rows int) string { return strconv.Itoa(1 << bits.Len(uint(rows-1))) }

// Months counts by an index, for the function mirror.Months.
func (s *Store) Months(ctx context.Context, q mirror.Query) (map[time.Time]int64, error) {
	if q.Feed == "" {
		return nil, errors.New("a Query for Months needs a Feed")
	}
	if q.Search == "" && (q.States == 0 || q.States == mirror.Current) {
		key := keyOf(q.Feed)
		return s.months(ctx, s.countMonths(), key, key, key)
	}
	found, err := s.begin(ctx, &q)
	if err != nil {
		return nil, err
	}
	q.Since, q.Until = time.Time{}, time.Time{}
	if found != nil && found.stage != settled {
		if !found.costly {
			err = found.count(ctx)
		}
		isMost := false
		if err == nil && s.one && found.stage != settled {
			isMost, err = found.exceeds(ctx, mostGathered)
		}
		if err == nil && isMost {
			months, err := found.countMany(ctx, &q)
			return months, failure(ctx, cmp.Or(err, found.unreadError()))
		}
	}
	if err != nil {
		return nil, failure(ctx, err)
	}
	ask := ask("SELECT substr(time, 1, 7) AS month, count(*) FROM fh.entries")
	is := found.condition()
	if is.listed {
		ask.add(s.byKey)
	}
	ask.add(" WHERE "+ofFeed, keyOf(q.Feed))
	s.narrow(ask, &q, is)
	ask.add(" AND time > '' GROUP BY 1")
	months, err := s.months(ctx, ask.sql.String(), ask.args...)
	return months, cmp.Or(err, found.unreadError())
}

// mostGathered is the most results that SQLite compares with a feed's entries in a statement,
// for which it stores them once more.
const mostGathered = 50_000

// exceeds reports whether the index has more than some results.
func (f *search) exceeds(ctx context.Context, most int) (bool, error) {
	n, err := f.numbers(ctx, "SELECT count(*) FROM ("+f.hits+" LIMIT "+strconv.Itoa(most+1)+")", f.words)
	return err == nil && n[0] > int64(most), err
}

// countMany counts many results by month, in SQLite: the keys of the feed's entries and those
// of the results each come as one text, which takes a fraction of the time of comparing them in
// a statement.
func (f *search) countMany(ctx context.Context, q *mirror.Query) (map[time.Time]int64, error) {
	ask := ask("SELECT coalesce(group_concat(substr(time, 1, 4) || substr(time, 6, 2) || ' ' || key, ' '), '') FROM fh.entries WHERE "+ofFeed, keyOf(q.Feed))
	f.narrow(ask, q, condition{})
	ask.add(" AND time > ''")
	type entry struct{ key, month int64 }
	var entries []entry
	month := int64(-1)
	err := f.numbersIn(ctx, func(n int64) {
		if month < 0 {
			month = n
			return
		}
		entries, month = append(entries, entry{n, month}), -1
	}, ask.sql.String(), ask.args...)
	if err != nil || len(entries) == 0 {
		return map[time.Time]int64{}, err
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	counts := map[int64]int64{}
	left := entries
	has := func(key int64) {
		for len(left) > 0 && left[0].key < key {
			left = left[1:]
		}
		if len(left) > 0 && left[0].key == key {
			counts[left[0].month]++
		}
	}
	query := strings.Replace(f.hits, "rowid", "coalesce(group_concat(rowid, ' '), '')", 1) + " AND rowid BETWEEN ? AND ?"
	if f.reads {
		query += " AND NOT rowid IN (SELECT key FROM fh.unindexed)"
	}
	if err := f.numbersIn(ctx, has, query, f.words, entries[0].key, entries[len(entries)-1].key); err != nil { // in their order
		return nil, err
	}
	left = entries
	for _, key := range slices.Sorted(slices.Values(f.fresh)) {
		has(key)
	}
	months := map[time.Time]int64{}
	for month, n := range counts {
		months[time.Date(int(month/100), time.Month(month%100), 1, 0, 0, 0, 0, time.UTC)] = n
	}
	return months, nil
}

// numbersIn yields the numbers in the text a query returns, with a space between them.
func (s *Store) numbersIn(ctx context.Context, yield func(int64), query string, args ...any) error {
	rows, err := s.query(ctx, query, args...)
	return eachRow(rows, err, func() error {
		var text sql.RawBytes
		if err := rows.Scan(&text); err != nil {
			return err
		}
		n, digits := int64(0), false
		for _, c := range text {
			if digits = c != ' '; digits {
				n = 10*n + int64(c-'0')
				continue
			}
			yield(n)
			n = 0
		}
		if digits {
			yield(n)
		}
		return nil
	})
}

func (s *Store) months(ctx context.Context, query string, values ...any) (map[time.Time]int64, error) {
	rows, err := s.query(ctx, query, values...)
	months := map[time.Time]int64{}
	err = eachRow(rows, err, func() error {
		text, n := "", int64(0)
		if err := rows.Scan(&text, &n); err != nil {
			return err
		}
		start, err := time.Parse("2006-01", text)
		months[start] = n
		return err
	})
	return months, failure(ctx, err)
}

// countMonths steps from month to month through the index, and counts the entries in
// between: "2006-01~" sorts after everything with the beginning "2006-01".
func (s *Store) countMonths() string {
	live := ofFeed + s.every("time >= ''") + " AND state = 'live'"
	return `WITH RECURSIVE months (month) AS (
		SELECT substr(min(time), 1, 7) FROM fh.entries WHERE ` + live + ` AND time > ''
	UNION ALL
		SELECT (SELECT substr(min(time), 1, 7) FROM fh.entries WHERE ` + live + ` AND time > month || '~')
		FROM months WHERE month IS NOT NULL
	)
	SELECT month, (SELECT count(*) FROM fh.entries WHERE ` + live + ` AND time > month AND time < month || '~')
	FROM months WHERE month IS NOT NULL`
}
