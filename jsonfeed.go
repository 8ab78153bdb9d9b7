package feedhistory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory/internal/exactjson"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// JSON Feed 1.0 and 1.1. Its only history link is next_url: a document with one is a
// page.

func isJSON(data string) bool {
	head := data[:min(len(data), 4096)]
	if !isUTF8(head[:min(len(head), 4)]) {
		head, _, _ = xmlscan.Decode(head, "")
	}
	head = strings.TrimPrefix(head, "\ufeff")
	return strings.HasPrefix(strings.TrimLeft(head, " \t\r\n"), "{")
}

// isUTF8 reports whether data is UTF-8, as JSON must be (RFC 8259 §8.1). Zero bytes at
// the beginning reveal UTF-16.
func isUTF8(data string) bool {
	return utf8.ValidString(data) && strings.IndexByte(data[:min(len(data), 4)], 0) < 0
}

// decodeJSON returns JSON as UTF-8, and whether it already was. JSON's media type has
// no charset parameter, so decodeJSON uses it only as a last resort.
func decodeJSON(data, contentType string) (text string, clean bool, err error) {
	if isUTF8(data) {
		return strings.TrimPrefix(data, "\ufeff"), true, nil
	}
	text, _, err = xmlscan.Decode(data, contentType)
	return text, false, err
}

// A jsonItem is an item, with the members gofeed knows. The id may be a number, which
// readers convert to a string (version 1.0).
type jsonItem struct {
	ID          json.RawMessage  `json:"id"`
	URL         string           `json:"url,omitempty"`
	ExternalURL string           `json:"external_url,omitempty"`
	Title       string           `json:"title,omitempty"`
	Summary     string           `json:"summary,omitempty"`
	HTML        string           `json:"content_html,omitempty"`
	Text        string           `json:"content_text,omitempty"`
	Image       string           `json:"image,omitempty"`
	BannerImage string           `json:"banner_image,omitempty"`
	Published   string           `json:"date_published,omitempty"`
	Modified    string           `json:"date_modified,omitempty"`
	Tags        []string         `json:"tags,omitempty"`
	Author      jsonAuthor       `json:"author,omitzero"`
	Authors     []jsonAuthor     `json:"authors,omitempty"`
	Attachments []jsonAttachment `json:"attachments,omitempty"`
}

type jsonAuthor struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

type jsonAttachment struct {
	URL      string  `json:"url"`
	MimeType string  `json:"mime_type"`
	Title    string  `json:"title,omitempty"`
	Size     float64 `json:"size_in_bytes,omitempty"`
}

// length returns the attachment's size as the length of a link.
func (a jsonAttachment) length() string {
	if a.Size <= 0 {
		return ""
	}
	return strconv.FormatFloat(a.Size, 'f', 0, 64)
}

func (p Parser) parseJSON(data, base string) (*Document, error) {
	text, clean, err := decodeJSON(data, p.Header.Get("Content-Type"))
	if err != nil {
		return nil, &ParseError{URL: base, Reason: ReasonMalformed, Clause: clauseJSON, Err: err}
	}
	r := &jsonReader{reading: p.newReading(text, base)}
	r.doc.Format = JSONFeed
	r.head.in, r.list.in = &r.reading, &r.reading
	if !clean {
		r.note("invalid-bytes", "JSON is always UTF-8 (RFC 8259 §8.1), but this document is not", 0)
	}
	version, err := r.jsonFeed(json.NewDecoder(strings.NewReader(r.text)))
	if err != nil && r.err == nil {
		r.err = r.jsonError(err)
	}
	if !strings.Contains(version, "jsonfeed.org/version/") {
		if len(r.doc.Entries) == 0 {
			return nil, cmp.Or(r.err, &ParseError{URL: base, Reason: ReasonNotFeed, Clause: clauseJSON,
				Err: errors.New("a JSON object without version and items is not a feed")})
		}
		r.note("json-version", "this is read as a JSON Feed, although its version does not say that it is one", 0)
	}
	r.head.addHeader(p.Header)
	return r.finish(&r.list)
}

// A jsonReader reads a JSON Feed.
type jsonReader struct {
	reading
	head headReader
	list entryList
	item *jsonItem // memory for the next item
}

// jsonFeed reads the top-level object member by member, so it stops at a limit before
// it reads more.
func (r *jsonReader) jsonFeed(d *json.Decoder) (version string, err error) {
	if _, err = d.Token(); err != nil {
		return "", err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return version, err
		}
		switch key {
		case "version":
			version, err = r.jsonString(d)
			r.doc.version = version
		case "title":
			r.doc.Title, err = r.jsonHead(d)
		case "description":
			r.doc.Subtitle, err = r.jsonHead(d)
		case "language":
			r.doc.Language, err = r.jsonHead(d)
		case "icon", "favicon":
			err = r.jsonIcon(d, key == "icon")
		case "author", "authors":
			err = r.jsonAuthors(d, key == "authors")
		case "home_page_url":
			err = r.jsonLink(d, RelAlternate)
		case "feed_url":
			err = r.jsonLink(d, RelSelf)
		case "next_url":
			err = r.jsonLink(d, RelNext)
		case "items":
			err = r.jsonItems(d)
		default:
			err = d.Decode(new(json.RawMessage))
		}
		if err != nil || r.err != nil {
			return version, err
		}
	}
	_, err = d.Token()
	return version, err
}

// jsonError returns the reader's error, with its place.
func (r *jsonReader) jsonError(err error) *ParseError {
	e := &ParseError{URL: r.doc.URL, Reason: ReasonMalformed, Clause: clauseJSON, Err: err}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		e.Offset = int(syntax.Offset)
	} else if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		e.Reason, e.Offset, e.Err = ReasonTruncated, len(r.text), io.ErrUnexpectedEOF
	}
	e.Line, e.Column = xmlscan.Line(r.text, e.Offset)
	return e
}

// jsonString reads a member of type string; a note reports another type.
func (r *jsonReader) jsonString(d *json.Decoder) (s string, err error) {
	offset := int(d.InputOffset())
	err = d.Decode(&s)
	if is[*json.UnmarshalTypeError](err) {
		r.note("json-type", err.Error(), offset)
		err = nil
	}
	return s, err
}

// jsonHead reads a text of the head section.
func (r *jsonReader) jsonHead(d *json.Decoder) (string, error) {
	s, err := r.jsonString(d)
	return r.head.shorten(s, int(d.InputOffset())), err
}

// jsonIcon reads the URL of an icon or favicon; the icon is larger, and preferred.
func (r *jsonReader) jsonIcon(d *json.Decoder, icon bool) error {
	rank := 1
	if icon {
		rank = 2
	}
	ref, err := r.jsonHead(d)
	if ref = trim(ref); ref != "" {
		r.head.setIcon(r.absolute(r.doc.URL, ref, int(d.InputOffset())), rank)
	}
	return err
}

// jsonAuthors reads the feed's authors; version 1.0 has only one.
func (r *jsonReader) jsonAuthors(d *json.Decoder, several bool) (err error) {
	authors := make([]jsonAuthor, 1)
	offset := int(d.InputOffset())
	if several {
		err = d.Decode(&authors)
	} else {
		err = d.Decode(&authors[0])
	}
	if is[*json.UnmarshalTypeError](err) {
		r.note("json-type", err.Error(), offset)
		err = nil
	}
	if !several && len(r.doc.Authors) > 0 {
		return err
	}
	r.doc.Authors = nil
	for _, a := range authors {
		if a != (jsonAuthor{}) && len(r.doc.Authors) < maxExtra && r.head.fits(len(a.Name)+len(a.URL), offset) {
			p := personOf(a.Name)
			r.doc.Authors = append(r.doc.Authors, Person{Name: p.Name, Email: p.Email, URI: a.URL})
		}
	}
	return err
}

func (r *jsonReader) jsonLink(d *json.Decoder, rel string) error {
	offset := int(d.InputOffset())
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return err
	}
	var ref string
	if err := json.Unmarshal(raw, &ref); err != nil {
		r.note("json-type", err.Error(), offset)
		r.doc.lose(rel)
	}
	if ref = trim(ref); ref != "" {
		if ref = r.absolute(r.doc.URL, ref, offset); ref == "" {
			r.doc.lose(rel)
			return nil
		}
		if len(r.doc.Links) == r.limits.HeadLinks {
			r.err = limitError(r.doc.URL, "links in the head section", r.limits.HeadLinks)
			return nil
		}
		r.doc.Links = append(r.doc.Links, Link{Rel: rel, Href: ref})
	}
	return nil
}

func (r *jsonReader) jsonItems(d *json.Decoder) error {
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		r.note("json-type", "the items are not an array", int(d.InputOffset()))
		return err
	}
	sc := xmlscan.BaseScope(r.doc.URL)
	for d.More() {
		if r.list.full() {
			r.err = limitError(r.doc.URL, "entries", r.limits.Entries)
			return nil
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		end := int(d.InputOffset())
		r.jsonItem(r.text[end-len(raw):end], end-len(raw), sc)
	}
	_, err := d.Token()
	return err
}

// jsonItem reads an item as an entry.
func (r *jsonReader) jsonItem(raw string, offset int, sc *xmlscan.Scope) {
	if !strings.HasPrefix(raw, "{") {
		r.note("json-type", "an item is not an object", offset)
		return
	}
	if r.item == nil {
		r.item = new(jsonItem)
	}
	item := r.item
	*item = jsonItem{}
	if err := exactjson.Unmarshal(raw, item); err != nil {
		r.note("json-type", err.Error(), offset)
	}
	e := r.list.add(sc)
	e.raw, e.ID = raw, jsonID(item.ID)
	if len(raw) > fewBytes {
		e.json, r.item = item, nil
	}
	e.Published, e.Updated = r.parseTime(item.Published, offset), r.parseTime(item.Modified, offset)
	link := func(l Link) {
		if l.Href = trim(l.Href); l.Href != "" {
			r.addLink(l, offset, len(raw))
		}
	}
	link(Link{Rel: RelAlternate, Href: item.URL})
	link(Link{Rel: "related", Href: item.ExternalURL})
	for _, a := range item.Attachments {
		link(Link{Rel: RelEnclosure, Href: a.URL, Type: a.MimeType, Title: a.Title, Length: a.length()})
	}
	e.Links = r.list.links()
	r.list.keep(e, offset, xmlscan.Loan{Markup: item.HTML})
}

// addLink adds a link to the current entry, which has n bytes.
func (r *jsonReader) addLink(l Link, offset, n int) {
	if !r.list.takesLinks() {
		return
	}
	from, links := len(r.list.own), r.list.own
	if l.Href = r.absolute(r.doc.URL, l.Href, offset); l.Href != "" {
		links = append(links, l)
	}
	r.list.setLinks(links, from, n)
}

// fewBytes is the length up to which it is cheaper to decode an item again than to
// keep it decoded.
const fewBytes = 512

// jsonItem returns the decoded item. Parse has already noted members of a wrong type.
func (e *Entry) jsonItem() *jsonItem {
	if e.json != nil {
		return e.json
	}
	item := new(jsonItem)
	_ = exactjson.Unmarshal(e.raw, item)
	return item
}

// jsonID reads an id: a string, or a number as written.
func jsonID(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return trim(s)
	}
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && (raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9') {
		return string(raw)
	}
	return ""
}

// jsonText returns a JSON Feed item's text: "title", "summary" or "content".
func (e *Entry) jsonText(what string) Text {
	item, t := e.jsonItem(), Text{Type: TextPlain, Base: e.scope.Base}
	switch {
	case what == "title":
		t.Body = item.Title
	case what == "summary":
		t.Body = item.Summary
	case item.HTML != "":
		t.Type, t.Body = TextHTML, item.HTML
	default:
		t.Body = item.Text
	}
	if t.Body == "" {
		return Text{}
	}
	return t
}

// JSON returns the item of a JSON Feed as published; nil in the XML formats, and if the
// entry's fields were set since it was read: see XML.
func (e *Entry) JSON() json.RawMessage {
	if e.format() != JSONFeed || e.isAltered() {
		return nil
	}
	return json.RawMessage(e.raw)
}
