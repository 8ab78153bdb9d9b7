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

// A Text is a text construct (RFC 4287 §3.1), or an entry's content (§4.1.3).
// The zero value stands for none.
type Text struct {
	Type string // TextPlain, TextHTML, TextXHTML or, in content, a media type; "" for none
	Body string // characters, HTML, the markup inside xhtml's div, or the media's bytes
	Src  string // where content is that stands elsewhere, absolute
	Base string // what relative references in Body resolve against
	Lang string // xml:lang in scope; "" if none is
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

// Summary returns the entry's summary; in RSS, its description; media:description
// if there is no other.
func (e *Entry) Summary() Text { return e.text(1) }

// Content returns the entry's content; in RSS, content:encoded.
func (e *Entry) Content() Text { return e.text(2) }

func (e *Entry) format() Format {
	if e.Source == nil {
		return 0
	}
	return e.Source.Format
}

// textNames are those of an entry's texts, as Atom has them.
var textNames = [...]string{"title", "summary", "content"}

// textPlaces say where in an entry its texts begin: 0 if that is not known, and
// less where there is none.
type textPlaces [len(textNames)]int32

// text reads one of the three from the entry as published.
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

// isGroup recognises media:group, which has the texts of a video's entry.
func (r *reader) isGroup() bool { return r.s.Local() == "group" && r.space() == vocab.Media }

// A textChoice is the element that serves best so far as an entry's title, summary
// or content.
type textChoice struct {
	what string
	text Text
	rank int
}

// offer takes the current element, if it serves better.
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

// look looks at the current child of the entry, whose name is that.
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

// found returns the places, those that are none included, in an entry of n bytes.
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

// firstRank is that of the element which the format itself provides.
const firstRank = 9

// textRank says how well the current child of an entry serves as its title,
// summary or content: 0 is not at all, and the highest wins. Other vocabularies
// may have what the format's own element has not; the order is gofeed's.
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

// rssRank is textRank of an element of RSS, or of one that RSS does not have, but
// feeds do.
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

// foreignRank is textRank of another vocabulary's element.
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
		if t.Type = TextHTML; (isTitle(local) || space == vocab.Media) && !strings.EqualFold(trim(kind), TextHTML) {
			t.Type = TextPlain
		}
		return r.textOrMarkup(t)
	}
	t.Type = textType(kind, mode)
	if isMedia(t.Type) && (local != "content" || !strings.Contains(t.Type, "/")) {
		r.note("type-unknown", "a text construct is text, html or xhtml, and not "+clip(t.Type)+": it is read as text", r.s.Offset())
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

// isTitle recognises the elements that have text rather than HTML in RSS.
func isTitle(local string) bool { return strings.EqualFold(local, "title") }

// textOrMarkup reads the current element's characters. If there are elements
// among them, nobody has escaped the markup: then it is what stands there.
func (r *reader) textOrMarkup(t Text) Text {
	start := r.s.Offset()
	if t.Body = r.plainText(); !r.s.Nested() || r.s.Err() != nil {
		return t
	}
	within := r.fragment(r.text[start:r.s.End()])
	t.Type = TextHTML
	t.Body, t.Base = within.xhtml(false)
	return t
}

// fragment returns a reader that stands at the start tag of an element which has
// just ended.
func (r *reader) fragment(raw string) *reader {
	return newFragment(raw, r.newScope(), r.doc.Format)
}

// decodeBase64 returns what is encoded, or the text itself if it is not.
func decodeBase64(text string) string {
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return text
	}
	return string(data)
}

// textType gives the type that the attributes of Atom 1.0 (type), or of 0.3
// (type and mode), stand for.
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

// isXMLType recognises XML media types (RFC 4287 §4.1.3.3, RFC 7303).
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

// xhtml returns the markup inside the div that an xhtml construct has as its
// only child (RFC 4287 §3.1.1.3), or all markup, as HTML: XHTML elements lose their prefix,
// and empty elements get an end tag where HTML wants one. A reference under an
// xml:base further in is made absolute, as that base is lost; the div's is
// returned.
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
