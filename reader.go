package feedhistory

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// The namespaces that carry meaning here. Elements are known by namespace,
// never by prefix.
const (
	nsAtom       = "http://www.w3.org/2005/Atom"
	nsAtom03     = "http://purl.org/atom/ns#"
	nsHistory    = "http://purl.org/syndication/history/1.0"
	nsTombstones = "http://purl.org/atompub/tombstones/1.0"
	nsDC         = "http://purl.org/dc/elements/1.1/"
	nsDCTerms    = "http://purl.org/dc/terms/"
	nsContent    = "http://purl.org/rss/1.0/modules/content/"
	nsXHTML      = "http://www.w3.org/1999/xhtml"
	nsITunes     = "http://www.itunes.com/dtds/podcast-1.0.dtd"
	nsRDF        = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	nsXML        = "http://www.w3.org/XML/1998/namespace"
)

// A reader turns the scanner's tokens into a Document. What the XML formats
// have in common is here; atom.go and rss.go have what they do not.
type reader struct {
	s        *xmlscan.Scanner
	text     string
	limits   Limits
	header   http.Header
	doc      *Document
	head     *Document // what entries point to; filled in at the end
	headOnly bool      // stop where the first entry begins
	headDone bool
	err      *ParseError
	decoding []xmlscan.Note // of the text's characters

	begun       int  // repairs before the current entry
	idGarbled   bool // its id is damaged,
	linkGarbled bool // and so is its link
	leftOut     int  // where the first entry begins that is left out for that; -1 for none
	linkInEntry bool // an entry without an end tag has a link that may be the feed's,
	linkAt      int  // and begins here

	native string   // the namespace of the root, or of the entry that is read again
	lang   string   // xml:lang around that entry
	bases  []string // what base was computed from
	base   string
	scopes [3]*scope // what children of the root, and of the channel, inherit

	entries []Entry // allocated together, as are
	links   Links   // the entries' links
	own     Links   // of the current entry
	linked  int     // links of all entries
	tooMany bool    // some have been dropped
	dates   dateReader
	polls   scheduleReader
}

// document reads the root element.
func (r *reader) document() {
	if !r.s.Child(0) {
		return
	}
	space, root := r.s.Space(), r.s.Local()
	switch {
	case root == "feed" && (isAtom(space) || space == ""):
		r.doc.Format = Atom
		r.atomFeed()
	case root == "rss":
		r.doc.Format = RSS
		r.native = space
		r.rss()
	case root == "RDF" && space == nsRDF:
		r.doc.Format = RSS
		r.rss()
	default:
		what := "the root element is " + clip(root)
		if strings.EqualFold(root, "html") {
			what = htmlPage
		}
		r.fail(ReasonNotFeed, clauseFeed, what)
		return
	}
	for r.proceed() && r.s.Next() != xmlscan.Stop {
	}
}

// clip shortens what a message quotes.
func clip(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}

// proceed reports whether reading goes on.
func (r *reader) proceed() bool { return r.err == nil && !r.headDone }

// child moves to the next child element, unless reading has come to an end.
func (r *reader) child(depth int) bool { return r.proceed() && r.s.Child(depth) }

// fail ends reading at the current token.
func (r *reader) fail(reason Reason, clause, what string) {
	r.failAt(r.s.Offset(), reason, clause, what)
}

func (r *reader) failAt(offset int, reason Reason, clause, what string) {
	line, column := xmlscan.Line(r.text, offset)
	r.err = &ParseError{
		URL: r.doc.URL, Reason: reason, Clause: clause,
		Offset: offset, Line: line, Column: column, Err: stringError(what),
	}
}

type stringError string

func (e stringError) Error() string { return string(e) }

// currentBase returns what references resolve against at the current element:
// its xml:base and its ancestors', then the document's URL (5005#25).
func (r *reader) currentBase() string {
	bases := r.s.Bases()
	if r.base == "" || !slices.Equal(bases, r.bases) {
		r.bases = append(r.bases[:0], bases...)
		r.base = r.doc.URL
		for _, ref := range bases {
			if base := resolve(r.base, ref); len(base) <= r.limits.URL {
				r.base = base
			}
		}
	}
	return r.base
}

// atomLink reads atom:link, in either format, and appends what it says.
func (r *reader) atomLink(links Links) Links {
	link, offset, rel := Link{}, r.s.Offset(), ""
	for _, a := range r.s.Attrs() {
		if a.Space != "" {
			continue
		}
		switch a.Local {
		case "rel":
			rel = trim(a.Value())
		case "href":
			link.Href = a.Value()
		case "type":
			link.Type = a.Value()
		case "title":
			link.Title = a.Value()
		case "hreflang":
			link.HrefLang = a.Value()
		case "length":
			link.Length = a.Value()
		}
	}
	if _, ok := r.s.Attr("", "href"); !ok {
		r.note("link-without-href", "a link without href leads nowhere", offset)
		return links
	}
	if link.Href = r.reference(link.Href, offset); link.Href == "" {
		return links
	}
	if rel == "" {
		link.Rel = RelAlternate
		return append(links, link)
	}
	return r.appendRelations(links, link, rel, offset)
}

// appendRelations appends the link once for each relation that rel has: one
// by the specification, but space-separated lists are seen.
func (r *reader) appendRelations(links Links, link Link, rel string, offset int) Links {
	if strings.ContainsAny(rel, " \t\r\n") {
		r.note("relation-list", "a link has one relation (RFC 4287 §4.2.7.2), not a list: "+clip(rel), offset)
	}
	values := strings.Fields(rel[:min(len(rel), 1000)])
	for _, value := range values[:min(len(values), 16)] {
		name, lenient := relation(value)
		if lenient {
			r.note("relation-misspelt", "the relation "+clip(value)+" is read as "+name, offset)
		}
		link.Rel = name
		links = append(links, link)
	}
	return links
}

// appendText appends the link whose target is the current element's text.
func (r *reader) appendText(links Links, rel string) Links {
	offset, base := r.s.Offset(), r.currentBase()
	ref := r.plainText()
	if ref == "" {
		return links
	}
	if ref = r.absolute(base, ref, offset); ref == "" {
		return links
	}
	return append(links, Link{Rel: rel, Href: ref})
}

// reference makes a reference of the current element absolute; "" if it is
// longer than the limit.
func (r *reader) reference(ref string, offset int) string {
	return r.absolute(r.currentBase(), ref, offset)
}

func (r *reader) absolute(base, ref string, offset int) string {
	abs := ref
	if len(ref) <= r.limits.URL {
		abs = resolve(base, ref)
	}
	if len(abs) > r.limits.URL {
		r.note("url-too-long", "a link longer than the limit is left out", offset)
		return ""
	}
	return abs
}

// parseTime reads a date; a note says where one cannot be read.
func (r *reader) parseTime(value string, offset int) time.Time {
	t, ok := r.dates.read(value)
	if !ok && trim(value) != "" {
		r.note("date-unreadable", "this is not a date: "+clip(trim(value)), offset)
	}
	return t
}

// timeText reads the current element's text as a date.
func (r *reader) timeText() time.Time {
	offset := r.s.Offset()
	return r.parseTime(r.s.ElementText(), offset)
}

// plainText reads the current element's text, without the white space around it.
func (r *reader) plainText() string { return trim(r.s.ElementText()) }

func trim(s string) string { return strings.Trim(s, " \t\r\n") }

// beginEntry allocates an entry for the current element; nil if reading is to
// end here.
func (r *reader) beginEntry() *Entry {
	if r.headOnly {
		r.headDone = true
		return nil
	}
	if len(r.doc.Entries) >= r.limits.Entries {
		r.fail(ReasonLimit, clauseLimits, fmt.Sprintf("more than %d entries", r.limits.Entries))
		return nil
	}
	r.begun, r.idGarbled, r.linkGarbled = r.s.Mended(), false, false
	return r.newEntry(r.scopes[r.s.Depth()-1])
}

func (r *reader) newEntry(sc *scope) *Entry {
	if len(r.entries) == cap(r.entries) {
		r.entries = make([]Entry, 0, min(max(4, 2*cap(r.entries)), 1024))
	}
	r.own = r.own[:0]
	r.entries = append(r.entries, Entry{Source: r.head, scope: sc})
	return &r.entries[len(r.entries)-1]
}

// enter notes what entries inherit that are children of the current element.
func (r *reader) enter() {
	r.scopes[r.s.Depth()] = &scope{
		bindings: slices.Clone(r.s.Bindings()),
		base:     r.currentBase(),
		lang:     r.s.Lang(),
	}
}

// endEntry keeps an entry that ended where the scanner stands now.
func (r *reader) endEntry(e *Entry, start, lenient int) {
	if r.s.Err() != nil || r.err != nil {
		return // it was cut off: not an entry that was read
	}
	if r.idGarbled || r.linkGarbled && e.ID == "" {
		r.leaveOut(start)
		return
	}
	e.raw = r.text[start:r.s.End()]
	if e.lenient = r.s.Lenient() > lenient; r.s.Mended() > r.begun {
		r.mendEntry(e, start)
	}
	r.keepEntry(e, start)
}

// keepEntry adds an entry to the document.
func (r *reader) keepEntry(e *Entry, offset int) {
	if len(e.ID) > r.limits.ID {
		r.failAt(offset, ReasonLimit, clauseLimits, fmt.Sprintf("an id of more than %d bytes", r.limits.ID))
		return
	}
	if e.ID == "" {
		e.identify()
	}
	r.doc.Entries = append(r.doc.Entries, e)
}

// identify gives an identity to an entry that has none: its link, or else a
// digest of it.
func (e *Entry) identify() {
	e.WeakID = true
	if link, ok := e.Links.Rel(RelAlternate); ok {
		e.ID = link.Href
		return
	}
	sum := sha256.Sum256([]byte(e.raw))
	e.ID = "urn:sha256:" + hex.EncodeToString(sum[:])
}

// The links that are kept of one entry, and of all entries of one document.
const (
	maxLinksOfEntry   = 64
	maxLinksOfEntries = 200_000
)

// takeLinks returns the current entry's links, in memory that the document's
// entries share.
func (r *reader) takeLinks() Links {
	n := len(r.own)
	if r.linked += n; n == 0 {
		return nil
	}
	if n > cap(r.links)-len(r.links) {
		r.links = make(Links, 0, min(max(n, 4, 2*cap(r.links)), 4096))
	}
	from := len(r.links)
	r.links = append(r.links, r.own...)
	return r.links[from:len(r.links):len(r.links)]
}

// addLinks sets the current entry's links, unless there are too many.
func (r *reader) addLinks(links Links) {
	if len(links) > maxLinksOfEntry || r.linked+len(links) > maxLinksOfEntries {
		links = links[:min(len(links), len(r.own))]
		if !r.tooMany {
			r.tooMany = true
			r.note("too-many-links", "not all links of the entries are kept", r.s.Offset())
		}
	}
	r.own = links
}
