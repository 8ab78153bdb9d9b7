package sqlstore

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory/mirror"
)

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

// query returns the query for the rows of a table.
func (t *checkedTable) query() string {
	columns := []string{t.place}
	if t.prefix != "" {
		columns = append(columns, t.prefix)
	}
	for _, g := range t.groups {
		columns = append(columns, g[0], g[1])
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM fh." + t.name
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
		case int64(0):
			r.sealed = false
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

// row checks a row of a table.
func (c *checker) row(t *checkedTable, r *checkedRow) {
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
	c.Pending += int64(len(f.Pending))
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
	_ = formatColumn{&r.Content.Format}.Scan(values[0]) // it has no error
	switch r.Content.Format {
	case 0:
		return r, ""
	case unknownFormat:
		return r, "its format is unknown"
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
