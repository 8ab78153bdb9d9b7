package feedhistory

import (
	"encoding/base64"
	"math"
	"strings"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/markup"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// The types of a Text. An entry's content may have a media type instead.
const (
	TextPlain = "text"
	TextHTML  = "html"
	TextXHTML = "xhtml"
)

// A Text is a text construct (RFC 4287 §3.1), or an entry's content (§4.1.3). The zero
// value means that there is none.
type Text struct {
	Type string // TextPlain, TextHTML, TextXHTML or, for content, a media type; "" if there is no text
	Body string // characters, HTML, the markup inside xhtml's div, or the bytes of the media type
	Src  string // the absolute URL of content that is elsewhere; "" if it is in Body
	Base string // the base for relative references in Body
	Lang string // xml:lang in scope; "" if there is none
}

// isMarkup reports whether the body is HTML, or XHTML written as HTML.
func (t Text) isMarkup() bool { return t.Type == TextHTML || t.Type == TextXHTML }

// Plain returns the text without markup. It separates blocks by a newline, and
// leaves out what browsers do not show, such as scripts and styles.
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
// is no such text.
type textPlaces [len(textNames)]int32

// text reads one of the three texts from the entry as published.
func (e *Entry) text(which int) (best Text) {
	place := e.texts[which]
	switch {
	case e.raw == "" || place < 0:
		return Text{}
	case e.format() == JSONFeed:
		return e.jsonText(textNames[which])
	}
	r := e.reader()
	defer r.release()
	if place > 0 {
		r.s.Seek(int(place))
		r.s.Next()
		return r.textConstruct()
	}
	choice := textChoice{what: textNames[which]}
	for depth := r.s.Depth(); choice.rank < firstRank && r.s.Child(depth); {
		if !r.isGroup() {
			choice.offer(r)
			continue
		}
		for depth := r.s.Depth(); r.s.Child(depth); {
			if r.space() == vocab.Media {
				choice.offer(r)
			}
		}
	}
	return choice.text
}

// isGroup reports whether the current element is media:group, which has the texts of an
// entry for a video.
func (r *reader) isGroup() bool { return r.s.Local() == "group" && r.space() == vocab.Media }

// A textChoice is the best element so far for an entry's title, summary or content.
type textChoice struct {
	what string
	text Text
	rank int
}

// offer takes the current element, if it is better.
func (c *textChoice) offer(r *reader) {
	if n := r.textRank(c.what); n > c.rank {
		c.text, c.rank = r.textConstruct(), n
	}
}

// A textFinder finds the texts of an entry while it is read.
type textFinder struct {
	places textPlaces
	ranks  [len(textNames)]int
	group  bool // there is a media:group
}

// look looks at the current child of the entry, which has the given name.
func (f *textFinder) look(r *reader, name string) {
	which := 0
	switch name {
	case "title":
	case "summary", "description":
		which = 1
	case "content", "encoded", "body", "fullitem":
		which = 2
	case "group":
		f.group = f.group || r.isGroup()
		return
	default:
		return
	}
	if n := r.textRank(textNames[which]); n > f.ranks[which] {
		f.places[which], f.ranks[which] = int32(r.s.Offset()-r.start), n
	}
}

// found returns the places of the texts in an entry of n bytes.
func (f *textFinder) found(n int) textPlaces {
	if n > math.MaxInt32 {
		return textPlaces{}
	}
	for which, rank := range f.ranks {
		switch {
		case f.group && rank < firstRank:
			f.places[which] = 0
		case rank == 0:
			f.places[which] = -1
		}
	}
	return f.places
}

// firstRank is the rank of the format's own element.
const firstRank = 9

// textRank returns how suitable the current child of an entry is as its title, summary
// or content: 0 means not at all, and the highest rank wins. Elements of other
// vocabularies are used if the format's own is missing; the order is gofeed's.
func (r *reader) textRank(what string) int {
	space, local := r.space(), r.s.Local()
	switch {
	case r.doc.Format == Atom && (space == r.native || vocab.IsAtom(space)):
		if vocab.AtomName(local) == what {
			return firstRank
		}
		return 0
	case r.doc.Format == RSS && r.isRSS():
		return rssRank(what, vocab.RSSName(local))
	}
	return foreignRank(what, space, local, r.doc.Format == RSS)
}

// rssRank is textRank for an element of RSS, or one that is not in RSS but that feeds
// use.
func rssRank(what, local string) int {
	switch {
	case local == what && what == "title", local == "description" && what == "summary":
		return firstRank
	case local == what:
		return 2
	case what == "content" && (local == "body" || local == "fullitem"):
		return 1
	}
	return 0
}

// foreignRank is textRank for an element of another vocabulary.
func foreignRank(what, space, local string, rss bool) int {
	atom := vocab.IsAtom(space) && local == what
	switch {
	case what == "title" && local == "title" && space == vocab.DC:
		return 4
	case what == "title" && local == "title" && space == vocab.Media:
		return 3
	case what == "summary" && local == "description" && space == vocab.Media:
		return 1
	case !rss:
		return 0
	case atom:
		return 2
	case what == "summary" && local == "description" && space == vocab.DC:
		return 4
	case what == "summary" && local == "summary" && space == vocab.ITunes:
		return 3
	case what == "content" && local == "encoded" && space == vocab.Content:
		return firstRank
	case what == "content" && local == "body" && space == vocab.XHTML:
		return 3
	}
	return 0
}

// textConstruct reads the current element as a text construct or content.
func (r *reader) textConstruct() Text {
	t := Text{Base: r.currentBase(), Lang: r.language()}
	space, local := r.space(), vocab.AtomName(r.s.Local())
	if src, ok := r.s.Attr("", "src"); ok && local == "content" {
		t.Src = iri.Resolve(t.Base, src)
	}
	kind, _ := r.s.Attr("", "type")
	mode, _ := r.s.Attr("", "mode")
	if !vocab.IsAtom(space) && (r.doc.Format != Atom || space != r.native) {
		// a title has text rather than HTML
		if t.Type = TextHTML; (strings.EqualFold(local, "title") || space == vocab.Media) && !strings.EqualFold(trim(kind), TextHTML) {
			t.Type = TextPlain
		}
		return r.textOrMarkup(t)
	}
	t.Type = textType(kind, mode)
	if isMedia(t.Type) && (local != "content" || !strings.Contains(t.Type, "/")) {
		r.note("type-unknown", "the type of a text construct is text, html or xhtml, not "+clip(t.Type)+": it is read as text", r.s.Offset())
		t.Type = TextPlain
	}
	switch {
	case mode == "base64":
		t.Body = decodeBase64(r.plainText())
	case t.Type == TextXHTML:
		t.Body, t.Base = r.xhtml(true)
	case !isMedia(t.Type):
		return r.textOrMarkup(t)
	case isXMLType(t.Type):
		t.Body = trim(r.inner())
	case strings.HasPrefix(t.Type, "text/"):
		t.Body = r.plainText()
	default:
		t.Body = decodeBase64(r.plainText())
	}
	return t
}

// textOrMarkup reads the current element's characters. If there are elements among
// them, the publisher did not escape the markup; then it reads the markup.
func (r *reader) textOrMarkup(t Text) Text {
	start := r.s.Offset()
	if t.Body = r.plainText(); !r.s.Nested() || r.s.Err() != nil {
		return t
	}
	within := newFragment(r.text[start:r.s.End()], r.newScope(), r.doc.Format)
	t.Type = TextHTML
	t.Body, t.Base = within.xhtml(false)
	return t
}

// decodeBase64 decodes a text, or returns it unchanged if it is not base64.
func decodeBase64(text string) string {
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return text
	}
	return string(data)
}

// textType returns the type of a text by the attributes of Atom 1.0 (type) or 0.3 (type
// and mode).
func textType(kind, mode string) string {
	kind = strings.ToLower(trim(kind))
	switch kind {
	case "", "text", "plain", "text/plain":
		return TextPlain
	case "html", "xhtml":
		return kind
	case "text/xhtml":
		return TextXHTML
	case "text/html":
		if mode == "xml" {
			return TextXHTML
		}
		return TextHTML
	case "application/xhtml+xml":
		if mode == "escaped" {
			return TextHTML
		}
		return TextXHTML
	}
	return kind
}

// isXMLType reports whether a media type is XML (RFC 4287 §4.1.3.3, RFC 7303).
func isXMLType(media string) bool {
	media, _, _ = strings.Cut(media, ";")
	return strings.HasSuffix(media, "+xml") || strings.HasSuffix(media, "/xml")
}

// inner returns the markup inside the current element, and moves past it.
func (r *reader) inner() string {
	start, depth := r.s.End(), r.s.Depth()
	for r.s.Next() != xmlscan.Stop && r.s.Depth() >= depth {
	}
	return r.text[start:max(start, r.s.Offset())]
}

// xhtml returns the markup inside the div that an xhtml construct has as its only child
// (RFC 4287 §3.1.1.3), or all markup, as HTML: XHTML elements lose their prefix, and
// empty elements get an end tag where HTML requires one. It makes references absolute
// where an inner element has an xml:base, because the result has no such base, and
// returns the base at the div.
func (r *reader) xhtml(div bool) (body, base string) {
	var b strings.Builder
	depth, bases := r.s.Depth(), len(r.s.Bases())
	base = r.currentBase()
	const within, after = 1, 2
	state := after // of the div
	if div {
		state = 0
	}
	for tok := r.s.Next(); tok != xmlscan.Stop && r.s.Depth() >= depth; tok = r.s.Next() {
		switch tok {
		case xmlscan.Start:
			if state == 0 && r.s.Depth() == depth+1 && r.s.Local() == "div" {
				state, bases, base = within, len(r.s.Bases()), r.currentBase()
				continue
			}
			r.writeStart(&b, len(r.s.Bases()) > bases)
		case xmlscan.End:
			if state == within && r.s.Depth() == depth {
				state = after
				continue
			}
			if !markup.IsVoid(r.s.Local()) {
				b.WriteString("</" + r.htmlName() + ">")
			}
		case xmlscan.Text:
			b.WriteString(r.text[r.s.Offset():r.s.End()])
		case xmlscan.CData:
			escapeText(&b, string(r.s.AppendText(nil)))
		}
	}
	return trim(b.String()), base
}

// htmlName returns the current element's name as HTML has it.
func (r *reader) htmlName() string {
	if prefix := r.s.Prefix(); prefix != "" && r.s.Space() != vocab.XHTML {
		return prefix + ":" + r.s.Local()
	}
	return r.s.Local()
}

func (r *reader) writeStart(b *strings.Builder, absolute bool) {
	b.WriteString("<" + r.htmlName())
	for _, a := range r.s.Attrs() {
		name, value := a.Local, a.Value()
		if a.Space == vocab.XML && name == "base" {
			continue
		}
		if a.Prefix != "" {
			name = a.Prefix + ":" + name
		} else if absolute && markup.IsReference(name) {
			value = iri.Resolve(r.currentBase(), value)
		}
		writeAttr(b, name, value)
	}
	b.WriteByte('>')
}
