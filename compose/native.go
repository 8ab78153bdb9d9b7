package compose

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// The parts of the model that both formats have, each written by the format's own element. If
// RSS's element expresses only a part, an element of Atom is written as well.

var _ = door.OpenWriter(func(writer any) { writer.(*Writer).former = true })

// A description says which parts of a head section are written from a document's fields. The others
// are written as published, because the document is of the format and its fields still say the same.
type description map[feedxml.Meaning]bool

// describe returns the description of a document.
func (w *Writer) describe(d *feedhistory.Document) description {
	head := door.Root.Head(d)
	said := new(feedhistory.Document)
	isRDF := d.Format == feedhistory.RSS && (head.Version == "1.0" || head.Version == "0.9") // whose elements RSS 2.0 has not
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
	if w.format == feedhistory.RSS {
		written[feedxml.MeansAuthor] = differ(d.Authors, said.Authors)
		written[feedxml.MeansLanguage] = differ(d.Language, said.Language)
	} else {
		written[feedxml.MeansAuthor] = d.Format != feedhistory.Atom && len(d.Authors) > 0
		written[feedxml.MeansLanguage] = feedxml.IsLanguage(d.Language)
	}
	return written
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
	if w.format == feedhistory.RSS {
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
			w.b.Person(`contributor xmlns="`+feedxml.Atom+`"`, personXML(p))
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
	if (written[feedxml.MeansLogo] || written[feedxml.MeansIcon] && d.Logo == "") && image != "" && !hasRSS(d, "image") {
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

// atomParts writes the comments and the source of an item as Atom's.
func (w *Writer) atomParts(e *feedhistory.Entry, item *feedxml.Item) {
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

// rssParts writes the comments and the source of an entry as RSS's. It returns the meanings that
// are now complete, so that the entry's own elements for them are not written as well.
func (w *Writer) rssParts(e *feedhistory.Entry, item *feedxml.Item, comments string) (native []feedxml.Meaning) {
	if comments != "" && item.Comments == "" {
		w.b.Element("comments", iri.Writable(comments))
	}
	if item.Source.Atom == "" {
		return nil
	}
	source := e.Source()
	if source == nil {
		return nil
	}
	self, _ := source.Links.Rel("self")
	if uri := iri.URI(self.Href); uri != "" {
		w.b.Element("source", source.Title, "url", uri)
		if source.ID == "" && source.Updated.IsZero() && len(source.Authors) == 0 && len(source.Links) == 1 && len(source.Extensions()) == 0 {
			native = append(native, feedxml.MeansSource)
		}
	}
	return native
}
