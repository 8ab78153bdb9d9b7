package main

import (
	"slices"

	"github.com/feedhistory/feedhistory/mirror"
)

// clear removes what the database has of a feed, except its credentials and the ids of
// entries that have been erased: an import must not bring those back.
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

// leaveOut takes an entry that has been erased out of the state of its feed.
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
