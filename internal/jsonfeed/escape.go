package jsonfeed

import (
	"fmt"
	"slices"
	"strings"
)

// maxEscapes is the greatest number of control characters Escape accepts.
const maxEscapes = 1 << 20

const escapeLength = len(`\u0000`)

// An Escaped is a text whose strings have no raw control characters. A text without
// changes needs only Text.
type Escaped struct {
	Text    string
	Escapes []int // the offsets in Text of the escapes, in order
}

// Escape escapes the raw control characters in strings, which JSON does not allow (RFC 8259
// §7). It returns nil if there are none, or more than a million.
func Escape(text string) *Escaped {
	e := &Escaped{}
	var b strings.Builder
	from, inside := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			inside = !inside
		case c == '\\' && inside:
			i++
		case c < ' ' && inside:
			if len(e.Escapes) == maxEscapes {
				return nil
			}
			b.WriteString(text[from:i])
			e.Escapes = append(e.Escapes, b.Len())
			fmt.Fprintf(&b, `\u%04x`, c)
			from = i + 1
		}
	}
	if e.Escapes == nil {
		return nil
	}
	b.WriteString(text[from:])
	e.Text = b.String()
	return e
}

// Original returns the place in the original text of an offset of Text.
func (e *Escaped) Original(offset int) int {
	const more = escapeLength - 1
	n, _ := slices.BinarySearch(e.Escapes, offset) // the escapes before it
	if n == 0 {
		return offset
	}
	last := e.Escapes[n-1] - more*(n-1)
	return max(offset-more*n, last)
}
