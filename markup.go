package feedhistory

import (
	"bytes"
	"iter"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

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
