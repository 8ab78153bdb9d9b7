package xmlscan

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
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
// changes no other.
//
// Decode removes a byte order mark. In UTF-8 it reads invalid bytes as windows-1252, so different bytes stay different, and the whole
// document if most of them are invalid; in other encodings they become U+FFFD. So do U+FFFE and U+FFFF, which XML does not allow. It
// changes an XML declaration of another charset to UTF-8. Clean UTF-8 without need of such a change is returned unchanged and without
// copying; otherwise doc has at most three times as many bytes as data. The offsets in notes are offsets in doc.
func Decode(data string, contentType string) (doc string, notes []Note, err error) {
	return decode(data, contentType, false)
}

// DecodeOnce is Decode, but undoes a second encoding: see XMLEncodedOnce.
func DecodeOnce(data string, contentType string) (doc string, notes []Note, err error) {
	return decode(data, contentType, true)
}

func decode(data string, contentType string, once bool) (doc string, notes []Note, err error) {
	sources := [2]source{{name: "Content-Type"}, {name: "XML declaration"}}
	sources[0].set(contentCharset(contentType))
	found, data := detect(data)
	var r reading
	if found.name == "" {
		label, _ := declaredCharset(data)
		sources[1].set(label)
		found, r, err = choose(data, sources[:])
	} else {
		if r, err = found.read(data); err != nil {
			return "", nil, err
		}
		label, _ := declaredCharset(r.doc)
		sources[1].set(label)
		if c := sources[1].charset; found.ebcdic() && c.ebcdic() && c != found {
			found = c
			r, err = found.read(data)
		}
	}
	if err != nil {
		return "", nil, err
	}
	for _, s := range sources {
		notes = s.appendNote(notes, found.name)
	}
	if once && found.name == utf8Name && r.bad+r.never == 0 && !r.ascii {
		var twice []Note
		r.doc, twice = XMLEncodedOnce(r.doc)
		notes = append(notes, twice...)
	}
	doc = declareUTF8(r.doc)
	r.at += len(doc) - len(r.doc) // it comes after the declaration
	return doc, r.appendNotes(notes, found.name), nil
}

// detect returns the charset the first bytes reveal, and the data without a byte order mark
// (XML 1.0, appendix F).
func detect(data string) (c charset, rest string) {
	const utf8Mark = "\xEF\xBB\xBF"
	if strings.HasPrefix(data, utf8Mark) {
		return charset{name: utf8Name}, strings.TrimLeft(data, utf8Mark) // some software writes several
	}
	for _, m := range [...]struct{ mark, name string }{
		{"\xFF\xFE\x00\x00", "utf-32le"},
		{"\x00\x00\xFE\xFF", "utf-32be"},
		{"\xFF\xFE", "utf-16le"},
		{"\xFE\xFF", "utf-16be"},
	} {
		if rest, ok := strings.CutPrefix(data, m.mark); ok {
			return unicodeCharset(m.name), rest
		}
	}
	if len(data) < 4 {
		return charset{}, data
	}
	if data[:4] == "\x4C\x6F\xA7\x94" { // <?xm
		return charset{ebcdic, charmap.CodePage037}, data
	}
	switch [4]bool{data[0] == 0, data[1] == 0, data[2] == 0, data[3] == 0} {
	case [4]bool{true, true, true, false}:
		return unicodeCharset("utf-32be"), data
	case [4]bool{false, true, true, true}:
		return unicodeCharset("utf-32le"), data
	case [4]bool{true, false, true, false}, [4]bool{true, false, false, false}:
		return unicodeCharset("utf-16be"), data
	case [4]bool{false, true, false, true}, [4]bool{false, true, false, false}:
		return unicodeCharset("utf-16le"), data
	}
	return charset{}, data
}

func unicodeCharset(name string) charset {
	switch name {
	case "utf-16le":
		return charset{name, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)}
	case "utf-16be":
		return charset{name, unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)}
	case "utf-32le":
		return charset{name, utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)}
	default:
		return charset{name, utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)}
	}
}

// A source names a charset.
type source struct {
	name, label string // label is "" if the source names none
	charset
}

func (s *source) set(label string) {
	if s.label = label; label != "" {
		s.charset = lookup(label)
	}
}

// appendNote notes a source that is wrong about a document in the given charset.
func (s *source) appendNote(notes []Note, found string) []Note {
	switch name := s.charset.name; {
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
func choose(data string, sources []source) (charset, reading, error) {
	utf8Set := charset{name: utf8Name}
	named := make([]charset, 0, 3)
	for _, s := range sources {
		if s.charset.name != "" && !s.wide() && !s.ebcdic() {
			named = append(named, s.charset)
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
	if r.bad > 0 && sources[0].charset.name == "" && isClearlyUTF8(data) {
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
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRuneInString(data[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			bad++
		case n > 1:
			good++
		}
		i += n
	}
	return good, bad
}
