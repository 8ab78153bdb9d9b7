package feedhistory

import (
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/weblink"
)

// The link relations that tie a logical feed's documents together (RFC 5005
// §3 and §4), and the few others that this package acts upon.
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
	Href     string // absolute where the base allows, otherwise as published
	Type     string // media type, as a hint; "" if none is given
	Title    string // "" if none is given
	HrefLang string // language of the target; "" if none is given
	Length   string // length in octets, as published; "" if none is given
}

// Links are the links of one head section or entry, in document order.
type Links []Link

// Rel returns the first link with the given relation. Of several links to other
// documents of the history, it prefers those whose type is a feed's, or is not
// given; web pages come last.
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

// mostTargets is how many links of one relation are tried.
const mostTargets = 4

// targets returns where the links with the given relation lead, in the order in
// which to try them: each target once.
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

// distance says how far the type of a link is from that of a feed: 0 if it may be
// one, 2 if it is a web page.
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

// isHistory reports whether a relation leads to other documents of a feed.
func isHistory(rel string) bool {
	switch rel {
	case RelFirst, RelLast, RelNext, RelPrevious, RelCurrent, RelPrevArchive, RelNextArchive:
		return true
	}
	return false
}

// lose notes the relations of a link of the head section that cannot be used, as
// its rel has them.
func (d *Document) lose(rel string) {
	for value := range strings.FieldsSeq(rel) {
		if name, _ := relation(value); isHistory(name) && !slices.Contains(d.lost, name) {
			d.lost = append(d.lost, name)
		}
	}
}

// loses reports whether there is a link with the given relation, but none that
// can be used.
func (d *Document) loses(rel string) bool { return slices.Contains(d.lost, rel) && !d.Links.has(rel) }

// says reports whether there is a link with one of the relations, whether or not
// it can be used.
func (d *Document) says(rels ...string) bool {
	return d.Links.has(rels...) || slices.ContainsFunc(rels, d.loses)
}

// has reports whether any of the relations is there.
func (l Links) has(rels ...string) bool {
	return slices.ContainsFunc(l, func(link Link) bool { return slices.Contains(rels, link.Rel) })
}

const ianaRelation = "http://www.iana.org/assignments/relation/"

// relation returns the registered name that one value of a rel attribute
// stands for, and whether it had to be read leniently: relations are
// case-sensitive (RFC 4287 §4.2.7.2), but feeds misspell them.
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

// maxHeaderLinks is how many links of a response's header are kept.
const maxHeaderLinks = 1000

// headerLinks reads Link header fields (RFC 8288), and what relations those
// have that are too long, or too many. A link whose anchor names another context
// than the document itself is left out, as is one whose relation has no meaning
// here.
func headerLinks(fields []string, base string, longest int) (links Links, lost []string) {
	for _, field := range fields {
		for {
			var target string
			var params map[string]string
			if target, params, field = weblink.Cut(field); params == nil {
				break
			}
			if !utf8.ValidString(target) {
				target = fetch.Escape(target) // the same URL: these bytes would be sent so
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

// addHeader lets the HTTP response speak where the document is silent.
func (r *reader) addHeader(h http.Header) {
	if h == nil {
		return
	}
	modified := h.Get("Last-Modified")
	if t, err := http.ParseTime(modified); err == nil {
		r.doc.LastModified = t
	} else if t, ok := r.dates.read(modified); ok { // such as a day of one digit
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

// atomLink reads atom:link, in either format, and appends what it says.
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
		r.note("link-without-href", "a link without href: its text is taken for it, if there is any", offset)
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

// maxRelations is how many relations of one link are kept.
const maxRelations = 16

// appendRelations appends the link once for each relation that rel has: one
// by the specification, but space-separated lists are seen.
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

// lose notes the relations of a link that cannot be used, if it is the head's.
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
