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

// A Dialect is a kind of database.
type Dialect string

// The dialects.
const (
	SQLite     Dialect = "sqlite"     // 3.43 or newer, with FTS5
	PostgreSQL Dialect = "postgresql" // 15 or newer
)

// A dialect has the differences between the databases' statements.
type dialect struct {
	directory string    // the directory of the migrations
	prefix    string    // stands for "fh." in statements
	own       string    // lists the tables with our prefix
	earlier   string    // lists the columns of the tables of an earlier version, before there was a prefix
	claim     string    // the first statement of a migration
	one       bool      // whether there is only one writer at a time
	in        string    // follows a column: it is in the list given as a parameter
	known     [2]string // the entries with IDs in the list given as a parameter, in the feed inserted between the two parts
	locked    string    // follows a query: its rows are locked
	found     string    // the key is among the results of the search given as a parameter
	among     string    // the same, for entries read in an order
	steps     int       // the number of entries to step through for each entry of a page
	hits      string    // the keys of the results of the search given as a parameter
	newest    string    // follows the table of entries: how to find the newest of all
	words     string    // the words given as a parameter
	mark      upsert    // stores entries whose contents do not change
	put       upsert    // stores entries with contents
	dollars   bool      // whether parameters are written $1, $2, …
}

var dialects = map[Dialect]dialect{
	SQLite: {
		directory: "sqlite",
		prefix:    "feedhistory_",
		own:       `SELECT substr(name, 13) FROM sqlite_schema WHERE name LIKE 'feedhistory\_%' ESCAPE '\'`,
		earlier: "SELECT m.name || '.' || p.name FROM sqlite_schema m, pragma_table_info(m.name) p " +
			"WHERE m.name IN ('schema_versions', 'feeds', 'entries', 'documents')",
		one: true,
		in:  " IN (SELECT value FROM json_each(?))",
		known: [2]string{
			" FROM (SELECT value AS wanted FROM json_each(?)) CROSS JOIN fh.entries ON id = wanted AND feed = (", ")",
		},
		hits:   "SELECT rowid FROM fh.search WHERE fh.search MATCH ?",
		found:  "key IN (SELECT rowid FROM fh.search WHERE fh.search MATCH ?)",
		among:  "+key IN (SELECT rowid FROM fh.search WHERE fh.search MATCH ?)", // gathers all results once
		steps:  256,
		newest: " INDEXED BY feedhistory_entries_by_time",
		words:  "?",
		mark:   upsertOf(own.Replace(markColumns)),
		put:    upsertOf(own.Replace(putColumns)),
	},
	PostgreSQL: {
		directory: "postgresql",
		prefix:    "feedhistory.",
		own:       "SELECT relname FROM pg_catalog.pg_class WHERE relnamespace = to_regnamespace('feedhistory')",
		earlier: "SELECT t.name || '.' || attname FROM unnest(ARRAY['schema_versions', 'feeds', 'entries', 'documents']) AS t (name) " +
			"JOIN pg_catalog.pg_attribute ON attrelid = to_regclass(t.name) WHERE attnum > 0",
		claim:   "SELECT pg_advisory_xact_lock(7378697629483820646)", // everybody else who migrates waits
		in:      " = ANY (?)",
		known:   [2]string{" FROM fh.entries_known(?::text[], (", "))"},
		locked:  " FOR UPDATE",
		hits:    "SELECT rowid FROM fh.search WHERE words @@ ?::tsquery",
		found:   "key = ANY (ARRAY(SELECT rowid FROM fh.search WHERE words @@ ?::tsquery))",
		among:   "coalesce((SELECT words @@ ?::tsquery FROM fh.search WHERE rowid = fh.entries.key), false)",
		steps:   16, // each looks up a row; for many more, PostgreSQL would spend a second on compiling the plan
		words:   "array_to_tsvector(string_to_array(?, ' '))",
		mark:    upsertOf(markColumns),
		put:     upsertOf(putColumns),
		dollars: true,
	},
}

// of returns the FROM clause for entries whose IDs are in a list, the first
// parameter, and whose feed is the result of a query.
func (d *dialect) of(feed string) string { return d.known[0] + feed + d.known[1] }

// every returns a condition true for all rows. PostgreSQL uses a partial index with
// this condition only for queries with it; SQLite needs none.
func (d *dialect) every(condition string) string {
	if !d.dollars {
		return ""
	}
	return " AND " + condition
}

// text returns the database's form of a statement: with the names of our tables,
// and with numbers for parameters if the database needs them. None of our statements
// has a question mark elsewhere.
func (d *dialect) text(query string) string {
	query = strings.ReplaceAll(query, "fh.", d.prefix)
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
	data, _ := json.Marshal(values) // cannot fail for strings and numbers
	return string(data)
}

// all returns a search for entries with all of the words; with prefix, the last one may
// be the beginning of a word.
func (d *dialect) all(words []string, prefix bool) string {
	open, end, any := `"`, `"`, "*"
	between := " "
	if d.dollars {
		open, end, any, between = "'", "'", ":*", " & " // words contain only letters and digits
	}
	text := open + strings.Join(words, end+between+open) + end
	if prefix {
		text += any
	}
	return text
}

// SQLiteDSN returns a data source name for modernc.org/sqlite to open a file as a Store
// requires: each commit is flushed, and other writers are waited for for half a minute.
// The file is created if it does not exist. Nothing is written to an existing file
// before Open has checked whose it is. A new database has pages of 16 KB, in which
// entries leave less space unused than in SQLite's usual 4 KB.
func SQLiteDSN(file string) string {
	return sqliteDSN(file, url.Values{
		"_txlock": {"immediate"},
		"_pragma": {
			"busy_timeout(30000)", "page_size(16384)", "synchronous(FULL)", "foreign_keys(ON)",
			"cache_size(-16000)", "journal_size_limit(67108864)",
		},
	})
}

// SQLiteReaderDSN returns a data source name for modernc.org/sqlite to open a file for
// OpenReader. If the file has a write-ahead log, as it has while others write to it or
// after a kill, SQLite needs the log's index in the same directory, or permission to
// create it there.
//
// Set immutable for a file without a log in a directory where no files can be
// created: SQLite then neither creates nor locks other files, nor looks for
// them. If somebody writes to the database meanwhile, results may be wrong.
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
		path = "/" + path // a drive letter is not a host
	}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: values.Encode()}
	return u.String()
}

// checkPragmas refuses connections that may lose commits or do not check foreign keys.
func checkPragmas(ctx context.Context, db *sql.DB) error {
	for _, p := range []struct{ name, want string }{
		{"journal_mode", "wal"}, {"synchronous", "2"}, {"foreign_keys", "1"},
	} {
		var got string
		if err := db.QueryRowContext(ctx, "PRAGMA "+p.name).Scan(&got); err != nil {
			return err
		}
		if got != p.want {
			return fmt.Errorf("the connection has %s = %s, but needs %s: see SQLiteDSN", p.name, got, p.want)
		}
	}
	return nil
}
