package xmlscan

import "strings"

// A Mender reads a document its [Scanner] does not read to the end. It continues where the
// Scanner stops, as authors of HTML expect: an end tag closes everything open inside its
// element; one without a match is ignored; case does not matter. A feed's entry ends where
// the next begins, if it lacks its end tag or directly contains the next. Attributes need
// neither quotes nor values, and a "<" without markup after it is text. Each of these is a
// [Note].
//
// The tokens belong to a well-formed document: every Start has its End, and [Mender.Unclosed]
// reports the Ends without a tag. A truncated document is an error, as it is for the Scanner,
// and so is one beyond a limit. If a document needs no leniency, the tokens are the
// Scanner's.
//
// Reading takes linear time: a Mender examines the whole document once in advance, to find the
// tags without a counterpart. A nil Mender has mended nothing.
type Mender struct {
	*Scanner
	lexer
	fragment bool
	odd      marks       // the offsets of tags without a counterpart
	frames   []mendFrame // one for each open element
	due      int         // the number of elements to close before reading on
	orphans  int         // the number of entries closed before their end tags

	made    bool    // the current End has no tag
	pieces  []piece // the current start tag's attributes
	rewrite bool    // the start tag is too damaged for small repairs

	entry    string   // the local name of the feed's entries; "" if it is not a feed
	space    string   // their namespace
	inSource []string // the names of the children of the open atom:source, if it has no end
	entryAt  int      // the depth of the open entry; 0 if there is none

	count, countBefore     int // the number of repairs, and of those before the current Start
	garbled                int // the number of repairs with a possible effect on a text
	outsideAt, swallowedAt int // the offsets of the first damage of each kind

	looked int // the number of open elements examined in all, which tests count
}

const nowhere = -1

// Mend returns a Cursor for mending the document.
func Mend(doc string, lim Limits) *Cursor { return mended(New(doc, lim), false) }

// Open returns the Cursor of New if it reads the document to its end; otherwise Mend's.
func Open(doc string, lim Limits) *Cursor {
	c := New(doc, lim)
	for c.Next() != Stop {
	}
	if c.Err() == nil {
		return New(doc, lim)
	}
	return Mend(doc, lim)
}

// mended puts a Mender around the scanner of c.
func mended(c *Cursor, fragment bool) *Cursor {
	odd, tooDeep := plan(c.doc, fragment)
	if tooDeep >= 0 {
		c.exceeded("depth", c.lim.Depth, tooDeep)
	}
	c.Mender = &Mender{
		Scanner: &c.Scanner, lexer: lexer{doc: c.doc}, fragment: fragment, odd: odd,
		outsideAt: nowhere, swallowedAt: nowhere,
	}
	return c
}

// A mendFrame describes an open element.
type mendFrame struct {
	at       int // the offset of the element
	unclosed bool
	role     role

	// The number of open elements, this one and all inside it included, to end before a
	// child of the feed or entry, and before an entry; 0 means none.
	leaf, ends int
}

// Mended returns the number of repairs so far. At a Start, those of the start tag do not
// count yet, as in [Scanner.Lenient].
func (m *Mender) Mended() int {
	switch {
	case m == nil:
		return 0
	case m.tok == Start:
		return m.countBefore
	}
	return m.count
}

// Garbled returns the number of repairs so far after which a text may differ from the
// intended one: apparent markup was read as text, or ignored.
func (m *Mender) Garbled() int {
	if m == nil {
		return 0
	}
	return m.garbled
}

// Unclosed reports whether the current End has no end tag.
func (m *Mender) Unclosed() bool { return m != nil && m.made }

// Outside returns the offset of the first damage outside all entries that may have lost
// something: an element without an end tag, an end tag without an element, a tag or value
// without an end, or one with something foreign in it. Attributes merely without quotes or
// a value, names in another case, and a "<" without markup do not count. ok is false if
// there has been no such damage.
func (m *Mender) Outside() (at int, ok bool) {
	if m == nil || m.outsideAt < 0 {
		return 0, false
	}
	return m.outsideAt, true
}

// Swallowed returns the offset of the first entry put inside another element by damage, or
// of a comment or CDATA section that does not end before the entry, so the entry is not
// read. ok is false if there has been none.
func (m *Mender) Swallowed() (at int, ok bool) {
	if m == nil || m.swallowedAt < 0 {
		return 0, false
	}
	return m.swallowedAt, true
}

// recovered notes a repair with an effect on its own place only.
func (m *Mender) recovered(code string, at int, message, detail string) {
	m.count++
	m.note(code, at, message, detail)
}

// damaged notes a repair with a possible loss.
func (m *Mender) damaged(code string, at int, message, detail string) {
	if m.entryAt == 0 && m.outsideAt < 0 {
		m.outsideAt = at
	}
	m.recovered(code, at, message, detail)
}

// next moves to the next token.
func (m *Mender) next() Token {
	m.tok = m.step()
	for m.tok == misc {
		m.tok = m.step()
	}
	return m.tok
}

// step moves to the next token, misc included.
func (m *Mender) step() Token {
	if m.part == ended {
		return Stop
	}
	m.start = m.end
	m.attrs = m.attrs[:0]
	m.made = false
	m.frames = m.frames[:len(m.open)]
	if len(m.open) < m.entryAt {
		m.entryAt = 0
	}
	switch {
	case m.empty:
		m.empty = false
		return m.pop(m.end)
	case m.due > 0:
		m.due--
		return m.popUnclosed()
	case len(m.open) == 0 && m.part == inProlog:
		return m.beforeRoot()
	case len(m.open) == 0 && !m.outside():
		return Stop
	}
	switch i := m.start; {
	case i == len(m.doc) && m.fragment:
		m.due = len(m.open) - 1
		return m.popUnclosed()
	case i == len(m.doc):
		return m.truncated()
	case m.doc[i] != '<':
		return m.text(i)
	default:
		return m.markup(i)
	}
}

// beforeRoot reads everything before the root element.
func (m *Mender) beforeRoot() Token {
	i := skipSpace(m.doc, m.start)
	m.start, m.end = i, i
	switch n := strings.IndexByte(m.doc[i:], '<'); {
	case i == len(m.doc):
		return m.truncated()
	case n < 0:
		return m.syntax(i, "text outside the root element")
	case n > 0:
		m.recovered("content-before-root", i, "text before the root element", "")
		m.end = i + n
		return misc
	}
	return m.markup(i)
}

// markup reads the markup after the "<" at i.
func (m *Mender) markup(i int) Token {
	inside := len(m.open) > 0
	switch kind := markupAt(m.doc, i, inside, m.part != inProlog); kind {
	case markupStart:
		return m.startTag(i + 1)
	case markupEnd:
		return m.endTag(i)
	case markupComment:
		defer m.findHidden(i)
		return m.comment(i)
	case markupCData:
		defer m.findHidden(i)
		text, end := cdataEnd(m.doc, i)
		if at := endAround(m.doc, i); m.fragment && text == len(m.doc) && at >= 0 { // its document had another section after it
			text, end = at, at
		}
		if text == end && end < len(m.doc) {
			m.recovered("odd-markup", i, "CDATA section without its end", "")
			m.form, m.unended, m.end = coded, true, end
			return CData
		}
		return m.cdata(i)
	case markupDoctype:
		if !hasPrefixAt(m.doc, i, "<!DOCTYPE") {
			m.recovered("odd-markup", i, "DOCTYPE that is not in capital letters", "")
		}
		return m.doctype(i + len("<!DOCTYPE"))
	case markupInstruction, markupDeclaration:
		defer m.findHidden(i)
		return m.oddMarkup(i, kind)
	}
	if i+1 == len(m.doc) && !m.fragment {
		return m.truncated()
	}
	m.recovered("odd-markup", i, "< that begins no markup", "")
	m.garbled++
	if !inside {
		m.end = i + 1
		return misc
	}
	return m.text(i + 1)
}

// oddMarkup passes over a processing instruction or declaration.
func (m *Mender) oddMarkup(i int, kind markupKind) Token {
	if kind == markupInstruction && !m.isOddInstruction(i) {
		return m.procInst(i)
	}
	end := oddEnd(m.doc, i+2)
	if end == len(m.doc) && m.doc[end-1] != '>' && !m.fragment {
		return m.truncated()
	}
	m.recovered("odd-markup", i, "declaration that has no place here", "")
	m.garbled++
	m.end = end
	return misc
}

// popUnclosed closes the innermost element, which has no end tag here.
func (m *Mender) popUnclosed() Token {
	n := len(m.open) - 1
	f := &m.frames[n]
	m.damaged("unclosed-element", f.at, "element without an end tag", m.written(m.open[n].name))
	if !f.unclosed && f.role == roleEntry {
		m.orphans++
	}
	m.made = true
	return m.pop(m.start)
}

// endTag reads the end tag at i.
func (m *Mender) endTag(i int) Token {
	tag := endTagAt(m.doc, i)
	if tag.cut && !m.fragment {
		return m.truncated()
	}
	k := nowhere
	if !m.odd.has(i) {
		k = m.innermost(tag.name)
	}
	if k < 0 {
		return m.strayEnd(i, tag)
	}
	if n := len(m.open) - 1; k < n {
		m.due = n - k - 1
		return m.popUnclosed()
	}
	if name := m.written(m.open[k].name); name != tag.name || tag.odd {
		m.recovered("odd-end-tag", i, "end tag that is not written as it should be", name)
	}
	return m.pop(tag.end)
}

// innermost returns the innermost open element matched by an end tag.
func (m *Mender) innermost(name string) int {
	for k := len(m.open) - 1; k >= 0; k-- {
		m.looked++
		if strings.EqualFold(m.written(m.open[k].name), name) {
			return k
		}
	}
	return nowhere
}

// strayEnd passes over an end tag without a match. If it belongs to an entry already ended
// by the next one's beginning, it is no further damage.
func (m *Mender) strayEnd(i int, tag endTag) Token {
	const message = "end tag that matches no element"
	_, local, _ := splitName(tag.name)
	if m.orphans > 0 && strings.EqualFold(local, m.entry) {
		m.orphans--
		m.recovered("stray-end-tag", i, message, tag.name)
	} else {
		m.damaged("stray-end-tag", i, message, tag.name)
	}
	m.end = tag.end
	return misc
}
