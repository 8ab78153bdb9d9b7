package feedhistory

import (
	"github.com/feedhistory/feedhistory/internal/markup"
	"github.com/feedhistory/feedhistory/internal/vocab"
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

// isMarkup reports whether the body is HTML, or XHTML written as HTML.
func (t Text) isMarkup() bool { return t.Type == TextHTML || t.Type == TextXHTML }

// Plain returns the text without markup. It separates blocks by a newline, and leaves
// out invisible elements, such as scripts and styles.
func (t Text) Plain() string {
	if !t.isMarkup() {
		return t.Body
	}
	return markup.Plain(t.Body)
}

// absolute returns the body with absolute references.
func (t Text) absolute() string {
	if !t.isMarkup() || t.Base == "" {
		return t.Body
	}
	return markup.Absolute(t.Body, t.Base)
}

// chosen returns the best of the current element's children for a text.
func (r *elements) chosen(c textChoice) textChoice {
	for depth := r.s.Depth(); c.rank < vocab.FirstRank && r.s.Child(depth); {
		if r.isGroup() {
			c.offerAll(r)
		} else if c.offer(r) {
			c.medium = 0
		}
	}
	return c
}

// Title returns the entry's title.
func (e *Entry) Title() Text { return e.text(0) }

// Summary returns the entry's summary; in RSS, its description. If there is none, it
// returns media:description.
func (e *Entry) Summary() Text { return e.text(1) }

// Content returns the entry's content; in RSS, content:encoded.
func (e *Entry) Content() Text { return e.text(2) }

func (e *Entry) format() Format {
	if e.Source == nil {
		return 0
	}
	return e.Source.Format
}

// textNames are the names of an entry's texts in Atom.
var textNames = [...]string{"title", "summary", "content"}

// textPlaces are the offsets at which an entry's texts begin: 0 if unknown, -1 if there
// is no such text. For JSON Feed, see jsonText.
type textPlaces [len(textNames)]int32

// text reads one of the three texts from the entry as published.
func (e *Entry) text(which int) (best Text) {
	return e.textAs(which, false)
}

// textAs reads one of the three texts. A literal title of RSS has its references to
// characters as published.
func (e *Entry) textAs(which int, literal bool) Text {
	place := e.texts[which]
	switch {
	case e.format() == JSONFeed:
		return e.jsonText(which)
	case e.raw == "" || place < 0:
		return Text{}
	}
	r := e.reader()
	defer r.release()
	r.literal = literal
	if place > 0 {
		r.s.Seek(int(place))
		r.s.Next()
		return r.textConstruct()
	}
	choose := func(what, medium int) textChoice {
		defer r.readAgain(e.raw, e.scope, e.format())
		return r.chosen(textChoice{what: textNames[what], medium: medium})
	}
	if which == 0 {
		return choose(0, 0).text
	}
	choice := choose(which, choose(0, 0).medium)
	if choice.rank == 0 && (which == 1 || choose(1, 0).rank > 0) { // content beside a summary
		return choice.beside
	}
	return choice.text
}
