package database

import (
	"context"
	"net/http"

	"github.com/feedhistory/feedhistory/mirror"
)

// PrivateFeeds tells which feeds of a mirror are private: those the mirror calls private,
// and those with credentials.
type PrivateFeeds struct {
	store mirror.Store
	keys  map[string]http.Header
	known map[string]bool // by URL
}

// PrivateFeeds returns the private feeds of a mirror.
func (d *Location) PrivateFeeds(store mirror.Store) (*PrivateFeeds, error) {
	keys, err := d.Keyring()
	if err != nil {
		return nil, err
	}
	feeds, err := keys.Private()
	return &PrivateFeeds{store, feeds, map[string]bool{}}, err
}

// Has reports whether a feed is private. A feed that cannot be read may be.
func (p *PrivateFeeds) Has(ctx context.Context, url string) bool {
	private, ok := p.known[url]
	if !ok {
		f, err := p.store.Feed(ctx, url)
		private = p.keys[url] != nil || err != nil || f.Private
		p.known[url] = private
	}
	return private
}
