package feedhistory

// Atom 1.0 (RFC 4287) and its ancestor 0.3.

func isAtom(space string) bool { return space == nsAtom || space == nsAtom03 }

// atomFeed reads the children of the feed element. Atom does not order them: a
// link or a flag may follow the entries, and counts.
func (r *reader) atomFeed() {
	depth := r.s.Depth()
	r.native = r.space()
	if !isAtom(r.native) {
		r.note("namespace-unknown", "the feed element is read as Atom's, whose namespace is "+nsAtom, r.s.Offset())
	}
	r.enter()
	for r.child(depth) {
		if r.space() != r.native && !isAtom(r.space()) {
			if !r.scheduleElement() && !r.headElement() {
				r.keep()
			}
			continue
		}
		switch r.atomLocal() {
		case "entry":
			r.atomEntry()
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
		default:
			r.keep()
		}
	}
}

// documentID reads the feed's id, as published: white space around it is not
// part of it, and xml:base does not apply (RFC 4287 §4.2.6).
func (r *reader) documentID() string {
	offset := r.s.Offset()
	id := r.plainText()
	if len(id) > r.limits.ID {
		r.note("id-too-long", "the feed's id is longer than the limit, and left out", offset)
		return ""
	}
	return id
}

// author reads an author of the feed (RFC 4287 §4.2.1).
func (r *reader) author() {
	var p Person
	for depth := r.s.Depth(); r.child(depth); {
		switch base := r.currentBase(); atomName(r.s.Local()) {
		case "name":
			p.Name = r.plainText()
		case "email":
			p.Email = r.plainText()
		case "uri", "url":
			p.URI = resolve(base, r.plainText())
		}
	}
	if len(r.doc.Authors) < maxExtra && r.fits(len(p.Name)+len(p.Email)+len(p.URI), r.s.Offset()) {
		r.doc.Authors = append(r.doc.Authors, p)
	}
}

// atomEntry reads the current entry element. Only its own children count: what
// stands in atom:source or in the content speaks of something else.
func (r *reader) atomEntry() {
	e := r.beginEntry()
	if e == nil {
		return
	}
	depth, lenient := r.s.Depth(), r.s.Lenient()
	native := r.space()
	for r.child(depth) {
		if r.space() != native && !isAtom(r.space()) {
			continue
		}
		switch local := r.atomLocal(); local {
		case "id":
			if id := r.idText(e); e.ID == "" {
				e.ID = id
			}
		case "updated", "modified":
			e.Updated = r.timeText()
		case "published", "issued", "created":
			if !e.Published.IsZero() && local == "created" {
				continue // Atom 0.3 has both: issued is what it is now called published
			}
			e.Published = r.timeText()
		case "link":
			r.addLinks(r.atomLink)
		case "author", "source": // a source has authors of its own (RFC 4287 §4.2.1)
			e.signed = true
		}
	}
	e.Links = r.takeLinks()
	r.endEntry(e, lenient)
}
