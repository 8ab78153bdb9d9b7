package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/words"
)

// Index indexes the entries waiting for it, for full-text search. A search does this,
// too; calling Index after large commits makes the first search fast.
func (s *Store) Index(ctx context.Context) error {
	waiting, err := s.numbers(ctx, "SELECT count(*) FROM fh.unindexed")
	for err == nil && waiting[0] > 0 {
		err = s.transact(ctx, transaction.indexBatch)
		waiting[0] -= batch
	}
	return failure(ctx, err)
}

// batch is the number of entries indexed in one transaction, because SQLite
// writes its index once for all of them.
const batch = 4096

var dequeue = "DELETE FROM fh.unindexed WHERE key IN (SELECT key FROM fh.unindexed ORDER BY key LIMIT " + strconv.Itoa(batch)

// indexBatch indexes some entries. It removes them from the queue, which locks
// them, before it reads them.
func (t transaction) indexBatch() error {
	keys, err := t.numbers(dequeue + t.locked + ") RETURNING key")
	if err != nil || len(keys) == 0 {
		return err
	}
	these := list(&t.dialect, keys)
	if err := t.exec("DELETE FROM fh.search WHERE rowid"+t.in, these); err != nil {
		return err
	}
	rows, err := t.tx.QueryContext(t.ctx, t.text(selectTexts+" WHERE key"+t.in), these)
	if err != nil {
		return err
	}
	if t.one {
		return t.indexEach(rows)
	}
	var found []any
	err = scanWords(rows, nil, func(key int64, set *words.Set) {
		found = append(found, key, strings.Join(set.Words(), " "))
	})
	if err != nil {
		return err
	}
	return t.insert("fh.search", "rowid, words", "(?, "+t.words+")", "", found)
}

// indexEach indexes entries in SQLite. It makes the words of some entries while
// it inserts those of the entries before. For a statement with several rows,
// SQLite would make a savepoint, at which FTS5 writes its buffer.
func (t transaction) indexEach(rows *sql.Rows) error {
	defer rows.Close()
	insert, err := t.statement("INSERT INTO fh.search (rowid, words) VALUES (?, ?)")
	if err != nil {
		return err
	}
	var made chan []indexedEntry
	for more := true; more || made != nil; {
		var next chan []indexedEntry
		texts, err := readTexts(rows)
		if err != nil {
			return err
		}
		if more = len(texts) > 0; more {
			next = make(chan []indexedEntry, 1)
			go func() { next <- wordsOf(texts) }()
		}
		if made != nil {
			for _, e := range <-made {
				if _, err := insert.ExecContext(t.ctx, e.key, e.words); err != nil {
					return err
				}
			}
		}
		made = next
	}
	return nil
}

// A rawEntry is an entry before its words are known.
type rawEntry struct {
	key int64
	mirror.Record
}

// An indexedEntry is an entry with its words.
type indexedEntry struct {
	key   int64
	words string
}

// readTexts reads some of the rows of selectTexts; none if there are no more.
func readTexts(rows *sql.Rows) (texts []rawEntry, err error) {
	for size := 0; size < 1<<20 && len(texts) < 128 && rows.Next(); {
		var e rawEntry
		if err := rows.Scan(textTargets(&e.key, &e.Record)...); err != nil {
			return nil, err
		}
		texts = append(texts, e)
		size += len(e.Content.Data)
	}
	return texts, rows.Err()
}

// wordsOf returns entries with their words.
func wordsOf(texts []rawEntry) (all []indexedEntry) {
	var set words.Set
	for i := range texts {
		fillWords(&set, &texts[i].Record)
		all = append(all, indexedEntry{texts[i].key, strings.Join(set.Words(), " ")})
	}
	return all
}

// The query for the texts of entries. scanWords reads its rows.
const (
	textColumns = "key, id, format, title, base, data"
	selectTexts = "SELECT " + textColumns + " FROM fh.entries"
)

// scanWords yields the words of entries, and which of the phrases they have. A set is valid only
// until the next one.
func scanWords(rows *sql.Rows, phrases []words.Term, yield func(key int64, set *words.Set)) error {
	defer rows.Close()
	set := words.Set{Phrases: phrases}
	for rows.Next() {
		var key int64
		var r mirror.Record
		if err := rows.Scan(textTargets(&key, &r)...); err != nil {
			return err
		}
		fillWords(&set, &r)
		yield(key, &set)
	}
	return cmp.Or(rows.Err(), rows.Close())
}

// textTargets returns the variables for scanning textColumns.
func textTargets(key *int64, r *mirror.Record) []any {
	c := &r.Content
	return []any{key, textColumn{&r.ID}, textColumn{(*string)(&c.Format)}, textColumn{&c.Title}, textColumn{&c.Base}, textColumn{&c.Data}}
}

// fillWords fills a set with an entry's words.
func fillWords(set *words.Set, r *mirror.Record) {
	set.Reset()
	set.Add(r.Content.Title)
	if e, err := r.Entry(); err == nil { // a damaged entry is found by its title
		set.AddEntry(e)
	}
}

// An UnindexedError ends the results of a search if the store only reads, and could not look
// into all entries waiting to be indexed: the entries before it are results, and there may be
// others. Whoever writes to the database indexes them: Store.Index.
type UnindexedError struct {
	Entries int64 // the number of entries not looked into
}

// Error says how many entries there are.
func (e *UnindexedError) Error() string {
	return fmt.Sprintf("%d entries wait to be indexed, and were not searched", e.Entries)
}

// readFresh finds results among the entries waiting to be indexed, for a reader: among the
// latest ones, as many as a writer indexes at once.
func (f *search) readFresh(ctx context.Context) error {
	waiting, err := f.numbers(ctx, "SELECT count(*) FROM fh.unindexed")
	if err != nil {
		return failure(ctx, err)
	}
	f.unread = max(waiting[0]-batch, 0)
	rows, err := f.query(ctx, selectTexts+" WHERE key IN (SELECT key FROM fh.unindexed ORDER BY key DESC LIMIT "+strconv.Itoa(batch)+")")
	if err == nil {
		err = scanWords(rows, f.wanted.Phrases(), func(key int64, set *words.Set) {
			if f.wanted.Match(set.Contains) {
				f.fresh = append(f.fresh, key)
			}
		})
	}
	return failure(ctx, err)
}

// The most words with a beginning that a search asks for one by one, and the most entries whose
// texts it reads to spare the index gathering all entries with such words.
const (
	mostBegun    = 16
	mostVerified = 128
)

// estimate finds out whether the index would gather very many entries before it returned the
// first result. SQLite does so for the beginning of a word; then few words in its place, or no
// entries with the other words, save that. PostgreSQL always does so.
func (f *search) estimate(ctx context.Context, feed string) error {
	if !f.one {
		return f.plan(ctx)
	}
	beginning := beginningOf(f.wanted)
	if beginning == "" {
		return nil
	}
	rows, err := f.query(ctx, begunWords, beginning, beginning+"\U0010ffff")
	begun, err := firstColumn[string](rows, err)
	if err != nil {
		return err
	}
	if len(begun) <= mostBegun {
		f.words = f.expression(without(f.wanted, append(begun, beginning)))
		return nil
	}
	postings, err := f.numbers(ctx, "SELECT count(*) FROM (SELECT 1 FROM fh.terms WHERE term >= ? AND term <= ? LIMIT "+strconv.Itoa(f.reach.few+1)+")",
		beginning, beginning+"\U0010ffff")
	if err != nil || postings[0] <= int64(f.reach.few) {
		return err
	}
	f.costly = true
	others := without(f.wanted, nil)
	if slices.ContainsFunc(others, func(group []words.Term) bool {
		return !slices.ContainsFunc(group, func(t words.Term) bool { return !t.Not })
	}) {
		f.stage = many // as there is no other word
		return nil
	}
	candidates, err := f.indexed(ctx, f.expression(others), mostVerified+1)
	if err != nil || len(candidates) > mostVerified {
		return err
	}
	return f.verify(ctx, feed, candidates)
}

// begunWords steps from word to word of SQLite's index, from a beginning to the last word with
// it, over all entries with each. No word has a character before "0".
var begunWords = `WITH RECURSIVE begun (word) AS (
	SELECT (SELECT term FROM fh.terms WHERE term >= ?1 AND term <= ?2 LIMIT 1)
UNION ALL
	SELECT (SELECT term FROM fh.terms WHERE term >= begun.word || '!' AND term <= ?2 LIMIT 1) FROM begun WHERE begun.word IS NOT NULL
)
SELECT word FROM begun WHERE word IS NOT NULL LIMIT ` + strconv.Itoa(mostBegun+1)

// plan asks PostgreSQL how many results it expects.
func (f *search) plan(ctx context.Context) error {
	rows, err := f.query(ctx, "EXPLAIN (FORMAT JSON) "+f.hits, f.words)
	texts, err := firstColumn[[]byte](rows, err)
	if err != nil {
		return err
	}
	var plans []struct {
		Plan struct {
			Rows float64 `json:"Plan Rows"`
		}
	}
	if err := json.Unmarshal(bytes.Join(texts, []byte("\n")), &plans); err != nil || len(plans) != 1 {
		return fmt.Errorf("a plan that cannot be read: %w", err)
	}
	f.costly = plans[0].Plan.Rows > float64(f.reach.few)
	return nil
}

// beginningOf returns the beginning of a word in a query; "" if there is none.
func beginningOf(q words.Query) string {
	for _, group := range q {
		for _, t := range group {
			if n := len(t.Phrase); t.Begins && n > 0 {
				return t.Phrase[n-1]
			} else if t.Begins {
				return t.Forms[0]
			}
		}
	}
	return ""
}

// without returns a query with any of some words in place of the beginning of one, for the
// index; without words, the beginning is left out.
func without(q words.Query, begun []string) (other words.Query) {
	for _, group := range q {
		terms := []words.Term{}
		for _, t := range group {
			if !t.Begins {
				terms = append(terms, t)
				continue
			}
			if n := len(t.Phrase); n > 0 {
				terms = append(terms, words.Term{Phrase: t.Phrase[:n-1]})
			}
			if begun != nil {
				terms = append(terms, words.Term{Forms: slices.Concat(begun, t.Forms)})
			}
		}
		other = append(other, terms)
	}
	return other
}

// indexed returns the keys of the first results in the index; of all, if most is zero.
func (f *search) indexed(ctx context.Context, expression string, most int) ([]int64, error) {
	query := f.hits
	if f.reads {
		query += " AND NOT rowid IN (SELECT key FROM fh.unindexed)"
	}
	if most > 0 {
		query += " LIMIT " + strconv.Itoa(most)
	}
	return f.numbers(ctx, query, expression)
}

// settle ends the search for results: they are those with the given keys, and the fresh ones.
func (f *search) settle(keys []int64) {
	f.stage, f.some, f.keys = settled, true, append(keys, f.fresh...)
}

// verify settles a search whose results are among some entries in the index: their texts show
// which meet it.
func (f *search) verify(ctx context.Context, feed string, candidates []int64) error {
	found := []int64{} // nil would be NULL
	for some := range slices.Chunk(candidates, batch) {
		ask := ask(selectTexts+" WHERE key"+f.in, list(&f.dialect, some))
		if feed != "" {
			ask.add(" AND "+ofFeed, keyOf(feed))
		}
		rows, err := f.query(ctx, ask.sql.String(), ask.args...)
		if err != nil {
			return failure(ctx, err)
		}
		err = scanWords(rows, f.wanted.Phrases(), func(key int64, set *words.Set) {
			if f.wanted.Match(set.Contains) {
				found = append(found, key)
			}
		})
		if err != nil {
			return failure(ctx, err)
		}
	}
	f.settle(found)
	return nil
}

// A search finds the entries meeting a query. If few entries have them, the
// index finds these, and they are sorted. If very many have them, sorting would take
// long; so the entries are read in the query's order, and their words compared, until a
// page is full.
type search struct {
	*Store
	wanted words.Query
	costly bool    // the index must gather many results before it returns the first
	words  string  // the query in the index's syntax, with phrases as their words
	fresh  []int64 // results among the entries waiting to be indexed, for a reader
	unread int64   // the number of such entries not looked into

	stage searchStage
	some  bool    // keys has all results for the next page, or for all pages once settled
	keys  []int64 // keys of entries
	want  int     // maximum size of a page
}

// A searchStage is how much a search knows about its results.
type searchStage uint8

const (
	uncounted searchStage = iota
	many                  // there are more than a few
	sparse                // there are, but a walk has not found enough
	settled               // the rest of the query looks them up in the index
)

// A reach says how far a search goes before it changes its method. It does not
// affect the results.
type reach struct {
	few int // up to this many results are always looked up in the index

	// A walk reads entries in portions, with a statement for each. The first portion has
	// this many entries, each later one four times as many as the one before. The walk
	// ends after the portion with the last size, or with four times the maximum of a page,
	// or after this many bytes. Looking up each entry in SQLite's index would cost up to a
	// millisecond; reading an entry of a kilobyte costs a twentieth of it.
	first, last, bytes int

	// The number of steps through the index of times for each entry of a page.
	// In SQLite a step costs a twentieth of the time needed to look up when an
	// entry is from.
	steps int
}

// prepare chooses the method for the next page.
func (f *search) prepare(ctx context.Context, q *mirror.Query, beyond *mirror.Record) error {
	if f == nil || f.stage == settled {
		return nil
	}
	f.some, f.keys = false, nil
	if q.AfterCommit != nil {
		f.stage = settled
		return nil
	}
	if !f.costly {
		if err := f.count(ctx); err != nil || f.stage == settled {
			return err
		}
	}
	f.want = pageRows
	if q.Limit > 0 {
		f.want = min(f.want, q.Limit)
	}
	var err error
	if f.stage < sparse {
		if f.some, err = f.walk(ctx, q, beyond); err != nil || f.some {
			return err
		}
		if err := f.count(ctx); err != nil || f.stage == settled {
			return err
		}
		f.stage = sparse
	}
	if f.some, err = f.pick(ctx, q, beyond); !f.some {
		f.stage = settled // if the words are common, then elsewhere: in another feed, or at another time
	}
	return err
}

// count looks up the results if they are few.
func (f *search) count(ctx context.Context) error {
	if f.stage >= many {
		return nil
	}
	f.stage = many
	keys, err := f.indexed(ctx, f.words, f.reach.few+1)
	if err == nil && len(keys) <= f.reach.few {
		f.settle(keys)
	}
	return err
}

// walk reads entries from beyond a place, and gathers the keys of those with the words.
// It reports whether the next page can have no others.
func (f *search) walk(ctx context.Context, q *mirror.Query, beyond *mirror.Record) (enough bool, err error) {
	read := 0
	for stride := f.reach.first; stride <= max(f.reach.last, 4*f.want); stride *= 4 {
		last := &mirror.Record{}
		n, err := f.stride(ctx, f.texts(q, beyond, stride), last, &read)
		switch {
		case err != nil:
			return false, err
		case len(f.keys) >= f.want:
			return true, nil
		case read > f.reach.bytes:
			return false, nil
		case n < stride:
			return true, nil
		}
		beyond = last
	}
	return false, nil
}

// texts returns the query for the texts of some entries, in the order of a
// query.
func (f *search) texts(q *mirror.Query, beyond *mirror.Record, stride int) *question {
	ask := f.entriesQuery("SELECT "+textColumns+", time, feed_url, coalesce(long_id, id)", q, beyond, condition{})
	ask.add(" LIMIT " + strconv.Itoa(stride))
	return ask
}

// stride reads a portion of the entries, and returns their number. It ends
// early if there are enough results, or if too much has been read. It sets last
// to the place of the last entry.
func (f *search) stride(ctx context.Context, ask *question, last *mirror.Record, read *int) (n int, err error) {
	rows, err := f.query(ctx, ask.sql.String(), ask.args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var set words.Set
	for ; len(f.keys) < f.want && *read <= f.reach.bytes && rows.Next(); n++ {
		var key int64
		var r mirror.Record
		if err := rows.Scan(append(textTargets(&key, &r), timeColumn{&last.Added}, textColumn{&last.Feed}, textColumn{&last.ID})...); err != nil {
			return 0, err
		}
		fillWords(&set, &r)
		if f.wanted.Match(set.Contains) {
			f.keys = append(f.keys, key)
		}
		*read += len(r.Content.Data)
	}
	return n, cmp.Or(rows.Err(), rows.Close())
}

// pick steps through the index of times and looks which entries are results. It
// reports whether the next page can have no others.
func (f *search) pick(ctx context.Context, q *mirror.Query, beyond *mirror.Record) (enough bool, err error) {
	bounded, whole, err := f.bound(ctx, *q, beyond)
	if err != nil {
		return false, err
	}
	is := f.with(f.among, f.words)
	if f.one {
		if is, err = f.amongKeys(ctx, &bounded); err != nil {
			return false, err
		}
	}
	is.ordered = true
	ask := f.entriesQuery("SELECT key", &bounded, beyond, is)
	ask.add(" LIMIT " + limitOf(f.want))
	f.keys, err = f.numbers(ctx, ask.sql.String(), ask.args...)
	return whole || len(f.keys) >= f.want, err
}

// amongKeys returns the condition that entries are results, for a query read in its order.
// SQLite gathers the results first, but only between the lowest and the highest key of the
// query's entries: a first mirror's are close together.
func (f *search) amongKeys(ctx context.Context, q *mirror.Query) (condition, error) {
	ask := ask("SELECT coalesce(min(key), 0), coalesce(max(key), 0) FROM fh.entries WHERE time >= ?", timeText(q.Since))
	if !q.Until.IsZero() {
		ask.add(" AND time < ?", timeText(q.Until))
	}
	if q.Feed != "" {
		ask.add(" AND "+ofFeed, keyOf(q.Feed))
	}
	rows, err := f.query(ctx, ask.sql.String(), ask.args...)
	var first, last int64
	err = eachRow(rows, err, func() error { return rows.Scan(&first, &last) })
	is := f.with(strings.TrimSuffix(f.among, ")")+" AND rowid BETWEEN ? AND ?)", f.words)
	is.args = slices.Insert(is.args, 1, any(first), any(last))
	return is, err
}

// bound returns a query for some steps beyond a place, and reports whether there is
// nothing after them.
func (f *search) bound(ctx context.Context, q mirror.Query, beyond *mirror.Record) (mirror.Query, bool, error) {
	ask, order := f.times(&q)
	switch {
	case beyond != nil && q.Reverse:
		ask.add(" AND time >= ?", timeText(beyond.Time()))
	case beyond != nil:
		ask.add(" AND time <= ?", timeText(beyond.Time()))
	case q.Reverse && !q.Since.IsZero():
		ask.add(" AND time >= ?", timeText(q.Since))
	case !q.Reverse && !q.Until.IsZero():
		ask.add(" AND time < ?", timeText(q.Until))
	}
	ask.add(order + " LIMIT 1 OFFSET " + strconv.Itoa(f.reach.steps<<bits.Len(uint(f.want-1))))
	rows, err := f.query(ctx, ask.sql.String(), ask.args...)
	if err != nil {
		return q, false, err
	}
	defer rows.Close()
	whole := true
	for rows.Next() {
		var last time.Time
		if err := rows.Scan(timeColumn{&last}); err != nil {
			return q, false, err
		}
		switch {
		case q.Reverse && (q.Until.IsZero() || last.Before(q.Until)):
			q.Until, whole = last.Add(1), false
		case !q.Reverse && last.After(q.Since):
			q.Since, whole = last, false
		}
	}
	return q, whole, cmp.Or(rows.Err(), rows.Close())
}

// A condition is a part of a statement; the zero value is no condition.
type condition struct {
	sql  string
	args []any

	ordered bool // whether entries are read in the query's order, however many results there are
	listed  bool // whether entries are looked up by their keys, which are few
}

// more reports whether there may be more results than the next page's query finds,
// because entries gathered by the walk may be gone by then.
func (f *search) more() bool {
	return f != nil && f.some && f.stage != settled && len(f.keys) >= f.want
}

// condition returns the condition entries must meet.
func (f *search) condition() condition {
	switch {
	case f == nil:
		return condition{}
	case f.some: // they include those waiting to be indexed
		return condition{sql: "key" + f.in, args: []any{list(&f.dialect, f.keys)}, listed: true}
	}
	return f.with(f.found, f.words)
}

// with adds the waiting entries to a condition on the index.
func (f *search) with(indexed string, arg any) condition {
	if !f.reads {
		return condition{sql: indexed, args: []any{arg}}
	}
	return condition{
		sql:  "(" + indexed + " AND NOT key IN (SELECT key FROM fh.unindexed) OR key" + f.in + ")",
		args: []any{arg, list(&f.dialect, append([]int64{}, f.fresh...))}, // nil would be NULL
	}
}
