package feedhistory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// Entries, documents, gaps, texts and persons as JSON.

// An entryJSON has the members of compose.EntryJSON.
type entryJSON struct {
	ID         string              `json:"id"`
	WeakID     bool                `json:"weak_id,omitempty"`
	Language   string              `json:"language,omitempty"`
	Updated    string              `json:"updated,omitempty"`
	Published  string              `json:"published,omitempty"`
	Title      Text                `json:"title,omitzero"`
	Summary    Text                `json:"summary,omitzero"`
	Content    Text                `json:"content,omitzero"`
	Links      Links               `json:"links,omitempty"`
	Authors    []Person            `json:"authors,omitempty"`
	Categories []Category          `json:"categories,omitempty"`
	Extensions []feedxml.Extension `json:"extensions,omitempty"`
}

// MarshalJSON returns everything the entry says, in the form of compose.EntryJSON. It stands alone:
// with the authors and the language of its feed, and without its Head.
func (e Entry) MarshalJSON() ([]byte, error) {
	draftable := func(t Text) Text { return Text(feedxml.Draftable(feedxml.Construct(t))) }
	j := entryJSON{
		ID: e.ID, WeakID: e.WeakID, Language: e.Language(), Updated: feedtime.JSON(e.Updated), Published: feedtime.JSON(e.Published),
		Title: draftable(e.Title()), Summary: draftable(e.Summary()), Content: draftable(e.Content()),
		Links: e.Links, Authors: e.Authors(), Categories: e.Categories(),
	}
	for _, x := range e.Extensions() {
		j.Extensions = append(j.Extensions, feedxml.ExtensionOf(e.based(x)))
	}
	return unescapedJSON(j)
}

// based returns an extension with the base that its references need as text: the addresses of
// contributors, and those in the members of a JSON Feed.
func (e *Entry) based(extension string) string {
	isContributor := e.format() == FormatAtom && strings.Contains(extension, "contributor")
	if !isContributor && e.format() != FormatJSONFeed || strings.Contains(extension, " xml:base=") {
		return extension
	}
	relative := e.element()
	relative.Scope = new(xmlscan.Scope)
	relative.Scope.Bindings = e.scope.Bindings
	is, was := e.parts(), feedxml.PartsOf(relative)
	same := func(a, b feedxml.File) bool { return a.URL == b.URL }
	if is.Image == was.Image && slices.EqualFunc(is.Files, was.Files, same) && slices.Equal(is.Contributors, was.Contributors) {
		return extension
	}
	base := e.scope.Base
	if isContributor {
		r := feedxml.Again(e.raw, e.scope, feedxml.FormatAtom)
		base = r.Base()
		r.Release()
	}
	var b strings.Builder
	xmlscan.WriteAttr(&b, "xml:base", base)
	name := strings.IndexAny(extension, " \t\r\n/>")
	return extension[:name] + b.String() + extension[name:]
}

// UnmarshalJSON reads the JSON of MarshalJSON. The result is an entry of Atom saying the same, with its
// language on its texts; only the id is required.
func (e *Entry) UnmarshalJSON(data []byte) error {
	var j entryJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	updated, errUpdated := feedtime.ReadJSON("updated", j.Updated)
	published, errPublished := feedtime.ReadJSON("published", j.Published)
	err := errors.Join(errUpdated, errPublished)
	item := feedxml.Item{
		ID: j.ID, Lang: j.Language, Updated: updated, Published: published,
		Title: feedxml.Construct(j.Title), Summary: feedxml.Construct(j.Summary), Content: feedxml.Construct(j.Content),
	}
	for _, p := range j.Authors {
		item.Authors = append(item.Authors, feedxml.Person{Name: p.Name, URI: p.URI, Email: p.Email})
	}
	for _, c := range j.Categories {
		item.Categories = append(item.Categories, feedxml.Category(c))
	}
	for _, l := range j.Links {
		l.Rel = cmp.Or(l.Rel, relAlternate)
		item.Links = append(item.Links, feedxml.Link(l))
	}
	for _, x := range j.Extensions {
		element, errElement := x.Element()
		item.Extensions, err = append(item.Extensions, element), errors.Join(err, errElement)
	}
	if err != nil {
		return err
	}
	text, err := item.Atom()
	if err != nil {
		return err
	}
	read, err := ReadEntry(FormatAtom, text, "")
	if err != nil {
		return err
	}
	*e = *read
	e.WeakID = j.WeakID
	return nil
}

// A documentJSON is a document with the unexported parts that decide about what is written of it and
// what is missing.
type documentJSON struct {
	*documentFields
	Extensions []string `json:",omitempty"`
	Lost       []string `json:",omitempty"`
	Missing    []*Gap   `json:",omitempty"`
}

type documentFields Document

// MarshalJSON returns the fields of the document, without its Header, with the Extensions of its head
// section and the gaps of Missing.
func (d Document) MarshalJSON() ([]byte, error) {
	return unescapedJSON(documentJSON{(*documentFields)(&d), d.Extensions(), d.lost, d.Missing(d.Kind())})
}

// UnmarshalJSON reads the JSON of MarshalJSON. The entries are as Entry.UnmarshalJSON returns them.
func (d *Document) UnmarshalJSON(data []byte) error {
	var read Document
	j := documentJSON{documentFields: (*documentFields)(&read)}
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	read.extra, read.lost, read.gaps = j.Extensions, j.Lost, j.Missing
	if len(read.extra) > 0 {
		read.scope = new(xmlscan.Scope)
	}
	*d = read
	return nil
}

// A gapJSON is a gap with the text of its error.
type gapJSON struct {
	URL      string
	From     string `json:",omitempty"`
	Reason   Reason
	Err      string
	Found    time.Time
	Document *Document `json:",omitempty"`
}

// MarshalJSON returns the gap with the text of its Err.
func (g *Gap) MarshalJSON() ([]byte, error) {
	if g == nil {
		return []byte("null"), nil
	}
	j := gapJSON{g.URL, g.From, g.Reason, "", g.Found, g.Document}
	if g.Err != nil {
		j.Err = g.Err.Error()
	}
	return unescapedJSON(j)
}

// UnmarshalJSON reads the JSON of MarshalJSON. Err has the text alone.
func (g *Gap) UnmarshalJSON(data []byte) error {
	var j gapJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*g = Gap{j.URL, j.From, j.Reason, errors.New(j.Err), j.Found, j.Document}
	return nil
}

// short reads a string as the abbreviation of an object.
func short(data []byte, s *string, object any) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, s)
	}
	return json.Unmarshal(data, object)
}

// unescapedJSON returns JSON in which markup is not escaped; the encoder of the whole
// value decides about escapes.
func unescapedJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// A textJSON is a text with a type.
type textJSON struct {
	Type   string `json:"type,omitempty"`
	Body   string `json:"body,omitempty"`
	Base64 []byte `json:"base64,omitempty"` // the body if it is not text
	Src    string `json:"src,omitempty"`
	Base   string `json:"base,omitempty"`
	Lang   string `json:"lang,omitempty"`
}

// MarshalJSON returns an object, or a string for plain text without more. A body other
// than UTF-8 is in the member base64.
func (t Text) MarshalJSON() ([]byte, error) {
	if !utf8.ValidString(t.Body) {
		return unescapedJSON(textJSON{Type: t.Type, Base64: []byte(t.Body), Src: t.Src, Base: t.Base, Lang: t.Lang})
	}
	if (t.Type == "" || t.Type == textPlain) && t.Src+t.Base+t.Lang == "" {
		return unescapedJSON(t.Body)
	}
	return unescapedJSON(textJSON{Type: t.Type, Body: t.Body, Src: t.Src, Base: t.Base, Lang: t.Lang})
}

// UnmarshalJSON reads the JSON of MarshalJSON.
func (t *Text) UnmarshalJSON(data []byte) error {
	j := textJSON{Type: t.Type}
	if err := short(data, &j.Body, &j); err != nil {
		return err
	}
	*t = Text{Type: j.Type, Body: cmp.Or(j.Body, string(j.Base64)), Src: j.Src, Base: j.Base, Lang: j.Lang}
	return nil
}

// UnmarshalJSON reads an object, or a string, which is the name.
func (p *Person) UnmarshalJSON(data []byte) error {
	type plain Person
	return short(data, &p.Name, (*plain)(p))
}
