package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Lookup returns a record with its content. The error matches ErrNotFound if the
// Store has no such entry, or only a tombstone of it. The error may be the context's.
func Lookup(ctx context.Context, s Store, feed, id string) (*Record, error) {
	if s == nil {
		return nil, errors.New("mirror: Lookup: the Store is nil")
	}
	records, err := s.Records(ctx, feed, []string{id})
	if err != nil {
		return nil, err
	}
	if known := records[id]; known != nil {
		beyond := known.Place()
		beyond.ID += "\x01"
		query := Query{Feed: feed, Until: beyond.Time.Add(time.Second), Beyond: beyond, Deleted: true, Limit: 1}
		for r, err := range s.Entries(ctx, query) {
			if err != nil {
				return nil, err
			}
			if r.ID == id {
				return r, nil
			}
		}
	}
	return nil, fmt.Errorf("entry %q of %s: %w", id, feed, ErrNotFound)
}
