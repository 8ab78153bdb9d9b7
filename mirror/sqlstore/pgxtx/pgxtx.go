// Package pgxtx lets a sqlstore.Hook write by pgx's own interface, such as code made by sqlc
// for pgx, or a queue that takes a pgx.Tx, in the transaction of each commit.
package pgxtx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// errStores is the error of Commit and Rollback of a Hook's transaction: it is the store's.
var errStores = errors.New("pgxtx: the transaction is the store's; return an error to roll it back")

// Hook returns a sqlstore.Hook calling do with the transaction of the commit. The
// store's database must be one of pgx: open it by stdlib.OpenDBFromPool, for instance. do
// must not keep tx, and ends a transaction that it begins in it. The Commit and Rollback of
// tx are errors, because it is the store's: an error of do rolls it back. tx has no large
// objects. If do is nil, each commit is an error.
func Hook(do func(ctx context.Context, tx pgx.Tx, d *sqlstore.Delta) error) sqlstore.Hook {
	return func(ctx context.Context, _ *sql.Tx, d *sqlstore.Delta) error {
		if do == nil {
			return errors.New("pgxtx: Hook: the function is nil")
		}
		next, stop := iter.Pull2(lend(d.Conn()))
		defer stop()
		conn, err, _ := next()
		if err != nil {
			return err
		}
		return do(ctx, &outer{conn}, d)
	}
}

// lend yields the connection of pgx, and locks it meanwhile against a rollback by database/sql.
// Through a sequence, Raw sees no panic of its user: it would wait for the transaction to end.
func lend(conn *sql.Conn) iter.Seq2[*pgx.Conn, error] {
	return func(yield func(*pgx.Conn, error) bool) {
		err := conn.Raw(func(conn any) error {
			c, ok := conn.(*stdlib.Conn)
			if !ok {
				return fmt.Errorf("pgxtx: the driver of the store's database is not pgx: its connection is a %T", conn)
			}
			yield(c.Conn(), nil)
			return nil
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

// An outer is the store's transaction.
type outer struct{ *connection }

type connection = pgx.Conn // another name for it, because pgx.Tx has a method Conn

// Begin begins a part to be committed or rolled back alone.
func (t *outer) Begin(ctx context.Context) (pgx.Tx, error) {
	if _, err := t.Exec(ctx, "SAVEPOINT hook"); err != nil {
		return nil, err
	}
	return &inner{outer: t}, nil
}

// Commit returns an error.
func (t *outer) Commit(context.Context) error { return errStores }

// Rollback returns an error.
func (t *outer) Rollback(context.Context) error { return errStores }

// LargeObjects returns no usable value.
func (t *outer) LargeObjects() pgx.LargeObjects { return pgx.LargeObjects{} }

// Conn returns the connection.
func (t *outer) Conn() *pgx.Conn { return t.connection }

// An inner is a part of the store's transaction. PostgreSQL finds the latest savepoint of
// the name.
type inner struct {
	*outer
	ended bool
}

// Commit ends the part.
func (t *inner) Commit(ctx context.Context) error { return t.end(ctx, "RELEASE SAVEPOINT hook") }

// Rollback undoes the part.
func (t *inner) Rollback(ctx context.Context) error {
	return t.end(ctx, "ROLLBACK TO SAVEPOINT hook; RELEASE SAVEPOINT hook")
}

func (t *inner) end(ctx context.Context, query string) error {
	if t.ended {
		return pgx.ErrTxClosed
	}
	t.ended = true
	_, err := t.Exec(ctx, query)
	return err
}
