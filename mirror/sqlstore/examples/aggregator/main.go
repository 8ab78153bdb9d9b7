// Aggregator keeps the titles of feeds' whole histories in a table of its own, beside the
// mirror. It may be killed at any moment: both agree, and the next run continues.
//
//	go run ./mirror/sqlstore/examples/aggregator feeds.db [URL ...]
package main

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"os/signal"

	_ "modernc.org/sqlite"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

func main() {
	if len(os.Args) < 2 {
		log.Fatal("usage: aggregator DATABASE [URL ...]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	db, err := sql.Open("sqlite", sqlstore.SQLiteDSN(os.Args[1]))
	if err == nil {
		err = run(ctx, db, &feedhistory.Client{}, os.Args[2:])
	}
	if err := cmp.Or(err, db.Close()); err != nil {
		log.Fatal(err)
	}
}

// run brings the feeds up to date, and prints how complete each is.
func run(ctx context.Context, db *sql.DB, client *feedhistory.Client, urls []string) error {
	_, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS articles (feed TEXT, id TEXT, title TEXT, time TEXT, PRIMARY KEY (feed, id))")
	if err != nil {
		return err
	}
	store, err := sqlstore.Open(ctx, db, sqlstore.SQLite)
	if err != nil {
		return err
	}
	store.Hook = keepArticles
	m := mirror.Mirror{Store: store, Client: client} // one for all feeds, to be polite to hosts
	for _, url := range urls {
		changes, err := m.Update(ctx, url)
		if err != nil {
			return err
		}
		fmt.Println(url, changes.Verdict, "added", changes.Added, "gaps", changes.Gaps)
	}
	return nil
}

// keepArticles makes the changes of a commit to the table articles, too.
func keepArticles(ctx context.Context, tx *sql.Tx, d *sqlstore.Delta) error {
	for _, r := range d.Deleted {
		if _, err := tx.ExecContext(ctx, "DELETE FROM articles WHERE feed = ? AND id = ?", d.Feed.URL, r.ID); err != nil {
			return err
		}
	}
	for _, r := range append(d.Added, d.Changed...) {
		_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO articles VALUES (?, ?, ?, ?)", d.Feed.URL, r.ID, r.Content.Title, r.Time())
		if err != nil {
			return err
		}
	}
	return nil
}
