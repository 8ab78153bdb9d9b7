package xmlscan

// The classes of bytes. The scanner's loops run over bytes of one class, and examine only
// the byte at the end of such a run.
const (
	spaceByte   = 1 << iota // white space
	nameByte                // may be in a name; bytes beyond ASCII are checked later
	nameStart               // may begin a name
	nameStop                // cannot be in a name, or needs attention: colons, and bytes beyond ASCII
	valueStop               // needs attention in an attribute value
	decodeText              // cannot be copied unchanged in text
	decodeCData             // cannot be copied unchanged in a CDATA section
	decodeValue             // cannot be copied unchanged in an attribute value
)

var class = func() (t [256]uint8) {
	for c := range t {
		t[c] = nameStop
		switch {
		case c >= 0x80, c == ':':
			t[c] |= nameByte | nameStart
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
			t[c] = nameByte | nameStart
		case c >= '0' && c <= '9', c == '-', c == '.':
			t[c] = nameByte
		case c < ' ':
			t[c] |= valueStop | decodeText | decodeCData | decodeValue
		}
	}
	t[' '] = nameStop | spaceByte
	t['\t'] = nameStop | spaceByte | decodeValue
	t['\n'] = nameStop | spaceByte | decodeValue
	t['\r'] = nameStop | spaceByte | decodeText | decodeCData | decodeValue
	t['<'] |= valueStop
	t['&'] |= valueStop | decodeText | decodeValue
	return t
}()

// skipSpace returns the index of the first byte from i on other than white space.
func skipSpace(s string, i int) int {
	for i < len(s) && class[s[i]]&spaceByte != 0 {
		i++
	}
	return i
}

// until returns the index of the first byte of class c from i on.
func until(s string, i int, c uint8) int {
	for i < len(s) && class[s[i]]&c == 0 {
		i++
	}
	return i
}

// hasPrefixAt reports whether s has prefix at i.
func hasPrefixAt(s string, i int, prefix string) bool {
	return len(s)-i >= len(prefix) && s[i:i+len(prefix)] == prefix
}

// validName checks a name with characters beyond ASCII, by the productions NameStartChar and
// NameChar of XML 1.0, fifth edition.
func validName(name string) bool {
	for i, r := range name {
		switch {
		case r < 0x80:
			// The class table has checked it.
		case r == 0xB7, r >= 0x300 && r <= 0x36F, r == 0x203F, r == 0x2040:
			if i == 0 {
				return false
			}
		case !nameStartRune(r):
			return false
		}
	}
	return true
}

func nameStartRune(r rune) bool {
	switch {
	case r < 0xC0, r == 0xD7, r == 0xF7, r == 0x37E:
		return false
	case r <= 0x1FFF, r == 0x200C, r == 0x200D:
		return true
	case r >= 0x2070 && r <= 0x218F, r >= 0x2C00 && r <= 0x2FEF, r >= 0x3001 && r <= 0xD7FF:
		return true
	case r >= 0xF900 && r <= 0xFDCF, r >= 0xFDF0 && r < 0xFFFD, r >= 0x10000 && r <= 0xEFFFF:
		return true
	}
	return false
}
