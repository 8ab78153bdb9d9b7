package main

import (
	"slices"

	"github.com/feedhistory/feedhistory/mirror"
)

// clear removes a feed from the database, but keeps its credentials. It records the ids of
// entries that have been erased, because an import must not bring them back.
func (in *importing) clear(f *importedFeed) error {
	for r, err := range in.store.Entries(in.ctx, mirror.Query{Feed: f.line.Feed, Bare: true}) {
		if err != nil {
			return err
		}
		if r.State == mirror.Erased {
			f.erased[r.ID] = true
			f.change.Touch = append(f.change.Touch, r)
		}
	}
	return in.store.Store.Remove(in.ctx, f.line.Feed)
}

// leaveOut removes an erased entry from the state of its feed.
func (f *importedFeed) leaveOut(r *mirror.Record, versions []rawVersion) {
	state := f.line.State
	switch {
	case r.State == mirror.Live:
		state.Entries--
	case r.Content.Format != 0:
		state.Deleted--
	}
	for _, v := range versions {
		state.Usage.Contents -= v.Content.Size
	}
	state.Usage.Contents = max(0, state.Usage.Contents-r.Content.Size)
	isErased := func(id string) bool { return id == r.ID }
	state.Shown, state.Sought = slices.DeleteFunc(state.Shown, isErased), slices.DeleteFunc(state.Sought, isErased)
}
