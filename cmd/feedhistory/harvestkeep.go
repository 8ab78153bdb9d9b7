package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest/datareplication"
	"github.com/feedhistory/feedhistory/mirror"
)

// keep harvests into a mirror, which records how far the harvest has come.
func (c *harvestCommand) keep(w *world) error {
	db := &database{DB: c.DB}
	store, err := db.create(w)
	if err != nil {
		return err
	}
	defer store.Close()
	if c.fields != nil { // the history server is not to show it to others
		keys, err := db.keyring()
		if err != nil {
			return err
		}
		if err := keys.set(map[string]http.Header{c.URL: {}}); err != nil {
			return err
		}
	}
	m := &mirror.Mirror{Store: store}
	var changes *mirror.Changes
	switch c.Protocol {
	case atomPMH:
		changes, err = c.harvester(w).Keep(w.ctx, m)
	case dataReplication:
		changes, err = c.replicationClient(w).Keep(w.ctx, m, c.resources())
	default:
		changes, err = c.rangeClient(w).Keep(w.ctx, m)
	}
	if err == nil {
		err = c.unpolled(w.ctx, store)
	}
	if err == nil {
		err = store.Index(w.ctx)
	}
	if err != nil {
		return c.keepFailure(db, err)
	}
	return c.kept(w, changes)
}

// never is the time of the next poll of a harvested feed: most collections have
// nothing to poll.
var never = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

func isHarvested(f *mirror.Feed) bool { return f.Next.Equal(never) }

// unpolled keeps sync from polling the feed.
func (c *harvestCommand) unpolled(ctx context.Context, store mirror.Store) error {
	f, err := store.Feed(ctx, c.URL)
	if err != nil || isHarvested(f) {
		return err
	}
	f.Next = never
	return store.Commit(ctx, &mirror.Change{Feed: f})
}

// keepFailure says why nothing was harvested, or not all.
func (c *harvestCommand) keepFailure(db *database, err error) error {
	switch {
	case replicationAdvice(err) != "" || errors.As(err, new(*datareplication.PageError)):
		return c.replicationFailure(err)
	case isOfRequest(err):
		return failure(c.URL, err)
	}
	return db.failure(err)
}

// isOfRequest reports whether an error is that of a request or of a document,
// rather than the store's.
func isOfRequest(err error) bool {
	return errors.As(err, new(*feedhistory.StatusError)) || errors.As(err, new(*feedhistory.RefusedError)) ||
		errors.As(err, new(*feedhistory.ParseError)) || remedy(err) != ""
}

// resources say which resource an entity is about.
func (c *harvestCommand) resources() (of datareplication.Resources) {
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

// kept reports what the harvest brought, on standard output as JSON and on standard
// error as text.
func (c *harvestCommand) kept(w *world, changes *mirror.Changes) error {
	o := outcome{Polled: mirror.Polled{URL: c.URL, Changes: changes}}
	changes.Next = time.Time{} // there is no next poll
	if c.JSON {
		if err := printLine(w.stdout, o.json(changes)); err != nil {
			return err
		}
	}
	p, missing := newPage(w.Asides()), newPage(w.Stderr)
	p.Line(clean(o.text(changes)))
	for _, g := range changes.Gaps {
		missing.harvestGap(g)
	}
	if status := o.status(); status != exitOK {
		return statusError(status)
	}
	return nil
}
