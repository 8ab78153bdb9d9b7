package syncing

import (
	"context"
	"errors"

	"github.com/feedhistory/feedhistory/mirror"
)

// Subscribe adds a feed to the store, and reports whether it is new.
func Subscribe(ctx context.Context, store mirror.Store, url string) (isNew bool, err error) {
	err = store.Commit(ctx, &mirror.Change{Feed: mirror.NewFeed(url)})
	if errors.Is(err, mirror.ErrConflict) { // the store has it
		return false, nil
	}
	return err == nil, err
}
