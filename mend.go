package feedhistory

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A document that is not well-formed is read a second time and mended; package xmlscan
// says how. Well-formed documents never come here.

// A mending is what a reader knows of damage. A place of -1 means that there is none.
type mending struct {
	entryMending
	leftOut     int  // the first entry that is left out because its id is damaged
	twoInOne    int  // the first entry that damage has merged from two
	loose       int  // a part of an entry that is in no entry
	linkInEntry bool // an entry without an end tag has a link that may be the feed's
	linkAt      int  // that entry
}

// An entryMending is what a reader knows of damage in the current entry.
type entryMending struct {
	begun       int  // the number of repairs before it
	idGarbled   bool // its id is damaged
	linkGarbled bool // its link is damaged
	ids         int  // the number of its id elements
	joined      bool // one of them differs from the first
}

// mend returns a reader that has read the document of r again, mended, if it is not
// well-formed. It returns r if it is, or if mending does not help.
func (p Parser) mend(r *reader) *reader {
	if p.Strict || !r.isBroken() {
		return r
	}
	scanned, begin := r.text, 0
	if r.doc.Format == 0 {
		var page bool
		if begin, page = feedIn(r.text); page {
			r.failPage(0)
			return r
		}
		if begin < 0 {
			return r
		}
		scanned = strings.Repeat(" ", begin) + r.text[begin:] // which keeps the offsets
	}
	again := p.textReader(r.text, r.doc.URL)
	again.decoding = r.decoding
	again.addNotes(r.decoding)
	if begin > 0 {
		again.note("content-before-root", "there is something before the feed", 0)
	}
	again.s = xmlscan.Mend(scanned, p.scanLimits())
	again.s.Around(r.doc.URL)
	again.document()
	if again.doc.Format == 0 || len(again.doc.Entries) < len(r.doc.Entries) || r.isTruncated() && is[*xmlscan.LimitError](again.s.Err()) {
		return r
	}
	return again
}

// isBroken reports whether mending may help.
func (r *reader) isBroken() bool {
	if r.err != nil {
		return r.err.Reason == ReasonNotFeed
	}
	if limit, ok := errors.AsType[*xmlscan.LimitError](r.s.Err()); ok {
		return limit.Limit == "depth" || limit.Limit == "namespaces" // which elements without end tags may reach
	}
	return is[*xmlscan.SyntaxError](r.s.Err())
}

func (r *reader) isTruncated() bool {
	syntax, ok := errors.AsType[*xmlscan.SyntaxError](r.s.Err())
	return ok && syntax.Truncated
}

// mostBefore is the maximum length of what comes before a feed.
const mostBefore = 64 << 10

// feedIn returns where a feed begins in a text that begins with something else, such as
// the warnings of a script; -1 if there is no feed, or if it is inside something else.
// page reports whether the text is an HTML page.
func feedIn(text string) (begin int, page bool) {
	head := lowerASCII(text[:min(len(text), mostBefore)])
	root := len(head)
	for _, name := range []string{"<rss", "<feed", "<rdf:rdf"} {
		if i := indexTag(head, name); i >= 0 {
			root = min(root, i)
		}
	}
	before := head[:root]
	doctype := strings.Index(before, "<!doctype html")
	if indexTag(before, "<html") >= 0 || doctype >= 0 && (root == len(head) || hasTag(before[doctype:])) {
		return -1, true
	}
	if root == len(head) {
		return -1, false
	}
	begin = root
	for _, prolog := range []string{"<?xml", "<!doctype"} {
		if i := strings.Index(before, prolog); i >= 0 {
			begin = min(begin, i)
		}
	}
	s := xmlscan.New("<a>"+text[:begin]+"</a>", xmlscan.Limits{})
	tokens := 0
	for tok := s.Next(); tok != xmlscan.Stop; tok = s.Next() {
		if tok != xmlscan.Text || strings.TrimSpace(string(s.AppendText(nil))) != "" {
			tokens++
		}
	}
	switch {
	case s.Err() != nil: // an element is open there
		return -1, false
	case tokens == 2: // there are only comments
		return 0, false
	}
	return begin, false
}

// hasTag reports whether there is a start tag in text.
func hasTag(text string) bool {
	for {
		_, after, ok := strings.Cut(text, "<")
		if !ok || after != "" && 'a' <= after[0] && after[0] <= 'z' {
			return ok
		}
		text = after
	}
}

// indexTag returns the offset of a start tag in text; -1 if there is none.
func indexTag(text, tag string) int {
	for from := 0; ; {
		i := strings.Index(text[from:], tag)
		if i < 0 {
			return -1
		}
		if from += i + len(tag); from < len(text) && strings.IndexByte(" \t\r\n/>", text[from]) >= 0 {
			return from - len(tag)
		}
	}
}

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// idText reads the current element as an entry's id, and notices if it is damaged, or
// differs from the one that the entry already has.
func (r *reader) idText(e *Entry) string {
	garbled := r.s.Mender.Garbled()
	id := r.plainText()
	switch r.ids++; {
	case e.ID == "":
		r.idGarbled = r.idGarbled || r.s.Mender.Garbled() > garbled
	case id != "" && id != e.ID:
		r.joined = true
	}
	return id
}

// isIDLost reports whether the entry that ends here has only a part of an id.
func (r *reader) isIDLost(e *Entry) bool {
	if e.ID != "" || r.ids > 0 || r.s.Mender.Mended() == r.begun {
		return false
	}
	tag := "</guid"
	if r.doc.Format == Atom {
		tag = "</id"
	}
	raw := lowerASCII(r.text[r.start:r.s.End()])
	for {
		_, after, ok := strings.Cut(raw, tag)
		if ok && (after == "" || strings.IndexByte("> \t\r\n<", after[0]) >= 0) {
			return true
		} else if !ok {
			return false
		}
		raw = after
	}
}

// leaveOut leaves out an entry whose id is damaged: it would be another entry.
func (r *reader) leaveOut() {
	r.entries = r.entries[:len(r.entries)-1]
	if r.leftOut < 0 {
		r.leftOut = r.start
	}
}

// notice remembers the current element of the head section, if only entries have such
// elements.
func (r *reader) notice() {
	if r.loose >= 0 || len(r.doc.Entries) == 0 {
		return
	}
	switch local := r.s.Local(); {
	case r.doc.Format == RSS && r.isRSS() && (local == "guid" || local == "enclosure"),
		r.doc.Format == Atom && r.space() == r.native && (local == "summary" || local == "content" || local == "published" || local == "issued"):
		r.loose = r.s.Offset()
	}
}

// mendEntry makes an entry that has just ended well-formed.
func (r *reader) mendEntry(e *Entry) {
	if r.s.Mender.Unclosed() && e.Links.has(RelPrevArchive, RelNext) && !r.linkInEntry {
		r.linkInEntry, r.linkAt = true, r.start
	}
	if (r.joined || r.ids == 0 && r.hasTwoLinks(e)) && r.twoInOne < 0 {
		r.twoInOne = r.start
	}
	e.raw, e.texts = r.mendedText(e.raw, e.scope), textPlaces{}
	e.lenient = false
}

// hasTwoLinks reports whether an item of RSS, which should have one link, has two.
func (r *reader) hasTwoLinks(e *Entry) bool {
	link, _ := e.Links.Rel(RelAlternate)
	return r.doc.Format == RSS && slices.ContainsFunc(e.Links, func(l Link) bool { return l.Rel == RelAlternate && l.Href != link.Href })
}

// mendedText returns the element that has just ended, well-formed. White space between
// an element without an end tag and the next element is not part of it.
func (r *reader) mendedText(raw string, sc *scope) string {
	if r.s.Mender.Unclosed() {
		raw = strings.TrimRight(raw, " \t\r\n")
	}
	return xmlscan.MendElement(raw, sc.bindings)
}

// A damage is what may be missing from a document that was read to its end.
type damage struct {
	err     *ParseError
	entries bool // entries may be missing, not only a link
}

// findDamage finds what mending has not restored, or may not have restored.
func (r *reader) findDamage() {
	if r.err != nil || r.s.Err() != nil {
		return
	}
	if at, ok := r.swallowed(); ok {
		r.failAt(at, ReasonMalformed, clauseXML, "because of damage, an entry is inside another element, where it is not read")
	} else if r.leftOut >= 0 {
		r.failAt(r.leftOut, ReasonMalformed, clauseXML, "an entry is left out because its id is damaged")
	} else if r.twoInOne >= 0 {
		r.failAt(r.twoInOne, ReasonMalformed, clauseXML, "an entry has two ids, or two links instead of an id: damage has merged two entries")
	} else if r.loose >= 0 && r.s.Mender.Mended() > 0 {
		r.damaged(r.loose, true, "a part of an entry is outside all entries: the rest is not read")
	} else if at, ok := r.entryAfterRoot(); ok {
		r.damaged(at, true, "there are entries after the end of the root element, where they are not read")
	} else if at, ok := r.s.Mender.Outside(); ok {
		r.damaged(at, false, "damage outside the entries: a link to older entries may be lost")
	} else if r.linkInEntry {
		r.damaged(r.linkAt, false, "an entry without an end tag has a link that may belong to the feed")
	}
}

// swallowed returns the place of the first entry that is inside something else.
func (r *reader) swallowed() (at int, ok bool) {
	if at, ok = r.s.Mender.Swallowed(); ok {
		return at, true
	}
	local := "item"
	if r.doc.Format == Atom {
		local = "entry"
	}
	for _, comment := range r.s.OddComments() {
		if xmlscan.JoinsEntries(comment, local) {
			return strings.Index(r.text, comment), true
		}
	}
	return 0, false
}

func (r *reader) damaged(at int, entries bool, what string) {
	r.failAt(at, ReasonMalformed, clauseXML, what)
	r.doc.damage, r.err = &damage{r.err, entries}, nil
}

// entryAfterRoot returns the place of the first entry after the root element.
func (r *reader) entryAfterRoot() (at int, ok bool) {
	end := r.s.Offset()
	tag := "<item"
	if r.doc.Format == Atom {
		tag = "<entry"
	}
	at = indexTag(r.text[end:], tag)
	return end + at, at >= 0
}

// Damage reports what may be missing from a document that was read to its end, although
// it is not well-formed, as part of a feed of the given kind:
//
//   - entries, if there are some after the end of the root element;
//   - the link to an older document, if there is none, and something outside the
//     entries had to be mended: an element without an end tag, an end tag without
//     an element, a tag or value without an end, or one with something in it that
//     does not belong there. A Complete feed needs no such link. Attributes that only
//     lack quotes or a value, end tags in another case, and a "<" that begins no
//     markup lose nothing.
//
// It is nil if nothing is missing.
func (d *Document) Damage(feed Kind) *ParseError {
	if d.damage == nil {
		return nil
	}
	_, onward := d.Links.Rel(feed.older())
	onward = onward || d.loses(feed.older()) // which is another gap
	if !d.damage.entries && (onward || feed == Complete) {
		return nil
	}
	return d.damage.err
}

// Missing returns the gaps within a document that was read to its end, as part of a
// feed of the given kind: its Gaps, and one for its Damage. Walk yields them after the
// document.
func (d *Document) Missing(feed Kind) []*Gap {
	gaps := slices.Clip(d.Gaps)
	if err := d.Damage(feed); err != nil {
		gaps = append(gaps, &Gap{URL: d.URL, From: d.URL, Reason: ReasonMalformed, Err: err, Found: time.Now()})
	}
	return gaps
}
