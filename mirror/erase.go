package mirror

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// Erase deletes the contents of entries and of all their versions from a feed, as the
// law may demand. It keeps their IDs, so no poll stores them again, however long the
// publisher shows them. If the feed does not have one of the IDs, the error matches
// ErrNotFound and nothing is erased.
//
// A database may keep the bytes in its files until it is told to release free
// space: see sqlstore.Store.Scrub. The error may be the context's.
func (m *Mirror) Erase(ctx context.Context, url string, ids ...string) error {
	if err := m.check(); err != nil {
		return err
	}
	f, err := m.Store.Feed(ctx, iri.WithoutFragment(url))
	if err != nil {
		return err
	}
	records, err := m.Store.Records(ctx, f.URL, ids)
	if err != nil {
		return err
	}
	f.changed(time.Now())
	change := &Commit{Feed: f}
	for _, id := range ids {
		r := records[id]
		if r == nil {
			return fmt.Errorf("entry %s: %w", id, ErrNotFound)
		}
		for v, err := range m.Store.Versions(ctx, f.URL, id) {
			if err != nil {
				return err
			}
			f.Usage.Contents = max(0, f.Usage.Contents-v.Content.Size)
		}
		f.Usage.Contents = max(0, f.Usage.Contents-r.Content.Size)
		switch {
		case r.State == Live:
			f.Entries--
		case r.Content.Format != 0:
			f.Deleted--
		}
		f.Shown = slices.DeleteFunc(f.Shown, func(shown string) bool { return shown == id })
		f.Sought = slices.DeleteFunc(f.Sought, func(sought string) bool { return sought == id })
		change.Put = append(change.Put, &Record{
			Feed: f.URL, ID: id, State: Erased, FirstCommit: r.FirstCommit, LastCommit: f.Commits + 1, Added: r.Added, Changed: f.Changed,
		})
	}
	return m.Store.Commit(ctx, change)
}
