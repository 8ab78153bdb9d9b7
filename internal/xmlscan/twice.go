package xmlscan

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// UTF-8 that was taken for windows-1252 and encoded as UTF-8 again: "Ã©" for "é".

// severalTwice is the number of such characters that are no accident.
const severalTwice = 3

// EncodedOnce undoes the second encoding of a document, if all its characters beyond ASCII
// are UTF-8 encoded twice, and there are several. The note has the place of the first.
func EncodedOnce(doc string) (string, []Note) {
	if strings.IndexByte(doc, leadByte) < 0 {
		return doc, nil
	}
	text, n := once(doc)
	if n < severalTwice {
		return doc, nil
	}
	return text, []Note{{"encoded-twice", "the document is UTF-8 encoded twice", firstBeyondASCII(text)}}
}

// XMLEncodedOnce is EncodedOnce for XML: if not the document, single texts in it may be
// encoded twice. Such a text must have a space, so no ID is changed alone.
func XMLEncodedOnce(doc string) (string, []Note) {
	if text, notes := EncodedOnce(doc); notes != nil {
		return text, notes
	}
	var b strings.Builder
	var notes []Note
	done := 0
	texts := textFinder{doc: doc}
	for at := nextTwice(doc, 0); at >= 0; at = nextTwice(doc, texts.end) {
		from, to := texts.around(at)
		text, n := once(doc[from:to])
		if n < severalTwice || !strings.Contains(strings.TrimSpace(text), " ") {
			continue
		}
		b.WriteString(doc[done:from])
		if notes == nil {
			notes = []Note{{"encoded-twice", "a text is UTF-8 encoded twice", b.Len()}}
		}
		b.WriteString(text)
		done = to
	}
	if notes == nil {
		return doc, nil
	}
	b.WriteString(doc[done:])
	return b.String(), notes
}

// leadByte begins each of the characters which were the first byte of one in UTF-8.
const leadByte = 0xC3

// nextTwice returns the place of the next character that may be encoded twice; -1 if there
// is none.
func nextTwice(doc string, from int) int {
	for from < len(doc) {
		i := strings.IndexByte(doc[from:], leadByte)
		if i < 0 {
			return -1
		}
		from += i
		if from+2 < len(doc) && doc[from+2] >= utf8.RuneSelf {
			if _, n := oneOnce(doc[from:]); n > 0 {
				return from
			}
		}
		from += 2
	}
	return -1
}

// A textFinder finds the texts of a document, in order.
type textFinder struct {
	doc  string
	end  int  // of the last text
	open bool // the rest has no end of a CDATA section
}

// around returns the bounds of the text at a place beyond the last one: a CDATA section,
// or everything between two tags.
func (f *textFinder) around(at int) (from, to int) {
	const begin, end = "<![CDATA[", "]]>"
	before, after := f.doc[f.end:at], f.doc[at:]
	if i := strings.LastIndex(before, begin); i >= 0 && !f.open && !strings.Contains(before[i:], end) {
		n := strings.Index(after, end)
		if f.open = n < 0; !f.open {
			from, to = f.end+i+len(begin), at+n
			f.end = to
			return from, to
		}
	}
	from = f.end + strings.LastIndexAny(before, "<>") + 1
	if to = strings.IndexAny(after, "<>"); to < 0 {
		to = len(after)
	}
	f.end = at + to
	return from, f.end
}

// once returns a text encoded once, and the number of its characters beyond ASCII; zero if
// any of them is not encoded twice.
func once(text string) (string, int) {
	var b strings.Builder
	done, n := 0, 0
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := oneOnce(text[i:])
		if size == 0 {
			return text, 0
		}
		if n == 0 {
			b.Grow(len(text))
		}
		b.WriteString(text[done:i])
		b.WriteRune(r)
		i += size
		done = i
		n++
	}
	b.WriteString(text[done:])
	return b.String(), n
}

// oneOnce returns the character encoded twice at the beginning of a text, and its length
// there; zero if there is none.
func oneOnce(text string) (rune, int) {
	var raw [utf8.UTFMax]byte
	n, i := 0, 0
	for n < len(raw) && i < len(text) && text[i] >= utf8.RuneSelf {
		r, size := utf8.DecodeRuneInString(text[i:])
		c, ok := cp1252Byte(r)
		if !ok || c < utf8.RuneSelf {
			break
		}
		raw[n] = c
		n++
		i += size
		if n > 1 && utf8.FullRune(raw[:n]) {
			break
		}
	}
	r, size := utf8.DecodeRune(raw[:n])
	if size < 2 || size != n {
		return 0, 0
	}
	return r, i
}

// cp1252Byte returns the byte of a character in windows-1252. The bytes without a
// character are the control characters of their numbers.
func cp1252Byte(r rune) (byte, bool) {
	if r >= 0x80 && r <= 0x9F {
		return byte(r), byteRune(charmap.Windows1252, byte(r)) == r
	}
	return charmap.Windows1252.EncodeRune(r)
}
