package xmlscan

import "strings"

// Mend returns a scanner for a document that [New] does not read to its end. It continues
// where New stops, as authors of HTML expect: an end tag closes everything that is open
// inside its element; one that matches nothing is ignored; case does not matter. A feed's
// entry ends where the next begins, if it lacks its end tag or directly contains the next.
// Attributes need neither quotes nor values, and a "<" that begins no markup is text. Each
// of these is a [Note].
//
// The tokens are those of a well-formed document: every Start has its End, and
// [Scanner.Unclosed] reports the Ends that have no tag. A document that breaks off is an
// error, as it is for New, and so is one that exceeds a limit. If a document needs no
// leniency, the tokens are the same as those of New.
//
// A scan takes linear time: it examines the whole document once in advance, to find the
// tags without a counterpart.
func Mend(doc string, lim Limits) *Scanner {
	return newMended(New(doc, lim), false)
}

// Open returns the scanner of New if that reads the document to its end; otherwise Mend's.
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

// A mend is the additional state of a scanner that mends.
type mend struct {
	lexer
	fragment bool
	odd      marks       // the offsets of tags without a counterpart
	frames   []mendFrame // one for each open element
	due      int         // the number of elements to close before reading on
	orphans  int         // the number of entries that were closed before their end tags

	made    bool    // the current End has no tag
	pieces  []piece // the current start tag's attributes
	rewrite bool    // the start tag is too damaged for small repairs

	entry   string // the local name of the feed's entries; "" if it is not a feed
	space   string // their namespace
	entryAt int    // the depth of the open entry; 0 if there is none

	count, before      int // the number of repairs, and of those before the current Start
	garbled            int // the number of repairs that may have changed a text
	outside, swallowed int // the offsets of the first damage of each kind

	looked int // the number of open elements examined in all, which tests count
}

// A mendFrame is what is known about an open element.
type mendFrame struct {
	at       int // the offset of the element
	unclosed bool
	role     role

	// The number of open elements, this one and all inside it included, that end before a
	// child of the feed or entry, and before an entry; 0 means none.
	leaf, ends int
}

// Mended returns the number of repairs so far that New does not make. At a Start, those of
// the start tag do not count yet, as in [Scanner.Lenient].
func (s *Scanner) Mended() int {
	switch {
	case s.mend == nil:
		return 0
	case s.tok == Start:
		return s.mend.before
	}
	return s.mend.count
}

// Garbled returns the number of repairs so far after which a text may differ from what was
// meant: what looked like markup was read as text, or ignored.
func (s *Scanner) Garbled() int {
	if s.mend == nil {
		return 0
	}
	return s.mend.garbled
}

// Unclosed reports whether the current End has no end tag.
func (s *Scanner) Unclosed() bool { return s.mend != nil && s.mend.made }

// Outside returns the offset of the first damage that is outside all entries and may have
// lost something: an element without an end tag, an end tag without an element, a tag or
// value without an end, or one with something in it that does not belong there. Attributes
// that only lack quotes or a value, names in another case, and a "<" that begins no markup
// do not count. ok is false if there has been no such damage.
func (s *Scanner) Outside() (at int, ok bool) {
	if s.mend == nil || s.mend.outside < 0 {
		return 0, false
	}
	return s.mend.outside, true
}

// Swallowed returns the offset of the first entry that damage has put inside another
// element, or of the comment or CDATA section that does not end before the entry begins, so
// that the entry is not read. ok is false if there has been none.
func (s *Scanner) Swallowed() (at int, ok bool) {
	if s.mend == nil || s.mend.swallowed < 0 {
		return 0, false
	}
	return s.mend.swallowed, true
}

// recovered notes a repair that affects only its own place.
func (s *Scanner) recovered(code string, at int, message, detail string) {
	s.mend.count++
	s.note(code, at, message, detail)
}

// damaged notes a repair that may have lost something.
func (s *Scanner) damaged(code string, at int, message, detail string) {
	if m := s.mend; m.entryAt == 0 && m.outside < 0 {
		m.outside = at
	}
	s.recovered(code, at, message, detail)
}

// mendedStep is step for a scanner that mends.
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

// beforeRoot reads what comes before the root element.
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

// mendedMarkup reads markup that begins with the "<" at i.
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

// popUnclosed closes the innermost element, which has no end tag here.
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

// strayEnd passes over an end tag that matches nothing. If it belongs to an entry that ended
// where the next began, it is no further damage.
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
