package database

import (
	"context"
	"errors"

	"github.com/feedhistory/feedhistory/mirror"
)

// mostTries bounds the attempts to change a feed while it is polled.
const mostTries = 20

// Amend changes the state of a feed in a store, unless amend returns false. It changes
// nothing if the store does not have the feed.
func Amend(ctx context.Context, store mirror.Store, url string, amend func(*mirror.Feed) bool) (err error) {
	for range mostTries {
		f, missing := store.Feed(ctx, url)
		if errors.Is(missing, mirror.ErrNotFound) {
			return nil
		}
		if missing != nil || !amend(f) {
			return missing
		}
		if err = store.Commit(ctx, &mirror.Commit{Feed: f}); !errors.Is(err, mirror.ErrConflict) {
			return err
		}
	}
	return err
}
