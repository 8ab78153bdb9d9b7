package xmlscan

import "strings"

// Mend returns a scanner of a document that [New] does not read to its end. It
// reads on where New gives up, as HTML's authors expect: an end tag closes what
// is open inside its element; one that matches nothing is passed over; case
// does not matter. A feed's entry ends where the next begins, if it has no end
// tag or stands directly around it. Attributes need neither quotes nor values,
// and a "<" that begins no markup is text. Each of these is a [Note].
//
// The tokens are those of a well-formed document: every Start has its End, and
// [Scanner.Unclosed] tells the Ends that no tag stands for. A document that
// breaks off is an error as it is for New, and so are the limits. From a
// document without any leniency come the tokens that New gives.
//
// What the scan costs is linear: the whole document is looked at once before,
// to find the tags that have no counterpart.
func Mend(doc string, lim Limits) *Scanner {
	return newMended(New(doc, lim), false)
}

// mendFragment is Mend for an element of a mended document, which may end
// without its end tag, and those of what is in it.
func mendFragment(fragment string, outer []Binding, lim Limits) *Scanner {
	return newMended(NewFragment(fragment, outer, lim), true)
}

// Open returns what New does if that reads the document to its end, else what
// Mend does.
func Open(doc string, lim Limits) *Scanner {
	s := New(doc, lim)
	for s.Next() != Stop {
	}
	if s.Err() == nil {
		return New(doc, lim)
	}
	return Mend(doc, lim)
}

func newMended(s *Scanner, fragment bool) *Scanner {
	s.mend = &mend{lexer: lexer{doc: s.doc}, fragment: fragment, outside: nowhere, swallowed: nowhere}
	odd, tooDeep := plan(s.doc, fragment)
	if tooDeep >= 0 {
		s.exceeded("depth", s.lim.Depth, tooDeep)
	}
	s.mend.odd = odd
	return s
}

const nowhere = -1

// A mend is what a scanner has in addition that mends.
type mend struct {
	lexer
	fragment bool
	odd      marks       // tags without a counterpart, by where they begin
	frames   []mendFrame // of the open elements
	due      int         // elements to close before the document is read on
	orphans  int         // entries that were closed although their end tags are to come

	made    bool    // the current End has no tag
	pieces  []piece // the current start tag's attributes
	rewrite bool    // it cannot be written with small repairs

	entry   string // the local name of the feed's entries; "" if it is no feed
	space   string // their namespace
	entryAt int    // the depth of the open entry; 0 for none

	count, before      int // repairs; those before the current Start
	garbled            int // of these, how many may have changed a text
	outside, swallowed int // where the first damage of its kind is

	looked int // how many open elements were looked at in all: what tests count
}

// A mendFrame is what is known of an open element.
type mendFrame struct {
	at       int // where it begins
	unclosed bool
	role     role

	// Which others end, it and all between included, before a child of the feed or
	// entry, and before an entry; 0 for none.
	leaf, ends int
}

// Mended returns how many repairs there were so far that New does not make. At
// a Start those of the start tag do not count yet, as in [Scanner.Lenient].
func (s *Scanner) Mended() int {
	switch {
	case s.mend == nil:
		return 0
	case s.tok == Start:
		return s.mend.before
	}
	return s.mend.count
}

// Garbled returns after how many of the repairs so far a text may be another
// than was meant: what looked like markup was taken as text, or passed over.
func (s *Scanner) Garbled() int {
	if s.mend == nil {
		return 0
	}
	return s.mend.garbled
}

// Unclosed reports whether no end tag stands for the current End.
func (s *Scanner) Unclosed() bool { return s.mend != nil && s.mend.made }

// Outside returns where the first damage was mended that is in no entry, and
// may have cost more than itself: an element without an end tag, an end tag
// without an element, a tag or value without an end, or with something in it
// that has no place there. Attributes that only lack quotes or a value, names in
// another case, and what is no markup are none. ok is false if there was no such
// damage so far.
func (s *Scanner) Outside() (at int, ok bool) {
	if s.mend == nil || s.mend.outside < 0 {
		return 0, false
	}
	return s.mend.outside, true
}

// Swallowed returns where the first entry begins that damage made a part of
// another element, or the comment or CDATA section that does not end before the
// entry begins, so that it does not count as one. ok is false for none so far.
func (s *Scanner) Swallowed() (at int, ok bool) {
	if s.mend == nil || s.mend.swallowed < 0 {
		return 0, false
	}
	return s.mend.swallowed, true
}

// recovered notes a repair that harms nothing but its own place.
func (s *Scanner) recovered(code string, at int, message, detail string) {
	s.mend.count++
	s.note(code, at, message, detail)
}

// damaged notes a repair that may have cost more.
func (s *Scanner) damaged(code string, at int, message, detail string) {
	if m := s.mend; m.entryAt == 0 && m.outside < 0 {
		m.outside = at
	}
	s.recovered(code, at, message, detail)
}

// mendedStep is step where the document is mended.
func (s *Scanner) mendedStep() Token {
	m := s.mend
	if s.done {
		return Stop
	}
	s.start = s.end
	s.attrs = s.attrs[:0]
	m.made = false
	m.frames = m.frames[:len(s.open)]
	if len(s.open) < m.entryAt {
		m.entryAt = 0
	}
	switch {
	case s.empty:
		s.empty = false
		return s.pop(s.end)
	case m.due > 0:
		m.due--
		return s.popUnclosed()
	case len(s.open) == 0 && !s.rooted:
		return s.beforeRoot()
	case len(s.open) == 0 && !s.outside():
		return Stop
	}
	switch i := s.start; {
	case i == len(s.doc) && m.fragment:
		m.due = len(s.open) - 1
		return s.popUnclosed()
	case i == len(s.doc):
		return s.truncated()
	case s.doc[i] != '<':
		return s.text(i)
	default:
		return s.mendedMarkup(i)
	}
}

// beforeRoot reads what stands before the root element.
func (s *Scanner) beforeRoot() Token {
	i := skipSpace(s.doc, s.start)
	s.start, s.end = i, i
	switch n := strings.IndexByte(s.doc[i:], '<'); {
	case i == len(s.doc):
		return s.truncated()
	case n < 0:
		return s.syntax(i, "text outside the root element")
	case n > 0:
		s.recovered("content-before-root", i, "text before the root element", "")
		s.end = i + n
		return misc
	}
	return s.mendedMarkup(i)
}

// mendedMarkup reads what begins with the "<" at i.
func (s *Scanner) mendedMarkup(i int) Token {
	inside := len(s.open) > 0
	switch kind := markupAt(s.doc, i, inside, s.rooted); kind {
	case markupStart:
		return s.mendedStart(i + 1)
	case markupEnd:
		return s.mendedEnd(i)
	case markupComment:
		defer s.findHidden(i)
		return s.comment(i)
	case markupCData:
		defer s.findHidden(i)
		return s.cdata(i)
	case markupDoctype:
		if !hasPrefixAt(s.doc, i, "<!DOCTYPE") {
			s.recovered("odd-markup", i, "DOCTYPE that is not in capital letters", "")
		}
		return s.doctype(i + len("<!DOCTYPE"))
	case markupInstruction, markupDeclaration:
		defer s.findHidden(i)
		return s.oddMarkup(i, kind)
	}
	if i+1 == len(s.doc) && !s.mend.fragment {
		return s.truncated()
	}
	s.recovered("odd-markup", i, "< that begins no markup", "")
	s.mend.garbled++
	if !inside {
		s.end = i + 1
		return misc
	}
	return s.text(i + 1)
}

// oddMarkup passes over a processing instruction or declaration.
func (s *Scanner) oddMarkup(i int, kind markup) Token {
	if kind == markupInstruction && !s.mend.isOddInstruction(i) {
		return s.procInst(i)
	}
	end := oddEnd(s.doc, i+2)
	if end == len(s.doc) && s.doc[end-1] != '>' && !s.mend.fragment {
		return s.truncated()
	}
	s.recovered("odd-markup", i, "declaration that has no place here", "")
	s.mend.garbled++
	s.end = end
	return misc
}

// popUnclosed closes the innermost element, for which no end tag stands here.
func (s *Scanner) popUnclosed() Token {
	m := s.mend
	n := len(s.open) - 1
	f := &m.frames[n]
	s.damaged("unclosed-element", f.at, "element without an end tag", s.openName(n))
	if !f.unclosed && f.role == roleEntry {
		m.orphans++
	}
	m.made = true
	return s.pop(s.start)
}

// mendedEnd reads the end tag at i.
func (s *Scanner) mendedEnd(i int) Token {
	m := s.mend
	tag := endTagAt(s.doc, i)
	if tag.cut && !m.fragment {
		return s.truncated()
	}
	k := nowhere
	if !m.odd.has(i) {
		k = s.innermost(tag.name)
	}
	if k < 0 {
		return s.strayEnd(i, tag)
	}
	if n := len(s.open) - 1; k < n {
		m.due = n - k - 1
		return s.popUnclosed()
	}
	if name := s.openName(k); name != tag.name || tag.odd {
		s.recovered("odd-end-tag", i, "end tag that is not written as it should be", name)
	}
	return s.pop(tag.end)
}

// innermost returns the innermost open element that an end tag matches.
func (s *Scanner) innermost(name string) int {
	for k := len(s.open) - 1; k >= 0; k-- {
		s.mend.looked++
		if strings.EqualFold(s.openName(k), name) {
			return k
		}
	}
	return nowhere
}

// strayEnd passes over an end tag that matches nothing. That of an entry which
// ended where the next began is no further damage.
func (s *Scanner) strayEnd(i int, tag endTag) Token {
	const message = "end tag that matches no element"
	_, local, _ := splitName(tag.name)
	if m := s.mend; m.orphans > 0 && strings.EqualFold(local, m.entry) {
		m.orphans--
		s.recovered("stray-end-tag", i, message, tag.name)
	} else {
		s.damaged("stray-end-tag", i, message, tag.name)
	}
	s.end = tag.end
	return misc
}
