package xmlscan

import (
	"cmp"
	"encoding/base64"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/markup"
	"github.com/feedhistory/feedhistory/internal/vocab"
)

// atomElement returns an Atom document's current element repaired, or that it is valid.
func (r *reviser) atomElement() (repaired string, valid bool) {
	if !vocab.IsAtom(r.Space()) {
		return "", !strings.ContainsAny(r.Space(), " \t\r\n")
	}
	older := r.Space() != vocab.Atom
	switch name := r.Local(); name {
	case "link":
		return r.atomLink()
	case "category":
		return r.atomCategory(older)
	case "author", "contributor":
		return r.atomPerson(name, older)
	case "copyright", "rights":
		return r.atomText("rights", older || name != "rights")
	case "generator":
		return r.generator(older)
	case "icon", "logo":
		return "", !older && r.entry == nil && r.once(name)
	case "title", "subtitle":
		return r.atomText(name, older)
	}
	if r.entry == nil {
		return r.atomHeadElement(older)
	}
	return r.atomEntryElement()
}

// atomEntryElement repairs an element that only an entry has.
func (r *reviser) atomEntryElement() (repaired string, valid bool) {
	e := r.entry
	switch name := r.Local(); name {
	case "id":
		if !r.once(name) {
			return "", false
		}
		bare := r.hasOnly()
		return r.written(func(w *Markup) { w.Element(name, e.ID) }), r.plainText() == e.ID && bare && !r.nested
	case "updated":
		return r.atomTime(name, e.Changed)
	case "published":
		return r.atomTime(name, e.Published)
	case "summary", "content":
		return r.atomText(name, false)
	case "source":
		if r.once(name) {
			return r.atomSource(), false
		}
	}
	return "", false
}

// atomHeadElement repairs an element that only a feed or a source has. The id is as
// published.
func (r *reviser) atomHeadElement(older bool) (repaired string, valid bool) {
	switch name := r.Local(); name {
	case "id":
		return "", !older && r.once(name)
	case "updated":
		if _, t := r.date(); !t.IsZero() && r.once(name) {
			return r.written(func(w *Markup) { w.Element(name, t.Format(time.RFC3339Nano)) }), false
		}
	}
	return "", false
}

// atomSource repairs the elements of atom:source.
func (r *reviser) atomSource() string {
	start := r.start
	r.Skip()
	inner := &reviser{Cursor: NewFragment(r.doc[start:r.end], r.around, Unlimited())}
	inner.enter()
	return inner.revised(func() {})
}

// atomTime repairs a date: it is t unless it is as Atom requires.
func (r *reviser) atomTime(name string, t time.Time) (repaired string, valid bool) {
	text, read := r.date()
	if t.IsZero() || !r.once(name) {
		return "", false
	}
	return r.written(func(w *Markup) { w.Element(name, t.Format(time.RFC3339Nano)) }),
		read.Equal(t) && feedtime.IsRFC3339(text) && !r.nested
}

// atomText repairs a text construct or content. The summary of an entry with neither
// content nor link is its content (RFC 4287 §4.1.2).
func (r *reviser) atomText(name string, odd bool) (repaired string, valid bool) {
	start := r.start
	kind, typed := r.Attr("", "type")
	valid = !odd && (name == "content" && r.hasOnly("type", "src") || r.hasOnly("type"))
	t := r.construct()
	switch {
	case t.Src != "":
		valid = valid && (!typed || vocab.IsMediaType(kind))
	case vocab.IsMedia(kind):
		valid = valid && kind == t.Type && vocab.IsMediaType(kind)
	default:
		valid = valid && (kind == t.Type || !typed && t.Type == "text")
	}
	valid = valid && r.isWritten(t, start)
	if name == "summary" && r.isContentMissing() {
		name, valid = "content", false
	}
	if !r.once(name) {
		return "", false
	}
	if r.wordless = r.wordless || t.Src != "" || t.isBytes(); valid {
		return "", true
	}
	return r.written(func(w *Markup) { r.writeText(w, name, t) }), false
}

// isContentMissing reports whether an entry has neither content nor a link to it.
func (r *reviser) isContentMissing() bool {
	return r.entry != nil && !r.has.content
}

// writeText writes a construct, without a base and a language that it takes from the entry.
func (r *reviser) writeText(w *Markup, name string, t Construct) {
	if t.Base == r.rootBase || t.Type == "text" || t.Src != "" || !markup.MayBeRelative(t.Body) {
		t.Base = ""
	}
	if t.Lang == r.rootLang {
		t.Lang = ""
	}
	switch {
	case t.Src != "":
		t.Type, t.Body = MediaType(t.Type), ""
	case t.Body == "":
		w.Empty(name)
		return
	case vocab.IsMedia(t.Type) && (name != "content" || !vocab.IsMediaType(t.Type)):
		t.Type = "text"
	}
	if w.Text(name, t) == nil {
		return
	}
	if t.Type != "xhtml" {
		t.Type = "text"
	} else {
		t.Type = "html" // readers show it in the same way
	}
	_ = w.Text(name, t)
}

// isWritten reports whether the element that began at start has its text in the form its
// type requires.
func (r *reviser) isWritten(t Construct, start int) bool {
	switch {
	case t.Src != "":
		c := r.within(start)
		return c.Empty() || Trim(c.ElementText()) == "" && !c.Nested()
	case t.Type == "xhtml":
		return isDiv(r.within(start))
	case vocab.IsXMLType(t.Type):
		return true
	case !t.isBytes():
		return !r.nested
	}
	_, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(r.within(start).ElementText()), ""))
	return err == nil
}

// isDiv reports whether an xhtml construct has only a div of XHTML (RFC 4287 §3.1.1.3).
func isDiv(c *Cursor) bool {
	divs := 0
	for tok := c.Next(); tok != Stop && c.Depth() > 0; tok = c.Next() {
		switch {
		case tok == Start:
			if divs++; divs > 1 || !c.Is(vocab.XHTML, "div") {
				return false
			}
			c.Skip()
		case Trim(string(c.AppendText(nil))) != "":
			return false
		}
	}
	return divs == 1
}

// atomLink repairs a link: it becomes one for each of its relations. A second alternate of
// the same type and language is a related document instead (RFC 4287 §4.1.1).
func (r *reviser) atomLink() (repaired string, valid bool) {
	_, valid = r.Attr("", "href")
	valid = valid && r.Space() == vocab.Atom && r.hasOnly("rel", "href", "type", "title", "hreflang", "length")
	for _, a := range r.Attrs() {
		valid = valid && (a.Space != "" || isLinkAttr(a.Local, a.Value()))
	}
	links := r.links()
	if r.Skip(); len(links) != 1 {
		valid = false
	}
	repaired = r.written(func(w *Markup) {
		for _, l := range links {
			switch other, again := r.alternates[l.Type+" "+l.HrefLang]; {
			case l.Rel != "alternate":
			case again && other == l.Href:
				valid = false
				continue
			case again:
				l.Rel, valid = "related", false
			default:
				r.alternates[l.Type+" "+l.HrefLang] = l.Href
			}
			w.Link("link", l)
		}
	})
	return repaired, valid
}

// isLinkAttr reports whether an attribute of a link has a valid value.
func isLinkAttr(name, value string) bool {
	switch name {
	case "href":
		return iri.Writable(value) == value
	case "type":
		return vocab.IsMediaType(value)
	case "hreflang":
		return vocab.IsLanguage(value)
	case "length":
		return isNumber(value)
	case "rel":
		return value != "" && !strings.ContainsAny(value, " \t\r\n")
	}
	return Trim(value) != ""
}

// atomCategory repairs a category, which needs a term.
func (r *reviser) atomCategory(older bool) (repaired string, valid bool) {
	term, _ := r.Attr("", "term")
	scheme, schemed := r.Attr("", "scheme")
	label, _ := r.Attr("", "label")
	absolute := iri.Writable(scheme) == scheme && iri.Split(scheme).Scheme != ""
	valid = !older && Trim(term) != "" && (absolute || !schemed) && r.hasOnly("term", "scheme", "label")
	if term = cmp.Or(Trim(term), Trim(label), r.plainText()); term == "" {
		return "", false
	}
	if scheme = iri.Writable(scheme); iri.Split(scheme).Scheme == "" {
		scheme = ""
	}
	return r.written(func(w *Markup) { w.Empty("category", "term", term, "scheme", scheme, "label", label) }), valid
}

// atomPerson repairs a person, who must have a name.
func (r *reviser) atomPerson(name string, older bool) (repaired string, valid bool) {
	start := r.start
	p := r.Person(r.base)
	r.Skip()
	valid = !older && isPerson(r.within(start))
	return r.written(func(w *Markup) { w.Person(name, p) }), valid
}

// isPerson reports whether an element is a valid person construct (RFC 4287 §3.2).
func isPerson(c *Cursor) bool {
	times := map[string]int{}
	for depth := c.Depth(); c.Child(depth); {
		if c.Space() != vocab.Atom {
			continue
		}
		name := c.Local()
		times[name]++
		text := Trim(c.ElementText())
		valid := text != "" && !c.Nested() && times[name] == 1
		switch name {
		case "name":
		case "email":
			valid = valid && vocab.IsEmail(text)
		case "uri":
			valid = valid && iri.Writable(text) == text
		default:
			valid = false
		}
		if !valid {
			return false
		}
	}
	return times["name"] == 1
}

// generator repairs the feed's generator.
func (r *reviser) generator(older bool) (repaired string, valid bool) {
	if r.entry != nil || !r.once("generator") {
		return "", false
	}
	version, _ := r.Attr("", "version")
	uri, _ := r.Attr("", "uri")
	url, _ := r.Attr("", "url") // in Atom 0.3
	valid = !older && r.hasOnly("uri", "version") && iri.Writable(uri) == uri
	name := r.plainText()
	if name == "" {
		return "", false
	}
	return r.written(func(w *Markup) {
		w.Open("generator", "uri", iri.Writable(cmp.Or(uri, url)), "version", version)
		w.WriteByte('>')
		WriteText(&w.Builder, name)
		w.WriteString("</generator>")
	}), valid
}

// addAtom adds the elements an entry must have.
func (r *reviser) addAtom() {
	e := r.entry
	element := func(name, text string) {
		if r.once(name) {
			r.add(r.written(func(w *Markup) { w.Element(name, text) }))
		}
	}
	element("id", e.ID)
	element("title", e.Title)
	element("updated", e.Changed.Format(time.RFC3339Nano))
	if !e.Published.IsZero() {
		element("published", e.Published.Format(time.RFC3339Nano))
	}
	if !r.has.author {
		r.add(r.written(func(w *Markup) { w.Person("author", Person{Name: e.Author}) }))
	}
	switch {
	case !r.isContentMissing() || r.has.summary:
	case r.has.enclosure != "":
		r.add(r.written(func(w *Markup) { w.Link("link", Link{Rel: "alternate", Href: r.has.enclosure}) }))
	default:
		r.add(r.written(func(w *Markup) { w.Empty("content") }))
	}
	if r.wordless { // RFC 4287 §4.1.2: a reader needs words, too
		element("summary", e.Title)
	}
}
