package feedhistory

import (
	"cmp"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// rssElement returns an RSS document's current element repaired, or that it is valid.
func (r *repairer) rssElement() (repaired string, valid bool) {
	if space := r.s.Space(); space != "" {
		return r.rssExtension(space)
	}
	switch name := r.s.Local(); name {
	case "title", "description":
		return r.rssText(name)
	case "link", "comments", "docs":
		return r.rssURL(name)
	case "pubDate":
		return r.pubDate()
	case "category":
		valid = r.hasOnly("domain") && r.plainText() != "" && !r.s.Nested()
		return r.rssWritten("category", r.plainText()), valid
	case "author", "managingEditor":
		return r.contact("dc:creator")
	case "webMaster":
		return r.contact("dc:publisher")
	case "guid":
		return r.guid()
	case "enclosure":
		return r.rssEnclosure()
	case "source":
		return r.rssSource()
	case "language":
		return "", vocab.IsLanguage(r.languageText()) && r.once(name)
	case "image", "textInput":
		return r.rssImageElement(name)
	default:
		return r.unnamed(name)
	}
}

// rssWritten returns an element with text; "" without any.
func (r *repairer) rssWritten(name, text string) string {
	if text == "" {
		return ""
	}
	return r.written(func(w *xmlWriter) { w.element(name, text) })
}

// rssExtension repairs an element of another vocabulary: the texts and dates that are read
// as the item's own, and elements of RSS 1.0.
func (r *repairer) rssExtension(space string) (repaired string, valid bool) {
	switch local := r.s.Local(); {
	case space == vocab.Content && local == "encoded":
		body := r.textOrMarkup(Text{Type: TextHTML, Base: r.currentBase()}).absolute()
		return r.rssWritten(`content:encoded xmlns:content="`+vocab.Content+`"`, body), !r.s.Nested()
	case space == vocab.DC && local == "date", space == vocab.Atom && (local == "updated" || local == "published"):
		text := r.plainText()
		t, ok := r.date(text)
		if !ok {
			return "", false
		}
		name := `atom:` + local + ` xmlns:atom="` + space + `"`
		if space == vocab.DC {
			name = `dc:` + local + ` xmlns:dc="` + space + `"`
		}
		dated := space == vocab.DC && len(text) == len(time.DateOnly) && text == t.Format(time.DateOnly)
		return r.rssWritten(name, t.Format(time.RFC3339Nano)), dated || feedtime.IsRFC3339(text)
	case r.isRSS():
		return "", false
	}
	return "", !strings.ContainsAny(space, " \t\r\n")
}

// rssText repairs a title or description, which has text without elements.
func (r *repairer) rssText(name string) (repaired string, valid bool) {
	if r.entry == nil || !r.once(name) {
		return "", false
	}
	valid = r.hasOnly()
	text := r.textConstruct()
	valid = valid && !r.s.Nested()
	body := text.html()
	if name == "title" {
		body = text.Plain()
	}
	if body == "" {
		return "<" + name + "></" + name + ">", valid
	}
	return r.rssWritten(name, body), valid
}

// rssURL repairs an element that has a URL: it becomes an absolute URI.
func (r *repairer) rssURL(name string) (repaired string, valid bool) {
	if _, ok := r.s.Attr("", "href"); ok && name == "link" {
		links := r.atomLink(nil)
		return r.written(func(w *xmlWriter) {
			for _, l := range links {
				r.rssLink(w, l)
			}
		}), false
	}
	valid = r.hasOnly()
	base := r.currentBase()
	ref := r.plainText()
	if ref == "" {
		return "", false
	}
	abs := iri.Resolve(base, ref)
	if name == "link" && r.entry != nil {
		valid = valid && !r.seen[name] && iri.URI(ref) == ref
		return r.written(func(w *xmlWriter) { r.rssLink(w, Link{Rel: RelAlternate, Href: abs}) }), valid
	}
	uri := iri.URI(abs)
	return r.rssWritten(name, uri), valid && uri == ref && r.once(name)
}

// rssLink writes a link: the first alternate has an element of RSS.
func (r *repairer) rssLink(w *xmlWriter, l Link) {
	uri := iri.URI(l.Href)
	switch {
	case l.Rel == RelAlternate && uri != "" && r.alternates["link"] == uri:
	case l.Rel == RelAlternate && uri != "" && r.once("link"):
		r.alternates["link"] = uri
		w.element("link", uri)
	default:
		w.link(`atom:link xmlns:atom="`+vocab.Atom+`"`, l)
	}
}

// pubDate repairs a date. One that cannot be read is left out.
func (r *repairer) pubDate() (repaired string, valid bool) {
	text := r.plainText()
	t, ok := r.date(text)
	if r.entry != nil {
		t, ok = r.entry.Published, ok && t.Equal(r.entry.Published)
	}
	if t.IsZero() || !r.once("pubDate") {
		return "", false
	}
	return r.rssWritten("pubDate", t.Format(time.RFC1123Z)), ok && feedtime.IsRFC822(text)
}

// contact repairs an email address; a name alone gets the given element instead.
func (r *repairer) contact(other string) (repaired string, valid bool) {
	name, unique := r.s.Local(), r.hasOnly()
	text := r.plainText()
	if vocab.IsContact(text) && !r.s.Nested() && unique && r.once(name) {
		return "", true
	}
	return r.rssWritten(other+` xmlns:dc="`+vocab.DC+`"`, text), false
}

// guid repairs the item's id: a guid that is not a URL is no permanent link.
func (r *repairer) guid() (repaired string, valid bool) {
	e := r.entry
	value, given := r.permalink()
	exact := r.hasOnly("isPermaLink") && (!given || value == "true" || value == "false")
	text := r.plainText()
	if e == nil || text == "" || !r.once("guid") {
		return "", false
	}
	permalink := (!given || strings.EqualFold(trim(value), "true")) && iri.URI(text) == text && iri.IsHTTP(text)
	name := "guid"
	if !permalink {
		name = `guid isPermaLink="false"`
	}
	return r.rssWritten(name, e.ID), exact && text == e.ID && (permalink || value == "false")
}

// rssEnclosure repairs an enclosure, which has three attributes.
func (r *repairer) rssEnclosure() (repaired string, valid bool) {
	url, _ := r.s.Attr("", "url")
	length, _ := r.s.Attr("", "length")
	kind, _ := r.s.Attr("", "type")
	valid = iri.URI(url) == url && isNumber(length) && vocab.IsMediaType(kind) && r.hasOnly("url", "length", "type")
	links := r.enclosure(nil)
	if len(links) == 0 || iri.URI(links[0].Href) == "" {
		return "", false
	}
	return r.written(func(w *xmlWriter) { w.enclosure(links[0]) }), valid
}

// rssSource repairs the source of an item, which needs a URL.
func (r *repairer) rssSource() (repaired string, valid bool) {
	url, _ := r.s.Attr("", "url")
	valid, base := r.hasOnly("url"), r.currentBase()
	text := r.plainText()
	switch uri := iri.URI(iri.Resolve(base, trim(url))); {
	case r.entry == nil, !r.once("source"):
		return "", false
	case url == "" || uri == "":
		return r.rssWritten(`dc:source xmlns:dc="`+vocab.DC+`"`, text), false
	default:
		return r.written(func(w *xmlWriter) {
			w.open("source", "url", uri)
			w.b.WriteByte('>')
			xmlscan.WriteText(&w.b, text)
			w.b.WriteString("</source>")
		}), valid && uri == url && !r.s.Nested()
	}
}

// rssImageElement repairs an image or a text input: its parts are in a fixed form.
func (r *repairer) rssImageElement(name string) (repaired string, valid bool) {
	parts, base := map[string]string{}, r.currentBase()
	valid = r.hasOnly()
	for depth := r.s.Depth(); r.s.Child(depth); {
		local := r.s.Local()
		if r.s.Space() != "" {
			continue
		}
		text := r.plainText()
		switch _, again := parts[local]; local {
		case "url", "link":
			uri := iri.URI(iri.Resolve(base, text))
			parts[local], valid = uri, valid && !again && uri == text
		case "title", "description":
			parts[local], valid = text, valid && !again && !r.s.Nested()
		case "name":
			parts[local], valid = text, valid && !again && name == "textInput"
		case "width", "height":
			n, most := count(text), map[string]int{"width": 144, "height": 400}[local]
			valid = valid && !again && n > 0 && n <= most && isNumber(text)
		default:
			valid = false
		}
	}
	first, order := "url", []string{"url", "title", "link", "description"}
	if name == "textInput" {
		first, order = "link", []string{"title", "description", "name", "link"}
	}
	if r.entry != nil || !r.once(name) || parts[first] == "" {
		return "", false
	}
	parts["title"] = cmp.Or(parts["title"], name)
	parts["link"] = cmp.Or(parts["link"], parts["url"])
	return r.written(func(w *xmlWriter) {
		w.b.WriteString("<" + name + ">")
		for _, part := range order {
			if parts[part] != "" || name == "textInput" {
				w.element(part, parts[part])
			}
		}
		w.b.WriteString("</" + name + ">")
	}), valid && len(parts) >= 3
}

// unnamed repairs an element of no vocabulary: some are the item's texts under another
// name. RSS allows only its own.
func (r *repairer) unnamed(name string) (repaired string, valid bool) {
	if vocab.IsOneOfRSS(name, r.entry != nil) {
		return "", r.once(name)
	}
	if r.entry == nil {
		return "", false
	}
	if rank := r.textRank("content"); rank > 0 && !r.seen["content"] {
		r.seen["content"] = true
		return r.rssWritten(`content:encoded xmlns:content="`+vocab.Content+`"`, r.entry.Content().html()), false
	}
	return "", false
}

// addRSS adds the title or description that an item must have.
func (r *repairer) addRSS() {
	title := r.entry.Title().Plain()
	if !r.seen["title"] && (title != "" || !r.seen["description"]) {
		r.add(r.written(func(w *xmlWriter) { w.element("title", title) }))
	}
}
