// Package jsonfeed reads the values of JSON Feed 1.0 and 1.1 by the tokens of a document,
// in one pass. The names of members are exact: encoding/json takes "ID" for "id".
package jsonfeed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// A Reader reads a text value by value. Make one with New. After an error, all values are
// zero.
type Reader struct {
	d     *jsontext.Decoder
	buf   bytes.Buffer // a copy of text
	text  string
	name  string // the current member
	begin int    // where the object or array entered last begins
	note  func(message string, offset int)
	err   error
}

// New returns a Reader of a text in UTF-8. It passes values of the wrong type to note.
func New(text string, note func(message string, offset int)) *Reader {
	r := &Reader{d: new(jsontext.Decoder)}
	r.reset(text, note)
	return r
}

func (r *Reader) reset(text string, note func(message string, offset int)) {
	*r = Reader{d: r.d, buf: r.buf, text: text, note: note}
	r.buf.Reset()
	r.buf.WriteString(text)
	// The last member of a name counts, and half a surrogate pair is U+FFFD, as in
	// encoding/json.
	r.d.Reset(&r.buf, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// readers are readers for ReadItem. Their memory is larger than an item.
var readers = sync.Pool{New: func() any { return New("", nil) }}

// A SyntaxError is the place where the text stops being JSON. It unwraps to
// io.ErrUnexpectedEOF if that is its end.
type SyntaxError struct {
	Offset int
	Err    error
}

// Error returns the error without its place.
func (e *SyntaxError) Error() string { return e.Err.Error() }

// Unwrap returns the underlying error.
func (e *SyntaxError) Unwrap() error { return e.Err }

// Err returns the first error, a *SyntaxError.
func (r *Reader) Err() error { return r.err }

func (r *Reader) fail(err error) {
	if err == nil || r.err != nil {
		return
	}
	e := &SyntaxError{len(r.text), io.ErrUnexpectedEOF}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok && !errors.Is(err, io.ErrUnexpectedEOF) {
		e.Offset, e.Err = int(syntax.ByteOffset), syntax.Err
	}
	r.err = e
}

// Offset returns the end of the value, or name, read last.
func (r *Reader) Offset() int { return int(r.d.InputOffset()) }

// End reports as an error whatever follows the outermost value.
func (r *Reader) End() {
	if at := r.Offset(); r.err == nil && strings.Trim(r.text[at:], " \t\r\n") != "" {
		r.err = &SyntaxError{at, errors.New("there is something after the end of the JSON")}
	}
}

// Raw returns the next value as written.
func (r *Reader) Raw() string {
	if r.err != nil {
		return ""
	}
	value, err := r.d.ReadValue()
	if r.fail(err); r.err != nil {
		return ""
	}
	end := r.Offset()
	return r.text[end-len(value) : end]
}

// is reports whether the next value is of a kind. If not, it skips the value, with a note
// unless that is null.
func (r *Reader) is(kind jsontext.Kind) bool {
	got := r.d.PeekKind()
	if r.err != nil || got == kind {
		return r.err == nil
	}
	offset := r.Offset()
	if r.Raw(); r.err == nil && got != 'n' {
		r.note(fmt.Sprintf("%q is %s instead of %s", r.name, kindName(got), kindName(kind)), offset)
	}
	return false
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	}
	return "true or false"
}

// open moves into an array or object, and reports whether there is one.
func (r *Reader) open(kind jsontext.Kind) bool {
	if !r.is(kind) {
		return false
	}
	_, err := r.d.ReadToken()
	r.fail(err)
	r.begin = r.Offset() - 1
	return r.err == nil
}

// more reports whether the innermost array or object goes on; if not, it moves out.
func (r *Reader) more() bool {
	if r.err != nil {
		return false
	}
	if kind := r.d.PeekKind(); kind != ']' && kind != '}' {
		return true
	}
	_, err := r.d.ReadToken()
	r.fail(err)
	return false
}

// Members yields the names of the next value, an object, each before its value, which may
// then be read.
func (r *Reader) Members() iter.Seq[string] {
	return func(yield func(string) bool) {
		if !r.open('{') {
			return
		}
		outer := r.name
		for r.more() {
			r.name = unquote(r.Raw())
			before := r.Offset()
			if r.err != nil || !yield(r.name) {
				return
			}
			if r.Offset() == before {
				r.Raw()
			}
		}
		r.name = outer
	}
}

// Elements yields the places of the next value's elements, an array. Each may then be read.
func (r *Reader) Elements() iter.Seq[int] {
	return func(yield func(int) bool) {
		if !r.open('[') {
			return
		}
		for r.more() {
			before := r.Offset()
			if !yield(before) {
				return
			}
			if r.Offset() == before {
				r.Raw()
			}
		}
	}
}

// Text reads a string.
func (r *Reader) Text() string {
	if !r.is('"') {
		return ""
	}
	return unquote(r.Raw())
}

// URL reads a string, and reports whether it is one, or null.
func (r *Reader) URL() (ref string, ok bool) {
	kind := r.d.PeekKind()
	return r.Text(), kind == '"' || kind == 'n'
}

// ID reads a string, or a number as written: version 1.0 has both.
func (r *Reader) ID() string {
	if r.d.PeekKind() == '0' {
		return r.Raw()
	}
	return strings.Trim(r.Text(), " \t\r\n")
}

// An Item is an item of a feed. Zero fields are missing.
type Item struct {
	ID, URL, ExternalURL string
	Published, Modified  string
	Attachments          []Attachment
	Places               Places

	// The other members, which only ReadItem reads.
	Image, BannerImage string
	Language           string
	Tags               []string
	Author             Author
	Authors            []Author
}

// Places are the offsets of an item's title, summary and content_html or content_text
// within it; zero if it has none.
type Places struct {
	Title, Summary, Content int
	IsHTML                  bool // the content is content_html
}

// An Author is a person.
type Author struct {
	Name string `json:"name,omitempty"`
	URL  string `json:"url,omitempty"`
}

// An Attachment is a file that belongs to an item.
type Attachment struct {
	URL, MimeType, Title string
	Size                 float64 // in bytes
	Duration             float64 // in seconds
}

// Length returns the attachment's size as the length of a link.
func (a Attachment) Length() string {
	if a.Size <= 0 {
		return ""
	}
	return strconv.FormatFloat(a.Size, 'f', 0, 64)
}

// ReadItem reads a whole item.
func ReadItem(raw string) *Item {
	item := new(Item)
	again(raw, func(r *Reader) { r.item(item, true) })
	return item
}

// again reads an item once more, by a reader used before.
func again(raw string, read func(r *Reader)) {
	r := readers.Get().(*Reader)
	r.reset(raw, func(string, int) {})
	read(r)
	if r.text = ""; r.buf.Cap() <= 64<<10 {
		readers.Put(r)
	}
}

// Others returns the members of an item other than the known ones, as an object; "" if there are
// none.
func Others(raw string, known func(name string) bool) string {
	var rest Rest
	again(raw, func(r *Reader) {
		for name := range r.Members() {
			if value := r.Raw(); !known(name) {
				rest.Add(name, value)
			}
		}
	})
	return rest.String()
}

// A Rest collects members of an object for which other formats have no element.
type Rest struct{ b []byte }

// Add adds a member: of persons and files only those about which there is more than names,
// addresses, types and sizes.
func (r *Rest) Add(name, value string) {
	needs := map[string]string{"author": `"avatar"`, "authors": `"avatar"`, "attachments": `"duration_in_seconds"`}
	if value == "" || value == "null" || !strings.Contains(value, needs[name]) {
		return
	}
	quoted, _ := jsontext.AppendQuote(append(r.b, ','), name)
	r.b = append(append(quoted, ':'), value...)
}

// String returns the object; "" if it is empty.
func (r *Rest) String() string {
	if len(r.b) == 0 {
		return ""
	}
	return "{" + string(r.b[1:]) + "}"
}

// Item reads the parts of the next value by which an entry is known, and returns it as
// written; "" with a note if it is no object. It only checks the other members.
func (r *Reader) Item(item *Item) (raw string) {
	*item = Item{Attachments: item.Attachments[:0]}
	r.name = "items"
	if r.d.PeekKind() != '{' {
		offset := r.Offset()
		if r.Raw(); r.err == nil {
			r.note("an item is not an object", offset)
		}
		return ""
	}
	from := r.item(item, false)
	if r.err != nil {
		return ""
	}
	return r.text[from:r.Offset()]
}

// item reads an item, and returns its beginning.
func (r *Reader) item(item *Item, whole bool) (from int) {
	from = -1
	for name := range r.Members() {
		if from < 0 {
			from = r.begin
		}
		switch name {
		case "id":
			item.ID = r.ID()
		case "url":
			item.URL = r.Text()
		case "external_url":
			item.ExternalURL = r.Text()
		case "date_published":
			item.Published = r.Text()
		case "date_modified":
			item.Modified = r.Text()
		case "attachments":
			item.Attachments = r.attachments(item.Attachments[:0])
		case "title":
			item.Places.Title = r.place(from)
		case "summary":
			item.Places.Summary = r.place(from)
		case "content_html":
			if at := r.place(from); at > 0 {
				item.Places.Content, item.Places.IsHTML = at, true
			}
		case "content_text":
			if at := r.place(from); at > 0 && !item.Places.IsHTML {
				item.Places.Content = at
			}
		default:
			r.detail(item, name, whole)
		}
	}
	if from < 0 {
		from = r.begin
	}
	return from
}

// place reads a string, and returns its distance from the beginning of the item; zero if
// it is empty.
func (r *Reader) place(from int) int {
	if !r.is('"') {
		return 0
	}
	n := len(r.Raw())
	if n <= len(`""`) {
		return 0
	}
	return r.Offset() - n - from
}

// detail reads a member that no entry is known by, or only checks its type.
func (r *Reader) detail(item *Item, name string, whole bool) {
	kind := jsontext.Kind('"')
	switch name {
	case "image", "banner_image", "language":
	case "tags", "authors":
		kind = '['
	case "author":
		kind = '{'
	default:
		return
	}
	if !whole {
		r.is(kind)
		return
	}
	switch name {
	case "image":
		item.Image = r.Text()
	case "banner_image":
		item.BannerImage = r.Text()
	case "language":
		item.Language = r.Text()
	case "tags":
		item.Tags = r.strings()
	case "author":
		item.Author = r.Author()
	case "authors":
		item.Authors = r.Authors()
	}
}

// strings reads an array of strings.
func (r *Reader) strings() (all []string) {
	for range r.Elements() {
		if r.is('"') {
			all = append(all, unquote(r.Raw()))
		}
	}
	return all
}

// Author reads an author.
func (r *Reader) Author() (a Author) {
	for name := range r.Members() {
		switch name {
		case "name":
			a.Name = r.Text()
		case "url":
			a.URL = r.Text()
		}
	}
	return a
}

// Authors reads an array of authors; nil if there is none.
func (r *Reader) Authors() (all []Author) {
	if r.d.PeekKind() == '[' {
		all = []Author{}
	}
	for range r.Elements() {
		all = append(all, r.Author())
	}
	return all
}

// attachments reads an array of attachments.
func (r *Reader) attachments(all []Attachment) []Attachment {
	for range r.Elements() {
		var a Attachment
		for name := range r.Members() {
			switch name {
			case "url":
				a.URL = r.Text()
			case "mime_type":
				a.MimeType = r.Text()
			case "title":
				a.Title = r.Text()
			case "size_in_bytes":
				a.Size = r.number()
			case "duration_in_seconds":
				a.Duration = r.number()
			}
		}
		all = append(all, a)
	}
	return all
}

// number reads a number; zero if it is too large.
func (r *Reader) number() float64 {
	if !r.is('0') {
		return 0
	}
	n, err := strconv.ParseFloat(r.Raw(), 64)
	if err != nil {
		return 0
	}
	return n
}

// unquote returns the meaning of a string of sound JSON. Half a surrogate pair is U+FFFD.
func unquote(raw string) string {
	switch {
	case len(raw) < 2:
		return ""
	case strings.IndexByte(raw, '\\') < 0:
		return raw[1 : len(raw)-1]
	}
	b := buffers.Get().(*[]byte)
	*b, _ = jsontext.AppendUnquote((*b)[:0], raw)
	meaning := string(*b)
	buffers.Put(b)
	return meaning
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// StringAt returns the string at an offset of sound JSON.
func StringAt(text string, offset int) string {
	text = text[offset:]
	for end := 1; ; end++ {
		n := strings.IndexByte(text[end:], '"')
		if n < 0 {
			return ""
		}
		end += n
		escapes := end
		for text[escapes-1] == '\\' { // the first character is a quotation mark
			escapes--
		}
		if (end-escapes)%2 == 0 {
			return unquote(text[:end+1])
		}
	}
}
