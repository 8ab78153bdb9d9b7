package feedhistory

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/markup"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// Entries as drafts, and drafts as entries.

// Draft returns the entry's fields. Draft.Entry makes an entry of them with the same
// content in Atom, with absolute links. For an entry made from a draft, Draft returns
// that draft. The authors are the feed's if the entry itself has none.
//
// Ill-formed XHTML becomes HTML, and other ill-formed markup becomes text. Updated may
// be zero, because RSS has no such time.
func (e *Entry) Draft() Draft {
	d := Draft{
		ID: e.ID, Updated: e.Updated, Published: e.Published, Links: slices.Clone(e.Links),
		Title: e.Title().draftable(), Summary: e.Summary().draftable(), Content: e.Content().draftable(),
	}
	switch {
	case e.raw == "":
	case e.format() == JSONFeed:
		item := e.decodeJSON()
		for _, p := range item.Authors {
			d.Authors = append(d.Authors, Person{Name: p.Name, URI: p.URL, Email: p.Email})
		}
		for _, tag := range item.Categories {
			d.addCategory(Category{Term: tag})
		}
	default:
		d.readElements(e)
	}
	if len(d.Authors) == 0 {
		d.Authors = slices.Clone(e.authors())
	}
	return d
}

// draftable returns a text with the same meaning, acceptable to Draft.Entry.
func (t Text) draftable() Text {
	if t.Body+t.Src == "" {
		return Text{}
	}
	if t.Type == TextPlain || t.Src != "" || !markup.MayBeRelative(t.Body) {
		t.Base = "" // nothing needs resolving
	}
	if t.Src != "" {
		t.Body = "" // RFC 4287 §4.1.3.2: the element is empty then
	}
	if _, err := xmlscan.Construct(t).Written(); err == nil {
		return t
	}
	if t.Type == TextXHTML {
		t.Type = TextHTML // readers show it in the same way
	} else {
		t.Type = "text/plain"
	}
	return t
}

// readElements reads the elements of which an entry may have several: authors,
// categories and extensions.
func (d *Draft) readElements(e *Entry) {
	raw := e.raw
	if e.lenient {
		raw = xmlscan.Standalone(raw, e.scope.Bindings, "")
	}
	r := feedxml.Fragment(raw, e.scope, feedxml.Format(e.format()))
	sc := r.NewScope()
	var others []Person // the authors in other vocabularies
	left := xmlscan.MaxInherited*len(raw) + xmlscan.MaxInheritedExtra
	for depth := r.Depth(); r.Child(depth); {
		start := r.Offset()
		if d.readElement(r, &others) || r.IsMapped() || r.IsOwn() && !r.IsCarried() {
			continue
		}
		r.Skip()
		element := sc.Alone(raw[start:r.End()], e.format() == RSS)
		if left -= len(element); left < 0 {
			break // too many declarations for the elements' length
		}
		if xmlscan.WellFormed(element) == nil {
			d.Extensions = append(d.Extensions, element)
		}
	}
	for _, p := range others {
		d.addAuthor(p)
	}
}

// readElement reads the current element of an entry, if it is an author or a category.
func (d *Draft) readElement(r *feedxml.Elements, others *[]Person) bool {
	space, local, atom := r.Space(), r.Local(), r.IsAtom()
	switch rss := r.Format == feedxml.RSS && r.IsRSS(); {
	case atom && vocab.AtomName(local) == "author" && r.Format == feedxml.Atom:
		d.Authors = append(d.Authors, Person(r.Person()))
	case atom && vocab.AtomName(local) == "author":
		*others = append(*others, Person(r.Person()))
	case atom && vocab.AtomName(local) == "category":
		term, _ := r.Attr("", "term")
		scheme, _ := r.Attr("", "scheme")
		label, _ := r.Attr("", "label")
		d.addCategory(Category{Term: cmp.Or(term, label), Scheme: scheme, Label: label})
	case rss && vocab.RSSName(local) == "author":
		d.addAuthor(personText(r.PlainText()))
	case space == vocab.DC && local == "creator":
		*others = append(*others, personText(r.PlainText()))
	case rss && vocab.RSSName(local) == "category":
		domain, _ := r.Attr("", "domain")
		d.addCategory(Category{Term: r.PlainText(), Scheme: domain})
	case space == vocab.DC && local == "subject":
		d.addCategory(Category{Term: r.PlainText()})
	default:
		return false
	}
	return true
}

func personText(text string) Person {
	p := feedxml.PersonOf(text)
	return Person{Name: p.Name, Email: p.Email}
}

// addAuthor adds an author, unless there is one with this name.
func (d *Draft) addAuthor(p Person) {
	name := cmp.Or(p.Name, p.Email, p.URI)
	if name != "" && !slices.ContainsFunc(d.Authors, func(a Person) bool { return cmp.Or(a.Name, a.Email, a.URI) == name }) {
		d.Authors = append(d.Authors, p)
	}
}

// addCategory adds a category, unless it is empty, or already there.
func (d *Draft) addCategory(c Category) {
	if c.Term != "" && !slices.Contains(d.Categories, c) {
		d.Categories = append(d.Categories, c)
	}
}

// A Draft describes an entry not published yet. ID and Updated must be set. Any other
// zero field means the entry lacks it; but it always has a title, which may be empty.
type Draft struct {
	ID                 string // the id, which never changes (RFC 4287 §4.2.6)
	Title              Text
	Updated, Published time.Time
	Summary, Content   Text
	Links              Links // such as an alternate and enclosures
	Authors            []Person
	Categories         []Category

	// Extensions are XML elements of other vocabularies, such as iTunes, each with
	// the declarations of its namespaces.
	Extensions []string
}

// A Category is a category of an entry (RFC 4287 §4.2.2).
type Category struct {
	Term   string `json:"term"`
	Scheme string `json:"scheme,omitempty"`
	Label  string `json:"label,omitempty"`
}

// Entry returns the entry described by the draft, as Atom; WriteRSS converts it. The
// same draft always gives the same XML.
//
// It returns an error if the id or the update time is missing, or if the body of an
// xhtml text, or an extension, is not well-formed.
func (d Draft) Entry() (*Entry, error) {
	if d.ID != "" && d.Updated.IsZero() {
		return nil, fmt.Errorf("draft %s: the update time is missing (RFC 4287 §4.2.15)", d.ID)
	}
	return d.entry()
}

// Undated is like Entry, but the update time may be missing, as in RSS. The entry is then
// not valid in an Atom document (RFC 4287 §4.2.15).
func (d Draft) Undated() (*Entry, error) { return d.entry() }

// entry returns the entry described by the draft, perhaps without an update time.
func (d Draft) entry() (*Entry, error) {
	if trim(d.ID) != d.ID || d.ID == "" {
		return nil, fmt.Errorf("draft %q: the id must not be empty, nor begin or end with white space (RFC 4287 §4.2.6)", clip(d.ID))
	}
	w := &xmlWriter{}
	w.b.WriteString("<entry")
	xmlscan.WriteAttr(&w.b.Builder, "xmlns", vocab.Atom)
	w.b.WriteString(">\n")
	w.b.Element("id", d.ID)
	if !d.Updated.IsZero() {
		w.b.Element("updated", d.Updated.Format(time.RFC3339Nano))
	}
	if !d.Published.IsZero() {
		w.b.Element("published", d.Published.Format(time.RFC3339Nano))
	}
	err := errors.Join(w.draftText("title", d.Title), w.draftText("summary", d.Summary), w.draftText("content", d.Content))
	if err != nil {
		return nil, fmt.Errorf("draft %s: %w", d.ID, err)
	}
	for _, p := range d.Authors {
		w.person("author", p)
	}
	for _, c := range d.Categories {
		w.b.Empty("category", "term", c.Term, "scheme", c.Scheme, "label", c.Label)
	}
	for _, l := range d.Links {
		w.link("link", l)
	}
	for _, x := range d.Extensions {
		if err := xmlscan.WellFormed(x); err != nil {
			return nil, fmt.Errorf("draft %s: extension %q: %w", d.ID, clip(x), err)
		}
		w.b.WriteString(x + "\n")
	}
	w.b.WriteString("</entry>")
	return ReadEntry(Atom, w.b.String(), "")
}

// draftText writes a text construct or content. It writes a title even if it is empty.
func (w *xmlWriter) draftText(name string, t Text) error {
	if t == (Text{}) && name != "title" {
		return nil
	}
	if vocab.IsMedia(t.Type) && name != "content" {
		return fmt.Errorf("%s: type %q: the type of a text construct is text, html or xhtml (RFC 4287 §3.1.1)", name, clip(t.Type))
	}
	if err := w.b.Text(name, xmlscan.Construct(t)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
