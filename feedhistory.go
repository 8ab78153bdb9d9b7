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
//		fmt.Println(e.Time(), e.ID)
//	}
//	fmt.Println(h.Verdict()) // whole, window, lossy or partial
//	for _, gap := range h.Gaps {
//		fmt.Println(gap) // the missing part, and why
//	}
//
// # Parts
//
// [Client.Walk] yields a [Reading] for each document, newest first, so memory does not
// grow with the history; break to stop. You may give it any document of the feed:
// archives and pages say where the feed begins. It requests the next document as
// soon as it has read the head section of the last one, so a chain of n documents
// takes about n times the time to a first byte, or a third of that if the names of the
// documents can be told.
//
// [Merge] merges the Readings into a [History] by the specification's rules for
// duplicates: the newest copy of an entry wins, in whatever order the copies
// arrive. A [Merger] takes them one by one, and can give the verdict
// without keeping any entries. [Readings] are those of documents read otherwise.
//
// [Parse] reads one document: Atom 1.0 and 0.3, RSS 2.0, 0.9x and 1.0, and JSON Feed,
// in any charset. Feeds are often broken, so Parse repairs unclosed or mismatched tags; a
// [Note] records each leniency with its line.
//
// [Entry.Title], [Entry.Summary] and [Entry.Content] return text with its type, and
// [Entry.XML] the entry as it was published; other methods of Entry and fields of [Document]
// have all that the formats define. Package togofeed has the form of gofeed.
//
// [Client.Poll] polls one document conditionally: give it the Known of the last Reading.
// [Schedule.Next] says when to poll next. The Poll of package mirror polls a whole history: a program stores the Ledger of
// one walk, and passes it to the next.
//
// Package compose makes entries and documents, and writes them; package publish does the
// whole job of a publisher.
//
// A feed republishing another one may declare how much of it is there
// ([Document.Coverage]); the verdict is then no better than declared.
//
// # Safety
//
// The worst a hostile feed can achieve is to be refused. Everything the library derives
// from a document is in proportion to the document's size (see [Parser]): an entry in
// breach of this rule is left out and reported as a gap. The library makes only http
// and https requests, and none to a private or loopback address unless
// Client.AllowPrivate is set. It follows redirects by its own rules, sends credentials
// only to their origin, limits everything ([Parser], [Budget], Client.Timeout), and detects
// loops however they are disguised. It never expands XML entities, and passes no
// document to gofeed's parser.
//
// # Politeness
//
// A publisher sees a User-Agent with a URL, conditional requests, at most four requests
// at a time (Client.PerHost), and pauses between them if Client.Pace is set. Where the
// names of archives or pages can be told in advance, up to four requests of a walk may be
// for missing documents, or be made twice; Client.NoGuess and Pace prevent this. The library
// obeys Retry-After, and sends neither cookies nor a Referer.
//
// In comments, 5005#20 is duty 20 of RFC 5005; RFC5005.md lists the duties.
//
// A function that takes a context may return the error of the context. Methods of nil pointers
// may panic, unless their comments say otherwise.
package feedhistory

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A document is read by read.go and entry.go, with the elements of its format in atom.go,
// rss.go and jsonfeed.go; complete.go, paged.go, archived.go and links.go tell its part in
// a history, walk.go and beyond.go request one after another, and dedupe.go merges them.

// A Format is the syntax of a feed document; "" means there is none.
type Format string

// The formats Parse reads.
const (
	FormatAtom     Format = "atom"     // Atom 1.0 (RFC 4287) and 0.3
	FormatRSS      Format = "rss"      // RSS 2.0, 0.9x and 1.0
	FormatJSONFeed Format = "jsonfeed" // JSON Feed 1.0 and 1.1
)

// A Kind says how a feed document takes part in its logical feed; "" means the same as
// KindUnknown.
type Kind string

// The kinds of feed, from RFC 5005. Where a document combines them, which the
// RFC leaves undefined (5005#26), complete beats archived, which beats paged.
const (
	KindUnknown  Kind = unknown    // nothing has been read
	KindPlain    Kind = "plain"    // declares no history: a window on the latest entries
	KindComplete Kind = "complete" // §2: this document holds every entry
	KindPaged    Kind = "paged"    // §3: a lossy series of pages
	KindArchived Kind = "archived" // §4: a subscription document, or one of its archives
)

// A Verdict says how much of the logical feed a History has.
type Verdict uint8

// The verdicts, the best last: v >= VerdictWindow means nothing is known to be missing, and the min
// of two verdicts is that of a history that depends on both.
const (
	VerdictUnknown Verdict = iota // nothing has been read
	VerdictPartial                // something is missing, or may be: see Gaps (5005#23, 5005#24)
	VerdictLossy                  // all pages of a paged feed, which may change while they are read (5005#4)
	VerdictWindow                 // one plain document, which says nothing about earlier entries
	VerdictWhole                  // a complete feed, or an archived one whose chain was read to its end
)

var verdicts = [...]string{unknown, "partial", "lossy", "window", "whole"}

// String returns "unknown", "partial", "lossy", "window" or "whole".
func (v Verdict) String() string {
	if int(v) < len(verdicts) {
		return verdicts[v]
	}
	return unknown
}

// MarshalText returns the name String returns.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads a name String returns.
func (v *Verdict) UnmarshalText(text []byte) error {
	i := slices.Index(verdicts[:], string(text))
	if i < 0 {
		return fmt.Errorf("%q is not a %T", text, *v)
	}
	*v = Verdict(i)
	return nil
}

// A Document is one feed document.
type Document struct {
	URL          string // the URL it was read from, which its references resolve against; "" if unknown
	Format       Format
	Complete     bool       // the head section has fh:complete
	Archive      bool       // the head section has fh:archive
	Links        Links      // the head's links, absolute, in document order
	ID           string     // atom:id as published; "" in other formats
	Title        string     // as plain characters
	Subtitle     string     // as plain characters; RSS calls it description
	Authors      []Person   // the authors of the feed as a whole; in RSS managingEditor and dc:creator, or else itunes:author
	Contributors []Person   // atom:contributor, dc:contributor
	Categories   []Category // atom:category, category with its domain in RSS, dc:subject
	Rights       Text       // atom:rights, RSS's copyright, dc:rights; see Entry.Rights
	Generator    Generator  // the program behind the document; zero if none is given
	Language     string     // the language of the feed as a whole, by RFC 5646: xml:lang, language, dc:language; "" if none is given
	Icon         string     // the absolute URL of the feed's icon, or else of its Logo; "" if none is given
	Logo         string     // the absolute URL of its larger picture: atom:logo, RSS's image, itunes:image; "" if none is given
	Updated      time.Time  // atom:updated or lastBuildDate; zero if none is given
	Published    time.Time  // the channel's pubDate or dcterms:issued; zero if none is given
	LastModified time.Time  // the HTTP response's Last-Modified; zero if none was given
	Entries      []*Entry
	Deleted      []Tombstone
	Notes        []Note    // the leniencies used in reading it; the first hundred
	Schedule     Schedule  // how often the feed asks to be polled
	Response     Response  // the HTTP response with the document
	Coverage     *Coverage // how much the document has of a feed it republishes; nil if it does not say

	lost    []string       // the relations of unusable history links
	text    string         // decoded to UTF-8
	extra   []string       // the other elements of the head section, as published
	known   []string       // the elements not to be written again, because the fields above say the same
	scope   *xmlscan.Scope // the scope of both kinds of elements
	version string         // of the format
	damage  *damage        // the losses mending may not have restored; nil if none
	gaps    []*Gap         // the entries left out because they exceed a limit
}

// Text returns the document decoded to UTF-8, with the entities it declares itself
// expanded; the places in its Notes refer to this text. Its XML declaration names no
// other charset. It is "" for the heads of Entry.Head and History.Head.
func (d *Document) Text() string { return d.text }

// Kind returns the kind of feed the document declares. See Combines.
func (d *Document) Kind() Kind {
	switch {
	case d.isComplete():
		return KindComplete
	case d.isArchived():
		return KindArchived
	case d.isPaged():
		return KindPaged
	}
	return KindPlain
}

// Combines returns every kind the document declares, Kind's first; nil for a plain
// document. The specification does not define documents of more than one kind
// (5005#26).
func (d *Document) Combines() (kinds []Kind) {
	if d.isComplete() {
		kinds = append(kinds, KindComplete)
	}
	if d.isArchived() {
		kinds = append(kinds, KindArchived)
	}
	if d.isPaged() {
		kinds = append(kinds, KindPaged)
	}
	return kinds
}

// An Entry is one entry of a feed (an item, in RSS and JSON Feed). You may set its
// fields: XML, Digest and every writer then say the same. The methods read the published entry
// again at each call: keep a result that you need often.
type Entry struct {
	ID        string    // atom:id, guid, rdf:about or id, character for character
	WeakID    bool      // it has none of these, or shares it with others of its document with other titles and links: ID is its link, or a digest of the entry; false if you set an ID of your own
	Updated   time.Time // when it last changed (5005#22); zero if none is given
	Published time.Time // zero if none is given
	Links     Links     // absolute; Rel("alternate") is its page; the Rel of an enclosure of RSS or an attachment of a JSON Feed is "enclosure"
	Head      *Document // the head of the document it was read in, without Entries and Deleted; see Source
	KeptBy    string    // the feed reader whose copy this is; "" for a copy of the publisher's own. See compose.KeptBy

	raw   string         // the element or JSON object, as published
	scope *xmlscan.Scope // its inheritance from its surroundings
	id    string         // the ID raw says; "" if none
	page  string         // the base of its references; "" means that of scope: see surroundings
	read  uint64         // the digest of the other exported fields raw says; see isAltered
	texts feedxml.Places

	permalink bool // its guid is its link
	lenient   bool // raw is not well-formed
	signed    bool // it names its own authors
	odd       bool // it has misspelt names, which other programs do not read
}

// A Tombstone is the deletion of an entry: at:deleted-entry (RFC 6721).
type Tombstone struct {
	Ref  string    // the entry's ID
	When time.Time // zero if the document gives no readable time
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

// unknown is the word for an unknown kind, reason or verdict.
const unknown = "unknown"

// Entries whose exported fields were set after they were read.

// isAltered reports whether the exported fields were set since the entry was read, or
// never read at all, so that raw does not say the same.
func (e *Entry) isAltered() bool {
	return e.raw == "" || !e.WeakID && e.ID != e.id || e.read != e.fields()
}

// asRead records that raw says the fields.
func (e *Entry) asRead() { e.id, e.read = e.ID, e.fields() }

// fields returns a digest of the exported fields, apart from ID and Head.
func (e *Entry) fields() uint64 {
	var d fieldDigest
	d.time(e.Updated)
	d.time(e.Published)
	for i := range e.Links {
		l := &e.Links[i]
		d.number(uint64(len(l.Rel)) ^ uint64(len(l.Href))<<8 ^ uint64(len(l.Type))<<24 ^
			uint64(len(l.HrefLang))<<34 ^ uint64(len(l.Title))<<42 ^ uint64(len(l.Length))<<56)
		d.text(l.Rel)
		d.text(l.Href)
		if l.Type != "" || l.HrefLang != "" || l.Title != "" || l.Length != "" {
			d.text(l.Type)
			d.text(l.HrefLang)
			d.text(l.Title)
			d.text(l.Length)
		}
	}
	return uint64(d)
}

// A fieldDigest mixes values into 64 bits. It detects changes, and does not withstand
// forgery, which would gain nothing.
type fieldDigest uint64

func (d *fieldDigest) number(n uint64) {
	h := (uint64(*d) ^ n) * 0x9E3779B97F4A7C15
	*d = fieldDigest(h ^ h>>32)
}

func (d *fieldDigest) time(t time.Time) {
	d.number(uint64(t.Unix()))
	d.number(uint64(t.Nanosecond()))
}

// text mixes in a text, without its length.
func (d *fieldDigest) text(s string) {
	for ; len(s) >= 8; s = s[8:] {
		d.number(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)
	}
	tail := uint64(0)
	for i := range len(s) {
		tail = tail<<8 | uint64(s[i])
	}
	d.number(tail)
}

// The types of a [Text].
const (
	textPlain = "text"
	textHTML  = "html"
	textXHTML = "xhtml"
)

// A Text is a text construct (RFC 4287 §3.1), or an entry's content (§4.1.3). The zero
// value means there is none.
type Text struct {
	Type string // "text", "html", "xhtml" or, for content, a media type; "" with a Body means "text"
	Body string // characters, HTML, the markup inside xhtml's div, or the bytes of the media type
	Src  string // the absolute URL of content elsewhere; "" if it is in Body
	Base string // the base for relative references in Body
	Lang string // xml:lang in scope; "" if there is none
}

// Plain returns the text without markup. It separates blocks by a newline, and leaves
// out invisible elements, such as scripts and styles.
func (t Text) Plain() string { return feedxml.Construct(t).Plain() }

// HTML returns the text as HTML with absolute references. It is the publisher's, with scripts,
// forms and everything else: before a page shows it, sanitise it, for example by
// bluemonday.UGCPolicy().Sanitize(t.HTML()), of github.com/microcosm-cc/bluemonday. Plain needs
// no more than the escaping of any text.
func (t Text) HTML() string { return feedxml.Construct(t).AsHTML() }

// Title returns the entry's title.
func (e *Entry) Title() Text { return e.text(feedxml.TitleOf) }

// Summary returns the entry's summary; in RSS, its description. If there is none, it
// returns media:description.
func (e *Entry) Summary() Text { return e.text(feedxml.SummaryOf) }

// Content returns the entry's content; in RSS, content:encoded.
func (e *Entry) Content() Text { return e.text(feedxml.ContentOf) }

func (e *Entry) format() Format {
	if e.Head == nil {
		return ""
	}
	return e.Head.Format
}

// text reads one of the three texts from the entry as published.
func (e *Entry) text(which feedxml.TextOf) Text {
	if e.raw == "" { // a program made it
		return Text{}
	}
	if e.format() == FormatJSONFeed {
		return e.jsonText(which)
	}
	texts := e.published()
	return Text(texts.Text(which))
}

// literalTitle returns the title; in RSS, with its references to characters as they are.
func (e *Entry) literalTitle() string {
	if e.format() == FormatJSONFeed {
		return e.Title().Body
	}
	texts := e.published()
	texts.Literal = true
	return texts.Text(feedxml.TitleOf).Body
}

// published returns the entry's texts as published.
func (e *Entry) published() feedxml.Texts {
	return feedxml.Texts{Raw: e.raw, Scope: e.scope, Page: e.page, Format: feedxml.Format(e.format()), Places: e.texts}
}

// clip shortens a quotation in a message.
func clip(s string) string { return xmlscan.Clip(s, 40) }

func trim(s string) string { return xmlscan.Trim(s) }

// Time returns when the entry was published, or else updated; zero if it says neither.
// Use it for everything people see: it shows, sorts and dates an entry as its readers
// know it, and an edit does not move the entry.
func (e *Entry) Time() time.Time { return feedtime.First(e.Published, e.Updated) }

// Changed returns when the entry was updated, or else published; zero if it says
// neither. Use it to find new entries: archives are cut by it, and an edit moves the
// entry.
func (e *Entry) Changed() time.Time { return feedtime.First(e.Updated, e.Published) }

// datedTime is the time for what says none itself: the feed's own, or the response's. It
// is the same at each run.
func (d *Document) datedTime() time.Time {
	if d == nil {
		return time.Time{}
	}
	return feedtime.First(d.Updated, d.Published, d.LastModified)
}

// documentTime is the time to decide between duplicates with the same update time or
// none (5005#21); zero if neither document nor response has one.
func (d *Document) documentTime() time.Time {
	return feedtime.First(d.Updated, d.LastModified)
}

// Digest returns a digest of the entry's bytes as published, without the signatures in
// addresses: a query with both a secret and a time, such as token-hash and token-time, is
// made anew again and again, so an entry that differs in those alone has not changed. The
// same bytes in another document have the same digest. XML adds inherited attributes, such
// as namespaces, so ReadEntry(e.XML()) may have another one: store the digest with the XML.
// If the entry's fields were set since it was read, Digest is that of its XML.
func (e *Entry) Digest() string {
	raw := e.raw
	if e.isAltered() {
		raw = string(e.XML())
	}
	sum := sumOf(iri.Unsigned(raw))
	return hex.EncodeToString(sum[:16])
}

// HostOf returns the host of a URL as politeness counts hosts: in lower case, without
// the default ports, which http and https share. It returns an invalid URL unchanged.
func HostOf(url string) string { return fetch.HostOf(url) }

// SameOrigin reports whether two URLs agree in scheme, host and port. An invalid URL has
// no origin.
func SameOrigin(a, b string) bool { return iri.AreSameOrigin(a, b) }

// Redact removes the user and password from a URL, which may be invalid.
func Redact(url string) string { return iri.Redact(url) }

// ParseURL parses a URL or reference whose path, query and fragment may have characters
// that should be escaped; the result escapes them, as a Client's requests do. Keep the
// text for identity: String may write the same URL differently.
func ParseURL(ref string) (*url.URL, error) {
	u, err := iri.ParseLeniently(ref)
	if _, fragment, ok := strings.Cut(ref, "#"); ok && err == nil {
		escaped := iri.Escape(fragment)
		if u.Fragment, err = url.PathUnescape(escaped); err != nil {
			return nil, err
		}
		u.RawFragment = escaped
	}
	return u, err
}

// limits are all limits of reading a document.
type limits struct {
	bytes                       int64
	entries, headLinks, id, url int
	xml                         xmlscan.Limits
}

// limits returns the limits of the documents p reads.
func (p Parser) limits() limits {
	l := limits{fetch.DefaultBytes, 50_000, 64, 4 << 10, fetch.MaxURL, xmlscan.Limits{}}
	if p.Trusted {
		l = limits{math.MaxInt64 - 1, math.MaxInt, math.MaxInt, math.MaxInt, math.MaxInt, xmlscan.Unlimited()}
	}
	l.bytes, l.entries = cmp.Or(p.MaxBytes, l.bytes), cmp.Or(p.MaxEntries, l.entries)
	if most := p.MaxEntries; !p.Trusted && most > 50_000 {
		l.xml.Elements = min(most, math.MaxInt/20) * 20
	}
	return l
}
