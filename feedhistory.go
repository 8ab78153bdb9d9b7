// Package feedhistory reconstructs a web feed's whole history, and says
// truthfully what is missing of it.
//
// A feed shows its last few entries. RFC 5005, Feed Paging and Archiving, says
// how it can offer all of them: as a complete feed (one document has
// everything), as a paged feed (lossy pages), or as an archived feed (a
// subscription document and a chain of permanent archive documents). Fetch
// follows whichever it is and returns a History:
//
//	h, err := feedhistory.Fetch(ctx, "https://example.org/feed.atom")
//	if err != nil {
//		return err // there is no answer at all
//	}
//	for _, e := range h.Entries {
//		fmt.Println(e.Updated, e.ID)
//	}
//	fmt.Println(h.Verdict()) // whole, window, lossy or partial
//	for _, gap := range h.Gaps {
//		fmt.Println(gap) // what is missing, and why
//	}
//
// # Parts
//
// [Client.Walk] yields the documents one by one, newest first, so memory does not
// grow with the history; break to stop. You may give it any document of the feed:
// archives and pages say where the feed begins. It requests the next document as
// soon as it has read the head section of the last one, so a chain of n documents
// takes about n times the wait for a first byte.
//
// [Merge] folds documents into a [History] by the specification's rules for
// duplicates: the newest copy of an entry wins, in whatever order the copies
// come. A [Merger] takes documents as they come, and gives the verdict of a walk
// that keeps nothing.
//
// [Parse] reads one document: Atom 1.0 and 0.3, RSS 2.0, 0.9x and 1.0, and JSON
// Feed, in any charset. Feeds are often broken, so it mends tags that are not
// closed or do not match; each leniency is a [Note] with its line.
//
// [Entry.Title], [Entry.Summary] and [Entry.Content] return text with its type,
// [Entry.XML] the entry as it was published, and [Entry.Decode] a gofeed.Item
// with everything else. [History.Feed] and [Document.Feed] return a gofeed.Feed.
//
// [Client.Poll], WalkOptions.Known and [Document.NextPoll] make polls
// conditional, and say when the next one is welcome.
//
// [Draft], [NewComplete], [NewPages], [NewArchive], [WriteAtom] and [WriteRSS]
// are for publishers; package publish does their whole job.
//
// A feed that republishes another one may say how much of it there is
// ([Document.Coverage]); the verdict is then no better than that.
//
// # From gofeed
//
// [History.Feed] says what gofeed's parser would say: authors, categories,
// images, iTunes, Dublin Core and other extensions have the same names. The tests
// compare field by field, with gofeed as the oracle; examples/fromgofeed lists the
// differences. Where it differs, it has a reason: ids stay as they were
// published, references are absolute, an entry has its feed's authors, and broken
// documents are mended. It is several times as fast.
//
// # Safety
//
// A hostile feed can do nothing but be refused. Whatever is made of a document is
// in proportion to its size (see [Limits]): an entry that would break this rule is
// left out and reported as a gap. The library makes only http and https requests,
// and none to a private or loopback address unless Policy.AllowPrivate is set. It
// follows redirects by its own rules, sends credentials only to their origin,
// limits everything ([Limits], [Budget], [Timeouts]), and notices loops however
// they are disguised. It never expands XML entities, and passes no document to
// gofeed's parser.
//
// # Politeness
//
// A publisher sees a User-Agent with a URL, conditional requests, at most four
// requests at a time (Policy.PerHost), and pauses between them if Client.Pace is
// set. The library obeys Retry-After, and sends neither cookies nor a Referer.
//
// In comments, 5005#20 is duty 20 of RFC 5005; RFC5005.md lists the duties.
package feedhistory

import (
	"context"
	"fmt"
	"time"
)

// Fetch returns the whole history of the feed at url, read by a Client with
// its default settings. See Client.Fetch.
func Fetch(ctx context.Context, url string) (*History, error) {
	c := new(Client)
	defer c.CloseIdle()
	return c.Fetch(ctx, url)
}

// A Format is the syntax of a feed document.
type Format uint8

// The formats that Parse reads.
const (
	Atom     Format = iota + 1 // Atom 1.0 (RFC 4287) and 0.3
	RSS                        // RSS 2.0, 0.9x and 1.0
	JSONFeed                   // JSON Feed 1.0 and 1.1
)

// String returns "atom", "rss" or "jsonfeed".
func (f Format) String() string { return name(f, "", "atom", "rss", "jsonfeed") }

// A Kind is what a feed document says of the logical feed it belongs to.
type Kind uint8

// The kinds of feed, from RFC 5005. Where a document combines them, which the
// RFC leaves undefined (5005#26), complete beats archived, which beats paged.
const (
	Plain    Kind = iota // no history is declared: a window on the latest entries
	Complete             // §2: this document holds every entry
	Paged                // §3: a lossy series of pages
	Archived             // §4: a subscription document, or one of its archives
)

// String returns "plain", "complete", "paged" or "archived".
func (k Kind) String() string { return name(k, "plain", "complete", "paged", "archived") }

// A Document is one feed document.
type Document struct {
	URL          string // where it was read: the base of its references; "" if unknown
	Format       Format
	Complete     bool      // fh:complete stands in the head section
	Archive      bool      // fh:archive stands in the head section
	Links        Links     // the head's links, absolute, in document order
	ID           string    // atom:id as published; "" in other formats
	Title        string    // as plain characters
	Subtitle     string    // likewise; RSS calls it description
	Authors      []Person  // of the feed as a whole
	Language     string    // of the feed as a whole, as RFC 5646 has them; "" if none is given
	Icon         string    // where a picture is that stands for the feed, absolute; "" if none is given
	Updated      time.Time // atom:updated or lastBuildDate; zero if none is given
	LastModified time.Time // of the HTTP response; zero if none was given
	Entries      []*Entry
	Deleted      []Tombstone
	Notes        []Note    // the leniencies used in reading it; the first hundred
	Gaps         []*Gap    // what was left out of it: entries beyond Limits; see Missing
	Schedule     Schedule  // how often the feed wants to be asked for
	Response     Response  // what HTTP said of it
	Coverage     *Coverage // how much it says it has of a feed that it republishes; nil: it says nothing

	lost    []string // the relations of history links that could not be used
	place   place    // what the walk that it came in knows of it
	text    string   // as decoded to UTF-8
	reread  bool     // a second copy of the subscription document, newer than the first
	extra   []string // the other elements of the head section, as they stood there
	known   []string // those that need not be written again, as what they say is above
	scope   *scope   // what the surroundings of both contribute
	version string   // of the format
	damage  *damage  // what mending may not have brought back; nil for nothing
}

// Text returns the document as it was read, decoded to UTF-8: what the places in
// its Notes refer to. The heads that Entry.Source and History.Head point to
// have none.
func (d *Document) Text() string { return d.text }

// Kind returns what the document says of its feed. See Combines.
func (d *Document) Kind() Kind {
	switch {
	case d.isComplete():
		return Complete
	case d.isArchived():
		return Archived
	case d.isPaged():
		return Paged
	}
	return Plain
}

// Combines returns every kind that the document shows signs of, the one that
// Kind returns first; nil for a plain document. More than one is undefined by
// the specification (5005#26).
func (d *Document) Combines() (kinds []Kind) {
	if d.isComplete() {
		kinds = append(kinds, Complete)
	}
	if d.isArchived() {
		kinds = append(kinds, Archived)
	}
	if d.isPaged() {
		kinds = append(kinds, Paged)
	}
	return kinds
}

// Older returns the link to the next document back in time: prev-archive of an
// archived feed, next of a paged one; of several the one that Links.Rel returns.
// There is none in a complete or plain document, nor in the last of a chain.
func (d *Document) Older() (Link, bool) { return d.Links.Rel(d.Kind().older()) }

// older returns the relation by which a feed of the kind goes back in time; ""
// if it does not.
func (k Kind) older() string {
	switch k {
	case Archived:
		return RelPrevArchive
	case Paged:
		return RelNext
	}
	return ""
}

// A Person is an author (RFC 4287 §3.2).
type Person struct{ Name, URI, Email string }

// An Entry is one entry of a feed (an item, in RSS and JSON Feed).
type Entry struct {
	ID        string    // atom:id, guid, rdf:about or id, character for character
	WeakID    bool      // it had none of these: ID is its link, or a digest of it
	Updated   time.Time // when it last changed (5005#22); zero if none is given
	Published time.Time // zero if none is given
	Links     Links
	Source    *Document // head of the document it stood in: no Entries, no Deleted

	raw     string    // the element, or JSON object, as it stood in the document
	json    *jsonItem // what that says; nil in the XML formats, and if it is short
	scope   *scope    // what its surroundings contribute
	texts   textPlaces
	lenient bool // raw is not well-formed without repair
	signed  bool // it says itself who wrote it
	odd     bool // names in it are misspelt, so that others do not read it
}

// A Tombstone says that an entry was deleted: at:deleted-entry (RFC 6721).
type Tombstone struct {
	Ref    string    // the entry's ID
	When   time.Time // zero if the document gives none that can be read
	Source *Document // head of the document it stood in
}

// A Note is a leniency: something that the specifications do not allow, and
// how it was read. Its place is in the document as decoded to UTF-8.
type Note struct {
	Code    string // what, as a word: "bare-ampersand"
	Message string // for people
	Offset  int    // in bytes
	Line    int    // from 1; 0 where it has no place
	Column  int    // from 1, in characters
}

// name returns the name of an enumeration's value.
func name[T ~uint8](value T, names ...string) string {
	if int(value) < len(names) {
		return names[value]
	}
	return unknown
}

// unknown is the name of values that are none.
const unknown = "unknown"

// named finds the value that has a name.
func named[T interface {
	~uint8
	String() string
}](value *T, text []byte) error {
	for v := T(0); v.String() != unknown; v++ {
		if v.String() == string(text) {
			*value = v
			return nil
		}
	}
	return fmt.Errorf("%q names no %T", text, *value)
}

// MarshalText returns the name that String returns.
func (f Format) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads such a name.
func (f *Format) UnmarshalText(text []byte) error { return named(f, text) }

// MarshalText returns the name that String returns.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads such a name.
func (k *Kind) UnmarshalText(text []byte) error { return named(k, text) }

// MarshalText returns the name that String returns.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads such a name.
func (v *Verdict) UnmarshalText(text []byte) error { return named(v, text) }

// MarshalText returns the name that String returns.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads such a name.
func (r *Reason) UnmarshalText(text []byte) error { return named(r, text) }
