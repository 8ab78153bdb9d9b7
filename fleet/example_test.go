package fleet_test

import (
	"context"
	"fmt"
	"log"
	"os/signal"
	"syscall"

	"github.com/feedhistory/feedhistory/fleet"
)

// A worker runs until it gets SIGTERM. Here it finds no database.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	db, err := fleet.Open(ctx, "postgres://feeds@127.0.0.1:1/feeds")
	if err != nil {
		fmt.Println("there is no database")
		return
	}
	defer db.Close()
	if _, err := db.Subscribe(ctx, []string{"https://example.org/feed.atom"}); err != nil {
		log.Fatal(err)
	}
	w := &fleet.Worker{Database: db}
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: there is no database
}
