package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest/atompmh"
	"github.com/feedhistory/feedhistory/harvest/datareplication"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
	"github.com/feedhistory/feedhistory/publish"
)

// producePMH publishes metadata records.
func (c *produceCommand) producePMH(w *world, log *slog.Logger) (handler http.Handler, waiting, err error) {
	var items []atompmh.Item
	for line, err := range jsonLines[jsonChange](w.stdin) {
		if err != nil {
			return nil, nil, err
		}
		item, err := itemOf(line)
		if err != nil {
			return nil, nil, err
		}
		items = append(items, item)
	}
	if len(items) == 0 && c.Deletions == "absence" {
		return nil, nil, errors.New("the input has no record: publishing none would delete all")
	}
	p := &atompmh.Producer{
		Output: publish.Dir{Path: c.Out}, Base: c.Base, Settle: c.Settle, Split: feedhistory.Split{Size: c.Size},
		Pool: func(_ context.Context, since time.Time) iter.Seq2[atompmh.Item, error] {
			return func(yield func(atompmh.Item, error) bool) {
				for _, item := range items {
					if !item.Modified.Before(since) && !yield(item, nil) {
						return
					}
				}
			}
		},
	}
	if c.Deletions == "absence" {
		p.Deletions = atompmh.ByAbsence
	}
	if c.Title != "" {
		p.Head = &feedhistory.Document{Title: c.Title}
	}
	err = p.Update(w.ctx)
	if only := onlyFuture(err); only != "" {
		w.Say(only)
		waiting, err = statusError(exitPartial), nil
	}
	if err != nil {
		return nil, nil, err
	}
	w.Tell("the feed: " + p.URL())
	return &publish.Handler{FS: rootFS(c.Out), Logger: log}, waiting, nil
}

// onlyFuture says which records have a time in the future; "" if something else is wrong,
// too.
func onlyFuture(err error) string {
	if !errors.Is(err, atompmh.ErrFuture) || errors.Is(err, atompmh.ErrLate) || errors.Is(err, atompmh.ErrSameTime) || errors.Is(err, atompmh.ErrRecord) {
		return ""
	}
	return "not published yet: " + strings.ReplaceAll(err.Error(), "\n", "; ")
}

// itemOf returns the record that a line describes as harvest prints it.
func itemOf(line jsonChange) (item atompmh.Item, err error) {
	item = atompmh.Item{ID: line.ID, Title: line.Title, Deleted: line.Kind == atompmh.Deleted.String()}
	if line.Kind != "" && line.Kind != atompmh.Record.String() && !item.Deleted {
		return item, fmt.Errorf("the record %q is of the kind %q: neither record nor deleted", line.ID, line.Kind)
	}
	if item.Modified, err = time.Parse(time.RFC3339, line.Time); err != nil {
		return item, fmt.Errorf("the record %q: time is not a time such as 2003-12-13T18:30:02Z: %q", line.ID, line.Time)
	}
	for _, r := range line.Representations {
		item.Representations = append(item.Representations, atompmh.Representation(r))
	}
	return item, nil
}

// A jsonResource is an entity as harvest prints it, with further header fields.
type jsonResource struct {
	jsonEntity
	Header map[string]string `json:"header"`
}

func (j jsonResource) entity() datareplication.Entity {
	e := datareplication.Entity{
		ContentID: j.ID, Operation: datareplication.Operation(strings.ToUpper(j.Operation)), Type: j.Type, Body: j.Base64,
	}
	if j.Base64 == nil {
		e.Body = []byte(j.Body)
	}
	for name, value := range j.Header {
		if e.Header == nil {
			e.Header = textproto.MIMEHeader{}
		}
		e.Header.Set(name, value)
	}
	return e
}

// produceReplication appends entities, or makes a snapshot.
func (c *produceCommand) produceReplication(w *world, log *slog.Logger) (http.Handler, error) {
	p := &datareplication.Producer{Output: publish.Dir{Path: c.Out}, PageSize: int64(c.PageSize)}
	lines := jsonLines[jsonResource](w.stdin)
	var err error
	if c.Snapshot {
		err = p.Snapshot(w.ctx, func(yield func(datareplication.Entity, error) bool) {
			for line, err := range lines {
				if !yield(line.entity(), err) {
					return
				}
			}
		})
	} else {
		var all []datareplication.Entity
		for line, err := range lines {
			if err != nil {
				return nil, err
			}
			all = append(all, line.entity())
		}
		err = p.Append(w.ctx, all...)
	}
	if err != nil {
		return nil, err
	}
	if c.Base != "" {
		w.Tell("the feed: " + c.Base)
	}
	if created, err := p.LastSnapshot(); err == nil && !created.IsZero() && c.Base != "" {
		w.Tell("the snapshot: " + strings.TrimSuffix(c.Base, "/") + "/snapshot")
	}
	return &datareplication.Handler{FS: publish.Dir{Path: c.Out}, Base: c.Base, Logger: log}, nil
}

// produceRange returns a handler that serves the lines as a collection in memory.
func (c *produceCommand) produceRange(w *world, log *slog.Logger) (http.Handler, error) {
	var items []modifiedrange.Item
	for record, err := range publish.JSONEntries(w.stdin) {
		if err != nil {
			return nil, err
		}
		item := modifiedrange.Item{Modified: record.Deleted.When, Deleted: record.ID}
		if !record.Deleted.Deleted {
			e, err := record.Entry()
			if err != nil {
				return nil, fmt.Errorf("the entry %q: %w", record.ID, err)
			}
			item = modifiedrange.Item{Modified: e.Updated, Entry: e}
		} else if item.Modified.IsZero() {
			return nil, fmt.Errorf("the deletion of %q has no time", record.ID)
		}
		items = append(items, item)
	}
	slices.SortStableFunc(items, func(a, b modifiedrange.Item) int { return b.Modified.Compare(a.Modified) })
	w.Tell("the collection: " + c.Base)
	return &modifiedrange.Handler{
		Limit: c.Size, Head: &feedhistory.Document{ID: c.Base, Title: cmp.Or(c.Title, c.Base)}, Logger: log,
		Query: func(_ context.Context, start, end time.Time, limit int) (found []modifiedrange.Item, err error) {
			within := modifiedrange.Range{Start: start, End: end}
			for _, item := range items {
				if within.Contains(item.Modified) {
					if found = append(found, item); len(found) == limit {
						break
					}
				}
			}
			return found, nil
		},
	}, nil
}
