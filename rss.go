package feedhistory

import (
	"cmp"
	"math"
	"strings"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/vocab"
)

// RSS 2.0, 0.9x and 1.0, with the extensions of RFC 5005 Appendix B: Atom links, under
// any prefix, and the flags in their namespace.

// isRSS reports whether the current element belongs to RSS itself.
func (r *reader) isRSS() bool {
	space := r.space()
	return space == "" || space == r.native || vocab.RDFVersion(space) != "" || strings.HasPrefix(space, "http://backend.userland.com/rss")
}

// rss reads the children of the root: a channel, and in RSS 1.0 the items.
func (r *reader) rss() {
	depth := r.s.Depth()
	r.doc.version, _ = r.s.Attr("", "version")
	r.doc.Language = r.language()
	r.enter()
	for r.child(depth) {
		if !r.isRSS() {
			continue
		}
		switch r.rssLocal() {
		case "channel":
			r.doc.version = cmp.Or(r.doc.version, vocab.RDFVersion(r.space()))
			r.channel()
		case "item":
			r.rssItem()
		case "image": // of RSS 1.0
			r.keep(func() bool { r.rssImage(); return true })
		}
	}
}

// channel reads the head section and the items in it.
func (r *reader) channel() {
	depth := r.s.Depth()
	r.ranks.title, r.ranks.updated = 0, 0
	r.enter()
	for r.child(depth) {
		if r.isRSS() && r.rssLocal() == "item" {
			r.rssItem()
		} else {
			r.keep(r.rssHead)
		}
	}
}

// rssHead reads the current element of the head section, and reports whether the
// Document's fields express all that it says.
func (r *reader) rssHead() (known bool) {
	if r.scheduleElement() {
		return true
	}
	if !r.isRSS() {
		return r.foreignHead()
	}
	switch r.rssLocal() {
	case "title":
		r.doc.Title, r.ranks.title = r.headText(r.textConstruct().Plain(), r.s.Offset()), 1
	case "description":
		text := r.textOrMarkup(Text{Type: TextPlain, Base: r.currentBase()}).Plain()
		r.doc.Subtitle = r.headText(text, r.s.Offset())
	case "lastBuildDate": // 5005#22
		r.doc.Updated, r.ranks.updated = r.timeText(), math.MaxInt
	case "link":
		if _, ok := r.s.Attr("", "href"); ok {
			r.headLink()
		} else {
			rel, _ := r.s.Attr("", "rel")
			r.doc.lose(rel)
			r.setHeadLinks(r.textLink(r.doc.Links))
		}
	case "image":
		r.rssImage()
		return false
	case "language":
		r.doc.Language, r.ranks.language = r.languageText(), 1
		return false
	default:
		return false
	}
	return true
}

// foreignHead reads an element of another vocabulary in the head section.
func (r *reader) foreignHead() (known bool) {
	n := r.updateRank()
	switch space, local := r.space(), r.s.Local(); {
	case n > r.ranks.updated:
		r.doc.Updated, r.ranks.updated = r.timeText(), n
	case r.ranks.title == 0 && space == vocab.DC && local == "title":
		r.doc.Title, r.ranks.title = r.headText(r.textConstruct().Plain(), r.s.Offset()), 1
	case r.ranks.language == 0 && space == vocab.DC && local == "language":
		r.doc.Language = r.languageText()
		return false
	case space == vocab.ITunes && local == "image":
		href, _ := r.s.Attr("", "href")
		r.setIcon(r.reference(trim(href), r.s.Offset()), 1)
		return false
	default:
		return r.headElement()
	}
	return true
}

// rssImage reads the image of a channel.
func (r *reader) rssImage() {
	for depth := r.s.Depth(); r.child(depth); {
		if vocab.RSSName(r.s.Local()) == "url" {
			r.icon(2)
		}
	}
}

// languageText reads a language tag; "" if it is too long to be one (RFC 5646 §4.4.1).
func (r *reader) languageText() string {
	if lang := r.plainText(); len(lang) <= 64 {
		return lang
	}
	return ""
}

// updateRank recognises the extensions that say when something changed, because RSS 2.0
// has no such element for items (5005#22). The highest rank counts.
func (r *reader) updateRank() int {
	switch r.space() {
	case vocab.Atom:
		if r.s.Local() == "updated" {
			return 3
		}
	case vocab.DCTerms:
		if r.s.Local() == "modified" {
			return 2
		}
	case vocab.DC:
		if r.s.Local() == "date" {
			return 1
		}
	}
	return 0
}

// isPublished reports whether the current element is an extension that says when an
// item was published.
func (r *reader) isPublished() bool {
	switch r.s.Local() {
	case "issued", "created":
		return r.space() == vocab.DCTerms
	case "published":
		return r.space() == vocab.Atom
	}
	return false
}

// permalink returns the attribute of guid that says whether it is a URL.
func (r *reader) permalink() (value string, ok bool) {
	for _, a := range r.s.Attrs() {
		if a.Space == "" && (a.Local == "isPermaLink" || strings.EqualFold(a.Local, "isPermaLink")) {
			return a.Value(), true
		}
	}
	return "", false
}

// rssItem reads the current item.
func (r *reader) rssItem() {
	e := r.beginEntry()
	if e == nil {
		return
	}
	depth, lenient := r.s.Depth(), r.s.Lenient()
	about, _ := r.s.Attr(vocab.RDF, "about")
	rank, permalink, atomID := 0, false, ""
	var texts textFinder
	for r.child(depth) {
		if !r.isRSS() {
			texts.look(r, r.s.Local())
			switch n := r.updateRank(); {
			case n > rank:
				e.Updated, rank = r.timeText(), n
			case atomID == "" && r.s.Local() == "id" && vocab.IsAtom(r.space()):
				atomID = r.plainText()
			case e.Published.IsZero() && r.isPublished():
				e.Published = r.timeText()
			case r.s.Local() == "link" && vocab.IsAtom(r.space()):
				r.addLinks(r.atomLink)
			}
			continue
		}
		name := r.rssLocal()
		texts.look(r, name)
		switch name {
		case "guid":
			value, ok := r.permalink()
			if id := r.idText(e); e.ID == "" {
				e.ID = id
				permalink = !ok || strings.EqualFold(trim(value), "true")
			}
		case "pubDate": // not an update time: an updated item keeps it
			e.Published = r.timeText()
		case "link":
			if _, ok := r.s.Attr("", "href"); ok {
				r.addLinks(r.atomLink)
			} else {
				garbled := r.s.Mender.Garbled()
				r.addLinks(r.textLink)
				r.linkGarbled = r.linkGarbled || r.s.Mender.Garbled() > garbled
			}
		case "enclosure":
			r.addLinks(r.enclosure)
		case "id", "published", "updated":
			r.atomInRSS(e, &atomID, &rank)
		}
	}
	e.Links = r.takeLinks()
	if e.ID == "" {
		e.ID = cmp.Or(trim(about), atomID)
	} else if permalink && iri.IsHTTP(e.ID) && !e.Links.has(RelAlternate) {
		e.Links = append(e.Links, Link{Rel: RelAlternate, Href: e.ID})
	}
	r.endEntry(e, lenient, &texts)
}

// atomInRSS reads an element of Atom that an item has without its namespace, unless
// the item has a better one.
func (r *reader) atomInRSS(e *Entry, id *string, rank *int) {
	local, offset := r.s.Local(), r.s.Offset()
	switch {
	case local == "id" && *id == "":
		*id = r.plainText()
	case local == "published" && e.Published.IsZero():
		e.Published = r.timeText()
	case local == "updated" && *rank == 0:
		e.Updated = r.timeText()
	default:
		return
	}
	r.odd = true
	r.note("name-misspelt", "the element "+local+", which is not in RSS, is read as Atom's", offset)
}

// textLink reads RSS's link element, whose text is the reference.
func (r *reader) textLink(links Links) Links { return r.appendText(links, RelAlternate) }

// enclosure reads an enclosure as the link that Atom has for it.
func (r *reader) enclosure(links Links) Links {
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
