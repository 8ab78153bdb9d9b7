package xmlscan

import (
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// Decode turns a document's bytes into UTF-8. What their encoding is, is asked
// in the order of RFC 7303: their byte order mark, the charset of contentType,
// the XML declaration; else it is UTF-8. UTF-16 and UTF-32 are known by their
// zero bytes without a mark too, and not believed in where there are none.
//
// A byte order mark is removed. Invalid bytes become U+FFFD, as do U+FFFE and
// U+FFFF, which XML does not allow. Clean UTF-8 is returned as it is, without
// copying; else doc takes at most three times as many bytes as data. The
// offsets in notes are those of doc.
func Decode(data string, contentType string) (doc string, notes []Note, err error) {
	var c choice
	unit, doc := detect(data)
	if unit != "" {
		c.name = unit
		if e := unicodeEncoding(unit); e != nil {
			if doc, err = e.NewDecoder().String(doc); err != nil {
				return "", nil, fmt.Errorf("decoding %s: %w", unit, err)
			}
		}
	}
	doc = strings.TrimLeft(doc, "\uFEFF") // some writers of feeds put several
	c.consider("Content-Type", contentCharset(contentType))
	c.consider("XML declaration", declaredCharset(doc))
	if unit == "" && c.encoding != nil {
		if doc, err = c.encoding.NewDecoder().String(doc); err != nil {
			return "", c.notes, fmt.Errorf("decoding %s: %w", c.name, err)
		}
	}
	doc = c.clean(doc)
	return doc, c.notes, nil
}

// detect returns the encoding that the first bytes give away, "" for none, and
// the data without a byte order mark (XML 1.0, appendix F).
func detect(data string) (name, rest string) {
	for _, m := range []struct{ mark, name string }{
		{"\xEF\xBB\xBF", "utf-8"},
		{"\xFF\xFE\x00\x00", "utf-32le"},
		{"\x00\x00\xFE\xFF", "utf-32be"},
		{"\xFF\xFE", "utf-16le"},
		{"\xFE\xFF", "utf-16be"},
	} {
		if rest, ok := strings.CutPrefix(data, m.mark); ok {
			return m.name, rest
		}
	}
	if len(data) < 4 {
		return "", data
	}
	switch [4]bool{data[0] == 0, data[1] == 0, data[2] == 0, data[3] == 0} {
	case [4]bool{true, true, true, false}:
		return "utf-32be", data
	case [4]bool{false, true, true, true}:
		return "utf-32le", data
	case [4]bool{true, false, true, false}, [4]bool{true, false, false, false}:
		return "utf-16be", data
	case [4]bool{false, true, false, true}, [4]bool{false, true, false, false}:
		return "utf-16le", data
	}
	return "", data
}

// unicodeEncoding returns the encoding that detect named, nil for UTF-8.
func unicodeEncoding(name string) encoding.Encoding {
	switch name {
	case "utf-16le":
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case "utf-16be":
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	case "utf-32le":
		return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)
	case "utf-32be":
		return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)
	}
	return nil
}

// contentCharset returns the charset parameter of a Content-Type.
func contentCharset(contentType string) string {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return ""
	}
	return params["charset"]
}

// declaredCharset returns the encoding that the XML declaration names.
func declaredCharset(doc string) string {
	doc = doc[skipSpace(doc, 0):]
	if !strings.HasPrefix(doc, "<?xml") {
		return ""
	}
	doc, _, _ = strings.Cut(doc[:min(len(doc), 1024)], "?>")
	_, doc, _ = strings.Cut(doc, "encoding")
	doc = doc[skipSpace(doc, 0):]
	doc, ok := strings.CutPrefix(doc, "=")
	doc = doc[skipSpace(doc, 0):]
	if !ok || doc == "" || doc[0] != '"' && doc[0] != '\'' {
		return ""
	}
	label, _, _ := strings.Cut(doc[1:], doc[:1])
	return label
}

// A choice of an encoding, made from sources that come in the order of their
// authority.
type choice struct {
	name     string // "" as long as there is none
	encoding encoding.Encoding
	notes    []Note
}

// consider makes the label that a source gives the choice, unless there is one.
func (c *choice) consider(source, label string) {
	if label == "" {
		return
	}
	e, name := lookup(label)
	wide := strings.HasPrefix(name, "utf-16") || strings.HasPrefix(name, "utf-32")
	switch {
	case name == "":
		c.note("unknown-charset", fmt.Sprintf("%s: unknown charset %q", source, clip(label)), 0)
	case c.name == "" && !wide:
		c.name, c.encoding = name, e
	case c.name == "":
		c.note("charset-mismatch", fmt.Sprintf("%s: %s, but the document is not", source, name), 0)
	case c.name != name && !(wide && strings.HasPrefix(c.name, name[:len("utf-16")])):
		c.note("charset-mismatch", fmt.Sprintf("%s: %s, but the document is taken for %s", source, name, c.name), 0)
	}
}

// lookup returns the encoding that a label stands for, nil for UTF-8, with its
// canonical name, which is "" if there is none.
func lookup(label string) (e encoding.Encoding, name string) {
	label = strings.ToLower(strings.TrimSpace(label))
	if strings.HasPrefix(label, "utf-32") {
		return nil, "utf-32"
	}
	e, name = charset.Lookup(label)
	switch name {
	case "replacement": // WHATWG's word for what must not be decoded.
		return nil, ""
	case "utf-8":
		return nil, name
	}
	return e, name
}

func (c *choice) note(code, message string, offset int) {
	c.notes = append(c.notes, Note{Code: code, Message: message, Offset: offset})
}

// clean returns doc as valid UTF-8 without U+FFFE and U+FFFF.
func (c *choice) clean(doc string) string {
	first, count := -1, 0
	decoded := c.encoding != nil || unicodeEncoding(c.name) != nil
	if decoded {
		// A decoder has put U+FFFD for invalid bytes already.
		first, count = strings.Index(doc, "\uFFFD"), strings.Count(doc, "\uFFFD")
	}
	if !utf8.ValidString(doc) || strings.Contains(doc, "\uFFFE") || strings.Contains(doc, "\uFFFF") {
		var at, n int
		doc, at, n = replaceInvalid(doc)
		if count += n; first < 0 || at < first {
			first = at
		}
	}
	if count > 0 {
		c.note("invalid-bytes", fmt.Sprintf("%d invalid bytes or characters", count), first)
	}
	return doc
}

// replaceInvalid replaces each invalid byte and each U+FFFE and U+FFFF by U+FFFD.
func replaceInvalid(doc string) (clean string, first, count int) {
	var b strings.Builder
	b.Grow(len(doc))
	for i := 0; i < len(doc); {
		r, n := utf8.DecodeRuneInString(doc[i:])
		if r == utf8.RuneError && n == 1 || r == 0xFFFE || r == 0xFFFF {
			if count++; count == 1 {
				first = i
			}
			b.WriteRune(utf8.RuneError)
		} else {
			b.WriteString(doc[i : i+n])
		}
		i += n
	}
	return b.String(), first, count
}
