package collection

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/syncing"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/harvest/datareplication"
	"github.com/feedhistory/feedhistory/mirror"
)

// Keep harvests into a mirror, which records how far the harvest has come.
func (c *Source) Keep(w *command.World) error {
	spareMemory()
	db := &database.Location{DB: c.DB}
	store, err := db.Create(w)
	if err != nil {
		return err
	}
	defer store.Close()
	oneCache(store)
	if c.Fields != nil { // so the history server does not show the collection to others
		keys, err := db.Keyring()
		if err != nil {
			return err
		}
		if err := keys.Set(map[string]http.Header{c.URL: {}}); err != nil {
			return err
		}
	}
	m := &mirror.Mirror{Store: store, Quota: c.Limits()}
	var changes *mirror.Report
	switch c.Protocol {
	case AtomPMH:
		changes, err = c.harvester(w).Keep(w.Ctx, m)
	case DataReplication:
		changes, err = c.replicationClient(w).Keep(w.Ctx, m, c.resources())
	default:
		changes, err = c.rangeClient(w).Keep(w.Ctx, m)
	}
	if err == nil {
		err = c.unpolled(w.Ctx, store)
	}
	if err == nil {
		err = store.Index(w.Ctx)
	}
	if err != nil {
		return c.keepFailure(db, err)
	}
	return c.kept(w, changes)
}

// oneCache bounds the memory of a store used by one goroutine: each connection has a cache.
func oneCache(store *database.Store) {
	store.DB.SetMaxOpenConns(1)
	_, _ = store.DB.Exec("PRAGMA cache_size=-4000")
}

// unpolled marks the feed as one sync does not poll.
func (c *Source) unpolled(ctx context.Context, store mirror.Store) error {
	f, err := store.Feed(ctx, c.URL)
	if err != nil || database.IsHarvested(f) {
		return err
	}
	f.Next = database.Never
	return store.Commit(ctx, &mirror.Commit{Feed: f})
}

// keepFailure says why the harvest failed.
func (c *Source) keepFailure(db *database.Location, err error) error {
	switch {
	case ReplicationAdvice(err) != "" || errors.As(err, new(*datareplication.PageError)):
		return c.replicationFailure(err)
	case isOfRequest(err):
		return explain.Failure(c.URL, err)
	}
	return db.Failure(err)
}

// isOfRequest reports whether a request or a document caused an error, rather than the
// store.
func isOfRequest(err error) bool {
	return errors.As(err, new(*feedhistory.StatusError)) || errors.As(err, new(*feedhistory.RefusedError)) ||
		errors.As(err, new(*feedhistory.ParseError)) || explain.Remedy(err) != ""
}

// resources returns how to find out which resource an entity is about.
func (c *Source) resources() (of datareplication.Resources) {
	if c.Key == "" {
		return of
	}
	of.Key = func(e *datareplication.Entity) (string, error) {
		if key := strings.TrimSpace(e.Header.Get(c.Key)); key != "" {
			return key, nil
		}
		return "", errors.New("it has no header field " + c.Key + "; try another --key")
	}
	return of
}

// kept reports the outcome of the harvest: with --json on standard output, and always
// as text on standard error.
func (c *Source) kept(w *command.World, changes *mirror.Report) error {
	o := syncing.Outcome{PollResult: mirror.PollResult{URL: c.URL, Report: changes}, Verb: "harvest"}
	changes.Next = time.Time{} // there is no next poll
	if c.JSON {
		if err := terminal.WriteJSON(w.Stdout, o.JSON(changes)); err != nil {
			return err
		}
	}
	p, missing := terminal.NewPage(w.Asides()), terminal.NewPage(w.Stderr)
	p.Line(terminal.Clean(o.Text(changes)))
	for _, g := range changes.Gaps {
		showHarvestGap(missing, g, HarvestAdvice(g))
	}
	if status := o.Status(); status != exit.OK {
		return exit.StatusError(status)
	}
	return nil
}
