package feedhistory

import (
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/weblink"
)

// The link relations that connect the documents of a logical feed (RFC 5005 §3 and
// §4), and the others that this package uses.
const (
	RelAlternate   = "alternate"
	RelCurrent     = "current"
	RelEnclosure   = "enclosure"
	RelFirst       = "first"
	RelHub         = "hub"
	RelLast        = "last"
	RelNext        = "next"
	RelNextArchive = "next-archive"
	RelPrevArchive = "prev-archive"
	RelPrevious    = "previous"
	RelSelf        = "self"
)

// A Link is a link of a document's head section or of an entry.
type Link struct {
	Rel      string // the relation's registered name, or an IRI; never empty
	Href     string // absolute if the base allows, otherwise as published
	Type     string // the media type, as a hint; "" if none is given
	Title    string // "" if none is given
	HrefLang string // the language of the target; "" if none is given
	Length   string // the length in bytes, as published; "" if none is given
}

// Links are the links of one head section or entry, in document order.
type Links []Link

// Rel returns the first link with the given relation. Of several links to other
// documents of the history, it prefers those whose type is that of a feed, or is not
// given; links to web pages come last.
func (l Links) Rel(rel string) (first Link, ok bool) {
	for _, link := range l {
		if link.Rel != rel || ok && link.distance() >= first.distance() {
			continue
		}
		if first, ok = link, true; !isHistory(rel) || link.distance() == 0 {
			break
		}
	}
	return first, ok
}

// mostTargets is the maximum number of links of one relation to try.
const mostTargets = 4

// targets returns the targets of the links with the given relation, each once, in the
// order in which to try them.
func (l Links) targets(rel string) (urls []string) {
	for distance := range 3 {
		for _, link := range l {
			url := iri.WithoutFragment(link.Href)
			if link.Rel == rel && link.distance() == distance && len(urls) < mostTargets && !slices.Contains(urls, url) {
				urls = append(urls, url)
			}
		}
	}
	return urls
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
	case RelFirst, RelLast, RelNext, RelPrevious, RelCurrent, RelPrevArchive, RelNextArchive:
		return true
	}
	return false
}

// lose records the relations, as an attribute rel lists them, of a link of the head
// section that cannot be used.
func (d *Document) lose(rel string) {
	for value := range strings.FieldsSeq(rel) {
		if name, _ := relation(value); isHistory(name) && !slices.Contains(d.lost, name) {
			d.lost = append(d.lost, name)
		}
	}
}

// loses reports whether there is a link with the given relation, but none that is
// usable.
func (d *Document) loses(rel string) bool { return slices.Contains(d.lost, rel) && !d.Links.has(rel) }

// says reports whether there is a link with one of the relations, usable or not.
func (d *Document) says(rels ...string) bool {
	return d.Links.has(rels...) || slices.ContainsFunc(rels, d.loses)
}

// has reports whether there is a link with any of the relations.
func (l Links) has(rels ...string) bool {
	return slices.ContainsFunc(l, func(link Link) bool { return slices.Contains(rels, link.Rel) })
}

const ianaRelation = "http://www.iana.org/assignments/relation/"

// relation returns the registered name that one value of a rel attribute means, and
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
		return RelPrevious, true
	case "next-page":
		return RelNext, true
	case "prev_archive", "previous-archive":
		return RelPrevArchive, true
	case "next_archive":
		return RelNextArchive, true
	default:
		if known(lower) {
			return lower, true
		}
		return name, false
	}
}

func known(rel string) bool {
	switch rel {
	case RelAlternate, RelCurrent, RelEnclosure, RelFirst, RelHub, RelLast, RelNext,
		RelNextArchive, RelPrevArchive, RelPrevious, RelSelf, "edit", "related", "replies", "via":
		return true
	}
	return false
}

// maxHeaderLinks is the maximum number of links from a response's header.
const maxHeaderLinks = 1000

// headerLinks reads Link header fields (RFC 8288). It also returns the relations of
// links that are too long, or too many. It leaves out links whose anchor names a
// context other than the document, and those whose relation has no meaning here.
func headerLinks(fields []string, base string, longest int) (links Links, lost []string) {
	for _, field := range fields {
		for {
			var target string
			var params map[string]string
			if target, params, field = weblink.Cut(field); params == nil {
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

// addHeader adds what the HTTP response says and the document does not.
func (r *reader) addHeader(h http.Header) {
	if h == nil {
		return
	}
	modified := h.Get("Last-Modified")
	if t, err := http.ParseTime(modified); err == nil {
		r.doc.LastModified = t
	} else if t, ok := r.dates.read(modified); ok { // not by RFC 9110, such as a day of one digit
		r.doc.LastModified = t
	}
	own := r.doc.Links
	links, lost := headerLinks(h.Values("Link"), r.doc.URL, r.limits.URL)
	for _, link := range links {
		switch {
		case own.has(link.Rel):
		case len(r.doc.Links) >= r.limits.HeadLinks:
			r.doc.lose(link.Rel)
		default:
			r.doc.Links = append(r.doc.Links, link)
		}
	}
	for _, rel := range lost {
		r.doc.lose(rel)
	}
}

// atomLink reads atom:link, in either format, and appends its links.
func (r *reader) atomLink(links Links) Links {
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

// maxRelations is the maximum number of relations of one link.
const maxRelations = 16

// appendRelations appends the link once for each relation in rel: there is one by the
// specification, but some feeds have a list.
func (r *reader) appendRelations(links Links, link Link, rel string, offset int) Links {
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

// lose records the relations of a link that cannot be used, if the head section has it.
func (r *reader) lose(rel string) {
	if r.inHead {
		r.doc.lose(rel)
	}
}

// appendText appends the link whose target is the current element's text.
func (r *reader) appendText(links Links, rel string) Links {
	offset, base := r.s.Offset(), r.currentBase()
	ref := r.plainText()
	if ref == "" {
		return links
	}
	return r.appendLink(links, Link{Rel: rel, Href: ref}, base, offset)
}

// appendLink appends a link, unless its target is too long.
func (r *reader) appendLink(links Links, link Link, base string, offset int) Links {
	if link.Href = r.absolute(base, link.Href, offset); link.Href == "" {
		return links
	}
	return append(links, link)
}

// reference makes a reference of the current element absolute; "" if it is
// longer than the limit.
func (r *reader) reference(ref string, offset int) string {
	return r.absolute(r.currentBase(), ref, offset)
}

func (r *reader) absolute(base, ref string, offset int) string {
	abs := ref
	if len(ref) <= r.limits.URL {
		abs = iri.Resolve(base, ref)
	}
	if len(abs) > r.limits.URL {
		r.note("url-too-long", "a link longer than the limit is left out", offset)
		return ""
	}
	return abs
}
