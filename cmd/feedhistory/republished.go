package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/outputs"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/republish"
)

// republishedFlag is the flag of the verbs that remove documents of history servers.
type republishedFlag struct {
	Published string `placeholder:"DIR" help:"Directory with the history server's republished feeds (default: next to the database; for PostgreSQL, in your data directory)."`
}

// removeRepublished removes the documents of feeds republished by history servers on
// this machine. It returns the feeds with such documents.
func (f *republishedFlag) removeRepublished(db database.Location, feeds ...string) (removed []string, err error) {
	dir := cmp.Or(f.Published, (&serveCommand{Location: db}).publishedDir())
	for _, dir := range []string{dir, privateDir(dir)} {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		some, err := outputs.WhileLocked(func() ([]string, error) {
			return republish.Forget(context.Background(), publish.Dir{Path: dir}, feeds...)
		}) // a server may be publishing
		if err != nil {
			return nil, err
		}
		removed = append(removed, some...)
	}
	slices.Sort(removed)
	return slices.Compact(removed), nil
}
