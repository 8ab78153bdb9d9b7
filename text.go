package feedhistory

import (
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// The types of a Text. An entry's content may have a media type instead.
const (
	TextPlain = "text"
	TextHTML  = "html"
	TextXHTML = "xhtml"
)

// A Text is a text construct (RFC 4287 §3.1), or an entry's content (§4.1.3). The zero
// value means there is none.
type Text struct {
	Type string // TextPlain, TextHTML, TextXHTML or, for content, a media type; "" if there is no text
	Body string // characters, HTML, the markup inside xhtml's div, or the bytes of the media type
	Src  string // the absolute URL of content elsewhere; "" if it is in Body
	Base string // the base for relative references in Body
	Lang string // xml:lang in scope; "" if there is none
}

// Plain returns the text without markup. It separates blocks by a newline, and leaves
// out invisible elements, such as scripts and styles.
func (t Text) Plain() string { return xmlscan.Construct(t).Plain() }

// absolute returns the body with absolute references.
func (t Text) absolute() string { return xmlscan.Construct(t).Absolute() }

// html returns the text as HTML with absolute references.
func (t Text) html() string { return xmlscan.Construct(t).AsHTML() }

// Title returns the entry's title.
func (e *Entry) Title() Text { return e.text(0, false) }

// Summary returns the entry's summary; in RSS, its description. If there is none, it
// returns media:description.
func (e *Entry) Summary() Text { return e.text(1, false) }

// Content returns the entry's content; in RSS, content:encoded.
func (e *Entry) Content() Text { return e.text(2, false) }

func (e *Entry) format() Format {
	if e.Source == nil {
		return 0
	}
	return e.Source.Format
}

// text reads one of the three texts from the entry as published. A literal title of RSS
// has its references to characters as they are.
func (e *Entry) text(which int, literal bool) Text {
	place := e.texts[which]
	switch {
	case e.format() == JSONFeed:
		return e.jsonText(which)
	case e.raw == "" || place < 0:
		return Text{}
	}
	return Text(feedxml.Text(e.raw, e.scope, feedxml.Format(e.format()), which, place, literal))
}

// clip shortens a quotation in a message.
func clip(s string) string { return xmlscan.Clip(s, 40) }

func trim(s string) string { return xmlscan.Trim(s) }
