package feedhistory

import (
	"cmp"
	"encoding/base64"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// atomElement returns an Atom document's current element repaired, or that it is valid.
func (r *repairer) atomElement() (repaired string, valid bool) {
	if !vocab.IsAtom(r.s.Space()) {
		return "", !strings.ContainsAny(r.s.Space(), " \t\r\n")
	}
	older := r.s.Space() != vocab.Atom
	switch name := r.s.Local(); name {
	case "link":
		return r.atomLinks()
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
		return r.atomSourceElement(older)
	}
	return r.atomEntryElement()
}

// atomEntryElement repairs an element that only an entry has.
func (r *repairer) atomEntryElement() (repaired string, valid bool) {
	e := r.entry
	switch name := r.s.Local(); name {
	case "id":
		if !r.once(name) {
			return "", false
		}
		plain := r.hasOnly()
		return r.written(func(w *xmlWriter) { w.element(name, e.ID) }), r.plainText() == e.ID && plain && !r.s.Nested()
	case "updated":
		return r.atomTime(name, e.lastChange())
	case "published":
		return r.atomTime(name, e.Published)
	case "summary", "content":
		return r.atomText(name, false)
	case "source":
		if !r.once(name) {
			return "", false
		}
		return r.atomSource()
	}
	return "", false
}

// atomSourceElement repairs an element that only a feed or a source has. Those that
// identify it are as published.
func (r *repairer) atomSourceElement(older bool) (repaired string, valid bool) {
	switch name := r.s.Local(); name {
	case "id":
		return "", !older && r.once(name)
	case "updated":
		t := r.parseTimeAgain()
		if t.IsZero() || !r.once(name) {
			return "", false
		}
		return r.written(func(w *xmlWriter) { w.element(name, t.Format(time.RFC3339Nano)) }), false
	}
	return "", false
}

// parseTimeAgain reads the current element's date, without notes.
func (r *repairer) parseTimeAgain() time.Time {
	t, _ := r.date(r.s.ElementText())
	return t
}

// atomSource repairs the elements of atom:source.
func (r *repairer) atomSource() (repaired string, valid bool) {
	start := r.s.Offset()
	r.s.Skip()
	inner := &repairer{
		elements: newFragment(r.source(start), r.scope, Atom), seen: map[string]bool{}, alternates: map[string]string{},
		scope: r.scope, entered: r.entered,
	}
	return inner.repaired(func() {}), false
}

// atomTime repairs a date: it is t if it is not as Atom requires.
func (r *repairer) atomTime(name string, t time.Time) (repaired string, valid bool) {
	text := r.plainText()
	if t.IsZero() || !r.once(name) {
		return "", false
	}
	read, ok := r.date(text)
	return r.written(func(w *xmlWriter) { w.element(name, t.Format(time.RFC3339Nano)) }),
		ok && read.Equal(t) && feedtime.IsRFC3339(text) && !r.s.Nested()
}

// atomText repairs a text construct or content. The summary of an entry with neither
// content nor link is its content (RFC 4287 §4.1.2).
func (r *repairer) atomText(name string, odd bool) (repaired string, valid bool) {
	start := r.s.Offset()
	kind, typed := r.s.Attr("", "type")
	valid = !odd && (name == "content" && r.hasOnly("type", "src") || r.hasOnly("type"))
	t := r.textConstruct()
	valid = valid && (kind == t.Type || !typed && t.Type == TextPlain) && r.isWritten(t, r.source(start))
	valid = valid && (t.Src == "" || !typed || vocab.IsMediaType(kind))
	if name == "summary" && r.isContentMissing() {
		name, valid = "content", false
	}
	if !r.once(name) {
		return "", false
	}
	r.has.bytes = r.has.bytes || t.Src != "" || t.isBytes()
	if valid && (!vocab.IsMedia(kind) || vocab.IsMediaType(kind)) {
		return "", true
	}
	return r.written(func(w *xmlWriter) { r.writeText(w, name, t) }), false
}

// isContentMissing reports whether an entry has neither content nor a link to it.
func (r *repairer) isContentMissing() bool {
	return r.entry != nil && !r.has.content && !r.has.alternate
}

// writeText writes a text in the way of drafts, without what it takes from the entry.
func (r *repairer) writeText(w *xmlWriter, name string, t Text) {
	if t = t.draftable(); t.Base == r.scope.Base {
		t.Base = ""
	}
	if t.Lang == r.scope.Lang {
		t.Lang = ""
	}
	if t.Src != "" {
		t.Type = mediaType(t.Type)
	} else if vocab.IsMedia(t.Type) && (name != "content" || !vocab.IsMediaType(t.Type)) {
		t.Type = TextPlain
	}
	if t.Body+t.Src == "" {
		w.empty(name)
	} else if w.draftText(name, t) != nil {
		w.element(name, t.Body)
	}
}

// mediaType returns the type of content elsewhere, which must be a media type (RFC 4287
// §4.1.3.2); "" if it is unknown.
func mediaType(kind string) string {
	switch {
	case kind == TextHTML:
		return "text/html"
	case kind == TextXHTML:
		return "application/xhtml+xml"
	case vocab.IsMediaType(kind):
		return kind
	}
	return ""
}

// isWritten reports whether an element has its text in the form its type requires.
func (r *repairer) isWritten(t Text, element string) bool {
	switch {
	case t.Src != "":
		c := r.within(element)
		return c.Empty() || trim(c.ElementText()) == "" && !c.Nested()
	case t.Type == TextXHTML:
		return r.isDiv(element)
	case vocab.IsXMLType(t.Type):
		return true
	case !vocab.IsMedia(t.Type), strings.HasPrefix(t.Type, "text/"):
		return !r.s.Nested()
	}
	_, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(r.within(element).ElementText()), ""))
	return err == nil
}

// isDiv reports whether an xhtml construct has only a div of XHTML (RFC 4287 §3.1.1.3).
func (r *repairer) isDiv(element string) bool {
	c, divs := r.within(element), 0
	for tok := c.Next(); tok != xmlscan.Stop && c.Depth() > 0; tok = c.Next() {
		switch {
		case tok == xmlscan.Start:
			if divs++; divs > 1 || !c.Is(vocab.XHTML, "div") {
				return false
			}
			c.Skip()
		case trim(string(c.AppendText(nil))) != "":
			return false
		}
	}
	return divs == 1
}

// atomLinks repairs a link: one for each of its relations. A second alternate of the same
// type and language is a related document instead (RFC 4287 §4.1.1).
func (r *repairer) atomLinks() (repaired string, valid bool) {
	_, valid = r.s.Attr("", "href")
	valid = valid && r.s.Space() == vocab.Atom && r.hasOnly("rel", "href", "type", "title", "hreflang", "length")
	for _, a := range r.s.Attrs() {
		if a.Space == "" && !isLinkAttr(a.Local, a.Value()) {
			valid = false
		}
	}
	links := r.atomLink(nil)
	if r.s.Skip(); len(links) != 1 {
		valid = false
	}
	repaired = r.written(func(w *xmlWriter) {
		for _, l := range links {
			switch other, again := r.alternates[l.Type+" "+l.HrefLang]; {
			case l.Rel != RelAlternate:
			case again && other == l.Href:
				valid = false
				continue
			case again:
				l.Rel, valid = "related", false
			default:
				r.alternates[l.Type+" "+l.HrefLang] = l.Href
			}
			w.link("link", l)
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
	return trim(value) != ""
}

func isNumber(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// atomCategory repairs a category, which needs a term.
func (r *repairer) atomCategory(older bool) (repaired string, valid bool) {
	term, _ := r.s.Attr("", "term")
	scheme, _ := r.s.Attr("", "scheme")
	label, _ := r.s.Attr("", "label")
	unscoped := scheme == "" || iri.Writable(scheme) == scheme && iri.Split(scheme).Scheme != ""
	_, written := r.s.Attr("", "scheme")
	valid = !older && trim(term) != "" && unscoped && (scheme != "" || !written) && r.hasOnly("term", "scheme", "label")
	if term = cmp.Or(trim(term), trim(label), r.plainText()); term == "" {
		return "", false
	}
	if scheme = iri.Writable(scheme); iri.Split(scheme).Scheme == "" {
		scheme = ""
	}
	return r.written(func(w *xmlWriter) { w.empty("category", "term", term, "scheme", scheme, "label", label) }), valid
}

// atomPerson repairs a person, who must have a name.
func (r *repairer) atomPerson(name string, older bool) (repaired string, valid bool) {
	start := r.s.Offset()
	p := r.person()
	r.s.Skip()
	valid = !older && r.isPerson(r.source(start))
	return r.written(func(w *xmlWriter) { w.person(name, p) }), valid
}

// isPerson reports whether an element is a valid person construct (RFC 4287 §3.2).
func (r *repairer) isPerson(element string) bool {
	c, times := r.within(element), map[string]int{}
	for depth := c.Depth(); c.Child(depth); {
		if c.Space() != vocab.Atom {
			continue
		}
		name := c.Local()
		times[name]++
		text := trim(c.ElementText())
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
func (r *repairer) generator(older bool) (repaired string, valid bool) {
	if r.entry != nil || !r.once("generator") {
		return "", false
	}
	version, _ := r.s.Attr("", "version")
	uri, _ := r.s.Attr("", "uri")
	url, _ := r.s.Attr("", "url") // in Atom 0.3
	valid = !older && r.hasOnly("uri", "version") && iri.Writable(uri) == uri
	name := r.plainText()
	if name == "" {
		return "", false
	}
	return r.written(func(w *xmlWriter) {
		w.open("generator", "uri", iri.Writable(cmp.Or(uri, url)), "version", version)
		w.b.WriteByte('>')
		xmlscan.WriteText(&w.b, name)
		w.b.WriteString("</generator>")
	}), valid
}

// addAtom adds the elements that an entry must have.
func (r *repairer) addAtom(author string) {
	e := r.entry
	element := func(name, text string) {
		if r.once(name) {
			r.add(r.written(func(w *xmlWriter) { w.element(name, text) }))
		}
	}
	element("id", e.ID)
	if r.once("title") {
		r.add(r.written(func(w *xmlWriter) { w.text("title", e.Title()) }))
	}
	element("updated", e.lastChange().Format(time.RFC3339Nano))
	if !e.Published.IsZero() {
		element("published", e.Published.Format(time.RFC3339Nano))
	}
	if author != "" {
		r.add(r.written(func(w *xmlWriter) { w.person("author", Person{Name: author}) }))
	}
	switch {
	case !r.isContentMissing() || r.has.summary:
	case r.has.enclosure != "":
		r.add(r.written(func(w *xmlWriter) { w.link("link", Link{Rel: RelAlternate, Href: r.has.enclosure}) }))
	default:
		r.add(r.written(func(w *xmlWriter) { w.empty("content") }))
	}
	if r.has.bytes { // RFC 4287 §4.1.2: a reader needs words, too
		element("summary", e.Title().Plain())
	}
}
