package feedhistory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Entries and gaps as JSON.

// An EntryJSON is an entry as json.Marshal writes it, and the part of the command's
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
	ID         string      `json:"id"`
	WeakID     bool        `json:"weak_id,omitempty"`   // the feed gives the entry no id: see Entry
	Updated    string      `json:"updated,omitempty"`   // RFC 3339, or a date, which means midnight UTC
	Published  string      `json:"published,omitempty"` // likewise
	Title      Text        `json:"title,omitzero"`
	Summary    Text        `json:"summary,omitzero"`
	Content    Text        `json:"content,omitzero"`
	Links      Links       `json:"links,omitempty"` // a link without a rel is "alternate"
	Authors    []Person    `json:"authors,omitempty"`
	Categories []Category  `json:"categories,omitempty"`
	Extensions []Extension `json:"extensions,omitempty"`
}

// NewEntryJSON returns an entry as an EntryJSON. Times are in UTC, with the entry's
// fraction of a second. Nil gives the zero EntryJSON.
func NewEntryJSON(e *Entry) EntryJSON {
	if e == nil {
		return EntryJSON{}
	}
	d := e.Draft()
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
		l.Rel = cmp.Or(l.Rel, RelAlternate)
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

// MarshalJSON returns the entry as an EntryJSON, which has everything a Draft has.
func (e Entry) MarshalJSON() ([]byte, error) { return unescapedJSON(NewEntryJSON(&e)) }

// UnmarshalJSON reads an EntryJSON. The entry is then an Atom entry, as Draft.Entry makes
// it, but may lack an update time.
func (e *Entry) UnmarshalJSON(data []byte) error {
	var j EntryJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	d, err := j.Draft()
	if err != nil {
		return fmt.Errorf("entry %q: %w", clip(j.ID), err)
	}
	read, err := d.entry()
	if err != nil {
		return err
	}
	*e = *read
	e.WeakID = j.WeakID
	e.read = e.fields()
	return nil
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
	if (t.Type == "" || t.Type == TextPlain) && t.Src+t.Base+t.Lang == "" {
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

// UnmarshalJSON reads an object, or a string, which is the term.
func (c *Category) UnmarshalJSON(data []byte) error {
	type plain Category
	return short(data, &c.Term, (*plain)(c))
}

// A gapJSON is a gap as json.Marshal writes it.
type gapJSON struct {
	URL      string    `json:"url"`
	From     string    `json:"from,omitempty"`
	Reason   Reason    `json:"reason"`
	Declared string    `json:"declared,omitempty"` // the publisher's own word for the reason
	Message  string    `json:"message,omitempty"`
	Found    time.Time `json:"found,omitzero"`
}

// MarshalJSON returns the gap without its Document. Of Err it has the text, without the
// gap's URL.
func (g Gap) MarshalJSON() ([]byte, error) {
	j := gapJSON{URL: g.URL, From: g.From, Reason: g.Reason, Found: g.Found}
	if word, ok := errors.AsType[declaredGap](g.Err); ok {
		j.Declared = string(word)
	}
	j.Message = g.detail()
	return unescapedJSON(j)
}

// UnmarshalJSON reads the JSON of MarshalJSON. Error returns the same text, but Err has
// not the same type.
func (g *Gap) UnmarshalJSON(data []byte) error {
	var j gapJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*g = Gap{URL: j.URL, From: j.From, Reason: j.Reason, Found: j.Found}
	if g.Err = errors.New(cmp.Or(j.Message, j.Reason.String())); j.Declared != "" {
		g.Err = declaredGap(j.Declared)
	}
	return nil
}
