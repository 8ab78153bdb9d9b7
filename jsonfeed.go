package feedhistory

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/jsonfeed"
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

func (p Parser) parseJSON(data, base string) (*Document, error) {
	text, clean, err := decodeJSON(data, p.Header.Get("Content-Type"))
	if err != nil {
		return nil, &ParseError{URL: base, Reason: ReasonMalformed, Clause: clauseJSON, Err: err}
	}
	var twice []xmlscan.Note
	if !p.Strict {
		text, twice = xmlscan.EncodedOnce(text)
	}
	r := p.readJSON(text, base, &jsonfeed.Escaped{Text: text})
	if !p.Strict && is[*jsonfeed.SyntaxError](r.values.Err()) {
		if escaped := jsonfeed.Escape(text); escaped != nil {
			r = p.readJSON(text, base, escaped)
		}
	}
	r.addNotes(twice)
	if !clean {
		r.note("invalid-bytes", "JSON is always UTF-8 (RFC 8259 §8.1), but this document is not", 0)
	}
	if !isJSONFeed(r.doc.version) {
		if len(r.doc.Entries) == 0 {
			return nil, cmp.Or(r.err, &ParseError{URL: base, Reason: ReasonNotFeed, Clause: clauseJSON,
				Err: errors.New("a JSON object without version and items is not a feed")})
		}
		r.note("json-version", "this is read as a JSON Feed, although its version does not say that it is one", 0)
	}
	r.head.addHeader(p.Header)
	return r.finish(&r.list)
}

func isJSONFeed(version string) bool { return strings.Contains(version, "jsonfeed.org/version/") }

// maxControlNotes is the maximum number of notes on control characters.
const maxControlNotes = 100

// A jsonReader reads a JSON Feed.
type jsonReader struct {
	reading
	head    headReader
	list    entryList
	values  *jsonfeed.Reader
	escaped *jsonfeed.Escaped // the text of values
	item    jsonfeed.Item     // memory for the next item
	items   string            // the member with the items; "" if there is none
}

// readJSON reads a text, whose control characters may be escaped.
func (p Parser) readJSON(text, base string, escaped *jsonfeed.Escaped) *jsonReader {
	r := &jsonReader{reading: p.newReading(text, base), escaped: escaped}
	r.doc.Format = FormatJSONFeed
	r.head.in, r.list.in = &r.reading, &r.reading
	r.values = jsonfeed.New(escaped.Text, func(message string, offset int) { r.note("json-type", message, escaped.Original(offset)) })
	for _, at := range escaped.Escapes[:min(len(escaped.Escapes), maxControlNotes)] {
		r.note("json-syntax", "a string has a raw control character", escaped.Original(at))
	}
	var rest jsonfeed.Rest
	for name := range r.values.Members() {
		at := r.values.Offset()
		if r.member(name); r.err != nil {
			return r
		}
		value := strings.TrimLeft(escaped.Text[at:r.values.Offset()], ": \t\r\n")
		if name != r.items && !feedxml.IsExpressed(name, false) && r.head.fits(len(value), r.offset()) {
			rest.Add(name, value)
		}
	}
	if rest := rest.String(); rest != "" {
		r.doc.extra, r.doc.scope = []string{feedxml.JSONElement(rest)}, new(xmlscan.Scope)
	}
	r.values.End()
	if err := r.values.Err(); err != nil {
		r.err = r.jsonError(err)
	} else if r.items != "items" {
		r.withoutItems()
	}
	return r
}

// offset returns the place of the last value.
func (r *jsonReader) offset() int { return r.escaped.Original(r.values.Offset()) }

// member reads a member of the top-level object, so reading stops at a limit before it
// reads more.
func (r *jsonReader) member(name string) {
	switch name {
	case "version":
		r.doc.version = r.values.Text()
	case "title":
		r.doc.Title = r.headText()
	case "description":
		r.doc.Subtitle = r.headText()
	case "language":
		r.doc.Language = r.headText()
	case "icon": // which is larger than the favicon
		r.icon(2)
	case "favicon":
		r.icon(1)
	case "author": // of version 1.0
		if a := r.values.Author(); len(r.doc.Authors) == 0 {
			r.authors(a)
		}
	case "authors":
		r.authors(r.values.Authors()...)
	case "home_page_url":
		r.link(relAlternate)
	case "feed_url":
		r.link(relSelf)
	case "next_url":
		r.link(relNext)
	case "items":
		r.items = name
		r.readItems()
	default:
		if r.items == "" && strings.EqualFold(name, "items") {
			r.items = name
		}
		r.values.Raw()
	}
}

// withoutItems notes that there are no items, or that they are a member with another name.
func (r *jsonReader) withoutItems() {
	if r.items == "" {
		r.note("json-items", "a JSON Feed has items, but this document has none", 0)
		return
	}
	what := fmt.Sprintf("the entries are not read, because they are in %q instead of \"items\"", clip(r.items))
	r.note("json-items", what, 0)
	r.doc.damage = &damage{r.failure(0, ReasonMalformed, clauseJSON, what), true, 0, len(r.text)}
}

// jsonError returns the reader's error, with its place.
func (r *jsonReader) jsonError(err error) *ParseError {
	e := &ParseError{URL: r.doc.URL, Reason: ReasonMalformed, Clause: clauseJSON, Err: err}
	if syntax, ok := errors.AsType[*jsonfeed.SyntaxError](err); ok {
		e.Offset, e.Err = r.escaped.Original(syntax.Offset), syntax.Err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		e.Reason, e.Err = ReasonTruncated, errors.New("the document ends before its JSON does")
	}
	e.Line, e.Column = xmlscan.Line(r.text, e.Offset)
	return e
}

// headText reads a text of the head section.
func (r *jsonReader) headText() string { return r.head.shorten(r.values.Text(), r.offset()) }

// icon reads the URL of an icon.
func (r *jsonReader) icon(rank int) {
	if ref := trim(r.headText()); ref != "" {
		r.head.setIcon(r.absolute(r.doc.URL, ref, r.offset()), rank)
	}
}

// authors sets the feed's authors.
func (r *jsonReader) authors(authors ...jsonfeed.Author) {
	r.doc.Authors = nil
	for _, a := range authors {
		if a != (jsonfeed.Author{}) && len(r.doc.Authors) < maxExtra && r.head.fits(len(a.Name)+len(a.URL), r.offset()) {
			p := feedxml.PersonOf(a.Name)
			r.doc.Authors = append(r.doc.Authors, Person{Name: p.Name, Email: p.Email, URI: a.URL})
		}
	}
}

// link reads the URL of a link of the head section.
func (r *jsonReader) link(rel string) {
	ref, ok := r.values.URL()
	if ref = trim(ref); ref != "" {
		ref = r.absolute(r.doc.URL, ref, r.offset())
		ok = ref != ""
	}
	switch {
	case !ok:
		r.doc.lose(rel)
	case ref == "":
	case len(r.doc.Links) == r.limits.headLinks:
		r.err = limitError(r.doc.URL, fmt.Errorf("more than %d links in the head section", r.limits.headLinks))
	default:
		r.doc.Links = append(r.doc.Links, Link{Rel: rel, Href: ref})
	}
}

// readItems reads the items as entries.
func (r *jsonReader) readItems() {
	sc := xmlscan.BaseScope(r.doc.URL)
	for range r.values.Elements() {
		if r.list.full() {
			r.err = limitError(r.doc.URL, tooManyEntries(r.limits.entries))
			return
		}
		if raw := r.values.Item(&r.item); raw != "" {
			r.entry(raw, sc)
		}
	}
}

// entry reads the current item as an entry.
func (r *jsonReader) entry(raw string, sc *xmlscan.Scope) {
	item, offset := &r.item, r.escaped.Original(r.values.Offset()-len(raw))
	e := r.list.add(sc)
	e.raw, e.ID, e.texts = raw, item.ID, jsonPlaces(item.Places)
	e.Published, e.Updated = r.parseTime(item.Published, offset), r.parseTime(item.Modified, offset)
	link := func(l Link) {
		if l.Href = trim(l.Href); l.Href != "" {
			r.addLink(l, offset, len(raw))
		}
	}
	link(Link{Rel: relAlternate, Href: item.URL})
	link(Link{Rel: "related", Href: item.ExternalURL})
	for _, a := range item.Attachments {
		link(Link{Rel: relEnclosure, Href: a.URL, Type: a.MimeType, Title: a.Title, Length: a.Length()})
	}
	e.Links = r.list.links()
	need := xmlscan.Loan{}
	if item.Places.IsHTML && len(r.doc.URL) > xmlscan.ShortBase {
		need.Markup = jsonfeed.StringAt(raw, item.Places.Content)
	}
	r.list.keep(e, offset, need)
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

// jsonPlaces returns the places of an item's texts. That of content_text is negative.
func jsonPlaces(p jsonfeed.Places) feedxml.Places {
	if !p.IsHTML {
		p.Content = -p.Content
	}
	places := feedxml.Places{}
	for i, at := range [...]int{p.Title, p.Summary, p.Content} {
		if at = cmp.Or(at, -1); at <= math.MaxInt32 && at >= math.MinInt32 {
			places.At[i] = int32(at)
		}
	}
	return places
}

// jsonText returns one of a JSON Feed item's texts.
func (e *Entry) jsonText(which feedxml.TextOf) Text {
	place := int(e.texts.At[which])
	if place == 0 {
		place = int(jsonPlaces(jsonfeed.ReadItem(e.raw).Places).At[which])
	}
	t := Text{Type: textPlain, Base: e.scope.Base}
	switch {
	case (place == -1 || place == 0) && which == feedxml.ContentOf:
		return e.picture()
	case place == -1 || place == 0:
		return Text{}
	case place > 0 && which == feedxml.ContentOf:
		t.Type = textHTML
	}
	t.Body = jsonfeed.StringAt(e.raw, max(place, -place))
	return t
}

// picture returns the image of a JSON Feed's item without any text, as its content.
func (e *Entry) picture() Text {
	item := jsonfeed.ReadItem(e.raw)
	if item.Image == "" || item.Places.Summary != 0 {
		return Text{}
	}
	return Text{Type: textHTML, Body: `<img src="` + html.EscapeString(item.Image) + `">`, Base: e.scope.Base}
}

// JSON returns the item of a JSON Feed as published; nil in the XML formats, and if the
// entry's fields were set since it was read: see XML.
func (e *Entry) JSON() json.RawMessage {
	if e.format() != FormatJSONFeed || e.isAltered() {
		return nil
	}
	return json.RawMessage(e.raw)
}

// signedJSON returns a JSON Feed's item with authors, unless it has a member for them.
func (e *Entry) signedJSON(authors []Person) *Entry {
	item := jsonfeed.ReadItem(e.raw)
	end := strings.LastIndexByte(e.raw, '}')
	if item.Author != (jsonfeed.Author{}) || item.Authors != nil || end < 0 {
		return e
	}
	list := make([]jsonfeed.Author, len(authors))
	for i, a := range authors {
		if list[i] = (jsonfeed.Author{Name: cmp.Or(a.Name, a.Email), URL: a.URI}); a.Name != "" && a.Email != "" {
			list[i].Name = a.Email + " (" + a.Name + ")"
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return e
	}
	comma := ","
	if strings.HasSuffix(trim(e.raw[:end]), "{") {
		comma = ""
	}
	signed := *e
	signed.raw, signed.signed = e.raw[:end]+comma+`"authors":`+string(text)+e.raw[end:], true
	return &signed
}
