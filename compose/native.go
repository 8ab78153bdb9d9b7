package compose

import (
	"cmp"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// The parts of the model that both formats have, each written by the format's own element. If
// RSS's element expresses only a part, an element of Atom is written as well.

var _ = door.OpenWriter(func(writer any, form int) { writer.(*Writer).form = form })

// A description says which parts of a head section are written from a document's fields. The others
// are written as published, because the document is of the format and its fields still say the same.
type description map[feedxml.Meaning]bool

// describe returns the description of a document.
func (w *Writer) describe(d *feedhistory.Document) description {
	head := door.Root.Head(d)
	said := new(feedhistory.Document)
	isRDF := d.Format == feedhistory.FormatRSS && (head.Version == "1.0" || head.Version == "0.9") // whose elements RSS 2.0 has not
	if d.Format == w.format && head.Scope != nil && !isRDF {
		said = door.Root.Published(d).(*feedhistory.Document)
	}
	differ := func(is, was any) bool { return !reflect.DeepEqual(is, was) }
	written := description{
		feedxml.MeansContributor: differ(d.Contributors, said.Contributors),
		feedxml.MeansCategory:    differ(d.Categories, said.Categories),
		feedxml.MeansRights:      differ(d.Rights, said.Rights),
		feedxml.MeansGenerator:   differ(d.Generator, said.Generator),
		feedxml.MeansLogo:        differ(d.Logo, said.Logo),
		feedxml.MeansIcon:        differ(d.Icon, said.Icon),
	}
	if w.format == feedhistory.FormatRSS {
		written[feedxml.MeansAuthor] = differ(d.Authors, said.Authors)
		written[feedxml.MeansLanguage] = differ(d.Language, said.Language)
	} else {
		written[feedxml.MeansAuthor] = d.Format != feedhistory.FormatAtom && len(d.Authors) > 0
		written[feedxml.MeansLanguage] = feedxml.IsLanguage(d.Language)
		for _, raw := range head.Others {
			if row := relativePicture(raw, head); row != nil && !w.isBefore(3) {
				written[row.Feed] = true
			}
		}
	}
	return written
}

// relativePicture returns the row of an icon or logo of Atom whose address is relative; nil for other
// elements. With the attribute for its base, readers take it for something else.
func relativePicture(raw string, head feedxml.Head) *feedxml.Row {
	r := feedxml.Again(raw, head.Scope, head.Format)
	defer r.Release()
	row := r.Row()
	if head.Format != feedxml.FormatAtom || row.Space != feedxml.Atom || row.Form != feedxml.URLForm {
		return nil
	}
	if text := r.PlainText(); iri.IsHTTP(text) {
		return nil
	}
	return row
}

// has reports whether an element with a row is not to be written, because a field says the same. An
// element of another vocabulary stays as published, unless each format has its own for its meaning.
func (d description) has(row *feedxml.Row, own bool) bool {
	if !d[row.Feed] || row.Space == feedxml.ITunes {
		return false
	}
	isImage := row.Form == feedxml.ImageForm // which has a title and a link, too
	return own && !isImage || row.Space == feedxml.RSS2 && !isImage || row.Flags&feedxml.NotKept != 0
}

// saysSame reports whether an element of Dublin Core says the same as the document's field for it.
func (d description) saysSame(raw string, row *feedxml.Row, doc *feedhistory.Document) bool {
	if !d[row.Feed] || row.Space != feedxml.DC {
		return false
	}
	r := feedxml.Again(raw, new(xmlscan.Scope), feedxml.Format(doc.Format))
	defer r.Release()
	switch text := r.PlainText(); row.Feed {
	case feedxml.MeansContributor:
		return true
	case feedxml.MeansRights:
		return text == doc.Rights.Body
	case feedxml.MeansLanguage:
		return text == doc.Language
	}
	return false
}

// isPlainImage reports whether an element of a head section is an image of RSS saying no more than a logo: its
// title and link are the channel's.
func isPlainImage(raw string, row *feedxml.Row, d *feedhistory.Document) bool {
	if row.Form != feedxml.ImageForm {
		return false
	}
	r := feedxml.Again(raw, new(xmlscan.Scope), feedxml.Format(d.Format))
	defer r.Release()
	home, _ := d.Links.Rel("alternate")
	for depth := r.Depth(); r.Child(depth); {
		switch local, text := r.Local(), r.PlainText(); {
		case local == "url", local == "title" && text == d.Title, local == "link" && iri.URI(text) == iri.URI(home.Href):
		default:
			return false
		}
	}
	return true
}

// atomDescription writes the parts of a head section in Atom.
func (w *Writer) atomDescription(d *feedhistory.Document, written description) {
	if written[feedxml.MeansContributor] {
		for _, p := range d.Contributors {
			w.b.Person("contributor", personXML(p))
		}
	}
	if written[feedxml.MeansCategory] {
		for _, c := range d.Categories {
			w.b.Category("category", feedxml.Category(c))
		}
	}
	if written[feedxml.MeansRights] {
		w.rights(d.Rights)
	}
	if g := d.Generator; written[feedxml.MeansGenerator] && g.Name != "" {
		w.b.Element("generator", g.Name, "uri", iri.Writable(g.URI), "version", g.Version)
	}
	if written[feedxml.MeansIcon] && d.Icon != "" && d.Icon != d.Logo {
		w.b.Element("icon", iri.Writable(d.Icon))
	}
	if written[feedxml.MeansLogo] && d.Logo != "" {
		w.b.Element("logo", iri.Writable(d.Logo))
	}
}

// rights writes atom:rights, unless there are none.
func (w *Writer) rights(t feedhistory.Text) {
	if t.Body == "" {
		return
	}
	kind := ""
	if t.Type == "html" || t.Type == "xhtml" {
		kind, t.Body = "html", t.HTML()
	}
	name := "rights"
	if w.format == feedhistory.FormatRSS {
		name = "atom:rights"
	}
	w.b.Element(name, t.Body, "type", kind)
}

// rssDescription writes the parts of a head section in RSS, with the channel's address.
func (w *Writer) rssDescription(d *feedhistory.Document, written description, home string) {
	if written[feedxml.MeansAuthor] && !slices.Equal(d.Authors, []feedhistory.Person{nominalAuthor(d)}) {
		for i, p := range d.Authors {
			w.rssPerson("managingEditor", personXML(p), i == 0)
		}
	}
	if written[feedxml.MeansContributor] {
		for _, p := range d.Contributors {
			w.rssContributor(personXML(p))
		}
	}
	if written[feedxml.MeansLanguage] && feedxml.IsLanguage(d.Language) {
		w.b.Element("language", d.Language)
	}
	if written[feedxml.MeansCategory] {
		for _, c := range d.Categories {
			w.rssCategory(feedxml.Category(c))
		}
	}
	if t := d.Rights; written[feedxml.MeansRights] && t.Body != "" {
		w.b.Element("copyright", t.Plain())
		if t.Type == "html" || t.Type == "xhtml" {
			w.rights(t)
		}
	}
	if g := d.Generator; written[feedxml.MeansGenerator] && g.Name != "" {
		w.b.Element("generator", strings.TrimSpace(g.Name+" "+g.Version))
		if g.URI+g.Version != "" {
			w.b.Element("atom:generator", g.Name, "uri", iri.Writable(g.URI), "version", g.Version)
		}
	}
	image := cmp.Or(d.Logo, d.Icon)
	if (written[feedxml.MeansLogo] || written[feedxml.MeansIcon] && d.Logo == "") && image != "" && !hasRSS(d, "image") && (w.isBefore(3) || !hasImage(d)) {
		w.b.WriteString("<image>\n")
		w.b.Element("url", iri.Writable(image))
		w.b.Element("title", cmp.Or(d.Title, image))
		w.b.Element("link", iri.Writable(cmp.Or(home, d.URL, image)))
		w.b.WriteString("</image>\n")
	}
	if written[feedxml.MeansIcon] && d.Icon != "" && d.Icon != d.Logo { // an image that is one is no logo
		w.b.Element("atom:icon", iri.Writable(d.Icon))
	}
}

// rssPerson writes a person by an element of RSS with an address and a name, if there is an address
// and the person may have it, or else by dc:creator. Atom's element says the rest.
func (w *Writer) rssPerson(name string, p feedxml.Person, mayBeOwn bool) {
	if mayBeOwn && w.contact(name, p) {
		if p.URI != "" {
			w.b.Person(feedxml.AtomAuthor, p)
		}
		return
	}
	if p.URI != "" || p.Name != "" && p.Email != "" {
		w.b.Person(feedxml.AtomAuthor, p)
	}
	w.b.Element(`dc:creator xmlns:dc="`+feedxml.DC+`"`, cmp.Or(p.Name, p.Email))
}

// contact writes a person by an element of RSS with an address and perhaps a name, and reports
// whether the person has a valid one.
func (w *Writer) contact(name string, p feedxml.Person) bool {
	text := p.Email
	if p.Name != "" {
		text += " (" + p.Name + ")"
	}
	if back := feedxml.PersonOf(text); !feedxml.IsContact(text) || back.Name != p.Name || back.Email != p.Email {
		return false
	}
	w.b.Element(name, text)
	return true
}

// rssCategory writes a category. RSS has no label.
func (w *Writer) rssCategory(c feedxml.Category) {
	if c.Label != "" && c.Label != c.Term {
		w.b.Category("atom:category", c)
	}
	w.b.Element("category", c.Term, "domain", c.Scheme)
}

// parts returns the parts of an entry to be converted, and the meanings of the elements which the
// document's format has instead of those of the entry.
func (w *Writer) parts(element feedxml.Element) (item *feedxml.Item, native []feedxml.Meaning) {
	item = new(feedxml.Item)
	if w.isBefore(2) {
		item.ReadLists(element)
		return item, nil
	}
	item.ReadParts(element)
	if w.format == feedhistory.FormatAtom && element.Format == feedxml.FormatRSS {
		native = append(native, feedxml.MeansComments, feedxml.MeansSource)
	}
	if element.Format != feedxml.FormatJSON && !w.isBefore(3) {
		native = append(native, feedxml.MeansContributor, feedxml.MeansRights)
		if w.format == feedhistory.FormatAtom && feedxml.IsLanguage(item.Language) {
			native = append(native, feedxml.MeansLanguage)
		}
	}
	return item, native
}

// atomParts writes those parts of an entry as Atom's that have one of the meanings.
func (w *Writer) atomParts(e *feedhistory.Entry, item *feedxml.Item, native []feedxml.Meaning) {
	if slices.Contains(native, feedxml.MeansContributor) {
		for _, p := range item.Contributors {
			w.b.Person("contributor", p)
		}
		w.rights(feedhistory.Text(item.Rights))
	}
	if !slices.Contains(native, feedxml.MeansSource) {
		return
	}
	hasLink := slices.ContainsFunc(e.Links, func(l feedhistory.Link) bool { return l.Rel == "replies" && l.Href == item.Comments })
	if item.Comments != "" && !hasLink {
		w.b.Link("link", feedxml.Link{Rel: "replies", Href: item.Comments, Type: "text/html"})
	}
	switch s := item.Source; {
	case s.Atom != "":
		w.b.WriteString(s.Atom + "\n")
	case s.Title+s.URL != "":
		w.b.WriteString("<source>")
		w.b.Element("title", s.Title)
		if s.URL != "" {
			w.b.Link("link", feedxml.Link{Rel: "self", Href: s.URL})
		}
		w.b.WriteString("</source>\n")
	}
}

// rssSource returns the source of an entry as RSS's, and whether that says all of it, so that the
// entry's own element is not written as well.
func (w *Writer) rssSource(e *feedhistory.Entry, item *feedxml.Item) (element string, isWhole bool) {
	if item.Source.Atom == "" {
		return "", false
	}
	source := e.Source()
	if source == nil {
		return "", false
	}
	self, _ := source.Links.Rel("self")
	uri := iri.URI(self.Href)
	if uri == "" {
		return "", false
	}
	var b feedxml.Markup
	b.Element("source", source.Title, "url", uri)
	return b.String(), source.ID == "" && source.Updated.IsZero() && len(source.Authors) == 0 && len(source.Links) == 1 && len(source.Extensions()) == 0
}

// rssParts writes the contributors and rights of an entry by elements of Dublin Core, which RSS has
// not, or by Atom's, if these say more.
func (w *Writer) rssParts(item *feedxml.Item, native []feedxml.Meaning) {
	if !slices.Contains(native, feedxml.MeansContributor) {
		return
	}
	for _, p := range item.Contributors {
		w.rssContributor(p)
	}
	switch t := item.Rights; {
	case t.Body == "":
	case t.Type == "html" || t.Type == "xhtml":
		w.rights(feedhistory.Text(t))
	default:
		w.b.Element(`dc:rights xmlns:dc="`+feedxml.DC+`"`, t.Body)
	}
}

// rssContributor writes a contributor of a feed or an entry.
func (w *Writer) rssContributor(p feedxml.Person) {
	if p.URI+p.Email != "" || w.isBefore(3) {
		w.b.Person(`contributor xmlns="`+feedxml.Atom+`"`, p)
		return
	}
	w.b.Element(`dc:contributor xmlns:dc="`+feedxml.DC+`"`, p.Name)
}

// mediaParts writes the picture and the duration of an item of a JSON Feed by the elements podcasts
// have.
func (w *Writer) mediaParts(e *feedhistory.Entry, element feedxml.Element) {
	if element.Format != feedxml.FormatJSON || w.isBefore(3) {
		return
	}
	for _, f := range e.Enclosures() {
		if f.Duration > 0 {
			w.b.Element(`itunes:duration xmlns:itunes="`+feedxml.ITunes+`"`, strconv.FormatInt(int64(f.Duration/time.Second), 10))
			break
		}
	}
	if image := e.Image(); image != "" {
		w.b.Empty(`media:thumbnail xmlns:media="`+feedxml.Media+`"`, "url", iri.Writable(image))
	}
}

// atomOfRSS2 returns an Atom entry in which the comments and the source of an item, which have
// travelled through a Draft, are Atom's own.
func atomOfRSS2(entry string) string {
	if !strings.Contains(entry, afterScheme) {
		return entry // nearly always
	}
	return travelledPart.ReplaceAllStringFunc(entry, func(element string) string {
		p := travelledPart.FindStringSubmatch(element)
		value := strings.ReplaceAll(p[3], `"`, "&#34;")
		switch {
		case p[1] == "comments" && p[2] == "" && !strings.Contains(entry, ` rel="replies"`):
			return `<link xmlns="` + feedxml.Atom + `" rel="replies" href="` + value + `" type="text/html"/>`
		case p[1] == "source" && !strings.Contains(entry, `<source xmlns="`+feedxml.Atom) && !strings.Contains(entry, "<source>"):
			return `<source xmlns="` + feedxml.Atom + `"><title>` + p[3] + `</title><link rel="self" href="` + p[2] + `"/></source>`
		}
		return element
	})
}

// afterScheme is the part of RSS2 to look for: in a long text, "b" is rarer than the "h" of each link.
const afterScheme = "backend.userland.com/rss2"

// travelledPart matches an element of RSS, with its name, url and text, for which Atom has one of its own.
var travelledPart = regexp.MustCompile(`(?m)^<(comments|source) xmlns="` + feedxml.RSS2 + `"(?: url="([^"]*)")?>([^<]*)</(?:comments|source)>$`)
