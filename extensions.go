package feedhistory

import (
	"strings"

	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/markup"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// entryExtensions are the extensions of an entry, such as those of iTunes, Podcasting
// 2.0 and Media RSS, to be written in another format.
type entryExtensions struct {
	attrs    string // the attributes needed by the element around them
	elements string
}

// extensions returns an entry's extensions, without those for which every format has
// its own element.
func (e *Entry) extensions() (x entryExtensions) {
	if e.raw == "" || e.format() == JSONFeed {
		return x
	}
	raw := e.raw
	if e.lenient {
		raw = xmlscan.Standalone(raw, e.scope.Bindings, "")
	}
	r := feedxml.Fragment(raw, e.scope, feedxml.Format(e.format()))
	sc := r.NewScope()
	var elements []string
	for depth := r.Depth(); r.Child(depth); {
		if !r.IsOwn() && !r.IsMapped() {
			start := r.Offset()
			r.Skip()
			elements = append(elements, raw[start:r.End()])
		}
	}
	if len(elements) == 0 {
		return x
	}
	all := strings.Join(elements, "\n")
	shared, others := sc.Shareable(all)
	var b strings.Builder
	left := xmlscan.MaxInherited*len(all) + xmlscan.MaxInheritedExtra
	for _, element := range elements {
		attrs := xmlscan.Declarations(element, others)
		if left -= len(attrs); left < 0 {
			return entryExtensions{} // too many declarations for the elements' length
		}
		if attrs != "" {
			element = xmlscan.Standalone(element, sc.Bindings, attrs)
		}
		b.WriteString(element + "\n")
	}
	x.elements, x.attrs = b.String(), sc.Attrs(shared, markup.MayBeRelative(all))
	return x
}
