package xmlscan

import (
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/vocab"
)

// An Entry has the facts about an entry its repair needs.
type Entry struct {
	ID, Title          string // Title is without markup
	Published, Changed time.Time
	Author             string // the name of the author if the entry has none; "" if it needs none
}

// RepairEntry returns an entry or item, to be written into a document of its format, valid
// by the rules of Atom or RSS. It copies each element the format allows, rewrites those read
// leniently as they were read, and leaves out elements of the format's own vocabulary that
// it does not define. Elements of other vocabularies stay as published. A repaired element
// needs no repair.
func RepairEntry(element string, rss bool, e Entry) string {
	r := newReviser(element, rss)
	r.entry = &e
	if r.survey(element); rss {
		return r.revised(r.addRSS)
	}
	return r.revised(r.addAtom)
}

// RepairHead does the same for elements of a head section, each with its own declarations.
func RepairHead(elements string, rss bool) string {
	root := "feed"
	if rss {
		root = "channel"
	}
	r := newReviser("<"+root+">"+elements+"</"+root+">", rss)
	text := r.revised(func() {})
	text = text[strings.IndexByte(text, '>')+1:]
	return text[:strings.LastIndex(text, "</")]
}

// A reviser writes an entry, a head section or a source again, valid.
type reviser struct {
	*Cursor
	rss      bool
	entry    *Entry    // nil for a head section and a source
	around   []Binding // the bindings in scope of the children
	prefix   string    // the start tag's prefix
	rootBase string
	rootLang string
	bases    BaseChain

	out  strings.Builder // doc[:done], repaired
	done int

	seen       map[string]bool   // the elements written, by name
	alternates map[string]string // the alternate links, by type and language
	has        inventory
	wordless   bool // the content is elsewhere, or no text
}

// An inventory lists the elements on which the repair of others depends.
type inventory struct {
	content   bool // content, or an alternate link
	summary   bool
	author    bool
	enclosure string // the URL of the first one
}

// newReviser returns a reviser of an element where the namespaces of a document are in
// scope.
func newReviser(element string, rss bool) *reviser {
	around := []Binding{{URI: vocab.Atom}}
	if rss {
		around = []Binding{{Prefix: "atom", URI: vocab.Atom}}
	}
	r := &reviser{Cursor: NewFragment(element, around, Unlimited()), rss: rss}
	r.enter()
	return r
}

// enter moves to the start tag.
func (r *reviser) enter() {
	r.Next()
	r.seen, r.alternates = map[string]bool{}, map[string]string{}
	r.around, r.prefix, r.rootBase = slices.Clone(r.bindings), r.Prefix(), r.base()
	r.rootLang, _ = r.Lang()
}

// revised returns the element; add adds the children that are missing.
func (r *reviser) revised(add func()) string {
	revise := r.atomElement
	if r.rss {
		revise = r.rssElement
	}
	if r.tok != Start {
		return r.doc
	}
	if r.empty { // children need an end tag
		name := r.doc[r.name.start:r.name.end]
		r.out.WriteString(strings.TrimSuffix(r.doc[:r.end], "/>") + ">")
		add()
		return r.out.String() + "</" + name + ">"
	}
	for depth := r.Depth(); r.Child(depth); {
		start := r.Offset()
		replacement, valid := revise()
		if r.Skip(); !valid {
			r.replace(start, r.End(), replacement)
		}
	}
	if r.Err() != nil {
		return r.doc
	}
	end := r.Offset()
	r.out.WriteString(r.doc[r.done:end])
	add()
	return r.out.String() + r.doc[end:]
}

// replace writes the text up to an element, and another one in its place. Without one, the
// white space before it goes, too.
func (r *reviser) replace(start, end int, replacement string) {
	before := r.doc[r.done:start]
	if replacement == "" {
		before = strings.TrimRight(before, " \t\r\n")
	}
	r.out.WriteString(before + replacement)
	r.done = end
}

// add writes a child at the end.
func (r *reviser) add(element string) {
	if element != "" {
		r.out.WriteString(element + "\n")
	}
}

// written returns the element that write writes, with the declaration a child needs where
// Atom's namespace has a prefix.
func (r *reviser) written(write func(w *Markup)) string {
	var w Markup
	write(&w)
	element := strings.TrimSuffix(w.String(), "\n")
	if !r.rss && r.prefix != "" && element != "" {
		name := strings.IndexAny(element, " />")
		element = element[:name] + ` xmlns="` + vocab.Atom + `"` + element[name:]
	}
	return element
}

// once reports whether the current element is the first of its name.
func (r *reviser) once(name string) bool {
	first := !r.seen[name]
	r.seen[name] = true
	return first
}

// hasOnly reports whether the current element's attributes without a namespace are among
// those named.
func (r *reviser) hasOnly(names ...string) bool {
	for _, a := range r.Attrs() {
		if a.Space == "" && !slices.Contains(names, a.Local) {
			return false
		}
	}
	return true
}

// within returns a cursor at the start tag of the child that began at start and has ended.
func (r *reviser) within(start int) *Cursor {
	c := NewFragment(r.doc[start:r.end], r.around, Unlimited())
	c.Next()
	return c
}

// plainText reads the current element's text, without the white space around it.
func (r *reviser) plainText() string { return Trim(r.ElementText()) }

// date reads the current element's text as a date.
func (r *reviser) date() (text string, t time.Time) {
	text = r.plainText()
	t, _, _ = feedtime.Read(text)
	return text, t
}

// survey finds the elements on which the repair of others depends.
func (r *reviser) survey(element string) {
	s := newReviser(element, r.rss)
	for depth := s.Depth(); s.Child(depth); {
		if s.Space() != vocab.Atom {
			continue
		}
		switch s.Local() {
		case "content":
			r.has.content = true
		case "summary":
			r.has.summary = true
		case "author":
			p := s.Person(s.base)
			r.has.author = r.has.author || p.Name+p.Email+p.URI != ""
		case "link":
			for _, l := range s.links() {
				r.has.content = r.has.content || l.Rel == "alternate"
				if l.Rel == "enclosure" && r.has.enclosure == "" {
					r.has.enclosure = l.Href
				}
			}
		}
	}
}
