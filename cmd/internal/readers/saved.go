package readers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
)

// mostSaved is the maximum size of a document.
const mostSaved = 64 << 20

// parseSaved reads a document of a feed; of the feed the document names if there is none. A
// damaged document comes with an error.
func parseSaved(data []byte, feed string) (doc *feedhistory.Document, of string, err error) {
	if feed == "" {
		if doc, err = feedhistory.Parse(bytes.NewReader(data), ""); doc == nil {
			return nil, "", err
		}
		if feed = selfOf(doc); feed == "" {
			return nil, "", errors.New("the document does not name its feed: give the feed's address after the source")
		}
	}
	doc, err = feedhistory.Parse(bytes.NewReader(data), feed)
	return doc, feed, err
}

// selfOf returns the address a document gives its feed: the subscription document's,
// for an archive (5005#13).
func selfOf(doc *feedhistory.Document) string {
	for _, rel := range []string{"current", "self"} {
		if link, ok := doc.Links.Rel(rel); ok && isWeb(link.Href) {
			return link.Href
		}
	}
	return ""
}

// documentItem returns a saved document as found. Name is its place in the source.
func documentItem(name string, data []byte, feed string, at time.Time) Item {
	doc, feed, err := parseSaved(data, feed)
	found := Item{Feed: feed}
	if err != nil {
		found.Damage = fmt.Errorf("%s: %w", name, err)
	}
	if doc != nil {
		found.Title, found.Document = doc.Title, &Saved{Document: doc, At: at}
	}
	return found
}

// A savedFile is a file that may have feed documents.
type savedFile struct {
	name   string
	other  bool // it has none
	isWARC bool
	saved  time.Time
	said   time.Time // when it was updated, as it says; zero if it does not
}

func (f *savedFile) time() time.Time {
	if f.said.IsZero() {
		return f.saved
	}
	return f.said
}

// isDocument reports whether a file's name belongs to a saved document.
func isDocument(name string) bool {
	return slices.Contains([]string{".xml", ".atom", ".rss", ".rdf"}, strings.ToLower(filepath.Ext(name)))
}

// looksLikeFeed reports whether a file may be a feed document, by its beginning.
func looksLikeFeed(data []byte) bool {
	start := data[:min(len(data), 1<<10)]
	return slices.ContainsFunc([]string{"<rss", "<feed", "<rdf:RDF", ":feed", "jsonfeed.org/version", `"OrderedCollection`}, func(sign string) bool { return bytes.Contains(start, []byte(sign)) })
}

// readDocuments takes the feed documents in files, below directories and in WARC files, and
// names the other files. It reads WARC files twice, because a document may come before those
// that link to it.
func readDocuments(ctx context.Context, s *Source, _ string, yield func(Item) error) error {
	var files []savedFile
	for _, name := range append([]string{s.Name}, s.Files...) {
		more, err := listSaved(ctx, name)
		if err != nil {
			return err
		}
		files = append(files, more...)
	}
	feeds, err := feedsOf(ctx, files, s.Feeds)
	if err != nil {
		return err
	}
	older := 0
	take := func(found Item) error {
		if found.Document != nil {
			found.Document.Older = older
			older++
		}
		return cmp.Or(ctx.Err(), yield(found))
	}
	for _, f := range files {
		switch {
		case f.isWARC:
			err = readWARC(ctx, f.name, func(c capture) error { return take(c.item(feeds)) })
		case f.other:
			err = take(Item{Other: f.name})
		default:
			err = take(f.item(s.feed()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// listSaved returns a file, or the files below a directory by their times.
func listSaved(ctx context.Context, name string) (files []savedFile, err error) {
	err = filepath.WalkDir(name, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return cmp.Or(ctx.Err(), err)
		}
		if entry.IsDir() {
			return nil
		}
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		f := savedFile{name: name, saved: info.ModTime(), isWARC: isWARC(start(name))}
		if !f.isWARC {
			f.look()
		}
		files = append(files, f)
		return nil
	})
	slices.SortStableFunc(files, func(a, b savedFile) int { return cmp.Or(a.time().Compare(b.time()), strings.Compare(a.name, b.name)) })
	return files, err
}

// look reads the file to find out whether it is a document, whatever its name, such as
// index.html?paged=2 or feed.json. One that cannot be read is a document if it is named so.
func (f *savedFile) look() {
	f.other = !isDocument(f.name)
	data, err := readSaved(f.name)
	if err != nil || f.other && !looksLikeFeed(data) {
		return
	}
	if doc, _ := feedhistory.Parse(bytes.NewReader(data), ""); doc != nil {
		f.said, f.other = doc.Updated, false
	}
}

// item returns the document, of a feed or, if that is "", of the feed it names.
func (f *savedFile) item(feed string) Item {
	data, err := readSaved(f.name)
	if err != nil {
		return Item{Damage: err}
	}
	return documentItem(f.name, data, feed, f.saved)
}

func readSaved(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err == nil && info.Size() > mostSaved {
		err = fmt.Errorf("%s: larger than %d MiB", name, mostSaved>>20)
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(name)
}
