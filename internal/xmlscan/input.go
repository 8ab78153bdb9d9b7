package xmlscan

import "strings"

// An input is a document and the next characters of interest in it.
type input struct {
	doc   string
	ahead lookahead
}

// A lookahead has the offsets of these characters; the length of the document stands for
// none. So the whole document is searched for each of them once, however many pieces its
// text is in.
type lookahead struct{ ampersand, bracket, control int }

func newInput(doc string) input { return input{doc, lookahead{-1, -1, -1}} }

// ampersand returns the offset of the first ampersand from i on.
func (in *input) ampersand(i int) int {
	if in.ahead.ampersand < i {
		in.ahead.ampersand = indexFrom(in.doc, i, '&')
	}
	return in.ahead.ampersand
}

// bracket returns the offset of the first closing bracket from i on.
func (in *input) bracket(i int) int {
	if in.ahead.bracket < i {
		in.ahead.bracket = indexFrom(in.doc, i, ']')
	}
	return in.ahead.bracket
}

// control returns the offset of the first control character from i on, other than tabs and
// newlines.
func (in *input) control(i int) int {
	if in.ahead.control < i {
		in.ahead.control = control(in.doc, i)
	}
	return in.ahead.control
}

func indexFrom(doc string, i int, c byte) int {
	if n := strings.IndexByte(doc[i:], c); n >= 0 {
		return i + n
	}
	return len(doc)
}

// control examines sixteen bytes at a time.
func control(doc string, i int) int {
	rest := doc[i:]
	for ; len(rest) >= 16; rest = rest[16:] {
		a, b := eight(rest), eight(rest[8:])
		if spaced(a)&spaced(b)|low != full && (spaced(a)|blank(a))&(spaced(b)|blank(b))|low != full {
			break
		}
	}
	return until(doc, len(doc)-len(rest), decodeCData)
}

// In each byte of a word the highest bit is the answer, and no sum of the lower bits
// reaches the next byte.
const (
	ones = 0x0101010101010101
	low  = 0x7f7f7f7f7f7f7f7f
	full = 0xffffffffffffffff
)

// spaced marks the bytes not below the space.
func spaced(word uint64) uint64 { return word&low + 0x60*ones | word }

// blank marks tabs and newlines, and perhaps bytes above ASCII.
func blank(word uint64) uint64 {
	return ^(((word&low ^ '\t'*ones) + low) & ((word&low ^ '\n'*ones) + low))
}

// eight returns the first eight bytes as a number.
func eight(s string) uint64 {
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
