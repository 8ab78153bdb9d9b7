package feedhistory

import (
	"strings"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// isGroup reports whether the current element is media:group or media:content, which may
// have the texts of an entry for a video.
func (r *elements) isGroup() bool {
	local := r.s.Local()
	return (local == "group" || local == "content") && r.space() == vocab.Media
}

// textRank returns how suitable the current child of an entry is as its title, summary
// or content: 0 means not at all, and the highest rank wins. Elements of other
// vocabularies are used if the format's own is missing; the order is gofeed's.
func (r *elements) textRank(what string) int {
	space, local := r.space(), r.s.Local()
	switch {
	case r.doc.Format == Atom && (space == r.native || vocab.IsAtom(space)):
		if vocab.AtomName(local) == what {
			return vocab.FirstRank
		}
		return 0
	case r.doc.Format == RSS && r.isRSS():
		return vocab.RSSTextRank(what, vocab.RSSName(local))
	}
	return vocab.TextRank(what, space, local, r.doc.Format == RSS)
}

// textConstruct reads the current element as a text construct or content.
func (r *elements) textConstruct() Text {
	t := Text{Base: r.currentBase(), Lang: r.language()}
	space, local := r.space(), vocab.AtomName(r.s.Local())
	if src, ok := r.s.Attr("", "src"); ok && local == "content" {
		t.Src = iri.Resolve(t.Base, src)
	}
	kind, _ := r.s.Attr("", "type")
	mode, _ := r.s.Attr("", "mode")
	if !vocab.IsAtom(space) && (r.doc.Format != Atom || space != r.native) {
		// A title has text rather than HTML, but with HTML's references.
		if t.Type = TextHTML; (strings.EqualFold(local, "title") || space == vocab.Media) && !strings.EqualFold(trim(kind), TextHTML) {
			t.Type = TextPlain
			if t = r.textOrMarkup(t); t.Type == TextPlain && !r.literal && kind == "" {
				t.Body = xmlscan.Unescape(t.Body)
			}
			return t
		}
		return r.textOrMarkup(t)
	}
	t.Type = vocab.TextType(kind, mode)
	if vocab.IsMedia(t.Type) && (local != "content" || !strings.Contains(t.Type, "/")) {
		r.note("type-unknown", "the type of a text construct is text, html or xhtml, not "+clip(t.Type)+": it is read as text", r.s.Offset())
		t.Type = TextPlain
	}
	switch {
	case mode == "base64":
		t.Body = xmlscan.DecodeBase64(r.plainText())
	case t.Type == TextXHTML:
		t.Body, t.Base = r.s.HTML(true, r.currentBase)
	case !vocab.IsMedia(t.Type):
		return r.textOrMarkup(t)
	case vocab.IsXMLType(t.Type):
		t.Body = trim(r.s.Inner())
	case strings.HasPrefix(t.Type, "text/"):
		t.Body = r.plainText()
	default:
		t.Body = xmlscan.DecodeBase64(r.plainText())
	}
	return t
}

// textOrMarkup reads the current element's characters. If there are elements among
// them, the publisher did not escape the markup; then it reads the markup.
func (r *elements) textOrMarkup(t Text) Text {
	start := r.s.Offset()
	if t.Body = r.plainText(); !r.s.Nested() || r.s.Err() != nil {
		return t
	}
	within := newFragment(r.text[start:r.s.End()], r.newScope(), r.doc.Format)
	t.Type = TextHTML
	t.Body, t.Base = within.s.HTML(false, within.currentBase)
	return t
}
