package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"hash/maphash"
	"slices"
)

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
		for _, url := range c.urls { // whose is unknown
			c.refetch[url] = true
		}
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
	if c.index = different > 0 || err != nil; different > 0 {
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
