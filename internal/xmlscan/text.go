package xmlscan

import (
	"encoding/binary"
	"html"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

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
		a, b := eight(rest, 0), eight(rest, 8)
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
	high = 0x8080808080808080
	full = 0xffffffffffffffff
)

// less marks the first byte of a word less than c, which is of ASCII. The other bits, and the marks
// after this byte, mean nothing.
func less(word uint64, c byte) uint64 { return (word - uint64(c)*ones) &^ word }

// first returns the index of the first byte marked in a word; 8 if there is none.
func first(marks uint64) int { return bits.TrailingZeros64(marks) / 8 }

// spaced marks the bytes not below the space.
func spaced(word uint64) uint64 { return word&low + 0x60*ones | word }

// blank marks tabs and newlines, and perhaps bytes above ASCII.
func blank(word uint64) uint64 {
	return ^(((word&low ^ '\t'*ones) + low) & ((word&low ^ '\n'*ones) + low))
}

// eight returns the eight bytes of s at i as a number.
func eight(s string, i int) uint64 {
	s = s[i : i+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// last returns the bytes of s from i on, which are fewer than eight, as a number.
func last(s string, i int) (word uint64) {
	for k := len(s) - 1; k >= i; k-- {
		word = word<<8 | uint64(s[k])
	}
	return word
}

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

// nameStopAt is until for nameStop.
func nameStopAt(s string, i int) int {
	for i+8 <= len(s) {
		k := first(notLetters(eight(s, i)))
		if i += k; k < 8 {
			break
		}
	}
	return until(s, i, nameStop)
}

// notLetters marks the bytes of a word other than letters of ASCII.
func notLetters(word uint64) uint64 {
	lower := (word | ' '*ones) & low
	return ^((lower+(0x80-'a')*ones)&^(lower+(0x80-'z'-1)*ones))&high | word&high
}

// valueEnd returns the index of the quote after a value, from i on, or of an earlier byte in need of
// attention; in the last eight bytes of the document, perhaps of any earlier byte.
func valueEnd(s string, i int, quote byte) int {
	for i+8 <= len(s) {
		word := eight(s, i)
		k := first((less(word, ' ') | less(word^uint64(quote)*ones, 1) | less(word^'&'*ones, 1) | less(word^'<'*ones, 1)) & high)
		if i += k; k < 8 {
			break
		}
	}
	return i
}

// isPlainValue reports whether the value of an attribute means its characters.
func isPlainValue(s string) bool {
	i := 0
	for ; i <= len(s)-8; i += 8 {
		if word := eight(s, i); (less(word, ' ')|less(word^'&'*ones, 1))&high != 0 {
			return false
		}
	}
	return until(s, i, decodeValue) == len(s)
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

// text reads character data from i up to the next markup.
func (s *Scanner) text(i int) Token { return s.textUntil(i, indexFrom(s.doc, i, '<')) }

// textUntil reads character data from i up to the end.
func (s *Scanner) textUntil(i, end int) Token {
	switch s.end = end; {
	case s.control(i) < end:
		s.form = coded
	case s.ampersand(i) < end:
		s.form = escaped
	default:
		s.form = literal
	}
	if !s.again && (s.form != literal || s.bracket(i) < end) {
		s.noteText(i, end)
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
	return appendCharacters(dst, raw)
}

// appendCharacters appends text without control characters other than tabs and newlines.
func appendCharacters(dst []byte, raw string) []byte {
	for raw != "" {
		dst, raw = appendEscaped(dst, raw)
		if raw != "" {
			var n int
			dst, n = appendReference(dst, raw)
			raw = raw[n:]
		}
	}
	return dst
}

// decoded returns the meaning of raw, text or a CDATA section depending on mode, which is clean if it has
// no control characters other than tabs and newlines.
func (c *Cursor) decoded(raw string, mode uint8, clean bool) string {
	switch {
	case !clean && control(raw, 0) < len(raw):
		c.buf = appendDecoded(slices.Grow(c.buf[:0], len(raw)), raw, mode)
	case mode == decodeText && indexFrom(raw, 0, '&') < len(raw):
		c.buf = appendCharacters(c.buf[:0], raw)
	default:
		return raw
	}
	return string(c.buf)
}

// spare is the room appendEscaped needs behind its text.
const spare = 8

// appendEscaped appends text up to the first ampersand without a reference known to shortReference,
// and returns the rest. It copies a word at a time, also beyond an ampersand: the next one overwrites
// the excess.
func appendEscaped(dst []byte, raw string) (to []byte, rest string) {
	n := len(dst)
	dst = slices.Grow(dst, len(raw)+spare)
	dst = dst[:cap(dst)]
	for i := 0; i < len(raw); {
		if i+8 <= len(raw) {
			word := eight(raw, i)
			binary.LittleEndian.PutUint64(dst[n:n+8], word)
			found := less(word^'&'*ones, 1) & high
			if found == 0 {
				i, n = i+8, n+8
				continue
			}
			i, n = i+first(found), n+first(found)
		} else if raw[i] != '&' {
			dst[n] = raw[i]
			i, n = i+1, n+1
			continue
		}
		size, c := shortReference(raw[i:])
		if size == 0 {
			return dst[:n], raw[i:]
		}
		dst[n] = c
		i, n = i+size, n+1
	}
	return dst[:n], ""
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
	case refChar, refSurrogates, refWindows:
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
	var b strings.Builder
	done, n := 0, 0
	for i := indexFrom(text, 0, '&'); i < len(text); i = indexFrom(text, i+n, '&') {
		var kind refKind
		var r rune
		switch kind, n, r = reference(text[i:]); kind {
		case refSurrogates, refWindows:
			b.WriteString(text[done:i])
			b.WriteRune(r)
			done = i + n
		case refChar, refHTML:
			b.WriteString(text[done:i])
			b.WriteString(html.UnescapeString(text[i : i+n]))
			done = i + n
		}
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
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
	refWindows                   // a reference to a control character, by its number in windows-1252
)

// reference reads the reference at the ampersand raw[0]: its kind, its length and, if it is of
// a number, its character.
func reference(raw string) (kind refKind, n int, r rune) {
	if n, c := shortReference(raw); n > 0 {
		return refChar, n, rune(c)
	}
	if len(raw) >= 4 && raw[1] == '#' {
		return numeric(raw)
	}
	return named(raw)
}

// shortReference reads the reference at the beginning of raw if it is a usual one to a character of
// ASCII; n is 0 for all others.
func shortReference(raw string) (n int, c byte) {
	if len(raw) < len("&lt;") {
		return 0, 0
	}
	switch raw[:len("&lt;")] {
	case "&lt;":
		return len("&lt;"), '<'
	case "&gt;":
		return len("&gt;"), '>'
	case "&amp":
		if hasPrefixAt(raw, 4, ";") {
			return len("&amp;"), '&'
		}
	case "&quo":
		if hasPrefixAt(raw, 4, "t;") {
			return len("&quot;"), '"'
		}
	case "&#xA":
		if hasPrefixAt(raw, 4, ";") {
			return len("&#xA;"), '\n'
		}
	default:
		if hasPrefixAt(raw, 4, ";") && raw[1] == '#' {
			tens, units := raw[2]-'0', raw[3]-'0'
			if c = 10*tens + units; tens <= 9 && units <= 9 && c >= ' ' {
				return len("&#34;"), c
			}
		}
	}
	return 0, 0
}

// oddReference returns the offset, from i on, of the first ampersand in a text with another reference than
// the most usual ones, or of an apostrophe after an ampersand; the length of the text if there is none.
func oddReference(text string, i int) int {
	const lt, gt, amp = '&' | 'l'<<8 | 't'<<16 | ';'<<24, '&' | 'g'<<8 | 't'<<16 | ';'<<24, '&' | 'a'<<8 | 'm'<<16 | 'p'<<24
	for ; i <= len(text)-16; i += 8 {
		for marks := less(eight(text, i)^'&'*ones, 1) & high; marks != 0; marks &= marks - 1 {
			at := i + first(marks)
			ref := eight(text, at)
			if four := uint32(ref); four != lt && four != gt && (four != amp || byte(ref>>32) != ';') {
				return at
			}
		}
	}
	return indexFrom(text, i, '&')
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
	case !IsChar(r):
		return refForbidden, n, 0
	case r >= 0x80 && r < 0xA0: // as in HTML (HTML, numeric character reference end state); XML has control characters there
		if meant := charmap.Windows1252.DecodeByte(byte(r)); meant != r && meant != utf8.RuneError {
			return refWindows, n, meant
		}
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

// cesuLength is the length of a character in CESU-8.
const cesuLength = 6

// cesu8 reads the character at the beginning of data if its two halves in UTF-16 are encoded
// one by one, as Java and MySQL do: CESU-8 (Unicode Technical Report 26).
func cesu8(data string) (both rune, ok bool) {
	if len(data) < cesuLength || data[0] != 0xED || data[3] != 0xED {
		return 0, false
	}
	var halves [2]rune
	for i := range halves {
		second, third := data[3*i+1], data[3*i+2]
		if second>>4 != 0xA+byte(i) || third>>6 != 2 {
			return 0, false
		}
		halves[i] = 0xD000 | rune(second&0x3F)<<6 | rune(third&0x3F)
	}
	return utf16.DecodeRune(halves[0], halves[1]), true
}

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
func IsPlain(r rune) bool { return r != '\r' && IsChar(r) }

// IsChar reports whether r is a Char of XML 1.0.
func IsChar(r rune) bool {
	switch {
	case r < ' ':
		return r == '\t' || r == '\n' || r == '\r'
	case r == 0xFFFE || r == 0xFFFF:
		return false
	}
	return utf8.ValidRune(r)
}

// The entities a document declares itself.
const (
	maxEntities = 256
	maxEntity   = 4 << 10 // the length of one, with the entities in it
)

// Expand replaces the references to the entities a document declares in its DOCTYPE, as
// XML does: the scanner then reads their text as part of the document. A declaration
// overrides an entity of HTML, but none of XML's five. Parameter entities and external ones
// are unknown.
//
// The result has at most twice the document's length: a document about to become longer
// is returned unchanged, and so is one without declarations.
func Expand(doc string) string {
	subset, from := internalSubset(doc)
	if subset == "" {
		return doc
	}
	x := expander{values: map[string]string{}, open: map[string]bool{}}
	x.declare(subset)
	if len(x.values) == 0 {
		return doc
	}
	var b strings.Builder
	b.WriteString(doc[:from])
	if !x.document(&b, doc[from:], 2*len(doc)) {
		return doc
	}
	return b.String()
}

// internalSubset returns the part of a DOCTYPE with declarations, and where the DOCTYPE
// ends; "" if there is none.
func internalSubset(doc string) (subset string, end int) {
	for i := 0; ; {
		i = skipSpace(doc, i)
		switch after := afterSection(doc, i); {
		case after > i && !hasPrefixAt(doc, i, "<![CDATA["):
			i = after
		case hasPrefixAt(doc, i, "<!DOCTYPE"):
			end, ok := doctypeEnd(doc, i+len("<!DOCTYPE"))
			_, subset, found := strings.Cut(doc[i:end], "[")
			if !ok || !found {
				return "", 0
			}
			return subset, end
		default:
			return "", 0
		}
	}
}

// An expander knows the entities of one document.
type expander struct {
	values map[string]string
	open   map[string]bool // the entities being expanded
}

// declare reads the declarations of entities. The first one of a name counts.
func (x *expander) declare(subset string) {
	for i := 0; i < len(subset); i++ {
		switch rest := subset[i:]; {
		case afterSection(subset, i) > i:
			i = afterSection(subset, i) - 1
		case strings.HasPrefix(rest, "<!ENTITY"):
			i = x.declaration(subset, i+len("<!ENTITY"))
		case rest[0] == '"', rest[0] == '\'':
			i = lastOf(subset, i+1, rest[:1])
		}
	}
}

// declaration reads one declaration after its keyword, and returns where its value ends.
func (x *expander) declaration(subset string, i int) (end int) {
	begin := skipSpace(subset, i)
	end = nameEnd(subset, begin)
	name := subset[begin:end]
	quote := skipSpace(subset, end)
	if name == "" || begin == i || quote == end || quote == len(subset) || subset[quote] != '"' && subset[quote] != '\'' {
		return end
	}
	end = lastOf(subset, quote+1, subset[quote:quote+1])
	if end == len(subset) || len(x.values) == maxEntities {
		return end
	}
	switch name {
	case "amp", "lt", "gt", "quot", "apos":
		return end
	}
	if _, ok := x.values[name]; !ok {
		x.values[name] = characters(subset[quote+1 : end])
	}
	return end
}

// characters decodes the numeric references in the value of an entity.
func characters(value string) string {
	var b strings.Builder
	for {
		i := strings.Index(value, "&#")
		if i < 0 {
			b.WriteString(value)
			return b.String()
		}
		kind, n, r := reference(value[i:])
		b.WriteString(value[:i])
		switch kind {
		case refChar, refSurrogates, refWindows:
			b.WriteRune(r)
		default:
			b.WriteString(value[i : i+n])
		}
		value = value[i+n:]
	}
}

// document writes the part of a document after its DOCTYPE. It reports whether this part
// is no longer than most.
func (x *expander) document(b *strings.Builder, doc string, most int) bool {
	for i := 0; i < len(doc) && b.Len() <= most; {
		begin, inTag := i, doc[i] == '<'
		if i = afterSection(doc, i); i > begin {
			b.WriteString(doc[begin:i])
			continue
		}
		if inTag {
			i = tagEnd(doc, i)
		} else {
			i = indexFrom(doc, i, '<')
		}
		x.text(b, doc[begin:i], inTag, most)
	}
	return b.Len() <= most
}

// tagEnd returns where the tag at i ends; ">" may occur in its values.
func tagEnd(doc string, i int) int {
	for i++; i < len(doc); i++ {
		switch doc[i] {
		case '>':
			return i + 1
		case '<':
			return i
		case '"', '\'':
			end := lastOf(doc, i+1, doc[i:i+1])
			if strings.IndexByte(doc[i:min(end, len(doc))], '<') >= 0 { // a value without its end
				continue
			}
			i = end
		}
	}
	return len(doc)
}

// text writes text or a tag.
func (x *expander) text(b *strings.Builder, text string, inTag bool, most int) {
	for b.Len() <= most {
		i := strings.IndexByte(text, '&')
		if i < 0 {
			b.WriteString(text)
			return
		}
		b.WriteString(text[:i])
		end := nameEnd(text, i+1)
		value, ok := "", false
		if end > i+1 && end < len(text) && text[end] == ';' {
			value, ok = x.value(text[i+1 : end])
		}
		if !ok {
			b.WriteByte('&')
			text = text[i+1:]
			continue
		}
		if inTag {
			value = strings.NewReplacer("<", "&lt;", `"`, "&quot;", "'", "&apos;").Replace(value)
		}
		b.WriteString(value)
		text = text[end+1:]
	}
}

// value returns the text of an entity, with the entities in it expanded. An entity is
// unknown if it contains itself or is too long.
func (x *expander) value(name string) (value string, ok bool) {
	value, ok = x.values[name]
	if !ok || x.open[name] || len(value) > maxEntity {
		return "", false
	}
	if strings.IndexByte(value, '&') < 0 {
		return value, true
	}
	x.open[name] = true
	var b strings.Builder
	x.text(&b, value, false, maxEntity)
	x.open[name] = false
	if b.Len() > maxEntity {
		delete(x.values, name) // it is expanded only once
		return "", false
	}
	x.values[name] = b.String()
	return b.String(), true
}

var (
	textEscaper = newEscaper("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#13;")
	attrEscaper = newEscaper("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#13;",
		`"`, "&#34;", "\t", "&#9;", "\n", "&#10;")
	forbidden      = newEscaper()
	sectionEscaper = strings.NewReplacer("]]>", "]]]]><![CDATA[>", "\r", "]]>&#13;<![CDATA[")
)

// IsDense reports whether a text is written sparingly: it is large, or escapes make it more than
// two and a half times as long.
func IsDense(length, escaped int) bool { return length >= 4<<20 || 2*escaped > 5*length+2<<10 }

// WriteText writes characters as XML text. One full of characters to escape is a CDATA section, if
// shorter: no text becomes more than four times as long, and HTML full of escapes not twice.
func WriteText(b *strings.Builder, s string) {
	s = validUTF8(s)
	returns, amps := strings.Count(s, "\r"), strings.Count(s, "&")
	escaped := len(s) + 4*(returns+amps) + 3*(strings.Count(s, "<")+strings.Count(s, ">"))
	inHTML := 6*amps > len(s)+4<<10
	if len(s) > 512 && (inHTML || IsDense(len(s), escaped)) { // a shorter one is not dense
		if section := len(s) + 16*returns + 12*strings.Count(s, "]]>"); section < escaped {
			b.Grow(section + len("<![CDATA[]]>"))
			b.WriteString("<![CDATA[")
			var allowed strings.Builder // without a character between the ends of "]]>"
			forbidden.write(&allowed, s)
			_, _ = sectionEscaper.WriteString(b, allowed.String())
			b.WriteString("]]>")
			return
		}
	}
	b.Grow(escaped)
	textEscaper.write(b, s)
}

// WriteAttr writes an attribute, with the space before it.
func WriteAttr(b *strings.Builder, name, value string) {
	b.WriteByte(' ')
	b.WriteString(name)
	b.WriteString(`="`)
	attrEscaper.write(b, validUTF8(value))
	b.WriteByte('"')
}

// Trim returns a text without the white space of XML around it.
func Trim(s string) string {
	if s == "" || s[0] > ' ' && s[len(s)-1] > ' ' { // nearly always
		return s
	}
	return strings.Trim(s, " \t\r\n")
}
