// Package xmlscan reads XML feeds in one pass over a document in memory.
//
// A [Scanner] is a pull parser: each call of [Scanner.Next] moves to the next
// token, and the values it hands out are substrings of the document, so that
// scanning allocates nothing per token. It checks the document as it goes:
// tags must match, there must be one root and the root must be closed. It is
// namespace-aware, never declares or expands entities, and keeps to [Limits],
// so that a hostile document costs no more than a good one of the same size.
//
// Real feeds are not always well-formed. Where the author's intention is
// plain, as with a bare ampersand, the scanner accepts what it finds and keeps
// a [Note]; [Standalone] writes an element out with those places repaired.
// Everything else is a [SyntaxError], but for a scanner that [Mend] returns.
//
// [Decode] turns the bytes of a document into the UTF-8 that the scanner reads.
package xmlscan

import (
	"math"
	"strings"
)

// Limits bounds what a document may ask for. A field that is zero or negative
// means its default.
type Limits struct {
	Depth      int // open elements at once; 256
	Attributes int // attributes of one element, namespace declarations included; 256
	Namespaces int // namespace bindings in scope at once; 256
	Elements   int // elements in the document; 1,000,000
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

// Unlimited returns the limits for what has passed others before.
func Unlimited() Limits { return Limits{math.MaxInt, math.MaxInt, math.MaxInt, math.MaxInt} }

// A Token is a kind of token.
type Token uint8

// The kinds of token that Next returns.
const (
	Stop  Token = iota // the end of the document, or an error
	Start              // a start tag, or an empty-element tag
	End                // an end tag, or the end of an empty-element tag
	Text               // character data up to the next markup
	CData              // a CDATA section

	misc // a comment, processing instruction or DOCTYPE: never leaves the package
)

// A Scanner reads one document. It is made by [New] or [NewFragment].
type Scanner struct {
	doc string
	lim Limits

	tok        Token
	start, end int  // the current token's range in doc
	empty      bool // the current token is an empty-element tag, its End is due
	plain      bool // the current Text or CData stands for itself
	clean      bool // the current Text has no control characters but tabs and newlines
	rooted     bool // the root element has been opened
	name       name // of the current Start or End
	attrs      []attr
	list       []Attr // attrs, once they are asked for
	dropped    []int  // where attributes begin that the current tag has, but attrs has not
	declared   int    // bindings[declared:] were undeclared prefixes of the current tag
	seen       map[attrName]struct{}
	ahead      ahead
	again      bool // doc has been scanned before

	open     []frame
	bindings []Binding
	standard int // which of bindings is the default namespace; noSpace for none
	langs    []string
	bases    []Base
	reach    Reach // the largest of bases since it was last asked for
	around   Reach // of what is around all of them
	elements int
	buf      []byte // scratch of ElementText
	nested   bool   // the last ElementText passed over elements

	notes   []Note
	lenient int
	before  int // lenient before the current Start
	done    bool
	err     error

	oddComments []string // that have two hyphens in them

	mend *mend // nil: what is not well-formed beyond the leniencies ends the scan
}

// A name is that of an element or attribute. It refers to the document and to
// the bindings by offsets: so the garbage collector need not look at it.
type name struct {
	start, local, end int // "start:local end"; without a prefix, local is start
	space             int // which of the bindings, or one of those below
}

const (
	noSpace  = -1
	xmlSpace = -2 // of the prefix xml, which nobody declares
)

// A frame is an open element, with the state of the scanner's stacks outside it.
type frame struct {
	name                             name
	bindings, standard, langs, bases int
}

// New returns a scanner of the whole document doc, which must be valid UTF-8
// without a byte order mark, as [Decode] returns it.
func New(doc string, lim Limits) *Scanner {
	return NewFragment(doc, nil, lim)
}

// NewFragment returns a scanner of one element that stands by itself, where the
// namespace bindings of outer are already in scope.
func NewFragment(fragment string, outer []Binding, lim Limits) *Scanner {
	s := &Scanner{
		open:     make([]frame, 0, 8),
		attrs:    make([]attr, 0, 8),
		bindings: make([]Binding, 0, len(outer)+4),
	}
	s.reset(fragment, outer, lim)
	return s
}

// ReadAgain makes s, in the memory that it has, the scanner of an element that
// has been read without an error, and of which nothing is noted again. It is
// clean if Clean reported that before the element.
func (s *Scanner) ReadAgain(fragment string, outer []Binding, clean bool) {
	s.reset(fragment, outer, Unlimited())
	if s.again = true; clean {
		s.ahead.control = len(fragment)
	}
}

// Clean reports whether there are no control characters in the document behind
// the current token, but for tabs and newlines.
func (s *Scanner) Clean() bool { return s.control(s.end) == len(s.doc) }

func (s *Scanner) reset(fragment string, outer []Binding, lim Limits) {
	*s = Scanner{
		doc: fragment, lim: lim.withDefaults(),
		open: s.open[:0], attrs: s.attrs[:0], list: s.list[:0], langs: s.langs[:0], bases: s.bases[:0], buf: s.buf[:0],
		bindings: append(s.bindings[:0], outer...), ahead: unknownAhead,
	}
	s.standard = s.binding("")
}

// Next moves to the next token. Comments, processing instructions, the DOCTYPE
// and the XML declaration are checked and passed over. After Stop, Next returns
// Stop for ever; [Scanner.Err] tells why.
func (s *Scanner) Next() Token {
	s.tok = s.step()
	for s.tok == misc {
		s.tok = s.step()
	}
	return s.tok
}

// step moves to the next token, misc included.
func (s *Scanner) step() Token {
	if s.mend != nil {
		return s.mendedStep()
	}
	if s.done {
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

// outside moves over the white space outside the root element, and reports
// whether markup follows that may stand there.
func (s *Scanner) outside() bool {
	i := skipSpace(s.doc, s.start)
	s.start, s.end = i, i
	switch {
	case !s.rooted && i == len(s.doc):
		s.truncated()
		return false
	case !s.rooted && s.doc[i] != '<':
		s.syntax(i, "text outside the root element")
		return false
	case !s.rooted:
		return true
	case i == len(s.doc):
		s.done = true
		return false
	case hasPrefixAt(s.doc, i, "<!--"), hasPrefixAt(s.doc, i, "<?"):
		return true
	}
	s.afterRoot(i)
	return false
}

// afterRoot ends the scan at something that may not follow the root element.
func (s *Scanner) afterRoot(at int) {
	s.note("content-after-root", at, "content after the end of the root element", "")
	s.done = true
}

// Depth returns the number of open elements. At a Start it counts the element
// itself, at its End it no longer does.
func (s *Scanner) Depth() int { return len(s.open) }

// Space returns the namespace of the current Start or End, "" for none.
func (s *Scanner) Space() string { return s.uri(s.name.space) }

// Local returns the local name of the current Start or End.
func (s *Scanner) Local() string { return s.doc[s.name.local:s.name.end] }

// Prefix returns the prefix of the current Start or End as it was written.
func (s *Scanner) Prefix() string { return s.prefix(s.name) }

// Is reports whether the current Start or End is called local in the namespace space.
func (s *Scanner) Is(space, local string) bool {
	return s.Local() == local && s.Space() == space
}

// prefix returns the prefix of a name, "" for none.
func (s *Scanner) prefix(n name) string { return s.doc[n.start:max(n.start, n.local-1)] }

// written returns the name of the current Start or End as it was written.
func (s *Scanner) written() string { return s.doc[s.name.start:s.name.end] }

// openName returns the name of an open element as it was written.
func (s *Scanner) openName(k int) string { return s.doc[s.open[k].name.start:s.open[k].name.end] }

// Offset returns where the current token begins in the document.
func (s *Scanner) Offset() int { return s.start }

// End returns where the current token ends in the document. An empty-element
// tag is a Start with the range of the tag, followed by an End with an empty
// range.
func (s *Scanner) End() int { return s.end }

// A Base is the value of an xml:base attribute.
type Base struct {
	Ref   string // references decoded, but not resolved against other bases
	At    int    // where the attribute begins in the document
	Reach Reach  // once it is resolved against those around it
}

// A Reach says how many bytes a base has, at the most.
type Reach struct {
	Path  int // up to its last slash, which is what a relative path keeps
	Whole int
}

// ReachOf returns the reach of a base by itself.
func ReachOf(base string) Reach {
	path := base
	if i := strings.IndexAny(base, "?#"); i >= 0 {
		path = base[:i]
	}
	return Reach{strings.LastIndexByte(path, '/') + 1, len(base)}
}

// Max returns the larger of two, in both respects.
func (r Reach) Max(other Reach) Reach {
	return Reach{max(r.Path, other.Path), max(r.Whole, other.Whole)}
}

// within returns the reach of a base resolved against another.
func (r Reach) within(outer Reach) Reach {
	return Reach{outer.Path + r.Path, max(outer.Path+r.Whole, outer.Whole)}
}

// Bases returns the values of xml:base in scope, outermost first. It is valid
// until the next Next.
func (s *Scanner) Bases() []Base { return s.bases }

// Around tells what is around all bases.
func (s *Scanner) Around(base string) { s.around = ReachOf(base) }

// Reach returns the largest reach of the bases that came into scope since it was
// last called, zero if none did.
func (s *Scanner) Reach() (r Reach) {
	r, s.reach = s.reach, r
	return r
}

// Lang returns the value of xml:lang in scope, and whether there is one: an
// empty value ends the scope of another.
func (s *Scanner) Lang() (lang string, ok bool) {
	if len(s.langs) == 0 {
		return "", false
	}
	return s.langs[len(s.langs)-1], true
}

// Bindings returns the namespace bindings in scope, the innermost of a prefix
// last, without the predeclared xml. An undeclared prefix counts as declared on
// the element where it first occurs. It is valid until the next Next.
func (s *Scanner) Bindings() []Binding { return s.bindings }
