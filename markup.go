package feedhistory

import (
	"bytes"
	"iter"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

var (
	escaper     = newEscaper("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#13;")
	attrEscaper = newEscaper("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#13;",
		`"`, "&#34;", "\t", "&#9;", "\n", "&#10;")
)

// newEscaper leaves out what XML cannot have at all.
func newEscaper(oldnew ...string) *strings.Replacer {
	for c := range ' ' {
		if c != '\t' && c != '\n' && c != '\r' {
			oldnew = append(oldnew, string(c), "")
		}
	}
	return strings.NewReplacer(append(oldnew, "\ufffe", "", "\uffff", "")...)
}

// escapeText writes characters as XML or HTML text.
func escapeText(b *strings.Builder, s string) {
	_, _ = escaper.WriteString(b, strings.ToValidUTF8(s, "\uFFFD"))
}

// writeAttr writes an attribute, with the space before it.
func writeAttr(b *strings.Builder, name, value string) {
	b.WriteString(" " + name + `="`)
	_, _ = attrEscaper.WriteString(b, strings.ToValidUTF8(value, "\uFFFD"))
	b.WriteByte('"')
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
			if !isVoid(r.s.Local()) {
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
	if prefix := r.s.Prefix(); prefix != "" && r.s.Space() != nsXHTML {
		return prefix + ":" + r.s.Local()
	}
	return r.s.Local()
}

func (r *reader) writeStart(b *strings.Builder, absolute bool) {
	b.WriteString("<" + r.htmlName())
	for _, a := range r.s.Attrs() {
		name, value := a.Local, a.Value()
		if a.Space == nsXML && name == "base" {
			continue
		}
		if a.Prefix != "" {
			name = a.Prefix + ":" + name
		} else if absolute && slices.Contains(urlAttributes, name) {
			value = resolve(r.currentBase(), value)
		}
		writeAttr(b, name, value)
	}
	b.WriteByte('>')
}

// isVoid recognises the HTML elements that have no end tag.
func isVoid(name string) bool {
	switch name {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr":
		return true
	}
	return false
}

// mayBeRelative reports whether markup may have a relative reference.
func mayBeRelative(markup string) bool {
	for range relativeReferences(markup) {
		return true
	}
	return false
}

// relativeReferences yields where markup, escaped or not, may have a relative
// reference: at the equals sign of what could be an attribute with one. It is
// cheap, and errs on the side of too many.
func relativeReferences(markup string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 0; ; {
			n := strings.IndexByte(markup[i:], '=')
			if n < 0 {
				return
			}
			i += n
			named := endsInReference(markup[:i])
			equals := i
			i++
			if !named {
				continue
			}
			value := afterQuote(markup[i:])
			if n, ok := absoluteURL(value); ok {
				i = len(markup) - len(value) + n // a value that is long is read once
			} else if !yield(equals) {
				return
			}
		}
	}
}

// endsInReference reports whether text ends in the name of an attribute that
// has a reference.
func endsInReference(text string) bool {
	text = strings.TrimRight(text, " \t\r\n\f")
	return slices.ContainsFunc(urlAttributes, func(attr string) bool { return endsIn(text, attr) }) ||
		endsIn(text, "url") || endsIn(text, "uri") // of extensions
}

func endsIn(text, name string) bool {
	n := len(text) - len(name)
	return n >= 0 && strings.EqualFold(text[n:], name)
}

// afterQuote takes off what may stand before an attribute's value.
func afterQuote(value string) string {
	value = strings.TrimLeft(value, " \t\r\n\f\"'\\")
	if strings.HasPrefix(value, "&") {
		for _, quote := range [...]string{"&quot;", "&#34;", "&#39;", "&apos;"} {
			if rest, ok := strings.CutPrefix(value, quote); ok {
				return rest
			}
		}
	}
	return value
}

// absoluteURL reports whether text begins with an absolute URL that resolving
// would not change, and how long it is.
func absoluteURL(text string) (n int, ok bool) {
	if !isHTTP(text) {
		return 0, false
	}
	if n = strings.IndexAny(text, " \t\r\n\f\"'<>"); n < 0 {
		n = len(text)
	}
	return n, !strings.Contains(text[:n], "/.")
}

// html returns the text as HTML with absolute references.
func (t Text) html() string {
	if t.Type == TextHTML || t.Type == TextXHTML {
		return t.absolute()
	}
	return html.EscapeString(t.Body)
}

// Plain returns the text without markup: blocks are kept apart by a newline,
// and what is not shown, as scripts and styles, is left out.
func (t Text) Plain() string {
	if t.Type != TextHTML && t.Type != TextXHTML || !strings.ContainsAny(t.Body, "<&") {
		return t.Body
	}
	var b strings.Builder
	hidden, apart := "", false
	z := html.NewTokenizer(strings.NewReader(t.Body))
	for {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return strings.TrimSpace(b.String())
		case html.TextToken:
			if hidden != "" {
				continue
			}
			text := z.Text()
			if len(bytes.TrimSpace(text)) > 0 && apart {
				if b.Len() > 0 {
					b.WriteByte('\n')
				}
				text, apart = bytes.TrimLeft(text, " \t\r\n"), false
			}
			if !apart {
				b.Write(text)
			}
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			switch {
			case hidden != "":
				if string(name) == hidden && kind == html.EndTagToken {
					hidden = ""
				}
			case kind == html.StartTagToken && isHidden(string(name)):
				hidden = string(name)
			case isBlock(string(name)):
				apart = true
			}
		}
	}
}

// isHidden recognises the elements whose text is not shown, and which the
// tokenizer does not look into.
func isHidden(name string) bool {
	switch name {
	case "script", "style", "title", "noembed", "noframes", "iframe", "textarea":
		return true
	}
	return false
}

// isBlock recognises the elements that begin a line of their own.
func isBlock(name string) bool {
	switch name {
	case "address", "article", "aside", "blockquote", "br", "caption", "dd", "details", "dialog", "div", "dl", "dt",
		"fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li",
		"main", "nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul":
		return true
	}
	return false
}
