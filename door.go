package feedhistory

import (
	"errors"
	"slices"

	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// The elements of documents and entries, for the packages of this module that convert and check
// them.
var _ = door.Open(door.Functions{
	Element: func(entry any) (feedxml.Element, error) {
		current, err := entry.(*Entry).current()
		if err != nil {
			return feedxml.Element{}, err
		}
		return current.element(), nil
	},
	XML:       func(entry any) string { return entry.(*Entry).standalone() },
	PostID:    func(entry any) string { return entry.(*Entry).postID() },
	Head:      func(document any) feedxml.Head { return document.(*Document).section() },
	Published: func(document any) any { return document.(*Document).published() },
	IsStranger: func(doc, subscription any, ids, entries []string) bool {
		return isStranger(doc.(*Document), subscription.(*Document), ids, entries)
	},
	LeadsTo: func(document any, url string) bool {
		return slices.ContainsFunc(document.(*Document).Links, func(l Link) bool {
			return isHistory(l.Rel) && iri.Address(l.Href) == url
		})
	},
	Around: func(document any) (above, below []string) { return document.(*Document).around() },
	Contradicts: func(err error) string {
		if e, ok := errors.AsType[*contradiction](err); ok {
			return e.link.Href
		}
		return ""
	},
	Observe: func(document any, see observer) error { return document.(*Document).observe(see) },
})

// An observer follows the reading of a document; see door.Functions.
type observer = func(links, entries int, event feedxml.Event, r *feedxml.Elements)

func (d *Document) observe(see observer) error {
	r := Parser{}.newDocumentReader(d.text, d.URL, feedxml.New(d.URL))
	defer r.xml.Release()
	r.xml.Cursor, r.see = xmlscan.Open(d.text, xmlscan.Limits{}), see
	r.xml.Around(d.URL)
	r.document()
	return r.xml.Err()
}

// published returns the head section as its elements say it.
func (d *Document) published() *Document {
	head := d.section()
	r := Parser{Trusted: true}.newDocumentReader(head.Text(), d.URL, head.Read())
	r.xml.Note = nil
	r.begin(d.Format)
	for depth := r.xml.Depth(); r.xml.Child(depth); r.xml.Skip() {
		r.headElement(r.xml.Row())
	}
	r.head.end()
	return r.doc
}

// section returns the head section as read.
func (d *Document) section() feedxml.Head {
	return feedxml.Head{
		Known: d.known, Others: d.extra, Scope: d.scope, Base: d.URL, Format: feedxml.Format(d.Format), Version: d.version,
	}
}
