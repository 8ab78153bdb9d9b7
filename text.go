package feedhistory

import (
	"encoding/base64"
	"strings"

	"golang.org/x/net/html"

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

// Plain returns the text without markup.
func (t Text) Plain() string {
	if t.Type != TextHTML && t.Type != TextXHTML || !strings.ContainsAny(t.Body, "<&") {
		return t.Body
	}
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(t.Body))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return strings.TrimSpace(b.String())
		case html.TextToken:
			b.Write(z.Text())
		}
	}
}

// Title returns the entry's title.
func (e *Entry) Title() Text { return e.text("title") }

// Summary returns the entry's summary; in RSS, its description.
func (e *Entry) Summary() Text { return e.text("summary") }

// Content returns the entry's content; in RSS, content:encoded.
func (e *Entry) Content() Text { return e.text("content") }

func (e *Entry) format() Format {
	if e.Source == nil {
		return 0
	}
	return e.Source.Format
}

// text reads one of the three from the entry as published.
func (e *Entry) text(what string) Text {
	if e.raw == "" {
		return Text{}
	}
	if e.format() == JSONFeed {
		return e.jsonText(what)
	}
	r := e.reader()
	var best Text
	rank := 0
	for depth := r.s.Depth(); r.s.Child(depth); {
		if n := r.textRank(what); n > rank {
			best, rank = r.textConstruct(), n
			if n == firstRank {
				break
			}
		}
	}
	return best
}

// reader returns a reader that stands at the entry's start tag.
func (e *Entry) reader() *reader {
	r := &reader{
		s:    xmlscan.NewFragment(e.raw, e.scope.bindings, xmlscan.Unlimited()),
		text: e.raw,
		doc:  &Document{URL: e.scope.base, Format: e.format()},
		lang: e.scope.lang,
	}
	r.limits = Limits{}.withDefaults()
	r.s.Next()
	r.native = r.s.Space()
	return r
}

// firstRank is that of the element which the format itself provides.
const firstRank = 9

// textRank says how well the current child of an entry serves as its title,
// summary or content: 0 is not at all, and the highest wins. In RSS other
// vocabularies may have what the item itself has not; the order is gofeed's.
func (r *reader) textRank(what string) int {
	space, local := r.s.Space(), r.s.Local()
	if r.doc.Format == Atom {
		if local == what && (space == r.native || isAtom(space)) {
			return firstRank
		}
		return 0
	}
	switch {
	case isAtom(space) && local == what:
		return 1
	case what == "title" && (r.isRSS() && local == "title"):
		return firstRank
	case what == "title" && space == nsDC && local == "title":
		return 2
	case what == "summary" && r.isRSS() && local == "description":
		return firstRank
	case what == "summary" && space == nsDC && local == "description":
		return 3
	case what == "summary" && strings.EqualFold(space, nsITunes) && local == "summary":
		return 2
	case what == "content" && space == nsContent && local == "encoded":
		return firstRank
	}
	return 0
}

// textConstruct reads the current element as a text construct or content.
func (r *reader) textConstruct() Text {
	t := Text{Base: r.currentBase(), Lang: r.language()}
	if src, ok := r.s.Attr("", "src"); ok && r.s.Local() == "content" {
		t.Src = resolve(t.Base, src)
	}
	space, local := r.s.Space(), r.s.Local()
	if !isAtom(space) && (r.doc.Format != Atom || space != r.native) {
		return r.rssText(t, local)
	}
	kind, _ := r.s.Attr("", "type")
	mode, _ := r.s.Attr("", "mode")
	switch t.Type = textType(kind, mode); {
	case mode == "base64":
		t.Body = decodeBase64(r.plainText())
	case t.Type == TextXHTML:
		t.Body, t.Base = r.xhtml()
	case t.Type == TextPlain, t.Type == TextHTML, strings.HasPrefix(t.Type, "text/"):
		t.Body = r.plainText()
	case isXMLType(t.Type):
		t.Body = trim(r.inner())
	default:
		t.Body = decodeBase64(r.plainText())
	}
	return t
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
	case "", "text", "text/plain":
		return TextPlain
	case "html", "xhtml":
		return kind
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

// rssText reads an element whose type the format fixes: titles are plain text,
// everything else is HTML.
func (r *reader) rssText(t Text, local string) Text {
	if t.Type = TextHTML; local == "title" {
		t.Type = TextPlain
	}
	t.Body = r.plainText()
	return t
}

// inner returns the markup inside the current element, and moves past it.
func (r *reader) inner() string {
	start, depth := r.s.End(), r.s.Depth()
	for r.s.Next() != xmlscan.Stop && r.s.Depth() >= depth {
	}
	return r.text[start:max(start, r.s.Offset())]
}
