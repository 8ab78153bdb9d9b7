package main

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/feedhistory/feedhistory/fleet"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// The flag of all verbs.
type database struct {
	DB string `name:"db" env:"FEEDHISTORY_DB" required:"" placeholder:"URL" help:"The PostgreSQL database that the workers share: postgres://USER@HOST/NAME."`
}

// open opens the database.
func (d *database) open(w *world) (*fleet.Database, error) {
	if !strings.HasPrefix(d.DB, "postgres://") && !strings.HasPrefix(d.DB, "postgresql://") {
		return nil, usageError("--db: workers share a PostgreSQL database: postgres://USER@HOST/NAME; for other ones there is feedhistory sync")
	}
	db, err := fleet.Open(w.ctx, d.DB)
	if err != nil {
		return nil, d.failure(err)
	}
	return db, nil
}

// name is the database for people: without a password.
func (d *database) name() string {
	if u, err := url.Parse(d.DB); err == nil {
		return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	}
	return "the PostgreSQL database"
}

// failure says what is wrong with the database, if the error is its own.
func (d *database) failure(err error) error {
	what := ""
	switch {
	case errors.Is(err, sqlstore.ErrForeign):
		what = "this is another program's database, and has been left as it was"
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		what = problem(e)
	} else if e, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		what = "this is no URL of a PostgreSQL database"
		if why := errors.Unwrap(e); why != nil {
			what += ": " + why.Error() // the error's own text has the URL
		}
	} else if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		what = "the server cannot be reached"
		if e, ok := errors.AsType[*net.OpError](err); ok {
			what += ": " + e.Err.Error()
		}
		what += "; is it running, and is the address right?"
	}
	if what == "" {
		return err
	}
	return errors.New(d.name() + ": " + what)
}

// problem says what the server finds wrong.
func problem(e *pgconn.PgError) string {
	switch e.Code {
	case "53100":
		return "the server's disk is full; nothing that was stored is lost: make room, and go on"
	case "28P01", "28000":
		return "the server refuses the user or the password"
	case "3D000":
		return "there is no such database on the server; createdb makes one"
	case "42501":
		return "the user has no right to do this: " + e.Message
	}
	return e.Message
}
