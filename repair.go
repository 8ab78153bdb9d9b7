package feedhistory

import (
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A repairer writes an entry or a head section again, valid by the rules of its format.
// It copies each element the format allows, rewrites those read leniently as they were
// read, and leaves out elements of the format's own vocabulary that it does not define.
// Elements of other vocabularies stay as published. A repaired element needs no repair.
type repairer struct {
	*elements
	entry   *Entry // nil for a head section and a source
	outer   *repairer
	scope   *xmlscan.Scope // of the children
	entered string         // the start tag's prefix

	out  strings.Builder // text[:done], repaired
	done int

	seen       map[string]bool // the elements written, by name
	alternates map[string]string
	has        inventory
}

// An inventory lists the elements on which the repair of others depends.
type inventory struct {
	content, alternate, author bool
	summary, bytes             bool   // bytes: the content is elsewhere, or no text
	enclosure                  string // the URL of the first one
}

// repaired returns an element of an entry, valid. Author is written if the entry has none.
func (e *Entry) repaired(element string, format Format, author string) string {
	r := newRepairer(element, format)
	r.entry = e
	if r.survey(element); format == Atom && !r.has.author && author != "" {
		return r.repaired(func() { r.addAtom(author) })
	}
	if format == Atom {
		return r.repaired(func() { r.addAtom("") })
	}
	return r.repaired(r.addRSS)
}

// repairedHead returns elements of a head section, each with its own declarations, valid.
func repairedHead(elements string, format Format) string {
	root := "channel"
	if format == Atom {
		root = "feed"
	}
	r := newRepairer("<"+root+">"+elements+"</"+root+">", format)
	text := r.repaired(func() {})
	text = text[strings.IndexByte(text, '>')+1:]
	return text[:strings.LastIndex(text, "</")]
}

// newRepairer returns a repairer of an element, to be written where the namespaces of a
// document are in scope.
func newRepairer(element string, format Format) *repairer {
	around := &xmlscan.Scope{Bindings: []xmlscan.Binding{{URI: vocab.Atom}}}
	if format == RSS {
		around.Bindings = []xmlscan.Binding{{Prefix: "atom", URI: vocab.Atom}}
	}
	r := &repairer{elements: newFragment(element, around, format), seen: map[string]bool{}, alternates: map[string]string{}}
	r.scope, r.entered = r.newScope(), r.s.Prefix()
	return r
}

// repaired returns the element; add adds the children that are missing.
func (r *repairer) repaired(add func()) string {
	repair := r.atomElement
	if r.doc.Format == RSS {
		repair = r.rssElement
	}
	tag := r.s.End()
	if r.s.Empty() { // the tag must be opened for children to be added
		name, _, _ := strings.Cut(r.text[1:tag], "/>")
		name, _, _ = strings.Cut(strings.TrimLeft(name, " "), " ")
		r.out.WriteString(strings.TrimSuffix(r.text[:tag], "/>") + ">")
		add()
		return r.out.String() + "</" + strings.TrimSpace(name) + ">"
	}
	for depth := r.s.Depth(); r.s.Child(depth); {
		start := r.s.Offset()
		replacement, valid := repair()
		if r.s.Skip(); !valid {
			r.replace(start, r.s.End(), replacement)
		}
	}
	if r.s.Err() != nil {
		return r.text // a fragment that was never read
	}
	end := r.s.Offset()
	r.out.WriteString(r.text[r.done:end])
	add()
	return r.out.String() + r.text[end:]
}

// replace writes the text up to an element, and another one in its place. Without one, a
// line that has only the element goes, too.
func (r *repairer) replace(start, end int, replacement string) {
	before := r.text[r.done:start]
	if replacement == "" {
		before = strings.TrimRight(before, " \t\r\n")
	}
	r.out.WriteString(before + replacement)
	r.done = end
}

// add writes a child at the end.
func (r *repairer) add(element string) {
	if element != "" {
		r.out.WriteString(element + "\n")
	}
}

// written returns the element that write writes, with the declaration that a child needs
// where Atom's namespace has a prefix.
func (r *repairer) written(write func(w *xmlWriter)) string {
	var w xmlWriter
	write(&w)
	element := strings.TrimSuffix(w.b.String(), "\n")
	if r.doc.Format == Atom && r.entered != "" && element != "" {
		name := strings.IndexAny(element, " />")
		element = element[:name] + ` xmlns="` + vocab.Atom + `"` + element[name:]
	}
	return element
}

// once reports whether the current element is the first of its name.
func (r *repairer) once(name string) bool {
	first := !r.seen[name]
	r.seen[name] = true
	return first
}

// hasOnly reports whether the current element's attributes without a namespace are among
// those named.
func (r *repairer) hasOnly(names ...string) bool {
	for _, a := range r.s.Attrs() {
		if a.Space == "" && !slices.Contains(names, a.Local) {
			return false
		}
	}
	return true
}

// source returns the element at which the reader was at start, and which has ended.
func (r *repairer) source(start int) string { return r.text[start:r.s.End()] }

// within returns a cursor at an element's start tag.
func (r *repairer) within(element string) *xmlscan.Cursor {
	c := xmlscan.NewFragment(element, r.scope.Bindings, xmlscan.Unlimited())
	c.Next()
	return c
}

// survey finds the elements on which the repair of others depends.
func (r *repairer) survey(element string) {
	s := newFragment(element, &xmlscan.Scope{Bindings: r.scope.Bindings}, r.doc.Format)
	for depth := s.s.Depth(); s.s.Child(depth); {
		if s.s.Space() != vocab.Atom {
			continue
		}
		switch s.s.Local() {
		case "content":
			r.has.content = true
		case "summary":
			r.has.summary = true
		case "author":
			p := s.person()
			r.has.author = r.has.author || p.Name+p.Email+p.URI != ""
		case "link":
			for _, l := range s.atomLink(nil) {
				r.has.alternate = r.has.alternate || l.Rel == RelAlternate
				if l.Rel == RelEnclosure && r.has.enclosure == "" {
					r.has.enclosure = l.Href
				}
			}
		}
	}
}
