// Package saved reads saved documents of feeds: in a directory, or in the history of a git
// repository.
package saved

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/memory"
)

// most is the maximum size of a document.
const most = 64 << 20

// A parser reads saved documents.
type parser struct{ feed string }

// parse reads a document. The feed is the one given, or else the document's own. A
// damaged document comes with an error.
func (p parser) parse(data []byte) (doc *feedhistory.Document, feed string, err error) {
	if feed = p.feed; feed == "" {
		doc, err = feedhistory.Parse(bytes.NewReader(data), "")
		if doc == nil {
			return nil, "", err
		}
		if feed = selfOf(doc); feed == "" {
			return nil, "", fmt.Errorf("the document does not name its feed: give the feed's address after the source")
		}
	}
	doc, err = feedhistory.Parse(bytes.NewReader(data), feed)
	return doc, feed, err
}

// selfOf returns the address a document gives its feed: the subscription document's,
// for an archive (5005#13).
func selfOf(doc *feedhistory.Document) string {
	for _, rel := range []string{feedhistory.RelCurrent, feedhistory.RelSelf} {
		if link, ok := doc.Links.Rel(rel); ok && memory.IsWeb(link.Href) {
			return link.Href
		}
	}
	return ""
}

// found returns a saved document as found. Name is its place in the source.
func (p parser) found(name string, data []byte, older int, at time.Time) memory.Found {
	doc, feed, err := p.parse(data)
	found := memory.Found{Feed: feed}
	if err != nil {
		found.Damage = fmt.Errorf("%s: %w", name, err)
	}
	if doc != nil {
		found.Title, found.Document = doc.Title, &memory.Saved{Document: doc, Older: older, At: at}
	}
	return found
}

// A file is a document in a directory.
type file struct {
	name  string
	saved time.Time
	said  time.Time // when it was updated, as it says; zero if it does not
}

func (f *file) time() time.Time {
	if f.said.IsZero() {
		return f.saved
	}
	return f.said
}

// IsDocument reports whether a file's name belongs to a saved document.
func IsDocument(name string) bool {
	return slices.Contains([]string{".xml", ".atom", ".rss", ".rdf"}, strings.ToLower(filepath.Ext(name)))
}

// Directory yields the documents below a directory, oldest first. The feed is the one they
// are all of; "" if each says so itself.
func Directory(ctx context.Context, dir, feed string) iter.Seq2[memory.Found, error] {
	return func(yield func(memory.Found, error) bool) {
		files, err := list(ctx, dir)
		if err != nil {
			yield(memory.Found{}, err)
			return
		}
		for n, f := range files {
			data, err := read(f.name)
			found := memory.Found{Damage: err}
			if err == nil {
				found = parser{feed}.found(f.name, data, n, f.saved)
			}
			if ctx.Err() != nil {
				yield(memory.Found{}, ctx.Err())
				return
			}
			if !yield(found, nil) {
				return
			}
		}
	}
}

// list returns the documents below a directory by their times.
func list(ctx context.Context, dir string) (files []file, err error) {
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return cmp.Or(ctx.Err(), err)
		}
		if entry.IsDir() || !IsDocument(name) {
			return nil
		}
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		f := file{name: name, saved: info.ModTime()}
		if data, err := read(name); err == nil {
			if doc, _ := feedhistory.Parse(bytes.NewReader(data), ""); doc != nil {
				f.said = doc.Updated
			}
		}
		files = append(files, f)
		return nil
	})
	slices.SortStableFunc(files, func(a, b file) int { return cmp.Or(a.time().Compare(b.time()), strings.Compare(a.name, b.name)) })
	return files, err
}

func read(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err == nil && info.Size() > most {
		err = fmt.Errorf("%s: larger than %d MiB", name, most>>20)
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(name)
}
