package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	db, err := sql.Open("sqlite", sqlstore.SQLiteDSN(filepath.Join(dir, "feeds.db")))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	store, err := sqlstore.Open(ctx, db, sqlstore.SQLite)
	if err != nil {
		log.Fatal(err)
	}

	m := mirror.Mirror{Store: store}
	changes, err := m.Update(ctx, "https://feeds.invalid/feed.atom")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(changes.Verdict, changes.Failure != nil)
	// Output: partial true
}

// PostgreSQL needs its driver: import _ "github.com/jackc/pgx/v5/stdlib". Here no server
// answers.
func ExampleOpen_postgreSQL() {
	db, err := sql.Open("pgx", "postgres://127.0.0.1:1/feeds")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	store, err := sqlstore.Open(context.Background(), db, sqlstore.PostgreSQL)
	if err != nil {
		fmt.Println("the store cannot be opened")
		return
	}
	for feed, err := range store.Feeds(context.Background(), mirror.FeedQuery{Limit: 10}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(feed.URL, feed.Verdict, feed.Entries)
	}
	// Output: the store cannot be opened
}
