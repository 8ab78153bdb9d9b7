// Package publish turns a growing log of entries into an archived feed (RFC 5005 §4):
// a subscription document and a chain of archives, as files any web server, or Handler,
// can serve.
//
//	p := &publish.Publisher{
//		Output: publish.Dir{Path: "/srv/www/blog"},
//		Base:   "https://example.org/blog/",
//		Head:   &feedhistory.Document{Title: "My blog"},
//	}
//	err := p.Append(ctx, entries...)
//
// The output then has these names:
//
//	feed.atom                        the subscription document
//	feed/1-0f4c….atom                archives, by size; the digest is of their content
//	feed/2003/11-93ab….atom          archives, by period
//	feed/.1000-b0a2….atom.index      parts of the index of the archives
//	.lock, .feed.atom.next,
//	.feed.atom.new, .*.tmp           these and the index are not for readers
//
// All state is in the output: another Publisher continues where the last one ended, on
// any machine. State not expressed by the documents is in a processing instruction of
// the subscription document. The index has digests of what is in the archives; if it is
// missing, or an archive is not as it says, Publish reads the archives and writes it again.
//
// As long as there is no archive, the subscription document is marked as complete
// (5005#2), so readers know nothing is missing.
//
// # Permanence
//
// An archive is rendered once. Its name contains a digest of its content, so a name is
// never used for different bytes, and an archive's URI does not change (5005#9,
// 5005#10). There is one exception: the newest archive gains its next-archive link
// (5005#12) when its successor is closed; until then there is nothing to link to
// (5005#15). The digest covers the link to the preceding archive, too. So when entries
// are erased from an archive, this archive and all later ones get new names.
//
// # Crashes
//
// New archives are written first, when nothing refers to them yet. Then comes a note of
// the remaining work: the link from the preceding archive, and the subscription
// document. The call takes effect with the note; if a crash follows, the next call does
// the rest. So no link ever dangles, and a call is published either whole or not at
// all. At worst a crash leaves unreferenced archives. A list of them is written before
// the archives, and the next call removes those nobody can know.
//
// A function that takes a context may return the error of the context. Methods of nil pointers
// may panic, unless their comments say otherwise.
package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/settings"
)

// A Publisher publishes a growing log of entries as an archived feed. Output
// and Base must be set.
//
// Its methods may be called at the same time; they take turns. Each holds the Output's
// lock while it works; if another process has the lock, the error matches ErrLocked.
// When a method returns nil, its effect is durable. After an error, nothing of the call
// is published; but after an error of the Output the call may have taken effect, or
// will when the next call begins. It is always safe to repeat a call.
//
// If the context of a call ends, even before its turn, the call returns its error, and nothing of
// it is published, unless it had taken effect already. But it waits for the next entry of a
// Batch.Source, which should end with the context, too.
type Publisher struct {
	Output Output
	Base   string // Base is the URL under which the output is served; names are appended to it.

	// Head describes the feed: its title, id, authors, links … Nil means the
	// published head, or Base as the title of a new feed. If Head has no ID,
	// the feed keeps its ID; the ID of a new feed is the URL of its
	// subscription document. A new Head does not change archives.
	Head *feedhistory.Document

	// Format is Atom or RSS. Zero means Atom.
	Format feedhistory.Format

	// Name is the name of the subscription document. "" means "feed.atom" or
	// "feed.rss". Archives are in a directory of the same name without the
	// extension. Two feeds in one output need different names.
	Name string

	// Split says where to cut the log into archives. Zero means every 100
	// entries. You may change it at any time; existing archives stay as they
	// are.
	Split compose.Split

	// Recent is a minimum number of entries in the subscription document, including some
	// already in an archive, because ordinary readers know no other document. Zero means
	// 20, the least; of another feed's history, as many as its own document shows, however
	// large they are. In addition, the document shows everything the latest ten calls or the
	// last 72 hours have added, within 2 MiB. A negative number means only the entries not archived:
	// the document may then have none, although it should have the newest (5005#8).
	Recent int

	// Backlog says that calls add entries nobody has waited for, such as an import of an
	// older history: the subscription document does not keep them for being new. Nor does
	// it keep those of a feed's first call.
	Backlog bool

	// Chronological keeps entries in the order of their update times through all
	// documents: no archive is newer than an entry of a later document, so a consumer who
	// has read everything up to some time need not look there again (Atom-PMH). The
	// Publisher then refuses an entry, or a deletion, older than the newest published one
	// (ErrLate), does not repeat archived entries for Recent, and publishes an empty feed,
	// too. Set it from the feed's first entry on.
	Chronological bool

	// Versions keeps all versions of an entry. Otherwise a new version replaces the
	// previous one, unless the previous one is archived.
	Versions bool

	// Complete reports whether to mark the subscription document as complete
	// (5005#2) while it contains everything. Nil means yes, unless the head's
	// Coverage has a lesser verdict than whole.
	Complete func(*feedhistory.Document) bool

	form  int // of the feed; see currentForm
	once  sync.Once
	turn  chan struct{} // has room for the call at work
	cache *state        // the result of the last call; valid if the output still has it
	valid validWriter

	least, most, mostQueued int // for tests; zero means leastIndexed, mostIndexed and mostQueued
}

// URL returns the URL of the subscription document, to which readers subscribe.
func (p *Publisher) URL() string { return p.url(p.name()) }

// Append publishes entries in the given order, oldest first: new entries, and
// new versions of published ones (5005#17), which have the same ID and a later update
// time. It publishes either all of them or none.
//
// Append refuses a version whose time is not later than the published one's with an
// *EntryError. If the two versions are equal, it leaves the entry out instead: so you
// may append a whole site at every build. Append compares times with those in the
// subscription document and, if the entry is not newer than everything archived, with
// those in the archives, back to the first one with only older entries. So the cost
// does not depend on the length of the history, except for entries with an old date,
// and after archived entries dated in the future; publish many such entries in one
// call.
//
// An entry without an update time, as in RSS, counts as new or changed unless
// the subscription document has the same entry. Without entries, Append begins an empty feed.
func (p *Publisher) Append(ctx context.Context, entries ...*feedhistory.Entry) error {
	return p.publish(ctx, entries, nil)
}

// ShownIn returns the number of entries of a history that its subscription
// document shows.
func ShownIn(h *feedhistory.History) (n int) {
	if h == nil {
		return 0
	}
	for _, e := range h.Entries {
		if e.Head != nil && h.Head != nil && e.Head.URL == h.Head.URL {
			n++
		}
	}
	return n
}

// Delete publishes the deletion of an entry, out of the feed since the given time (RFC
// 6721); the zero time means now. Its archived copies remain, and readers that support
// deletions ignore them; see Erase. A later version may bring the entry back. Delete
// does not check whether the entry exists, but returns an *EntryError if a newer
// version is published.
func (p *Publisher) Delete(ctx context.Context, id string, when time.Time) error {
	return p.publish(ctx, nil, []feedhistory.Tombstone{{Ref: id, When: cmp.Or(when, time.Now())}})
}

// Archives are found by the links to them, never by their names. But Erase
// removes only files whose names match archiveName.
var archiveName = regexp.MustCompile(`^(.+)-[0-9a-f]{16}(\.atom|\.rss)$`)

func (p *Publisher) format() feedhistory.Format { return cmp.Or(p.Format, feedhistory.FormatAtom) }

// extension returns the extension of archives; servers derive the media type
// from it.
func (p *Publisher) extension() string { return "." + string(p.format()) }

func (p *Publisher) name() string { return cmp.Or(p.Name, "feed"+p.extension()) }

// dir returns the directory of the archives.
func (p *Publisher) dir() string { return strings.TrimSuffix(p.name(), path.Ext(p.name())) }

func (p *Publisher) url(name string) string {
	if name == "" {
		return ""
	}
	return strings.TrimSuffix(p.Base, "/") + "/" + name
}

// recent returns the minimum number of entries in the subscription document;
// zero means that archived entries are not repeated there.
func (p *Publisher) recent() int {
	if p.Chronological || p.Recent < 0 {
		return 0
	}
	return max(p.Recent, feedtime.LeastShown)
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_~-][A-Za-z0-9._~-]*(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$`)

// check returns an error for impossible settings.
func (p *Publisher) check() error {
	switch {
	case p.Output == nil:
		return errors.New("publish: Publisher.Output must be set")
	case p.format() != feedhistory.FormatAtom && p.format() != feedhistory.FormatRSS:
		return fmt.Errorf("publish: archives can be Atom or RSS, not %v", p.Format)
	case !plainName.MatchString(p.name()) || !fs.ValidPath(p.name()) || p.dir() == p.name():
		return fmt.Errorf("publish: not a plain name with an extension: %q", p.Name)
	}
	size := settings.Number{Name: "Publisher.Split.Size", Value: int64(p.Split.Size)}
	return cmp.Or(settings.CheckBase("publish: Publisher.Base", p.Base), settings.Check("publish", size))
}

// The reasons for refusing an entry. The error of an *EntryError matches one of
// them.
var (
	// ErrSameTime means another version with the same update time is published, so nobody
	// could tell the newer one (5005#16).
	ErrSameTime = errors.New("another version with the same update time is already published")
	// ErrStale means a version, or a deletion, with a later time is published.
	ErrStale = errors.New("a newer version is published")
	// ErrLate means a newer entry is published and the feed is Chronological.
	ErrLate = errors.New("the feed has newer entries")
	// ErrNotPublished means there is no entry with this id to erase.
	ErrNotPublished = errors.New("no such entry is published")
	// ErrNoID means an entry is nil, or a literal without an ID.
	ErrNoID = errors.New("the entry is nil or has no ID")
	// ErrUnpublishable means readers would not read the entry as given, for instance
	// because its id contains characters forbidden in XML. The error's text says why.
	ErrUnpublishable = errors.New("readers would not read the entry as given")
)

// unpublishable returns an ErrUnpublishable with its condition.
func unpublishable(condition string) error { return fmt.Errorf("%w: %s", ErrUnpublishable, condition) }

// ErrForeign means the file with the name of the subscription document was not written
// by a Publisher. Move it away; its entries can then be published by Publish.
var ErrForeign = errors.New("not a subscription document written by feedhistory")

// An EntryError says which entry was refused, and why. Nothing of the call has
// been published then.
type EntryError struct {
	ID        string
	Given     time.Time // the update time of the entry
	Published time.Time // the time of the published version or deletion; with ErrLate, of the newest published entry
	Err       error     // matches ErrSameTime, ErrStale, ErrLate, ErrNotPublished, ErrNoID or ErrUnpublishable
}

// Error returns the id, the reason and the times.
func (e *EntryError) Error() string {
	s := fmt.Sprintf("entry %q: %v", e.ID, e.Err)
	if !e.Published.IsZero() {
		s += fmt.Sprintf(" (%s, given %s)", e.Published.Format(time.RFC3339Nano), e.Given.Format(time.RFC3339Nano))
	}
	return s
}

// Unwrap returns the reason.
func (e *EntryError) Unwrap() error { return e.Err }

// refused returns the error for an entry, which may be nil.
func refused(e *feedhistory.Entry, err error) error {
	if e == nil {
		return &EntryError{Err: err}
	}
	return &EntryError{ID: e.ID, Given: e.Updated, Err: err}
}
