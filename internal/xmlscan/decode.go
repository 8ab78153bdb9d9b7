package xmlscan

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// A reading is a document as read in a charset.
type reading struct {
	doc   string
	good  int // the number of characters beyond ASCII; not counted if nothing is bad
	bad   int // the number of bytes, or groups of them, without a meaning
	never int // the number of U+FFFE and U+FFFF, which are not characters
	at    int // the offset of the first bad or never
	ascii bool
}

// spoil counts a bad byte.
func (r *reading) spoil(at int) {
	if r.bad++; r.bad == 1 {
		r.at = at
	}
}

// cleanse replaces characters forbidden in XML.
func (r *reading) cleanse() {
	for _, never := range [...]string{"\uFFFE", "\uFFFF"} {
		at := strings.Index(r.doc, never)
		if at < 0 {
			continue
		}
		if r.bad+r.never == 0 || at < r.at {
			r.at = at
		}
		r.never += strings.Count(r.doc, never)
		r.doc = strings.ReplaceAll(r.doc, never, "\uFFFD")
	}
}

// appendNotes notes the faults of the document.
func (r *reading) appendNotes(notes []Note, charset string) []Note {
	what := ""
	switch n := r.bad + r.never; {
	case n == 0:
		return notes
	case charset == utf8Name && r.never == 0:
		what = fmt.Sprintf("%d bytes are not UTF-8, and read as windows-1252", n)
	default:
		what = fmt.Sprintf("%d invalid bytes or characters", n)
	}
	return append(notes, Note{"invalid-bytes", what, r.at})
}

// read reads a document.
func (c charset) read(data string) (r reading, err error) {
	if c.encoding == nil {
		return readUTF8(data), nil
	}
	if bytes, ok := c.encoding.(*charmap.Charmap); ok {
		return readBytes(bytes, data), nil
	}
	if r.doc, err = c.encoding.NewDecoder().String(data); err != nil {
		return r, fmt.Errorf("decoding %s: %w", c.name, err)
	}
	r.doc = strings.TrimLeft(r.doc, "\uFEFF")
	if r.bad = strings.Count(r.doc, "\uFFFD"); r.bad > 0 {
		r.at = strings.Index(r.doc, "\uFFFD")
		good, _ := tally(r.doc)
		r.good = good - r.bad
	}
	r.cleanse()
	return r, nil
}

// readUTF8 reads UTF-8, and other bytes as windows-1252.
func readUTF8(data string) (r reading) {
	if r.doc = data; isASCII(data) {
		r.ascii = true
		return r
	}
	if utf8.ValidString(data) {
		r.cleanse()
		return r
	}
	var b strings.Builder
	b.Grow(len(data) + len(data)/16)
	for i := 0; i < len(data); {
		c, n := utf8.DecodeRuneInString(data[i:])
		if c == utf8.RuneError && n == 1 {
			r.spoil(b.Len())
			c = byteRune(charmap.Windows1252, data[i])
		} else if n > 1 {
			r.good++
		}
		b.WriteRune(c)
		i += n
	}
	if r.bad > r.good { // the bytes look like UTF-8 by accident
		whole := readBytes(charmap.Windows1252, data)
		whole.good, whole.bad, whole.at = r.good, r.bad, firstBeyondASCII(data)
		return whole
	}
	r.doc = b.String()
	r.cleanse()
	return r
}

// isASCII reports whether there is nothing beyond ASCII in text, which is most often true.
func isASCII(text string) bool {
	i := 0
	for ; i+32 <= len(text); i += 32 {
		c := text[i : i+32]
		if (word(c)|word(c[8:])|word(c[16:])|word(c[24:]))&0x8080808080808080 != 0 {
			return false
		}
	}
	for ; i < len(text); i++ {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// word returns the first eight bytes of a text.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// firstBeyondASCII returns the offset of the first byte beyond ASCII.
func firstBeyondASCII(data string) int {
	return strings.IndexFunc(data, func(r rune) bool { return r >= utf8.RuneSelf })
}

// readBytes reads a charset in which each byte is a character.
func readBytes(charset *charmap.Charmap, data string) (r reading) {
	var b strings.Builder
	b.Grow(len(data) + len(data)/16)
	for i := range len(data) {
		c := charset.DecodeByte(data[i])
		switch {
		case c == utf8.RuneError:
			r.spoil(b.Len())
			c = byteRune(charset, data[i])
		case c >= utf8.RuneSelf:
			r.good++
		}
		b.WriteRune(c)
	}
	r.doc = b.String()
	return r
}

// byteRune returns the character of a byte. Those of the bytes 80 to 9F without a character
// are the control characters with that number, as in HTML.
func byteRune(charset *charmap.Charmap, b byte) rune {
	r := charset.DecodeByte(b)
	if r == utf8.RuneError && 0x80 <= b && b <= 0x9F {
		return rune(b)
	}
	return r
}
