package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
)

// A Dialect says which database it is.
type Dialect string

// The dialects.
const (
	SQLite     Dialect = "sqlite"     // 3.43 or newer, with FTS5
	PostgreSQL Dialect = "postgresql" // 15 or newer
)

// A dialect is what the statements do not agree in.
type dialect struct {
	migrations string    // the directory
	one        bool      // there is one writer at a time
	in         string    // after a column: is one of a list, the parameter
	known      [2]string // from the entries with one of a list of IDs, the parameter, in the feed that stands between
	locked     string    // after a query: with the rows locked
	found      string    // the key is among what a search finds, the parameter
	among      string    // the same, of entries that are gone through in an order
	steps      int       // how many are gone through for each that a page may have
	hits       string    // the keys of what a search finds, the parameter
	newest     string    // after the entries: how to find the newest of all
	words      string    // a parameter, as words
	mark       upsert    // of entries whose contents stay
	put        upsert    // of entries with contents
	dollars    bool      // parameters are written $1, $2, …
}

var dialects = map[Dialect]dialect{
	SQLite: {
		migrations: "sqlite",
		one:        true,
		in:         " IN (SELECT value FROM json_each(?))",
		known: [2]string{
			" FROM (SELECT value AS wanted FROM json_each(?)) CROSS JOIN entries ON id = wanted AND feed = (", ")",
		},
		hits:   "SELECT rowid FROM search WHERE search MATCH ?",
		found:  "key IN (SELECT rowid FROM search WHERE search MATCH ?)",
		among:  "+key IN (SELECT rowid FROM search WHERE search MATCH ?)", // gathers all of them once
		steps:  256,
		newest: " INDEXED BY entries_by_time",
		words:  "?",
		mark:   upsertOf(own.Replace(recordColumns)),
		put:    upsertOf(own.Replace(recordColumns + ", " + contentColumns)),
	},
	PostgreSQL: {
		migrations: "postgresql",
		in:         " = ANY (?)",
		known:      [2]string{" FROM entries_known(?::text[], (", "))"},
		locked:     " FOR UPDATE",
		hits:       "SELECT rowid FROM search WHERE words @@ ?::tsquery",
		found:      "key = ANY (ARRAY(SELECT rowid FROM search WHERE words @@ ?::tsquery))",
		among:      "coalesce((SELECT words @@ ?::tsquery FROM search WHERE rowid = entries.key), false)",
		steps:      16, // each looks for a row; of many more PostgreSQL would compile the plan, for a second
		words:      "array_to_tsvector(string_to_array(?, ' '))",
		mark:       upsertOf(recordColumns),
		put:        upsertOf(recordColumns + ", " + contentColumns),
		dollars:    true,
	},
}

// of returns the FROM clause for entries with one of a list of IDs, which is the
// first parameter, of the feed that a query finds.
func (d *dialect) of(feed string) string { return d.known[0] + feed + d.known[1] }

// every returns a condition that all rows meet, and that an index of PostgreSQL
// names so that nothing else takes it. SQLite's has none.
func (d *dialect) every(condition string) string {
	if !d.dollars {
		return ""
	}
	return " AND " + condition
}

// numbered numbers a statement's parameters, if the database wants that. None
// of our statements has a question mark elsewhere.
func (d *dialect) numbered(query string) string {
	if !d.dollars {
		return query
	}
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(query, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("$" + strconv.Itoa(n))
		query = after
	}
}

// list returns a list as a parameter.
func list[T string | int64](d *dialect, values []T) any {
	if d.dollars {
		return values
	}
	data, _ := json.Marshal(values) // strings and numbers always can be
	return string(data)
}

// all returns what finds entries that have all of the words; the last one may be
// the beginning of a word.
func (d *dialect) all(words []string, prefix bool) string {
	open, end, any := `"`, `"`, "*"
	between := " "
	if d.dollars {
		open, end, any, between = "'", "'", ":*", " & " // words are letters and digits
	}
	text := open + strings.Join(words, end+between+open) + end
	if prefix {
		text += any
	}
	return text
}

// SQLiteDSN returns a data source name for modernc.org/sqlite which opens a file
// as a Store wants it: each commit is flushed, and there is half a minute's
// patience with other writers. The file is made if there is none. Whatever it
// is, nothing is written to it until Open has seen whose it is. A new database has
// pages of 16 KB, of which entries leave less unused than of SQLite's usual 4.
func SQLiteDSN(file string) string {
	return sqliteDSN(file, url.Values{
		"_txlock": {"immediate"},
		"_pragma": {
			"busy_timeout(30000)", "page_size(16384)", "synchronous(FULL)", "foreign_keys(ON)",
			"cache_size(-16000)", "journal_size_limit(67108864)",
		},
	})
}

// SQLiteReaderDSN returns a data source name for modernc.org/sqlite which opens a
// file for OpenReader. With a write-ahead log, which the file has while others
// write to it, or after a kill, SQLite needs the log's index in the same directory,
// or the right to make one there.
//
// Immutable is for a file without a log, in a directory where nothing can be
// made: SQLite then makes, locks and looks for no other file. If somebody else
// writes to the database meanwhile, what is read may be wrong.
func SQLiteReaderDSN(file string, immutable bool) string {
	values := url.Values{
		"mode":    {"ro"},
		"_pragma": {"busy_timeout(30000)", "query_only(ON)", "cache_size(-16000)"},
	}
	if immutable {
		values.Set("immutable", "1")
	}
	return sqliteDSN(file, values)
}

func sqliteDSN(file string, values url.Values) string {
	path := filepath.ToSlash(file)
	if filepath.IsAbs(file) && !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive's letter is no host
	}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: values.Encode()}
	return u.String()
}

// checkPragmas refuses a connection that loses commits, or does not keep what
// belongs together.
func checkPragmas(ctx context.Context, db *sql.DB) error {
	for _, p := range []struct{ name, want string }{
		{"journal_mode", "wal"}, {"synchronous", "2"}, {"foreign_keys", "1"},
	} {
		var got string
		if err := db.QueryRowContext(ctx, "PRAGMA "+p.name).Scan(&got); err != nil {
			return err
		}
		if got != p.want {
			return fmt.Errorf("the connection has %s = %s, but %s is needed: see SQLiteDSN", p.name, got, p.want)
		}
	}
	return nil
}
