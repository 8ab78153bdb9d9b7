package pgxtx_test

import (
	"context"
	"crypto/sha256"
	"log"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/feedhistory/feedhistory/mirror/sqlstore"
	"github.com/feedhistory/feedhistory/mirror/sqlstore/pgxtx"
)

// A program's own table follows the mirror, by the pool that the program uses anyway.
func ExampleHook() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://localhost/feeds")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := pool.Exec(ctx, createArticles); err != nil {
		log.Fatal(err)
	}
	store, err := sqlstore.Open(ctx, stdlib.OpenDBFromPool(pool), sqlstore.PostgreSQL)
	if err != nil {
		log.Fatal(err)
	}
	store.Hook = pgxtx.Hook(keepArticles)
}

// The digest of an ID, unlike the ID itself, is never too long for an index.
const createArticles = `CREATE TABLE IF NOT EXISTS articles
	(feed text, digest bytea, id text, title text, PRIMARY KEY (feed, digest))`

// keepArticles makes the changes of a commit to the table articles, too.
func keepArticles(ctx context.Context, tx pgx.Tx, d *sqlstore.Delta) error {
	var b pgx.Batch
	switch {
	case d.Removed:
		b.Queue("DELETE FROM articles WHERE feed = $1", d.Feed.URL)
	case d.From != "":
		b.Queue("UPDATE articles SET feed = $1 WHERE feed = $2", d.Feed.URL, d.From)
	}
	for _, r := range d.Deleted {
		b.Queue("DELETE FROM articles WHERE feed = $1 AND digest = $2", d.Feed.URL, digest(r.ID))
	}
	for _, r := range slices.Concat(d.Added, d.Changed) {
		b.Queue("INSERT INTO articles VALUES ($1, $2, $3, $4) ON CONFLICT (feed, digest) DO UPDATE SET title = excluded.title",
			d.Feed.URL, digest(r.ID), clean(r.ID), clean(r.Content.Title))
	}
	return tx.SendBatch(ctx, &b).Close()
}

func digest(id string) []byte {
	sum := sha256.Sum256([]byte(id))
	return sum[:]
}

// clean returns a text without U+0000, which PostgreSQL refuses.
func clean(text string) string { return strings.ReplaceAll(text, "\x00", "") }
