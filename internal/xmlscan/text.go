package xmlscan

import (
	"html"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// text reads character data from i up to the next markup.
func (s *Scanner) text(i int) Token {
	s.end = len(s.doc)
	if n := strings.IndexByte(s.doc[i:], '<'); n >= 0 {
		s.end = i + n
	}
	switch {
	case s.control(i) < s.end:
		s.form = coded
	case s.ampersand(i) < s.end:
		s.form = escaped
	default:
		s.form = literal
	}
	if !s.again && (s.form != literal || s.bracket(i) < s.end) {
		s.noteText(i, s.end)
	}
	return Text
}

// AppendText appends the text of the current Text or CData to dst, with references decoded and line
// ends turned into newlines. At other tokens it appends nothing.
func (s *Scanner) AppendText(dst []byte) []byte {
	raw := s.raw()
	switch {
	case s.form == literal:
		return append(dst, raw...)
	case s.tok == CData:
		return appendDecoded(dst, raw, decodeCData)
	case s.form == coded:
		return appendDecoded(dst, raw, decodeText)
	}
	for {
		i := strings.IndexByte(raw, '&')
		if i < 0 {
			return append(dst, raw...)
		}
		var n int
		dst, n = appendReference(append(dst, raw[:i]...), raw[i:])
		raw = raw[i+n:]
	}
}

// Plain returns the current Text or CData as a part of the document, if it means its literal
// characters.
func (s *Scanner) Plain() (text string, ok bool) {
	return s.raw(), s.form == literal && (s.tok == Text || s.tok == CData)
}

// raw returns the current Text or CData as written.
func (s *Scanner) raw() string {
	switch s.tok {
	case Text:
		return s.doc[s.start:s.end]
	case CData:
		end := s.end
		if !s.unended {
			end -= len("]]>")
		}
		return s.doc[s.start+len("<![CDATA[") : end]
	}
	return ""
}

// appendDecoded appends the meaning of raw: text, a CDATA section or an attribute value, depending
// on mode.
func appendDecoded(dst []byte, raw string, mode uint8) []byte {
	for {
		i := until(raw, 0, mode)
		dst = append(dst, raw[:i]...)
		if i == len(raw) {
			return dst
		}
		raw = raw[i:]
		n := 1
		switch c := raw[0]; c {
		case '&':
			dst, n = appendReference(dst, raw)
		case '\t', '\n', '\r':
			if len(raw) > 1 && c == '\r' && raw[1] == '\n' {
				n = 2
			}
			if mode == decodeValue {
				dst = append(dst, ' ')
			} else {
				dst = append(dst, '\n')
			}
		}
		raw = raw[n:]
	}
}

// appendReference appends the meaning of the ampersand at the beginning of raw, and returns the
// length of the reference.
func appendReference(dst []byte, raw string) ([]byte, int) {
	kind, n, r := reference(raw)
	switch kind {
	case refChar, refSurrogates:
		dst = utf8.AppendRune(dst, r)
	case refBare, refUndefined:
		dst = append(dst, raw[:n]...)
	case refHTML:
		dst = append(dst, html.UnescapeString(raw[:n])...)
	}
	return dst, n
}

// Unescape decodes the references in HTML without tags, as in the titles of RSS. Anything
// else stays, such as a lone ampersand, or one without its semicolon.
func Unescape(text string) string {
	i := strings.IndexByte(text, '&')
	if i < 0 {
		return text
	}
	var b strings.Builder
	for ; i >= 0; i = strings.IndexByte(text, '&') {
		b.WriteString(text[:i])
		kind, n, r := reference(text[i:])
		switch kind {
		case refSurrogates:
			b.WriteRune(r)
		case refChar, refHTML:
			b.WriteString(html.UnescapeString(text[i : i+n]))
		default:
			b.WriteString(text[i : i+n])
		}
		text = text[i+n:]
	}
	b.WriteString(text)
	return b.String()
}

// A refKind is the kind of an ampersand and the text after it.
type refKind uint8

const (
	refChar       refKind = iota // a predefined entity or a character reference
	refBare                      // nothing: it is an ampersand
	refForbidden                 // a reference to a character forbidden in XML
	refHTML                      // an entity of HTML
	refUndefined                 // any other entity
	refSurrogates                // two references to the halves of one character
)

// reference reads the reference at the ampersand raw[0]: its kind, its length and, if it is a
// refChar, its character.
func reference(raw string) (kind refKind, n int, r rune) {
	// Nearly all references in feeds are predefined entities.
	if len(raw) >= 4 {
		switch raw[1] {
		case 'l':
			if raw[2] == 't' && raw[3] == ';' {
				return refChar, 4, '<'
			}
		case 'g':
			if raw[2] == 't' && raw[3] == ';' {
				return refChar, 4, '>'
			}
		case '#':
			return numeric(raw)
		case 'a':
			if hasPrefixAt(raw, 0, "&amp;") {
				return refChar, len("&amp;"), '&'
			}
		case 'q':
			if hasPrefixAt(raw, 0, "&quot;") {
				return refChar, len("&quot;"), '"'
			}
		}
	}
	return named(raw)
}

// named reads a named reference.
func named(raw string) (kind refKind, n int, r rune) {
	n = 1
	for n < len(raw) && class[raw[n]]&nameByte != 0 {
		n++
	}
	if n == 1 || n == len(raw) || raw[n] != ';' || class[raw[1]]&nameStart == 0 {
		return refBare, 1, 0
	}
	switch name := raw[1:n]; name {
	case "apos":
		return refChar, n + 1, '\''
	default:
		if htmlEntity(raw[:n+1]) {
			return refHTML, n + 1, 0
		}
		return refUndefined, n + 1, 0
	}
}

// htmlEntity reports whether the whole of ref is a named reference of HTML; UnescapeString also
// accepts "&notit;" as "¬it;".
func htmlEntity(ref string) bool {
	const longest = len("&CounterClockwiseContourIntegral;")
	if len(ref) > longest {
		return false
	}
	text := html.UnescapeString(ref)
	return text[len(text)-1] != ';' || ref == "&semi;"
}

// numeric reads a character reference.
func numeric(raw string) (kind refKind, n int, r rune) {
	r, n = number(raw)
	switch {
	case n == 0:
		return refBare, 1, 0
	case utf16.IsSurrogate(r):
		return surrogates(raw, r, n)
	case !validRune(r):
		return refForbidden, n, 0
	}
	return refChar, n, r
}

// number reads the number of a character reference; n is 0 if raw begins with none.
func number(raw string) (r rune, n int) {
	n = len("&#")
	base := rune(10)
	if n < len(raw) && raw[n] == 'x' {
		base = 16
		n++
	}
	first := n
	for ; n < len(raw); n++ {
		d := digit(raw[n])
		if d >= base {
			break
		}
		// Limited, so it does not overflow: with more digits it stays forbidden.
		r = min(r*base+d, utf8.MaxRune+1)
	}
	if n == first || n == len(raw) || raw[n] != ';' {
		return 0, 0
	}
	return r, n + 1
}

// surrogates reads the second half of a character: two references may have the halves of
// UTF-16. The first one has n bytes, and means r.
func surrogates(raw string, r rune, n int) (kind refKind, length int, both rune) {
	if hasPrefixAt(raw, n, "&#") {
		low, m := number(raw[n:min(len(raw), n+maxNumber)])
		if both = utf16.DecodeRune(r, low); m > 0 && both != utf8.RuneError {
			return refSurrogates, n + m, both
		}
	}
	return refForbidden, n, 0
}

// maxNumber is the length of the second half's reference, with a few zeros at most: reading
// halves in a row takes linear time.
const maxNumber = len("&#0056832;")

func digit(c byte) rune {
	switch {
	case c >= '0' && c <= '9':
		return rune(c - '0')
	case c >= 'a' && c <= 'f':
		return rune(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return rune(c-'A') + 10
	}
	return 16
}

// IsPlain reports whether XML can have a character as it is. It has no other, or only by a
// reference, as a carriage return.
func IsPlain(r rune) bool { return r != '\r' && validRune(r) }

// validRune reports whether r is a Char of XML 1.0.
func validRune(r rune) bool {
	switch {
	case r < ' ':
		return r == '\t' || r == '\n' || r == '\r'
	case r == 0xFFFE || r == 0xFFFF:
		return false
	}
	return utf8.ValidRune(r)
}
