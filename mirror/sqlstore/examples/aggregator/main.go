// Aggregator keeps the whole history of feeds in its own SQL tables. It may be
// killed at any moment: the next run continues where it was.
//
//	go run ./mirror/sqlstore/examples/aggregator feeds.db [URL ...]
//
// Copy it to begin an aggregator. Package mirror does the same for any store,
// and more: it follows feeds that move, requests each when it is due, and
// requests documents that stay missing less often.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"

	_ "modernc.org/sqlite"

	"github.com/feedhistory/feedhistory"
)

func main() {
	if len(os.Args) < 2 {
		log.Fatal("usage: aggregator DATABASE [URL ...]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	db, err := open(ctx, os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	var client feedhistory.Client // one for all feeds, so that it is polite to hosts
	for _, url := range os.Args[2:] {
		history, err := update(ctx, db, &client, url)
		if err != nil {
			log.Printf("%s: %v", url, err)
			continue
		}
		fmt.Println(url, history.Verdict())
		for _, gap := range history.Gaps {
			fmt.Println("  missing:", gap, "what to do:", gap.Reason.Advice())
		}
	}
	if err := list(ctx, os.Stdout, db); err != nil {
		log.Fatal(err)
	}
}

// open opens the database, and creates it if it does not exist.
func open(ctx context.Context, name string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+name+"?_pragma=journal_mode(wal)&_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, schema); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

// list prints the twenty newest entries.
func list(ctx context.Context, w io.Writer, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, `SELECT date(updated / 1000000, 'unixepoch'), title FROM entries
		WHERE NOT deleted ORDER BY updated DESC LIMIT 20`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var date, title string
		if err := rows.Scan(&date, &title); err != nil {
			return err
		}
		fmt.Fprintln(w, date, title)
	}
	return rows.Err()
}
