// Aggregator keeps the titles of feeds' whole histories in a table of its own, beside the
// mirror. It may be killed at any moment: both agree, and the next run continues.
//
//	go run ./mirror/sqlstore/examples/aggregator feeds.db [URL ...]
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"

	_ "modernc.org/sqlite"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

func main() {
	db, err := sql.Open("sqlite", sqlstore.SQLiteDSN(os.Args[1]))
	if err == nil {
		err = run(context.Background(), db, &feedhistory.Client{}, os.Args[2:])
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run brings the feeds up to date, and prints how complete each is.
func run(ctx context.Context, db *sql.DB, client *feedhistory.Client, urls []string) error {
	store, err := sqlstore.Open(ctx, db, sqlstore.SQLite)
	if err != nil {
		return err
	}
	store.Hook = keepArticles
	m := mirror.Mirror{Store: store, Client: client} // one for all feeds, to be polite to hosts
	_, err = db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS articles (feed TEXT, id TEXT, title TEXT, time TEXT, PRIMARY KEY (feed, id))")
	for i := 0; err == nil && i < len(urls); i++ {
		var report *mirror.Report
		if report, err = m.Update(ctx, urls[i]); err == nil {
			fmt.Println(urls[i], report.Feed.Verdict, "added", report.Added, "gaps", report.Feed.Ledger.Gaps())
			if report.Failure != nil {
				fmt.Println(report.Failure) // the next run polls the feed again
			}
		}
	}
	return err
}

// keepArticles makes the changes of a commit to the table articles, too.
func keepArticles(ctx context.Context, tx *sql.Tx, d *sqlstore.Delta) (err error) {
	exec := func(query string, args ...any) {
		_, failed := tx.ExecContext(ctx, query, args...)
		err = errors.Join(err, failed)
	}
	switch {
	case d.Removed:
		exec("DELETE FROM articles WHERE feed = ?", d.Feed.URL)
	case d.From != "":
		exec("UPDATE articles SET feed = ? WHERE feed = ?", d.Feed.URL, d.From)
	}
	for _, r := range d.Deleted {
		exec("DELETE FROM articles WHERE feed = ? AND id = ?", d.Feed.URL, r.ID)
	}
	for _, r := range slices.Concat(d.Added, d.Changed) {
		exec("INSERT OR REPLACE INTO articles VALUES (?, ?, ?, ?)", d.Feed.URL, r.ID, r.Content.Title, r.Time().UTC())
	}
	return err
}
