package publish

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A Publisher publishes a growing log of entries as an archived feed. Output
// and Base must be set.
//
// Its methods may be called at the same time, and take turns. Each takes the
// Output's lock while it works; where another process has it, they return
// ErrLocked. What they did is durable when they return nil. After an error
// nothing of the call is published; if it is one of the Output's, the call may
// have been carried out, or will be when the next begins. To repeat it is
// always safe.
type Publisher struct {
	Output Output
	Base   string // Base is the URL under which the output is served; names are appended to it.

	// Head describes the feed: its title, id, authors, links … Nil means as
	// published; for a new feed, with Base as its title. Without an ID the feed
	// keeps the one it has; the ID of a new feed is the URL of its subscription
	// document. A new Head does not change archives.
	Head *feedhistory.Document

	// Format is Atom or RSS. Zero means Atom.
	Format feedhistory.Format

	// Name is the name of the subscription document. "" means "feed.atom" or
	// "feed.rss". Archives are in the directory of the same name, without its
	// extension. Two feeds in one output need different names.
	Name string

	// Split says where to cut the log into archives. Zero means every 100 entries.
	// You may change it at any time: what is published stays where it is.
	Split feedhistory.Split

	// Recent is the least number of entries that the subscription document shows,
	// including some that an archive has already: ordinary readers know no other
	// document. Zero means 10, negative only those that are not archived.
	Recent int

	// Chronological keeps entries in the order of their update times, through all
	// documents: no archive is newer than an entry of a document after it, so a
	// consumer that has read everything until some time need not look there again
	// (Atom-PMH). The Publisher then refuses an entry, or deletion, that is older
	// than the newest published one (ErrLate), does not repeat archived entries for
	// Recent, and publishes an empty feed, too. Set it from a feed's beginning on.
	Chronological bool

	// Versions keeps all versions of an entry. Otherwise a new version replaces the
	// one before, unless that is archived.
	Versions bool

	// Complete reports whether to mark the subscription document as complete
	// (5005#2) while it has everything. Nil means to mark it.
	Complete func(*feedhistory.Document) bool

	mu    sync.Mutex
	cache *state // as of the last call; it counts if the output still has it
}

// URL returns that of the subscription document: what readers subscribe to.
func (p *Publisher) URL() string { return p.url(p.name()) }

// Append publishes entries in the given order, the oldest first: new ones, and
// new versions of old ones, which have the same ID and a later update time. It
// is all or nothing.
//
// A version whose time is not later than that of the published one is refused
// by an *EntryError, unless it is the very same, which is left out: so a whole
// site may be appended again at every build. Times are compared with those of
// the subscription document and, where the entry is not newer than everything
// archived, with those of the archives, back to the first in which all is
// older. So it costs the same however long the history is, except where
// entries have an old date, or archived ones had a date in the future: such
// entries are best published together.
//
// An entry without update time, as RSS has them, counts as new or changed
// unless the subscription document has the same.
func (p *Publisher) Append(entries ...*feedhistory.Entry) error {
	return p.publish(change{entries: entries})
}

// AppendHistory publishes what another feed has: a history as Client.Fetch
// returns it, its deletions included. Entries of which this or a later version
// is published already are left out, whatever that costs to find out.
func (p *Publisher) AppendHistory(h *feedhistory.History) error {
	entries := slices.Clone(h.Entries)
	slices.Reverse(entries)
	slices.SortStableFunc(entries, func(a, b *feedhistory.Entry) int { return sortTime(a).Compare(sortTime(b)) })
	var deleted []feedhistory.Tombstone
	for _, t := range h.Deleted {
		if t.When.IsZero() && t.Source != nil {
			t.When = t.Source.Updated
		}
		if !t.When.IsZero() {
			deleted = append(deleted, t)
		}
	}
	slices.Reverse(deleted)
	return p.publish(change{entries: entries, deleted: deleted, lenient: true})
}

// sortTime is when an entry was published in this version, as well as is known.
func sortTime(e *feedhistory.Entry) time.Time {
	if e.Updated.IsZero() {
		return e.Published
	}
	return e.Updated
}

// Delete publishes that an entry is no longer part of the feed (RFC 6721). Its
// archived copies stay, and those who know of deletions disregard them; see
// Erase. A later version may bring it back. Whether there is such an entry is
// not checked, but it is an *EntryError if what is published is newer.
func (p *Publisher) Delete(id string, when time.Time) error {
	return p.publish(change{deleted: []feedhistory.Tombstone{{Ref: id, When: when}}})
}

// Correct publishes a new version of an entry (5005#17): as Append does, but
// the entry must be there. To see that, the archives are read, back to the one
// that has it.
func (p *Publisher) Correct(e *feedhistory.Entry) error {
	return p.publish(change{entries: []*feedhistory.Entry{e}, correction: true})
}

// Archives are found by the links to them, never by how they are called; but
// what Erase sweeps away is what is called like one.
var archiveName = regexp.MustCompile(`^(.+)-[0-9a-f]{16}(\.atom|\.rss)$`)

func (p *Publisher) format() feedhistory.Format {
	if p.Format == 0 {
		return feedhistory.Atom
	}
	return p.Format
}

// extension is that of archives; servers derive the media type from it.
func (p *Publisher) extension() string { return "." + p.format().String() }

func (p *Publisher) name() string {
	if p.Name == "" {
		return "feed" + p.extension()
	}
	return p.Name
}

// dir is where the archives are.
func (p *Publisher) dir() string { return strings.TrimSuffix(p.name(), path.Ext(p.name())) }

func (p *Publisher) url(name string) string {
	if name == "" {
		return ""
	}
	return strings.TrimSuffix(p.Base, "/") + "/" + name
}

func (p *Publisher) recent() int {
	switch {
	case p.Recent < 0 || p.Chronological:
		return 0
	case p.Recent == 0:
		return 10
	}
	return p.Recent
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_~-][A-Za-z0-9._~-]*(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$`)

// check refuses settings that cannot work.
func (p *Publisher) check() error {
	base, err := url.Parse(p.Base)
	switch {
	case p.Output == nil:
		return fmt.Errorf("publish: an Output is needed")
	case err != nil:
		return fmt.Errorf("publish: the base: %w", err)
	case !base.IsAbs() || base.Host == "" || base.RawQuery != "" || base.Fragment != "":
		return fmt.Errorf("publish: the base is not the URL of a directory: %q", p.Base)
	case p.format() != feedhistory.Atom && p.format() != feedhistory.RSS:
		return fmt.Errorf("publish: archives can be written as Atom and RSS only, not as %v", p.Format)
	case !plainName.MatchString(p.name()) || !fs.ValidPath(p.name()) || p.dir() == p.name():
		return fmt.Errorf("publish: not a plain name with an extension: %q", p.Name)
	}
	return nil
}
