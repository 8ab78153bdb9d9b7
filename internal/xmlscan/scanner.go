// Package xmlscan reads XML feeds in one pass over a document in memory.
//
// A [Scanner] is a pull parser: each call of [Scanner.Next] moves to the next token. The values
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
	"math"
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
	start, end int  // the current token's range in doc
	empty      bool // the current token is an empty-element tag; its End comes next
	form       form // of the current Text or CData
	name       name // of the current Start or End
	attrs      []attr
	list       []Attr // the same as attrs, once requested
	dropped    []int  // the offsets of attributes of the current tag missing from attrs
	declared   int    // bindings[declared:] were undeclared prefixes of the current tag
	seen       map[attrName]struct{}

	open     []frame
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

// A frame is an open element, with the state of the scanner's stacks outside it.
type frame struct {
	name                             name
	bindings, standard, langs, bases int
}

// Clean reports whether the rest of the document after the current token has no control
// characters other than tabs and newlines.
func (s *Scanner) Clean() bool { return s.control(s.end) == len(s.doc) }

// reset makes s a new scanner in the same memory.
func (s *Scanner) reset(fragment string, outer []Binding, lim Limits) {
	*s = Scanner{
		lim: lim.withDefaults(), open: s.open[:0], attrs: s.attrs[:0], list: s.list[:0],
		inheritance: inheritance{langs: s.langs[:0], bases: s.bases[:0]},
		namespaces: namespaces{
			notebook: notebook{input: newInput(fragment)},
			bindings: append(s.bindings[:0], outer...),
		},
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
