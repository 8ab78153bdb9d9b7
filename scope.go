package feedhistory

import (
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/markup"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// What an entry takes from its surroundings, and how much: a document has it once,
// but each entry needs a copy.

// A scope is what the surroundings of an element contribute to its meaning.
type scope struct {
	bindings []xmlscan.Binding // one for each prefix
	base     string
	bases    int // the number of xml:base attributes that base comes from
	lang     string
	clean    bool           // see xmlscan.Cursor.Clean; false is always safe
	index    map[string]int // the bindings by prefix, if there are many

	written int           // the length of base and lang, which XML writes on each entry
	bound   int           // the length of all bindings
	reach   xmlscan.Reach // the reach of base
}

// binding returns the index of a prefix's binding; -1 if there is none.
func (sc *scope) binding(prefix string) int {
	if sc.index != nil {
		if i, ok := sc.index[prefix]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(sc.bindings, func(b xmlscan.Binding) bool { return b.Prefix == prefix })
}

// needed returns the bindings that an element needs outside its document: the default
// namespace, and those whose prefix occurs before a colon, in a name or in text
// (xsi:type="x:T").
func (sc *scope) needed(raw string) (needed []xmlscan.Binding) {
	if len(sc.bindings) == 0 {
		return nil
	}
	found, left := make([]bool, len(sc.bindings)), len(sc.bindings)
	find := func(prefix string) {
		if i := sc.binding(prefix); i >= 0 && !found[i] {
			found[i] = true
			left--
		}
	}
	find("")
	for rest := raw; left > 0; {
		colon := strings.IndexByte(rest, ':')
		if colon < 0 {
			break
		}
		find(rest[nameBefore(rest, colon):colon])
		rest = rest[colon+1:]
	}
	for i, b := range sc.bindings {
		if found[i] {
			needed = append(needed, b)
		}
	}
	return needed
}

// nameBefore returns where the name that ends at end begins.
func nameBefore(s string, end int) int {
	for end > 0 {
		switch c := s[end-1]; {
		case c >= 0x80, 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9', c == '-', c == '.', c == '_':
			end--
		default:
			return end
		}
	}
	return 0
}

// The limits on what an entry may take from its surroundings. Links count with the
// memory that they take.
const (
	maxBorrowed      = 16      // times the entry's length
	maxBorrowedExtra = 1 << 10 // plus this many bytes
	roomOfLink       = 96
)

// affords reports whether an element of n bytes may take the given number of bytes from
// its surroundings. It depends only on the element, because its place in the document
// must not affect its identity.
func affords(n, borrowed int) bool { return borrowed <= maxBorrowed*n+maxBorrowedExtra }

// A loan is what an element takes from its scope.
type loan struct {
	raw    string        // the element
	markup string        // the markup that has its references
	links  int           // the bytes that its links take
	reach  xmlscan.Reach // the reach of the bases within it
}

// lends reports whether an element may take what it needs from the scope: the bindings,
// the base, the language, and the base for each of its references.
func (sc *scope) lends(l loan) bool {
	reach := l.reach.Max(sc.reach)
	own := l.links + sc.written
	most := own + sc.bound
	if reach.Whole > shortBase {
		most += reach.Whole * (strings.Count(l.markup, "=") + strings.Count(l.markup, "&") + strings.Count(l.markup, "</"))
	}
	if affords(len(l.raw), most) {
		return true // nearly always
	}
	for _, b := range sc.needed(l.raw) {
		own += len(b.Prefix) + len(b.URI)
	}
	if reach.Whole > shortBase {
		paths, others := markup.CountRelative(l.markup)
		own += paths*reach.Path + others*reach.Whole
	}
	return affords(len(l.raw), own)
}

// shortBase is the length up to which a base costs no more than a few times what a
// reference to it takes.
const shortBase = 64

// attrs returns the attributes by which an element gives its content the bindings, the
// language and, if told to, the base.
func (sc *scope) attrs(bindings []xmlscan.Binding, base bool) string {
	var attrs strings.Builder
	for _, ns := range bindings {
		writeAttr(&attrs, "xmlns:"+ns.Prefix, ns.URI)
	}
	if base && sc.base != "" {
		writeAttr(&attrs, "xml:base", sc.base)
	}
	if sc.lang != "" {
		writeAttr(&attrs, "xml:lang", sc.lang)
	}
	return attrs.String()
}

// shareable returns the bindings that elements need, in two parts: those that an element
// that we write around them can have, and the others, which are the default namespace
// and a prefix that we use ourselves.
func (sc *scope) shareable(elements string) (shared, others []xmlscan.Binding) {
	for _, b := range sc.needed(elements) {
		if b.Prefix == "" || b.Prefix == "atom" && b.URI != vocab.Atom {
			others = append(others, b)
		} else {
			shared = append(shared, b)
		}
	}
	return shared, others
}

// declarations returns the attributes for those bindings that an element may need.
func declarations(element string, bindings []xmlscan.Binding) string {
	var attrs strings.Builder
	for _, b := range bindings {
		switch {
		case b.Prefix == "" && hasUnprefixed(element):
			writeAttr(&attrs, "xmlns", b.URI)
		case b.Prefix != "" && strings.Contains(element, b.Prefix+":"):
			writeAttr(&attrs, "xmlns:"+b.Prefix, b.URI)
		}
	}
	return attrs.String()
}

// hasUnprefixed reports whether there is, or may be, an element without a prefix.
func hasUnprefixed(element string) bool {
	for {
		_, rest, ok := strings.Cut(element, "<")
		if !ok {
			return false
		}
		name := rest[:min(len(rest), 100)]
		if end := strings.IndexAny(name, " \t\r\n/>"); end >= 0 {
			name = name[:end]
		}
		if name != "" && !strings.Contains(name, ":") {
			return true
		}
		element = rest
	}
}

// alone returns an element with what it needs from the scope, so that it can be written
// into any document.
func (sc *scope) alone(element string, format Format) string {
	needed := sc.needed(element)
	attrs := declarations(element, needed)
	if format == RSS && hasUnprefixed(element) && !slices.ContainsFunc(needed, func(b xmlscan.Binding) bool { return b.Prefix == "" }) {
		attrs += ` xmlns=""`
	}
	if sc.base != "" && markup.MayBeRelative(element) {
		s := xmlscan.NewFragment(element, sc.bindings, xmlscan.Unlimited())
		s.Next()
		own, _ := s.Attr(vocab.XML, "base")
		if base := iri.Resolve(sc.base, own); base != own {
			var b strings.Builder
			writeAttr(&b, "xml:base", base)
			attrs += b.String()
		}
	}
	if attrs == "" {
		return element
	}
	return xmlscan.Standalone(element, sc.bindings, attrs)
}

// standalone returns an element with everything that its scope contributes.
func (sc *scope) standalone(raw string, lenient bool) string {
	s := xmlscan.NewFragment(raw, sc.bindings, xmlscan.Unlimited())
	s.Next()
	var attrs strings.Builder
	declared := s.Bindings()[len(sc.bindings):]
	for _, b := range sc.needed(raw) {
		if slices.ContainsFunc(declared, func(own xmlscan.Binding) bool { return own.Prefix == b.Prefix }) {
			continue
		}
		name := "xmlns"
		if b.Prefix != "" {
			name += ":" + b.Prefix
		}
		writeAttr(&attrs, name, b.URI)
	}
	own, ok := s.Attr(vocab.XML, "base")
	if base := iri.Resolve(sc.base, own); base != own {
		writeAttr(&attrs, "xml:base", base)
		lenient = lenient || ok // its own base must be replaced
	}
	if _, ok := s.Attr(vocab.XML, "lang"); !ok && sc.lang != "" {
		writeAttr(&attrs, "xml:lang", sc.lang)
	}
	if lenient {
		return xmlscan.Standalone(raw, nil, attrs.String())
	}
	name := len("<") + len(s.Local())
	if s.Prefix() != "" {
		name += len(s.Prefix()) + len(":")
	}
	return raw[:name] + attrs.String() + raw[name:]
}
