package feedhistory

import (
	"strings"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// What an entry says in other vocabularies, such as iTunes, Podcasting 2.0 and
// Media RSS: it is kept when the entry is written in another format.

// extended are the extensions of an entry, to be written within another element.
type extended struct {
	attrs    string // of the element: what they need of their scope
	elements string
}

// extensions returns an entry's extensions, without those that have a place of
// their own in every format.
func (e *Entry) extensions() (x extended) {
	if e.raw == "" || e.format() == JSONFeed {
		return x
	}
	raw := e.raw
	if e.lenient {
		raw = xmlscan.Standalone(raw, e.scope.bindings, "")
	}
	r := newFragment(raw, e.scope, e.format())
	sc := r.newScope()
	var elements []string
	for depth := r.s.Depth(); r.s.Child(depth); {
		if !r.isOwn() && !r.isMapped() {
			start := r.s.Offset()
			r.s.Skip()
			elements = append(elements, raw[start:r.s.End()])
		}
	}
	if len(elements) == 0 {
		return x
	}
	all := strings.Join(elements, "\n")
	shared, others := sc.shareable(all)
	var b strings.Builder
	left := maxBorrowed*len(all) + maxBorrowedExtra
	for _, element := range elements {
		attrs := declarations(element, others)
		if left -= len(attrs); left < 0 {
			return extended{} // more declarations than elements
		}
		if attrs != "" {
			element = xmlscan.Standalone(element, sc.bindings, attrs)
		}
		b.WriteString(element + "\n")
	}
	x.elements, x.attrs = b.String(), sc.attrs(shared, mayBeRelative(all))
	return x
}

// attrs returns the attributes that carry bindings, the base, if it is to, and
// the language to what stands within an element.
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

// shareable returns the bindings that elements need and that an element of ours
// around them can have, and the others: the default namespace, and a prefix that
// is ours.
func (sc *scope) shareable(elements string) (shared, others []xmlscan.Binding) {
	for _, b := range sc.needed(elements) {
		if b.Prefix == "" || b.Prefix == "atom" && b.URI != nsAtom {
			others = append(others, b)
		} else {
			shared = append(shared, b)
		}
	}
	return shared, others
}

// declarations returns those of the bindings that an element may need.
func declarations(element string, bindings []xmlscan.Binding) string {
	var attrs strings.Builder
	for _, b := range bindings {
		switch {
		case b.Prefix == "":
			writeAttr(&attrs, "xmlns", b.URI)
		case strings.Contains(element, b.Prefix+":"):
			writeAttr(&attrs, "xmlns:"+b.Prefix, b.URI)
		}
	}
	return attrs.String()
}

// isOwn reports whether the current element is of the format's own vocabulary.
func (r *reader) isOwn() bool {
	return isAtom(r.space()) || r.doc.Format == RSS && r.isRSS() || r.space() == r.native && r.doc.Format == Atom
}

// isMapped reports whether the current element of an entry has a place of its
// own in every format.
func (r *reader) isMapped() bool {
	switch local := r.s.Local(); r.space() {
	case nsDC:
		return local == "creator" || local == "date" || local == "subject"
	case nsDCTerms:
		return local == "modified" || local == "issued" || local == "created"
	case nsContent:
		return local == "encoded"
	}
	return false
}
