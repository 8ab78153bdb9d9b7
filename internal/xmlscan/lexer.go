package xmlscan

import (
	"strings"
)

// The ends of pieces of markup in an ill-formed document. These functions depend only on the
// text, so plan and the scanner agree. A piece ends no later than where the next markup
// would begin: so an element cut out of the document is read as it was there.

// A lexer finds the ends of markup in doc.
type lexer struct {
	doc   string
	noEnd bool // no further processing instruction ends correctly
}

// A markupKind is the kind of the markup after a "<".
type markupKind uint8

const (
	markupNone markupKind = iota // none: it is text
	markupStart
	markupEnd
	markupComment
	markupCData
	markupInstruction
	markupDoctype
	markupDeclaration // any other
)

// markupAt returns the kind of the markup after the "<" at i, inside the root element or
// before it.
func markupAt(doc string, i int, inside, rooted bool) markupKind {
	switch rest := doc[i+1:]; {
	case rest == "":
		return markupNone
	case rest[0] == '/':
		return markupEnd
	case rest[0] == '?':
		return markupInstruction
	case strings.HasPrefix(rest, "!--"):
		return markupComment
	case inside && strings.HasPrefix(rest, "![CDATA["):
		return markupCData
	case !rooted && len(rest) >= len("!DOCTYPE") && strings.EqualFold(rest[:len("!DOCTYPE")], "!DOCTYPE"):
		return markupDoctype
	case rest[0] == '!':
		return markupDeclaration
	case class[rest[0]]&nameStart == 0:
		return markupNone
	}
	end := nameEnd(doc, i+1)
	if prefix, _, ok := splitName(doc[i+1 : end]); !ok || prefix == "xmlns" || isAddress(doc[i+1:end], doc[end:]) {
		return markupNone
	}
	return markupStart
}

// isAddress recognises addresses people write in angle brackets: joe@example.org and
// http://example.org/.
func isAddress(name, after string) bool {
	return strings.HasPrefix(after, "@") || strings.HasSuffix(name, ":") && strings.HasPrefix(after, "//")
}

// nameEnd returns the end of a run of bytes allowed in names.
func nameEnd(doc string, i int) int {
	for i < len(doc) && class[doc[i]]&nameByte != 0 {
		i++
	}
	return i
}

// splitName splits a qualified name, as qname does.
func splitName(name string) (prefix, local string, ok bool) {
	if name == "" || class[name[0]]&nameStart == 0 || strings.Count(name, ":") > 1 || !validName(name) {
		return "", "", false
	}
	colon := strings.IndexByte(name, ':')
	switch colon {
	case -1:
		return "", name, true
	case 0, len(name) - 1:
		return "", "", false
	}
	return name[:colon], name[colon+1:], true
}

// oddEnd returns where unknown markup ends: after the next ">", or before the next "<".
func oddEnd(doc string, i int) int {
	n := strings.IndexAny(doc[i:], "<>")
	switch {
	case n < 0:
		return len(doc)
	case doc[i+n] == '>':
		n++
	}
	return i + n
}

// isOddInstruction reports whether the processing instruction at i does not end correctly.
// Word's <?xml:namespace … /> does not, and has an invalid name; whether the next "?>"
// belongs to another instruction cannot be told.
func (l *lexer) isOddInstruction(i int) bool {
	target := l.doc[i+len("<?") : nameEnd(l.doc, i+len("<?"))]
	if target == "" || class[target[0]]&nameStart == 0 || !validName(target) {
		return true
	}
	if strings.Contains(target, ":") && strings.HasSuffix(l.doc[i:oddEnd(l.doc, i+len("<?"))], "/>") {
		return true
	}
	l.noEnd = l.noEnd || !strings.Contains(l.doc[i:], "?>")
	return l.noEnd
}

// An endTag is the end tag at a "</".
type endTag struct {
	name string // "" if there is none
	end  int
	odd  bool // it is not written correctly
	cut  bool // the text ends before it does
}

func endTagAt(doc string, i int) endTag {
	begin := skipSpace(doc, i+len("</"))
	end := nameEnd(doc, begin)
	tag := endTag{name: doc[begin:end], odd: begin > i+len("</")}
	if tag.end = skipSpace(doc, end); tag.end < len(doc) && doc[tag.end] == '>' {
		tag.end++
		return tag
	}
	tag.odd, tag.end = true, oddEnd(doc, end)
	tag.cut = tag.end == len(doc) && doc[tag.end-1] != '>'
	return tag
}

// A piece is a part of a start tag.
type piece struct {
	kind     pieceKind
	flaw     flaw
	at, next int // the offsets of the piece, and of the text after it
	nameEnd  int // the end of the name of an attribute
	from, to int // the range of its value
	quote    byte
}

type pieceKind uint8

const (
	pieceAttr  pieceKind = iota
	pieceJunk            // a character with which nothing begins
	pieceClose           // ">"
	pieceEmpty           // "/>"
	pieceCut             // the tag has no end: other markup begins here, or the text ends
)

// A flaw is the missing part of an attribute.
type flaw uint8

const (
	noFlaw flaw = iota
	noValue
	noQuotes
	noClosingQuote
)

// pieceAt reads the piece of a start tag at i, or after the white space there.
func pieceAt(doc string, i int) piece {
	p := piece{at: skipSpace(doc, i)}
	p.next = p.at + 1
	switch {
	case p.at == len(doc), doc[p.at] == '<':
		p.kind, p.next = pieceCut, p.at
	case doc[p.at] == '>':
		p.kind = pieceClose
	case hasPrefixAt(doc, p.at, "/>"):
		p.kind, p.next = pieceEmpty, p.at+2
	case class[doc[p.at]]&nameByte == 0:
		p.kind = pieceJunk
	default:
		p.nameEnd = nameEnd(doc, p.at)
		p.value(doc)
	}
	return p
}

// value reads the value of an attribute.
func (p *piece) value(doc string) {
	p.from, p.to, p.next = p.nameEnd, p.nameEnd, p.nameEnd
	i := skipSpace(doc, p.nameEnd)
	if i == len(doc) || doc[i] != '=' {
		p.flaw = noValue
		return
	}
	i = skipSpace(doc, i+1)
	if i < len(doc) && (doc[i] == '"' || doc[i] == '\'') {
		p.quote, p.from = doc[i], i+1
		p.quoted(doc)
		return
	}
	p.from, p.flaw = i, noQuotes
	for i < len(doc) && class[doc[i]]&spaceByte == 0 && doc[i] != '<' && doc[i] != '>' && !hasPrefixAt(doc, i, "/>") {
		i++
	}
	if i == p.from {
		p.flaw = noValue
	}
	p.to, p.next = i, i
	if p.to > p.from && strings.IndexAny(doc[p.from:p.to], `"'`) == p.to-p.from-1 {
		p.to-- // only the opening quote is missing
	}
}

// quoted finds the end of a value in quotes. If the closing quote is missing, the next quote
// may be far away. So a value that contains the end of a tag and then the beginning of another
// ends where that tag does; one that ends with the opening quote of another value ends where
// that attribute begins.
func (p *piece) quoted(doc string) {
	first := nowhere // the offset of the first "<" or ">"
	for i := p.from; i < len(doc); i++ {
		switch c := doc[i]; {
		case c == p.quote:
			if name := p.reopened(doc, i); name < 0 {
				p.to, p.next = i, i+1
			} else if first < 0 {
				p.unclosed(doc, name)
			} else {
				p.unclosed(doc, first)
			}
			return
		case c != '<' && c != '>':
		case first < 0:
			first = i
		case c == '<' && doc[first] == '>':
			p.unclosed(doc, first)
			return
		}
	}
	if first < 0 {
		first = len(doc)
	}
	p.unclosed(doc, first)
}

// unclosed ends a value without a closing quote.
func (p *piece) unclosed(doc string, end int) {
	if end > p.from && hasPrefixAt(doc, end-1, "/>") {
		end--
	}
	p.to, p.next, p.flaw = end, end, noClosingQuote
}

// reopened returns the offset of the attribute, after white space, whose value the quote at i
// opens; -1 if the quote closes a value, as far as can be told.
func (p *piece) reopened(doc string, i int) (name int) {
	if after := doc[i+1:]; after == "" || class[after[0]]&spaceByte != 0 || after[0] == '<' || after[0] == '>' ||
		strings.HasPrefix(after, "/>") {
		return nowhere
	}
	before := strings.TrimRight(doc[p.from:i], " \t\r\n")
	before, ok := strings.CutSuffix(before, "=")
	if !ok {
		return nowhere
	}
	before = strings.TrimRight(before, " \t\r\n")
	end := len(before)
	for end > 0 && class[before[end-1]]&nameByte != 0 {
		end--
	}
	if end == len(before) || end == 0 || class[before[end-1]]&spaceByte == 0 {
		return nowhere
	}
	return p.from + end
}

// marks is a set of places in a document.
type marks []uint64

func (m marks) set(i int)      { m[i/64] |= 1 << (i % 64) }
func (m marks) has(i int) bool { return m[i/64]>>(i%64)&1 == 1 }
