package feedhistory

import (
	"strings"
)

// atomLink reads atom:link, in either format, and appends its links.
func (r *elements) atomLink(links Links) Links {
	link, offset, rel := Link{}, r.s.Offset(), ""
	for _, a := range r.s.Attrs() {
		if a.Space != "" {
			continue
		}
		switch a.Local {
		case "rel":
			rel = trim(a.Value())
		case "href":
			link.Href = a.Value()
		case "type":
			link.Type = a.Value()
		case "title":
			link.Title = a.Value()
		case "hreflang":
			link.HrefLang = a.Value()
		case "length":
			link.Length = a.Value()
		}
	}
	if _, ok := r.s.Attr("", "href"); !ok {
		r.note("link-without-href", "a link without href: its text is used instead, if there is any", offset)
		base := r.currentBase()
		if link.Href = r.plainText(); link.Href == "" {
			r.lose(rel)
			return links
		}
		link.Href = r.absolute(base, link.Href, offset)
	} else {
		link.Href = r.reference(link.Href, offset)
	}
	if link.Href == "" {
		r.lose(rel)
		return links
	}
	if rel == "" {
		link.Rel = RelAlternate
		return append(links, link)
	}
	return r.appendRelations(links, link, rel, offset)
}

// appendRelations appends the link once for each relation in rel: there is one by the
// specification, but some feeds have a list.
func (r *elements) appendRelations(links Links, link Link, rel string, offset int) Links {
	if strings.ContainsAny(rel, " \t\r\n") {
		r.note("relation-list", "a link has one relation (RFC 4287 §4.2.7.2), not a list: "+clip(rel), offset)
	}
	n := 0
	for value := range strings.FieldsSeq(rel) {
		if n++; n > maxRelations {
			r.lose(value)
			continue
		}
		name, lenient := relation(value)
		if lenient {
			r.note("relation-misspelt", "the relation "+clip(value)+" is read as "+name, offset)
		}
		link.Rel = name
		links = append(links, link)
	}
	return links
}

// lose records the relations of an unusable link, if the head section has it.
func (r *elements) lose(rel string) {
	if r.inHead {
		r.doc.lose(rel)
	}
}

// appendText appends the link whose target is the current element's text.
func (r *elements) appendText(links Links, rel string) Links {
	offset, base := r.s.Offset(), r.currentBase()
	ref := r.plainText()
	if ref == "" {
		return links
	}
	return r.appendLink(links, Link{Rel: rel, Href: ref}, base, offset)
}

// appendLink appends a link, unless its target is too long.
func (r *elements) appendLink(links Links, link Link, base string, offset int) Links {
	if link.Href = r.absolute(base, link.Href, offset); link.Href == "" {
		return links
	}
	return append(links, link)
}

// reference makes a reference of the current element absolute; "" if it is
// longer than the limit.
func (r *elements) reference(ref string, offset int) string {
	return r.absolute(r.currentBase(), ref, offset)
}

// textLink reads RSS's link element, whose text is the reference.
func (r *elements) textLink(links Links) Links { return r.appendText(links, RelAlternate) }

// enclosure reads an enclosure as Atom's link for one.
func (r *elements) enclosure(links Links) Links {
	offset := r.s.Offset()
	link := Link{Rel: RelEnclosure}
	for _, a := range r.s.Attrs() {
		switch {
		case a.Space != "":
		case strings.EqualFold(a.Local, "url"):
			link.Href = a.Value()
		case strings.EqualFold(a.Local, "type"):
			link.Type = a.Value()
		case strings.EqualFold(a.Local, "length"):
			link.Length = a.Value()
		}
	}
	if trim(link.Href) == "" {
		return links
	}
	return r.appendLink(links, link, r.currentBase(), offset)
}

// maxRelations is the maximum number of relations of one link.
const maxRelations = 16
