package publish

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A JSONEntry is an entry as one line of JSON, which the command prints, and reads
// to publish or import. Only the id is required:
//
//	{"id": "https://example.org/1", "title": "One", "published": "2003-12-13T18:30:02Z",
//	 "links": [{"rel": "alternate", "href": "https://example.org/1"}],
//	 "content": {"type": "html", "body": "<p>Some text.</p>"},
//	 "authors": [{"name": "Ann"}], "categories": ["news"],
//	 "extensions": [{"name": "itunes:duration", "space": "http://www.itunes.com/dtds/podcast-1.0.dtd", "value": "42:00"}]}
//	{"id": "https://example.org/0", "deleted": "2003-12-14T00:00:00Z"}
//
// Other members of a line are ignored.
type JSONEntry struct {
	Type       string          `json:"type,omitempty"` // "entry" or absent; lines of other types are not entries: see JSONEntries
	Feed       string          `json:"feed,omitempty"` // the URL of the feed that has the entry
	ID         string          `json:"id"`
	WeakID     bool            `json:"weak_id,omitempty"`   // the feed gives the entry no id: see feedhistory.Entry
	Updated    string          `json:"updated,omitempty"`   // RFC 3339, or a date; if absent, see Publisher.Update
	Published  string          `json:"published,omitempty"` // RFC 3339, or a date
	Title      JSONText        `json:"title,omitzero"`
	Summary    JSONText        `json:"summary,omitzero"`
	Content    JSONText        `json:"content,omitzero"`
	Links      []JSONLink      `json:"links,omitempty"`
	Authors    []JSONAuthor    `json:"authors,omitempty"`
	Categories []JSONCategory  `json:"categories,omitempty"`
	Extensions []JSONExtension `json:"extensions,omitempty"`
	Deleted    JSONDeletion    `json:"deleted,omitzero"` // the entry is no longer part of the feed
	Raw        *JSONRaw        `json:"raw,omitempty"`
}

// A JSONText is a text with its type: text, html, xhtml or, for content, a
// media type. In JSON, a string means plain text.
type JSONText struct {
	Type   string `json:"type,omitempty"`
	Body   string `json:"body,omitempty"`
	Base64 []byte `json:"base64,omitempty"` // the body if it is not text
	Src    string `json:"src,omitempty"`    // where content is that is not in the feed
	Base   string `json:"base,omitempty"`   // the base of relative references in the body
	Lang   string `json:"lang,omitempty"`
}

// A JSONLink is a link. Without a rel it is "alternate".
type JSONLink struct {
	Rel      string `json:"rel,omitempty"`
	Href     string `json:"href"`
	Type     string `json:"type,omitempty"`
	Title    string `json:"title,omitempty"`
	HrefLang string `json:"hreflang,omitempty"`
	Length   string `json:"length,omitempty"`
}

// A JSONAuthor is an author. In JSON, a string means the name.
type JSONAuthor struct {
	Name  string `json:"name"`
	URI   string `json:"uri,omitempty"`
	Email string `json:"email,omitempty"`
}

// A JSONCategory is a category. In JSON, a string means the term.
type JSONCategory struct {
	Term   string `json:"term"`
	Scheme string `json:"scheme,omitempty"`
	Label  string `json:"label,omitempty"`
}

// A JSONDeletion says whether and when an entry was deleted. In JSON, true
// means an unknown time; false and null mean that it was not deleted.
type JSONDeletion struct {
	Deleted bool
	When    time.Time // zero if the time is unknown
}

// short reads a string that is an abbreviation of an object.
func short(data []byte, s *string, object any) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, s)
	}
	return json.Unmarshal(data, object)
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *JSONText) UnmarshalJSON(data []byte) error {
	type plain JSONText
	return short(data, &t.Body, (*plain)(t))
}

// MarshalJSON implements json.Marshaler.
func (t JSONText) MarshalJSON() ([]byte, error) {
	if (t.Type == "" || t.Type == feedhistory.TextPlain) && t.Src+t.Base+t.Lang == "" && len(t.Base64) == 0 {
		return unescaped(t.Body)
	}
	type plain JSONText
	return unescaped(plain(t))
}

// unescaped returns JSON in which markup is not escaped; the encoder of the
// whole line decides about that.
func unescaped(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// IsZero reports whether there is no text.
func (t JSONText) IsZero() bool {
	return t.Type+t.Body+t.Src+t.Base+t.Lang == "" && len(t.Base64) == 0
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *JSONAuthor) UnmarshalJSON(data []byte) error {
	type plain JSONAuthor
	return short(data, &a.Name, (*plain)(a))
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *JSONCategory) UnmarshalJSON(data []byte) error {
	type plain JSONCategory
	return short(data, &c.Term, (*plain)(c))
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *JSONDeletion) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, &d.Deleted)
	}
	d.Deleted = true
	return json.Unmarshal(data, &d.When)
}

// MarshalJSON implements json.Marshaler.
func (d JSONDeletion) MarshalJSON() ([]byte, error) {
	if d.When.IsZero() {
		return json.Marshal(d.Deleted)
	}
	return json.Marshal(d.When)
}

// JSONEntries reads entries from lines of JSON. It skips lines of other types, such
// as those about feeds that the command exports. An error, which says in which
// line it occurred, ends the sequence.
func JSONEntries(r io.Reader) iter.Seq2[*JSONEntry, error] {
	return func(yield func(*JSONEntry, error) bool) {
		lines, seen := bufio.NewScanner(r), map[string]int{}
		lines.Buffer(nil, maxDocument)
		n := 1
		for ; lines.Scan(); n++ {
			line := bytes.TrimSpace(bytes.TrimPrefix(lines.Bytes(), []byte("\ufeff")))
			if len(line) == 0 {
				continue
			}
			entry, err := readJSONEntry(line)
			if err == nil && entry == nil {
				continue
			}
			if err == nil && seen[entry.ID] > 0 {
				err = fmt.Errorf("the id %s is already in line %d", entry.ID, seen[entry.ID])
			}
			if err != nil {
				yield(nil, fmt.Errorf("line %d: %w", n, err))
				return
			}
			seen[entry.ID] = n
			if !yield(entry, nil) {
				return
			}
		}
		err := lines.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("it is longer than %d bytes", maxDocument)
		}
		if err != nil {
			yield(nil, fmt.Errorf("line %d: %w", n, err))
		}
	}
}

// readJSONEntry reads a line; nil if the line is not an entry.
func readJSONEntry(line []byte) (*JSONEntry, error) {
	entry := new(JSONEntry)
	err := json.Unmarshal(line, entry)
	switch {
	case err != nil && isOther(line):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("not an entry in JSON: %w", err)
	case !entry.isEntry():
		return nil, nil
	case entry.ID == "":
		return nil, errors.New("the entry has no id")
	}
	return entry, nil
}

// isOther reports whether a line is of another type, so that its members may
// not have the form that they have in a JSONEntry.
func isOther(line []byte) bool {
	var other struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(line, &other) == nil && !(&JSONEntry{Type: other.Type}).isEntry()
}

func (r *JSONEntry) isEntry() bool { return r.Type == "" || r.Type == "entry" }

// Entry returns the entry that r describes. If it has no update time,
// it gets its publication time or else the epoch, so that Publisher.Update
// knows that it has none.
func (r *JSONEntry) Entry() (*feedhistory.Entry, error) {
	d := feedhistory.Draft{
		ID: r.ID, Title: r.Title.text(), Summary: r.Summary.text(), Content: r.Content.text(),
	}
	var err error
	if d.Published, err = jsonTime("published", r.Published); err != nil {
		return nil, err
	}
	if d.Updated, err = jsonTime("updated", r.Updated); err != nil {
		return nil, err
	}
	if d.Updated.IsZero() {
		d.Updated = d.Published
	}
	if d.Updated.IsZero() {
		d.Updated = epoch
	}
	for _, l := range r.Links {
		l.Rel = cmp.Or(l.Rel, feedhistory.RelAlternate)
		d.Links = append(d.Links, feedhistory.Link(l))
	}
	for _, a := range r.Authors {
		d.Authors = append(d.Authors, feedhistory.Person(a))
	}
	for _, c := range r.Categories {
		d.Categories = append(d.Categories, feedhistory.Category(c))
	}
	for _, x := range r.Extensions {
		element, err := x.element()
		if err != nil {
			return nil, err
		}
		d.Extensions = append(d.Extensions, element)
	}
	return d.Entry()
}

var epoch = time.Unix(0, 0).UTC()

func (t JSONText) text() feedhistory.Text {
	if t.Body == "" && len(t.Base64) > 0 {
		t.Body = string(t.Base64)
	}
	return feedhistory.Text{Type: t.Type, Body: t.Body, Src: t.Src, Base: t.Base, Lang: t.Lang}
}

// jsonTime reads a time: RFC 3339, or a date, which means midnight UTC.
func jsonTime(what, value string) (t time.Time, err error) {
	if value == "" {
		return t, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err = time.Parse(layout, value); err == nil {
			return t, nil
		}
	}
	return t, fmt.Errorf("%s is not a time such as 2003-12-13T18:30:02Z: %q", what, value)
}
