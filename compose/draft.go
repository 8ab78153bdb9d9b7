package compose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedxml"
)

// A Draft describes an entry not published yet. ID and Updated must be set. Any other
// zero field means the entry lacks it; but it always has a title, which may be empty.
type Draft struct {
	ID                 string // the id, which never changes (RFC 4287 §4.2.6)
	Title              feedhistory.Text
	Updated, Published time.Time
	Summary, Content   feedhistory.Text
	Links              feedhistory.Links // such as an alternate and enclosures
	Authors            []feedhistory.Person
	Categories         []feedhistory.Category

	// Source is the head of the feed the entry was copied from (RFC 4287 §4.2.11), such as the Head
	// of an entry that was read; nil means there is none. It is written without its extensions, and
	// its links to other documents of the history. For an entry whose atom:source says more, DraftOf
	// returns nil, and the element is one of the Extensions.
	Source *feedhistory.Document

	// Extensions are XML elements of other vocabularies, such as iTunes, each with
	// the declarations of its namespaces.
	Extensions []string
}

// Entry returns the entry described by the draft, as Atom; WriteRSS converts it. The
// same draft always gives the same XML.
//
// It returns an error if the id or the update time is missing, or if the body of an
// xhtml text, or an extension, is not well-formed.
func (d Draft) Entry() (*feedhistory.Entry, error) {
	if d.ID != "" && d.Updated.IsZero() {
		return nil, fmt.Errorf("draft %s: the update time is missing (RFC 4287 §4.2.15)", d.ID)
	}
	return d.Undated()
}

// Undated is like Entry, but the update time may be missing, as in RSS. The entry is then
// not valid in an Atom document (RFC 4287 §4.2.15).
func (d Draft) Undated() (*feedhistory.Entry, error) { return d.entry("") }

// entry returns the entry in a language; "" if it is unknown.
func (d Draft) entry(language string) (*feedhistory.Entry, error) {
	item := feedxml.Item{Lang: language,
		ID: d.ID, Updated: d.Updated, Published: d.Published, Extensions: d.Extensions,
		Title: feedxml.Construct(d.Title), Summary: feedxml.Construct(d.Summary), Content: feedxml.Construct(d.Content),
	}
	for _, p := range d.Authors {
		item.Authors = append(item.Authors, personXML(p))
	}
	for _, c := range d.Categories {
		item.Categories = append(item.Categories, feedxml.Category(c))
	}
	for _, l := range d.Links {
		item.Links = append(item.Links, feedxml.Link(l))
	}
	if d.Source != nil {
		item.Extensions = append([]string{sourceXML(d.Source)}, d.Extensions...)
	}
	text, err := item.Atom()
	if err != nil {
		return nil, err
	}
	return feedhistory.ReadEntry(feedhistory.FormatAtom, text, "")
}

// sourceXML returns atom:source for an entry of a feed.
func sourceXML(feed *feedhistory.Document) string {
	head := feed.Head()
	w := NewWriter(nil, feedhistory.FormatAtom, nil)
	if self, _ := head.Links.Rel("self"); self.Href == "" && head.URL != "" {
		head.Links = append(feedhistory.Links{{Rel: "self", Href: head.URL}}, head.Links...)
	}
	w.b.WriteString(`<source xmlns="` + feedxml.Atom + `">`)
	if id := identity(head); id != "" {
		w.b.Element("id", id)
	}
	w.b.Element("title", head.Title)
	if head.Subtitle != "" {
		w.b.Element("subtitle", head.Subtitle)
	}
	if t := dated(head); !t.IsZero() {
		w.b.Element("updated", t.Format(time.RFC3339Nano))
	}
	for _, p := range head.Authors {
		w.b.Person("author", personXML(p))
	}
	for _, l := range head.Links {
		w.b.Link("link", feedxml.Link(l))
	}
	w.atomDescription(head, description{
		feedxml.MeansContributor: true, feedxml.MeansCategory: true, feedxml.MeansRights: true,
		feedxml.MeansGenerator: true, feedxml.MeansIcon: true, feedxml.MeansLogo: true,
	})
	return w.b.String() + "</source>"
}

// DraftOf returns an entry's fields; those of a nil entry are zero. The draft's Entry has
// the same content in Atom, with absolute links. For an entry made from a draft, DraftOf
// returns that draft. The authors are the feed's if the entry itself has none.
//
// Ill-formed XHTML becomes HTML, and other ill-formed markup becomes text. Updated may
// be zero, because RSS has no such time.
func DraftOf(e *feedhistory.Entry) (d Draft) {
	if e == nil {
		return d
	}
	draftable := func(t feedhistory.Text) feedhistory.Text {
		return feedhistory.Text(feedxml.Draftable(feedxml.Construct(t)))
	}
	d = Draft{
		ID: e.ID, Updated: e.Updated, Published: e.Published, Links: slices.Clone(e.Links),
		Title: draftable(e.Title()), Summary: draftable(e.Summary()), Content: draftable(e.Content()),
	}
	for _, p := range e.Authors() {
		p.Inherited = false
		d.Authors = append(d.Authors, p)
	}
	d.Categories, d.Extensions = e.Categories(), e.Extensions()
	if source := e.Source(); source != nil && len(d.Extensions) > 0 && d.Extensions[0] == sourceXML(source) {
		d.Source, d.Extensions = source, d.Extensions[1:]
	}
	return d
}

// personXML returns a person to be written.
func personXML(p feedhistory.Person) feedxml.Person {
	return feedxml.Person{Name: p.Name, URI: p.URI, Email: p.Email}
}

// KeptBy returns an extension for a Draft: its entry is the copy of a feed
// reader, which may have sanitised or rewritten it. Entry.KeptBy is then the reader's
// name, wherever the entry is published again, and any copy of the publisher's own
// takes precedence.
//
//	<m:kept xmlns:m="https://github.com/feedhistory/feedhistory/ns/mirror/1.0" by="newsboat"/>
func KeptBy(reader string) string {
	var b feedxml.Markup
	b.Empty("m:kept", "xmlns:m", feedxml.Coverage, "by", reader)
	return strings.TrimSuffix(b.String(), "\n")
}
