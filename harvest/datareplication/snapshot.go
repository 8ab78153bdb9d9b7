package datareplication

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory/internal/replication"
)

// An index is the list of a snapshot's pages (datareplication#snapshot-1).
type index struct {
	ID        string   `json:"id"`
	CreatedAt string   `json:"createdAt"`
	Pages     []string `json:"pages"`
}

// mostIndex is the maximum size of an index: about a million pages.
const mostIndex = 128 << 20

// snapshot yields the entities of a snapshot, and returns when it began.
func (r *run) snapshot() (created time.Time, err error) {
	pages, created, err := r.index()
	if err == nil {
		err = r.spend(len(pages))
	}
	if err != nil {
		return time.Time{}, err
	}
	return created, r.snapshotPages(pages, created)
}

// index reads the index of the snapshot.
func (r *run) index() (pages []string, created time.Time, err error) {
	if err := r.spend(1); err != nil {
		return nil, time.Time{}, err
	}
	page, err := r.request(r.ctx, http.MethodGet, r.c.Snapshot)
	if err != nil {
		return nil, time.Time{}, &PageError{URL: r.c.Snapshot, Snapshot: true, Err: err, Clause: clauseSnapshot}
	}
	defer page.Close()
	malformed := func(err error) ([]string, time.Time, error) {
		return nil, time.Time{}, &MalformedError{URL: page.URL, Err: err, Clause: clauseSnapshot}
	}
	var i index
	if err := json.NewDecoder(io.LimitReader(page.Body(), mostIndex)).Decode(&i); err != nil {
		if cut := r.interrupted(page, 0, err); cut != nil {
			return nil, time.Time{}, cut
		}
		return malformed(err)
	}
	if created, err = time.Parse(time.RFC3339, i.CreatedAt); err != nil {
		if created, err = replication.ParseTime(i.CreatedAt); err != nil {
			return malformed(fmt.Errorf("createdAt: %w", err))
		}
	}
	base, err := url.Parse(page.URL)
	if err != nil {
		return malformed(err)
	}
	for n, p := range i.Pages {
		u, err := base.Parse(p)
		if err != nil {
			return malformed(fmt.Errorf("page %d: %w", n+1, err))
		}
		i.Pages[n] = u.String()
	}
	return i.Pages, created, nil
}

// snapshotPages reads several pages at a time. Each reader waits until its
// entity is taken, so there are no more entities in memory than readers.
func (r *run) snapshotPages(pages []string, created time.Time) (err error) {
	ctx, cancel := context.WithCancel(r.ctx)
	todo, entities, failed := make(chan string), make(chan *Entity), make(chan error, 1)
	var readers sync.WaitGroup
	for range min(cmp.Or(max(r.c.Parallel, 0), 4), len(pages)) {
		readers.Go(func() {
			for url := range todo {
				if err := r.snapshotPage(ctx, url, created, entities); err != nil {
					select {
					case failed <- err: // the first error counts
					default:
					}
					cancel()
				}
			}
		})
	}
	go func() {
		defer close(entities)
		defer readers.Wait()
		defer close(todo)
		for _, url := range pages {
			select {
			case todo <- url:
			case <-ctx.Done():
				return
			}
		}
	}()
	for e := range entities {
		r.partly = true
		if !r.left && !r.yield(e, nil) {
			r.left = true
			cancel()
		}
	}
	cancel()
	select {
	case err = <-failed:
	default:
		err = r.ctx.Err()
	}
	if r.left {
		return nil
	}
	return err
}

// snapshotPage sends the entities of a page.
func (r *run) snapshotPage(ctx context.Context, url string, created time.Time, entities chan<- *Entity) error {
	page, err := r.request(ctx, http.MethodGet, url)
	if err != nil {
		return &PageError{URL: url, From: r.c.Snapshot, Snapshot: true, Err: err, Clause: clausePages}
	}
	defer page.Close()
	err = r.entities(page, created, func(e *Entity) error {
		select {
		case entities <- e:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if errors.Is(err, context.Canceled) && r.ctx.Err() == nil {
		return nil // another reader has failed
	}
	return err
}
