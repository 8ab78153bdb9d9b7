package jsonfeed

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// An Item is an item of a feed. Zero fields are missing.
type Item struct {
	ID, URL, ExternalURL string
	Published, Modified  string
	Attachments          []Attachment
	Places               Places

	// The other members, which only ReadItem reads.
	Image, BannerImage string
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
	item, r := new(Item), readers.Get().(*Reader)
	r.reset(raw, func(string, int) {})
	r.item(item, true)
	if r.text = ""; r.buf.Cap() <= 64<<10 {
		readers.Put(r)
	}
	return item
}

// Item reads the parts of the next value by which an entry is known, and returns it as
// written; "" with a note if it is no object. It only checks the other members.
func (r *Reader) Item(item *Item) (raw string) {
	*item = Item{Attachments: item.Attachments[:0]}
	r.name = "items"
	if r.d.PeekKind() != '{' {
		offset := r.Offset()
		if r.raw(); r.err == nil {
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
	n := len(r.raw())
	if n <= len(`""`) {
		return 0
	}
	return r.Offset() - n - from
}

// detail reads a member that no entry is known by, or only checks its type.
func (r *Reader) detail(item *Item, name string, whole bool) {
	kind := jsontext.Kind('"')
	switch name {
	case "image", "banner_image":
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
			all = append(all, unquote(r.raw()))
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
	n, err := strconv.ParseFloat(r.raw(), 64)
	if err != nil {
		return 0
	}
	return n
}
