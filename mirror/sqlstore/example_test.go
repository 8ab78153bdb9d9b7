package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
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
	report, err := m.Update(ctx, "https://feeds.invalid/feed.atom")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Feed.Verdict, report.Failure != nil)
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

// A program that only shows feeds cannot change them.
func ExampleOpenReader() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "feeds.db")
	writer, err := sql.Open("sqlite", sqlstore.SQLiteDSN(file))
	if err != nil {
		log.Fatal(err)
	}
	defer writer.Close()
	if _, err := sqlstore.Open(ctx, writer, sqlstore.SQLite); err != nil {
		log.Fatal(err)
	}

	db, err := sql.Open("sqlite", sqlstore.SQLiteReaderDSN(file, false))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	store, err := sqlstore.OpenReader(ctx, db, sqlstore.SQLite)
	if err != nil {
		log.Fatal(err)
	}
	err = store.Commit(ctx, &mirror.Commit{Feed: mirror.NewFeed("https://example.org/feed.atom")})
	fmt.Println(errors.Is(err, sqlstore.ErrReadOnly))
	// Output: true
}

// What is sound in a damaged file goes into a new one, and the feeds concerned are read again.
func ExampleStore_Repair() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	stores := make([]*sqlstore.Store, 2)
	for i, file := range []string{"feeds.db", "new.db"} {
		db, err := sql.Open("sqlite", sqlstore.SQLiteDSN(filepath.Join(dir, file)))
		if err != nil {
			log.Fatal(err)
		}
		defer db.Close()
		if stores[i], err = sqlstore.Open(ctx, db, sqlstore.SQLite); err != nil {
			log.Fatal(err)
		}
	}
	damaged, repaired := stores[0], stores[1]
	found, err := damaged.Check(ctx)
	if err != nil {
		log.Fatal(err)
	}
	feeds, err := damaged.Repair(ctx, repaired)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(found.Damages), "damages,", len(feeds), "feeds to update")
	// Output: 0 damages, 0 feeds to update
}
