package feedhistory

import (
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
