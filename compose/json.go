package compose

import (
	"cmp"
	"fmt"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// An EntryJSON is an entry in JSON, in the form json.Marshal gives it, and the part of the command's
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
	Language   string                 `json:"language,omitempty"`  // by RFC 5646, the feed's too; a Draft has it in its texts
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
		ID: d.ID, WeakID: e.WeakID, Language: e.Language(), Updated: feedtime.JSON(d.Updated), Published: feedtime.JSON(d.Published),
		Title: d.Title, Summary: d.Summary, Content: d.Content,
		Links: d.Links, Authors: d.Authors, Categories: d.Categories,
	}
	for _, x := range e.Extensions() {
		j.Extensions = append(j.Extensions, Extension(feedxml.ExtensionOf(x)))
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
	if d.Published, err = feedtime.ReadJSON("published", j.Published); err != nil {
		return d, err
	}
	if d.Updated, err = feedtime.ReadJSON("updated", j.Updated); err != nil {
		return d, err
	}
	for _, l := range j.Links {
		l.Rel = cmp.Or(l.Rel, "alternate")
		d.Links = append(d.Links, l)
	}
	for _, x := range j.Extensions {
		element, err := feedxml.Extension(x).Element()
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
	e, err := d.entry(j.Language)
	if err != nil {
		return nil, err
	}
	e.WeakID = j.WeakID
	return e, nil
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
