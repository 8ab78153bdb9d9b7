package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/fleet"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// A database is the flag common to all verbs.
type database struct {
	DB string `name:"db" env:"FEEDHISTORY_DB" required:"" placeholder:"URL" help:"The PostgreSQL database that the workers share: postgres://USER@HOST/NAME."`
}

// Validate refuses anything but the URL of a PostgreSQL database.
func (d *database) Validate() error {
	if !show.IsPostgres(d.DB) {
		return errors.New("--db: workers share a PostgreSQL database: postgres://USER@HOST/NAME; for other databases, use feedhistory sync")
	}
	return nil
}

// open opens the database.
func (d *database) open(w *world) (*fleet.Database, error) {
	db, err := fleet.Open(w.ctx, d.DB)
	if err != nil {
		return nil, d.failure(err)
	}
	return db, nil
}

// name is the database for people: without a password.
func (d *database) name() string {
	return show.PostgresName(d.DB)
}

// failure describes the fault of the database, if the error is its own.
func (d *database) failure(err error) error {
	what := ""
	switch {
	case errors.Is(err, sqlstore.ErrForeign):
		what = "another program has tables with the names of ours in the schema feedhistory; nothing was changed"
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		what = show.PostgresProblem(e.Code, e.Message)
	} else if e, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		what = show.PostgresMalformed(e)
	} else if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		what = show.PostgresUnreachable(err)
	}
	if what == "" {
		return err
	}
	return errors.New(d.name() + ": " + what)
}
