// Package subscriptions reads lists of feeds.
package subscriptions

import (
	"context"
	"iter"
	"os"

	"github.com/feedhistory/feedhistory/cmd/internal/memory"
	"github.com/feedhistory/feedhistory/cmd/internal/opml"
)

// Read yields the feeds of an OPML file, without entries.
func Read(ctx context.Context, file string) iter.Seq2[memory.Found, error] {
	return func(yield func(memory.Found, error) bool) {
		f, err := os.Open(file)
		if err != nil {
			yield(memory.Found{}, err)
			return
		}
		defer f.Close()
		feeds, err := opml.Read(f)
		for _, feed := range feeds {
			if ctx.Err() != nil {
				err = ctx.Err()
				break
			}
			if !yield(memory.Found{Feed: feed.URL, Title: feed.Text}, nil) {
				return
			}
		}
		if err != nil {
			yield(memory.Found{}, err)
		}
	}
}
