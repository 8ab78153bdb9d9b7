package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/web"
)

// The flag of the verbs that remove what history servers have republished.
type republishedFlag struct {
	Published string `placeholder:"DIR" help:"Directory for republished feeds of the history server (default: next to the database)."`
}

// removeRepublished removes what history servers on this machine keep of feeds that
// they have republished; they do so again when somebody asks for it. It returns those
// feeds of which there was something.
func (f *republishedFlag) removeRepublished(db database, feeds ...string) (removed []string, err error) {
	dir := cmp.Or(f.Published, (&serveCommand{database: db}).publishedDir())
	had := map[string]bool{}
	for _, dir := range []string{dir, dir + ".private"} {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := removeFeeds(publish.Dir{Path: dir}, feeds, had); err != nil {
			return nil, err
		}
	}
	for _, feed := range feeds {
		if had[feed] {
			removed = append(removed, feed)
		}
	}
	return removed, nil
}

// removeFeeds removes the files of feeds from a directory, and notes which feeds had any.
func removeFeeds(out publish.Dir, feeds []string, had map[string]bool) (err error) {
	unlock, err := lockPatiently(out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	bases, err := os.ReadDir(out.Path) // one for each --base
	if err != nil {
		return err
	}
	for _, feed := range feeds {
		for _, base := range bases {
			names, err := namesOf(filepath.Join(out.Path, base.Name()), web.ShortName(feed))
			if err != nil {
				return err
			}
			for _, name := range names {
				had[feed] = true
				if err := removeAll(out, path.Join(base.Name(), name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// namesOf returns the directories of a feed: its name, and the shorter one that it may
// have had before.
func namesOf(dir, name string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if info, failed := os.Stat(dir); err != nil && failed == nil && !info.IsDir() { // such as the lock
		return nil, nil
	}
	for _, e := range entries {
		if len(e.Name()) >= 12 && strings.HasPrefix(name, e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// removeAll removes a directory's files, the subscription documents first, so that no
// link dangles, and then the directory.
func removeAll(out publish.Dir, dir string) error {
	var first, files []string
	err := fs.WalkDir(os.DirFS(out.Path), dir, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
		case strings.HasPrefix(d.Name(), "index."):
			first = append(first, file)
		default:
			files = append(files, file)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, file := range append(first, files...) {
		if err := out.Remove(file); err != nil {
			return err
		}
	}
	return os.RemoveAll(filepath.Join(out.Path, filepath.FromSlash(dir)))
}

// lockPatiently takes the lock of an output, for which it may have to wait.
func lockPatiently(out publish.Dir) (unlock func() error, err error) {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if unlock, err = out.Lock(); !errors.Is(err, publish.ErrLocked) || time.Now().After(deadline) {
			return unlock, err
		}
	}
}
