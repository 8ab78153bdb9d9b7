package republish

import (
	"context"
	"errors"

	"github.com/feedhistory/feedhistory"
)

// Prepare brings the published documents of a feed up to date, so that no reader has to
// wait for them: the archived feed in the formats somebody has asked for. If the feed has
// at least some number of entries, its index.atom takes long to make, and Prepare makes it
// before anybody asks. While the feed is being polled, Prepare does nothing.
// The error may be the context's.
func (h *Handler) Prepare(ctx context.Context, url string, large int64) error {
	if err := h.ready(); err != nil {
		return err
	}
	feed, err := h.store.Feed(ctx, url)
	if err != nil || feed.Head == "" || h.chains.busy(url) {
		return err
	}
	name, err := h.Name(ctx, url)
	if err != nil {
		return err
	}
	for _, format := range []feedhistory.Format{feedhistory.Atom, feedhistory.RSS} {
		first := format == feedhistory.Atom && feed.Entries >= large
		if first || h.chains.isPublished(name, format) {
			err = errors.Join(err, h.chains.update(ctx, feed, name, format))
		}
	}
	return err
}
