package compose

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// An EntryJSON is an entry for json.Marshal, and the part of the command's
// lines for an entry. Only the id is required:
//
//	{"id": "https://example.org/1", "title": "One", "published": "2003-12-13T18:30:02Z",
//	 "links": [{"rel": "alternate", "href": "https://example.org/1"}],
//	 "content": {"type": "html", "body": "<p>Some text.</p>"},
//	 "authors": [{"name": "Ann"}], "categories": ["news"],
//	 "extensions": [{"name": "itunes:duration", "space": "http://www.itunes.com/dtds/podcast-1.0.dtd", "value": "42:00"}]}
//
// Other members are ignored.
type EntryJSON struct {
	ID         string                 `json:"id"`
	WeakID     bool                   `json:"weak_id,omitempty"`   // the feed gives the entry no id: see Entry
	Updated    string                 `json:"updated,omitempty"`   // RFC 3339, or a date, which means midnight UTC
	Published  string                 `json:"published,omitempty"` // likewise
	Title      feedhistory.Text       `json:"title,omitzero"`
	Summary    feedhistory.Text       `json:"summary,omitzero"`
	Content    feedhistory.Text       `json:"content,omitzero"`
	Links      feedhistory.Links      `json:"links,omitempty"` // a link without a rel is "alternate"
	Authors    []feedhistory.Person   `json:"authors,omitempty"`
	Categories []feedhistory.Category `json:"categories,omitempty"`
	Extensions []Extension            `json:"extensions,omitempty"`
}

// NewEntryJSON returns an entry as an EntryJSON. Times are in UTC, with the entry's
// fraction of a second. Nil gives the zero EntryJSON.
func NewEntryJSON(e *feedhistory.Entry) EntryJSON {
	if e == nil {
		return EntryJSON{}
	}
	d := DraftOf(e)
	j := EntryJSON{
		ID: d.ID, WeakID: e.WeakID, Updated: timeJSON(d.Updated), Published: timeJSON(d.Published),
		Title: d.Title, Summary: d.Summary, Content: d.Content,
		Links: d.Links, Authors: d.Authors, Categories: d.Categories,
	}
	for _, x := range d.Extensions {
		j.Extensions = append(j.Extensions, extensionOf(x))
	}
	return j
}

// Draft returns the draft of an entry with the same content. Its Updated is zero if the
// JSON has no such time.
func (j *EntryJSON) Draft() (d Draft, err error) {
	d = Draft{
		ID: j.ID, Title: j.Title, Summary: j.Summary, Content: j.Content,
		Authors: j.Authors, Categories: j.Categories,
	}
	if d.Published, err = readTimeJSON("published", j.Published); err != nil {
		return d, err
	}
	if d.Updated, err = readTimeJSON("updated", j.Updated); err != nil {
		return d, err
	}
	for _, l := range j.Links {
		l.Rel = cmp.Or(l.Rel, "alternate")
		d.Links = append(d.Links, l)
	}
	for _, x := range j.Extensions {
		element, err := x.element()
		if err != nil {
			return d, err
		}
		d.Extensions = append(d.Extensions, element)
	}
	return d, nil
}

// Entry returns the entry with the same content, as Draft.Undated makes it.
func (j *EntryJSON) Entry() (*feedhistory.Entry, error) {
	d, err := j.Draft()
	if err != nil {
		return nil, fmt.Errorf("entry %q: %w", xmlscan.Clip(j.ID, 40), err)
	}
	e, err := d.Undated()
	if err != nil {
		return nil, err
	}
	e.WeakID = j.WeakID
	return e, nil
}

// timeJSON returns a time as text; "" for one RFC 3339 cannot express.
func timeJSON(t time.Time) string {
	if t = t.UTC(); t.IsZero() || t.Year() < 0 || t.Year() > 9999 {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

// readTimeJSON reads a time: RFC 3339, or a date, which means midnight UTC.
func readTimeJSON(member, value string) (t time.Time, err error) {
	if value == "" {
		return t, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err = time.Parse(layout, value); err == nil {
			return t, nil
		}
	}
	return t, fmt.Errorf("%s is not a time such as 2003-12-13T18:30:02Z: %q", member, value)
}

// An Extension is an element of another vocabulary, such as iTunes or
// Media RSS. An element with child elements, or with attributes in a namespace,
// is in XML only.
type Extension struct {
	Name  string            `json:"name"`            // the name with the vocabulary's usual prefix: "itunes:duration"
	Space string            `json:"space,omitempty"` // the namespace of the vocabulary
	Value string            `json:"value,omitempty"`
	Attrs map[string]string `json:"attrs,omitempty"`
	XML   string            `json:"xml,omitempty"` // the element itself, which takes precedence
}

// extensionOf describes an element.
func extensionOf(element string) Extension {
	s := xmlscan.NewFragment(element, nil, xmlscan.Unlimited())
	if !s.Child(0) {
		return Extension{XML: element}
	}
	x := Extension{Name: s.Local(), Space: s.Space()}
	if prefix := cmp.Or(feedxml.UsualPrefix(x.Space), s.Prefix()); prefix != "" {
		x.Name = prefix + ":" + s.Local()
	}
	whole := x.Space == ""
	for _, a := range s.Attrs() {
		if whole = whole || a.Space != ""; a.Space == "" {
			if x.Attrs == nil {
				x.Attrs = map[string]string{}
			}
			x.Attrs[a.Local] = a.Value()
		}
	}
	x.Value = s.ElementText()
	if whole || s.Nested() {
		x.Value, x.Attrs, x.XML = "", nil, element
	}
	return x
}

// element returns the element with its namespace declarations.
func (x Extension) element() (string, error) {
	if x.XML != "" {
		return x.XML, nil
	}
	if x.Name == "" || strings.ContainsAny(x.Name, " \t\r\n<>&/\"'=") || x.Space == "" {
		return "", fmt.Errorf("the extension %q needs a name and a namespace", x.Name)
	}
	var b strings.Builder
	attr := func(name, value string) { b.WriteString(" " + name + `="` + escapedXML(value) + `"`) }
	b.WriteString("<" + x.Name)
	declaration := "xmlns"
	if prefix, _, ok := strings.Cut(x.Name, ":"); ok && prefix != "" {
		declaration += ":" + prefix
	}
	attr(declaration, x.Space)
	for _, name := range slices.Sorted(maps.Keys(x.Attrs)) {
		if name == "" || name == "xmlns" || strings.ContainsAny(name, " \t\r\n<>&/\"'=:") {
			return "", errors.New("the extension " + x.Name + " has an attribute that needs xml: " + name)
		}
		attr(name, x.Attrs[name])
	}
	b.WriteByte('>')
	if escaped := escapedXML(x.Value); xmlscan.IsDense(len(x.Value), len(escaped)) {
		xmlscan.WriteText(&b, x.Value)
	} else {
		b.WriteString(escaped) // the form of earlier versions: in another one, the entry would count as edited
	}
	b.WriteString("</" + x.Name + ">")
	return b.String(), nil
}

func escapedXML(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // writing to a Builder does not fail
	return b.String()
}
