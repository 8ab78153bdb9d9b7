package feedhistory

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// The link relations between the documents of a logical feed (RFC 5005 §3 and §4),
// and the others this package uses.
const (
	relAlternate   = "alternate"
	relCurrent     = "current"
	relEnclosure   = "enclosure"
	relFirst       = "first"
	relHub         = "hub"
	relLast        = "last"
	relNext        = "next"
	relNextArchive = "next-archive"
	relPrevArchive = "prev-archive"
	relPrevious    = "previous"
	relReplies     = "replies"
	relSelf        = "self"
)

// A Link is a link of a document's head section or of an entry.
type Link struct {
	Rel      string `json:"rel,omitempty"`      // the relation's registered name, such as "next", or an IRI; never empty
	Href     string `json:"href"`               // absolute if the base allows, otherwise as published
	Type     string `json:"type,omitempty"`     // the media type, as a hint; "" if none is given
	Title    string `json:"title,omitempty"`    // "" if none is given
	HrefLang string `json:"hreflang,omitempty"` // the language of the target; "" if none is given
	Length   string `json:"length,omitempty"`   // the length in bytes, as published; "" if none is given
}

// Links are the links of one head section or entry, in document order.
type Links []Link

// Rel returns the first link with the given relation. Of several links to other
// documents of the history, it prefers those with the type of a feed, or without a
// type; links to web pages come last. Of several links "alternate", it prefers the first to a
// page for people: an address of http or https, with the type of a web page or without a type.
func (l Links) Rel(rel string) (first Link, ok bool) {
	for i := range l { // a Link is large
		if l[i].Rel == rel && (!ok || isHistory(rel) && l[i].distance() < first.distance() || rel == relAlternate && !first.isPage() && l[i].isPage()) {
			first, ok = l[i], true
		}
	}
	return first, ok
}

// alternate returns the URL of the first link "alternate", whatever it leads to: the ID of an entry
// without one must not depend on the order of preference.
func (l Links) alternate() string {
	for i := range l {
		if l[i].Rel == relAlternate {
			return l[i].Href
		}
	}
	return ""
}

// isPage reports whether a link may lead to a page for people.
func (l *Link) isPage() bool { return iri.IsHTTP(l.Href) && (trim(l.Type) == "" || l.isTypedPage()) }

// isTypedPage reports whether a link has the type of a web page.
func (l *Link) isTypedPage() bool { return l.Type != "" && l.distance() == 2 }

// mostTargets is the maximum number of links of one relation to try.
const mostTargets = 4

// targets returns the targets of the links with the given relation, each once, in the
// order in which to try them.
func (l Links) targets(rel string) (urls []string) {
	for distance := range 3 {
		for _, link := range l {
			url := iri.Address(link.Href)
			if link.Rel == rel && link.distance() == distance && len(urls) < mostTargets && !slices.Contains(urls, url) {
				urls = append(urls, url)
			}
		}
	}
	return urls
}

// areFormats reports whether links declare different types for two URLs: they may lead to
// one document in two formats.
func (l Links) areFormats(a, b string) bool {
	declared := func(url string) string {
		for _, link := range l {
			if iri.Address(link.Href) == url {
				return link.Type
			}
		}
		return ""
	}
	typeA, typeB := declared(a), declared(b)
	return typeA != typeB && typeA != "" && typeB != ""
}

// distance returns how far the type of a link is from a feed's: 0 if the target may
// be a feed, 2 if it is a web page, 1 otherwise.
func (l Link) distance() int {
	mediaType, _, _ := strings.Cut(l.Type, ";")
	switch strings.ToLower(trim(mediaType)) {
	case "", "application/atom+xml", "application/rss+xml", "application/rdf+xml", "application/feed+json",
		"application/xml", "text/xml", "application/json":
		return 0
	case "text/html", "application/xhtml+xml":
		return 2
	}
	return 1
}

// isHistory reports whether links with the relation lead to other documents of a feed.
func isHistory(rel string) bool {
	switch rel {
	case relFirst, relLast, relNext, relPrevious, relCurrent, relPrevArchive, relNextArchive:
		return true
	}
	return false
}

// lose records the relations, as an attribute rel lists them, of an unusable link of
// the head section.
func (d *Document) lose(rel string) {
	for value := range strings.FieldsSeq(rel) {
		if name, _ := relation(value); isHistory(name) && !slices.Contains(d.lost, name) {
			d.lost = append(d.lost, name)
		}
	}
}

// loses reports whether there is a link with the given relation, but no usable one.
func (d *Document) loses(rel string) bool { return slices.Contains(d.lost, rel) && !d.Links.has(rel) }

// says reports whether there is a link with one of the relations, usable or not.
func (d *Document) says(rels ...string) bool {
	return d.Links.has(rels...) || slices.ContainsFunc(rels, d.loses)
}

// has reports whether there is a link with any of the relations.
func (l Links) has(rels ...string) bool {
	for i := range l { // a Link is large
		if slices.Contains(rels, l[i].Rel) {
			return true
		}
	}
	return false
}

const ianaRelation = "http://www.iana.org/assignments/relation/"

// relation returns the registered name meant by one value of a rel attribute, and
// whether it had to be read leniently: relations are case-sensitive (RFC 4287
// §4.2.7.2), but feeds misspell them.
func relation(value string) (rel string, lenient bool) {
	if known(value) {
		return value, false
	}
	name := strings.TrimPrefix(value, ianaRelation)
	if known(name) {
		return name, false
	}
	switch lower := strings.ToLower(name); lower {
	case "prev", "prev-page", "previous-page":
		return relPrevious, true
	case "next-page":
		return relNext, true
	case "prev_archive", "previous-archive":
		return relPrevArchive, true
	case "next_archive":
		return relNextArchive, true
	default:
		if known(lower) {
			return lower, true
		}
		return name, false
	}
}

func known(rel string) bool {
	switch rel {
	case relAlternate, relCurrent, relEnclosure, relFirst, relHub, relLast, relNext,
		relNextArchive, relPrevArchive, relPrevious, relReplies, relSelf, "edit", "related", "via":
		return true
	}
	return false
}

// HeaderLinks returns the links of a response's Link header fields (RFC 8288) that this
// package knows, with their relations by their registered names and their targets resolved
// against base, the response's URL. It leaves out links of another context, by their
// anchor, those longer than 8 KiB, and all beyond the first thousand.
func HeaderLinks(header http.Header, base string) Links {
	links, _ := headerLinks(header.Values("Link"), base, fetch.MaxURL)
	return links
}

// maxHeaderLinks is the maximum number of links from a response's header.
const maxHeaderLinks = 1000

// headerLinks reads Link header fields (RFC 8288). It also returns the relations of
// links too long or too many. It leaves out links whose anchor names a context other
// than the document, and those whose relation has no meaning here.
func headerLinks(fields []string, base string, longest int) (links Links, lost []string) {
	for _, field := range fields {
		for {
			var target string
			var params map[string]string
			if target, params, field = iri.CutLink(field); params == nil {
				break
			}
			if !utf8.ValidString(target) {
				target = iri.Escape(target) // the same URL: a request would escape these bytes
			}
			if anchor, ok := params["anchor"]; ok && iri.WithoutFragment(iri.Resolve(base, anchor)) != iri.WithoutFragment(base) {
				continue
			}
			href := ""
			if len(target) <= longest {
				href = iri.Resolve(base, target)
			}
			for rel := range strings.FieldsSeq(params["rel"]) {
				name, _ := relation(rel)
				switch {
				case !known(name):
				case href == "" || len(href) > longest || len(links) == maxHeaderLinks:
					lost = append(lost, name)
				default:
					links = append(links, Link{
						Rel: name, Href: href, Type: params["type"],
						Title: strings.ToValidUTF8(params["title"], "\uFFFD"), HrefLang: params["hreflang"],
					})
				}
			}
		}
	}
	return links, lost
}

// Older returns the relation to go back in time in a feed of this kind, for Links.Rel:
// prev-archive in an archived feed, next in a paged one; "" if none does.
func (k Kind) Older() string {
	switch k {
	case KindArchived:
		return relPrevArchive
	case KindPaged:
		return relNext
	}
	return ""
}

// Further returns the links by which the document names more of the history than the one
// of Kind.Older does, in a feed of the given kind: those contradicting the kind, of several links
// to an older document all but the first, and at the end of a chain next-archive and
// last, which should lead to documents already read. A history is whole only if all of
// them have been, or brought nothing new. There are at most eight.
func (d *Document) Further(feed Kind) (further Links) {
	var main *Link
	if older, ok := d.Links.Rel(feed.Older()); ok {
		main = &older
	}
	for _, link := range d.Links {
		link.Href = iri.Address(link.Href)
		switch {
		case !d.goesBeyond(feed, link.Rel), link.distance() > 0, len(further) == 2*mostTargets,
			link.Href == d.URL, link.Href == d.Response.Requested,
			main != nil && link.Href == iri.Address(main.Href),
			main != nil && link.Rel == main.Rel && link.Type != main.Type && link.Type != "" && main.Type != "", // another format of the same document
			slices.ContainsFunc(further, func(l Link) bool { return l.Href == link.Href }):
		default:
			further = append(further, link)
		}
	}
	return further
}

// goesBeyond reports whether a link with the relation leads beyond the chain, if it leads
// to a document outside of it.
func (d *Document) goesBeyond(feed Kind, rel string) bool {
	switch feed {
	case KindComplete:
		return isHistory(rel)
	case KindArchived:
		return rel == relNext || rel == relPrevious || rel == relLast || rel == relPrevArchive ||
			rel == relNextArchive && !d.says(relPrevArchive)
	case KindPaged:
		return rel == relPrevArchive || rel == relNext || rel == relLast && !d.says(relNext)
	}
	return false
}

// lostBeyond returns a relation that contradicts the kind of the document's feed, with an
// unusable link; "" if there is none.
func (d *Document) lostBeyond(feed Kind) string {
	for _, rel := range []string{relPrevArchive, relNext, relPrevious} {
		if rel != feed.Older() && d.goesBeyond(feed, rel) && d.loses(rel) {
			return rel
		}
	}
	return ""
}

// atomLink reads atom:link, in either format, and appends its links.
func (r *xmlReading) atomLink(links Links) Links {
	offset := r.xml.Offset()
	link := Link(r.xml.AtomLink())
	switch {
	case link.Href == "":
		r.lose(link.Rel)
		return links
	case link.Rel == "":
		link.Rel = relAlternate
		return append(links, link)
	}
	return r.appendRelations(links, link, offset)
}

// maxRelations is the maximum number of relations of one link.
const maxRelations = 16

// appendRelations appends the link once for each of its relations: there is one by the
// specification, but some feeds have a list.
func (r *xmlReading) appendRelations(links Links, link Link, offset int) Links {
	rel, n := link.Rel, 0
	if known(rel) { // nearly always
		return append(links, link)
	}
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
func (r *xmlReading) lose(rel string) {
	if r.inHead {
		r.doc.lose(rel)
	}
}

// headLink reads a link of the head section: Atom's, or RSS's, whose text is the reference.
func (r *documentReader) headLink(row *feedxml.Row) {
	if _, ok := r.xml.Attr("", "href"); !ok && row.Form == feedxml.URLForm {
		rel, _ := r.xml.Attr("", "rel")
		r.doc.lose(rel)
		r.setLinks(r.textLink(r.doc.Links))
		return
	}
	r.inHead = true
	r.setLinks(r.atomLink(r.doc.Links))
	r.inHead = false
}

func (r *documentReader) setLinks(links Links) {
	if r.doc.Links = links; len(links) > r.limits.headLinks {
		r.doc.Links = links[:r.limits.headLinks]
		r.fail(ReasonLimit, clauseLimits, fmt.Sprintf("more than %d links in the head section", r.limits.headLinks))
	}
}
