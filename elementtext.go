package feedhistory

import (
	"encoding/base64"
	"strings"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/markup"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// isGroup reports whether the current element is media:group, which has the texts of an
// entry for a video.
func (r *elements) isGroup() bool { return r.s.Local() == "group" && r.space() == vocab.Media }

// textRank returns how suitable the current child of an entry is as its title, summary
// or content: 0 means not at all, and the highest rank wins. Elements of other
// vocabularies are used if the format's own is missing; the order is gofeed's.
func (r *elements) textRank(what string) int {
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
func (r *elements) textOrMarkup(t Text) Text {
	start := r.s.Offset()
	if t.Body = r.plainText(); !r.s.Nested() || r.s.Err() != nil {
		return t
	}
	within := newFragment(r.text[start:r.s.End()], r.newScope(), r.doc.Format)
	t.Type = TextHTML
	t.Body, t.Base = within.xhtml(false)
	return t
}

// inner returns the markup inside the current element, and moves past it.
func (r *elements) inner() string {
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
func (r *elements) xhtml(div bool) (body, base string) {
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
func (r *elements) htmlName() string {
	if prefix := r.s.Prefix(); prefix != "" && r.s.Space() != vocab.XHTML {
		return prefix + ":" + r.s.Local()
	}
	return r.s.Local()
}

func (r *elements) writeStart(b *strings.Builder, absolute bool) {
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

// firstRank is the rank of the format's own element.
const firstRank = 9

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
