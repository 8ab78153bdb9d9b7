package republish

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory/publish"
)

// Forget removes the documents of feeds from an Output, whatever the Base of their
// Handler, and returns the feeds with documents. A Handler with such a feed publishes
// it again on request, with the entries the Store has by then. If somebody is
// publishing, the error matches publish.ErrLocked, and nothing is removed.
// The error may be the context's.
func Forget(ctx context.Context, out publish.Output, feeds ...string) (forgotten []string, err error) {
	if out == nil {
		return nil, errors.New("republish: Forget: the Output is nil")
	}
	unlock, err := out.Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	bases, err := fs.ReadDir(out, ".")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, base := range bases {
		if !base.IsDir() {
			continue // such as the lock
		}
		names, err := fs.ReadDir(out, base.Name())
		if err != nil {
			return forgotten, err
		}
		for _, name := range names {
			i := slices.IndexFunc(feeds, func(feed string) bool { return name.Name() == Name(feed) || name.Name() == oldName(feed) })
			if i < 0 {
				continue
			}
			n, err := removeAll(ctx, out, path.Join(base.Name(), name.Name()))
			if n > 0 && !slices.Contains(forgotten, feeds[i]) {
				forgotten = append(forgotten, feeds[i])
			}
			if err != nil {
				return forgotten, err
			}
		}
	}
	return forgotten, nil
}

// removeAll removes the files of a directory, and returns how many: first the
// subscription documents, so no link ever dangles.
func removeAll(ctx context.Context, out publish.Output, dir string) (n int, err error) {
	var first, files []string
	err = fs.WalkDir(out, dir, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
		case strings.HasPrefix(d.Name(), "index."):
			first = append(first, file)
		default:
			files = append(files, file)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	for _, file := range append(first, files...) {
		if err := out.Remove(ctx, file); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
