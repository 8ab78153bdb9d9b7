package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/words"
)

// An Inspection is the result of Store.Check.
type Inspection struct {
	Feeds, Entries, Versions, Documents int64 // the numbers of rows

	Pending   int64    // archive documents still to be read, of all feeds
	Unindexed int64    // entries waiting to be indexed
	Unsealed  int64    // rows without checksums, which an earlier version wrote
	Damages   []Damage // up to 10,000
	More      int64    // the number of damages beyond those

	rows map[string][][]any // the places of damaged rows, by table
}

// A Damage is something in a database not as it was stored.
type Damage struct {
	Table string `json:"table"`          // the table, without our prefix; "file" for the file as a whole
	Feed  string `json:"feed,omitempty"` // the URL of the feed; "" if unknown
	ID    string `json:"id,omitempty"`   // the ID of the entry or the URL of the document; "" for others
	What  string `json:"message"`        // the kind of damage
}

// String returns the place of the damage and its kind.
func (d Damage) String() string {
	text := d.Table
	for _, part := range []string{d.Feed, d.ID} {
		if part != "" {
			text += " " + part
		}
	}
	return text + ": " + d.What
}

const mostDamages = 10_000

func (i *Inspection) add(table, feed, id, what string) {
	if len(i.Damages) == mostDamages {
		i.More++
		return
	}
	i.Damages = append(i.Damages, Damage{table, feed, id, what})
}

// A checker checks a store.
type checker struct {
	*Inspection
	store   *Store
	sums    summer
	urls    map[any]string    // URLs by key
	counted map[any]int64     // live entries by the feed's key, as its row says
	live    map[any]int64     // live entries by the feed's key
	polled  map[any]bool      // feeds with a row in polls
	names   map[any]uint64    // a sum of each document's names, less those in the table
	words   map[any]uint64    // a sum of each entry's words, less those in the index
	seed    maphash.Seed      // of these sums
	set     words.Set         // of the entry at hand
	ids     map[any][2]string // the feed and the ID of entries and documents with words or names, by key
}

func newChecker(s *Store) *checker {
	return &checker{
		store: s, Inspection: &Inspection{rows: map[string][][]any{}},
		urls: map[any]string{}, counted: map[any]int64{}, live: map[any]int64{}, polled: map[any]bool{},
		names: map[any]uint64{}, words: map[any]uint64{}, seed: maphash.MakeSeed(), ids: map[any][2]string{},
	}
}

// Check reads the whole database and compares it with its checksums, the entries with
// the words in the index, and the tables with each other. SQLite checks the structure of
// its file. Check is not interrupted by damage. Others may use the database meanwhile;
// their changes during Check may appear as damage, so check again if there is any. It
// takes about as long as reading and indexing everything.
func (s *Store) Check(ctx context.Context) (*Inspection, error) {
	c := newChecker(s)
	if s.one {
		c.structure(ctx)
	}
	for _, t := range checkedTables() {
		err := c.scan(ctx, "SELECT "+t.columns()+" FROM fh."+t.name, func(values []any) { c.row(&t, t.row(values, &c.sums)) })
		c.failed(ctx, t.name, err)
	}
	for key, url := range c.urls {
		if !c.polled[key] {
			c.damaged("polls", []any{key}, url, "", "the row is missing")
		}
		if c.counted[key] != c.live[key] {
			c.damaged("feeds", []any{key}, url, "", fmt.Sprintf("it says %d entries, and has %d", c.counted[key], c.live[key]))
		}
	}
	c.checkNames(ctx)
	c.checkIndex(ctx)
	return c.Inspection, failure(ctx, ctx.Err())
}

// damaged records a damaged row.
func (c *checker) damaged(table string, place []any, feed, id, what string) {
	c.add(table, feed, id, what)
	c.rows[table] = append(c.rows[table], slices.Clone(place))
}

// failed records a table with an unreadable rest.
func (c *checker) failed(ctx context.Context, table string, err error) {
	if err != nil && ctx.Err() == nil {
		c.add(table, "", "", "it cannot be read to its end: "+err.Error())
	}
}

// structure lets SQLite check its file.
func (c *checker) structure(ctx context.Context) {
	for _, pragma := range []string{"PRAGMA integrity_check", "PRAGMA foreign_key_check"} {
		err := c.scan(ctx, pragma, func(values []any) {
			if said := strings.TrimSpace(fmt.Sprintln(values...)); said != "ok" {
				c.add("file", "", "", strings.ReplaceAll(said, "\n", "; "))
			}
		})
		c.failed(ctx, "file", err)
	}
	fault, err := c.store.schemaFault(ctx)
	if fault != "" {
		c.add("file", "", "", fault)
	}
	c.failed(ctx, "file", err)
}

// scan calls a function for each row of a query.
func (c *checker) scan(ctx context.Context, query string, each func(values []any)) error {
	return scanRows(ctx, c.store.db, c.store.text(query), each)
}

func scanRows(ctx context.Context, q queryer, query string, each func(values []any), args ...any) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values, targets := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		each(values)
	}
	return rows.Err()
}

// checkNames compares the names of the documents.
func (c *checker) checkNames(ctx context.Context) {
	err := c.scan(ctx, "SELECT document, feed, name FROM fh.names", func(values []any) {
		c.names[values[0]] -= maphash.String(c.seed, fmt.Sprint(values[1], " ", values[2]))
	})
	c.failed(ctx, "names", err)
	different := int64(0)
	for _, sum := range c.names {
		if sum != 0 {
			different++
		}
	}
	if different > 0 {
		c.add("names", "", "", fmt.Sprintf("%d documents have other names", different))
	}
}

// checkIndex compares the words of the entries, except waiting ones.
func (c *checker) checkIndex(ctx context.Context) {
	err := c.indexed(ctx, func(key any, word string) { c.words[key] -= maphash.String(c.seed, word) })
	if err == nil {
		err = c.scan(ctx, "SELECT key FROM fh.unindexed", func(values []any) {
			c.Unindexed++
			delete(c.words, values[0])
		})
	}
	c.failed(ctx, "search", err)
	different := int64(0)
	for key, sum := range c.words {
		if _, readable := c.ids[key]; sum != 0 && (readable || !c.isDamaged(key)) {
			different++
		}
	}
	if different > 0 {
		c.add("search", "", "", fmt.Sprintf("%d entries have other words than the index", different))
	}
}

// isDamaged reports whether an entry is known to be damaged.
func (c *checker) isDamaged(key any) bool {
	return slices.ContainsFunc(c.rows["entries"], func(place []any) bool { return place[0] == key })
}

// indexed calls a function for each word of each entry in the index.
func (c *checker) indexed(ctx context.Context, each func(key any, word string)) error {
	if !c.store.one {
		return c.scan(ctx, "SELECT rowid, unnest(tsvector_to_array(words)) FROM fh.search", func(values []any) {
			word, _ := values[1].(string)
			each(values[0], word)
		})
	}
	return c.store.aside(ctx, func(conn *sql.Conn) error {
		if _, err := conn.ExecContext(ctx, "CREATE VIRTUAL TABLE temp.feedhistory_words USING fts5vocab(main, feedhistory_search, instance)"); err != nil {
			return err
		}
		defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "DROP TABLE temp.feedhistory_words") }()
		return scanRows(ctx, conn, "SELECT doc, term FROM temp.feedhistory_words", func(values []any) {
			word, _ := values[1].(string)
			each(values[0], word)
		})
	})
}

// A checkedTable is a table whose rows have checksums.
type checkedTable struct {
	name   string
	place  string      // the columns telling a row from others
	prefix string      // columns in every checksum
	groups [][2]string // the columns of each checksum, and its own column
}

// checkedTables are in the order in which they are checked: the feeds come first.
func checkedTables() []checkedTable {
	return []checkedTable{
		{"feeds", "key", "url, long_url", [][2]string{{feedColumns, "checksum"}}},
		{"polls", "feed", "", [][2]string{{pollColumns, "checksum"}}},
		{"entries", "key", keyColumns, [][2]string{
			{lifeColumns, "checksum"}, {copyColumns, "copy_checksum"}, {contentColumns, "content_checksum"},
		}},
		{"versions", "feed, id, digest", keyColumns, [][2]string{{copyColumns, "copy_checksum"}, {contentColumns, "content_checksum"}}},
		{"documents", "key", "", [][2]string{{documentColumns, "checksum"}}},
	}
}

// width returns the number of columns in a list.
func width(columns string) int {
	if columns == "" {
		return 0
	}
	return strings.Count(columns, ",") + 1
}

// A checkedRow is a row with the outcome of comparing its checksums.
type checkedRow struct {
	place, prefix []any
	groups        [][]any
	sums          []int64 // as computed
	intact        bool    // no known checksum differs
	sealed        bool    // all checksums are known
}

// columns returns the columns to check, in the order in which row takes their values.
func (t *checkedTable) columns() string {
	columns := []string{t.place}
	if t.prefix != "" {
		columns = append(columns, t.prefix)
	}
	for _, g := range t.groups {
		columns = append(columns, g[0], g[1])
	}
	return strings.Join(columns, ", ")
}

// row compares the checksums of a row's values.
func (t *checkedTable) row(values []any, sums *summer) *checkedRow {
	take := func(n int) (part []any) {
		part, values = values[:n:n], values[n:]
		return part
	}
	r := &checkedRow{place: take(width(t.place)), prefix: take(width(t.prefix)), intact: true, sealed: true}
	for _, g := range t.groups {
		group := take(width(g[0]))
		sum := sums.of(r.prefix, group)
		if g[0] == copyColumns {
			sum = sums.ofCopy(r.prefix, group)
		}
		r.groups, r.sums = append(r.groups, group), append(r.sums, sum)
		switch stored := take(1)[0]; stored {
		case sum:
		case int64(0): // a tombstone of an entry that never came is stored without content
			r.sealed = r.sealed && g[0] == contentColumns && textOf(group[0]) == ""
		default:
			r.intact = false
		}
	}
	return r
}

// textOf returns a column's text as it was before it was escaped.
func textOf(v any) string {
	s, _ := v.(string)
	return unescaped(s)
}

// nameIn returns the ID or URL in two columns, of which the second is for long ones.
func nameIn(key, long any) string {
	if long != nil {
		return textOf(long)
	}
	return textOf(key)
}

// row checks a row of a table, and reports whether it is sound.
func (c *checker) row(t *checkedTable, r *checkedRow) bool {
	if !r.sealed {
		c.Unsealed++
	}
	feed, id, what := "", "", ""
	switch t.name {
	case "feeds":
		feed, what = c.feed(r)
	case "polls":
		feed = c.urls[r.place[0]]
		c.polled[r.place[0]] = true
	case "entries":
		feed, id, what = c.entry(r)
	case "versions":
		c.Versions++
		feed, id = c.urls[r.prefix[0]], nameIn(r.prefix[1], r.prefix[2])
		_, what = contentIn(id, r.groups[1])
	case "documents":
		feed, id, what = c.document(r)
	}
	if !r.intact {
		what = "it differs from its checksum"
	}
	if what != "" {
		c.damaged(t.name, r.place, feed, id, what)
	}
	return what == ""
}

func (c *checker) feed(r *checkedRow) (url, what string) {
	c.Feeds++
	url = nameIn(r.prefix[0], r.prefix[1])
	c.urls[r.place[0]] = url
	c.counted[r.place[0]], _ = r.groups[0][3].(int64)
	f := &mirror.Feed{}
	state, _ := r.groups[0][7].(string)
	if err := json.Unmarshal([]byte(state), f); err != nil {
		return url, "its state cannot be read: " + err.Error()
	}
	c.Pending += int64(f.Ledger.Pending())
	return url, ""
}

func (c *checker) entry(r *checkedRow) (feed, id, what string) {
	c.Entries++
	feed, id = c.urls[r.prefix[0]], nameIn(r.prefix[1], r.prefix[2])
	if r.groups[0][0] == string(mirror.Live) {
		c.live[r.prefix[0]]++
	}
	record, what := contentIn(id, r.groups[2])
	if what != "" || !r.intact { // its words are unknown
		c.words[r.place[0]] = 0
		return feed, id, what
	}
	fillWords(&c.set, record)
	for _, word := range c.set.Words() {
		c.words[r.place[0]] += maphash.String(c.seed, word)
	}
	if len(c.set.Words()) > 0 {
		c.ids[r.place[0]] = [2]string{feed, id}
	}
	return feed, id, ""
}

// contentIn returns the record with the content in a row, and its damage.
func contentIn(id string, values []any) (r *mirror.Record, what string) {
	r = &mirror.Record{ID: id}
	r.Content.Title, r.Content.Base, r.Content.Data = textOf(values[1]), textOf(values[5]), textOf(values[7])
	r.Content.Format = feedhistory.Format(textOf(values[0]))
	if r.Content.Format == "" {
		return r, ""
	}
	if _, err := r.Entry(); err != nil {
		return r, "it cannot be read: " + err.Error()
	}
	return r, ""
}

func (c *checker) document(r *checkedRow) (feed, url, what string) {
	c.Documents++
	feed, url = c.urls[r.groups[0][0]], textOf(r.groups[0][1])
	d := &mirror.DocumentRecord{}
	state, _ := r.groups[0][4].(string)
	if err := json.Unmarshal([]byte(state), d); err != nil {
		return feed, url, "its state cannot be read: " + err.Error()
	}
	names := keysOf(d.Names)
	slices.Sort(names)
	c.names[r.place[0]] = 0
	for _, name := range slices.Compact(names) {
		c.names[r.place[0]] += maphash.String(c.seed, fmt.Sprint(r.groups[0][0], " ", name))
	}
	return feed, url, ""
}

// tablesQuery lists the tables and indexes of a new mirror.
const tablesQuery = `SELECT name FROM sqlite_schema WHERE name LIKE 'feedhistory\_%' ESCAPE '\'`

// schemaQuery lists the parts of the named tables in a SQLite file, which may have others, such
// as those of a command. Databases of every version have the same parts, though not the same
// statements.
const schemaQuery = `
	SELECT concat_ws(' ', m.name, c.name, c.type, c."notnull", c.dflt_value, c.pk, c.hidden) FROM sqlite_schema m, pragma_table_xinfo(m.name) c
		WHERE m.name IN (SELECT value FROM json_each(?1))
	UNION ALL SELECT coalesce(sql, name) FROM sqlite_schema WHERE type = 'index' AND tbl_name IN (SELECT value FROM json_each(?1))
	UNION ALL SELECT concat_ws(' ', name, type, wr, strict) FROM pragma_table_list WHERE name IN (SELECT value FROM json_each(?1))
	UNION ALL SELECT concat_ws(' ', m.name, f."table", f."from", f."to", f.on_delete) FROM sqlite_schema m, pragma_foreign_key_list(m.name) f
		WHERE m.name IN (SELECT value FROM json_each(?1))
	UNION ALL SELECT replace(replace(replace(substr(sql, instr(sql, 'USING')), char(10), ''), char(9), ''), ' ', '')
		FROM sqlite_schema WHERE name = 'feedhistory_search'
	ORDER BY 1`

// generatedQuery counts the entries whose generated columns are not as in the schema.
const generatedQuery = `SELECT count(*) FROM fh.entries WHERE time IS NOT coalesce(nullif(published, ''), nullif(updated, ''), added)
	OR changed IS NOT iif(changed_own = '=', added, changed_own) OR at IS NOT iif(at_own = '=', updated, at_own)`

// A memory connects to a new database in memory.
type memory struct{ d driver.Driver }

// Connect implements driver.Connector.
func (m memory) Connect(context.Context) (driver.Conn, error) { return m.d.Open(":memory:") }

// Driver implements driver.Connector.
func (m memory) Driver() driver.Driver { return m.d }

// schemaFault compares the schema of a SQLite file with that of a new one, and returns the
// difference; "" if there is none.
func (s *Store) schemaFault(ctx context.Context) (string, error) {
	fresh := sql.OpenDB(memory{s.db.Driver()})
	defer fresh.Close()
	fresh.SetMaxOpenConns(1) // another connection would have another database
	scripts, err := s.scripts(0)
	if err != nil {
		return "", err
	}
	for _, script := range scripts {
		if _, err := fresh.ExecContext(ctx, script); err != nil {
			return "", err
		}
	}
	tables, err := column(ctx, fresh, tablesQuery)
	if err != nil {
		return "", err
	}
	names := list(&s.dialect, tables)
	wanted, err := column(ctx, fresh, schemaQuery, names)
	if err != nil {
		return "", err
	}
	found, err := column(ctx, s.db, schemaQuery, names)
	if err != nil {
		return "", err
	}
	for _, part := range found {
		if !slices.Contains(wanted, part) {
			return "its schema has " + part, nil
		}
	}
	if len(found) != len(wanted) {
		return fmt.Sprintf("its schema has %d parts instead of %d", len(found), len(wanted)), nil
	}
	different := 0
	err = s.db.QueryRowContext(ctx, s.text(generatedQuery)).Scan(&different)
	if different > 0 {
		return fmt.Sprintf("its schema computes other times of %d entries", different), err
	}
	return "", err
}

// A checksum of a row finds changed bytes in the file. It does not depend on how a
// database stores a value. Zero means unknown: the row is older than checksums.

// A summer makes checksums. The zero value is ready to use.
type summer struct{ buffer []byte }

// summers are those of transactions: a buffer is as long as the longest text.
var summers = sync.Pool{New: func() any { return new(summer) }}

// of returns the checksum of values, which are those of columns in their order.
func (s *summer) of(lists ...[]any) int64 {
	b := s.buffer[:0]
	for _, values := range lists {
		for _, v := range values {
			b = appendValue(b, v)
		}
	}
	s.buffer = b
	sum := int64(int32(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))))
	if sum == 0 {
		return 1
	}
	return sum
}

// ofCopy returns the checksum of copyColumns. Rows from before there was a source have the
// checksum of the columns before it, as do those without one.
func (s *summer) ofCopy(key, values []any) int64 {
	if n := len(values) - 1; values[n] == "" {
		values = values[:n]
	}
	return s.of(key, values)
}

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return append(binary.AppendUvarint(append(b, 's'), uint64(len(v))), v...)
	case int64:
		return binary.AppendVarint(append(b, 'i'), v)
	case bool:
		if v {
			return appendValue(b, int64(1))
		}
		return appendValue(b, int64(0))
	case sql.NullString:
		if v.Valid {
			return appendValue(b, v.String)
		}
		return append(b, 'n')
	case nil:
		return append(b, 'n')
	}
	return fmt.Appendf(append(b, '?'), "%T %v", v, v) // equals nothing stored
}

// scrubbing are the statements to make a database release removed bytes.
var scrubbing = map[bool][]string{
	true: { // SQLite
		"INSERT INTO fh.search (fh.search) VALUES ('optimize')", // the index keeps the words of removed entries until it is merged
		"VACUUM",
	},
	false: {"VACUUM (FULL) fh.entries, fh.versions, fh.search, fh.unindexed, fh.feeds, fh.polls, fh.documents, fh.names"},
}

// Scrub indexes all waiting entries, and rewrites the database without the bytes of
// removed and replaced rows: a SQLite file and its log, or PostgreSQL's tables. It
// takes as long as copying the database, and temporarily as much space; nobody else can
// write meanwhile. If it cannot empty the log of a SQLite file because another process
// reads it, Scrub returns an error.
//
// Scrub does not reach PostgreSQL's own write-ahead log, nor backups.
func (s *Store) Scrub(ctx context.Context) (err error) {
	if s.reads {
		return ErrReadOnly
	}
	if err := s.Index(ctx); err != nil {
		return err
	}
	defer func() { err = failure(ctx, err) }()
	if s.one {
		select {
		case s.write <- struct{}{}:
			defer func() { <-s.write }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for _, statement := range scrubbing[s.one] {
		if _, err := s.db.ExecContext(ctx, s.text(statement)); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	if !s.one {
		return nil
	}
	var busy, pages, done int
	if err := s.db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &done); err != nil {
		return err
	}
	if busy != 0 {
		return errors.New("the write-ahead log still contains removed data: another process is reading the database")
	}
	return nil
}
