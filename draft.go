package feedhistory

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A Draft is an entry that is not published yet, as fields. Zero fields are
// left out, but for ID, Title and Updated, which an entry must have.
type Draft struct {
	ID                 string // never changes, whatever else does (RFC 4287 §4.2.6)
	Title              Text
	Updated, Published time.Time
	Summary, Content   Text
	Links              Links // an alternate, enclosures …
	Authors            []Person
	Categories         []Category

	// Extensions are elements of other vocabularies, such as iTunes: each an XML
	// element that stands by itself, with the namespaces that it needs.
	Extensions []string
}

// A Category is a category of an entry (RFC 4287 §4.2.2).
type Category struct{ Term, Scheme, Label string }

// Entry returns the entry that the draft describes, as Atom; WriteRSS and others
// write it in their own vocabulary. The same draft gives the same XML.
//
// It is an error if the id or the update time is missing, or if the body of an
// xhtml text, or an extension, is not well-formed.
func (d Draft) Entry() (*Entry, error) {
	switch {
	case trim(d.ID) != d.ID || d.ID == "":
		return nil, fmt.Errorf("draft %q: an id is needed, without white space around it (RFC 4287 §4.2.6)", clip(d.ID))
	case d.Updated.IsZero():
		return nil, fmt.Errorf("draft %s: an update time is needed (RFC 4287 §4.2.15)", d.ID)
	}
	w := &writer{}
	w.b.WriteString("<entry")
	writeAttr(&w.b, "xmlns", nsAtom)
	w.b.WriteString(">\n")
	w.element("id", d.ID)
	w.element("updated", d.Updated.Format(time.RFC3339Nano))
	if !d.Published.IsZero() {
		w.element("published", d.Published.Format(time.RFC3339Nano))
	}
	err := errors.Join(w.draftText("title", d.Title), w.draftText("summary", d.Summary), w.draftText("content", d.Content))
	if err != nil {
		return nil, fmt.Errorf("draft %s: %w", d.ID, err)
	}
	for _, p := range d.Authors {
		w.author(p)
	}
	for _, c := range d.Categories {
		w.empty("category", "term", c.Term, "scheme", c.Scheme, "label", c.Label)
	}
	for _, l := range d.Links {
		w.link("link", l)
	}
	for _, x := range d.Extensions {
		if err := wellFormed(x); err != nil {
			return nil, fmt.Errorf("draft %s: extension %q: %w", d.ID, clip(x), err)
		}
		w.b.WriteString(x + "\n")
	}
	w.b.WriteString("</entry>")
	return ReadEntry(Atom, w.b.String(), "")
}

// draftText writes a text construct or content; a title even if it is empty.
func (w *writer) draftText(name string, t Text) error {
	if t == (Text{}) && name != "title" {
		return nil
	}
	if isMedia(t.Type) && name != "content" {
		return fmt.Errorf("%s: type %q: a text construct is text, html or xhtml (RFC 4287 §3.1.1)", name, clip(t.Type))
	}
	body, err := t.atomBody()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	w.open(name, "type", t.Type, "src", t.Src, "xml:base", t.Base, "xml:lang", t.Lang)
	w.b.WriteString(">" + body + "</" + name + ">\n")
	return nil
}

// isMedia reports whether a text's type is a media type, as only content's may be.
func isMedia(kind string) bool {
	return kind != "" && kind != TextPlain && kind != TextHTML && kind != TextXHTML
}

// atomBody returns what Atom has inside the element of a text of this type (RFC
// 4287 §3.1.1, §4.1.3.3). The error says where markup is not well-formed.
func (t Text) atomBody() (string, error) {
	kind := strings.ToLower(t.Type)
	switch {
	case kind == TextXHTML:
		div := "<div xmlns=\"" + nsXHTML + "\">" + t.Body + "</div>"
		return div, wellFormed(div)
	case t.Src != "" && t.Body == "":
		return "", nil
	case isXMLType(kind):
		return t.Body, wellFormed(t.Body)
	case isMedia(kind) && !strings.HasPrefix(kind, "text/"):
		return base64.StdEncoding.EncodeToString([]byte(t.Body)), nil
	}
	var b strings.Builder
	escapeText(&b, t.Body)
	return b.String(), nil
}

// wellFormed checks one element, without any leniency.
func wellFormed(element string) error {
	s := xmlscan.New(element, xmlscan.Limits{})
	for s.Next() != xmlscan.Stop {
	}
	if err := s.Err(); err != nil {
		return err
	}
	if notes, _ := s.Notes(); len(notes) > 0 {
		return fmt.Errorf("not well-formed: %s", notes[0].Message)
	}
	return nil
}
