package atompmh

import (
	"context"
	"io"
	"iter"
	"net/http"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/plain"
)

// A Fetched is a change with the record it is about.
type Fetched struct {
	Change
	Body []byte // of the representation chosen; nil if there is none
	Type string // its media type, as the server has it

	// Gone says that the representation is no longer there (403, 404, 410), which
	// only that of an active entry must be: the record has been modified or
	// deleted since (atom-pmh consumer#6). The next harvest tells which.
	Gone bool

	// Err is why the body could not be retrieved. Unless Gone, nothing follows from it
	// for the record: fetch it again later.
	Err error
}

// Fetch yields changes, in their order, with the representations that were
// chosen: of those that are Records. A few are requested at a time (Parallel), so
// that only these are in memory. The sequence has the errors of changes, as they
// are; what happens to one representation is in its Err.
//
// The Mark stands for what was harvested, not for what was fetched: FetchQueued
// remembers what is to be fetched again later. Whoever leaves the sequence early
// leaves changes that were taken but not yielded, so the Mark is not to be stored
// then.
func (h *Harvester) Fetch(ctx context.Context, changes iter.Seq2[Change, error]) iter.Seq2[Fetched, error] {
	type result struct {
		Fetched
		err error
	}
	return func(yield func(Fetched, error) bool) {
		ctx, cancel := context.WithCancel(h.with(ctx))
		client, done := plain.Client(h.HTTP)
		var queue []chan result // of what is under way, in order
		defer func() {
			cancel()
			for _, c := range queue {
				<-c
			}
			done()
		}()
		take := func() bool {
			r := <-queue[0]
			queue = queue[1:]
			return yield(r.Fetched, r.err)
		}
		for change, err := range changes {
			if len(queue) == h.parallel() && !take() {
				return
			}
			c := make(chan result, 1)
			queue = append(queue, c)
			if err != nil || change.Kind != Record || change.Chosen == nil {
				c <- result{Fetched{Change: change}, err}
				continue
			}
			go func() { c <- result{Fetched: get(ctx, client, change)} }()
		}
		for len(queue) > 0 && take() {
		}
	}
}

func (h *Harvester) parallel() int {
	if h.Parallel <= 0 {
		return 4
	}
	return h.Parallel
}

// get requests the representation that was chosen.
func get(ctx context.Context, client *feedhistory.Client, change Change) Fetched {
	f := Fetched{Change: change}
	resp, err := client.Do(ctx, http.MethodGet, change.Chosen.URL, change.Chosen.Type)
	if err != nil {
		f.Gone = feedhistory.IsStatus(err, http.StatusForbidden, http.StatusNotFound, http.StatusGone)
		f.Err = err
		return f
	}
	defer resp.Body.Close()
	f.Type = resp.Header.Get("Content-Type")
	if f.Body, f.Err = io.ReadAll(resp.Body); f.Err != nil {
		f.Body = nil // a part is not the record
	}
	return f
}
