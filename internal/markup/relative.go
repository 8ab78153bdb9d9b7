package markup

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// MayBeRelative reports whether markup may have a relative reference.
func MayBeRelative(markup string) bool {
	for range relativeReferences(markup) {
		return true
	}
	return false
}

// relativeReferences yields the places of possible relative references in markup,
// escaped or not: the equals signs of possible attributes. It is cheap, and rather
// yields too many.
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
				i = len(markup) - len(value) + n // to read a long value only once
			} else if !yield(equals) {
				return
			}
		}
	}
}

// endsInReference reports whether text ends in the name of an attribute with a
// reference.
func endsInReference(text string) bool {
	text = strings.TrimRight(text, " \t\r\n\f")
	return slices.ContainsFunc(urlAttributes, func(attr string) bool { return endsIn(text, attr) }) ||
		endsIn(text, "url") || endsIn(text, "uri") // of extensions
}

func endsIn(text, name string) bool {
	n := len(text) - len(name)
	return n >= 0 && strings.EqualFold(text[n:], name)
}

// afterQuote removes white space and the quote before an attribute's value.
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

// absoluteURL reports whether text begins with an absolute URL unchanged by resolving,
// and its length.
func absoluteURL(text string) (n int, ok bool) {
	if !iri.IsHTTP(text) {
		return 0, false
	}
	if n = strings.IndexAny(text, " \t\r\n\f\"'<>"); n < 0 {
		n = len(text)
	}
	return n, !strings.Contains(text[:n], "/.")
}

// CountRelative returns the largest number of relative references markup may have, in
// attributes, elements and escaped markup. It counts paths separately from references
// that keep the whole base, such as #top.
func CountRelative(markup string) (paths, others int) {
	others = hidden(markup) + strings.Count(markup, "equals;")
	paths = strings.Count(markup, "link>") + strings.Count(markup, "uri>") + strings.Count(markup, "url>")
	for equals := range relativeReferences(markup) {
		if value := afterQuote(markup[equals+1:]); value == "" || strings.IndexByte("#?&> ", value[0]) >= 0 {
			others++
		} else {
			paths++
		}
	}
	return paths, others
}

// hidden counts the character references that could be part of an attribute's name, or
// of the text after it: those to ASCII, except for the characters usually escaped.
func hidden(markup string) (n int) {
	for {
		_, rest, ok := strings.Cut(markup, "&#")
		if !ok {
			return n
		}
		digits, base := rest, 10
		if rest != "" && rest[0]|0x20 == 'x' {
			digits, base = rest[1:], 16
		}
		digits = digits[:len(digits)-len(strings.TrimLeft(digits, "0123456789abcdefABCDEF"))]
		if c, err := strconv.ParseUint(digits, base, 32); err == nil && c < 0x80 && !strings.ContainsRune(`"&'<>`, rune(c)) {
			n++
		}
		markup = rest
	}
}
