package feedhistory

import (
	"cmp"
	"io"
	"time"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/vocab"
)

// Atom 1.0 (RFC 4287) and its ancestor 0.3.

// atomFeed reads the children of the feed element. Atom allows any order, so a link or
// a flag counts even after the entries.
func (r *reader) atomFeed() {
	depth := r.s.Depth()
	r.native = r.space()
	if !vocab.IsAtom(r.native) {
		r.note("namespace-unknown", "the feed element is read as Atom's, whose namespace is "+vocab.Atom, r.s.Offset())
	}
	r.doc.version, r.doc.Language = map[string]string{vocab.Atom: "1.0", vocab.Atom03: "0.3"}[r.native], r.language()
	r.enter()
	for r.child(depth) {
		if (r.space() == r.native || vocab.IsAtom(r.space())) && r.atomLocal() == "entry" {
			r.atomEntry()
		} else {
			r.keep(r.atomHead)
		}
	}
}

// atomHead reads the current element of the head section, and reports whether the
// Document's fields express all that it says.
func (r *reader) atomHead() (known bool) {
	if r.space() != r.native && !vocab.IsAtom(r.space()) {
		return r.scheduleElement() || r.headElement()
	}
	switch vocab.AtomName(r.s.Local()) {
	case "link":
		r.headLink()
	case "id":
		r.doc.ID = r.documentID()
	case "title":
		r.doc.Title = r.headText(r.textConstruct().Plain(), r.s.Offset())
	case "subtitle", "tagline":
		r.doc.Subtitle = r.headText(r.textConstruct().Plain(), r.s.Offset())
	case "author":
		r.author()
	case "updated", "modified":
		r.doc.Updated = r.timeText()
	case "icon":
		r.icon(2)
		return false
	case "logo":
		r.icon(1)
		return false
	default:
		return false
	}
	return true
}

// documentID reads the feed's id as published. White space around it is not part of
// it, and xml:base does not apply (RFC 4287 §4.2.6).
func (r *reader) documentID() string {
	offset := r.s.Offset()
	id := r.plainText()
	if len(id) > r.limits.ID {
		r.note("id-too-long", "the feed's id is left out: it is longer than the limit", offset)
		return ""
	}
	return id
}

// author reads an author of the feed (RFC 4287 §4.2.1).
func (r *reader) author() {
	p := r.person()
	if len(r.doc.Authors) < maxExtra && r.fits(len(p.Name)+len(p.Email)+len(p.URI), r.s.Offset()) {
		r.doc.Authors = append(r.doc.Authors, p)
	}
}

// person reads a person construct (RFC 4287 §3.2). The uri is called url in Atom 0.3,
// and homepage elsewhere.
func (r *reader) person() (p Person) {
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

// atomEntry reads the current entry element. Only its own children count: elements in
// atom:source or in the content describe something else.
func (r *reader) atomEntry() {
	e := r.beginEntry()
	if e == nil {
		return
	}
	depth, lenient := r.s.Depth(), r.s.Lenient()
	native := r.space()
	var texts textFinder
	for r.child(depth) {
		if r.space() != native && !vocab.IsAtom(r.space()) {
			texts.look(r, r.s.Local())
			continue
		}
		local := r.atomLocal()
		texts.look(r, local)
		switch local {
		case "id":
			if id := r.idText(e); e.ID == "" {
				e.ID = id
			}
		case "updated", "modified":
			e.Updated = r.timeText()
		case "published", "issued", "created":
			if !e.Published.IsZero() && local == "created" {
				continue // Atom 0.3 has both; what it calls issued is now called published
			}
			e.Published = r.timeText()
		case "link":
			r.addLinks(r.atomLink)
		case "author", "source": // a source has its own authors (RFC 4287 §4.2.1)
			e.signed = true
		}
	}
	e.Links = r.takeLinks()
	r.endEntry(e, lenient, &texts)
}

// WriteAtom writes a document as Atom 1.0. It writes entries that were read from Atom
// 1.0 with their own XML, and converts others.
func WriteAtom(w io.Writer, d *Document) error {
	out := &writer{w: w}
	out.b.WriteString("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed")
	writeAttr(&out.b, "xmlns", vocab.Atom)
	if d.Language != "" && len(d.Entries) == 0 { // entries have their own language, and would inherit this one
		writeAttr(&out.b, "xml:lang", d.Language)
	}
	out.b.WriteString(">\n")
	out.element("id", d.identity())
	out.element("title", d.Title)
	if d.Subtitle != "" {
		out.element("subtitle", d.Subtitle)
	}
	out.element("updated", d.lastChange().Format(time.RFC3339Nano))
	for _, p := range d.atomAuthors() {
		out.author(p)
	}
	for _, l := range d.Links {
		out.link("link", l)
	}
	if d.Icon != "" && (d.Format != Atom || d.scope == nil) { // otherwise headAs writes it as published
		out.element("icon", iri.Writable(d.Icon))
	}
	out.flags(d)
	out.headAs(d, Atom)
	out.entries(d, Atom, vocab.Atom, out.atomEntry)
	out.b.WriteString("</feed>\n")
	out.flush()
	return out.err
}

// atomAuthors returns the feed's authors. Atom requires one unless all entries have
// their own (RFC 4287 §4.1.1), which entries of other formats do not.
func (d *Document) atomAuthors() []Person {
	if len(d.Authors) == 0 && d.Format != Atom {
		return []Person{{Name: cmp.Or(d.Title, d.identity(), "unknown")}}
	}
	return d.Authors
}

// author writes an author, who must have a name (RFC 4287 §3.2.1). It uses the email
// address or URI if there is none, and writes nothing if there is neither.
func (w *writer) author(p Person) {
	name := cmp.Or(p.Name, p.Email, p.URI)
	if name == "" {
		return
	}
	w.b.WriteString("<author>")
	w.element("name", name)
	if p.URI != "" {
		w.element("uri", p.URI)
	}
	if p.Email != "" {
		w.element("email", p.Email)
	}
	w.b.WriteString("</author>\n")
}

// atomEntry writes an entry of another format.
func (w *writer) atomEntry(e *Entry) {
	item := w.decode(e)
	others := e.extensions()
	w.b.WriteString("<entry" + others.attrs + ">\n")
	w.element("id", e.ID)
	w.text("title", e.Title())
	w.element("updated", e.lastChange().Format(time.RFC3339Nano))
	if !e.Published.IsZero() {
		w.element("published", e.Published.Format(time.RFC3339Nano))
	}
	for _, person := range item.Authors {
		w.author(Person{Name: person.Name, Email: person.Email, URI: person.URL})
	}
	for _, category := range item.Categories {
		if category != "" {
			w.empty("category", "term", category)
		}
	}
	for _, l := range e.Links {
		w.link("link", l)
	}
	w.text("summary", e.Summary())
	w.text("content", e.Content())
	w.b.WriteString(others.elements + "</entry>\n")
}

// text writes a text construct. A title is never left out.
func (w *writer) text(name string, t Text) {
	switch {
	case t == Text{} && name != "title":
	case t.Src != "", isMedia(t.Type):
		w.media(name, t)
	case t.Type == TextHTML || t.Type == TextXHTML:
		w.element(name+` type="html"`, t.absolute())
	default:
		w.element(name, t.Body)
	}
}

// media writes content of a media type, or content at another URL. Markup that is not
// well-formed becomes text.
func (w *writer) media(name string, t Text) {
	if t.Src != "" {
		w.empty(name, "type", t.Type, "src", t.Src) // RFC 4287 §4.1.3.2: the element is empty then
		return
	}
	body, err := t.atomBody()
	if err != nil {
		t.Type = "text/plain"
		body, _ = t.atomBody()
	}
	w.open(name, "type", t.Type)
	w.b.WriteString(">" + body + "</" + name + ">\n")
}

// headAs writes the other elements of the head section: all of them in their own
// format, only the extensions in another.
func (w *writer) headAs(d *Document, format Format) {
	if d.scope == nil {
		return
	}
	for _, raw := range d.extra {
		if r := newFragment(raw, d.scope, d.Format); d.Format != format {
			if r.native = ""; r.isOwn() {
				continue
			}
		}
		w.b.WriteString(d.scope.standalone(raw, true))
		w.b.WriteByte('\n')
	}
}
