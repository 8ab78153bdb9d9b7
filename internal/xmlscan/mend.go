package xmlscan

import (
	"slices"
	"strings"
	"sync"
)

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
	lostAt                 int // the offset of the first trace of a lost entry
	lostFrom, lostTo       int // see LostPart
	cutAt                  int // the offset of the latest entry without its end
	entryEnd               int // where the end tag of the latest entry ends, or a second one after it
	begun, whole           int // the number of entries, and of those with an end tag

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
		outsideAt: nowhere, swallowedAt: nowhere, lostAt: nowhere, cutAt: nowhere,
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

// Lost returns the offset of the first trace of a lost entry, whole or in part: an end
// tag of an entry without one, unless the one before has two; an entry ending only
// with the feed; or one beginning within a child of another. It is none if no entry of the
// document has an end tag. ok is false if there is none.
func (m *Mender) Lost() (at int, ok bool) {
	if m == nil || m.lostAt < 0 || m.whole == 0 && m.begun > 1 {
		return 0, false
	}
	return m.lostAt, true
}

// LostPart returns the offsets between which all these entries were lost: none ending before or
// beginning after them is damaged.
func (m *Mender) LostPart() (from, to int) { return m.lostFrom, m.lostTo }

// lose notes the trace of a lost entry.
func (m *Mender) lose(at int) {
	if m.fragment {
		return
	}
	if m.lostAt < 0 {
		m.lostAt, m.lostFrom = at, at
	}
	m.lostTo = max(m.lostTo, at)
}

// cut notes the loss of the open entry's end.
func (m *Mender) cut(at int) {
	m.cutAt = m.frames[m.entryAt-1].at
	m.lose(at)
	m.lostFrom, m.lostTo = min(m.lostFrom, m.cutAt), max(m.lostTo, m.cutAt+1)
}

// IsCut reports whether the latest entry, which begins at an offset, has lost its end.
func (m *Mender) IsCut(at int) bool {
	_, lost := m.Lost()
	return lost && m.cutAt == at
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
		return m.syntax(i, "text without any element: neither XML nor a JSON object")
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
		if k < m.entryAt-1 { // the feed ends here
			m.cut(m.frames[m.entryAt-1].at)
		}
		m.due = n - k - 1
		return m.popUnclosed()
	}
	if m.frames[k].role == roleEntry {
		m.entryEnd = tag.end
		m.whole++
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
		if m.entry != "" && strings.EqualFold(local, m.entry) {
			if skipSpace(m.doc, m.entryEnd) < i {
				m.lose(i)
			}
			m.entryEnd = tag.end
		}
	}
	m.end = tag.end
	return misc
}

// Knowledge of feeds helps to tell where an element without an end tag ends: before its next
// sibling.

// A role is the role of an element in a feed.
type role uint8

const (
	roleNone      role = iota
	roleContainer      // its children are entries: feed, rss, RDF or channel
	roleEntry
	roleContent // atom:content, which may contain entries
	roleSource  // atom:source, whose children entries have, too
	roleLeaf    // a child of the first two in which their other children do not occur
)

// assignRole sets the role of the element just opened.
func (m *Mender) assignRole() {
	n := len(m.open) - 1
	f := &m.frames[n]
	local := m.Local()
	if n == 0 {
		f.role = m.rootRole()
		return
	}
	switch parent := m.frames[n-1].role; {
	case n == 1 && m.entry == "item" && parent == roleContainer && strings.EqualFold(local, "channel"):
		f.role, m.space = roleContainer, m.Space()
	case parent == roleContainer && m.isEntry():
		f.role = roleEntry
	case parent == roleEntry && m.entry == "entry" && strings.EqualFold(local, "content") && m.Space() == m.space:
		f.role = roleContent
	case parent == roleEntry && m.entry == "entry" && local == "source" && m.Space() == m.space:
		f.role, m.inSource = roleSource, m.inSource[:0]
	case (parent == roleContainer || parent == roleEntry) && m.isMember() && m.isLeaf():
		f.role = roleLeaf
	}
}

// rootRole returns the role of the root element, and sets the name of its entries.
func (m *Mender) rootRole() role {
	m.space = m.Space()
	switch local := m.Local(); {
	case m.fragment && (strings.EqualFold(local, "entry") || strings.EqualFold(local, "item")):
		m.entry = strings.ToLower(local)
		return roleEntry
	case m.fragment:
		return roleNone
	case strings.EqualFold(local, "feed"):
		m.entry = "entry"
	case strings.EqualFold(local, "rss"):
		m.entry = "item"
	case strings.EqualFold(local, "rdf"):
		m.entry, m.space = "item", ""
	default:
		return roleNone
	}
	return roleContainer
}

// isEntry reports whether the current element is an entry.
func (m *Mender) isEntry() bool {
	return m.entry != "" && strings.EqualFold(m.Local(), m.entry) && m.isNative()
}

// isEntryInXHTML recognises an entry to which markup without an end lends its namespace.
func (m *Mender) isEntryInXHTML() bool {
	return m.entry != "" && m.Local() == m.entry && m.Prefix() == "" && m.Space() == XHTMLNamespace
}

// isNative reports whether the current element is in the namespace of entries.
func (m *Mender) isNative() bool {
	return m.Space() == m.space || m.entry == "item" && m.Space() == ""
}

// isMember reports whether the current element may be a child of an entry or feed: it is of
// their own vocabulary, or of a usual extension.
func (m *Mender) isMember() bool {
	if m.isNative() {
		_, ok := leaves()[strings.ToLower(m.Local())]
		return ok
	}
	_, ok := interned()[m.Space()]
	return ok && m.Space() != XHTMLNamespace
}

// isLeaf reports whether the other children of a feed or entry do not occur in the current
// element. Persons have only children of their own, and the source of an item only text.
func (m *Mender) isLeaf() bool {
	switch local := strings.ToLower(m.Local()); local {
	case "author", "contributor":
		return true
	case "source":
		return m.entry == "item"
	default:
		return leaves()[local]
	}
}

// isParent reports whether the current element is a child of a feed or entry, with
// children of its own.
func (m *Mender) isParent() bool {
	leaf, ok := leaves()[strings.ToLower(m.Local())]
	return ok && !leaf && m.isNative()
}

// leaves are the children of feeds and entries usually absent from HTML. Those with false
// have children of the same names.
var leaves = sync.OnceValue(func() map[string]bool {
	return map[string]bool{
		"author": false, "category": true, "cloud": true, "comments": true, "content": true, "contributor": false,
		"copyright": true, "created": true, "creator": true, "date": true, "description": true, "docs": true,
		"enclosure": true, "encoded": true, "generator": true, "guid": true, "icon": true, "id": true, "image": false,
		"issued": true, "language": true, "lastbuilddate": true, "link": true, "logo": true, "managingeditor": true,
		"modified": true, "pubdate": true, "published": true, "rating": true, "rights": true, "skipdays": false,
		"skiphours": false, "source": false, "subject": true, "subtitle": true, "summary": true, "tagline": true,
		"textinput": false, "title": true, "ttl": true, "updated": true, "webmaster": true,
	}
})

// implied returns the number of elements still open around the one just opened. An element
// without an end tag ends before
//
//   - another of the same name, as paragraphs and list items do in HTML,
//   - the next child of the feed or entry, if it is such a child itself, or is anything
//     else directly inside the feed or entry,
//   - the next entry; so does an entry that directly contains it.
//
// But elements inside atom:content stay there, and so do those inside any element with an
// end tag.
func (m *Mender) implied() (keep int) {
	n := len(m.open) - 1
	if n == 0 {
		return 0
	}
	parent := m.frames[n-1]
	switch keep = n; {
	case m.isEntry() && m.empty: // it has nothing: no other entry ends here
		return n
	case m.isEntry() && parent.role == roleEntry:
		return n - 1
	case m.isEntry() && parent.ends > 0:
		return parent.ends
	case parent.role == roleSource && parent.unclosed && m.endsSource():
		return n - 1
	case m.isMember() && parent.leaf > 0:
		keep = parent.leaf
	}
	return min(keep, m.sameName())
}

// endsSource reports whether the current element cannot be a child of the open atom:source: it
// already has one of this name, or sources have none.
func (m *Mender) endsSource() bool {
	if !m.isNative() {
		return false
	}
	switch local := m.Local(); local {
	case "content", "summary", "published", "issued":
		return true
	case "id", "title", "updated":
		if slices.Contains(m.inSource, local) {
			return true
		}
		m.inSource = append(m.inSource, local)
	}
	return false
}

// findEnds finds the elements around the one just opened that an element within it could
// end: only those for which all elements in between lack end tags.
func (m *Mender) findEnds() {
	n := len(m.open) - 1
	f := &m.frames[n]
	if n == 0 || !f.unclosed || f.role == roleContainer {
		return
	}
	parent := m.frames[n-1]
	switch f.role {
	case roleLeaf:
		f.leaf = n
	case roleContent:
		f.leaf = n
		return
	default:
		f.leaf = parent.leaf
		if f.role == roleNone && (parent.role == roleContainer || parent.role == roleEntry) && !m.isParent() {
			f.leaf = n
		}
	}
	if f.ends = parent.ends; parent.role == roleContainer {
		f.ends = n
	}
}

// sameName returns the index of an open element ended by the one just opened, because
// both have the same name; otherwise the number of open elements.
func (m *Mender) sameName() int {
	// Unclosed elements accumulate only in hostile documents, and so do long names.
	const near, long = 16, 64
	n := len(m.open) - 1
	name, keep := m.written(m.open[n].name), n
	if len(name) > long {
		return n
	}
	for k := n - 1; k > 0 && n-k <= near && m.frames[k].unclosed; k-- {
		if role := m.frames[k].role; role == roleContainer || role == roleEntry || role == roleContent && m.isEntry() {
			break
		}
		m.looked++
		if strings.EqualFold(name, m.written(m.open[k].name)) {
			keep = k
		}
	}
	return keep
}

// findSwallowed notices an entry put inside something else by damage. A whole entry
// inside the content of an entry is no such case.
func (m *Mender) findSwallowed() {
	n := len(m.open) - 1
	if m.swallowedAt >= 0 || !m.isEntry() && !m.isEntryInXHTML() || m.frames[n].role == roleEntry || m.frames[0].role != roleContainer {
		return
	}
	damaged := false
	for k := n; k > 0 && m.frames[k].role != roleContainer; k-- {
		if m.frames[k].role == roleContent && !m.frames[k].unclosed {
			return
		}
		damaged = damaged || m.frames[k].unclosed
	}
	if damaged {
		m.swallowedAt = m.start
	}
}

// findHidden notices a comment, CDATA section or instruction, from i to the scanner's place,
// that joins two entries, or begins between entries and ends within one: it lacks its end.
// If it contains whole entries, its author meant it so.
func (m *Mender) findHidden(i int) {
	if m.swallowedAt >= 0 || m.entry == "" || m.fragment || m.part == ended {
		return
	}
	if open, joins := hidden(m.doc[i:m.end], m.entry); joins || m.entryAt == 0 && open != 0 {
		m.swallowedAt = i
	}
}

// JoinsEntries reports whether a comment contains the end of one entry and, after it, the
// beginning of another, of which neither is whole in it. Entries have the local name.
func JoinsEntries(comment, local string) bool {
	_, joins := hidden(comment, local)
	return joins
}

// hidden returns how many more entries begin than end in a comment or CDATA section, and
// whether the end of an entry comes before the beginning of one.
func hidden(text, local string) (open int, joins bool) {
	least := 0
	for text = text[len("<!"):]; ; {
		_, after, ok := strings.Cut(text, "<")
		if !ok {
			return open, joins
		}
		step := 1
		if strings.HasPrefix(after, "/") {
			after, step = after[1:], -1
		}
		end := nameEnd(after, 0)
		text = after[end:]
		if _, name, ok := splitName(after[:end]); !ok || !strings.EqualFold(name, local) {
			continue
		}
		if n := strings.IndexAny(text, "<>"); n > 0 && text[n-1:n+1] == "/>" {
			continue
		}
		open += step
		joins = joins || step > 0 && least < 0
		least = min(least, open)
	}
}

// startTag reads a start tag; i is after its "<".
func (m *Mender) startTag(i int) Token {
	m.before, m.countBefore = m.lenient, m.count
	before := *m
	notes, ahead := len(m.notes), m.ahead
	j := nameEnd(m.doc, i)
	_, local, _ := splitName(m.doc[i:j])
	if m.elements++; m.elements > m.lim.Elements {
		return m.exceeded("elements", m.lim.Elements, i)
	}
	m.part = inBody
	m.dropped = m.dropped[:0]
	m.known = 0
	m.push(name{start: i, local: j - len(local), end: j, space: noSpace})
	if !m.attributes(j) || !m.resolveNames() {
		return Stop
	}
	m.frames = append(m.frames, mendFrame{at: m.start, unclosed: m.odd.has(m.start)})
	m.assignRole()
	m.findEnds()
	if open := len(m.open) - 1; m.implied() < open { // other elements end first, and then the tag is read again
		isEntry := m.isEntry()
		before.due = open - m.implied() - 1
		before.pieces, before.frames = m.pieces, m.frames[:open]
		*m = before
		m.notes, m.lenient, m.elements, m.empty = m.notes[:notes], m.before, m.elements-1, false
		m.attrs, m.ahead = m.attrs[:0], ahead
		if isEntry && m.entryAt > 0 && open > m.entryAt {
			m.cut(m.start)
		}
		m.pop(m.start)
		return m.popUnclosed()
	}
	if len(m.open) > m.lim.Depth {
		return m.exceeded("depth", m.lim.Depth, i)
	}
	m.findSwallowed()
	if m.frames[len(m.open)-1].role == roleEntry {
		m.entryAt = len(m.open)
		m.begun++
		if m.empty {
			m.entryEnd = m.end
		}
	}
	if m.odd.has(m.start) && isVoid(local) {
		m.damaged("unclosed-element", m.start, "element without an end tag", m.doc[i:j])
		m.empty, m.rewrite = true, true
	}
	return Start
}

// attributes reads the rest of a start tag from i on. It returns false if the scan has
// ended.
func (m *Mender) attributes(i int) bool {
	m.pieces, m.rewrite = m.pieces[:0], false
	for first := i; ; {
		p := pieceAt(m.doc, i)
		switch p.kind {
		case pieceClose, pieceEmpty:
			m.end, m.empty = p.next, p.kind == pieceEmpty
			return true
		case pieceCut:
			return m.cutTag(p)
		case pieceJunk:
			m.damaged("odd-attribute", p.at, "character that has no place in a tag", "")
			m.rewrite = true
		case pieceAttr:
			if len(m.pieces) == m.lim.Attributes {
				m.exceeded("attributes", m.lim.Attributes, p.at)
				return false
			}
			if p.at == i && i > first {
				m.note("missing-space", p.at, "no space between attributes", "")
			}
			if !m.attribute(p) {
				return false
			}
		}
		i = p.next
	}
}

// cutTag ends a start tag without an end.
func (m *Mender) cutTag(p piece) bool {
	if p.at == len(m.doc) && !m.fragment {
		m.truncated()
		return false
	}
	m.damaged("odd-tag", m.start, "tag without an end", "")
	m.garbled++
	m.end, m.rewrite = p.next, true
	return true
}

// attribute takes an attribute. It returns false if the scan has ended.
func (m *Mender) attribute(p piece) bool {
	m.pieces = append(m.pieces, p)
	written := m.doc[p.at:p.nameEnd]
	switch p.flaw {
	case noValue:
		m.recovered("odd-attribute", p.at, "attribute without a value", written)
	case noQuotes:
		m.recovered("odd-attribute", p.at, "attribute value without quotes", written)
	case noClosingQuote:
		if p.to == len(m.doc) && !m.fragment {
			m.truncated()
			return false
		}
		if strings.ContainsAny(strings.TrimSpace(m.doc[p.from:p.to]), " \t\r\n=") {
			m.damaged("odd-attribute", p.at, "attribute value without a closing quote", written)
		} else { // nothing else is in it
			m.recovered("odd-attribute", p.at, "attribute value without a closing quote", written)
		}
	}
	m.rewrite = m.rewrite || p.flaw != noFlaw
	if m.swallowedAt < 0 && m.entry != "" && strings.Contains(m.doc[p.from:p.to], "<"+m.entry) {
		m.swallowedAt = p.at
	}
	_, local, ok := splitName(written)
	if !ok {
		m.damaged("odd-attribute", p.at, "attribute with a name that XML does not allow", written)
		m.dropped = append(m.dropped, p.at)
		m.rewrite = true
		return true
	}
	m.noteValue(p.from, p.to)
	return m.addAttribute(name{start: p.at, local: p.nameEnd - len(local), end: p.nameEnd, space: noSpace}, p.from, p.to, false)
}

// appendPieces appends the attributes of the current start tag, rewritten.
func (m *Mender) appendPieces(out []byte, drop func(at int, name string) bool) []byte {
	for _, p := range m.pieces {
		name := m.doc[p.at:p.nameEnd]
		if drop(p.at, name) {
			continue
		}
		raw, quote := m.doc[p.from:p.to], p.quote
		if quote == 0 {
			raw, quote = strings.ReplaceAll(raw, `"`, "&quot;"), '"'
		}
		out = append(append(out, ' '), name...)
		out = append(out, '=', quote)
		out = appendRepairedText(out, raw)
		out = append(out, quote)
	}
	return out
}

// plan returns the tags of a document without a counterpart: the start tags of elements ended
// by the end tag of another, and the end tags without a match. tooDeep is the place where
// elements nest too deep for a plan, or negative.
//
// Elements open at the end of a truncated document may only have been cut, and do not count.
// Those of a fragment do, and so do HTML's elements without an end tag.
func plan(doc string, fragment bool) (odd marks, tooDeep int) {
	p := &planner{
		lexer: lexer{doc: doc}, fragment: fragment,
		odd: make(marks, len(doc)/64+1), names: map[string]int{}, lastRoot: nowhere,
	}
	if tooDeep = p.run(); tooDeep >= 0 {
		return p.odd, tooDeep
	}
	for _, t := range p.open {
		if name := doc[t.at+1 : t.nameEnd]; fragment || isVoid(name) {
			p.odd.set(t.at)
		}
	}
	return p.odd, nowhere
}

// A planner goes through a document, and knows which elements are open.
type planner struct {
	lexer
	fragment bool
	odd      marks
	open     []openTag
	names    map[string]int // the number of open elements by name, in lower case
	rooted   bool
	root     string // the root's name
	lastRoot int    // the offset of the last end tag with this name
}

type openTag struct{ at, nameEnd int }

// mostOpen is how deep elements may nest for a plan: far deeper than Limits allow, because
// elements without end tags accumulate here.
const mostOpen = 1 << 16

// run goes through the document, and returns where it nests too deep, or -1.
func (p *planner) run() (tooDeep int) {
	for i := 0; i < len(p.doc) && (!p.rooted || len(p.open) > 0); {
		n := strings.IndexByte(p.doc[i:], '<')
		if n < 0 {
			break
		}
		if len(p.open) == mostOpen {
			return i
		}
		i = p.markup(i + n)
	}
	return nowhere
}

// markup passes over the markup at i, and returns where it ends.
func (p *planner) markup(i int) (end int) {
	switch kind := markupAt(p.doc, i, len(p.open) > 0, p.rooted); kind {
	case markupStart:
		return p.start(i)
	case markupEnd:
		tag := endTagAt(p.doc, i)
		p.end(i, tag.name)
		return tag.end
	case markupComment:
		return p.afterComment(i + len("<!--"))
	case markupCData:
		_, end = cdataEnd(p.doc, i)
		return end
	case markupDoctype:
		end, _ = doctypeEnd(p.doc, i+len("<!DOCTYPE"))
		return end
	case markupInstruction:
		if !p.isOddInstruction(i) {
			return after(p.doc, i+len("<?"), "?>")
		}
		return oddEnd(p.doc, i+2)
	case markupDeclaration:
		return oddEnd(p.doc, i+2)
	}
	return i + 1
}

// afterComment returns the index after the comment whose text begins at i.
func (p *planner) afterComment(i int) int {
	for ; ; i++ {
		n := strings.Index(p.doc[i:], "--")
		if n < 0 {
			return len(p.doc)
		}
		i += n
		if end := commentEnd(p.doc, i); end >= 0 {
			return end
		}
	}
}

func (p *planner) start(at int) (end int) {
	t := openTag{at: at, nameEnd: nameEnd(p.doc, at+1)}
	if !p.rooted {
		p.rooted, p.root = true, strings.ToLower(p.doc[at+1:t.nameEnd])
	}
	for i := t.nameEnd; ; {
		piece := pieceAt(p.doc, i)
		switch i = piece.next; piece.kind {
		case pieceEmpty:
			return i
		case pieceClose, pieceCut:
			p.open = append(p.open, t)
			p.names[p.name(t)]++
			return i
		}
	}
}

// name returns the key of an element in names.
func (p *planner) name(t openTag) string { return strings.ToLower(p.doc[t.at+1 : t.nameEnd]) }

// end closes the innermost element matched by an end tag, and all inside it.
func (p *planner) end(at int, name string) {
	name = strings.ToLower(name)
	if p.names[name] == 0 || p.isPremature(at, name) {
		p.odd.set(at)
		return
	}
	for {
		last := len(p.open) - 1
		t := p.open[last]
		p.open = p.open[:last]
		open := p.name(t)
		if p.names[open]--; p.names[open] == 0 {
			delete(p.names, open)
		}
		if open == name {
			return
		}
		p.odd.set(t.at)
	}
}

// isPremature reports whether an end tag would close the root element together with other
// open elements, although another such end tag follows.
func (p *planner) isPremature(at int, name string) bool {
	if name != p.root || p.names[name] > 1 || len(p.open) == 1 {
		return false
	}
	if p.lastRoot < 0 {
		p.lastRoot = strings.LastIndex(p.doc, "</"+p.doc[p.open[0].at+1:p.open[0].nameEnd])
	}
	return at < p.lastRoot
}

// isVoid recognises HTML's elements without content, which therefore have no end tag. For
// those whose names feeds also use, only the context can tell.
func isVoid(name string) bool {
	switch strings.ToLower(name) {
	case "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen",
		"meta", "param", "track", "wbr":
		return true
	}
	return false
}
