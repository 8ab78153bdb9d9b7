package feedhistory

import (
	"slices"
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
	r := e.reader()
	sc := r.newScope()
	var raws []string
	for depth := r.s.Depth(); r.s.Child(depth); {
		if !r.isOwn() && !r.isMapped() {
			start := r.s.Offset()
			r.s.Skip()
			raws = append(raws, r.text[start:r.s.End()])
		}
	}
	if len(raws) == 0 {
		return x
	}
	all := strings.Join(raws, "\n")
	shared := sc.shareable(all)
	var b strings.Builder
	left := maxBorrowed*len(all) + maxBorrowedExtra
	for _, raw := range raws {
		attrs := sc.declare(raw, shared)
		if left -= len(attrs); left < 0 {
			return extended{} // more declarations than elements
		}
		b.WriteString(xmlscan.Standalone(raw, shared, attrs) + "\n")
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

// shareable returns the bindings of an entry that an element of ours can have
// instead: not the default namespace, nor a prefix that is ours.
func (sc *scope) shareable(raw string) []xmlscan.Binding {
	return slices.DeleteFunc(sc.needed(raw), func(b xmlscan.Binding) bool {
		return b.Prefix == "" || b.Prefix == "atom" && b.URI != nsAtom
	})
}

// declare returns the declarations that an element needs besides those shared.
func (sc *scope) declare(raw string, shared []xmlscan.Binding) string {
	var attrs strings.Builder
	for _, b := range sc.needed(raw) {
		switch {
		case slices.Contains(shared, b):
		case b.Prefix == "":
			writeAttr(&attrs, "xmlns", b.URI)
		default:
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
