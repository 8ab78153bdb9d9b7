package feedxml

import (
	"strings"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// The types of a text.
const (
	plain = "text"
	html  = "html"
)

// rank returns how suitable the current child of an entry is as its title, summary
// or content: 0 means not at all, and the highest rank wins. Elements of other
// vocabularies are used if the format's own is missing; the order is gofeed's.
func (r *Elements) rank(what string) int {
	space, local := r.Space(), r.Local()
	switch {
	case r.Format == Atom && (space == r.Native || vocab.IsAtom(space)):
		if vocab.AtomName(local) == what {
			return vocab.FirstRank
		}
		return 0
	case r.Format == RSS && r.IsRSS():
		return vocab.RSSTextRank(what, vocab.RSSName(local))
	}
	return vocab.TextRank(what, space, local, r.Format == RSS)
}

// Construct reads the current element as a text construct or content.
func (r *Elements) Construct() xmlscan.Construct {
	t := xmlscan.Construct{Base: r.Base(), Lang: r.Language()}
	space, local := r.Space(), vocab.AtomName(r.Local())
	if src, ok := r.Attr("", "src"); ok && local == "content" {
		t.Src = iri.Resolve(t.Base, src)
	}
	kind, _ := r.Attr("", "type")
	mode, _ := r.Attr("", "mode")
	if !vocab.IsAtom(space) && (r.Format != Atom || space != r.Native) {
		// A title has text rather than HTML, but with HTML's references.
		if t.Type = html; (strings.EqualFold(local, "title") || space == vocab.Media) && !strings.EqualFold(xmlscan.Trim(kind), html) {
			t.Type = plain
			if t = r.TextOrMarkup(t); t.Type == plain && !r.literal && kind == "" {
				t.Body = xmlscan.Unescape(t.Body)
			}
			return t
		}
		return r.TextOrMarkup(t)
	}
	t.Type = vocab.TextType(kind, mode)
	if vocab.IsMedia(t.Type) && (local != "content" || !strings.Contains(t.Type, "/")) {
		r.note("type-unknown", "the type of a text construct is text, html or xhtml, not "+clip(t.Type)+": it is read as text", r.Offset())
		t.Type = plain
	}
	return r.Content(t, mode, r.PlainText, r.Base, r.TextOrMarkup)
}

// TextOrMarkup reads the current element's characters. If there are elements among
// them, the publisher did not escape the markup; then it reads the markup.
func (r *Elements) TextOrMarkup(t xmlscan.Construct) xmlscan.Construct {
	start := r.Offset()
	if t.Body = r.PlainText(); !r.Nested() || r.Err() != nil {
		return t
	}
	within := Fragment(r.text[start:r.End()], r.NewScope(), r.Format)
	t.Type = html
	t.Body, t.Base = within.HTML(false, within.Base)
	return t
}
