package feedhistory

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
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

	mending
	exact  string            // the last namespace that is a usual one
	spaces map[string]string // what unusual namespaces are meant to be
	native string            // the namespace of the root, or of the entry that is read again
	lang   string            // xml:lang around that entry
	bases  []baseURL         // of xml:base in scope
	scopes [3]*scope         // what children of the root, and of the channel, inherit

	entries []Entry       // allocated together, as are
	links   Links         // the entries' links
	odd     bool          // names are misspelt in the current entry
	own     Links         // of the current entry
	lent    int           // bytes that its links take; negative: too many
	start   int           // where it begins
	reach   xmlscan.Reach // of its own base
	length  int           // of an entry in JSON
	item    *jsonItem     // memory for the next
	inHead  bool          // the current link is the head section's
	dates   dateReader
	polls   scheduleReader

	ranks        headRanks
	headBytes    int // of the head section that are kept
	knownBytes   int // and of what Feed alone needs
	skipped      int // entries that were left out
	firstSkipped *ParseError
}

// document reads the root element.
func (r *reader) document() {
	if !r.s.Child(0) {
		return
	}
	space, root := r.space(), r.s.Local()
	switch {
	case strings.EqualFold(root, "feed") && (isAtom(space) || space == ""):
		r.spelt("feed")
		r.doc.Format = Atom
		r.atomFeed()
	case strings.EqualFold(root, "rss"):
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
	r.err = r.failure(offset, reason, clause, what)
}

func (r *reader) failure(offset int, reason Reason, clause, what string) *ParseError {
	line, column := xmlscan.Line(r.text, offset)
	return &ParseError{
		URL: r.doc.URL, Reason: reason, Clause: clause,
		Offset: offset, Line: line, Column: column, Err: stringError(what),
	}
}

// language returns xml:lang at the current element.
func (r *reader) language() string {
	if lang, ok := r.s.Lang(); ok {
		return lang
	}
	return r.lang
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
		r.note("link-without-href", "a link without href: its text is taken for it, if there is any", offset)
		base := r.currentBase()
		if link.Href = r.plainText(); link.Href == "" {
			r.lose(rel)
			return links
		}
		link.Href = r.absolute(base, link.Href, offset)
	} else {
		link.Href = r.reference(link.Href, offset)
	}
	if link.Href == "" {
		r.lose(rel)
		return links
	}
	if rel == "" {
		link.Rel = RelAlternate
		return append(links, link)
	}
	return r.appendRelations(links, link, rel, offset)
}

// maxRelations is how many relations of one link are kept.
const maxRelations = 16

// appendRelations appends the link once for each relation that rel has: one
// by the specification, but space-separated lists are seen.
func (r *reader) appendRelations(links Links, link Link, rel string, offset int) Links {
	if strings.ContainsAny(rel, " \t\r\n") {
		r.note("relation-list", "a link has one relation (RFC 4287 §4.2.7.2), not a list: "+clip(rel), offset)
	}
	n := 0
	for value := range strings.FieldsSeq(rel) {
		if n++; n > maxRelations {
			r.lose(value)
			continue
		}
		name, lenient := relation(value)
		if lenient {
			r.note("relation-misspelt", "the relation "+clip(value)+" is read as "+name, offset)
		}
		link.Rel = name
		links = append(links, link)
	}
	return links
}

// lose notes the relations of a link that cannot be used, if it is the head's.
func (r *reader) lose(rel string) {
	if r.inHead {
		r.doc.lose(rel)
	}
}

// appendText appends the link whose target is the current element's text.
func (r *reader) appendText(links Links, rel string) Links {
	offset, base := r.s.Offset(), r.currentBase()
	ref := r.plainText()
	if ref == "" {
		return links
	}
	return r.appendLink(links, Link{Rel: rel, Href: ref}, base, offset)
}

// appendLink appends a link, unless its target is too long.
func (r *reader) appendLink(links Links, link Link, base string, offset int) Links {
	if link.Href = r.absolute(base, link.Href, offset); link.Href == "" {
		return links
	}
	return append(links, link)
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
	r.noteZone(offset)
	return t
}

// timeText reads the current element's text as a date.
func (r *reader) timeText() time.Time {
	offset := r.s.Offset()
	return r.parseTime(r.s.ElementText(), offset)
}

// plainText reads the current element's text, without the white space around it.
func (r *reader) plainText() string { return trim(r.s.ElementText()) }

func trim(s string) string {
	if s == "" || s[0] > ' ' && s[len(s)-1] > ' ' { // nearly always
		return s
	}
	return strings.Trim(s, " \t\r\n")
}

// beginEntry allocates an entry for the current element; nil if reading is to
// end here.
func (r *reader) beginEntry() *Entry {
	if r.headOnly {
		r.headDone = true
		return nil
	}
	if r.full() {
		r.fail(ReasonLimit, clauseLimits, fmt.Sprintf("more than %d entries", r.limits.Entries))
		return nil
	}
	r.entryMending = entryMending{begun: r.s.Mended()}
	sc := r.scopes[r.s.Depth()-1]
	r.start, r.reach = r.s.Offset(), xmlscan.Reach{}
	_ = r.s.Reach() // of what came before
	if own := r.s.Bases()[sc.bases:]; len(own) > 0 {
		r.reach = own[len(own)-1].Reach
	}
	return r.newEntry(sc)
}

// full reports whether the document may have no further entry.
func (r *reader) full() bool { return len(r.doc.Entries)+r.skipped >= r.limits.Entries }

func (r *reader) newEntry(sc *scope) *Entry {
	if len(r.entries) == cap(r.entries) {
		r.entries = make([]Entry, 0, min(max(4, 2*cap(r.entries)), 1024))
	}
	r.own, r.lent = r.own[:0], 0
	if r.odd = false; r.s != nil {
		local := r.s.Local()
		r.odd = r.doc.Format == RSS && rssName(local) != local || r.doc.Format == Atom && atomName(local) != local
		_ = r.space() // may be odd
	}
	r.entries = append(r.entries, Entry{Source: r.head, scope: sc})
	return &r.entries[len(r.entries)-1]
}

// enter notes what entries inherit that are children of the current element.
func (r *reader) enter() {
	sc := r.newScope()
	sc.clean = r.s.Clean()
	r.scopes[r.s.Depth()] = sc
}

// endEntry keeps an entry that ended where the scanner stands now.
func (r *reader) endEntry(e *Entry, lenient int, texts *textFinder) {
	if r.s.Err() != nil || r.err != nil {
		return // it was cut off: not an entry that was read
	}
	if r.idGarbled || r.linkGarbled && e.ID == "" || r.isIDLost(e) {
		r.leaveOut()
		return
	}
	e.raw, e.odd = r.text[r.start:r.s.End()], r.odd
	e.texts = texts.found(len(e.raw))
	if e.lenient = r.s.Lenient() > lenient; r.s.Mended() > r.begun {
		r.mendEntry(e)
	}
	r.keepEntry(e, r.start, loan{markup: e.raw, reach: r.reach.Max(r.s.Reach())})
}

// keepEntry adds an entry to the document, unless it is beyond a limit.
func (r *reader) keepEntry(e *Entry, offset int, l loan) {
	l.raw, l.links = e.raw, r.lent
	switch {
	case len(e.ID) > r.limits.ID:
		r.skip(offset, fmt.Sprintf("an id of more than %d bytes", r.limits.ID))
		return
	case len(r.own) > maxLinks:
		r.skip(offset, fmt.Sprintf("more than %d links", maxLinks))
		return
	case r.lent < 0, !e.scope.lends(l):
		r.skip(offset, fmt.Sprintf("more than %d times its length is taken from what surrounds it", maxBorrowed))
		return
	}
	if e.ID == "" {
		e.identify(r.doc.Format)
	}
	r.doc.Entries = append(r.doc.Entries, e)
}

// maxLinks is how many links an entry may have.
const maxLinks = 4096

// takeLinks returns the current entry's links, in memory that the document's
// entries share.
func (r *reader) takeLinks() Links {
	n := len(r.own)
	if n == 0 || n > maxLinks {
		return nil
	}
	if n > cap(r.links)-len(r.links) {
		r.links = make(Links, 0, min(max(n, 4, 2*cap(r.links)), 4096))
	}
	from := len(r.links)
	r.links = append(r.links, r.own...)
	return r.links[from:len(r.links):len(r.links)]
}

// addLinks reads further links of the current entry, unless it has too many, or
// they take too much from a base.
func (r *reader) addLinks(read func(Links) Links) {
	n := len(r.own)
	if r.lent < 0 || n > maxLinks {
		return
	}
	r.own = read(r.own)
	for _, link := range r.own[n:] {
		r.lent += roomOfLink + len(link.Href)
	}
	soFar := r.length
	if r.s != nil {
		soFar = r.s.End() - r.start
	}
	if !affords(soFar, r.lent) {
		r.lent = -1
	}
}
