package pgxtx_test

import (
	"context"
	"log"

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
	store, err := sqlstore.Open(ctx, stdlib.OpenDBFromPool(pool), sqlstore.PostgreSQL)
	if err != nil {
		log.Fatal(err)
	}
	store.Hook = pgxtx.Hook(func(ctx context.Context, tx pgx.Tx, d *sqlstore.Delta) error {
		for _, r := range append(d.Added, d.Changed...) {
			if _, err := tx.Exec(ctx, "INSERT INTO articles VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET title = $2", r.ID, r.Content.Title); err != nil {
				return err
			}
		}
		return nil
	})
}
