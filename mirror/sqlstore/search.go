package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"strconv"
	"strings"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/words"
)

// Index indexes the entries waiting for it, for full-text search. A search does this,
// too; calling Index after large commits makes the first search fast.
// The error may be the context's.
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
	err = scanWords(rows, func(key int64, set *words.Set) {
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

// scanWords yields the words of entries. A set is valid only until the next
// one.
func scanWords(rows *sql.Rows, yield func(key int64, set *words.Set)) error {
	defer rows.Close()
	var set words.Set
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
	return []any{key, textColumn{&r.ID}, formatColumn{&c.Format}, textColumn{&c.Title}, textColumn{&c.Base}, textColumn{&c.Data}}
}

// fillWords fills a set with an entry's words.
func fillWords(set *words.Set, r *mirror.Record) {
	set.Reset()
	set.Add(r.Content.Title)
	if e, err := r.Entry(); err == nil { // a damaged entry is found by its title
		set.AddEntry(e)
	}
}

// unindexed returns the keys of the entries waiting to be indexed with all of the
// words.
func (s *Store) unindexed(ctx context.Context, search []string, prefix bool) (found []int64, err error) {
	found = []int64{} // nil would be NULL
	for last, more := int64(math.MinInt64), true; more && err == nil; {
		more = false
		var rows *sql.Rows
		rows, err = s.query(ctx, selectTexts+" WHERE key IN (SELECT key FROM fh.unindexed WHERE key > ? ORDER BY key LIMIT "+
			strconv.Itoa(batch)+") ORDER BY key", last)
		if err != nil {
			break
		}
		err = scanWords(rows, func(key int64, set *words.Set) {
			last, more = key, true
			if set.Contains(search, prefix) {
				found = append(found, key)
			}
		})
	}
	return found, failure(ctx, err)
}
