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
	r.doc.version, r.doc.Language = map[string]string{nsAtom: "1.0", nsAtom03: "0.3"}[r.native], r.language()
	r.enter()
	for r.child(depth) {
		if (r.space() == r.native || isAtom(r.space())) && r.atomLocal() == "entry" {
			r.atomEntry()
		} else {
			r.keep(r.atomHead)
		}
	}
}

// atomHead reads the current element of the head section, and reports whether the
// Document says all that it says.
func (r *reader) atomHead() (known bool) {
	if r.space() != r.native && !isAtom(r.space()) {
		return r.scheduleElement() || r.headElement()
	}
	switch atomName(r.s.Local()) {
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
	p := r.person()
	if len(r.doc.Authors) < maxExtra && r.fits(len(p.Name)+len(p.Email)+len(p.URI), r.s.Offset()) {
		r.doc.Authors = append(r.doc.Authors, p)
	}
}

// person reads a person construct (RFC 4287 §3.2). The address is called url in
// Atom 0.3, and elsewhere homepage.
func (r *reader) person() (p Person) {
	for depth := r.s.Depth(); r.child(depth); {
		switch base := r.currentBase(); atomName(r.s.Local()) {
		case "name":
			p.Name = r.plainText()
		case "email":
			p.Email = r.plainText()
		case "uri", "url", "homepage":
			p.URI = resolve(base, r.plainText())
		}
	}
	return p
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
	var texts textFinder
	for r.child(depth) {
		if r.space() != native && !isAtom(r.space()) {
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
	r.endEntry(e, lenient, &texts)
}
