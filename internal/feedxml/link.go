package feedxml

import (
	"strings"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// Absolute resolves a reference; "" with a note if the result is longer than most.
func Absolute(base, ref string, most int, note func(code, message string, offset int), offset int) string {
	abs := ref
	if len(ref) <= most {
		abs = iri.Resolve(base, ref)
	}
	if len(abs) > most {
		note("url-too-long", "a link longer than the limit is left out", offset)
		return ""
	}
	return abs
}

// Reference makes a reference of the current element absolute; "" if it is longer than
// the limit.
func (r *Elements) Reference(ref string, offset int) string {
	return Absolute(r.Base(), ref, r.MaxURL, r.note, offset)
}

// TextReference makes the current element's text absolute as a reference; "" if there is
// none, or if it is longer than the limit.
func (r *Elements) TextReference() string {
	offset, base := r.Offset(), r.Base()
	if ref := r.PlainText(); ref != "" {
		return Absolute(base, ref, r.MaxURL, r.note, offset)
	}
	return ""
}

// AtomLink reads atom:link, in either format. Rel is as published. Href is "" if it cannot
// be used.
func (r *Elements) AtomLink() xmlscan.Link {
	offset := r.Offset()
	link, hasHref := r.LinkAttrs()
	if hasHref {
		link.Href = r.Reference(link.Href, offset)
		return link
	}
	r.note("link-without-href", "a link without href: its text is used instead, if there is any", offset)
	link.Href = r.TextReference()
	return link
}

// Enclosure reads an enclosure, without its relation. Href is "" if it cannot be used.
func (r *Elements) Enclosure() (link xmlscan.Link) {
	offset := r.Offset()
	for _, a := range r.Attrs() {
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
	if xmlscan.Trim(link.Href) == "" {
		return xmlscan.Link{}
	}
	link.Href = r.Reference(link.Href, offset)
	return link
}
