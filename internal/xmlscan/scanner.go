// Package xmlscan reads XML feeds in one pass over a document in memory.
//
// A [Scanner] is a pull parser: each call of [Cursor.Next] moves to the next token. The values
// it returns are substrings of the document, so scanning allocates nothing per token. It checks
// the document on the way: tags must match, and there must be one root, which must be closed. It
// is namespace-aware, never declares or expands entities, and obeys [Limits], so a hostile
// document costs no more than a good one of the same size.
//
// Real feeds are not always well-formed. If the author's intention is clear, as with a bare
// ampersand, the scanner accepts the text and records a [Note]; [Standalone] writes an element
// with these places repaired. Everything else is a [SyntaxError], except for a scanner from
// [Mend].
//
// [Decode] turns the bytes of a document into the UTF-8 the scanner reads.
package xmlscan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits bounds the resources a document may need. A zero or negative field means its default.
type Limits struct {
	Depth      int // Depth is the number of nested elements; the default is 256.
	Attributes int // Attributes is the number of attributes of one element, including namespace declarations; the default is 256.
	Namespaces int // Namespaces is the number of namespace bindings in scope at one place; the default is 256.
	Elements   int // Elements is the number of elements in the document; the default is 1,000,000.
}

func (l Limits) withDefaults() Limits {
	or := func(n, def int) int {
		if n > 0 {
			return n
		}
		return def
	}
	return Limits{
		Depth:      or(l.Depth, 256),
		Attributes: or(l.Attributes, 256),
		Namespaces: or(l.Namespaces, 256),
		Elements:   or(l.Elements, 1_000_000),
	}
}

// Unlimited returns the limits for text already read within other limits.
func Unlimited() Limits { return Limits{math.MaxInt, math.MaxInt, math.MaxInt, math.MaxInt} }

// A Token is a kind of token.
type Token uint8

// The kinds of token Next returns.
const (
	Stop  Token = iota // the end of the document, or an error
	Start              // a start tag, or an empty-element tag
	End                // an end tag, or the end of an empty-element tag
	Text               // character data up to the next markup
	CData              // a CDATA section

	misc // a comment, processing instruction or DOCTYPE, which the package never returns
)

// A Scanner reads the tokens of one document. Use it through a [Cursor].
type Scanner struct {
	namespaces
	inheritance
	lim Limits

	tok        Token
	start, end int   // the current token's range in doc
	empty      bool  // the current token is an empty-element tag; its End comes next
	form       form  // of the current Text or CData
	name       name  // of the current Start or End
	known      uint8 // the name's place in Names; 0 if it is not there
	attrs      []attr
	list       []Attr // the same as attrs, once requested
	dropped    []int  // the offsets of attributes of the current tag missing from attrs
	declared   int    // bindings[declared:] were undeclared prefixes of the current tag
	seen       map[attrName]struct{}

	open     []frame
	states   []outerState // those kept
	Names    *Names       // nil to remember none
	elements int
	before   int // the value of lenient before the current Start
	part     part
	doctypes int // read so far
	err      error

	unended     bool     // the current CData lacks its end
	oddSections sections // see OddSections
}

// A form says how much decoding a Text or CData needs.
type form uint8

const (
	coded   form = iota // it has control characters other than tabs and newlines
	escaped             // it has references
	literal             // it means its characters
)

// A part is a part of a document.
type part uint8

const (
	inProlog part = iota // before the root element
	inBody               // from the root element on
	ended                // after the end of the scan
)

// A name is the name of an element or attribute. It refers to the document and to the bindings
// by offsets, so the garbage collector need not examine it.
type name struct {
	start, local, end int // "start:local end"; without a prefix, local is start
	space             int // the index of the binding, or one of the constants below
}

const (
	noSpace  = -1
	xmlSpace = -2 // for the prefix xml, which needs no declaration
)

// A frame is an open element.
type frame struct {
	name  name
	outer int // the number of states kept before it
}

// An outerState is the state of the scanner's stacks outside an element that has changed them.
type outerState struct{ bindings, standard, scope, langs, bases int }

// Clean reports whether the rest of the document after the current token has no control
// characters other than tabs and newlines.
func (s *Scanner) Clean() bool { return s.control(s.end) == len(s.doc) }

// reset makes s a new scanner in the same memory.
func (s *Scanner) reset(fragment string, outer []Binding, lim Limits) {
	ns := s.namespaces.inside(outer)
	ns.input = newInput(fragment)
	*s = Scanner{
		lim: lim.withDefaults(), open: s.open[:0], states: s.states[:0], Names: s.Names, attrs: s.attrs[:0], list: s.list[:0],
		inheritance: inheritance{langs: s.langs[:0], bases: s.bases[:0]},
		namespaces:  ns,
	}
	s.standard = s.binding("")
}

// step moves to the next token, misc included.
func (s *Scanner) step() Token {
	if s.part == ended {
		return Stop
	}
	s.start = s.end
	s.attrs = s.attrs[:0]
	if s.empty {
		s.empty = false
		return s.pop(s.end)
	}
	if len(s.open) == 0 && !s.outside() {
		return Stop
	}
	switch i, doc := s.start, s.doc; {
	case i < len(doc) && doc[i] != '<':
		return s.text(i)
	case i+1 >= len(doc):
		return s.truncated()
	case doc[i+1] == '/':
		return s.endTag(i + 2)
	case doc[i+1] == '!':
		return s.declaration(i)
	case doc[i+1] == '?':
		return s.procInst(i)
	default:
		return s.startTag(i + 1)
	}
}

// outside moves over the white space outside the root element, and reports whether
// allowed markup follows.
func (s *Scanner) outside() bool {
	i := skipSpace(s.doc, s.start)
	s.start, s.end = i, i
	switch {
	case s.part == inProlog && i == len(s.doc):
		s.truncated()
		return false
	case s.part == inProlog && s.doc[i] != '<':
		s.syntax(i, "text outside the root element")
		return false
	case s.part == inProlog:
		return true
	case i == len(s.doc):
		s.part = ended
		return false
	case hasPrefixAt(s.doc, i, "<!--"), hasPrefixAt(s.doc, i, "<?"):
		return true
	}
	s.afterRoot(i)
	return false
}

// afterRoot ends the scan at anything forbidden after the root element.
func (s *Scanner) afterRoot(at int) {
	s.note("content-after-root", at, "content after the end of the root element", "")
	s.part = ended
}

// Document returns the whole document.
func (s *Scanner) Document() string { return s.doc }

// TagEnd returns the part of the current Start after its name.
func (s *Scanner) TagEnd() string { return s.doc[s.name.end:s.end] }

// Depth returns the number of open elements. At a Start this includes the element itself, at its
// End it does not.
func (s *Scanner) Depth() int { return len(s.open) }

// Space returns the namespace of the current Start or End; "" if there is none.
func (s *Scanner) Space() string { return s.uri(s.name.space) }

// Local returns the local name of the current Start or End.
func (s *Scanner) Local() string { return s.doc[s.name.local:s.name.end] }

// Prefix returns the prefix of the current Start or End as written.
func (s *Scanner) Prefix() string { return s.prefix(s.name) }

// Is reports whether the current Start or End has the given namespace and local name.
func (s *Scanner) Is(space, local string) bool {
	return s.Local() == local && s.Space() == space
}

// Empty reports whether the current Start is an empty-element tag.
func (s *Scanner) Empty() bool { return s.empty }

// Offset returns where the current token begins in the document.
func (s *Scanner) Offset() int { return s.start }

// End returns where the current token ends in the document. An empty-element tag is a Start with
// the range of the tag, followed by an End with an empty range.
func (s *Scanner) End() int { return s.end }

// A Cursor moves through a document, or a single element of one, in the order of its tokens.
// Make one with [New], [NewFragment], [Open] or [Mend].
type Cursor struct {
	Scanner
	Mender *Mender // the Mender; nil if reading ends where the Scanner's leniencies are not enough

	buf    []byte // the buffer of ElementText
	nested bool   // the last ElementText or Skip passed over elements
}

// New returns a Cursor at the beginning of a document, which must be valid UTF-8 without a
// byte order mark, as [Decode] returns it.
func New(doc string, lim Limits) *Cursor { return NewFragment(doc, nil, lim) }

// NewFragment returns a Cursor for a single element, with the namespace bindings of outer in
// scope.
func NewFragment(fragment string, outer []Binding, lim Limits) *Cursor {
	c := new(Cursor)
	c.open, c.attrs, c.bindings = make([]frame, 0, 8), make([]attr, 0, 8), make([]Binding, 0, len(outer)+4)
	c.reset(fragment, outer, lim)
	return c
}

// ReadAgain moves c, with its memory, to an element read before without an error. It
// makes no notes. Clean is the result of Clean before the element.
func (c *Cursor) ReadAgain(fragment string, outer []Binding, clean bool) {
	c.reset(fragment, outer, Unlimited())
	c.Mender, c.buf = nil, c.buf[:0]
	if c.again = true; clean {
		c.ahead.control = len(fragment)
	}
}

// Next moves to the next token. It checks comments, processing instructions, the DOCTYPE and the
// XML declaration, but does not return them. After Stop, Next always returns Stop; [Scanner.Err]
// says why.
func (c *Cursor) Next() Token {
	if c.Mender != nil {
		return c.Mender.next()
	}
	s := &c.Scanner
	tok := s.step()
	for tok == misc {
		tok = s.step()
	}
	s.tok = tok
	return tok
}

// step moves to the next token, misc included.
func (c *Cursor) step() Token {
	if c.Mender != nil {
		return c.Mender.step()
	}
	return c.Scanner.step()
}

// Child moves to the next Start at depth+1, and skips everything before it. It returns false
// if the element at depth, or the scan, has ended. So
//
//	for depth := c.Depth(); c.Child(depth); {
//		...
//	}
//
// visits the children of the current element, however much of each the body consumes. Child(0)
// moves to the root.
func (c *Cursor) Child(depth int) bool {
	if len(c.open) > depth {
		c.skipLeaf()
	}
	for len(c.open) >= depth {
		switch c.nextTag() {
		case Stop:
			return false
		case Start:
			if len(c.open) == depth+1 {
				return true
			}
			c.skipLeaf()
		}
	}
	return false
}

// nextTag is Next where only tags matter: it passes over white space before one.
func (c *Cursor) nextTag() Token {
	s := &c.Scanner
	if s.empty || s.tok == Stop || len(s.open) == 0 || c.Mender != nil {
		return c.Next()
	}
	i := skipSpace(s.doc, s.end)
	if i+1 >= len(s.doc) || s.doc[i] != '<' {
		return c.Next()
	}
	s.end = i
	switch next := s.doc[i+1]; {
	case class[next]&nameStart != 0:
		s.start, s.attrs = i, s.attrs[:0]
		s.tok = s.startTag(i + len("<"))
	case next == '/':
		s.start, s.attrs = i, s.attrs[:0]
		s.tok = s.endTag(i + len("</"))
	default:
		return c.Next()
	}
	return s.tok
}

// leafText moves from the Start of an element with nothing but text to the text, perhaps an empty one.
// Then leave moves to its End.
func (c *Cursor) leafText() (tagEnd int, ok bool) {
	s := &c.Scanner
	if s.tok != Start || s.empty || c.Mender != nil {
		return 0, false
	}
	doc, i := s.doc, s.end
	from, end, after := textAt(doc, i)
	if end < 0 {
		return 0, false
	}
	if k := s.knownName(); k != nil && k.bare && after+len("</")+16 <= len(doc) { // a ">" follows the name in both tags
		ok = doc[after:after+2] == "</" && k.begins(nameKey{eight(doc, after+2), eight(doc, after+10)})
	} else {
		ok = isEndTagOf(doc[after:], s.written(s.name))
	}
	if !ok {
		return 0, false
	}
	s.start, s.attrs = i, s.attrs[:0]
	if from > i {
		s.tok = s.section(i, end)
	} else {
		s.tok = s.textUntil(i, end)
	}
	return after + len("</>") + s.name.end - s.name.start, true
}

// textAt returns the range of the text, or of the text of the CDATA section, at i, and where the next markup
// begins; end is -1 if the section has no end.
func textAt(doc string, i int) (from, end, after int) {
	if i == len(doc) || doc[i] != '<' || !hasPrefixAt(doc, i, "<![CDATA[") { // most texts are seen to be none by their first byte
		end = indexFrom(doc, i, '<')
		return i, end, end
	}
	from = i + len("<![CDATA[")
	end = sectionEnd(doc, from)
	return from, end, end + len("]]>")
}

// isEndTagOf reports whether a text begins with the end tag of a name, without white space.
func isEndTagOf(text, name string) bool {
	n := len("</") + len(name)
	return len(text) > n && text[:2] == "</" && text[2:n] == name && text[n] == '>'
}

// leave moves from the text of an element to its End, which ends at tagEnd.
func (c *Cursor) leave(tagEnd int) {
	c.start, c.tok = c.end, End
	c.pop(tagEnd)
}

// skipLeaf moves over an element with nothing but text.
func (c *Cursor) skipLeaf() (skipped bool) {
	tagEnd, ok := c.leafText()
	if ok {
		c.leave(tagEnd)
	}
	return ok
}

// Seek makes the cursor continue at a later offset, at which a child of the current element
// begins.
func (c *Cursor) Seek(offset int) { c.end, c.empty = offset, false }

// Skip moves from a Start to its End. At other tokens it does nothing.
func (c *Cursor) Skip() {
	if c.tok != Start {
		return
	}
	c.nested = false
	if c.skipLeaf() {
		return
	}
	for depth := len(c.open); len(c.open) >= depth; {
		switch c.nextTag() {
		case Stop:
			return
		case Start:
			c.nested = true
			c.skipLeaf()
		}
	}
}

// ElementText moves from a Start to its End, and returns all character data of the element and
// its descendants. If they are one run of plain text, the result is a part of the document and
// needs no allocation. At other tokens it returns "".
func (c *Cursor) ElementText() string {
	if c.tok != Start {
		return ""
	}
	if text, ok := c.LeafText(); ok {
		return text
	}
	// The first run of plain text needs no buffer unless another follows.
	only, buf := "", c.buf[:0]
	c.nested = false
	for depth := len(c.open); len(c.open) >= depth; {
		switch c.Next() {
		case Stop:
			return c.joined(only, buf)
		case Start:
			c.nested = true
		case Text, CData:
			if c.form == literal && only == "" && len(buf) == 0 {
				only = c.raw()
				continue
			}
			buf = c.AppendText(append(slices.Grow(buf, len(only)+c.end-c.start+spare), only...))
			only = ""
		}
	}
	return c.joined(only, buf)
}

// LeafText is ElementText if it is at the Start of an element with nothing but text; ok is false, and
// nothing happens, elsewhere or perhaps at a comment.
func (c *Cursor) LeafText() (text string, ok bool) {
	tagEnd, ok := c.leafText()
	if !ok {
		return "", false
	}
	c.nested = false
	if c.form == literal {
		text = c.raw()
	} else {
		c.buf = c.AppendText(slices.Grow(c.buf[:0], c.end-c.start+spare))
		text = string(c.buf)
	}
	c.leave(tagEnd)
	return text, true
}

// LeafAt is LeafText for the element at an offset of another document, without its namespaces, which was
// read before without an error. No value in its start tag has a ">". Clean says that there are no control
// characters other than tabs and newlines.
func (c *Cursor) LeafAt(doc string, at int, clean bool) (text string, ok bool) {
	name := doc[at+len("<") : nameEnd(doc, at+len("<"))]
	i, mode := indexFrom(doc, at, '>')+1, uint8(decodeText)
	from, end, after := textAt(doc, i)
	if end < 0 || !isEndTagOf(doc[after:], name) {
		return "", false
	}
	if from > i {
		mode = decodeCData
	}
	return c.decoded(doc[from:end], mode, clean), true
}

// Nested reports whether the element of the last ElementText or Skip contained elements.
func (c *Cursor) Nested() bool { return c.nested }

// joined returns the text ElementText has collected, and keeps its buffer for the next.
func (c *Cursor) joined(only string, buf []byte) string {
	c.buf = buf
	if len(buf) == 0 {
		return only
	}
	return string(buf)
}

// A SyntaxError reports a place where the document is not well-formed, and leniency does
// not help.
type SyntaxError struct {
	Offset       int
	Line, Column int // counted from 1
	Msg          string
	Truncated    bool // the document ended before its root element did
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("xml: line %d, column %d: %s", e.Line, e.Column, e.Msg)
}

// A LimitError reports a document beyond [Limits].
type LimitError struct {
	Limit  string // "depth", "attributes", "namespaces" or "elements"
	Max    int
	Offset int
	Line   int // counted from 1
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("xml: line %d: %s over the limit of %d", e.Line, e.Limit, e.Max)
}

// Detail says in words which limit the document exceeds.
func (e *LimitError) Detail() string {
	switch e.Limit {
	case "depth":
		return fmt.Sprintf("elements are nested more than %d deep", e.Max)
	case "attributes":
		return fmt.Sprintf("an element has more than %d attributes", e.Max)
	case "namespaces":
		return fmt.Sprintf("more than %d namespace declarations are in scope", e.Max)
	}
	return fmt.Sprintf("the document has more than %d %s", e.Max, e.Limit)
}

// Err returns nil before the end of the document and at a proper one; otherwise a
// [*SyntaxError] or a [*LimitError].
func (s *Scanner) Err() error { return s.err }

// Lenient returns the number of leniencies so far. At a Start, those of the start tag do not
// count yet: an element is well-formed if Lenient is the same at its Start and its End.
func (s *Scanner) Lenient() int {
	if s.tok == Start {
		return s.before
	}
	return s.lenient
}

// syntax ends the scan with a syntax error. After the root element errors are harmless, so
// it only makes a note.
func (s *Scanner) syntax(at int, msg string) Token {
	return s.fail(&SyntaxError{Offset: at, Msg: msg})
}

// truncated ends the scan of a truncated document.
func (s *Scanner) truncated() Token {
	msg := "the document ends before its root element"
	if n := len(s.open); n > 0 {
		msg = "the document ends within <" + clip(s.written(s.open[n-1].name)) + ">"
	}
	return s.fail(&SyntaxError{Offset: len(s.doc), Msg: msg, Truncated: true})
}

func (s *Scanner) fail(err *SyntaxError) Token {
	if s.part != inProlog && len(s.open) == 0 {
		s.afterRoot(s.start)
		return Stop
	}
	err.Line, err.Column = Line(s.doc, err.Offset)
	s.err, s.part = err, ended
	return Stop
}

// exceeded ends the scan with a limit error.
func (s *Scanner) exceeded(limit string, max, at int) Token {
	line, _ := Line(s.doc, at)
	s.err, s.part = &LimitError{Limit: limit, Max: max, Offset: at, Line: line}, ended
	return Stop
}

// clip shortens text of the document for a message.
func clip(s string) string { return Clip(s, 60) }

// Clip returns the first most bytes of a text, without a broken character at the end,
// and an ellipsis; or the whole text if it is no longer. Messages quote documents so.
func Clip(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// Line returns the 1-based line and column, counted in characters, of an offset in doc.
func Line(doc string, offset int) (line, column int) {
	before := doc[:min(max(offset, 0), len(doc))]
	begin := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[begin:]) + 1
}

// A Note records a leniency.
type Note struct {
	Code    string
	Message string
	Offset  int
}

// maxNotes is the maximum number of notes. Documents with more leniencies repeat the same
// ones.
const maxNotes = 100

// A notebook records the leniencies used in reading an input.
type notebook struct {
	input
	again   bool // the input is read again: no more notes are made
	notes   []Note
	lenient int // the number of leniencies
}

// Notes returns the first hundred leniencies, and the number of further ones.
func (n *notebook) Notes() (notes []Note, more int) {
	return n.notes, n.lenient - len(n.notes)
}

// note counts a leniency. It formats the message only if it keeps it, and uses only the
// beginning of detail, which comes from the document.
func (n *notebook) note(code string, at int, message, detail string) {
	n.lenient++
	if len(n.notes) == maxNotes {
		return
	}
	if detail != "" {
		message += ": " + clip(detail)
	}
	n.notes = append(n.notes, Note{Code: code, Message: message, Offset: at})
}

// noteText notes the faults of the text doc[i:end].
func (n *notebook) noteText(i, end int) {
	for ; ; i++ {
		next := min(n.control(i), n.bracket(i), end)
		n.references(i, next)
		switch i = next; {
		case i == end:
			return
		case hasPrefixAt(n.doc, i, "]]>"):
			n.note("cdata-end-in-text", i, "]]> in text", "")
		case n.doc[i] != ']' && n.doc[i] != '\r':
			n.noteControl(i)
		}
	}
}

// references notes the faults of the references in the text doc[i:end].
func (n *notebook) references(i, end int) {
	for text := n.doc[:end]; ; {
		if i = oddReference(text, i); i == end {
			return
		}
		kind, size, _ := reference(n.doc[i:])
		if text[i] != '&' {
			size = 1
		} else if kind != refChar {
			n.noteReference(kind, i, n.doc[i:i+size])
		}
		i += size
	}
}

func (n *notebook) noteReference(kind refKind, at int, ref string) {
	switch kind {
	case refBare:
		n.note("bare-ampersand", at, "ampersand that begins no reference", "")
	case refForbidden:
		n.note("control-character", at, "reference to a character that XML does not allow", ref)
	case refSurrogates:
		n.note("surrogate-reference", at, "references to the halves of a character", ref)
	case refWindows:
		n.note("windows-1252-reference", at, "reference to a character by its number in windows-1252, which XML does not use", ref)
	case refHTML:
		n.note("html-entity", at, "entity of HTML that is not declared", ref)
	case refUndefined:
		n.note("undefined-entity", at, "undefined entity", ref)
	}
}

// noteValue notes the faults of the value doc[i:end].
func (n *notebook) noteValue(i, end int) {
	if n.again || n.ampersand(i) >= end && n.control(i) >= end && strings.IndexByte(n.doc[i:end], '<') < 0 {
		return
	}
	for part := n.doc[:end]; ; {
		if i = until(part, i, valueStop); i == end {
			return
		}
		switch part[i] {
		case '&':
			kind, length, _ := reference(part[i:])
			if kind != refChar {
				n.noteReference(kind, i, part[i:i+length])
			}
			i += length
		case '<':
			n.note("lt-in-attribute", i, "< in an attribute value", "")
			i++
		default:
			n.noteControl(i)
			i++
		}
	}
}

// controls notes the control characters in doc[i:end], where nothing else needs attention.
func (n *notebook) controls(i, end int) {
	for i = n.control(i); i < end && !n.again; i = n.control(i + 1) {
		if n.doc[i] != '\r' {
			n.noteControl(i)
		}
	}
}

func (n *notebook) noteControl(at int) {
	n.note("control-character", at, "character that XML does not allow", "")
}
