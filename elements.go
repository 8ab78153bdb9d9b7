package feedhistory

import (
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// elements are the elements of an XML document, or of one entry read again: their
// names, bases and languages, and the constructs common to documents and entries.
type elements struct {
	reading
	s    *xmlscan.Cursor
	done bool // the rest is not read

	native  string            // the namespace of the root, or of the entry read again
	exact   string            // the last of the exact namespaces
	spaces  map[string]string // the meanings of the other namespaces
	lang    string            // xml:lang around an entry read again
	bases   []baseURL         // the xml:base attributes in scope
	odd     bool              // an element since the entry began has a misspelt name
	inHead  bool              // the current link is in the head section
	literal bool              // titles stay as published
}

// fail ends reading at the current token.
func (r *elements) fail(reason Reason, clause, what string) {
	r.failAt(r.s.Offset(), reason, clause, what)
}

// proceed reports whether to continue reading.
func (r *elements) proceed() bool { return r.err == nil && !r.done }

// child moves to the next child element, unless reading has ended.
func (r *elements) child(depth int) bool { return r.proceed() && r.s.Child(depth) }

// language returns xml:lang at the current element.
func (r *elements) language() string {
	if lang, ok := r.s.Lang(); ok {
		return lang
	}
	return r.lang
}

// timeText reads the current element's text as a date.
func (r *elements) timeText() time.Time {
	offset := r.s.Offset()
	return r.parseTime(r.s.ElementText(), offset)
}

// plainText reads the current element's text, without the white space around it.
func (r *elements) plainText() string { return trim(r.s.ElementText()) }

// currentBase returns the base at the current element, by its xml:base, its ancestors'
// and the document's URL (5005#25). It keeps the resolved base while the attributes are
// in scope.
func (r *elements) currentBase() string {
	bases := r.s.Bases()
	n := min(len(bases), len(r.bases))
	for n > 0 && r.bases[n-1].at != bases[n-1].At {
		n--
	}
	base := r.doc.URL
	if r.bases = r.bases[:n]; n > 0 {
		base = r.bases[n-1].url
	}
	for _, b := range bases[n:] {
		if inner := iri.Resolve(base, b.Ref); len(inner) <= r.limits.URL {
			base = inner
		}
		r.bases = append(r.bases, baseURL{b.At, base})
	}
	return base
}

// newScope returns the scope of the current element's content.
func (r *elements) newScope() *xmlscan.Scope {
	return r.s.Scope(r.currentBase(), r.language())
}

// space returns the intended namespace of the current element, because feeds misspell
// namespaces. RFC 5005's must be exact, because the verdict depends on it.
func (r *elements) space() string {
	space := r.s.Space()
	if space == r.exact {
		return space
	}
	switch space {
	case "", vocab.Atom, vocab.Content, vocab.DC, vocab.ITunes, vocab.Media, vocab.XHTML:
		r.exact = space
		return space
	}
	if meant, ok := r.spaces[space]; ok {
		if meant == space {
			r.exact = space
		}
		r.odd = r.odd || meant != space
		return meant
	}
	meant := vocab.MeantSpace(space)
	if meant == space {
		r.exact = space
	} else {
		r.odd = true
		r.note("namespace-misspelt", "the namespace "+clip(space)+" is read as "+meant, r.s.Offset())
	}
	if r.spaces == nil {
		r.spaces = map[string]string{}
	}
	if len(r.spaces) < maxExtra {
		r.spaces[space] = meant
	}
	return meant
}

// rssLocal returns the name of the current element as RSS spells it, with a note if it
// is misspelt.
func (r *elements) rssLocal() string { return r.spelt(vocab.RSSName(r.s.Local())) }

// atomLocal returns the name of the current element as Atom spells it, likewise.
func (r *elements) atomLocal() string {
	local := r.s.Local()
	if name := vocab.AtomName(local); name != local {
		return r.spelt(name)
	}
	return local
}

// spelt returns the given name, with a note if the current element has another.
func (r *elements) spelt(name string) string {
	if local := r.s.Local(); name != local {
		r.odd = true
		r.note("name-misspelt", "the element "+clip(local)+" is read as "+name, r.s.Offset())
	}
	return name
}

// isRSS reports whether the current element belongs to RSS itself.
func (r *elements) isRSS() bool { return r.isOfRSS(r.space()) }

// isOfRSS reports whether a namespace is RSS's own.
func (r *elements) isOfRSS(space string) bool {
	return space == "" || space == r.native || vocab.RDFVersion(space) != "" || strings.HasPrefix(space, "http://backend.userland.com/rss")
}

// permalink returns the attribute of guid for whether it is a URL.
func (r *elements) permalink() (value string, ok bool) {
	for _, a := range r.s.Attrs() {
		if a.Space == "" && (a.Local == "isPermaLink" || strings.EqualFold(a.Local, "isPermaLink")) {
			return a.Value(), true
		}
	}
	return "", false
}

// languageText reads a language tag; "" if it is too long to be one (RFC 5646 §4.4.1).
func (r *elements) languageText() string {
	if lang := r.plainText(); len(lang) <= 64 {
		return lang
	}
	return ""
}

// person reads a person construct (RFC 4287 §3.2). The uri is called url in Atom 0.3,
// and homepage elsewhere.
func (r *elements) person() (p Person) {
	for depth := r.s.Depth(); r.child(depth); {
		switch base := r.currentBase(); vocab.AtomName(r.s.Local()) {
		case "name":
			p.Name = r.plainText()
		case "email":
			p.Email = r.plainText()
		case "uri", "url", "homepage":
			p.URI = iri.Resolve(base, r.plainText())
		}
	}
	return p
}

// release ends the use of a reader from Entry.reader. The pool forgets it, and the text it
// has read, at a garbage collection.
func (r *elements) release() { readers.Put(r) }

// A baseURL is an xml:base attribute, identified by its place, and the URL it resolves
// to.
type baseURL struct {
	at  int
	url string
}

// reader returns a reader at the entry's start tag, to be used until release.
func (e *Entry) reader() *elements {
	r := readers.Get().(*elements)
	r.readAgain(e.raw, e.scope, e.format())
	return r
}

// readers are readers for reading entries again. Their memory is far larger than an
// entry.
var readers = sync.Pool{New: func() any { return newElements() }}

func newElements() *elements {
	return &elements{s: new(xmlscan.Cursor), reading: reading{doc: new(Document), limits: Limits{}.withDefaults()}}
}

// newFragment returns a reader at the start tag of an element.
func newFragment(raw string, sc *xmlscan.Scope, format Format) *elements {
	r := newElements()
	r.readAgain(raw, sc, format)
	return r
}

// readAgain moves r to the start tag of an element.
func (r *elements) readAgain(raw string, sc *xmlscan.Scope, format Format) {
	r.reset(raw, sc, format)
	r.s.Next()
	r.native = r.space()
}

// reset makes r a new reader in the same memory.
func (r *elements) reset(raw string, sc *xmlscan.Scope, format Format) {
	r.s.ReadAgain(raw, sc.Bindings, sc.Clean)
	*r.doc = Document{URL: sc.Base, Format: format}
	*r = elements{
		reading: reading{doc: r.doc, text: raw, limits: r.limits},
		s:       r.s, bases: r.bases[:0], spaces: r.spaces, lang: sc.Lang,
	}
	if len(r.spaces) > 50 {
		r.spaces = nil
	}
}

// mendedText returns the element just ended, well-formed. White space between an
// element without an end tag and the next element is not part of it.
func (r *elements) mendedText(raw string, sc *xmlscan.Scope) string {
	if r.s.Mender.Unclosed() {
		raw = strings.TrimRight(raw, " \t\r\n")
	}
	return xmlscan.MendElement(raw, sc.Bindings)
}
