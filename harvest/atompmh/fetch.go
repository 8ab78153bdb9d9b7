package atompmh

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/plain"
)

// A FetchResult is a change with its record.
type FetchResult struct {
	Change
	Body []byte // the chosen representation; nil if there is none
	Type string // its media type, according to the server

	// Gone means the representation no longer exists (403, 404, 410). Only the
	// representation of an active entry must exist, so the record has been modified or
	// deleted since (atom-pmh consumer#6); the next harvest shows which.
	Gone bool

	// Err is the reason the body could not be retrieved. Unless Gone is set, it says
	// nothing about the record: fetch it again later.
	Err error
}

// Fetch yields changes in their order, and fetches the chosen representations of
// Records. It makes a few requests at a time (Parallel), and keeps only their results
// in memory. It yields the errors of changes as they are; the error of a single
// representation is in its Err.
//
// The Mark records the changes harvested, not the bodies fetched: FetchQueued remembers
// those to fetch again later. If you leave the sequence early, some changes were taken
// but not yielded, so do not store the Mark then. The error may be the context's.
func (h *Harvester) Fetch(ctx context.Context, changes iter.Seq2[Change, error]) iter.Seq2[FetchResult, error] {
	type result struct {
		FetchResult
		err error
	}
	return func(yield func(FetchResult, error) bool) {
		if changes == nil {
			yield(FetchResult{}, errors.New("atompmh: Fetch: the changes are nil"))
			return
		}
		ctx, cancel := context.WithCancel(h.with(ctx))
		client, done := plain.Client(h.HTTP)
		var queue []chan result // the requests under way, in order
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
			return yield(r.FetchResult, r.err)
		}
		for change, err := range changes {
			if len(queue) == cmp.Or(max(h.Parallel, 0), 4) && !take() {
				return
			}
			c := make(chan result, 1)
			queue = append(queue, c)
			if err != nil || change.Kind != Record || change.Chosen == nil {
				c <- result{FetchResult{Change: change}, err}
				continue
			}
			go func() { c <- result{FetchResult: get(ctx, client, change)} }()
		}
		for len(queue) > 0 && take() {
		}
	}
}

// get requests the chosen representation.
func get(ctx context.Context, client *feedhistory.Client, change Change) FetchResult {
	f := FetchResult{Change: change}
	resp, err := client.Do(ctx, feedhistory.Request{URL: change.Chosen.URL, Accept: cmp.Or(change.Chosen.Type, "*/*")})
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
