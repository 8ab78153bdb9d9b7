package fleet_test

import (
	"context"
	"log"
	"os/signal"
	"syscall"

	"github.com/feedhistory/feedhistory/fleet"
)

// A worker runs until it gets SIGTERM.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	db, err := fleet.Open(ctx, "postgres://feeds@db.example.org/feeds")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Subscribe(ctx, []string{"https://example.org/feed.atom"}); err != nil {
		log.Fatal(err)
	}
	w := &fleet.Worker{Database: db}
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
