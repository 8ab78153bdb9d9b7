package atompmh

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Queue has the records still to be fetched, by identifier. Store it as JSON,
// together with the Mark. The zero value is empty; make the map before you use it.
type Queue map[string]QueuedRecord

// A QueuedRecord is one still to be fetched.
type QueuedRecord struct {
	Time   time.Time `json:"time"`             // its last modified time
	URL    string    `json:"url"`              // the URL of the chosen representation
	Type   string    `json:"type,omitempty"`   // its media type in the link; "" if it has none
	Failed int       `json:"failed,omitempty"` // the number of failed tries
}

// FetchQueued is Fetch with a memory: a record is in the queue from when its change is
// taken until the record has come, or turns out to be gone. After the changes come the
// queue's other records, oldest first, without their Entry.
//
// The queue changes until the sequence has ended, or you leave it.
// The error may be the context's.
func (h *Harvester) FetchQueued(ctx context.Context, changes iter.Seq2[Change, error], queue Queue) iter.Seq2[FetchResult, error] {
	return func(yield func(FetchResult, error) bool) {
		for f, err := range h.Fetch(ctx, queue.all(changes)) {
			if err == nil && f.Kind == Record && f.Chosen != nil {
				queue.done(f)
			}
			if !yield(f, err) {
				return
			}
		}
	}
}

// all yields changes, which it adds to the queue, and then the rest of the
// queue.
func (q Queue) all(changes iter.Seq2[Change, error]) iter.Seq2[Change, error] {
	before := maps.Clone(q)
	return func(yield func(Change, error) bool) {
		if changes == nil {
			yield(Change{}, errors.New("atompmh: FetchQueued: the changes are nil"))
			return
		}
		for c, err := range changes {
			if err == nil && c.Kind != Other {
				delete(before, c.ID)
				delete(q, c.ID)
			}
			if err == nil && c.Kind == Record && c.Chosen != nil {
				q[c.ID] = QueuedRecord{Time: c.Time, URL: c.Chosen.URL, Type: c.Chosen.Type}
			}
			if !yield(c, err) {
				return
			}
		}
		ids := slices.SortedFunc(maps.Keys(before), func(a, b string) int {
			return cmp.Or(before[a].Time.Compare(before[b].Time), strings.Compare(a, b))
		})
		for _, id := range ids {
			p := before[id]
			r := Representation{URL: p.URL, Type: p.Type}
			c := Change{Kind: Record, ID: id, Time: p.Time, Representations: []Representation{r}, Chosen: &r}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// done records the outcome of fetching a record.
func (q Queue) done(f FetchResult) {
	p, ok := q[f.ID]
	switch {
	case f.Err == nil || f.Gone:
		delete(q, f.ID)
	case ok:
		p.Failed++
		q[f.ID] = p
	}
}
