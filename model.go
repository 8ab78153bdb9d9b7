package feedhistory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// The parts of feeds and entries besides ids, times, links and texts. FORMATS.md has the
// elements they come from.

// A Person is an author or a contributor (RFC 4287 §3.2).
type Person struct {
	Name  string `json:"name"`
	URI   string `json:"uri,omitempty"`
	Email string `json:"email,omitempty"`

	// Inherited means the entry itself does not name the person: its source or its feed does.
	// JSON leaves it out, because an entry in JSON stands alone.
	Inherited bool `json:"-"`
}

// personOf returns a person as read.
func personOf(p feedxml.Person) Person { return Person{Name: p.Name, URI: p.URI, Email: p.Email} }

// persons returns persons as read.
func persons(read []feedxml.Person, inherited bool) (all []Person) {
	for _, r := range read {
		p := personOf(r)
		p.Inherited = inherited
		all = append(all, p)
	}
	return all
}

// A Category is a category of a feed or an entry (RFC 4287 §4.2.2).
type Category struct {
	Term   string `json:"term"`             // the text, in RSS; the tag, in a JSON Feed
	Scheme string `json:"scheme,omitempty"` // RSS calls it domain; "" if none is given
	Label  string `json:"label,omitempty"`  // the term for people; "" if none is given
}

// UnmarshalJSON reads an object, or a string, which is the term.
func (c *Category) UnmarshalJSON(data []byte) error {
	type plain Category
	if bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, &c.Term)
	}
	return json.Unmarshal(data, (*plain)(c))
}

// A Generator is the program behind a feed (RFC 4287 §4.2.4). RSS has only a name.
type Generator struct {
	Name    string
	URI     string // absolute; "" if none is given
	Version string // "" if none is given
}

// An Enclosure is a file of an entry, such as an episode of a podcast.
type Enclosure struct {
	URL      string        // absolute if the base allows
	Type     string        // the media type; "" if none is given
	Length   int64         // in bytes; zero if none is given
	Duration time.Duration // zero if none is given
	Title    string        // "" if none is given
}

// parts reads the parts of the entry as published.
func (e *Entry) parts() feedxml.Parts {
	if e.raw == "" {
		return feedxml.Parts{}
	}
	return feedxml.PartsOf(e.element())
}

// Authors returns the authors (RFC 4287 §4.2.1). In Atom an entry without an author has those of
// its atom:source, and else its feed's; in a JSON Feed it has its feed's. They are Inherited
// then. In RSS they are the item's author and dc:creator, or else its itunes:author; a channel's
// managingEditor is not the author of its items.
func (e *Entry) Authors() []Person {
	parts := e.parts()
	if len(parts.Authors) > 0 {
		return persons(parts.Authors, false)
	}
	inherited := slices.Clone(e.authors())
	if parts.Source.Atom != "" {
		if source := sourceDocument(parts.Source.Atom); source != nil && len(source.Authors) > 0 {
			inherited = source.Authors
		}
	}
	for i := range inherited {
		inherited[i].Inherited = true
	}
	return inherited
}

// Contributors returns those who contributed besides the authors: atom:contributor (RFC 4287
// §4.2.3), in RSS also dc:contributor.
func (e *Entry) Contributors() []Person { return persons(e.parts().Contributors, false) }

// Categories returns the categories: atom:category (RFC 4287 §4.2.2), category with its domain in
// RSS, dc:subject, or the tags of a JSON Feed.
func (e *Entry) Categories() (all []Category) {
	for _, c := range e.parts().Categories {
		all = append(all, Category(c))
	}
	return all
}

// Rights returns the statement of rights: atom:rights (RFC 4287 §4.2.10) or dc:rights. Those of
// the feed are in Document.Rights; an entry does not inherit them.
func (e *Entry) Rights() Text { return Text(e.parts().Rights) }

// Source returns the head of the feed the entry was copied from: atom:source (RFC 4287
// §4.2.11), or RSS's source, which has a title and the feed's address, the link "self". It is nil
// if the entry names none. The feed in which the entry was read is Head.
func (e *Entry) Source() *Document {
	switch s := e.parts().Source; {
	case s.Atom != "":
		return sourceDocument(s.Atom)
	case s.URL != "":
		return &Document{Format: FormatRSS, Title: s.Title, Links: Links{{Rel: relSelf, Href: s.URL}}}
	case s.Title != "":
		return &Document{Format: FormatRSS, Title: s.Title}
	}
	return nil
}

// sourceDocument reads atom:source; nil if it is not well-formed.
func sourceDocument(element string) *Document {
	r := Parser{Strict: true}.newDocumentReader(element, "", feedxml.New(""))
	defer r.xml.Release()
	r.xml.Cursor = xmlscan.Open(element, r.limits.xml)
	r.xml.Around("")
	if !r.xml.Child(0) {
		return nil
	}
	r.begin(FormatAtom)
	r.atomFeed()
	if r.xml.Err() != nil || r.err != nil {
		return nil
	}
	head := r.doc.headOnly()
	return &head
}

// Comments returns the URL of the page with the comments: RSS's comments or, in Atom, the link
// "replies" to a web page (RFC 4685 §4); "" if there is none.
func (e *Entry) Comments() string {
	for i := range e.Links {
		if l := &e.Links[i]; l.Rel == relReplies && l.isTypedPage() {
			return l.Href
		}
	}
	return e.parts().Comments
}

// Language returns the language of the entry by RFC 5646: xml:lang, dc:language or the language of
// an item of a JSON Feed, or else its feed's; "" if none is given.
func (e *Entry) Language() string {
	language := e.parts().Language
	if language == "" && e.Head != nil {
		language = e.Head.Language
	}
	return language
}

// Enclosures returns the files of the entry, each once: enclosures of RSS, links of
// Atom with the relation "enclosure" or OPDS's for acquisition, attachments of a JSON Feed, and
// files named only by Media RSS or podcast:alternateEnclosure, except pictures. Of several
// versions of a file it has the default one, or the first. The lengths and durations of Media RSS and
// iTunes count where the others give none.
func (e *Entry) Enclosures() (all []Enclosure) {
	parts := e.parts()
	at := func(urls ...string) int {
		return slices.IndexFunc(all, func(f Enclosure) bool { return slices.Contains(urls, f.URL) })
	}
	for i := range e.Links {
		if l := &e.Links[i]; l.isFile() && at(l.Href) < 0 {
			all = append(all, Enclosure{URL: l.Href, Type: trim(l.Type), Length: feedxml.Link(*l).Bytes(), Title: l.Title})
		}
	}
	for _, f := range parts.Files {
		i := at(append(f.Versions, f.URL)...)
		switch {
		case i >= 0 && all[i].URL == f.URL:
			same := &all[i]
			same.Type, same.Title, same.Length, same.Duration = cmp.Or(same.Type, f.Type), cmp.Or(same.Title, f.Title), cmp.Or(same.Length, f.Length), cmp.Or(same.Duration, f.Duration)
		case i >= 0: // another version of it
		case f.Alternate && len(all) > 0: // of the one there is
		default:
			all = append(all, Enclosure{URL: f.URL, Type: f.Type, Length: f.Length, Duration: f.Duration, Title: f.Title})
		}
	}
	for i := range all {
		kind, _, _ := strings.Cut(strings.ToLower(all[i].Type), "/")
		if kind == "audio" || kind == "video" || len(all) == 1 && kind != "image" {
			all[i].Duration = cmp.Or(all[i].Duration, parts.Duration)
			break
		}
	}
	return all
}

// Image returns the URL of the picture for the entry: itunes:image, a picture of Media
// RSS or a JSON Feed, or an enclosure of this kind; "" if there is none. It does not look into the
// texts.
func (e *Entry) Image() string {
	if image := e.parts().Image; image != "" {
		return image
	}
	for i := range e.Links {
		if l := &e.Links[i]; l.isFile() && strings.HasPrefix(strings.ToLower(trim(l.Type)), "image/") {
			return l.Href
		}
	}
	return ""
}

// Extensions returns the entry's other elements, each as XML with the declarations of its
// namespaces: those of other vocabularies, and those that ID, times, links, texts, authors and
// categories do not express, such as atom:rights. Those of RSS have the namespace
// http://backend.userland.com/rss2, and other members of a JSON Feed are in an element json.
func (e *Entry) Extensions() []string {
	if e.raw == "" {
		return nil
	}
	var item feedxml.Item
	item.ReadLists(e.element())
	item.ReadExtensions()
	return item.Extensions
}

// Extensions returns the other elements of the head section, each as XML with the declarations of
// its namespaces: those of other vocabularies, and those the fields do not express, or not
// all of. Those of RSS, and other members of a JSON Feed, are as in Entry.Extensions.
func (d *Document) Extensions() []string {
	head := d.section()
	return head.Extensions()
}

// isFile reports whether a link leads to a file of an entry.
func (l *Link) isFile() bool {
	switch l.Rel {
	case relEnclosure, "http://opds-spec.org/acquisition", "http://opds-spec.org/acquisition/open-access":
		return l.Href != ""
	}
	return false
}
