package xmlscan

import (
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/markup"
	"github.com/feedhistory/feedhistory/internal/vocab"
)

// Entries inherit namespaces, xml:base and xml:lang. A document has them once, but each
// entry needs a copy. This file bounds the cost of these copies.

// A Scope has the namespaces, the base and the language an element inherits.
type Scope struct {
	Bindings []Binding // one for each prefix
	Base     string
	Bases    int // the number of xml:base attributes Base comes from
	Lang     string
	Clean    bool           // see Scanner.Clean; false is always safe
	index    map[string]int // the bindings by prefix, if there are many

	written int   // the length of base and lang, which XML writes on each entry
	bound   int   // the length of all bindings
	reach   Reach // the reach of base
}

// BaseScope returns the scope of something inheriting only a base.
func BaseScope(base string) *Scope { return &Scope{Base: base, reach: ReachOf(base)} }

// Scope returns the scope of the current element's content, given its base and language.
func (c *Cursor) Scope(base, lang string) *Scope {
	sc := &Scope{Base: base, Bases: len(c.bases), Lang: lang}
	sc.written, sc.reach = len(base)+len(lang), ReachOf(base)
	all := c.bindings
	for i, b := range all {
		same := func(inner Binding) bool { return inner.Prefix == b.Prefix }
		if (b.Prefix != "" || b.URI != "") && !slices.ContainsFunc(all[i+1:], same) {
			sc.Bindings = append(sc.Bindings, b)
			sc.bound += len(b.Prefix) + len(b.URI)
		}
	}
	if few := 16; len(sc.Bindings) > few {
		sc.index = make(map[string]int, len(sc.Bindings))
		for i, b := range sc.Bindings {
			sc.index[b.Prefix] = i
		}
	}
	return sc
}

// binding returns the index of a prefix's binding; -1 if there is none.
func (sc *Scope) binding(prefix string) int {
	if sc.index != nil {
		if i, ok := sc.index[prefix]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(sc.Bindings, func(b Binding) bool { return b.Prefix == prefix })
}

// needed returns the bindings an element needs outside its document: the default
// namespace, and those whose prefix occurs before a colon, in a name or in text
// (xsi:type="x:T").
func (sc *Scope) needed(raw string) (needed []Binding) {
	if len(sc.Bindings) == 0 {
		return nil
	}
	found, left := make([]bool, len(sc.Bindings)), len(sc.Bindings)
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
	for i, b := range sc.Bindings {
		if found[i] {
			needed = append(needed, b)
		}
	}
	return needed
}

// nameBefore returns the beginning of the name before end.
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

// The limits on an entry's inheritance. Links count with the memory they take.
const (
	MaxInherited      = 16      // times the entry's length
	MaxInheritedExtra = 1 << 10 // plus this many bytes
	RoomOfLink        = 96      // the memory of a link without its target
)

// Affords reports whether an element of n bytes may take the given number of bytes from
// its surroundings. It depends only on the element, because its place in the document
// must not affect its identity.
func Affords(n, borrowed int) bool { return borrowed <= MaxInherited*n+MaxInheritedExtra }

// A Loan is the need of an element for its scope.
type Loan struct {
	Raw    string // the element
	Markup string // the markup with its references
	Links  int    // the bytes its links take
	Reach  Reach  // the reach of the bases within it
}

// Lends reports whether an element may inherit its needs from the scope: the bindings,
// the base, the language, and the base for each of its references.
func (sc *Scope) Lends(l Loan) bool {
	reach := l.Reach.Max(sc.reach)
	own := l.Links + sc.written
	most := own + sc.bound
	if reach.Whole > ShortBase {
		most += reach.Whole * (strings.Count(l.Markup, "=") + strings.Count(l.Markup, "&") + strings.Count(l.Markup, "</"))
	}
	if Affords(len(l.Raw), most) {
		return true // nearly always
	}
	for _, b := range sc.needed(l.Raw) {
		own += len(b.Prefix) + len(b.URI)
	}
	if reach.Whole > ShortBase {
		paths, others := markup.CountRelative(l.Markup)
		own += paths*reach.Path + others*reach.Whole
	}
	return Affords(len(l.Raw), own)
}

// ShortBase is the length up to which a base costs no more than a few times as much as
// a reference to it.
const ShortBase = 64

// Attrs returns the attributes by which an element gives its content the bindings, the
// language and, if told to, the base.
func (sc *Scope) Attrs(bindings []Binding, base bool) string {
	var attrs strings.Builder
	for _, ns := range bindings {
		WriteAttr(&attrs, "xmlns:"+ns.Prefix, ns.URI)
	}
	if base && sc.Base != "" {
		WriteAttr(&attrs, "xml:base", sc.Base)
	}
	if sc.Lang != "" {
		WriteAttr(&attrs, "xml:lang", sc.Lang)
	}
	return attrs.String()
}

// Shareable returns the bindings elements need, in two parts: those an element written
// around them can have, and the others, which are the default namespace and a prefix we
// use ourselves.
func (sc *Scope) Shareable(elements string) (shared, others []Binding) {
	for _, b := range sc.needed(elements) {
		if b.Prefix == "" || b.Prefix == "atom" && b.URI != vocab.Atom {
			others = append(others, b)
		} else {
			shared = append(shared, b)
		}
	}
	return shared, others
}

// Declarations returns the attributes for those bindings an element may need.
func Declarations(element string, bindings []Binding) string {
	var attrs strings.Builder
	for _, b := range bindings {
		switch {
		case b.Prefix == "" && hasUnprefixed(element):
			WriteAttr(&attrs, "xmlns", b.URI)
		case b.Prefix != "" && strings.Contains(element, b.Prefix+":"):
			WriteAttr(&attrs, "xmlns:"+b.Prefix, b.URI)
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

// Alone returns an element with its needs from the scope, ready to be written into any
// document.
func (sc *Scope) Alone(element string, rss bool) string {
	needed := sc.needed(element)
	attrs := Declarations(element, needed)
	if rss && hasUnprefixed(element) && !slices.ContainsFunc(needed, func(b Binding) bool { return b.Prefix == "" }) {
		attrs += ` xmlns=""`
	}
	if sc.Base != "" && markup.MayBeRelative(element) {
		s := NewFragment(element, sc.Bindings, Unlimited())
		s.Next()
		own, _ := s.Attr(vocab.XML, "base")
		if base := iri.Resolve(sc.Base, own); base != own {
			var b strings.Builder
			WriteAttr(&b, "xml:base", base)
			attrs += b.String()
		}
	}
	if attrs == "" {
		return element
	}
	return Standalone(element, sc.Bindings, attrs)
}

// Standalone returns an element with everything its scope contributes.
func (sc *Scope) Standalone(raw string, lenient bool) string {
	s := NewFragment(raw, sc.Bindings, Unlimited())
	s.Next()
	var attrs strings.Builder
	declared := s.Bindings()[len(sc.Bindings):]
	for _, b := range sc.needed(raw) {
		if slices.ContainsFunc(declared, func(own Binding) bool { return own.Prefix == b.Prefix }) {
			continue
		}
		name := "xmlns"
		if b.Prefix != "" {
			name += ":" + b.Prefix
		}
		WriteAttr(&attrs, name, b.URI)
	}
	own, ok := s.Attr(vocab.XML, "base")
	if base := iri.Resolve(sc.Base, own); base != own {
		WriteAttr(&attrs, "xml:base", base)
		lenient = lenient || ok // its own base must be replaced
	}
	if _, ok := s.Attr(vocab.XML, "lang"); !ok && sc.Lang != "" {
		WriteAttr(&attrs, "xml:lang", sc.Lang)
	}
	if lenient {
		return Standalone(raw, nil, attrs.String())
	}
	name := len("<") + len(s.Local())
	if s.Prefix() != "" {
		name += len(s.Prefix()) + len(":")
	}
	return raw[:name] + attrs.String() + raw[name:]
}
