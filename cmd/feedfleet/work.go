package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/fleet"
)

// A workCommand is the verb work.
type workCommand struct {
	sharedDatabase
	Listen   terminal.Listen `placeholder:"ADDRESS" help:"Answer at /healthz and, for Prometheus, at /metrics, such as on :8006 (default: do not listen)."`
	Interval time.Duration   `default:"1h" least:"1s" placeholder:"TIME" help:"Time between two polls of a feed, unless the feed asks for more (default: ${default})."`
	Pause    time.Duration   `default:"1s" least:"0s" placeholder:"TIME" help:"Time between two polls at the same host (default: ${default})."`
	Hosts    int             `default:"100" placeholder:"N" help:"Poll N hosts at the same time (default: ${default})."`
	Slice    time.Duration   `default:"2m" least:"1s" placeholder:"TIME" help:"How long a poll may take before its host makes room for others (default: ${default})."`
}

// Help is the text of --help besides the flags.
func (c *workCommand) Help() string {
	return "A worker polls the subscribed feeds, each when it is due, together with all other workers of the database, " +
		"on as many machines as you like. One worker at a time polls a host, one feed after the other. " +
		"You can start, end and kill workers at any time: another continues what one leaves.\n\n" +
		"SIGTERM ends it: polls have 10 seconds to end, and the rest is handed back."
}

// Validate refuses a number of hosts with which nothing could be polled.
func (c *workCommand) Validate() error {
	if c.Hosts < 1 || c.Hosts > 10_000 {
		return errors.New("--hosts: between 1 and 10000")
	}
	return c.sharedDatabase.Validate()
}

// slicedDocuments is how much of a long history is read at a time.
const slicedDocuments = 1000

// Run works until the context ends.
func (c *workCommand) Run(w *command.World) error {
	var listener net.Listener
	if c.Listen != "" {
		var err error
		if listener, err = terminal.ListenAt(c.Listen); err != nil {
			return err
		}
		defer listener.Close()
	}
	db, err := c.await(w)
	if err != nil {
		return err
	}
	defer db.Close()
	level := slog.LevelWarn
	if w.Verbose {
		level = slog.LevelInfo
	}
	log := slog.New(slog.NewTextHandler(w.Stderr, &slog.HandlerOptions{Level: level}))
	worker := &fleet.Worker{
		Database: db, Client: client(w), Every: c.Interval, Pause: c.Pause, Hosts: c.Hosts, Slice: c.Slice, Logger: log,
	}
	if c.Pause == 0 {
		worker.Pause = -1
	}
	if listener == nil {
		w.Tell("at work on " + c.location().Place())
		return worker.Run(w.Ctx)
	}
	return c.listening(w, worker, listener, log)
}

// await opens the database. It waits for a server that is starting, or does not answer
// yet, longer and longer: a worker may have been started before its database.
func (c *workCommand) await(w *command.World) (*fleet.Database, error) {
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		db, err := fleet.Open(w.Ctx, c.DB)
		if err == nil || !isStarting(err) || w.Ctx.Err() != nil {
			return db, c.failure(err)
		}
		w.Tell(c.failure(err).Error() + "; trying again in " + pause.String())
		select {
		case <-w.Ctx.Done():
			return nil, terminal.ErrInterrupted
		case <-time.After(pause):
		}
	}
}

// isStarting reports whether a database may accept connections later: its port is closed,
// or the server is starting up, shutting down or out of connections.
func isStarting(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "57P03" || e.Code == "57P01" || e.Code == "53300"
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// patience is how long a request may take.
const patience = 10 * time.Second

// listening works and answers until the context ends.
func (c *workCommand) listening(w *command.World, worker *fleet.Worker, listener net.Listener, log *slog.Logger) error {
	w.Tell("at work on " + c.location().Place() + "; http://" + terminal.AddressOf(listener) + "/metrics")
	ctx, cancel := context.WithCancel(w.Ctx)
	served := make(chan error, 1)
	go func() {
		defer cancel()
		served <- terminal.Serve(ctx, &http.Server{
			Handler: worker.Handler(), ReadTimeout: patience, WriteTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		}, listener, func() { w.Tell("ending") })
	}()
	err := worker.Run(ctx)
	cancel()
	return errors.Join(err, <-served)
}
