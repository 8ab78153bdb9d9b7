package feedhistory

import (
	"cmp"
	"math"

	"github.com/feedhistory/feedhistory/internal/feedxml"
)

// RSS 2.0, 0.9x and 1.0, with the extensions of RFC 5005 Appendix B: Atom links, under
// any prefix, and the flags in their namespace.

// rss reads the children of the root: a channel, and in RSS 1.0 the items.
func (r *documentReader) rss() {
	depth := r.Depth()
	r.doc.version, _ = r.Attr("", "version")
	r.doc.Language = r.Language()
	r.enter()
	for r.Child(depth) {
		if !r.IsRSS() {
			continue
		}
		local := r.RSSLocal()
		r.NoteName(local)
		switch local {
		case "channel":
			r.doc.version = cmp.Or(r.doc.version, feedxml.RDFVersion(r.Space()))
			r.channel()
		case "item":
			r.entry()
		case "items":
			r.wrapped("item")
		case "image": // of RSS 1.0
			r.keep(func() bool { r.rssImage(); return true })
		}
	}
}

// channel reads the head section and the items in it.
func (r *documentReader) channel() {
	depth := r.Depth()
	r.head.ranks.title, r.head.ranks.updated = 0, 0
	r.enter()
	for r.Child(depth) {
		local, own := r.RSSLocal(), r.IsRSS()
		if own {
			r.NoteName(local)
		}
		switch {
		case own && local == "item":
			r.entry()
		case own && local == "items":
			r.wrapped("item")
		default:
			r.keep(r.rssHead)
		}
	}
}

// rssHead reads the current element of the head section, and reports whether the
// Document's fields express all of it.
func (r *documentReader) rssHead() (known bool) {
	if r.scheduleElement() {
		return true
	}
	if !r.IsRSS() {
		return r.foreignHead()
	}
	switch r.RSSLocal() {
	case "title":
		r.doc.Title, r.head.ranks.title = r.head.shorten(r.Construct().Plain(), r.Offset()), 1
	case "description":
		text := r.TextOrMarkup(feedxml.Construct{Type: TextPlain, Base: r.Base()}).Plain()
		r.doc.Subtitle = r.head.shorten(text, r.Offset())
	case "lastBuildDate": // 5005#22
		r.doc.Updated, r.head.ranks.updated = r.timeText(), math.MaxInt
	case "link":
		if _, ok := r.Attr("", "href"); ok {
			r.headLink()
		} else {
			rel, _ := r.Attr("", "rel")
			r.doc.lose(rel)
			r.setLinks(r.textLink(r.doc.Links))
		}
	case "image":
		r.rssImage()
		return false
	case "pubDate":
		r.head.publish(r.timeText(), 9)
		return false
	case "language":
		r.doc.Language, r.head.ranks.language = r.LanguageText(), 1
		return false
	default:
		return false
	}
	return true
}

// foreignHead reads an element of another vocabulary in the head section.
func (r *documentReader) foreignHead() (known bool) {
	if n := feedxml.PublishedRank(r.Space(), r.Local()); n > 0 {
		r.head.publish(r.timeText(), n)
		return false
	}
	n := feedxml.UpdateRank(r.Space(), r.Local())
	switch space, local := r.Space(), r.Local(); {
	case n > r.head.ranks.updated:
		r.doc.Updated, r.head.ranks.updated = r.timeText(), n
	case r.head.ranks.title == 0 && space == feedxml.DC && local == "title":
		r.doc.Title, r.head.ranks.title = r.head.shorten(r.Construct().Plain(), r.Offset()), 1
	case r.head.ranks.language == 0 && space == feedxml.DC && local == "language":
		r.doc.Language = r.LanguageText()
		return false
	case space == feedxml.ITunes && local == "image":
		href, _ := r.Attr("", "href")
		r.head.setIcon(r.Reference(trim(href), r.Offset()), 1)
		return false
	default:
		return r.headElement()
	}
	return true
}

// rssImage reads the image of a channel.
func (r *documentReader) rssImage() {
	for depth := r.Depth(); r.Child(depth); {
		if feedxml.RSSName(r.Local()) == "url" {
			r.icon(2)
		}
	}
}
