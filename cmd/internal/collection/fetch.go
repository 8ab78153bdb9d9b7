package collection

import (
	"bufio"
	"cmp"
	"errors"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/harvest/atompmh"
)

// fetchPMH prints the changes with the records themselves, and the records earlier
// harvests could not fetch. An interrupt leaves the other records in the queue.
func (c *Source) fetchPMH(w *command.World, harvester *atompmh.Harvester, h *pmhHarvest) error {
	if h.queue == nil {
		h.queue = atompmh.Queue{}
	}
	changes := func(yield func(atompmh.Change, error) bool) {
		for _, change := range h.changes {
			if !yield(change, nil) {
				return
			}
		}
	}
	out := bufio.NewWriterSize(w.Stdout, 64<<10)
	h.fetched = []Change{}
	for f, err := range harvester.FetchQueued(w.Ctx, changes, h.queue) {
		j := fetchedJSON(f)
		if j.Error == "" && j.Type+j.Body != "" || j.Base64 != nil {
			h.brought++
		}
		if c.inOne() {
			h.fetched = append(h.fetched, j)
		} else {
			err = errors.Join(err, terminal.WriteJSON(out, j))
		}
		if err != nil {
			return err
		}
	}
	if c.inOne() {
		return errors.Join(out.Flush(), c.printPMH(w, *h))
	}
	return out.Flush()
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
