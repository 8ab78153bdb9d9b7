package xmlscan

import (
	"strings"
	"unicode/utf8"
)

// An escaper writes characters with a text in place of some, and without those XML forbids.
type escaper struct {
	acts [256]bool // the bytes to replace, and the first of U+FFFE and U+FFFF
	text [256]string
}

// newEscaper returns an escaper of characters, each given before its text.
func newEscaper(oldnew ...string) *escaper {
	e := new(escaper)
	for c := range ' ' {
		e.acts[c] = c != '\t' && c != '\n' && c != '\r'
	}
	for i := 0; i < len(oldnew); i += 2 {
		c := oldnew[i][0]
		e.acts[c], e.text[c] = true, oldnew[i+1]
	}
	e.acts["\ufffe"[0]] = true
	return e
}

// write writes a text of valid UTF-8.
func (e *escaper) write(b *strings.Builder, s string) {
	from := 0
	for i := 0; i < len(s); i++ {
		c, n := s[i], 1
		if !e.acts[c] {
			continue
		}
		if c >= utf8.RuneSelf {
			if n = len("\ufffe"); s[i:i+n] != "\ufffe" && s[i:i+n] != "\uffff" {
				continue
			}
		}
		b.WriteString(s[from:i])
		b.WriteString(e.text[c])
		from = i + n
	}
	b.WriteString(s[from:])
}

// validUTF8 returns a text with U+FFFD in place of bytes other than UTF-8.
func validUTF8(s string) string {
	if utf8.ValidString(s) { // which takes far less time
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
