package feedhistory

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// JSON Feed 1.0 and 1.1. Its only history link is next_url, which makes a
// document with one a page.

func isJSON(data string) bool {
	data = strings.TrimPrefix(data, "\ufeff")
	return strings.HasPrefix(strings.TrimLeft(data[:min(len(data), 4096)], " \t\r\n"), "{")
}

type jsonHead struct {
	Version string                 `json:"version"`
	Title   string                 `json:"title"`
	HomeURL string                 `json:"home_page_url"`
	FeedURL string                 `json:"feed_url"`
	NextURL string                 `json:"next_url"`
	Hubs    []struct{ URL string } `json:"hubs"`
	Items   []json.RawMessage      `json:"items"`
}

// A jsonItem is an item; its id may be a number, which version 1.0 has
// readers take for a string.
type jsonItem struct {
	ID          json.RawMessage  `json:"id"`
	URL         string           `json:"url"`
	ExternalURL string           `json:"external_url"`
	Title       string           `json:"title"`
	Summary     string           `json:"summary"`
	HTML        string           `json:"content_html"`
	Text        string           `json:"content_text"`
	Published   string           `json:"date_published"`
	Modified    string           `json:"date_modified"`
	Attachments []jsonAttachment `json:"attachments"`
}

type jsonAttachment struct {
	URL      string      `json:"url"`
	MimeType string      `json:"mime_type"`
	Title    string      `json:"title"`
	Size     json.Number `json:"size_in_bytes"`
}

func (p Parser) parseJSON(data, base string) (*Document, error) {
	data = strings.TrimPrefix(data, "\ufeff")
	r := &reader{
		text: data, limits: p.Limits.withDefaults(), header: p.Header,
		doc: &Document{URL: base, Format: JSONFeed}, head: new(Document),
	}
	var head jsonHead
	if err := r.decodeJSON(&head); err != nil {
		return nil, err
	}
	if !strings.Contains(head.Version, "jsonfeed.org/version/") {
		if head.Items == nil {
			return nil, &ParseError{URL: base, Reason: ReasonNotFeed, Clause: clauseJSON,
				Err: errors.New("a JSON object without version and items")}
		}
		r.note("json-version", "this is read as JSON Feed, but does not say that it is one", 0)
	}
	r.jsonHead(&head)
	for _, raw := range head.Items {
		if r.err == nil {
			r.jsonItem(raw)
		}
	}
	r.addHeader(p.Header)
	*r.head = *r.doc
	r.head.Entries = nil
	if r.err != nil {
		return r.doc, r.err
	}
	return r.doc, nil
}

// decodeJSON decodes the document. A member of the wrong type is skipped and
// noted; the others are read all the same.
func (r *reader) decodeJSON(head *jsonHead) error {
	err := json.NewDecoder(strings.NewReader(r.text)).Decode(head)
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		r.note("json-type", kind.Error(), int(kind.Offset))
		return nil
	}
	if err == nil {
		return nil
	}
	e := &ParseError{URL: r.doc.URL, Reason: ReasonMalformed, Clause: clauseJSON, Err: err}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		e.Offset = int(syntax.Offset)
	} else if errors.Is(err, io.ErrUnexpectedEOF) {
		e.Reason, e.Offset = ReasonTruncated, len(r.text)
	}
	e.Line, e.Column = xmlscan.Line(r.text, e.Offset)
	return e
}

func (r *reader) jsonHead(head *jsonHead) {
	r.doc.Title = head.Title
	add := func(rel, ref string) {
		if ref = trim(ref); ref != "" {
			if ref = r.absolute(r.doc.URL, ref, 0); ref != "" {
				r.doc.Links = append(r.doc.Links, Link{Rel: rel, Href: ref})
			}
		}
	}
	add(RelAlternate, head.HomeURL)
	add(RelSelf, head.FeedURL)
	add(RelNext, head.NextURL)
	for _, hub := range head.Hubs[:min(len(head.Hubs), r.limits.HeadLinks)] {
		add(RelHub, hub.URL)
	}
}

func (r *reader) jsonItem(raw json.RawMessage) {
	if len(r.doc.Entries) >= r.limits.Entries {
		r.err = limitError(r.doc.URL, "entries", r.limits.Entries)
		return
	}
	e := &Entry{Source: r.head, raw: string(raw), scope: &scope{base: r.doc.URL}}
	var item jsonItem
	if err := json.Unmarshal(raw, &item); err != nil {
		r.note("json-type", "an item is not what JSON Feed says: "+err.Error(), 0)
	}
	e.ID = jsonID(item.ID)
	e.Published, e.Updated = r.parseTime(item.Published, 0), r.parseTime(item.Modified, 0)
	link := func(l Link) {
		if l.Href = trim(l.Href); l.Href != "" {
			if l.Href = r.absolute(r.doc.URL, l.Href, 0); l.Href != "" && len(r.links) < maxEntryLinks {
				r.links = append(r.links, l)
			}
		}
	}
	from := len(r.links)
	link(Link{Rel: RelAlternate, Href: item.URL})
	link(Link{Rel: "related", Href: item.ExternalURL})
	for _, a := range item.Attachments {
		link(Link{Rel: RelEnclosure, Href: a.URL, Type: a.MimeType, Title: a.Title, Length: a.Size.String()})
	}
	e.Links = r.takeLinks(from)
	if len(e.ID) > r.limits.ID {
		r.err = limitError(r.doc.URL, "bytes in an id", r.limits.ID)
		return
	}
	if e.ID == "" {
		e.identify()
	}
	r.doc.Entries = append(r.doc.Entries, e)
}

// jsonID reads an id: a string, or a number as it is written.
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
	var item jsonItem
	_ = json.Unmarshal([]byte(e.raw), &item) // what is of the wrong type was noted by Parse
	t := Text{Type: TextPlain, Base: e.scope.base}
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

// JSON returns the item of a JSON Feed as it was published; nil in the XML
// formats.
func (e *Entry) JSON() json.RawMessage {
	if e.format() != JSONFeed {
		return nil
	}
	return json.RawMessage(e.raw)
}
