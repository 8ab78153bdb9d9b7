package xmlscan

import (
	"fmt"
	"mime"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode/utf32"
)

// Decode turns a document's bytes into UTF-8. It finds their encoding in the order of RFC
// 7303: by the byte order mark, the charset of contentType, or the XML declaration;
// otherwise it is UTF-8. It recognises UTF-16 and UTF-32 by their zero bytes even without
// a mark, and ignores these names if there are no zero bytes.
//
// The bytes decide. If they make no sense in the first charset named, but do in another one named, or in
// UTF-8, Decode uses the latter; and if ISO-8859-1, windows-1252 or ASCII is named, but everything beyond
// ASCII is UTF-8, it uses UTF-8. So it does if only the document names a charset, in which some bytes have
// no meaning, but is UTF-8 throughout. A few bad bytes do not count, so an excerpt cut within a character
// changes no other. The bytes also
// refute a byte order mark of UTF-8, and those after the end of the root element decide nothing.
//
// Decode removes a byte order mark. In UTF-8 it reads invalid bytes as windows-1252, so different bytes stay different, and the whole
// document if most of them are invalid; in other encodings they become U+FFFD. So do U+FFFE and U+FFFF, which XML does not allow. It
// changes an XML declaration of another charset to UTF-8. Clean UTF-8 without need of such a change is returned unchanged and without
// copying; otherwise doc has at most three times as many bytes as data. The offsets in notes are offsets in doc.
func Decode(data string, contentType string) (doc string, notes []Note, err error) {
	r, notes, err := decode(data, contentType, false)
	return r.doc, notes, err
}

// Read moves c, with its memory, to the beginning of a document as received, which it decodes, and whose
// own entities it expands. Unless strict, it also undoes a second encoding: see XMLEncodedOnce. The notes
// are those of Decode.
func (c *Cursor) Read(data, contentType string, strict bool, lim Limits) (notes []Note, err error) {
	r, notes, err := decode(data, contentType, !strict)
	if err != nil {
		return nil, err
	}
	doc := Expand(r.doc)
	c.reset(doc, nil, lim)
	c.Mender, c.buf = nil, c.buf[:0]
	if r.clean && doc == r.doc {
		c.ahead.control = len(doc)
	}
	return notes, nil
}

func decode(data string, contentType string, once bool) (r reading, notes []Note, err error) {
	sources := [2]source{{name: "Content-Type"}, {name: "XML declaration"}}
	sources[0].set(contentCharset(contentType))
	found, data := detect(data)
	end := afterRoot(data)
	data, tail := data[:end], data[end:]
	if found.name == "" {
		label, _ := declaredCharset(data)
		sources[1].set(label)
		found, r, err = choose(data, sources[:])
	} else {
		if r, err = found.read(data); err != nil {
			return reading{}, nil, err
		}
		label, _ := declaredCharset(r.doc)
		sources[1].set(label)
		if found.name == utf8Name && !fits(r.good, r.bad) { // the bytes refute the byte order mark
			found, r, err = choose(data, sources[:])
		}
	}
	if err != nil {
		return reading{}, nil, err
	}
	for _, s := range sources {
		notes = s.appendNote(notes, found.name)
	}
	if once && found.name == utf8Name && r.bad+r.never == 0 && !r.ascii {
		var twice []Note
		r.doc, twice = XMLEncodedOnce(r.doc)
		notes = append(notes, twice...)
		r.clean = r.clean && twice == nil
	}
	if tail != "" {
		after, _ := found.read(tail)
		r.doc, r.clean = r.doc+after.doc, r.clean && after.clean
	}
	before := len(r.doc)
	r.doc = declareUTF8(r.doc)
	r.at += len(r.doc) - before // it comes after the declaration
	r.cesu += len(r.doc) - before
	return r, r.appendNotes(notes, found.name), nil
}

// afterRoot returns where an XML document ends if bytes beyond ASCII follow, which say
// nothing about its charset; otherwise the length of the data.
func afterRoot(data string) int {
	begin := strings.LastIndex(data, "</")
	if begin < 0 || !strings.HasPrefix(strings.TrimLeft(data, " \t\r\n"), "<") {
		return len(data)
	}
	name, tail, ok := strings.Cut(data[begin+len("</"):], ">")
	if !ok || isASCII(tail) {
		return len(data)
	}
	_, local, prefixed := strings.Cut(strings.TrimSpace(name), ":")
	if !prefixed {
		local = strings.TrimSpace(name)
	}
	switch strings.ToLower(local) {
	case "feed", "rss", "rdf":
		return len(data) - len(tail)
	}
	return len(data)
}

// detect returns the charset the first bytes reveal, and the data without a byte order mark
// (XML 1.0, appendix F).
func detect(data string) (d decoder, rest string) {
	const utf8Mark = "\xEF\xBB\xBF"
	if strings.HasPrefix(data, utf8Mark) {
		return decoder{name: utf8Name}, strings.TrimLeft(data, utf8Mark) // some software writes several
	}
	for _, m := range [...]struct{ mark, name string }{
		{"\xFF\xFE\x00\x00", "utf-32le"},
		{"\x00\x00\xFE\xFF", "utf-32be"},
		{"\xFF\xFE", "utf-16le"},
		{"\xFE\xFF", "utf-16be"},
	} {
		if rest, ok := strings.CutPrefix(data, m.mark); ok {
			return unicodeDecoder(m.name), rest
		}
	}
	if len(data) < 4 {
		return decoder{}, data
	}
	switch [4]bool{data[0] == 0, data[1] == 0, data[2] == 0, data[3] == 0} {
	case [4]bool{true, true, true, false}:
		return unicodeDecoder("utf-32be"), data
	case [4]bool{false, true, true, true}:
		return unicodeDecoder("utf-32le"), data
	case [4]bool{true, false, true, false}, [4]bool{true, false, false, false}:
		return unicodeDecoder("utf-16be"), data
	case [4]bool{false, true, false, true}, [4]bool{false, true, false, false}:
		return unicodeDecoder("utf-16le"), data
	}
	return decoder{}, data
}

func unicodeDecoder(name string) decoder {
	switch name {
	case "utf-32le":
		return decoder{name, utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)}
	case "utf-32be":
		return decoder{name, utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)}
	}
	e, _ := charset.Lookup(name)
	return decoder{name, e}
}

// A source names a charset.
type source struct {
	name, label string // label is "" if the source names none
	decoder
}

func (s *source) set(label string) {
	if s.label = label; label != "" {
		s.decoder = lookup(label)
	}
}

// appendNote notes a source that is wrong about a document in the given charset.
func (s *source) appendNote(notes []Note, found string) []Note {
	switch name := s.decoder.name; {
	case s.label == "", name == found, s.wide() && strings.HasPrefix(found, name[:len("utf-16")]):
		return notes
	case name == "":
		return append(notes, Note{"unknown-charset", fmt.Sprintf("%s: unknown charset %q", s.name, clip(s.label)), 0})
	default:
		return append(notes, Note{"charset-mismatch",
			fmt.Sprintf("%s: %s, but the document is read as %s", s.name, name, found), 0})
	}
}

// choose finds the charset of a document that begins like ASCII, and reads the document
// in it.
func choose(data string, sources []source) (decoder, reading, error) {
	utf8Set := decoder{name: utf8Name}
	named := make([]decoder, 0, 3)
	for _, s := range sources {
		if s.decoder.name != "" && !s.wide() {
			named = append(named, s.decoder)
		}
	}
	named = append(named, utf8Set)
	first := named[0]
	if first.name == latin1Name {
		if good, bad := tally(data); good > 0 && fits(good, bad) {
			first = utf8Set
		}
	}
	r, err := first.read(data)
	if err != nil {
		return first, r, err
	}
	if r.bad > 0 && sources[0].decoder.name == "" && isClearlyUTF8(data) {
		return utf8Set, readUTF8(data), nil
	}
	if fits(r.good, r.bad) {
		return first, r, nil
	}
	for _, c := range named[1:] {
		if c.name == first.name {
			continue
		}
		if other, err := c.read(data); err == nil && fits(other.good, other.bad) {
			return c, other, nil
		}
	}
	return first, r, nil
}

// isClearlyUTF8 reports whether a document is UTF-8 throughout, with several characters beyond
// ASCII: bytes in another charset are hardly ever UTF-8 by accident.
func isClearlyUTF8(data string) bool {
	const several = 3
	good, bad := tally(data)
	return bad == 0 && good >= several
}

// fits reports whether a document with the given numbers of good characters beyond ASCII
// and of bad bytes may be in a charset. In a wrong charset most of them are bad; in the
// right one only a few, which are damaged.
func fits(good, bad int) bool { return bad == 0 || good > 4*bad }

// tally counts the characters of UTF-8 beyond ASCII, and the bytes outside of UTF-8.
func tally(data string) (good, bad int) {
	for i := beyondASCII(data, 0); i < len(data); i = beyondASCII(data, i) {
		r, n := utf8.DecodeRuneInString(data[i:])
		_, pair := cesu8(data[i:])
		switch {
		case pair:
			good++
			n = cesuLength
		case r == utf8.RuneError && n == 1:
			bad++
		case n > 1:
			good++
		}
		i += n
	}
	return good, bad
}

// A decoder reads a charset, and has its name in HTML's list, or "" for none. That of UTF-8
// has no encoding, and neither has that of UTF-32 by its label: detect finds UTF-32 by its
// bytes.
type decoder struct {
	name     string
	encoding encoding.Encoding
}

// The names with a special meaning.
const (
	utf8Name   = "utf-8"
	latin1Name = "windows-1252" // the actual meaning of ISO-8859-1 and ASCII
)

// wide reports whether none of its characters is a byte of ASCII.
func (d decoder) wide() bool {
	return strings.HasPrefix(d.name, "utf-16") || strings.HasPrefix(d.name, "utf-32")
}

// contentCharset returns the charset parameter of a Content-Type.
func contentCharset(contentType string) string {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return ""
	}
	return params["charset"]
}

// declaredCharset returns the encoding named in the XML declaration, and its offset.
func declaredCharset(doc string) (label string, begin int) {
	rest := doc[skipSpace(doc, 0):]
	if !strings.HasPrefix(rest, "<?xml") {
		return "", 0
	}
	begin = len(doc) - len(rest)
	rest, _, _ = strings.Cut(rest[:min(len(rest), 1024)], "?>")
	end := begin + len(rest)
	_, rest, _ = strings.Cut(rest, "encoding")
	rest = rest[skipSpace(rest, 0):]
	rest, ok := strings.CutPrefix(rest, "=")
	rest = rest[skipSpace(rest, 0):]
	if !ok || rest == "" || rest[0] != '"' && rest[0] != '\'' {
		return "", 0
	}
	label, _, _ = strings.Cut(rest[1:], rest[:1])
	return label, end - len(rest) + 1
}

// declareUTF8 changes the XML declaration of a document decoded to UTF-8, if it names
// another encoding. The rest keeps its offsets if there is room.
func declareUTF8(doc string) string {
	label, begin := declaredCharset(doc)
	end := begin + len(label)
	if label == "" || lookup(label).name == utf8Name || end == len(doc) || doc[end] != doc[begin-1] {
		return doc
	}
	room := strings.Repeat(" ", max(0, len(label)-len(utf8Name)))
	return doc[:begin] + utf8Name + doc[end:end+1] + room + doc[end+1:]
}

// lookup returns the decoder a label means.
func lookup(label string) decoder {
	label = strings.ToLower(strings.TrimSpace(label))
	if label == utf8Name { // nearly always
		return decoder{name: utf8Name}
	}
	if strings.HasPrefix(label, "utf-32") {
		return decoder{name: "utf-32"}
	}
	d := registered(label)
	if d.name == "" {
		d = registered(usualLabel(label))
	}
	return d
}

// registered returns the decoder of a label in HTML's list. IANA has more labels for the
// same charsets.
func registered(label string) decoder {
	e, name := charset.Lookup(label)
	if e == nil {
		if iana, err := ianaindex.IANA.Encoding(label); err == nil && iana != nil {
			label, _ = ianaindex.MIME.Name(iana)
			e, name = charset.Lookup(label)
		}
	}
	switch name {
	case "replacement": // HTML's name for encodings never to be decoded
		return decoder{}
	case utf8Name:
		return decoder{name: name}
	case "gbk": // HTML decodes it as its superset
		e, _ = charset.Lookup("gb18030")
	}
	return decoder{name, e}
}

// usualLabels are labels of other lists, without hyphens.
var usualLabels = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"cp874": "windows-874", "dos866": "ibm866",
		"cp932": "shift_jis", "eucjp": "euc-jp", "eucjpms": "euc-jp", "euckr": "euc-kr", "cp936": "gbk", "cp949": "euc-kr", "cp950": "big5", "big5hkscs": "big5",
		"cp65001": utf8Name, "utf8mb3": utf8Name, "utf8mb4": utf8Name,
		"maccyrillic": "x-mac-cyrillic", "cp10007": "x-mac-cyrillic", "macroman": "macintosh", "cp10000": "macintosh",
	}
})

// separators are the characters between the parts of a label.
var separators = strings.NewReplacer("-", "", "_", "", " ", "", ".", "")

// usualLabel returns the usual spelling of a label: cp-1251, win1251 and windows_1251 mean
// windows-1251.
func usualLabel(label string) string {
	if len(label) > 40 {
		return ""
	}
	bare := strings.TrimPrefix(separators.Replace(label), "x")
	if usual := usualLabels()[bare]; usual != "" {
		return usual
	}
	for _, family := range [...]struct{ prefix, usual string }{
		{"windows125", "windows-125"}, {"win125", "windows-125"}, {"cp125", "windows-125"},
		{"iso8859", "iso-8859-"}, {"koi8", "koi8-"},
	} {
		if number, ok := strings.CutPrefix(bare, family.prefix); ok {
			return family.usual + number
		}
	}
	return bare
}

// A reading is a document as read in a charset.
type reading struct {
	doc   string
	good  int // the number of characters beyond ASCII; not counted if nothing is bad
	bad   int // the number of bytes, or groups of them, without a meaning
	never int // the number of U+FFFE and U+FFFF, which are not characters
	at    int // the offset of the first bad or never
	pairs int // the number of characters in CESU-8
	cesu  int // the offset of the first of them
	ascii bool
	clean bool // there are no control characters but tabs and newlines, as far as is known
}

// spoil counts a bad byte.
func (r *reading) spoil(at int) {
	if r.bad++; r.bad == 1 {
		r.at = at
	}
}

// pair counts a character in CESU-8.
func (r *reading) pair(at int) {
	r.good++
	if r.pairs++; r.pairs == 1 {
		r.cesu = at
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
func (r *reading) appendNotes(notes []Note, name string) []Note {
	if r.pairs > 0 {
		notes = append(notes, Note{"cesu-8", fmt.Sprintf("%d characters in CESU-8, each as two halves, are not UTF-8", r.pairs), r.cesu})
	}
	what := ""
	switch n := r.bad + r.never; {
	case n == 0:
		return notes
	case name == utf8Name && r.never == 0:
		what = fmt.Sprintf("%d bytes are not UTF-8, and read as windows-1252", n)
	default:
		what = fmt.Sprintf("%d invalid bytes or characters", n)
	}
	return append(notes, Note{"invalid-bytes", what, r.at})
}

// read reads a document.
func (d decoder) read(data string) (r reading, err error) {
	if d.encoding == nil {
		return readUTF8(data), nil
	}
	if r.doc, err = d.encoding.NewDecoder().String(data); err != nil {
		return r, fmt.Errorf("decoding %s: %w", d.name, err)
	}
	r.doc = strings.TrimLeft(r.doc, "\uFEFF")
	if r.bad = strings.Count(r.doc, "\uFFFD"); r.bad > 0 {
		r.at = strings.Index(r.doc, "\uFFFD")
		good, _ := tally(r.doc)
		r.good = good - r.bad
		r.doc = keepControls(r.doc, data)
	}
	r.cleanse()
	return r, nil
}

// keepControls restores the bytes 80 to 9F that a charset of single bytes has no character
// for. They are the control characters with that number, as in HTML.
func keepControls(doc, data string) string {
	if utf8.RuneCountInString(doc) != len(data) {
		return doc
	}
	var b strings.Builder
	b.Grow(len(doc))
	i := 0
	for _, c := range doc {
		if c == utf8.RuneError && isControl(data[i]) {
			c = rune(data[i])
		}
		b.WriteRune(c)
		i++
	}
	return b.String()
}

func isControl(b byte) bool { return 0x80 <= b && b <= 0x9F }

// readUTF8 reads UTF-8, and other bytes as windows-1252.
func readUTF8(data string) (r reading) {
	r.doc = data
	if in := inspect(data); in.valid {
		if r.ascii, r.clean = in.wide == 0, in.clean; in.never {
			r.cleanse()
		}
		return r
	}
	var b strings.Builder
	b.Grow(len(data) + len(data)/16)
	for i := 0; i < len(data); {
		if after := beyondASCII(data, i); after > i {
			b.WriteString(data[i:after])
			i = after
			continue
		}
		c, n := utf8.DecodeRuneInString(data[i:])
		if both, ok := cesu8(data[i:]); ok {
			c, n = both, cesuLength
			r.pair(b.Len())
		} else if c == utf8.RuneError && n == 1 {
			r.spoil(b.Len())
			c = latin1Rune(data[i])
		} else if n > 1 {
			r.good++
		}
		b.WriteRune(c)
		i += n
	}
	if r.bad > r.good { // the bytes look like UTF-8 by accident
		r.doc, r.at = readLatin1(data), beyondASCII(data, 0)
		return r
	}
	r.doc = b.String()
	r.cleanse()
	return r
}

// isASCII reports whether there is nothing beyond ASCII in text.
func isASCII(text string) bool { return beyondASCII(text, 0) == len(text) }

// beyondASCII returns the offset of the first byte beyond ASCII from i on; the length of the text if
// there is none.
func beyondASCII(text string, i int) int {
	for ; i <= len(text)-8; i += 8 {
		if k := first(eight(text, i) & high); k < 8 {
			return i + k
		}
	}
	for i < len(text) && text[i] < utf8.RuneSelf {
		i++
	}
	return i
}

// An inspection tells which characters a text has.
type inspection struct {
	valid bool // the text is UTF-8
	clean bool // no control characters but tabs and newlines
	never bool // U+FFFE or U+FFFF
	wide  int  // the number of characters beyond ASCII
}

// inspect examines a text in one pass, as far as it is UTF-8.
func inspect(text string) inspection {
	in := inspection{valid: true, clean: true}
	for i := 0; i < len(text) && in.valid; {
		i = in.skipASCII(text, i)
		for end := min(i+32, len(text)); i < end && in.valid; { // bytes after a wide character are examined twice
			var word uint64
			if i+8 <= len(text) {
				word = eight(text, i)
			} else {
				word = last(text, i) | ' '*ones<<(8*(len(text)-i))
			}
			in.clean = in.clean && ^(spaced(word)|blank(word))&high == 0
			if i += first(word & high); word&high != 0 {
				i += in.character(text[i:])
			}
		}
	}
	return in
}

// skipASCII returns the offset of the first thirty-two bytes not all in ASCII, or of fewer at the end.
func (in *inspection) skipASCII(text string, i int) int {
	// The sum of a byte of ASCII and one of these has the highest bit if the byte is not less.
	const space, tab, afterNewline = (0x80 - ' ') * ones, (0x80 - '\t') * ones, (0x80 - '\n' - 1) * ones
	for ; i <= len(text)-32; i += 32 {
		block := text[i : i+32]
		a, b, c, d := eight(block, 0), eight(block, 8), eight(block, 16), eight(block, 24)
		if (a|b|c|d)&high != 0 {
			break
		}
		if (a+space)&(b+space)&(c+space)&(d+space)&high != high {
			blankA, blankB := (a+tab)&^(a+afterNewline), (b+tab)&^(b+afterNewline)
			blankC, blankD := (c+tab)&^(c+afterNewline), (d+tab)&^(d+afterNewline)
			in.clean = in.clean && (a+space|blankA)&(b+space|blankB)&(c+space|blankC)&(d+space|blankD)&high == high
		}
	}
	return i
}

// character examines the character beyond ASCII at the beginning of a text, and returns its length.
func (in *inspection) character(text string) int {
	in.wide++
	switch c := text[0]; { // of most characters
	case 0xC2 <= c && c < 0xE0 && len(text) > 1 && text[1]&0xC0 == 0x80:
		return 2
	case 0xE1 <= c && c < 0xED && len(text) > 2 && text[1]&0xC0 == 0x80 && text[2]&0xC0 == 0x80:
		return 3
	}
	r, n := utf8.DecodeRuneInString(text)
	in.valid = r != utf8.RuneError || n > 1
	in.never = in.never || r == 0xFFFE || r == 0xFFFF
	return n
}

func readLatin1(data string) string {
	var b strings.Builder
	b.Grow(len(data) + len(data)/16)
	for i := range len(data) {
		b.WriteRune(latin1Rune(data[i]))
	}
	return b.String()
}

// latin1Rune returns the character of a byte in windows-1252. Its five bytes without a
// character are the control characters with that number, as in HTML.
func latin1Rune(b byte) rune {
	if c := charmap.Windows1252.DecodeByte(b); c != utf8.RuneError {
		return c
	}
	return rune(b)
}

// UTF-8 that was taken for windows-1252 or ISO-8859-1 and encoded as UTF-8 again: "Ã©" for "é".

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
	return text, []Note{{"encoded-twice", "the document is UTF-8 encoded twice", beyondASCII(text, 0)}}
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
	for i := beyondASCII(text, 0); i < len(text); i = beyondASCII(text, i) {
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

// cp1252Byte returns the byte of a character in windows-1252 or, where they differ, in
// ISO-8859-1, whose bytes 80 to 9F are the control characters of their numbers.
func cp1252Byte(r rune) (byte, bool) {
	if r >= 0x80 && r <= 0x9F {
		return byte(r), true
	}
	return charmap.Windows1252.EncodeRune(r)
}

// mostBefore is the maximum length of the text before a feed.
const mostBefore = 64 << 10

// FindFeed returns where a feed begins in a text with something else before it, such as
// the warnings of a script; -1 if there is no feed, or if it is inside something else.
// page reports whether the text is an HTML page.
func FindFeed(text string) (begin int, page bool) {
	head := lowerASCII(text[:min(len(text), mostBefore)])
	root := len(head)
	for _, name := range []string{"<rss", "<feed", "<rdf:rdf"} {
		if i := IndexTag(head, name); i >= 0 {
			root = min(root, i)
		}
	}
	before := head[:root]
	doctype := strings.Index(before, "<!doctype html")
	if IndexTag(before, "<html") >= 0 || doctype >= 0 && (root == len(head) || hasTag(before[doctype:])) {
		return -1, true
	}
	if root == len(head) {
		return -1, false
	}
	begin = root
	for _, prolog := range []string{"<?xml", "<!doctype"} {
		if i := strings.Index(before, prolog); i >= 0 {
			begin = min(begin, i)
		}
	}
	s := New("<a>"+text[:begin]+"</a>", Limits{})
	tokens := 0
	for tok := s.Next(); tok != Stop; tok = s.Next() {
		if tok != Text || strings.TrimSpace(string(s.AppendText(nil))) != "" {
			tokens++
		}
	}
	switch {
	case s.Err() != nil: // an element is open there
		return -1, false
	case tokens == 2: // there are only comments
		return 0, false
	}
	return begin, false
}

// IsQuoted reports whether a feed at an offset of a text has words before it and after its
// end, other than PHP's messages: then the text, such as an article or a message, only quotes it.
// Nobody quotes a message with PHP's markup, so the text after the feed may be anything then.
func IsQuoted(text string, begin int) bool {
	end := strings.LastIndexByte(text, '>') + 1
	if end <= begin || !hasWords(text[:begin]) || !hasWords(text[end:]) {
		return false
	}
	before, after := text[:min(begin, 4096)], text[end:min(len(text), end+4096)]
	return !isMarkedMessage(before) && !(isMessage(before) && isMessage(after))
}

const blanks = " \t\r\n\f"

// isMessage reports whether a text begins with a message of PHP: "Warning: … on line 8".
func isMessage(text string) bool {
	text = strings.TrimPrefix(strings.TrimLeft(text, blanks), "PHP ")
	level, rest, ok := strings.Cut(text, ": ")
	return ok && isLevel(level) && isOnLine(rest, " on line ", "")
}

// isMarkedMessage reports whether a text begins with a message of PHP for browsers:
// "<b>Warning</b>: … on line <b>8</b>".
func isMarkedMessage(text string) bool {
	text = strings.TrimLeft(text, blanks)
	if br, rest, ok := strings.Cut(text, ">"); ok && (br == "<br" || br == "<br/" || br == "<br /" || br == "<br ") {
		text = strings.TrimLeft(rest, blanks)
	}
	text, marked := strings.CutPrefix(text, "<b>")
	level, rest, ok := strings.Cut(text, "</b>: ")
	return marked && ok && isLevel(level) && isOnLine(rest, " on line <b>", "</b>")
}

// isOnLine reports whether the first line of a text has a number between two others.
func isOnLine(text, before, after string) bool {
	line, _, _ := strings.Cut(text, "\n")
	for {
		_, rest, ok := strings.Cut(line, before)
		if !ok {
			return false
		}
		if number := strings.TrimLeft(rest, "0123456789"); number != rest && strings.HasPrefix(number, after) {
			return true
		}
		line = rest
	}
}

// isLevel reports whether a text is a level of PHP's messages: "Warning", "Fatal error".
func isLevel(text string) bool {
	switch text {
	case "Warning", "Notice", "Deprecated", "Strict Standards":
		return true
	}
	word, ok := strings.CutSuffix(text, " error")
	word = strings.TrimSuffix(word, " fatal")
	return ok && len(word) > 1 && 'A' <= word[0] && word[0] <= 'Z' && strings.Trim(word[1:], "abcdefghijklmnopqrstuvwxyz") == ""
}

func hasWords(text string) bool {
	return strings.IndexFunc(text, unicode.IsLetter) >= 0
}

// hasTag reports whether there is a start tag in text.
func hasTag(text string) bool {
	for {
		_, after, ok := strings.Cut(text, "<")
		if !ok || after != "" && 'a' <= after[0] && after[0] <= 'z' {
			return ok
		}
		text = after
	}
}

// IndexTag returns the offset of a start tag in text; -1 if there is none.
func IndexTag(text, tag string) int {
	for from := 0; ; {
		i := strings.Index(text[from:], tag)
		if i < 0 {
			return -1
		}
		if from += i + len(tag); from < len(text) && strings.IndexByte(" \t\r\n/>", text[from]) >= 0 {
			return from - len(tag)
		}
	}
}

func lowerASCII(s string) string {
	lower := []byte(s)
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return string(lower)
}

// HasEndTag reports whether there is an end tag of the element with the given name, in
// small letters, whatever its case in text.
func HasEndTag(text, name string) bool {
	for text = lowerASCII(text); ; {
		_, after, ok := strings.Cut(text, "</"+name)
		if ok && (after == "" || strings.IndexByte("> \t\r\n<", after[0]) >= 0) {
			return true
		} else if !ok {
			return false
		}
		text = after
	}
}
