package jsonfeed

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unquote returns the meaning of a string of sound JSON.
func unquote(raw string) string {
	if len(raw) < 2 {
		return ""
	}
	return unescape(raw[1 : len(raw)-1])
}

// StringAt returns the string at an offset of sound JSON.
func StringAt(text string, offset int) string {
	text = text[offset+1:]
	for end := 0; ; end++ {
		n := strings.IndexByte(text[end:], '"')
		if n < 0 {
			return ""
		}
		end += n
		escapes := end
		for escapes > 0 && text[escapes-1] == '\\' {
			escapes--
		}
		if (end-escapes)%2 == 0 {
			return unescape(text[:end])
		}
	}
}

// unescape returns the meaning of the characters between quotation marks.
func unescape(text string) string {
	i := strings.IndexByte(text, '\\')
	if i < 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for ; i >= 0 && i+1 < len(text); i = strings.IndexByte(text, '\\') {
		b.WriteString(text[:i])
		switch c := text[i+1]; c {
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'u':
			r, n := hexRune(text[i:])
			b.WriteRune(r)
			i += n - 2
		default:
			b.WriteByte(c)
		}
		text = text[i+2:]
	}
	b.WriteString(text)
	return b.String()
}

// hexRune reads \uXXXX, or two that are a surrogate pair. Half a pair is U+FFFD.
func hexRune(text string) (r rune, n int) {
	r = hex(text)
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if low := hex(text[6:]); low >= 0 {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}

func hex(text string) rune {
	if len(text) < 6 || text[:2] != `\u` {
		return -1
	}
	n, err := strconv.ParseUint(text[2:6], 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}
