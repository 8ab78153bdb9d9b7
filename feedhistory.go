// Package feedhistory reconstructs the whole history of a web feed, and reports gaps in
// it.
//
// A feed usually shows only its latest entries. RFC 5005, Feed Paging and Archiving,
// defines how it can offer all of them: as a complete feed (one document has
// everything), as a paged feed (lossy pages), or as an archived feed (a
// subscription document and a chain of permanent archive documents). Fetch
// reads any of these and returns a History:
//
//	h, err := feedhistory.Fetch(ctx, "https://example.org/feed.atom")
//	if err != nil {
//		return err // the feed could not be read
//	}
//	for _, e := range h.Entries {
//		fmt.Println(e.Updated, e.ID)
//	}
//	fmt.Println(h.Verdict()) // whole, window, lossy or partial
//	for _, gap := range h.Gaps {
//		fmt.Println(gap) // the missing part, and why
//	}
//
// # Parts
//
// [Client.Walk] yields the documents one by one, newest first, so memory does not
// grow with the history; break to stop. You may give it any document of the feed:
// archives and pages say where the feed begins. It requests the next document as
// soon as it has read the head section of the last one, so a chain of n documents
// takes about n times the time to a first byte, or a third of that if the names of the
// documents can be told.
//
// [Merge] merges documents into a [History] by the specification's rules for
// duplicates: the newest copy of an entry wins, in whatever order the copies
// arrive. A [Merger] takes the documents one by one, and can give the verdict
// without keeping any entries.
//
// [Parse] reads one document: Atom 1.0 and 0.3, RSS 2.0, 0.9x and 1.0, and JSON Feed,
// in any charset. Feeds are often broken, so Parse repairs unclosed or mismatched tags;
// a [Note] records each leniency with its line.
//
// [Entry.Title], [Entry.Summary] and [Entry.Content] return text with its type,
// [Entry.XML] the entry as it was published, and [Entry.Decode] a gofeed.Item
// with everything else. [History.Feed] and [Document.Feed] return a gofeed.Feed.
//
// [Client.Poll], WalkOptions.Known and [Document.NextPoll] make polls
// conditional, and say when to poll next.
//
// [Draft], [NewComplete], [NewPages], [NewArchive], [WriteAtom] and [WriteRSS]
// are for publishers; package publish does the whole job.
//
// A feed republishing another one may declare how much of it is there
// ([Document.Coverage]); the verdict is then no better than declared.
//
// # From gofeed
//
// [History.Feed] returns the same as gofeed's parser: authors, categories, images,
// iTunes, Dublin Core and other extensions have the same names. The tests compare the
// two field by field; examples/fromgofeed lists the differences. Each has a reason: ids
// stay as published, references are absolute, an entry has its feed's authors, and
// broken documents are repaired. This package is several times as fast.
//
// # Safety
//
// The worst a hostile feed can achieve is to be refused. Everything the library derives
// from a document is in proportion to the document's size (see [Limits]): an entry in
// breach of this rule is left out and reported as a gap. The library makes only http
// and https requests, and none to a private or loopback address unless
// Policy.AllowPrivate is set. It follows redirects by its own rules, sends credentials
// only to their origin, limits everything ([Limits], [Budget], [Timeouts]), and detects
// loops however they are disguised. It never expands XML entities, and passes no
// document to gofeed's parser.
//
// # Politeness
//
// A publisher sees a User-Agent with a URL, conditional requests, at most four requests
// at a time (Policy.PerHost), and pauses between them if Client.Pace is set. Where the
// names of archives or pages can be told in advance, up to four requests of a walk may be
// for documents that do not exist, or be made twice; Policy.NoGuess and Pace prevent this. The library obeys
// Retry-After, and sends neither cookies nor a Referer.
//
// In comments, 5005#20 is duty 20 of RFC 5005; RFC5005.md lists the duties.
package feedhistory

import (
	"fmt"
	"net/http"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// The files of this package form layers. A file names only what its own layer and those
// above it declare; .ci/house checks this. Methods may stand further down than their type:
// an entry is kept as published, so its accessors call the readers.
//
//	model    feedhistory altered kept text times links gap damage errors
//	         digest known limits place schedule url
//	         complete paged archived
//	reading  parse → documentreader head coverage mend · entryreader entry
//	         → atom rss jsonfeed → elements · entrylist → reading
//	history  dedupe
//	writing  write writeatom writerss writexml entryxml extensions draft
//	         entryjson extensionjson decode gofeed
//	HTTP     client credential discover → walk → begin end bounds prefetch → fetchresult
//
// Below all of them, internal has the wire formats: feedxml, the elements as publishers
// meant them, over xmlscan; jsonfeed; markup, vocab and feedtime. It also has HTTP
// (fetch), the order of a walk's documents (chain), and URLs (iri).

// A Format is the syntax of a feed document.
type Format uint8

// The formats Parse reads.
const (
	Atom     Format = iota + 1 // Atom 1.0 (RFC 4287) and 0.3
	RSS                        // RSS 2.0, 0.9x and 1.0
	JSONFeed                   // JSON Feed 1.0 and 1.1
)

// String returns "atom", "rss" or "jsonfeed".
func (f Format) String() string { return name(f, "", "atom", "rss", "jsonfeed") }

// A Kind says how a feed document takes part in its logical feed.
type Kind uint8

// The kinds of feed, from RFC 5005. Where a document combines them, which the
// RFC leaves undefined (5005#26), complete beats archived, which beats paged.
const (
	Plain    Kind = iota // declares no history: a window on the latest entries
	Complete             // §2: this document holds every entry
	Paged                // §3: a lossy series of pages
	Archived             // §4: a subscription document, or one of its archives
)

// String returns "plain", "complete", "paged" or "archived".
func (k Kind) String() string { return name(k, "plain", "complete", "paged", "archived") }

// A Verdict says how much of the logical feed a History has.
type Verdict uint8

// The verdicts: the zero value, then the best first.
const (
	Unknown Verdict = iota // nothing has been read
	Whole                  // a complete feed, or an archived one whose chain was read to its end
	Window                 // one plain document, which says nothing about earlier entries
	Lossy                  // all pages of a paged feed, which may change while they are read (5005#4)
	Partial                // something is missing, or may be: see Gaps (5005#23)
)

// String returns "unknown", "whole", "window", "lossy" or "partial".
func (v Verdict) String() string { return name(v, unknown, "whole", "window", "lossy", "partial") }

// Worse returns the worse of two verdicts, for a history that depends on both. Unknown
// is the worst of all.
func Worse(a, b Verdict) Verdict {
	if a == Unknown || b == Unknown {
		return Unknown
	}
	return max(a, b)
}

// A Document is one feed document.
type Document struct {
	URL          string // the URL it was read from, which its references resolve against; "" if unknown
	Format       Format
	Complete     bool      // the head section has fh:complete
	Archive      bool      // the head section has fh:archive
	Links        Links     // the head's links, absolute, in document order
	ID           string    // atom:id as published; "" in other formats
	Title        string    // as plain characters
	Subtitle     string    // as plain characters; RSS calls it description
	Authors      []Person  // the authors of the feed as a whole, and of entries without any; RSS has none, but Feed has its editors
	Language     string    // the language of the feed as a whole, by RFC 5646; "" if none is given
	Icon         string    // the absolute URL of the feed's icon; "" if none is given
	Updated      time.Time // atom:updated or lastBuildDate; zero if none is given
	Published    time.Time // the channel's pubDate or dcterms:issued; zero if none is given
	LastModified time.Time // the HTTP response's Last-Modified; zero if none was given
	Entries      []*Entry
	Deleted      []Tombstone
	Notes        []Note      // the leniencies used in reading it; the first hundred
	Gaps         []*Gap      // the entries left out because they exceed Limits; see Missing
	Schedule     Schedule    // how often the feed asks to be polled
	Response     Response    // the HTTP response with the document
	Header       http.Header // the response's fields, as received; nil if the document was not fetched
	Coverage     *Coverage   // how much the document has of a feed it republishes; nil if it does not say

	lost    []string       // the relations of unusable history links
	place   place          // the walk's findings about it
	text    string         // decoded to UTF-8
	raw     string         // as received
	reread  bool           // it is a second, newer copy of the subscription document
	extra   []string       // the other elements of the head section, as published
	known   []string       // the elements not to be written again, because the fields above say the same
	scope   *xmlscan.Scope // the scope of both kinds of elements
	version string         // of the format
	damage  *damage        // the losses mending may not have restored; nil if none
}

// Text returns the document decoded to UTF-8, with the entities it declares itself
// expanded; the places in its Notes refer to this text. Its XML declaration names no
// other charset. It is "" for the heads of Entry.Source and History.Head.
func (d *Document) Text() string { return d.text }

// Received returns the bytes as read, before they were decoded. If they are UTF-8 and
// declared so, it is the same string as Text. It is "" for heads.
func (d *Document) Received() string { return d.raw }

// Kind returns the kind of feed the document declares. See Combines.
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

// Combines returns every kind the document declares, Kind's first; nil for a plain
// document. The specification does not define documents of more than one kind
// (5005#26).
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

// Older returns the link to the next document back in time: prev-archive in an archived
// feed, next in a paged one; of several, the result of Links.Rel. A complete or plain
// document has none, nor has the last one of a chain.
func (d *Document) Older() (Link, bool) { return d.Links.Rel(d.Kind().Older()) }

// Older returns the relation to go back in time in a feed of this kind; "" if none
// does.
func (k Kind) Older() string {
	switch k {
	case Archived:
		return RelPrevArchive
	case Paged:
		return RelNext
	}
	return ""
}

// A Person is an author (RFC 4287 §3.2).
type Person struct {
	Name  string `json:"name"`
	URI   string `json:"uri,omitempty"`
	Email string `json:"email,omitempty"`
}

// An Entry is one entry of a feed (an item, in RSS and JSON Feed). You may set its
// fields: XML, Digest, Draft and every writer then say the same.
type Entry struct {
	ID        string    // atom:id, guid, rdf:about or id, character for character
	WeakID    bool      // it has none of these: ID is its link, or a digest of the entry; false if you set an ID of your own
	Updated   time.Time // when it last changed (5005#22); zero if none is given
	Published time.Time // zero if none is given
	Links     Links
	Source    *Document // the head of its document, without Entries and Deleted
	KeptBy    string    // the feed reader whose copy this is; "" for a copy of the publisher's own. See KeptByElement

	raw     string         // the element or JSON object, as published
	scope   *xmlscan.Scope // its inheritance from its surroundings
	texts   feedxml.Places
	read    uint64 // the digest of the exported fields that raw says; see isAltered
	lenient bool   // raw is not well-formed
	signed  bool   // it names its own authors
	odd     bool   // it has misspelt names, which other programs do not read
}

// A Tombstone is the deletion of an entry: at:deleted-entry (RFC 6721).
type Tombstone struct {
	Ref    string    // the entry's ID
	When   time.Time // zero if the document gives no readable time
	Source *Document // the head of its document
}

// A Note records a leniency: something the specifications do not allow, and how it was
// read. Its place is a place in Document.Text.
type Note struct {
	Code    string // a word for it, such as "bare-ampersand"
	Message string // a sentence for people
	Offset  int    // in bytes
	Line    int    // counted from 1; 0 if the note has no place
	Column  int    // counted from 1, in characters
}

// name returns the name of an enumeration's value.
func name[T ~uint8](value T, names ...string) string {
	if int(value) < len(names) {
		return names[value]
	}
	return unknown
}

// unknown is the name of invalid values.
const unknown = "unknown"

// named sets a value to the one with the given name.
func named[T interface {
	~uint8
	String() string
}](value *T, text []byte) error {
	for v := T(0); v == 0 || v.String() != unknown; v++ {
		if v.String() == string(text) {
			*value = v
			return nil
		}
	}
	return fmt.Errorf("%q is not a %T", text, *value)
}

// MarshalText returns the name String returns.
func (f Format) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads a name String returns.
func (f *Format) UnmarshalText(text []byte) error { return named(f, text) }

// MarshalText returns the name String returns.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a name String returns.
func (k *Kind) UnmarshalText(text []byte) error { return named(k, text) }

// MarshalText returns the name String returns.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads a name String returns.
func (v *Verdict) UnmarshalText(text []byte) error { return named(v, text) }

// MarshalText returns the name String returns.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a name String returns.
func (r *Reason) UnmarshalText(text []byte) error { return named(r, text) }
