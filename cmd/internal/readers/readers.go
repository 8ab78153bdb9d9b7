// Package readers imports the entries feed readers and others have kept into a mirror, and
// gives mirrored histories to feed readers.
package readers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/mirror"
)

// An Item is one thing in a source: an entry, a document, a feed without either, or a row
// that cannot be read.
type Item struct {
	Feed  string // the feed's URL; "" if unknown
	Title string // the feed's title; "" if the source has none

	// Of a subscription: the subscriber's own title, and the folders as in an Outline.
	Named   string
	Folders [][]string

	Entry    *mirror.KeptEntry
	Document *Saved
	Damage   error  // why a row cannot be read, with its place in the source
	Other    string // a file of the source that is no feed document; "" for none

	// Mark says where another run may continue: after this and everything before it.
	Mark string
}

// A Saved is a saved document of the feed itself.
type Saved struct {
	*feedhistory.Document
	Older int       // the number of documents from before
	At    time.Time // when it was saved
}

// alternate returns an entry's link; nil if it is not a web address.
func alternate(href string) feedhistory.Links {
	if !isWeb(href) {
		return nil
	}
	return feedhistory.Links{{Rel: "alternate", Href: href}}
}

// enclosure adds the link of a file to links, unless it is not a web address.
func enclosure(links feedhistory.Links, href, kind, length string) feedhistory.Links {
	if !isWeb(href) {
		return links
	}
	return append(links, feedhistory.Link{Rel: "enclosure", Href: href, Type: kind, Length: length})
}

// isWeb reports whether an address is a URL of the web.
func isWeb(address string) bool {
	u, err := feedhistory.ParseURL(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// htmlText returns text as readers keep it, in HTML; nothing for "".
func htmlText(body string) feedhistory.Text {
	if body == "" {
		return feedhistory.Text{}
	}
	return feedhistory.Text{Type: "html", Body: body}
}

// plainText returns plain text.
func plainText(body string) feedhistory.Text { return feedhistory.Text{Body: body} }

// authors returns an author by name; none for "".
func authors(name string) []feedhistory.Person {
	if name == "" {
		return nil
	}
	return []feedhistory.Person{{Name: name}}
}

// errNameless means nothing in an entry identifies it.
var errNameless = errors.New("it has neither an id nor a link nor a title")

// categories returns categories by their terms, without empty ones.
func categories(terms []string) (list []feedhistory.Category) {
	for _, term := range terms {
		if term != "" {
			list = append(list, feedhistory.Category{Term: term})
		}
	}
	return list
}

// atOnce is the number of entries in an answer of a server or a database.
const atOnce = 100

// A batch is stored when it has this many entries or bytes.
const (
	batchEntries = 1000
	batchBytes   = 4 << 20
)

// An Importer stores the entries and documents of a source in a mirror. Recall must be set.
type Importer struct {
	Recall *mirror.Recall
	Wanted func(feed string) bool  // whether to import a feed; nil means all
	Check  func(feed string) error // why a feed cannot be mirrored; nil means each can

	// Subscribe adds a feed with its title and folders, or gives them to the feed; nil means
	// titles and folders are not wanted.
	Subscribe func(ctx context.Context, feed Outline) error

	// Stored is called with the mark after everything up to there has been stored; nil
	// means nobody wants to know.
	Stored func(mark string) error

	Damaged func(error) // is called for each skipped row or document
	Skipped func(error) // is called for each feed that cannot be mirrored, once

	Feeds  []*Tally // the feeds so far, in the order in which they came
	Count  int      // the number of entries and documents so far
	Others []string // the source's files that are no feed documents

	tallies map[string]*Tally // by the source's address
	mirror  map[string]string // the mirrored feed with an address

	// The current batch: its feeds, in the order in which they came, and its size.
	batch        []*Tally
	count, bytes int
	mark         string
}

// Counts are the numbers of entries of an import. All but Closed add up to the entries that
// could be stored.
type Counts struct {
	Added   int // entries that the feed did not have
	Changed int // entries of which there is an older copy or a new version
	Same    int // entries that were there, or deleted, or repeated
	Refused int // entries for which the quota has no room
	Closed  int // missed windows that are closed
}

// Add adds the numbers of other.
func (c *Counts) Add(other Counts) {
	c.Added, c.Changed, c.Same = c.Added+other.Added, c.Changed+other.Changed, c.Same+other.Same
	c.Refused, c.Closed = c.Refused+other.Refused, c.Closed+other.Closed
}

// A Tally counts the imported entries of one feed.
type Tally struct {
	Feed  string // the mirrored feed's URL
	Title string
	Counts

	skipped bool
	batch   []mirror.KeptEntry
}

// A SourceError is an error of the source, not of the mirror.
type SourceError struct{ Err error }

// Error returns the message of Err.
func (e *SourceError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *SourceError) Unwrap() error { return e.Err }

// Run stores everything a source gives to yield. An error ends it; entries already stored
// stay. Errors of the source match *SourceError.
func (i *Importer) Run(ctx context.Context, source func(yield func(Item) error) error) error {
	if err := i.load(ctx); err != nil {
		return err
	}
	var failed error
	err := source(func(found Item) error {
		failed = i.add(ctx, &found)
		return failed
	})
	switch {
	case failed != nil:
		return failed
	case errors.Is(err, context.Canceled):
		return err
	case err != nil:
		return cmp.Or(i.flush(ctx), error(&SourceError{err})) // the rows before are good
	}
	return i.flush(ctx)
}

// load reads the addresses of the mirrored feeds, because a reader may know a feed by another
// one.
func (i *Importer) load(ctx context.Context) error {
	i.mirror, i.tallies = map[string]string{}, map[string]*Tally{}
	for f, err := range i.Recall.Mirror.Store.Feeds(ctx, mirror.FeedQuery{}) {
		if err != nil {
			return err
		}
		for _, address := range []string{f.Address, f.Ledger.URL()} {
			if _, ok := i.mirror[bare(address)]; !ok && address != "" {
				i.mirror[bare(address)] = f.URL
			}
		}
		i.mirror[bare(f.URL)] = f.URL
	}
	return nil
}

// bare returns an address without its scheme and a final slash, which differ among readers.
func bare(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	return strings.TrimSuffix(rest, "/")
}

// tally returns the tally of a feed.
func (i *Importer) tally(found *Item) *Tally {
	t := i.tallies[found.Feed]
	if t != nil {
		return t
	}
	t = &Tally{Feed: strings.TrimSpace(found.Feed), Title: found.Title}
	i.tallies[found.Feed] = t
	if known := i.mirror[bare(t.Feed)]; known != "" {
		t.Feed = known
	}
	var err error
	if i.Check != nil {
		err = i.Check(t.Feed)
	}
	switch {
	case i.Wanted != nil && !i.Wanted(found.Feed) && !i.Wanted(t.Feed):
		t.skipped = true
	case err != nil:
		t.skipped = true
		if i.Skipped != nil {
			i.Skipped(err)
		}
	default:
		i.Feeds = append(i.Feeds, t)
	}
	return t
}

func (i *Importer) add(ctx context.Context, found *Item) error {
	if found.Damage != nil && i.Damaged != nil {
		i.Damaged(found.Damage)
	}
	if found.Other != "" {
		i.Others = append(i.Others, found.Other)
	}
	if found.Feed == "" {
		return nil
	}
	_, known := i.tallies[found.Feed]
	t := i.tally(found)
	switch {
	case t.skipped:
		return nil
	case found.Document != nil:
		i.Count++
		done, err := i.Recall.Document(ctx, t.Feed, found.Document.Document, found.Document.Older, found.Document.At)
		return i.note(t, len(found.Document.Entries), done, err)
	case found.Entry == nil:
		if i.Subscribe != nil && (found.Named != "" || len(found.Folders) > 0) {
			if err := i.Subscribe(ctx, Outline{URL: t.Feed, Text: found.Named, Folders: found.Folders}); err != nil {
				return fmt.Errorf("%s: %w", show.Address(t.Feed), err)
			}
		}
		if known {
			return nil
		}
		done, err := i.Recall.Entries(ctx, t.Feed, t.Title, nil) // the subscription alone
		return i.note(t, 0, done, err)
	}
	e := found.Entry
	i.Count++
	if len(t.batch) == 0 {
		i.batch = append(i.batch, t)
	}
	t.batch = append(t.batch, *e)
	i.count++
	i.bytes += len(e.Content.Body) + len(e.Summary.Body) + len(e.Title.Body) + 500
	if found.Mark != "" {
		i.mark = found.Mark
	}
	if i.count >= batchEntries || i.bytes >= batchBytes {
		return i.flush(ctx)
	}
	return nil
}

// flush stores the current batch, feed by feed.
func (i *Importer) flush(ctx context.Context) error {
	feeds := i.batch
	i.batch, i.count, i.bytes = nil, 0, 0
	for _, t := range feeds {
		entries := t.batch
		t.batch = nil
		done, err := i.Recall.Entries(ctx, t.Feed, t.Title, entries)
		if err := i.note(t, len(entries), done, err); err != nil {
			return err
		}
	}
	if i.Stored == nil || i.mark == "" || len(feeds) == 0 {
		return nil
	}
	return i.Stored(i.mark)
}

// note adds the result of a batch, with its number of entries, to a tally.
func (i *Importer) note(t *Tally, entries int, done *mirror.Report, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", show.Address(t.Feed), err)
	}
	if damaged, ok := done.Failure.(interface{ Unwrap() []error }); ok {
		for _, bad := range damaged.Unwrap() {
			entries--
			if i.Damaged != nil {
				i.Damaged(fmt.Errorf("%s: %w", show.Address(t.Feed), bad))
			}
		}
	}
	same := max(0, entries-done.Added-done.Changed-done.Refused)
	t.Add(Counts{Added: done.Added, Changed: done.Changed, Same: same, Refused: done.Refused, Closed: done.Closed})
	return nil
}
