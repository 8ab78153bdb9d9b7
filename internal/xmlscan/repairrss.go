package xmlscan

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/markup"
	"github.com/feedhistory/feedhistory/internal/vocab"
)

// rssElement returns an RSS document's current element repaired, or that it is valid.
func (r *reviser) rssElement() (repaired string, valid bool) {
	if space := r.Space(); space != "" {
		return r.rssExtension(space)
	}
	switch name := r.Local(); name {
	case "title", "description":
		return r.rssText(name)
	case "link", "comments", "docs":
		return r.rssURL(name)
	case "pubDate":
		return r.pubDate()
	case "category":
		return r.rssCategory()
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
		return "", vocab.IsLanguage(r.plainText()) && r.once(name)
	case "image", "textInput":
		return r.rssImageElement(name)
	default:
		return r.unnamed(name)
	}
}

// rssWritten returns an element with text; "" without any.
func (r *reviser) rssWritten(name, text string) string {
	if text == "" {
		return ""
	}
	return r.written(func(w *Markup) { w.Element(name, text) })
}

// rssExtension repairs an element of another vocabulary: the texts and dates that are read
// as the item's own, and elements of RSS 1.0.
func (r *reviser) rssExtension(space string) (repaired string, valid bool) {
	switch local := r.Local(); {
	case space == vocab.Content && local == "encoded":
		body := r.textOrMarkup(Construct{Type: "html", Base: r.base()}).absolute()
		return r.rssWritten(`content:encoded xmlns:content="`+vocab.Content+`"`, body), !r.Nested()
	case space == vocab.DC && local == "date", space == vocab.Atom && (local == "updated" || local == "published"):
		text, t := r.date()
		if t.IsZero() {
			return "", false
		}
		name := `atom:` + local + ` xmlns:atom="` + space + `"`
		if space == vocab.DC {
			name = `dc:` + local + ` xmlns:dc="` + space + `"`
		}
		dated := space == vocab.DC && len(text) == len(time.DateOnly) && text == t.Format(time.DateOnly)
		return r.rssWritten(name, t.Format(time.RFC3339Nano)), dated || feedtime.IsRFC3339(text)
	case vocab.RDFVersion(space) != "":
		return "", false
	}
	return "", !strings.ContainsAny(space, " \t\r\n")
}

// rssText repairs a title or description, which has text without elements.
func (r *reviser) rssText(name string) (repaired string, valid bool) {
	if r.entry == nil || !r.once(name) {
		return "", false
	}
	valid = r.hasOnly()
	kind, _ := r.Attr("", "type")
	t := r.textOrMarkup(Construct{Type: "html", Base: r.base()})
	valid = valid && !r.Nested()
	body := t.absolute()
	switch {
	case name == "description":
	case r.Nested() || strings.EqualFold(kind, "html"):
		body = markup.Plain(t.Body)
	default:
		body = Unescape(t.Body)
	}
	if body == "" {
		return "<" + name + "></" + name + ">", valid
	}
	return r.rssWritten(name, body), valid
}

// rssCategory repairs a category, which needs a name.
func (r *reviser) rssCategory() (repaired string, valid bool) {
	valid = r.hasOnly("domain")
	domain, _ := r.Attr("", "domain")
	text := r.plainText()
	if text == "" {
		return "", false
	}
	return r.written(func(w *Markup) {
		w.Open("category", "domain", domain)
		w.WriteByte('>')
		WriteText(&w.Builder, text)
		w.WriteString("</category>")
	}), valid && !r.Nested()
}

// rssURL repairs an element that has a URL: it becomes an absolute URI.
func (r *reviser) rssURL(name string) (repaired string, valid bool) {
	if _, ok := r.Attr("", "href"); ok && name == "link" {
		links := r.links()
		return r.written(func(w *Markup) {
			for _, l := range links {
				r.rssLink(w, l)
			}
		}), false
	}
	valid = r.hasOnly()
	base := r.base()
	ref := r.plainText()
	if ref == "" {
		return "", false
	}
	abs := iri.Resolve(base, ref)
	if name == "link" && r.entry != nil {
		valid = valid && !r.seen[name] && iri.URI(ref) == ref
		return r.written(func(w *Markup) { r.rssLink(w, Link{Rel: "alternate", Href: abs}) }), valid
	}
	uri := iri.URI(abs)
	return r.rssWritten(name, uri), valid && uri == ref && r.once(name)
}

// rssLink writes a link: the first alternate has an element of RSS.
func (r *reviser) rssLink(w *Markup, l Link) {
	uri := iri.URI(l.Href)
	switch {
	case l.Rel == "alternate" && uri != "" && r.alternates["link"] == uri:
	case l.Rel == "alternate" && uri != "" && r.once("link"):
		r.alternates["link"] = uri
		w.Element("link", uri)
	default:
		w.Link(`atom:link xmlns:atom="`+vocab.Atom+`"`, l)
	}
}

// pubDate repairs a date. One that cannot be read is left out.
func (r *reviser) pubDate() (repaired string, valid bool) {
	text, t := r.date()
	valid = feedtime.IsRFC822(text)
	if r.entry != nil {
		valid, t = valid && t.Equal(r.entry.Published), r.entry.Published
	}
	if t.IsZero() || !r.once("pubDate") {
		return "", false
	}
	return r.rssWritten("pubDate", t.Format(time.RFC1123Z)), valid
}

// contact repairs an email address; a name alone gets the given element instead.
func (r *reviser) contact(other string) (repaired string, valid bool) {
	name, unique := r.Local(), r.hasOnly()
	text := r.plainText()
	if vocab.IsContact(text) && !r.Nested() && unique && r.once(name) {
		return "", true
	}
	return r.rssWritten(other+` xmlns:dc="`+vocab.DC+`"`, text), false
}

// guid repairs the item's id: a guid that is not a URL is no permanent link.
func (r *reviser) guid() (repaired string, valid bool) {
	e := r.entry
	value, given := "", false
	for _, a := range r.Attrs() {
		if a.Space == "" && strings.EqualFold(a.Local, "isPermaLink") {
			value, given = a.Value(), true
		}
	}
	exact := r.hasOnly("isPermaLink") && (!given || value == "true" || value == "false")
	text := r.plainText()
	if e == nil || text == "" || !r.once("guid") {
		return "", false
	}
	permalink := (!given || strings.EqualFold(Trim(value), "true")) && iri.URI(text) == text && iri.IsHTTP(text)
	name := "guid"
	if !permalink {
		name = `guid isPermaLink="false"`
	}
	return r.rssWritten(name, e.ID), exact && text == e.ID && (permalink || value == "false")
}

// rssEnclosure repairs an enclosure, which has three attributes.
func (r *reviser) rssEnclosure() (repaired string, valid bool) {
	url, _ := r.Attr("", "url")
	length, _ := r.Attr("", "length")
	kind, _ := r.Attr("", "type")
	valid = iri.URI(url) == url && isNumber(length) && vocab.IsMediaType(kind) && r.hasOnly("url", "length", "type")
	for _, a := range r.Attrs() {
		switch {
		case a.Space != "":
		case strings.EqualFold(a.Local, "url"):
			url = a.Value()
		case strings.EqualFold(a.Local, "type"):
			kind = a.Value()
		case strings.EqualFold(a.Local, "length"):
			length = a.Value()
		}
	}
	if url = iri.Resolve(r.base(), url); iri.URI(url) == "" {
		return "", false
	}
	r.has.enclosure = cmp.Or(r.has.enclosure, url)
	return r.written(func(w *Markup) { w.Enclosure(Link{Href: url, Type: kind, Length: length}) }), valid
}

// rssSource repairs the source of an item, which needs a URL.
func (r *reviser) rssSource() (repaired string, valid bool) {
	url, _ := r.Attr("", "url")
	valid, base := r.hasOnly("url"), r.base()
	text := r.plainText()
	switch uri := iri.URI(iri.Resolve(base, Trim(url))); {
	case r.entry == nil, !r.once("source"):
		return "", false
	case url == "" || uri == "":
		return r.rssWritten(`dc:source xmlns:dc="`+vocab.DC+`"`, text), false
	default:
		return r.written(func(w *Markup) {
			w.Open("source", "url", uri)
			w.WriteByte('>')
			WriteText(&w.Builder, text)
			w.WriteString("</source>")
		}), valid && uri == url && !r.Nested()
	}
}

// rssImageElement repairs an image or a text input: its parts are in a fixed form.
func (r *reviser) rssImageElement(name string) (repaired string, valid bool) {
	parts, base := map[string]string{}, r.base()
	valid = r.hasOnly()
	for depth := r.Depth(); r.Child(depth); {
		local := r.Local()
		if r.Space() != "" {
			continue
		}
		text := r.plainText()
		switch _, again := parts[local]; local {
		case "url", "link":
			uri := iri.URI(iri.Resolve(base, text))
			parts[local], valid = uri, valid && !again && uri == text
		case "title", "description":
			parts[local], valid = text, valid && !again && !r.Nested()
		case "name":
			parts[local], valid = text, valid && !again && name == "textInput"
		case "width", "height":
			n, _ := strconv.Atoi(text)
			most := map[string]int{"width": 144, "height": 400}[local]
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
	return r.written(func(w *Markup) {
		w.WriteString("<" + name + ">")
		for _, part := range order {
			if parts[part] != "" || name == "textInput" {
				w.Element(part, parts[part])
			}
		}
		w.WriteString("</" + name + ">")
	}), valid && len(parts) >= 3
}

// unnamed repairs an element of no vocabulary: some are the item's texts under another
// name. RSS allows only its own.
func (r *reviser) unnamed(name string) (repaired string, valid bool) {
	if vocab.IsOneOfRSS(name, r.entry != nil) {
		return "", r.once(name)
	}
	if r.entry == nil {
		return "", false
	}
	if vocab.RSSTextRank("content", name) > 0 && r.once("content:encoded") {
		body := r.textOrMarkup(Construct{Type: "html", Base: r.base()}).absolute()
		return r.rssWritten(`content:encoded xmlns:content="`+vocab.Content+`"`, body), false
	}
	return "", false
}

// addRSS adds the title or description that an item must have.
func (r *reviser) addRSS() {
	if !r.seen["title"] && (r.entry.Title != "" || !r.seen["description"]) {
		r.add(r.written(func(w *Markup) { w.Element("title", r.entry.Title) }))
	}
	if r.has.enclosure != "" && !r.seen["link"] && !r.seen["description"] {
		if uri := iri.URI(r.has.enclosure); uri != "" {
			r.add(r.rssWritten("link", uri))
		}
	}
}
