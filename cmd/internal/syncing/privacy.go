package syncing

import (
	"context"
	"errors"
	"net/http"

	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/logins"
	"github.com/feedhistory/feedhistory/mirror"
)

// Privacy are the flags for who may read the feeds named by URL.
type Privacy struct {
	Private bool `help:"Keep the feeds named by URL private, because their address is a secret: as with credentials, only serve --private shows them, and no web archive is asked about them."`
	Public  bool `help:"Show the feeds named by URL to everybody, although their address seems to have a secret (?token=…): without --public, such a feed is private."`
}

// Check refuses incompatible flags, and flags without the URLs they are for.
func (f *Privacy) Check(urls []string) error {
	switch {
	case f.Private && len(urls) == 0:
		return errors.New("--private is for the feeds that URL names")
	case f.Public && len(urls) == 0:
		return errors.New("--public is for the feeds that URL names")
	case f.Public && f.Private:
		return errors.New("--public and --private exclude each other")
	}
	return nil
}

// Hide marks the feeds as private, if the flags ask for it.
func (f *Privacy) Hide(keys *logins.Keyring, urls []string) error {
	if !f.Private {
		return nil
	}
	private := map[string]http.Header{}
	for _, url := range urls {
		private[argument.FeedName(url)] = http.Header{}
	}
	return keys.Set(private)
}

// Show marks the feeds as public, if the flags ask for it.
func (f *Privacy) Show(ctx context.Context, store mirror.Store, urls []string) error {
	if !f.Public {
		return nil
	}
	for _, url := range urls {
		err := database.Amend(context.WithoutCancel(ctx), store, argument.FeedName(url), func(f *mirror.Feed) bool {
			changes := f.Private
			f.Private = false
			return changes
		})
		if err != nil {
			return err
		}
	}
	return nil
}
