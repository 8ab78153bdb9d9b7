// Package terminal makes text of unknown origin safe to show in a terminal.
package terminal

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes text fit for one line: white space becomes one space, and control
// characters and those that change the direction of text are removed.
func Clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r):
			return unicode.ReplacementChar
		case turns(r):
			return -1
		}
		return r // strings.Map has replaced invalid UTF-8
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// turns reports whether a character changes the direction of the text around
// it, which can make one text look like another.
func turns(r rune) bool {
	return r == 0x61c || r >= 0x200e && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// JSON escapes those characters in JSON that could control a terminal but are not
// escaped by encoding/json: DEL, C1 controls, and those that change the direction of
// text. They occur only in strings, so the value stays the same.
func JSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, drives) {
		return text
	}
	out := make([]byte, 0, len(text)+64)
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if drives(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return out
}

func drives(r rune) bool { return r >= 0x7f && r <= 0x9f || turns(r) }
