package xmlscan

import (
	"strings"
	"unicode"
)

// mostBefore is the maximum length of the text before a feed.
const mostBefore = 64 << 10

// FindFeed returns where a feed begins in a text with something else before it, such as
// the warnings of a script; -1 if there is no feed, or if it is inside something else.
// page reports whether the text is an HTML page.
func FindFeed(text string) (begin int, page bool) {
	head := lowerASCII(text[:min(len(text), mostBefore)])
	root := len(head)
	for _, name := range []string{"<rss", "<feed", "<rdf:rdf"} {
		if i := IndexTag(head, name); i >= 0 {
			root = min(root, i)
		}
	}
	before := head[:root]
	doctype := strings.Index(before, "<!doctype html")
	if IndexTag(before, "<html") >= 0 || doctype >= 0 && (root == len(head) || hasTag(before[doctype:])) {
		return -1, true
	}
	if root == len(head) {
		return -1, false
	}
	begin = root
	for _, prolog := range []string{"<?xml", "<!doctype"} {
		if i := strings.Index(before, prolog); i >= 0 {
			begin = min(begin, i)
		}
	}
	s := New("<a>"+text[:begin]+"</a>", Limits{})
	tokens := 0
	for tok := s.Next(); tok != Stop; tok = s.Next() {
		if tok != Text || strings.TrimSpace(string(s.AppendText(nil))) != "" {
			tokens++
		}
	}
	switch {
	case s.Err() != nil: // an element is open there
		return -1, false
	case tokens == 2: // there are only comments
		return 0, false
	}
	return begin, false
}

// IsQuoted reports whether a feed at an offset of a text has words before it and after its
// end: then the text, such as an article or a message, only quotes it.
func IsQuoted(text string, begin int) bool {
	end := strings.LastIndexByte(text, '>') + 1
	return end > begin && hasWords(text[:begin]) && hasWords(text[end:])
}

func hasWords(text string) bool {
	return strings.IndexFunc(text, unicode.IsLetter) >= 0
}

// hasTag reports whether there is a start tag in text.
func hasTag(text string) bool {
	for {
		_, after, ok := strings.Cut(text, "<")
		if !ok || after != "" && 'a' <= after[0] && after[0] <= 'z' {
			return ok
		}
		text = after
	}
}

// IndexTag returns the offset of a start tag in text; -1 if there is none.
func IndexTag(text, tag string) int {
	for from := 0; ; {
		i := strings.Index(text[from:], tag)
		if i < 0 {
			return -1
		}
		if from += i + len(tag); from < len(text) && strings.IndexByte(" \t\r\n/>", text[from]) >= 0 {
			return from - len(tag)
		}
	}
}

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// HasEndTag reports whether there is an end tag of the element with the given name, in
// small letters, whatever its case in text.
func HasEndTag(text, name string) bool {
	for text = lowerASCII(text); ; {
		_, after, ok := strings.Cut(text, "</"+name)
		if ok && (after == "" || strings.IndexByte("> \t\r\n<", after[0]) >= 0) {
			return true
		} else if !ok {
			return false
		}
		text = after
	}
}
