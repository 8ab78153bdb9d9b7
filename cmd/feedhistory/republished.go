package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/republish"
)

// republishedFlag is the flag of the verbs that remove what history servers have
// republished.
type republishedFlag struct {
	Published string `placeholder:"DIR" help:"Directory with the history server's republished feeds (default: next to the database; for PostgreSQL, in your data directory)."`
}

// removeRepublished removes the documents of feeds that history servers on this machine
// have republished. It returns the feeds that had such documents.
func (f *republishedFlag) removeRepublished(db database, feeds ...string) (removed []string, err error) {
	dir := cmp.Or(f.Published, (&serveCommand{database: db}).publishedDir())
	for _, dir := range []string{dir, privateDir(dir)} {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		some, err := whileLocked(func() ([]string, error) {
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

// whileLocked repeats what locks a publish.Dir as long as another process has the lock,
// for up to ten seconds.
func whileLocked[T any](do func() (T, error)) (value T, err error) {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if value, err = do(); !errors.Is(err, publish.ErrLocked) || time.Now().After(deadline) {
			return value, err
		}
	}
}
