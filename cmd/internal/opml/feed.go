package opml

import (
	"cmp"
	"context"
	"strings"

	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/mirror"
)

// OutlineOf returns the outline of a mirrored feed: under the subscriber's own title, or
// else a given one, in the subscriber's folders.
func OutlineOf(f *mirror.Feed, title, site string) Outline {
	// Programs that read the list cannot know that the feed has moved.
	return Outline{Text: cmp.Or(f.Named, title), URL: cmp.Or(f.Address, f.URL), Site: site, Folders: f.Folders}
}

// Apply gives a feed the title of the outline, unless it has one, and adds the folders. It
// reports whether the feed has changed.
func (o Outline) Apply(f *mirror.Feed) (changed bool) {
	title := strings.Join(strings.Fields(o.Text), " ")
	if f.Named == "" && title != "" && title != f.Title && title != f.URL {
		f.Named, changed = title, true
	}
	if all := join(f.Folders, o.Folders); len(all) > len(f.Folders) {
		f.Folders, changed = all, true
	}
	return changed
}

// Keep stores the title and the folders of the outline with a feed. It changes nothing if
// the store does not have the feed.
func (o Outline) Keep(ctx context.Context, store mirror.Store, url string) error {
	return database.Amend(ctx, store, url, o.Apply)
}
