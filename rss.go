package feedhistory

import (
	"math"
	"strings"
)

// RSS 2.0, 0.9x and 1.0, with the extensions of RFC 5005 Appendix B: links are
// Atom links, under any prefix, and the flags keep their namespace.

// isRSS reports whether the current element is one of RSS's own.
func (r *reader) isRSS() bool {
	switch space := r.s.Space(); space {
	case "", r.native,
		"http://purl.org/rss/1.0/",
		"http://channel.netscape.com/rdf/simple/0.9/",
		"http://my.netscape.com/rdf/simple/0.9/":
		return true
	default:
		return strings.HasPrefix(space, "http://backend.userland.com/rss")
	}
}

// rss reads the children of the root: a channel, and in RSS 1.0 the items.
func (r *reader) rss() {
	depth := r.s.Depth()
	r.enter()
	for r.child(depth) {
		if !r.isRSS() {
			continue
		}
		switch r.s.Local() {
		case "channel":
			r.channel()
		case "item":
			r.rssItem()
		}
	}
}

// channel reads the head section, and the items among it.
func (r *reader) channel() {
	depth, rank := r.s.Depth(), 0
	r.enter()
	for r.child(depth) {
		if r.scheduleElement() {
			continue
		}
		if !r.isRSS() {
			switch n := r.updateRank(); {
			case n > rank:
				r.doc.Updated, rank = r.timeText(), n
			case r.headElement():
			default:
				r.keep()
			}
			continue
		}
		switch r.s.Local() {
		case "item":
			r.rssItem()
		case "title":
			r.doc.Title = r.plainText()
		case "description":
			r.doc.Subtitle = r.plainText()
		case "lastBuildDate": // 5005#22
			r.doc.Updated, rank = r.timeText(), math.MaxInt
		case "link":
			if _, ok := r.s.Attr("", "href"); ok {
				r.headLink()
			} else {
				r.setHeadLinks(r.appendText(r.doc.Links, RelAlternate))
			}
		default:
			r.keep()
		}
	}
}

// updateRank recognises the extensions that say when something changed, which
// RSS 2.0 itself does not of its items (5005#22): the highest counts.
func (r *reader) updateRank() int {
	switch r.s.Space() {
	case nsAtom:
		if r.s.Local() == "updated" {
			return 3
		}
	case nsDCTerms:
		if r.s.Local() == "modified" {
			return 2
		}
	case nsDC:
		if r.s.Local() == "date" {
			return 1
		}
	}
	return 0
}

// rssItem reads the current item.
func (r *reader) rssItem() {
	e := r.beginEntry()
	if e == nil {
		return
	}
	depth, start, lenient := r.s.Depth(), r.s.Offset(), r.s.Lenient()
	about, _ := r.s.Attr(nsRDF, "about")
	rank, permalink := 0, false
	for r.child(depth) {
		if !r.isRSS() {
			switch n := r.updateRank(); {
			case n > rank:
				e.Updated, rank = r.timeText(), n
			case r.s.Local() == "link" && isAtom(r.s.Space()):
				r.addLinks(r.atomLink(r.own))
			}
			continue
		}
		switch r.s.Local() {
		case "guid":
			value, ok := r.s.Attr("", "isPermaLink")
			if id := r.idText(e); e.ID == "" {
				e.ID = id
				permalink = !ok || strings.EqualFold(trim(value), "true")
			}
		case "pubDate": // not an update time: what is published again keeps it
			e.Published = r.timeText()
		case "link":
			if _, ok := r.s.Attr("", "href"); ok {
				r.addLinks(r.atomLink(r.own))
			} else {
				garbled := r.s.Garbled()
				r.addLinks(r.appendText(r.own, RelAlternate))
				r.linkGarbled = r.linkGarbled || r.s.Garbled() > garbled
			}
		case "enclosure":
			r.addLinks(r.enclosure(r.own))
		}
	}
	e.Links = r.takeLinks()
	if e.ID == "" {
		e.ID = trim(about)
	} else if permalink && isHTTP(e.ID) && !e.Links.has(RelAlternate) {
		e.Links = append(e.Links, Link{Rel: RelAlternate, Href: e.ID})
	}
	r.endEntry(e, start, lenient)
}

func isHTTP(u string) bool {
	return strings.HasPrefix(u, "http://") || strings.HasPrefix(u, "https://")
}

// enclosure reads RSS's element as the link that it is in Atom.
func (r *reader) enclosure(links Links) Links {
	offset := r.s.Offset()
	url, _ := r.s.Attr("", "url")
	if trim(url) == "" {
		return links
	}
	link := Link{Rel: RelEnclosure, Href: r.reference(url, offset)}
	link.Type, _ = r.s.Attr("", "type")
	link.Length, _ = r.s.Attr("", "length")
	if link.Href == "" {
		return links
	}
	return append(links, link)
}
