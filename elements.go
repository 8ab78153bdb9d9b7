package feedhistory

import (
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedxml"
)

// elements are the elements of an XML document while it is read into a Document.
type elements struct {
	reading
	feedxml.Elements
	inHead bool // the current link is in the head section
}

// fail ends reading at the current token.
func (r *elements) fail(reason Reason, clause, what string) {
	r.failAt(r.Offset(), reason, clause, what)
	r.Stop()
}

// timeText reads the current element's text as a date.
func (r *elements) timeText() time.Time {
	offset := r.Offset()
	return r.parseTime(r.ElementText(), offset)
}

// atomLink reads atom:link, in either format, and appends its links.
func (r *elements) atomLink(links Links) Links {
	offset := r.Offset()
	link := Link(r.AtomLink())
	switch {
	case link.Href == "":
		r.lose(link.Rel)
		return links
	case link.Rel == "":
		link.Rel = RelAlternate
		return append(links, link)
	}
	return r.appendRelations(links, link, offset)
}

// maxRelations is the maximum number of relations of one link.
const maxRelations = 16

// appendRelations appends the link once for each of its relations: there is one by the
// specification, but some feeds have a list.
func (r *elements) appendRelations(links Links, link Link, offset int) Links {
	rel, n := link.Rel, 0
	if strings.ContainsAny(rel, " \t\r\n") {
		r.note("relation-list", "a link has one relation (RFC 4287 §4.2.7.2), not a list: "+clip(rel), offset)
	}
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

// textLink reads RSS's link element, whose text is the reference.
func (r *elements) textLink(links Links) Links { return r.appendText(links, RelAlternate) }

// appendText appends the link whose target is the current element's text.
func (r *elements) appendText(links Links, rel string) Links {
	if href := r.TextReference(); href != "" {
		links = append(links, Link{Rel: rel, Href: href})
	}
	return links
}

// enclosure reads an enclosure as Atom's link for one.
func (r *elements) enclosure(links Links) Links {
	if link := Link(r.Enclosure()); link.Href != "" {
		link.Rel = RelEnclosure
		links = append(links, link)
	}
	return links
}
