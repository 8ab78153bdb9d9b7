package collection

import (
	"cmp"
	"context"
	"iter"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/harvest/atompmh"
)

// fetched yields the changes with the records themselves, and the records earlier harvests
// could not fetch. An interrupt leaves the other records in the queue.
func (h *pmhHarvest) fetched(ctx context.Context, harvester *atompmh.Harvester, url string) iter.Seq2[Change, error] {
	if h.queue == nil {
		h.queue = atompmh.Queue{}
	}
	return func(yield func(Change, error) bool) {
		for f, err := range harvester.FetchQueued(ctx, h.news(url), h.queue) {
			j := fetchedJSON(f)
			if j.Error == "" && j.Type+j.Body != "" || j.Base64 != nil {
				h.brought++
			}
			if !yield(j, err) {
				return
			}
		}
	}
}

func fetchedJSON(f atompmh.FetchResult) Change {
	j := changeJSON(f.Change)
	j.Type, j.Gone = f.Type, f.Gone
	switch {
	case f.Err != nil:
		j.Type, j.Error = "", explain.Detail(f.Err)
	case utf8.Valid(f.Body):
		j.Body = string(f.Body)
	default:
		j.Base64 = f.Body
	}
	if f.Err == nil && f.Chosen != nil && f.Kind == atompmh.Record {
		j.Type = cmp.Or(j.Type, f.Chosen.Type)
	}
	return j
}
