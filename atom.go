package feedhistory

import (
	"github.com/feedhistory/feedhistory/internal/feedxml"
)

// Atom 1.0 (RFC 4287) and its ancestor 0.3.

// atomFeed reads the children of the feed element. Atom allows any order, so a link or
// a flag counts even after the entries.
func (r *documentReader) atomFeed() {
	depth := r.Depth()
	r.Native = r.Space()
	if !feedxml.IsAtom(r.Native) {
		r.note("namespace-unknown", "the feed element is read as Atom's, whose namespace is "+feedxml.Atom, r.Offset())
	}
	r.doc.version, r.doc.Language = map[string]string{feedxml.Atom: "1.0", feedxml.Atom03: "0.3"}[r.Native], r.Language()
	r.enter()
	bare := r.Prefix() != "" && feedxml.IsAtom(r.Native)
	if bare {
		r.Native = "" // children without the root's prefix and namespace are Atom's, too
	}
	for r.Child(depth) {
		space, local := r.Space(), r.AtomLocal()
		own := space == r.Native || feedxml.IsAtom(space)
		if own {
			r.NoteName(local)
		}
		if bare && space == "" {
			r.note("namespace-unknown", "elements without a namespace are read as Atom's", r.Offset())
			bare = false
		}
		switch {
		case own && local == "entry":
			r.entry()
		case own && local == "entries":
			r.wrapped("entry")
		default:
			r.keep(r.atomHead)
		}
	}
}

// atomHead reads the current element of the head section, and reports whether the
// Document's fields express all of it.
func (r *documentReader) atomHead() (known bool) {
	if space := r.Space(); space != r.Native && !feedxml.IsAtom(space) {
		return r.scheduleElement() || r.headElement()
	}
	switch feedxml.AtomName(r.Local()) {
	case "link":
		r.headLink()
	case "id":
		r.doc.ID = r.documentID()
	case "title":
		r.doc.Title = r.head.shorten(r.Construct().Plain(), r.Offset())
	case "subtitle", "tagline":
		r.doc.Subtitle = r.head.shorten(r.Construct().Plain(), r.Offset())
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
func (r *documentReader) documentID() string {
	offset := r.Offset()
	id := r.PlainText()
	if len(id) > r.limits.ID {
		r.note("id-too-long", "the feed's id is left out: it is longer than the limit", offset)
		return ""
	}
	return id
}

// author reads an author of the feed (RFC 4287 §4.2.1).
func (r *documentReader) author() {
	p := Person(r.Person())
	if len(r.doc.Authors) < maxExtra && r.head.fits(len(p.Name)+len(p.Email)+len(p.URI), r.Offset()) {
		r.doc.Authors = append(r.doc.Authors, p)
	}
}
