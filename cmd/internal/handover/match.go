package handover

import (
	"errors"
	"fmt"

	"github.com/feedhistory/feedhistory/mirror"
)

// ErrNotSubscribed says the user of the reader is not subscribed to a
// feed.
var ErrNotSubscribed = errors.New("the reader is not subscribed to this feed")

// Match finds a mirrored feed among those of a reader, by its addresses. If
// there is none, the error matches ErrNotSubscribed. If there are several, the
// error names two.
func Match(f *mirror.Feed, feeds []ReaderFeed) (ReaderFeed, error) {
	for _, url := range []string{f.URL, f.Address, f.Known.URL} {
		for _, feed := range feeds {
			if url != "" && feed.FeedURL == url {
				return feed, nil
			}
		}
	}
	var found []ReaderFeed
	for _, feed := range feeds {
		for _, url := range []string{f.URL, f.Address, f.Known.URL} {
			if url != "" && addressKey(feed.FeedURL) == addressKey(url) {
				found = append(found, feed)
				break
			}
		}
	}
	switch len(found) {
	case 0:
		return ReaderFeed{}, ErrNotSubscribed
	case 1:
		return found[0], nil
	}
	return ReaderFeed{}, fmt.Errorf("the reader is subscribed to this feed more than once: %s and %s", found[0].FeedURL, found[1].FeedURL)
}
