// Package markup reads HTML. In the texts of feeds, it makes references absolute where
// they are, finds images, and returns the plain text; in web pages, it finds the links to
// feeds.
package markup

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
)

// Plain returns the text of HTML without markup. It separates blocks by a newline and
// leaves out invisible elements such as scripts and styles.
func Plain(body string) string {
	if !strings.ContainsAny(body, "<&") {
		return body
	}
	var b strings.Builder
	hidden, apart := "", false
	z := html.NewTokenizer(strings.NewReader(body))
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

// isHidden reports whether browsers do not show an element's text. The tokenizer finds
// no tags in such elements.
func isHidden(name string) bool {
	switch name {
	case "script", "style", "title", "noembed", "noframes", "iframe", "textarea":
		return true
	}
	return false
}

// isBlock reports whether an element begins on a new line.
func isBlock(name string) bool {
	switch name {
	case "address", "article", "aside", "blockquote", "br", "caption", "dd", "details", "dialog", "div", "dl", "dt",
		"fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li",
		"main", "nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul":
		return true
	}
	return false
}

// IsVoid reports whether an HTML element has no end tag.
func IsVoid(name string) bool {
	switch name {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr":
		return true
	}
	return false
}
