package collection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/harvest/atompmh"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// A Pooled is a collection produced from a database.
type Pooled struct {
	*Production
	pool     *pool
	store    *database.Store
	isLoaded atomic.Bool
}

// OpenPool opens the collection's database.
func (c *Production) OpenPool(w *command.World) (*Pooled, error) {
	store, err := (&database.Location{DB: c.DB}).Create(w)
	if err != nil {
		return nil, err
	}
	if c.Listen == "" {
		oneCache(store)
	}
	p, err := openPool(w.Ctx, store, c.Protocol)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	p.historical = c.Historical
	d := &Pooled{Production: c, pool: p, store: store}
	d.isLoaded.Store(p.loaded())
	return d, nil
}

// Close closes the database.
func (d *Pooled) Close() error { return d.store.Close() }

// Load adds the lines to the database. An exit status says some of them must wait for their
// time.
func (d *Pooled) Load(w *command.World) error {
	var err error
	if d.Protocol == AtomPMH {
		err = d.loadRecords(w)
	} else {
		err = d.loadEntries(w)
	}
	if err == nil {
		err = d.pool.end(w.Ctx)
	}
	if err != nil {
		return err
	}
	d.isLoaded.Store(true)
	if waiting := d.pool.future; len(waiting) > 0 {
		w.Say("not published, because the time is still to come: record " + strings.Join(waiting[:min(len(waiting), mostLate)], "; "))
		return exit.StatusError(exit.Partial)
	}
	return nil
}

// loadRecords loads metadata records.
func (d *Pooled) loadRecords(w *command.World) error {
	for line, err := range schema.Lines[Change](w.Stdin) {
		if err != nil {
			return err
		}
		it, err := itemOf(line)
		if err != nil {
			return err
		}
		e, err := it.Entry()
		if err != nil {
			return err
		}
		if err := d.pool.add(w.Ctx, poolItem{it.ID, it.Modified.UTC(), it.Deleted, e}); err != nil {
			return err
		}
	}
	return nil
}

// loadEntries loads the entries of a collection.
func (d *Pooled) loadEntries(w *command.World) error {
	for line, err := range schema.Lines[rangeEntry](w.Stdin) {
		if err != nil {
			return err
		}
		if line.Line == nil {
			continue
		}
		item, err := rangeLine(line.Line)
		if err != nil {
			return err
		}
		if err := d.pool.add(w.Ctx, item); err != nil {
			return err
		}
	}
	return nil
}

// A rangeEntry is a line as publish.Lines reads it, except that an ID may occur again: the pool
// knows which states it has. Line is nil if the line is not about an entry.
type rangeEntry struct{ *publish.Line }

// UnmarshalJSON implements json.Unmarshaler.
func (e *rangeEntry) UnmarshalJSON(data []byte) (err error) {
	e.Line, err = publish.ReadLine(data)
	return err
}

func rangeLine(line *publish.Line) (item poolItem, err error) {
	if item.id, item.deleted = line.ID, line.Deleted.Deleted; !item.deleted {
		item.entry, err = line.Entry()
	} else if item.at = line.Deleted.When.UTC(); item.at.IsZero() {
		return item, fmt.Errorf("the deletion of %q has no time", line.ID)
	} else {
		item.entry, err = feedhistory.Draft{ID: line.ID, Updated: item.at}.Entry()
	}
	if err != nil {
		return item, fmt.Errorf("the entry %q: %w", line.ID, err)
	}
	item.at = modifiedrange.StampOf(item.entry).UTC()
	return item, nil
}

// Handler serves the collection: each answer is made from the database, as other processes
// may have changed it meanwhile.
func (d *Pooled) Handler(w *command.World, log *slog.Logger) http.Handler {
	var served http.Handler
	if d.Protocol == AtomPMH {
		h := &atompmh.Handler{URL: strings.TrimSuffix(d.Base, "/") + "/feed.atom", Size: d.Size, Logger: log, Items: d.records}
		if d.Title != "" {
			h.Head = &feedhistory.Document{Title: d.Title}
		}
		w.Tell("the feed: " + h.URL)
		mux := http.NewServeMux()
		mux.Handle("/feed.atom", h)
		served = mux
	} else {
		w.Tell("the collection: " + d.Base)
		served = &modifiedrange.Handler{
			Limit: d.Size, Head: &feedhistory.Document{ID: d.Base, Title: cmp.Or(d.Title, d.Base)}, Logger: log,
			Items: d.entries, Now: func() time.Time { return d.pool.clock(w.Ctx) },
		}
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !d.isLoaded.Load() {
			rw.Header().Set("Retry-After", "10")
			http.Error(rw, "the collection is being loaded", http.StatusServiceUnavailable)
			return
		}
		served.ServeHTTP(rw, r)
	})
}

// records is the Query of an atompmh.Handler.
func (d *Pooled) records(ctx context.Context, start, end time.Time, limit int) (items []atompmh.Item, err error) {
	return pooled(ctx, d.pool, start, end, limit, func(r *mirror.Record) (atompmh.Item, error) {
		it := atompmh.Item{ID: r.ID, Modified: r.Time(), Title: r.Content.Title, Deleted: r.State != mirror.Live}
		e, err := r.Entry()
		if err == nil {
			it.Representations = atompmh.RepresentationsOf(e)
		}
		return it, err
	})
}

// entries is the Query of a modifiedrange.Handler.
func (d *Pooled) entries(ctx context.Context, start, end time.Time, limit int) ([]modifiedrange.Item, error) {
	return pooled(ctx, d.pool, start, end, limit, func(r *mirror.Record) (modifiedrange.Item, error) {
		if r.State != mirror.Live {
			return modifiedrange.Item{Modified: r.Time(), Deleted: r.ID}, nil
		}
		e, err := r.Entry()
		return modifiedrange.Item{Modified: r.Time(), Entry: e}, err
	})
}

func pooled[T any](ctx context.Context, p *pool, start, end time.Time, limit int, item func(*mirror.Record) (T, error)) ([]T, error) {
	records, err := p.records(ctx, start, end, limit)
	items := make([]T, 0, len(records))
	for _, r := range records {
		if err == nil {
			var it T
			it, err = item(r)
			items = append(items, it)
		}
	}
	return items, err
}
